/* Books that were restored from a backup: which bills say so. */
#include "base/testing.h"
#include "ledger/test/books.h"

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "ml", "org");
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

static st_bill bill_for(const st_ledger *l, const char *period)
{
    st_bill bill;
    st_err err = {0};
    assert_ok(st_ledger_bill(l, "ml", period, &bill, &err));
    return bill;
}

/* From 31 October to 2 November there was another history. October may have been closed in it, and November had begun: other
 * bills for both may be about. September's and December's are not in doubt. */
static void restored(void **state)
{
    st_ledger *l = *state;
    ST_CLEANUP(st_ledger_freep) st_ledger *again = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_entry e = {.kind = ST_ENTRY_RESTORED,
                  .at_ms = NOV_1 - 24 * HOUR,
                  .account = "",
                  .from_ms = NOV_1 - 24 * HOUR,
                  .to_ms = NOV_1 + 24 * HOUR};
    st_entry wrong = e;
    st_err err = {0};
    st_bill bill = bill_for(l, NULL);
    assert_int_equal(bill.void_to_ms, 0);
    st_bill_done(&bill);
    wrong.account = "ml";
    wrong.seq = st_ledger_seq(l, "ml") + 1;
    assert_fails(st_ledger_apply(l, &wrong, &err), ST_EINVAL, "no place");
    wrong = e;
    wrong.seq = st_ledger_seq(l, "") + 1;
    wrong.to_ms = wrong.from_ms - 1;
    assert_fails(st_ledger_apply(l, &wrong, &err), ST_EINVAL, "impossible");
    books_put(l, &e);
    books_close(l, &(st_period){"2026-11", NOV_1, DEC_1});
    st_ledger_save(l, &saved);
    assert_ok(st_ledger_load(saved.s, saved.n, &again, &err));
    for (int i = 0; i < 2; i++) {
        bill = bill_for(again, i ? "2026-11" : "2026-10");
        assert_int_equal(bill.void_from_ms, e.from_ms);
        assert_int_equal(bill.void_to_ms, e.to_ms);
        st_bill_done(&bill);
    }
    books_close(again, &(st_period){"2026-12", DEC_1, DEC_1 + 744 * HOUR});
    bill = bill_for(again, "2026-12");
    assert_int_equal(bill.void_to_ms, 0);
    st_bill_done(&bill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(restored, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
