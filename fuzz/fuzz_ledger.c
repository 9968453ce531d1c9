/*
 * Fuzzes saved ledgers. The checksum is put right, so that what is behind it is reached: refused, or a ledger that is
 * saved as it was read, in balance, and able to give bills.
 */
#include <string.h>

#include "base/hash.h"
#include "fuzz.h"
#include "ledger/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0}, again = {0};
    ST_CLEANUP(st_ledger_freep) st_ledger *l = NULL;
    uint64_t h = st_hash_bytes(data, size, 11);
    st_bill bill;
    st_err err = {0};

    st_strbuf_addn(&bytes, (const char *)data, size);
    for (int i = 0; i < 8; i++)
        st_strbuf_addc(&bytes, (char)(h >> (8 * i)));
    if (st_ledger_load(bytes.s, bytes.n, &l, &err) < 0) {
        ST_ASSERT(err.code == ST_ECORRUPT);
        return 0;
    }
    st_ledger_save(l, &again);
    ST_ASSERT(again.n == bytes.n && memcmp(again.s, bytes.s, again.n) == 0);
    ST_ASSERT(st_ledger_sum(l) == 0);
    ST_ASSERT(st_ledger_bill(l, "", NULL, &bill, &err) == 0);
    st_bill_done(&bill);
    return 0;
}
