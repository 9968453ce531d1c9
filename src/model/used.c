/*
 * Names and sums of what tasks used (model/used.h).
 */
#include "model/used.h"

#include <string.h>

static const char *const keys[] = {
#define X(id, key) key,
    ST_USED_TABLE(X)
#undef X
};

static const char *const results[] = {
#define X(id, word) word,
    ST_SCRUB_TABLE(X)
#undef X
};

const char *st_used_key(st_used_kind kind)
{
    return keys[kind];
}

bool st_used_same(const st_used *a, const st_used *b)
{
    return a->has == b->has && memcmp(a->v, b->v, sizeof a->v) == 0;
}

void st_used_add(st_used *to, const st_used *more)
{
    for (int k = 0; k < ST_USED_COUNT; k++) {
        if (!(more->has >> k & 1))
            continue;
        if (k == ST_USED_MEM_PEAK)
            to->v[k] = to->v[k] > more->v[k] ? to->v[k] : more->v[k];
        else
            to->v[k] += more->v[k];
    }
    to->has |= more->has;
}

const char *st_scrub_name(st_scrub_result result)
{
    return results[result];
}

int st_scrub_parse(const char *word)
{
    for (int r = 0; r < ST_SCRUB_COUNT; r++)
        if (strcmp(results[r], word) == 0)
            return r;
    return -1;
}
