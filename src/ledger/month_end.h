/* What a month will have cost at its end. Pure. */
#ifndef ST_LEDGER_MONTH_END_H
#define ST_LEDGER_MONTH_END_H

#include "ledger/ledger.h"

#define ST_MONTH_DAYS_MIN 3

typedef struct st_month_so_far {
    const int64_t *days; /* what each whole day has cost, micro-dollars */
    int ndays;
    int64_t spent;       /* until now, what runs included */
    int64_t to_come;     /* of that what is certain: floors until the end */
    int64_t cap;         /* ST_UNSET: none */
    int64_t left_ms;     /* until the end */
    int64_t observed_ms; /* since the month, or the account, began */
} st_month_so_far;

typedef enum st_month_from {
    ST_MONTH_UNKNOWN, /* too little was seen */
    ST_MONTH_SO_FAR,  /* as fast as so far, up to twice that */
    ST_MONTH_DAYS,    /* from the spread of whole days */
} st_month_from;

typedef struct st_month_end {
    st_month_from from;
    int chance_percent; /* that the end lies between low and high; 0: not known */
    int64_t expected, low, high;
} st_month_end;

void st_month_end_of(const st_month_so_far *s, st_month_end *ret);

#endif
