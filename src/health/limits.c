/* What each GPU type must reach. The figures are those that operators of such nodes publish, and four fifths of what was
 * measured of one that is sound; a type without a row is compared with its siblings alone. */
#include <string.h>

#include "base/macros.h"
#include "base/quote.h"
#include "health/health.h"

static const st_limit_row rows[] = {
#define X(field, word, def, most, unit, about) {word, unit, about, most},
    ST_LIMIT_TABLE(X)
#undef X
};

static const size_t at[] = {
#define X(field, ...) offsetof(st_diag_limits, field),
    ST_LIMIT_TABLE(X)
#undef X
};

static const struct {
    const char *type;
    int64_t pcie, peer, all_reduce, memory, product;
} types[] = {
    {"h100", 48000, 335000, 460000, 0, 0},
    {"h200", 48000, 335000, 431000, 3440000, 632000},
    {"a100-80", 0, 0, 184000, 0, 0},
    {"a100-40", 0, 0, 184000, 0, 0},
};

const st_limit_row *st_limit_row_at(int i)
{
    return i >= 0 && i < (int)ST_ARRAY_LEN(rows) ? &rows[i] : NULL;
}

int64_t st_limit_get(const st_diag_limits *limits, int i)
{
    ST_ASSERT(i >= 0 && i < (int)ST_ARRAY_LEN(rows));
    int64_t value;

    memcpy(&value, (const char *)limits + at[i], sizeof value);
    return value;
}

int st_limit_set(st_diag_limits *limits, const char *word, int64_t value, st_err *err)
{
    char q[ST_QUOTE_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        if (strcmp(rows[i].word, word) != 0)
            continue;
        if (value < 0 || value > rows[i].most)
            return st_fail(err, ST_ERANGE, "%s takes 0 to %lld %s, not %lld", word,
                           (long long)rows[i].most, rows[i].unit, (long long)value);
        memcpy((char *)limits + at[i], &value, sizeof value);
        return 0;
    }
    return st_fail(err, ST_EINVAL, "%s is no limit of tests", st_quote(q, word));
}

st_diag_limits st_diag_limits_of(const char *type)
{
    st_diag_limits l = {
#define X(field, word, def, ...) .field = def,
        ST_LIMIT_TABLE(X)
#undef X
    };

    for (size_t i = 0; type && i < ST_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].type, type) != 0)
            continue;
        l.pcie_in = l.pcie_out = types[i].pcie;
        l.peer = types[i].peer;
        l.all_reduce = types[i].all_reduce;
        l.memory_speed = types[i].memory;
        l.product_speed = types[i].product;
    }
    return l;
}
