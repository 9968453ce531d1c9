/* Bill files: what is right verifies, and whatever is done to one is found and named. */
#include <sodium.h>

#include "base/mem.h"
#include "base/testing.h"
#include "bill/file_format.h"
#include "bill/test/shop.h"
#include "proof/strict.h"

typedef struct world {
    shop s;
    st_strbuf bill; /* acme's October */
} world;

static int setup(void **state)
{
    world *w = st_xcalloc(1, sizeof(*w));
    int64_t usage = 0;

    shop_init(&w->s, 7);
    shop_days(&w->s, 10);
    shop_credit(&w->s, "vision", 12345678, "outage on the 9th");
    shop_prices(&w->s, "prices: dearer\ngpu: {\"*\": {reserved: 1.23, burst: 2.34}}\ncpu: 0.02\n");
    shop_days(&w->s, 21);
    shop_close(&w->s);
    while (!strstr(shop_find(&w->s, "vision")->entries.v[usage], "\"kind\":\"usage\""))
        usage++;
    shop_fix(&w->s, "vision", usage + 1);
    shop_plan(&w->s, "account: vision\ndiscount: 50%\n");
    shop_days(&w->s, 3);
    shop_bill(&w->s, "acme", "2026-10", &w->bill);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;

    shop_done(&w->s);
    st_strbuf_done(&w->bill);
    free(w);
    return 0;
}

static st_verdict verify(const st_strbuf *b, const unsigned char *key)
{
    st_verdict v;

    st_billfile_verify(st_strbuf_str(b), b->n, key, &v);
    assert_null(strchr(v.what, '\n'));
    return v;
}

#define assert_good(verdict)                     \
    do {                                         \
        st_verdict st_v_ = (verdict);            \
        if (!st_v_.good)                         \
            fail_msg("refused: %s", st_v_.what); \
    } while (0)

/* Refused, with that line (0: any) and a text. */
static void assert_wrong(st_verdict v, int64_t line, const char *text)
{
    if (v.good || (line > 0 && v.line != line) || !strstr(v.what, text))
        fail_msg("good %d, line %lld (wanted %lld): \"%s\" lacks \"%s\"", v.good, (long long)v.line,
                 (long long)line, v.what, text);
}

static void right_bills(void **state)
{
    world *w = *state;
    static const char *const accounts[] = {"", "acme", "vision", "speech", "beta"};
    static const char *const months[] = {"2026-10", NULL};

    for (size_t i = 0; i < ST_ARRAY_LEN(accounts); i++) {
        for (size_t k = 0; k < ST_ARRAY_LEN(months); k++) {
            ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};
            st_verdict v;
            st_bill bill;
            st_err err = {0};

            shop_bill(&w->s, accounts[i], months[k], &b);
            v = verify(&b, w->s.public);
            assert_good(v);
            assert_ok(st_ledger_bill(w->s.ledger, accounts[i], months[k], &bill, &err));
            assert_int_equal(v.total, bill.total);
            assert_string_equal(v.account, accounts[i]);
            assert_memory_equal(v.key, w->s.public, 32);
            assert_true(bill.total != 0 && v.entries > 3);
            st_bill_done(&bill);
            assert_non_null(strstr(verify(&b, NULL).what, "not said you trust"));
        }
    }
}

static void many_seeds(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 130; seed++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf b = {0};
        shop s;

        shop_init(&s, seed);
        shop_days(&s, 5);
        shop_bill(&s, seed % 2 ? "acme" : "", NULL, &b);
        assert_good(verify(&b, s.public));
        shop_done(&s);
    }
}

/* ---- accidents ------------------------------------------------------------------------------------------ */

static int64_t line_at(const st_strbuf *b, size_t at)
{
    int64_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += b->s[i] == '\n';
    return line;
}

static void altered_bytes(void **state)
{
    world *w = *state;
    st_rng rng;

    st_rng_seed(&rng, 1);
    for (int i = 0; i < 1000; i++) {
        size_t at = st_rng_below(&rng, w->bill.n);
        char was = w->bill.s[at];
        st_verdict v;

        w->bill.s[at] = (char)(was ^ (1 + (int)st_rng_below(&rng, 255)));
        v = verify(&w->bill, NULL);
        assert_wrong(v, line_at(&w->bill, at), "line");
        w->bill.s[at] = was;
    }
    /* The line's own end and a newline in its middle, which move all that follows. */
    for (size_t at = 0; at < w->bill.n; at += 1 + w->bill.n / 100) {
        char was = w->bill.s[at];

        if (was == '\n')
            continue;
        w->bill.s[at] = '\n';
        assert_wrong(verify(&w->bill, NULL), line_at(&w->bill, at), "altered");
        w->bill.s[at] = was;
    }
    assert_good(verify(&w->bill, NULL));
}

