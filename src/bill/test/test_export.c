/* Exports: numbers as text, CSV as RFC 4180 has it, used and unused floors. Whole files are checked by
 * tests/cli_bill.sh. */
#include "base/testing.h"
#include "bill/focus_floors.h"
#include "bill/test/shop.h"

#define DAY INT64_C(86400000)

static void numbers(void **state)
{
    (void)state;
    static const struct {
        int64_t udollars;
        const char *text;
    } money[] = {
        {0, "0.00"},
        {1, "0.000001"},
        {-1, "-0.000001"},
        {12500000, "12.50"},
        {-3000000, "-3.00"},
        {1234567, "1.234567"},
        {INT64_MAX, "9223372036854.775807"},
        {INT64_MIN, "-9223372036854.775808"},
    };
    static const struct {
        int64_t n, d;
        int places;
        const char *text;
    } ratios[] = {
        {1, 3, 4, "0.3333"},   {2, 3, 4, "0.6667"},
        {-2, 3, 4, "-0.6667"}, {1, 2, 0, "1"},
        {1, 4, 2, "0.25"},     {999, 1000, 2, "1"},
        {9999, 100, 1, "100"}, {-1, 1000, 2, "0"},
        {0, 7, 3, "0"},        {INT64_MIN, 1, 3, "-9223372036854775808"},
    };
    char buf[ST_RATIO_MAX], small[ST_MONEY_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(money); i++)
        assert_string_equal(st_money(small, money[i].udollars), money[i].text);
    for (size_t i = 0; i < ST_ARRAY_LEN(ratios); i++)
        assert_string_equal(st_ratio(buf, ratios[i].n, ratios[i].d, ratios[i].places),
                            ratios[i].text);
    assert_string_equal(st_ratio(buf, (st_i128)INT64_MAX * INT64_MAX, 1, 23),
                        "85070591730234615847396907784232501249");
}

static void amounts_that_people_write(void **state)
{
    static const char *const wrong[] = {"",    "-",     "+",   ".5",        "5.",
                                        "1e3", "1.2.3", "$12", "0.0000001", "99999999999999999999"};
    int64_t n = 7;
    st_err err = {0};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_fails(st_money_parse(wrong[i], &n, &err), ST_EINVAL, "such as 12.50");
    assert_int_equal(n, 7);
    assert_ok(st_money_parse("12.5", &n, &err));
    assert_int_equal(n, 12500000);
    assert_ok(st_money_parse("-0.000001", &n, &err));
    assert_int_equal(n, -1);
    assert_ok(st_money_parse("+3", &n, &err));
    assert_int_equal(n, 3000000);
}

static void moments(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59Z"},
        {INT64_C(951782400000), "2000-02-29T00:00:00Z"},
        {INT64_C(1790812800999), "2026-10-01T00:00:00Z"},
        {INT64_C(1835395199000), "2028-02-28T23:59:59Z"},
        {INT64_C(1835395200000), "2028-02-29T00:00:00Z"},
        {INT64_C(4107542400000), "2100-03-01T00:00:00Z"},
        {INT64_MAX, "9999-12-31T23:59:59Z"},
        {INT64_MIN, "0000-01-01T00:00:00Z"},
    };
    char buf[ST_UTC_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_string_equal(st_utc(buf, rows[i].ms), rows[i].text);
}

static void fields(void **state)
{
    (void)state;
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};

    st_csv_field(&b, "plain", true);
    st_csv_field(&b, NULL, false);
    st_csv_field(&b, "", false);
    st_csv_field(&b, "a,b", false);
    st_csv_field(&b, "say \"no\"", false);
    st_csv_field(&b, "two\r\nlines", false);
    assert_string_equal(b.s, "plain,,\"\",\"a,b\",\"say \"\"no\"\"\",\"two\r\nlines\"");
}

/* ---- floors --------------------------------------------------------------------------------------- */

