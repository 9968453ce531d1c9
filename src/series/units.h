/*
 * In which units blobs say a column; private to src/series.
 */
#ifndef ST_SERIES_UNITS_H
#define ST_SERIES_UNITS_H

#include "series/series.h"

int64_t st_series_unit(st_series_kind kind, st_series_column column);

#endif
