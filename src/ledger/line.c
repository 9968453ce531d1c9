/* Components and the arithmetic of one line. */
#include <string.h>

#include "ledger/price.h"

static const struct {
    const char *name, *unit;
    int64_t per;
} components[] = {
#define X(id, name, unit, per, what) [id] = {name, unit, INT64_C(per)},
    ST_COMPONENT_TABLE(X)
#undef X
};

const char *st_component_name(st_component c)
{
    ST_ASSERT(c < ST_PAY_COUNT);
    return components[c].name;
}

const char *st_component_unit(st_component c)
{
    ST_ASSERT(c < ST_PAY_COUNT);
    return components[c].unit;
}

int64_t st_component_per(st_component c)
{
    ST_ASSERT(c < ST_PAY_COUNT);
    return components[c].per;
}

int st_component_parse(const char *name)
{
    for (int i = 0; i < ST_PAY_COUNT; i++)
        if (strcmp(components[i].name, name) == 0)
            return i;
    return -1;
}

static bool in_range(const st_line *line)
{
    return line->what < ST_PAY_COUNT && line->rate >= 0 && line->rate <= ST_RATE_MAX &&
           line->factor_bp >= 0 && line->factor_bp <= ST_FACTOR_MAX && line->carry_in >= 0 &&
           line->carry_in < st_line_divisor(line->what);
}

int64_t st_line_divisor(st_component c)
{
    return st_component_per(c) * ST_BP;
}

/* |quantity| < 2^63, rate <= 10^12 and factor <= 1.1 x 10^7 make less than 2^127. */
int st_line_reckon(st_line *line, st_err *err)
{
    if (!in_range(line))
        return st_fail(err, ST_ERANGE, "a line has a rate, factor or carry that no price gives");
    st_i128 d = st_line_divisor(line->what);
    st_i128 n = (st_i128)line->quantity * line->rate * line->factor_bp + line->carry_in;
    st_i128 rest = n % d;
    if (rest < 0)
        rest += d;
    st_i128 amount = (n - rest) / d;
    if (amount > ST_AMOUNT_MAX || amount < -ST_AMOUNT_MAX)
        return st_fail(err, ST_ERANGE, "%s: the amount is more than can be counted",
                       st_component_name(line->what));
    line->amount = (int64_t)amount;
    line->carry = (int64_t)rest;
    return 0;
}

bool st_line_valid(const st_line *line)
{
    st_line again = *line;
    return st_line_reckon(&again, NULL) == 0 && again.amount == line->amount &&
           again.carry == line->carry;
}
