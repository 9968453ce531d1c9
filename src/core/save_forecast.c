/* What was learned of run times and of estimates to bytes and back; part of save.c. */
#include "core/save_health.h"

/* The weights that are not 0; their sum follows. */
static void io_sketch(codec *c, st_sketch *s)
{
    size_t n = 0;
    for (int b = 0; b < ST_SKETCH_BUCKETS; b++)
        n += s->weight[b] > 0;
    n = io_count(c, n, ST_SKETCH_BUCKETS);
    for (int b = -1; n > 0 && !c->bad; n--) {
        do
            b++;
        while (c->out && s->weight[b] == 0);
        IO_IN(c, b, b, ST_SKETCH_BUCKETS - 1);
        if (c->bad)
            return;
        IO_IN(c, s->weight[b], 1, ST_SKETCH_FULL);
        if (!c->out)
            s->total += s->weight[b];
    }
}

/* In order of learning, the oldest first: who is forgotten next must be the same. */
void st_save_forecast(codec *c, st_forecast *f)
{
    size_t n = io_count(c, f->known.n, ST_FORECAST_KEYS);
    int32_t at = f->oldest;
    for (size_t i = 0; i < n && !c->bad; i++) {
        uint64_t key = c->out ? f->known.v[at].key : 0;
        io_u64(c, &key);
        st_known *k = c->out ? &f->known.v[at] : st_forecast_learn(f, key);
        if (!c->out && f->known.n != i + 1) {
            c->bad = true; /* a key twice */
            return;
        }
        io_sketch(c, &k->run);
        io_sketch(c, &k->part);
        at = c->out ? k->newer : at;
    }
    for (int far = 0; far < ST_FORECAST_FAR; far++) {
        io_sketch(c, &f->error[far]);
        if (c->format >= 13) {
            io_i64(c, &f->lately[far].at);
            IO_IN(c, f->lately[far].n, 0, INT32_MAX);
        }
        if (c->format >= 28) {
            IO_IN(c, f->reach[far].lo, 0, ST_FORECAST_REACH_MAX);
            IO_IN(c, f->reach[far].hi, 0, ST_FORECAST_REACH_MAX);
        }
    }
}
