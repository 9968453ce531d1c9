/*
 * Days and dates (calendar/calendar.h). Years are counted from March, so that the leap day is the last of its year.
 */
#include "calendar/calendar.h"

#include "base/macros.h"

#define ERA_YEARS 400
#define ERA_DAYS  INT64_C(146097) /* of 400 years */
#define EPOCH     INT64_C(719468) /* from 0000-03-01 to 1970-01-01 */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

bool st_date_is_leap(int32_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

int32_t st_date_month_days(int32_t year, int32_t month)
{
    ST_ASSERT(month >= 1 && month <= 12);
    if (month == 2)
        return st_date_is_leap(year) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

bool st_date_is_valid(const st_date *d)
{
    return d->month >= 1 && d->month <= 12 && d->day >= 1 &&
           d->day <= st_date_month_days(d->year, d->month);
}

int64_t st_date_to_day(const st_date *d)
{
    ST_ASSERT(st_date_is_valid(d));
    int64_t year = d->month > 2 ? d->year : (int64_t)d->year - 1;
    int64_t era = floor_div(year, ERA_YEARS), of_era = year - era * ERA_YEARS;
    int64_t month = (d->month + 9) % 12; /* March is 0 */
    int64_t of_year = (153 * month + 2) / 5 + d->day - 1;

    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH;
}

st_date st_date_of_day(int64_t day)
{
    int64_t era = floor_div(day + EPOCH, ERA_DAYS), of_era = day + EPOCH - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    st_date d = {
        .month = (int32_t)(month < 10 ? month + 3 : month - 9),
        .day = (int32_t)(of_year - (153 * month + 2) / 5 + 1),
    };

    d.year = (int32_t)(era * ERA_YEARS + year + (d.month <= 2));
    return d;
}

int st_day_weekday(int64_t day)
{
    return (int)(((day + 3) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
}

const char *st_weekday_name(int weekday)
{
    static const char *const names[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday"};

    ST_ASSERT(weekday >= 0 && weekday < 7);
    return names[weekday];
}

int64_t st_day_of(int64_t local_s)
{
    return floor_div(local_s, ST_DAY_S);
}
