/*
 * Edit distance with swaps of neighbours (a typo such as "wieght" is one
 * mistake). Near enough is one mistake per three characters.
 */
#include "base/suggest.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"

/* Longer words get no suggestion: it keeps the work bounded, and no key of ours is that long. */
#define SUGGEST_WORD_MAX 48

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static int edit_distance(const char *a, const char *b)
{
    int rows[3][SUGGEST_WORD_MAX + 1];
    int *before = rows[0], *prev = rows[1], *cur = rows[2];
    size_t na = strlen(a), nb = strlen(b);

    ST_ASSERT(na <= SUGGEST_WORD_MAX && nb <= SUGGEST_WORD_MAX);
    memset(rows, 0, sizeof(rows));
    for (size_t j = 0; j <= nb; j++)
        prev[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *spare = before;

        cur[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int change = prev[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));

            cur[j] = ST_MIN(change, ST_MIN(prev[j], cur[j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                cur[j] = ST_MIN(cur[j], before[j - 2] + 1);
        }
        before = prev;
        prev = cur;
        cur = spare;
    }
    return prev[nb];
}

const char *st_suggest(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    size_t len = strlen(word);
    int best_distance = (int)ST_MAX(len / 3, (size_t)1) + 1;

    if (len == 0 || len > SUGGEST_WORD_MAX)
        return NULL;
    for (size_t i = 0; candidates[i]; i++) {
        int distance;

        if (strlen(candidates[i]) > SUGGEST_WORD_MAX)
            continue;
        distance = edit_distance(word, candidates[i]);
        /* distance == len: nothing of the word is left, so it is not a typo of this one. */
        if (distance < best_distance && distance < (int)len) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    if (best || len < 3)
        return best;

    /* Nobody is near; perhaps the word was cut short, as "mem" for "memory". */
    for (size_t i = 0; candidates[i]; i++)
        if (strncasecmp(word, candidates[i], len) == 0)
            return candidates[i];
    return NULL;
}
