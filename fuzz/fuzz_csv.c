/*
 * Fuzzes the reader of comma-separated values: whatever comes in, every row has the fields its
 * heading promises, or there is one sentence that names the place.
 */
#include <string.h>

#include "fuzz.h"
#include "trace/csv.h"

static void check_sentence(const st_err *err)
{
    ST_ASSERT(err->code > 0);
    ST_ASSERT(strncmp(err->msg, "in.csv:", 7) == 0);
    ST_ASSERT(strchr(err->msg, '\n') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_csv_freep) st_csv *csv = NULL;
    st_err err = {0};
    int64_t number;
    int r;

    if (st_csv_parse("in.csv", (const char *)data, size, &csv, &err) < 0) {
        ST_ASSERT(csv == NULL);
        check_sentence(&err);
        return 0;
    }
    while ((r = st_csv_next(csv, &err)) > 0) {
        st_err bad = {0};

        ST_ASSERT(strlen(st_csv_text(csv, 0)) <= ST_CSV_FIELD_MAX);
        if (st_csv_i64(csv, 0, INT64_MIN, INT64_MAX, &number, &bad) < 0)
            ST_ASSERT(bad.code > 0 && strncmp(bad.msg, "in.csv:", 7) == 0);
    }
    if (r < 0)
        check_sentence(&err);
    return 0;
}
