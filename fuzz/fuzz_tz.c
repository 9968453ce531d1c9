/*
 * Fuzzes the reader of time zones: what it takes answers every question alike, what it refuses gets one sentence. The
 * first byte chooses a moment, the rest are the bytes of a file.
 */
#include <string.h>

#include "base/macros.h"
#include "calendar/tz.h"
#include "fuzz.h"

#define FROM_S INT64_C(1767225600) /* 2026 */
#define STEPS  64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_tz_freep) st_tz *tz = NULL;
    st_err err = {0};

    if (size == 0)
        return 0;
    int64_t at = FROM_S + data[0] * INT64_C(5000000);

    if (st_tz_parse("Fuzz/Zone", data + 1, size - 1, &tz, &err) != 0) {
        ST_ASSERT(err.code == ST_EPARSE && strstr(err.msg, "Fuzz/Zone") && !tz);
        return 0;
    }
    for (int i = 0; i < STEPS; i++) {
        int64_t next, local = at + st_tz_at(tz, at).offset_s;
        st_tz_moment m = st_tz_resolve(tz, local);

        ST_ASSERT(m.kind != ST_TZ_GAP && m.first_s <= at && at <= m.second_s);
        m = st_tz_resolve(tz, at); /* any local time has an answer */
        ST_ASSERT(m.kind == ST_TZ_GAP || m.first_s + st_tz_at(tz, m.first_s).offset_s == at);
        if (!st_tz_next(tz, at, &next))
            break;
        ST_ASSERT(next > at);
        at = next;
    }
    return 0;
}
