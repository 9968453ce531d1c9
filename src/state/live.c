/* Live jobs, looked up, and what is told of them. */
#include <stdlib.h>

#include "base/mem.h"
#include "state/state.h"

static bool is_over(st_job_state state)
{
    return state >= ST_JOB_DONE && state != ST_JOB_STOPPING;
}

st_live *st_control_known(const st_control *ctl, uint64_t id)
{
    int64_t at;

    return st_idmap_get(ctl->live, id, &at) ? (st_live *)(intptr_t)at : NULL;
}

st_live *st_control_live(const st_control *ctl, uint64_t id)
{
    st_live *live = st_control_known(ctl, id);

    return live && !is_over(live->state) ? live : NULL;
}

const char *st_live_doc(st_control *ctl, const st_live *live)
{
    if (!live->head)
        return live->doc;
    st_strbuf_clear(&ctl->whole);
    st_strbuf_add(&ctl->whole, live->head->text);
    st_strbuf_add(&ctl->whole, live->doc);
    return st_strbuf_str(&ctl->whole);
}

static int64_t sum_of(const st_used *used, st_used_kind kind)
{
    return used->has >> kind & 1 ? used->v[kind] : ST_UNKNOWN;
}

void st_sums_of(const st_used *used, st_sums *ret)
{
    *ret = (st_sums){.seen_gpu_ms = sum_of(used, ST_USED_SEEN),
                     .busy_gpu_ms = sum_of(used, ST_USED_BUSY),
                     .energy_mj = sum_of(used, ST_USED_ENERGY),
                     .mem_peak_mib = sum_of(used, ST_USED_MEM_PEAK)};
}

void st_asides_add(st_asides *list, int64_t n, const char *text)
{
    st_vec_push(list, (st_aside){n, st_xstrdup(text)});
}

void st_asides_done(st_asides *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->v[i].text);
    st_vec_free(list);
}
