/*
 * Reading a policy from the command line (cli/policy.h), by the table the scheduler itself has.
 */
#include "cli/policy.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "share/divide.h"

typedef enum value_kind { DURATION, MILLI, COUNT, BOOL } value_kind;

static const char *const orders[] = {
#define X(id, name) name,
    ST_ORDER_TABLE(X)
#undef X
        NULL,
};
static const char *const bases[] = {
#define X(id, name) name,
    ST_SHARE_BASIS_TABLE(X)
#undef X
        NULL,
};

static int read_word(const char *const *words, const char *s, int *ret, st_err *err)
{
    const char *nearest = st_suggest(s, words);
    char q[ST_QUOTE_MAX];

    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], s) == 0) {
            *ret = i;
            return 0;
        }
    return st_fail(err, ST_EINVAL, "%s is not one of its values%s%s%s", st_quote(q, s),
                   nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
}

static int read_value(value_kind kind, const char *s, int64_t lo, int64_t hi, int64_t *ret,
                      st_err *err)
{
    char q[ST_QUOTE_MAX], a[ST_FMT_MAX], b[ST_FMT_MAX];
    int64_t ms;
    int r;

    switch (kind) {
    case MILLI:
        return st_parse_milli(s, lo, hi, ret, err);
    case COUNT:
        return st_parse_i64(s, lo, hi, ret, err);
    case BOOL:
        if (strcmp(s, "true") != 0 && strcmp(s, "false") != 0)
            return st_fail(err, ST_EINVAL, "it is true or false, not %s", st_quote(q, s));
        *ret = strcmp(s, "true") == 0;
        return 0;
    case DURATION:
        break;
    }
    r = st_parse_duration_ms(s, &ms, err);
    if (r < 0)
        return r;
    if (ms < lo || ms > hi)
        return st_fail(err, ST_ERANGE, "%s is out of range: it must be from %s to %s",
                       st_quote(q, s), st_fmt_duration(a, lo), st_fmt_duration(b, hi));
    *ret = ms;
    return 0;
}

static int set_key(const char *key, const char *value, st_policy *policy, st_err *err)
{
#define X(field, key, kind, def, lo, hi, what) key,
    static const char *const keys[] = {ST_POLICY_TABLE(X) "basis", "order", NULL};
#undef X
    const char *nearest = st_suggest(key, keys);
    char q[ST_QUOTE_MAX];
    int r;

#define X(field, name, kind, def, lo, hi, what)                      \
    if (strcmp(key, name) == 0) {                                    \
        r = read_value(kind, value, lo, hi, &policy->field, err);    \
        return r < 0 ? st_fail_prefix(err, "policy " name ": ") : 0; \
    }
    ST_POLICY_TABLE(X)
#undef X
    if (strcmp(key, "basis") == 0) {
        r = read_word(bases, value, &policy->counts, err);
        return r < 0 ? st_fail_prefix(err, "policy basis: ") : 0;
    }
    if (strcmp(key, "order") == 0) {
        r = read_word(orders, value, &policy->order, err);
        return r < 0 ? st_fail_prefix(err, "policy order: ") : 0;
    }
    return st_fail(err, ST_EINVAL, "the policy has no key %s%s%s%s", st_quote(q, key),
                   nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
}

int st_cli_policy(const char *text, st_policy *policy, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(text);
    st_policy changed = *policy;
    char q[ST_QUOTE_MAX];

    for (char *item = copy, *next; item; item = next) {
        char *value;
        int r;

        next = strchr(item, ',');
        if (next)
            *next++ = '\0';
        value = strchr(item, '=');
        if (!value)
            return st_fail(err, ST_EINVAL, "the policy is KEY=VALUE,KEY=VALUE..., not %s",
                           st_quote(q, item));
        *value++ = '\0';
        r = set_key(item, value, &changed, err);
        if (r < 0)
            return r;
    }
    *policy = changed;
    return 0;
}
