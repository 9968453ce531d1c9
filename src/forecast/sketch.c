/* The histogram behind every forecast. */
#include "base/macros.h"
#include "forecast/forecast.h"

int st_sketch_bucket(int64_t value)
{
    if (value < 4)
        return (int)ST_MAX(value, 0);
    int octave = 63 - __builtin_clzll((uint64_t)value); /* from 2 on */
    int bucket = 4 * (octave - 1) + (int)(value >> (octave - 2) & 3);
    return ST_MIN(bucket, ST_SKETCH_BUCKETS - 1);
}

int64_t st_sketch_low(int bucket)
{
    ST_ASSERT(bucket >= 0 && bucket <= ST_SKETCH_BUCKETS);
    if (bucket < 4)
        return bucket;
    return (int64_t)(4 + bucket % 4) << (bucket / 4 - 1);
}

void st_sketch_note(st_sketch *s, int64_t value)
{
    s->weight[st_sketch_bucket(value)] += ST_SKETCH_UNIT;
    s->total += ST_SKETCH_UNIT;
    if (s->total <= ST_SKETCH_FULL)
        return;
    s->total = 0;
    for (int b = 0; b < ST_SKETCH_BUCKETS; b++) {
        s->weight[b] /= 2;
        s->total += s->weight[b];
    }
}

uint32_t st_sketch_above(const st_sketch *s, int from)
{
    uint32_t below = 0;
    for (int b = 0; b < from; b++)
        below += s->weight[b];
    return s->total - below;
}

int st_sketch_quantile(const st_sketch *s, int from, int pct)
{
    uint32_t all = st_sketch_above(s, from), sum = 0;
    for (int b = from; b < ST_SKETCH_BUCKETS && all > 0; b++) {
        sum += s->weight[b];
        if (sum * 100 >= all * (uint32_t)pct)
            return b;
    }
    return -1;
}