/* The beginning of line n, from 1; the end of the text behind the last. */
static size_t line_from(const st_strbuf *b, int64_t n)
{
    size_t at = 0;

    for (; n > 1 && at < b->n; at++)
        n -= b->s[at] == '\n';
    return at;
}

static int64_t line_count(const st_strbuf *b)
{
    return line_at(b, b->n) - 1;
}

/* The bill with line n taken out and, unless `to` is 0, put before line `to`, which is behind it. */
static void move_line(const st_strbuf *b, int64_t n, int64_t to, bool copy, st_strbuf *out)
{
    size_t from = line_from(b, n), behind = line_from(b, n + 1);
    size_t at = to > 0 ? line_from(b, to) : b->n;

    ST_ASSERT(at >= behind);
    st_strbuf_addn(out, b->s, copy ? behind : from);
    st_strbuf_addn(out, b->s + behind, at - behind);
    if (to > 0)
        st_strbuf_addn(out, b->s + from, behind - from);
    st_strbuf_addn(out, b->s + at, b->n - at);
}

static void lines_moved_or_gone(void **state)
{
    world *w = *state;
    int64_t n = line_count(&w->bill);
    st_rng rng;

    st_rng_seed(&rng, 2);
    for (int i = 0; i < 25; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf gone = {0}, moved = {0}, twice = {0};
        int64_t from = st_rng_range(&rng, 1, n - 2), to = st_rng_range(&rng, from + 2, n);

        move_line(&w->bill, from, 0, false, &gone);
        assert_wrong(verify(&gone, NULL), from, "missing or moved");
        move_line(&w->bill, from, to, false, &moved);
        assert_wrong(verify(&moved, NULL), from, "missing or moved");
        move_line(&w->bill, from, to, true, &twice);
        assert_wrong(verify(&twice, NULL), to, "missing or moved");
    }
}

static void cut_off(void **state)
{
    world *w = *state;
    st_strbuf b = w->bill;
    st_rng rng;

    st_rng_seed(&rng, 3);
    b.n = 0;
    assert_wrong(verify(&b, NULL), 0, "empty");
    for (int i = 0; i < 100; i++) {
        b.n = 1 + st_rng_below(&rng, w->bill.n - 1);
        assert_wrong(verify(&b, NULL), 0, "line");
    }
    for (int64_t line = 2; line <= line_count(&w->bill); line += 17) {
        b.n = line_from(&w->bill, line);
        assert_wrong(verify(&b, NULL), 0, "missing");
    }
}

/* ---- forgers ---------------------------------------------------------------------------------------------- */

static void put_hex(st_strbuf *out, const char *key, const unsigned char *bytes, size_t n)
{
    st_strbuf_addf(out, ",\"%s\":\"", key);
    st_hex_write(bytes, n, out);
    st_strbuf_addc(out, '"');
}

/* All checksums again, and, with a key, the hash and the signature at the end. */
static void remake(const st_strbuf *in, const unsigned char *key, st_strbuf *out)
{
    unsigned char sum[ST_BILLSUM] = {0}, public[32], signature[64];
    int64_t books = 0, entries = 0;
    size_t at = 0;

    while (at < in->n) {
        const char *line = in->s + at, *newline = memchr(line, '\n', in->n - at);
        size_t from = out->n, len = (size_t)(newline - line) - ST_BILLSUM_TAIL;

        books += strncmp(line, "{\"book\":", 8) == 0;
        entries += strncmp(line, "{\"entry\":", 9) == 0;
        if (strncmp(line, "{\"end\":", 7) == 0 && key) {
            ST_CLEANUP(st_strbuf_done) st_strbuf all = {0};
            st_hash h;

            st_strbuf_addc(&all, ST_BILL_TAG_FILE);
            st_strbuf_addn(&all, out->s, out->n);
            crypto_generichash(h.b, ST_HASH, (unsigned char *)all.s, all.n, NULL, 0);
            crypto_sign_ed25519_sk_to_pk(public, key);
            st_strbuf_addf(out, "{\"end\":1,\"books\":%lld,\"entries\":%lld", (long long)books,
                           (long long)entries);
            put_hex(out, "hash", h.b, ST_HASH);
            put_hex(out, "key", public, 32);
            crypto_sign_detached(signature, NULL, (unsigned char *)out->s + from, out->n - from,
                                 key);
            put_hex(out, "signature", signature, 64);
        } else {
            st_strbuf_addn(out, line, len);
        }
        st_billsum(sum, out->s + from, out->n - from, sum);
        put_hex(out, "sum", sum, ST_BILLSUM);
        st_strbuf_add(out, "}\n");
        at = (size_t)(newline + 1 - in->s);
    }
}

