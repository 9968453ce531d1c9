/* What each XID asks for: the vendor's catalogue as ranges, and what a site says instead. */
#include <string.h>

#include "base/macros.h"
#include "base/num.h"
#include "base/quote.h"
#include "health/health.h"

typedef struct range {
    int16_t first, last;
    uint8_t action;
} range;

/* In order of number. 45 is what programs see when something else has failed; 154 is told apart by the recovery action that
 * the driver asks for, which is read by itself. */
static const range catalogue[] = {
    {8, 8, ST_XID_RESTART},    {11, 11, ST_XID_RESTART},   {13, 13, ST_XID_RESTART},
    {25, 25, ST_XID_RESTART},  {31, 32, ST_XID_RESTART},   {37, 38, ST_XID_LOG},
    {39, 41, ST_XID_RESTART},  {43, 44, ST_XID_LOG},       {45, 45, ST_XID_FOLLOW},
    {46, 46, ST_XID_RESET},    {48, 48, ST_XID_RESET},     {54, 54, ST_XID_INSPECT},
    {60, 60, ST_XID_RESTART},  {62, 62, ST_XID_RESET},     {63, 63, ST_XID_LOG},
    {64, 64, ST_XID_RESET},    {66, 67, ST_XID_LOG},       {68, 72, ST_XID_RESTART},
    {74, 74, ST_XID_RESET},    {75, 77, ST_XID_RESTART},   {79, 79, ST_XID_REBOOT},
    {80, 80, ST_XID_RESTART},  {82, 86, ST_XID_RESTART},   {88, 89, ST_XID_RESTART},
    {92, 93, ST_XID_LOG},      {94, 94, ST_XID_RESTART},   {95, 95, ST_XID_RESET},
    {96, 105, ST_XID_RESTART}, {109, 110, ST_XID_RESET},   {119, 120, ST_XID_RESET},
    {121, 121, ST_XID_LOG},    {126, 135, ST_XID_RESTART}, {136, 136, ST_XID_RESET},
    {137, 137, ST_XID_LOG},    {139, 139, ST_XID_RESTART}, {140, 140, ST_XID_RESET},
    {141, 141, ST_XID_LOG},    {143, 143, ST_XID_RESET},   {144, 150, ST_XID_FOLLOW},
    {154, 154, ST_XID_FOLLOW}, {155, 156, ST_XID_RESET},   {157, 157, ST_XID_LOG},
    {158, 158, ST_XID_RESET},  {160, 161, ST_XID_LOG},
};

static const struct {
    const char *name;
    bool fatal;
} actions[] = {
#define X(id, word, fatal, about) [id] = {word, fatal},
    ST_XID_TABLE(X)
#undef X
};

const char *st_xid_action_name(st_xid_action action)
{
    ST_ASSERT(action < ST_XID_ACTION_COUNT);
    return actions[action].name;
}

bool st_xid_fatal(st_xid_action action)
{
    ST_ASSERT(action < ST_XID_ACTION_COUNT);
    return actions[action].fatal;
}

st_xid_action st_xid_of(const st_xid_rules *rules, int64_t xid)
{
    if (xid < 0 || xid > ST_XID_MAX)
        return ST_XID_UNKNOWN;
    if (rules && rules->said[xid])
        return (st_xid_action)(rules->said[xid] - 1);
    for (size_t i = 0; i < ST_ARRAY_LEN(catalogue); i++)
        if (xid >= catalogue[i].first && xid <= catalogue[i].last)
            return (st_xid_action)catalogue[i].action;
    return ST_XID_UNKNOWN;
}

static int read_one(const char *part, st_xid_rules *rules, st_err *err)
{
    char number[8], q[ST_QUOTE_MAX];
    const char *eq = strchr(part, '=');
    int64_t xid;

    if (!eq || (size_t)(eq - part) >= sizeof number)
        return st_fail(err, ST_EPARSE, "%s: write XID=ACTION, for example 63=reset",
                       st_quote(q, part));
    memcpy(number, part, (size_t)(eq - part));
    number[eq - part] = '\0';
    if (st_parse_i64(number, 1, ST_XID_MAX, &xid, err) < 0)
        return -err->code;
    for (int a = ST_XID_LOG; a < ST_XID_ACTION_COUNT; a++) {
        if (strcmp(eq + 1, actions[a].name) != 0)
            continue;
        rules->said[xid] = (uint8_t)(a + 1);
        return 0;
    }
    return st_fail(err, ST_EPARSE,
                   "XID %lld: %s is no action; use log, restart, follow, reset, reboot or inspect",
                   (long long)xid, st_quote(q, eq + 1));
}

int st_xid_rules_read(const char *text, st_xid_rules *rules, st_err *err)
{
    st_xid_rules next = *rules;
    const char *at = text;

    while (*at) {
        size_t n = strcspn(at, ",");
        char part[64];
        int r;

        if (n == 0 || n >= sizeof part)
            return st_fail(err, ST_EPARSE, "write XID=ACTION, joined by commas: 63=reset,31=log");
        memcpy(part, at, n);
        part[n] = '\0';
        r = read_one(part, &next, err);
        if (r < 0)
            return r;
        at += n;
        if (*at == ',' && !*++at)
            return st_fail(err, ST_EPARSE, "an XID must follow the last comma");
    }
    *rules = next;
    return 0;
}
