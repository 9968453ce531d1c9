/*
 * Fuzzes entries of books, one per line. Whatever comes in is refused or is an entry that is written as it was
 * read, byte for byte; and a ledger that is given it refuses it or stays in balance.
 */
#include <string.h>

#include "base/arena.h"
#include "fuzz.h"
#include "ledger/ledger.h"

static void one(st_ledger *l, const char *line, size_t n)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    st_entry e;
    st_err err = {0};

    if (st_entry_read(line, n, arena, &e, &err) < 0) {
        ST_ASSERT(err.code == ST_EPARSE && !strchr(err.msg, '\n'));
        return;
    }
    st_entry_write(&e, &again);
    ST_ASSERT(again.n == n && memcmp(again.s, line, n) == 0);
    if (st_ledger_apply(l, &e, &err) < 0) {
        /* As somebody would make it who knows the rules: numbers from outside, the rest from the ledger. */
        int64_t seq = st_ledger_seq(l, e.account);
        st_ledger_price(l, &e, NULL);
        e.seq = seq < 0 ? 1 : seq + 1;
        st_ledger_apply(l, &e, NULL);
    }
    ST_ASSERT(st_ledger_sum(l) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_ledger_freep) st_ledger *l = st_ledger_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0}, twice = {0};
    ST_CLEANUP(st_ledger_freep) st_ledger *loaded = NULL;
    const char *at = (const char *)data, *end = at + size;

    st_ledger_set_period(l, &(st_period){"2026-10", 1000, 2000000000000});
    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        one(l, at, (size_t)((nl ? nl : end) - at));
        at = nl ? nl + 1 : end;
    }
    st_ledger_save(l, &saved);
    ST_ASSERT(st_ledger_load(saved.s, saved.n, &loaded, NULL) == 0);
    st_ledger_save(loaded, &twice);
    ST_ASSERT(saved.n == twice.n && memcmp(saved.s, twice.s, saved.n) == 0);
    return 0;
}