/* The bill with the first `was` behind the first `after` made `is`. Returns its line. */
static int64_t replace(const st_strbuf *in, const char *after, const char *was, const char *is,
                       st_strbuf *out)
{
    const char *at = strstr(in->s, after);

    assert_non_null(at);
    at = strstr(at, was);
    assert_non_null(at);
    st_strbuf_addn(out, in->s, (size_t)(at - in->s));
    st_strbuf_add(out, is);
    st_strbuf_add(out, at + strlen(was));
    return line_at(in, (size_t)(at - in->s));
}

/* Each of these with all checksums made again and signed by the cluster itself: what is left to find it are the
 * hashes of the books and the arithmetic. */
static void altered_with_care(void **state)
{
    world *w = *state;
    static const struct {
        const char *after, *was, *is, *found;
        bool elsewhere; /* shows in another line */
    } rows[] = {
        {"\"kind\":\"usage\"", "\"share\":", "\"share\":1", "quantity", false},
        {"\"inside\":", "\"held\":", "\"inside\":1,\"held\":", "no entry of a book", false},
        {"\"basis\":\"burst\"", "\"inside\":", "\"inside\":9", "lay inside a floor", false},
        {"\"basis\":\"burst\"", "\"inside\":", "\"inside\":-", "lay inside a floor", false},
        {"\"basis\":\"guaranteed\"", ",\"held\":", ",\"inside\":1,\"held\":", "lay inside a floor",
         false},
        {"\"kind\":\"usage\"", ",\"cut\":", ",\"lost\":7,\"cut\":", "no entry of a book", false},
        {"\"kind\":\"lost\"", "\"charged\":", "\"charged\":9", "lost work that was charged 9",
         false},
        {"\"kind\":\"lost\"", "\"amount\":", "\"amount\":9", "it credits 9", false},
        {"\"kind\":\"lost\"", ",\"amount\":", ",\"credited\":1,\"amount\":", "in all", false},
        {"\"kind\":\"lost\"", ",\"lost\":", ",\"lost\":9", "not a part of entry", false},
        {"\"kind\":\"usage\"", "[[\"node-", "[[\"nude-", "not those of the book", true},
        {"\"kind\":\"usage\"", "\"user\":\"ada\"", "\"user\":\"eve\"", "not those of the book",
         true},
        {"\"kind\":\"reserve\"", ",1980000,", ",1980001,", "rate", false},
        {"\"kind\":\"reserve\"", ",8750,", ",8751,", "factor", false},
        {"\"kind\":\"reserve\"", "[[\"reserved\",", "[[\"reserved\",1", "quantity", false},
        {"\"kind\":\"reserve\"", "[[\"reserved\",", "[[\"burst\",", "behind \"contra\"", false},
        {"\"kind\":\"reserve\"", "[\"#reserved\"]", "[\"#burst\"]", "behind \"contra\"", false},
        {"\"kind\":\"window\"", "[[\"window\",", "[[\"window\",1", "quantity", false},
        {"\"kind\":\"window\"", "\"share\":", "\"share\":1", "other GPU time", false},
        {"\"kind\":\"window\"", "\"to\":", "\"to\":1", "is due", false},
        {"\"kind\":\"window\"", "\"from\":", "\"from\":1", "is due", false},
        {"\"kind\":\"window\"", "\"keep_bp\":", "\"keep_bp\":1", "than was agreed", false},
        {"\"kind\":\"window\"", "\"agreed\":", "\"agreed\":1", "than was agreed", false},
        {"\"kind\":\"window\"", "\"booking\":\"b", "\"booking\":\"x", "was not agreed", false},
        {"\"kind\":\"window\"", "\"removed\":", "\"removed\":1", "its posting cancel has quantity",
         false},
        {"\"kind\":\"window\"", "\"fee_bp\":", "\"fee_bp\":1", "has a fee", false},
        {"\"kind\":\"window\"", "\"missing\":", "\"missing\":1", "other GPU time", false},
        {"\"kind\":\"window\"", "[\"short\",", "[\"short\",-1", "", true},
        {"\"kind\":\"window\"", "\"lent\":", "\"lent\":9999", "that it did not have", false},
        {"\"kind\":\"window\"", "\"paid\":", "\"paid\":-", "that it did not have", false},
        {"\"kind\":\"window\"", "[\"lent\",-", "[\"lent\",-1", "quantity", false},
        {"\"kind\":\"window\"", "[\"cancel\",", "[\"cancel\",1", "quantity", false},
        {"\"kind\":\"booking\"", "\"keep_bp\":", "\"keep_bp\":1", "is its own", false},
        {"\"kind\":\"booking\"", "\"gpu_m\":", "\"gpu_m\":1", "", true},
        {"\"kind\":\"booking\"", "\"short_m\":", "\"short_m\":1", "", true},
        {"\"kind\":\"booking\"", "\"to\":", "\"to\":1", "", true},
        {"\"kind\":\"credit\"", "\"amount\":12345678", "\"amount\":12345679", "quantity", false},
        {"\"kind\":\"prices\"", "1980000", "1980001", "not those of the book", true},
        {"\"kind\":\"plan\"", "\"discount_bp\":1250", "\"discount_bp\":1251",
         "not those of its plan", true},
        {"\"kind\":\"terms\"", "\"discount_bp\":1250", "\"discount_bp\":1251",
         "not those of its plan", true},
        {"\"kind\":\"terms\"", "\"discount_bp\":1250", "\"discount_bp\":10001",
         "invalid terms entry", false},
        {"\"kind\":\"terms\"", "\"chargeback\":1", "\"chargeback\":2", "invalid terms entry",
         false},
        {"\"kind\":\"account\"", "\"account\":\"acme\"", "\"account\":\"beta\"", "", true},
        {"\"kind\":\"child\"", "\"child\":\"vision\"", "\"child\":\"beta\"",
         "first entry of account \"beta\" is missing", true},
        {"\"kind\":\"child\"", "\"child\":\"vision\"", "\"child\":\"acme\"",
         "cannot be below this one", false},
        {"\"kind\":\"child\"", "\"child\":\"vision\"", "\"child\":\"speech\"",
         "cannot be below this one", true},
        {"{\"bill\":1", "\"total\":", "\"total\":1", "the total is", false},
        {"{\"bill\":1", "\"closed\":true", "\"closed\":false", "", true},
        {"{\"bill\":1", "\"chargeback\":true", "\"chargeback\":false", "terms say otherwise",
         false},
        {"{\"bill\":1", "\"period\":\"2026-10\"", "\"period\":\"2026-09\"", "close of 2026-10",
         true},
        {"{\"bill\":1", "\"account\":\"acme\"", "\"account\":\"vision\"", "", true},
        {"{\"line\":", "\"amount\":", "\"amount\":1", "its amount is", false},
        {"{\"line\":", "\"quantity\":", "\"quantity\":1", "its quantity is", false},
        {"{\"line\":", "\"entries\":", "\"entries\":1", "number of its entries", false},
        {"{\"line\":", "\"level\":\"whole\"", "\"level\":\"mig\"", "", false},
        {"{\"use\":", "\"reserved\":", "\"reserved\":1", "reserved time is", false},
        {"{\"use\":", "\"jobs\":", "\"jobs\":1", "number of jobs", false},
        {"{\"checkpoint\":", "\"at\":", "\"at\":1", "signature does not fit", false},
        {"{\"book\":", "\"index\":", "\"index\":1", "not in what the checkpoint", false},
        {"{\"book\":", "\"chain\":\"", "\"chain\":\"0", "not a book", false},
        {"{\"book\":\"vision\"", "\"size\":", "\"size\":1", "too few", true},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf altered = {0}, again = {0};
        int64_t line = replace(&w->bill, rows[i].after, rows[i].was, rows[i].is, &altered);

        remake(&altered, w->s.key, &again);
        assert_wrong(verify(&again, NULL), rows[i].elsewhere ? 0 : line, rows[i].found);
    }
}

