/*
 * What an entry says about a job: its name, and what follows from its document.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "billing/billing.h"
#include "state/state.h"

#define FPS_DEFAULT_M 24000 /* as src/rules has it */

/* ---- a job's document ------------------------------------------------------------------------- */

#define LABELS_MOST 1024 /* bytes; more are left out of the books */

/* Keys in order, values as texts; NULL: none, or too many. */
static const char *labels_of(const json_t *root, st_arena *arena)
{
    json_t *from = json_object_get(root, "labels"), *to, *value;
    const char *key, *ret = NULL;
    char *text;

    if (json_object_size(from) == 0)
        return NULL;
    to = json_object();
    json_object_foreach(from, key, value)
    {
        text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        json_object_set_new(to, key, json_string(text ? text : json_string_value(value)));
        free(text);
    }
    text = json_dumps(to, JSON_COMPACT | JSON_SORT_KEYS);
    if (text && strlen(text) <= LABELS_MOST)
        ret = st_arena_strdup(arena, text);
    free(text);
    json_decref(to);
    return ret;
}

/* Most documents have neither, and need not be read. */
void st_doc_names(const char *doc, st_arena *arena, st_doc_words *ret)
{
    bool any = doc && (strstr(doc, "\"workload\"") || strstr(doc, "\"labels\"") ||
                       strstr(doc, "\"priority_class\""));
    json_t *root = any ? json_loads(doc, 0, NULL) : NULL;
    const char *workload = json_string_value(json_object_get(root, "workload"));
    const char *class = json_string_value(json_object_get(root, "priority_class"));

    *ret = (st_doc_words){.labels = labels_of(root, arena)};
    if (workload && workload[0] && strlen(workload) <= ST_NAME_MAX)
        ret->workload = st_arena_strdup(arena, workload);
    if (class && class[0] && strlen(class) <= ST_NAME_MAX)
        ret->priority_class = st_arena_strdup(arena, class);
    json_decref(root);
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

/* Of a job that runs the core knows it, of one that has just ended its row. */
static const char *name_of(const st_control *ctl, uint64_t id, st_arena *arena)
{
    const st_job *job = st_core_job(ctl->core, id);
    const st_live *live = job ? NULL : st_control_known(ctl, id);
    const char *name = job ? job->name : live ? live->name : NULL;

    return name && name[0] && strlen(name) <= ST_NAME_MAX ? st_arena_strdup(arena, name) : NULL;
}

/* The booking it ran in; NULL: not known any more. */
static const char *booking_of(const st_control *ctl, uint64_t id, st_arena *arena)
{
    const st_job *job = st_core_job(ctl->core, id);
    const st_live *live = st_control_known(ctl, id);
    uint64_t booking = job && job->booking ? job->booking : live ? live->booking : 0;
    char name[ST_ID_TEXT];

    if (booking == 0)
        return NULL;
    st_control_name(ctl, ST_BOOKING_ID, booking, name);
    return st_arena_strdup(arena, name);
}

void st_entry_of(const st_control *ctl, const st_record *rec, const char *doc, st_arena *arena,
                 st_entry *ret)
{
    st_record_names names = {.fleet = st_core_fleet(ctl->core), .tree = st_core_tree(ctl->core)};
    char job[ST_ID_TEXT];

    if (rec->kind == ST_REC_GRANT || rec->kind == ST_REC_FIX || rec->kind == ST_REC_LOST) {
        st_control_id_text(ctl, rec->job, job);
        names.job = st_arena_strdup(arena, job);
        st_doc_words words;

        st_doc_names(doc, arena, &words);
        names.workload = words.workload;
        names.priority_class = words.priority_class;
        names.name = name_of(ctl, rec->job, arena);
        names.labels = words.labels;
    }
    st_entry_of_record(rec, &names, arena, ret);
    if (rec->kind == ST_REC_GRANT && rec->basis == ST_BASIS_BOOKED)
        ret->booking = booking_of(ctl, rec->job, arena);
    if (rec->account > ST_ROOT) {
        char buf[ST_NAME_MAX + 1];
        const char *book = st_book_name(ctl, rec->account, buf);

        if (book == buf)
            ret->account = st_arena_strdup(arena, buf);
    }
}
