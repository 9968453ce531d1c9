/* Entries to bytes. What is written is hashed and signed, so there is one way to write anything: the
 * order of the table, no blanks, integers, and of escapes only those that must be. */
#include "ledger/entry.h"

#include <stddef.h>
#include <string.h>

#include "base/quote.h"

static const char *const kind_names[] = {
#define X(id, name) [id] = name,
    ST_ENTRY_TABLE(X)
#undef X
};

const char *st_entry_kind_name(st_entry_kind kind)
{
    ST_ASSERT(kind < ST_ENTRY_COUNT);
    return kind_names[kind];
}

static const char *word_kind(int v)
{
    return st_entry_kind_name((st_entry_kind)v);
}

static const char *word_level(int v)
{
    return st_level_name((st_level)v);
}

static const char *word_basis(int v)
{
    return st_basis_name((st_basis)v);
}

static const char *word_topo(int v)
{
    return st_topo_name((st_topo)v);
}

static const char *word_cut(int v)
{
    return st_cut_name((st_cut)v);
}

#define BIT(kind) (1u << ST_ENTRY_##kind)
#define ALL       ((1u << ST_ENTRY_COUNT) - 1)
#define STAY      (BIT(USAGE) | BIT(FIX))
#define PIECE     (STAY | BIT(LOST))
#define BOOKED    (BIT(BOOKING) | BIT(WINDOW))
#define SPAN      (PIECE | BIT(RESERVE) | BIT(FLEET) | BIT(CLOSE) | BIT(RESTORED) | BOOKED | BIT(LENT))
#define JOB       (PIECE | BIT(PIECES) | BIT(HOLD) | BIT(RELEASE))
#define PRICED    (PIECE | BIT(RESERVE) | BIT(PIECES) | BIT(CREDIT) | BIT(WINDOW))

#define AT(field) offsetof(st_entry, field)
#define KEY(key)  "\"" key "\":", sizeof(key) + 2
#define NUM(key, field, need, may)                               \
    {                                                            \
        KEY(key), ST_E_I64, AT(field), (need), (may), 0, NULL, 0 \
    }
#define UNKNOWN(key, field)                                                      \
    {                                                                            \
        KEY(key), ST_E_I64, AT(field), BIT(FIX), BIT(USAGE), ST_UNKNOWN, NULL, 0 \
    }
#define INT(key, field, need)                                \
    {                                                        \
        KEY(key), ST_E_INT, AT(field), (need), 0, 0, NULL, 0 \
    }
#define TEXT(key, field, need, may)                               \
    {                                                             \
        KEY(key), ST_E_TEXT, AT(field), (need), (may), 0, NULL, 0 \
    }
#define WORD(key, field, need, may, fn, count)                          \
    {                                                                   \
        KEY(key), ST_E_WORD, AT(field), (need), (may), 0, (fn), (count) \
    }