/* Nothing of those above or beside: no name, and no amount that is agreed with them. */
static void nobody_above_is_in_it(void **state)
{
    (void)state;
    static const char *const secrets[] = {"acme",       "speech",  "beta",     "big",
                                          "4141410000", "7177000", "515150000"};
    shop s;

    shop_init(&s, 5);
    shop_plan(&s, "account: \"\"\ndiscount: 1%\ncap: 1000000\nbudget: 4141.41\n");
    shop_days(&s, 31);
    shop_close(&s);
    shop_plan(&s, "account: acme\ndiscount: 7%\nbudget: 515.15\nburst: 7177\n");
    shop_plan(&s, "account: vision\ndiscount: 9%\nfrom: 2026-11-03\n");
    shop_days(&s, 4);
    for (int i = 0; i < 2; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf bill = {0};

        shop_bill(&s, "vision", i ? NULL : "2026-10", &bill);
        assert_good(verify(&bill, s.public));
        assert_non_null(strstr(bill.s, "\"kind\":\"terms\",\"account\":\"vision\""));
        for (size_t k = 0; k < ST_ARRAY_LEN(secrets); k++)
            if (strstr(bill.s, secrets[k]))
                fail_msg("the bill of vision says %s", secrets[k]);
    }
    shop_done(&s);
}