static st_entry floor_entry(const char *account, const char *gpu, int64_t day, int64_t share)
{
    return (st_entry){.kind = ST_ENTRY_RESERVE,
                      .account = account,
                      .gpu = gpu,
                      .from_ms = day * DAY,
                      .to_ms = (day + 1) * DAY,
                      .share = share};
}

static st_entry use_entry(const char *account, const char *gpu, int64_t day, int64_t share)
{
    return (st_entry){.kind = ST_ENTRY_USAGE,
                      .account = account,
                      .gpu = gpu,
                      .basis = ST_BASIS_GUARANTEED,
                      .from_ms = day * DAY + 5,
                      .to_ms = day * DAY + 6,
                      .share = share};
}

/* The team's own floor is used first, then the org's of the type, then the org's of any type. */
static void floors_of_those_above(void **state)
{
    (void)state;
    st_floors *f = st_floors_new();
    st_entry own = floor_entry("team", "h100", 1, 100), above = floor_entry("org", "h100", 1, 50);
    st_entry any = floor_entry("org", "*", 1, 70), other = floor_entry("team", "h100", 2, 100);
    st_entry use = use_entry("team", "h100", 1, 180), small = use_entry("org", "h200", 1, 5);
    const char *gpu = NULL;

    st_floors_account(f, "org", "");
    st_floors_account(f, "team", "org");
    st_floors_learn(f, &small);
    st_floors_learn(f, &own);
    st_floors_learn(f, &above);
    st_floors_learn(f, &any);
    st_floors_learn(f, &other);
    st_floors_learn(f, &use);
    assert_int_equal(st_floors_used(f, &own), 100);
    assert_int_equal(st_floors_used(f, &above), 50);
    assert_int_equal(st_floors_used(f, &any), 35); /* 30 of the team and 5 of another type */
    assert_int_equal(st_floors_used(f, &other), 0);
    assert_string_equal(st_floors_of(f, "team", "h100", &gpu), "team");
    assert_string_equal(st_floors_of(f, "team", "l4", &gpu), "org");
    assert_string_equal(gpu, "*");
    assert_null(st_floors_of(f, "nobody", "l4", &gpu));
    st_floors_free(f);
}

/* Several entries of a day share what was used, and the parts add up. */
static void parts_add_up(void **state)
{
    (void)state;
    st_floors *f = st_floors_new();
    st_entry parts[7], use = use_entry("team", "h100", 3, 101);
    int64_t sum = 0;

    for (int i = 0; i < 7; i++) {
        parts[i] = floor_entry("team", "h100", 3, 17 + i);
        st_floors_learn(f, &parts[i]);
    }
    st_floors_learn(f, &use);
    for (int i = 0; i < 7; i++) {
        int64_t used = st_floors_used(f, &parts[i]);

        assert_true(used >= 0 && used <= parts[i].share);
        sum += used;
    }
    assert_int_equal(sum, 101);
    st_floors_free(f);
}

/* A page from names that try to be markup. */
static void nothing_escapes(void **state)
{
    (void)state;
    ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};
    st_bill bill = {.account = "<script>&\"'", .period = {"2026-10", 0, DAY}};
    st_export_about about = {.cluster = "<b>", .currency = "USD", .zone = "<i>"};

    st_vec_push(&bill.lines, (st_bill_line){.account = "<u>", .what = ST_PAY_BURST, .gpu = "<s>"});
    st_export_bill_html(&bill, &about, &b);
    assert_null(strstr(b.s, "<script>"));
    assert_null(strstr(b.s, "<u>"));
    assert_null(strstr(b.s, "<s>"));
    assert_null(strstr(b.s, "<i>"));
    assert_non_null(strstr(b.s, "&lt;script&gt;&amp;&quot;&#39;"));
    st_vec_free(&bill.lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_that_people_write),
        cmocka_unit_test(numbers),
        cmocka_unit_test(moments),
        cmocka_unit_test(fields),
        cmocka_unit_test(floors_of_those_above),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(nothing_escapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
