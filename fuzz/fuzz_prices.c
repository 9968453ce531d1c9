/*
 * Fuzzes price books and plans. Whatever comes in is refused with a line for a person, or is written in a canonical
 * form that is read back the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "ledger/ledger.h"

static void book(const char *name, const char *text, size_t n)
{
    ST_CLEANUP(st_freep) st_price_book *b = st_xcalloc(1, sizeof *b);
    ST_CLEANUP(st_strbuf_done) st_strbuf once = {0}, twice = {0};
    st_err err = {0};

    if (st_price_book_read(name, text, n, 1000, b, &err) < 0) {
        ST_ASSERT(err.code && !strchr(err.msg, '\n'));
        return;
    }
    st_price_book_write(b, &once);
    ST_ASSERT(st_price_book_read("again.json", once.s, once.n, 0, b, &err) == 0);
    st_price_book_write(b, &twice);
    ST_ASSERT(strcmp(once.s, twice.s) == 0);
}

static void plan(const char *name, const char *text, size_t n)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf once = {0}, twice = {0};
    st_price_plan p;
    st_err err = {0};

    if (st_price_plan_read(name, text, n, 1000, &p, &err) < 0) {
        ST_ASSERT(err.code && !strchr(err.msg, '\n'));
        return;
    }
    st_price_plan_write(&p, &once);
    ST_ASSERT(st_price_plan_read("again.json", once.s, once.n, 0, &p, &err) == 0);
    st_price_plan_write(&p, &twice);
    ST_ASSERT(strcmp(once.s, twice.s) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    book("p.yaml", text, size);
    book("p.json", text, size);
    plan("p.yaml", text, size);
    plan("p.json", text, size);
    return 0;
}