/* An account that somebody left out is missed by the entry in the book above it, and one that is not below has no
 * place. */
static void accounts_are_complete(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf less = {0}, again = {0}, more = {0}, all = {0};
    const char *speech = strstr(w->bill.s, "{\"book\":\"speech\"");
    const char *vision = strstr(w->bill.s, "{\"book\":\"vision\"");

    assert_true(speech && vision && speech < vision);
    st_strbuf_addn(&less, w->bill.s, (size_t)(speech - w->bill.s));
    st_strbuf_add(&less, vision);
    remake(&less, w->s.key, &again);
    assert_wrong(verify(&again, NULL), 0, "first entry of account \"speech\" is missing");

    /* The whole file of acme, but it says that it is speech's. */
    replace(&w->bill, "{\"bill\":1", "\"account\":\"acme\"", "\"account\":\"speech\"", &more);
    st_strbuf_clear(&again);
    remake(&more, w->s.key, &again);
    assert_wrong(verify(&again, NULL), 0, "cannot be below this one");

    /* Everybody's, said to be beta's. */
    st_strbuf_clear(&more);
    st_strbuf_clear(&again);
    shop_bill(&w->s, "", NULL, &all);
    replace(&all, "{\"bill\":1", "\"account\":\"\"", "\"account\":\"beta\"", &more);
    remake(&more, w->s.key, &again);
    assert_wrong(verify(&again, NULL), 0, "is not below \"beta\"");
}

static void entries_elsewhere(void **state)
{
    world *w = *state;
    const char *usage = strstr(w->bill.s, "\"kind\":\"usage\"");
    int64_t n = line_at(&w->bill, (size_t)(usage - w->bill.s));

    for (int way = 0; way < 3; way++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf altered = {0}, again = {0};
        static const char *const found[] = {"another place", "another place", "another place"};

        if (way == 0) /* gone */
            move_line(&w->bill, n, 0, false, &altered);
        else if (way == 1) /* in another place */
            move_line(&w->bill, n, n + 2, false, &altered);
        else /* twice */
            move_line(&w->bill, n, n + 1, true, &altered);
        remake(&altered, w->s.key, &again);
        assert_wrong(verify(&again, NULL), way == 2 ? n + 1 : n, found[way]);
    }
}

static void entry_of_another_account(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf altered = {0}, again = {0};
    const char *other = strstr(w->bill.s, "\"account\":\"speech\",\"from\"");
    int64_t n = line_at(&w->bill, (size_t)(strstr(w->bill.s, "\"kind\":\"usage\"") - w->bill.s));
    size_t at, from, len;

    assert_non_null(other);
    at = line_from(&w->bill, n);
    from = line_from(&w->bill, line_at(&w->bill, (size_t)(other - w->bill.s)));
    len = (size_t)(strchr(w->bill.s + from, '\n') + 1 - w->bill.s) - from;
    st_strbuf_addn(&altered, w->bill.s, at);
    st_strbuf_addn(&altered, w->bill.s + from, len);
    st_strbuf_add(&altered, w->bill.s + at);
    remake(&altered, w->s.key, &again);
    assert_wrong(verify(&again, NULL), n, "another account's book");
}

