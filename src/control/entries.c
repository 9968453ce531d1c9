/*
 * What an entry says about a job: its name, and what follows from its document.
 */
#include <jansson.h>
#include <string.h>

#include "base/num.h"
#include "control/billing.h"
#include "control/state.h"

#define FPS_DEFAULT_M 24000 /* as src/rules has it */

/* ---- a job's document ------------------------------------------------------------------------- */

const char *st_doc_workload(const char *doc, st_arena *arena)
{
    json_t *root = doc && strstr(doc, "\"workload\"") ? json_loads(doc, 0, NULL) : NULL;
    const char *word = json_string_value(json_object_get(root, "workload"));
    const char *ret =
        word && word[0] && strlen(word) <= ST_NAME_MAX ? st_arena_strdup(arena, word) : NULL;

    json_decref(root);
    return ret;
}

static int64_t frames_per_second_m(const json_t *root)
{
    const json_t *fps = json_object_get(root, "fps");
    int64_t m = 0;

    if (json_is_integer(fps))
        m = json_integer_value(fps) * 1000;
    else if (json_is_real(fps))
        m = (int64_t)(json_real_value(fps) * 1000 + 0.5);
    else if (json_is_string(fps) &&
             st_parse_milli(json_string_value(fps), 1, INT32_MAX, &m, NULL) < 0)
        m = 0;
    return m > 0 ? m : FPS_DEFAULT_M;
}

int64_t st_doc_pieces(const char *doc, st_component by)
{
    json_t *root = json_loads(doc, 0, NULL);
    const json_t *array = json_object_get(root, "array");
    const json_t *frames = json_object_get(array, "frames");
    int64_t n = 0, step = json_integer_value(json_object_get(array, "step"));

    if (json_array_size(frames) == 2) {
        int64_t first = json_integer_value(json_array_get(frames, 0));
        int64_t last = json_integer_value(json_array_get(frames, 1));

        n = last >= first ? (last - first) / (step > 0 ? step : 1) + 1 : 0;
    }
    if (by == ST_PAY_MINUTES)
        n = n * 1000000 / frames_per_second_m(root);
    json_decref(root);
    return n;
}

/* ---- records ---------------------------------------------------------------------------------- */

void st_entry_of(const st_control *ctl, const st_record *rec, const char *doc, st_arena *arena,
                 st_entry *ret)
{
    st_record_names names = {.fleet = st_core_fleet(ctl->core), .tree = st_core_tree(ctl->core)};
    char job[ST_ID_TEXT];

    if (rec->kind == ST_REC_GRANT || rec->kind == ST_REC_FIX || rec->kind == ST_REC_LOST) {
        st_control_id_text(ctl, rec->job, job);
        names.job = st_arena_strdup(arena, job);
        names.workload = st_doc_workload(doc, arena);
    }
    st_entry_of_record(rec, &names, arena, ret);
    if (rec->account > ST_ROOT) {
        char buf[ST_NAME_MAX + 1];
        const char *book = st_book_name(ctl, rec->account, buf);

        if (book == buf)
            ret->account = st_arena_strdup(arena, buf);
    }
}