const st_entry_field st_entry_fields[] = {
    NUM("seq", seq, ALL, 0),
    NUM("at", at_ms, ALL, 0),
    WORD("kind", kind, ALL, 0, word_kind, ST_ENTRY_COUNT),
    TEXT("account", account, ALL, 0),
    TEXT("child", child, BIT(CHILD) | BIT(LENT), 0),
    TEXT("period", period, BIT(CLOSE), 0),
    TEXT("zone", zone, BIT(CLOSE), 0),
    NUM("from", from_ms, SPAN | BIT(TERMS), 0),
    NUM("to", to_ms, SPAN, 0),
    INT("chargeback", chargeback, BIT(TERMS)),
    NUM("discount_bp", discount_bp, BIT(TERMS), 0),
    NUM("fixes", fixes, BIT(FIX) | BIT(LOST), BIT(CREDIT)),
    TEXT("booking", booking, BOOKED | BIT(LENT), BIT(USAGE)),
    TEXT("job", job, JOB | BIT(LENT), BIT(CREDIT)),
    TEXT("user", user, 0, PIECE | BIT(PIECES) | BIT(HOLD)),
    TEXT("workload", workload, BIT(PIECES), PIECE),
    TEXT("class", priority_class, 0, PIECE | BIT(PIECES)),
    TEXT("name", name, 0, PIECE | BIT(PIECES)),
    TEXT("labels", labels, 0, PIECE | BIT(PIECES)),
    INT("stay", stay, PIECE | BIT(LENT)),
    INT("piece", piece, PIECE | BIT(LENT)),
    TEXT("gpu", gpu, BIT(RESERVE) | BIT(FLEET) | BIT(FLOOR) | BOOKED, PIECE),
    WORD("level", level, 0, PIECE, word_level, ST_LEVEL_COUNT),
    TEXT("profile", profile, 0, STAY),
    WORD("basis", basis, PIECE, 0, word_basis, ST_BASIS_COUNT),
    WORD("topo", topo, 0, STAY, word_topo, ST_TOPO_COUNT),
    INT("tasks", tasks, STAY),
    WORD("cut", cut, PIECE, 0, word_cut, ST_CUT_COUNT),
    NUM("agreed", agreed_ms, BOOKED, 0),
    NUM("keep_bp", keep_bp, BOOKED, 0),
    NUM("gpu_m", gpu_m, STAY | BIT(RESERVE) | BIT(FLOOR) | BIT(BOOKING), 0),
    NUM("short_m", short_m, 0, BIT(BOOKING)),
    NUM("share", share, STAY | BIT(RESERVE) | BIT(WINDOW) | BIT(LENT), 0),
    NUM("missing", missing, 0, BIT(WINDOW)),
    NUM("lent", lent, 0, BIT(WINDOW)),
    NUM("paid", paid, 0, BIT(WINDOW)),
    NUM("removed", removed, 0, BIT(WINDOW)),
    NUM("fee_bp", fee_bp, 0, BIT(WINDOW)),
    NUM("inside", inside, 0, STAY),
    NUM("held", held, STAY, 0),
    NUM("cpu", cpu, STAY, 0),
    NUM("ram", ram, STAY, 0),
    UNKNOWN("seen", seen),
    UNKNOWN("busy", busy),
    NUM("inside_idle", inside_idle, 0, STAY),
    UNKNOWN("energy_mj", energy_mj),
    NUM("lost", lost, 0, BIT(LOST)),
    NUM("capped", capped, 0, BIT(FIX)),
    NUM("charged", charged, BIT(LOST) | BIT(LENT), 0),
    NUM("credited", credited, 0, BIT(LOST)),
    NUM("pieces", pieces, BIT(PIECES), 0),
    NUM("total", total, BIT(FLEET), 0),
    NUM("granted", granted, BIT(FLEET), 0),
    NUM("idle", idle, BIT(FLEET), 0),
    NUM("unhealthy", unhealthy, BIT(FLEET), 0),
    NUM("overhead", overhead, BIT(FLEET), 0),
    NUM("amount", amount, BIT(HOLD) | BIT(CREDIT) | BIT(LOST), 0),
    TEXT("reason", reason, BIT(CREDIT), BIT(FIX) | BIT(LOST) | BIT(BOOKING)),
    TEXT("by", by, BIT(CREDIT), 0),
    {KEY("grants"), ST_E_GRANTS, AT(grants), 0, BIT(USAGE), 0, NULL, 0},
    {KEY("lines"), ST_E_LINES, AT(lines), PRICED, 0, 0, NULL, 0},
    {KEY("contra"), ST_E_CONTRA, AT(contra), 0, PRICED, 0, NULL, 0},
    {KEY("doc"), ST_E_DOC, AT(doc), BIT(PRICES) | BIT(PLAN), 0, 0, NULL, 0},
};
const int st_entry_nfields = ST_ARRAY_LEN(st_entry_fields);

/* Bytes on their way to a string: most of an entry is short pieces, and a million entries are many of them. */
typedef struct sink {
    st_strbuf *out;
    size_t n;
    char buf[1024];
} sink;

static void flush(sink *s)
{
    st_strbuf_addn(s->out, s->buf, s->n);
    s->n = 0;
}

static inline void put(sink *s, const char *bytes, size_t n)
{
    if (sizeof s->buf - s->n < n) {
        flush(s);
        if (n > sizeof s->buf) {
            st_strbuf_addn(s->out, bytes, n);
            return;
        }
    }
    memcpy(s->buf + s->n, bytes, n);
    s->n += n;
}

static inline void put_char(sink *s, char c)
{
    if (s->n == sizeof s->buf)
        flush(s);
    s->buf[s->n++] = c;
}

#define NUM_MAX 24

static void put_num(sink *s, int64_t n)
{
    static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031"
                                "3233343536373839404142434445464748495051525354555657585960616263"
                                "6465666768697071727374757677787980818283848586878889909192939495"
                                "96979899";
    char buf[2 * NUM_MAX] = {0}, *p = buf + NUM_MAX;
    uint64_t u = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    for (; u >= 100; u /= 100) {
        p -= 2;
        memcpy(p, pairs + u % 100 * 2, 2);
    }
    if (u >= 10) {
        p -= 2;
        memcpy(p, pairs + u * 2, 2);
    } else {
        *--p = (char)('0' + u);
    }
    if (n < 0)
        *--p = '-';
    if (sizeof s->buf - s->n < NUM_MAX)
        flush(s);
    /* Always as many bytes, though fewer count: that is one move and no loop. */
    memcpy(s->buf + s->n, p, NUM_MAX);
    s->n += (size_t)(buf + NUM_MAX - p);
}