static void keys(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0}, theirs = {0}, unsign = {0};
    unsigned char key[64], public[32];
    shop other;

    crypto_sign_seed_keypair(public, key,
                             (const unsigned char *)"somebody else's seed, 32 bytes!!");
    assert_good(verify(&w->bill, w->s.public));
    assert_wrong(verify(&w->bill, public), 2, "not the one you trust");
    remake(&w->bill, key, &again);
    assert_wrong(verify(&again, w->s.public), line_count(&w->bill), "another key");

    /* A whole shop of somebody else: right in itself, and not signed by the one who is trusted. */
    shop_init(&other, 7);
    memcpy(other.key, key, 64);
    shop_days(&other, 2);
    shop_bill(&other, "acme", NULL, &theirs);
    assert_good(verify(&theirs, NULL));
    assert_wrong(verify(&theirs, w->s.public), 2, "not the one you trust");
    shop_done(&other);

    /* Checksums made again, but nobody to sign. */
    replace(&w->bill, "\"kind\":\"usage\"", "\"user\":\"ada\"", "\"user\":\"ada\"", &unsign);
    unsign.s[strstr(unsign.s, "\"signature\":\"") - unsign.s + 13] ^= 1;
    st_strbuf_clear(&again);
    remake(&unsign, NULL, &again);
    assert_wrong(verify(&again, NULL), 2, "");
}

/* A cluster that prices wrongly: the books have other numbers than they should, and all hashes and signatures are right.
 * Any digit of a posting, and of usage that is paid for. */
static void crooked_cluster(void **state)
{
    (void)state;
    static const char *const fields[] = {"\"lines\":[[", "\"share\":", "\"cpu\":", "\"pieces\":"};
    int tried = 0;
    st_rng rng;
    shop s;

    shop_init(&s, 31);
    shop_days(&s, 6);
    st_rng_seed(&rng, 4);
    for (int i = 0; i < 4000 && tried < 400; i++) {
        shop_book *b = shop_find(&s, st_rng_chance(&rng, 1, 2) ? "vision" : "speech");
        size_t k = st_rng_below(&rng, b->entries.n);
        const char *text = b->entries.v[k];
        const char *at = strstr(text, fields[st_rng_below(&rng, ST_ARRAY_LEN(fields))]);
        ST_CLEANUP(st_strbuf_done) st_strbuf wrong = {0}, bill = {0};
        st_hash leaf = b->leaves.v[k];
        st_verdict v;

        if (!at || strstr(text, "\"workload\":\"render\",\"stay\""))
            continue; /* no such field, or pieces pay for it */
        at +=
            *at == '"' && at[1] == 'l' ? st_rng_below(&rng, strlen(at)) : strcspn(at, "0123456789");
        if (*at < '0' || *at > '9')
            continue;
        st_strbuf_add(&wrong, text);
        wrong.s[at - text] = (char)('0' + (*at - '0' + st_rng_range(&rng, 1, 9)) % 10);
        b->entries.v[k] = wrong.s;
        st_proof_leaf(wrong.s, wrong.n, &b->leaves.v[k]);
        shop_bill(&s, "acme", NULL, &bill);
        v = verify(&bill, s.public);
        if (v.good || v.seq < (int64_t)k + 1 || strcmp(v.account, b->account) != 0)
            fail_msg("entry %zu of %s:\n%s\n%s\n%s", k + 1, b->account, text, wrong.s, v.what);
        b->entries.v[k] = text;
        b->leaves.v[k] = leaf;
        tried++;
    }
    assert_int_equal(tried, 400);
    shop_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_bills),
        cmocka_unit_test(many_seeds),
        cmocka_unit_test(altered_bytes),
        cmocka_unit_test(lines_moved_or_gone),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(altered_with_care),
        cmocka_unit_test(nobody_above_is_in_it),
        cmocka_unit_test(accounts_are_complete),
        cmocka_unit_test(entries_elsewhere),
        cmocka_unit_test(entry_of_another_account),
        cmocka_unit_test(keys),
        cmocka_unit_test(crooked_cluster),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
