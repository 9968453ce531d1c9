/*
 * Fuzzes the log's events. Whatever comes in is refused or is an event that is written as it was
 * read: the same bytes, all of them, and the same again when these are read.
 */
#include <string.h>

#include "base/arena.h"
#include "core/core.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *bytes = (const char *)data;
    size_t at = 0;

    while (at < size) {
        ST_CLEANUP(st_strbuf_done) st_strbuf once = {0}, twice = {0};
        st_event event, again;
        st_err err = {0};
        size_t from = at, end = 0;

        if (st_event_decode(bytes, size, &at, arena, &event, &err) < 0) {
            ST_ASSERT(at == from && err.code == ST_EPARSE && !strchr(err.msg, '\n'));
            return 0;
        }
        ST_ASSERT(at > from && at <= size && event.kind < ST_EV_COUNT);
        st_event_encode(&event, &once);
        ST_ASSERT(st_event_decode(once.s, once.n, &end, arena, &again, &err) == 0);
        ST_ASSERT(end == once.n);
        st_event_encode(&again, &twice);
        ST_ASSERT(once.n == twice.n && memcmp(once.s, twice.s, once.n) == 0);
    }
    return 0;
}