/* Names are plain; quoting byte by byte is for what is not. */
static void put_text(sink *s, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    while (*c >= 0x20 && *c < 0x7f && *c != '"' && *c != '\\')
        c++;
    if (*c) {
        flush(s);
        st_quote_json(s->out, text);
        return;
    }
    put_char(s, '"');
    put(s, text, (size_t)(c - (const unsigned char *)text));
    put_char(s, '"');
}

/* ["first",1,2,3] */
static void put_row(sink *s, bool more, const char *first, const int64_t *nums, size_t n)
{
    if (more)
        put_char(s, ',');
    put_char(s, '[');
    put_text(s, first);
    for (size_t i = 0; i < n; i++) {
        put_char(s, ',');
        put_num(s, nums[i]);
    }
    put_char(s, ']');
}

static void put_grants(sink *s, const st_entry *e)
{
    put_char(s, '[');
    for (int i = 0; i < e->ngrants; i++) {
        const st_entry_grant *g = &e->grants[i];
        const int64_t nums[] = {g->devs, g->mig_start, g->n};
        put_row(s, i > 0, g->node, nums, ST_ARRAY_LEN(nums));
    }
    put_char(s, ']');
}

static void put_lines(sink *s, const st_entry *e)
{
    put_char(s, '[');
    for (int i = 0; i < e->nlines; i++) {
        const st_line *line = &e->lines[i];
        const int64_t nums[] = {line->quantity, line->rate,   line->factor_bp,
                                line->carry_in, line->amount, line->carry};
        put_row(s, i > 0, st_component_name(line->what), nums, ST_ARRAY_LEN(nums));
    }
    put_char(s, ']');
}

static void put_contra(sink *s, const st_entry *e)
{
    put_char(s, '[');
    for (int i = 0; i < e->nlines; i++) {
        const char *name = st_component_name(e->lines[i].what);
        put(s, i > 0 ? ",\"#" : "\"#", i > 0 ? 3 : 2);
        put(s, name, strlen(name));
        put_char(s, '"');
    }
    put_char(s, ']');
}

/* Whether the value is the one that is left out. */
static bool says_nothing(const st_entry *e, const st_entry_field *f)
{
    const void *at = (const char *)e + f->offset;
    switch (f->type) {
    case ST_E_I64:
        return *(const int64_t *)at == f->none;
    case ST_E_INT:
    case ST_E_WORD:
        return *(const int *)at == f->none;
    case ST_E_TEXT:
    case ST_E_DOC:
        return !*(const char *const *)at;
    case ST_E_GRANTS:
        return e->ngrants == 0;
    case ST_E_LINES:
        return e->nlines == 0;
    case ST_E_CONTRA:
        return !e->contra || e->nlines == 0;
    }
    return false;
}

static void put_value(sink *s, const st_entry *e, const st_entry_field *f)
{
    const void *at = (const char *)e + f->offset;
    switch (f->type) {
    case ST_E_I64:
        put_num(s, *(const int64_t *)at);
        return;
    case ST_E_INT:
        put_num(s, *(const int *)at);
        return;
    case ST_E_WORD:
        put_text(s, f->word(*(const int *)at));
        return;
    case ST_E_TEXT:
        put_text(s, *(const char *const *)at);
        return;
    case ST_E_GRANTS:
        put_grants(s, e);
        return;
    case ST_E_LINES:
        put_lines(s, e);
        return;
    case ST_E_CONTRA:
        put_contra(s, e);
        return;
    case ST_E_DOC:
        put(s, *(const char *const *)at, strlen(*(const char *const *)at));
        return;
    }
}

void st_entry_write(const st_entry *e, st_strbuf *out)
{
    ST_ASSERT(e->kind < ST_ENTRY_COUNT);
    uint32_t bit = 1u << e->kind;
    char before = '{';
    sink s;
    s.out = out;
    s.n = 0;
    for (int i = 0; i < st_entry_nfields; i++) {
        const st_entry_field *f = &st_entry_fields[i];
        if (!((f->need | f->may) & bit) || ((f->may & bit) && says_nothing(e, f)))
            continue;
        put_char(&s, before);
        put(&s, f->key, f->nkey);
        put_value(&s, e, f);
        before = ',';
    }
    put_char(&s, '}');
    flush(&s);
}
