/* What was measured, as text (gpu/measure.h). */
#include "gpu/measure.h"

#include "base/quote.h"

static const char *const words[] = {
#define X(id, word) [id] = word,
    ST_MEASURE_TABLE(X)
#undef X
};

void st_test_figures_none(st_test_figures *m)
{
    m->all_reduce = m->sums = ST_UNMEASURED;
    for (int i = 0; i < ST_DEVS_MAX; i++) {
        for (int k = 0; k < ST_MEASURE_COUNT; k++)
            m->gpu[i].v[k] = ST_UNMEASURED;
        m->gpu[i].error[0] = '\0';
    }
}

static void put(st_strbuf *out, const char *word, int64_t value)
{
    if (value != ST_UNMEASURED)
        st_strbuf_addf(out, ",\"%s\":%lld", word, (long long)value);
}

void st_test_figures_json(const st_test_figures *m, st_strbuf *out)
{
    st_strbuf_addf(out, "{\"ok\":true,\"with\":\"%s\",\"nccl\":%s,\"blas\":%s", m->with,
                   m->nccl ? "true" : "false", m->blas ? "true" : "false");
    put(out, "all-reduce", m->all_reduce);
    put(out, "sums", m->sums);
    st_strbuf_add(out, ",\"gpus\":[");
    for (int i = 0; i < m->n; i++) {
        st_strbuf_addf(out, "%s{\"gpu\":%d", i > 0 ? "," : "", i);
        for (int k = 0; k < ST_MEASURE_COUNT; k++)
            put(out, words[k], m->gpu[i].v[k]);
        if (m->gpu[i].error[0]) {
            st_strbuf_add(out, ",\"error\":");
            st_quote_json(out, m->gpu[i].error);
        }
        st_strbuf_addc(out, '}');
    }
    st_strbuf_add(out, "]}");
}
