/* Bytes to entries. The order of keys is fixed, so this reads from left to right along the table and
 * knows at each byte what must come. In the end the entry is written again: whatever would be written in
 * another way (other escapes, a zero in front, a key that says nothing) was not written by us. */
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/entry.h"

#define TEXT_MAX   4096
#define GRANTS_MAX ST_TASKS_MAX

typedef struct reader {
    const char *p, *end;
    st_arena *arena;
    const char *key; /* being read, for messages */
} reader;

static bool take(reader *r, char c)
{
    if (r->p >= r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static bool take_key(reader *r, const st_entry_field *f)
{
    if ((size_t)(r->end - r->p) < f->nkey || memcmp(r->p, f->key, f->nkey) != 0)
        return false;
    r->p += f->nkey;
    return true;
}

static bool read_num(reader *r, int64_t lo, int64_t hi, int64_t *ret)
{
    bool negative = take(r, '-');
    const char *from = r->p;
    int64_t n = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *r->p - '0', &n))
            return false;
    if (r->p == from || (!negative && __builtin_sub_overflow(0, n, &n)))
        return false;
    *ret = n;
    return n >= lo && n <= hi;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One escape at p (behind the backslash); 0: it is none of ours. */
static char unescape(reader *r)
{
    if (r->p >= r->end)
        return 0;
    char c = *r->p++;
    if (c == '"' || c == '\\')
        return c;
    if (c != 'u' || r->end - r->p < 4 || r->p[0] != '0' || r->p[1] != '0')
        return 0;
    int high = hex(r->p[2]), low = hex(r->p[3]);
    r->p += 4;
    return high < 0 || low < 0 ? 0 : (char)(high * 16 + low);
}

static bool read_text(reader *r, const char **ret)
{
    if (!take(r, '"'))
        return false;
    const char *from = r->p;
    while (r->p < r->end && *r->p != '"' && *r->p != '\\' && *r->p)
        r->p++;
    size_t n = (size_t)(r->p - from);
    if (n > TEXT_MAX || r->p >= r->end)
        return false;
    if (take(r, '"')) {
        *ret = st_arena_strndup(r->arena, from, n);
        return true;
    }
    /* Escapes make a text shorter; it has ended by the end of the entry. */
    size_t room = (size_t)(r->end - from) < TEXT_MAX ? (size_t)(r->end - from) : TEXT_MAX;
    char *s = st_arena_alloc(r->arena, room + 1);
    memcpy(s, from, n);
    while (r->p < r->end && *r->p && n < room) {
        char c = *r->p++;
        if (c == '"') {
            s[n] = '\0';
            *ret = s;
            return true;
        }
        if (c == '\\' && !(c = unescape(r)))
            return false;
        s[n++] = c;
    }
    return false;
}

static bool read_word(reader *r, const st_entry_field *f, int *ret)
{
    if (!take(r, '"'))
        return false;
    for (int i = 0; i < f->words; i++) {
        const char *word = f->word(i);
        size_t n = strlen(word);
        if ((size_t)(r->end - r->p) > n && r->p[n] == '"' && memcmp(r->p, word, n) == 0) {
            r->p += n + 1;
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool read_grant(reader *r, st_entry_grant *g)
{
    int64_t devs = 0, mig = 0, n = 0;
    if (!take(r, '[') || !read_text(r, &g->node) || !take(r, ',') ||
        !read_num(r, 0, UINT16_MAX, &devs) || !take(r, ',') || !read_num(r, -1, 127, &mig) ||
        !take(r, ',') || !read_num(r, 1, ST_TASKS_MAX, &n) || !take(r, ']'))
        return false;
    g->devs = (uint16_t)devs;
    g->mig_start = (int)mig;
    g->n = (int)n;
    return true;
}

/* Lists come in steps of twice the size; the arena keeps the smaller ones until it goes. */
static bool read_grants(reader *r, st_entry *e)
{
    st_entry_grant *list = NULL;
    int n = 0, room = 0;
    if (!take(r, '['))
        return false;
    do {
        if (n == GRANTS_MAX)
            return false;
        if (n == room) {
            room = room ? 2 * room : 8;
            st_entry_grant *more = st_arena_calloc(r->arena, (size_t)room, sizeof *more);
            if (n)
                memcpy(more, list, (size_t)n * sizeof *list);
            list = more;
        }
        if (!read_grant(r, &list[n++]))
            return false;
    } while (take(r, ','));
    e->grants = list;
    e->ngrants = n;
    return take(r, ']');
}

static const char *word_component(int v)
{
    return st_component_name((st_component)v);
}

static bool read_line(reader *r, st_line *line)
{
    static const st_entry_field what = {.word = word_component, .words = ST_PAY_COUNT};
    int word = 0;
    if (!take(r, '[') || !read_word(r, &what, &word))
        return false;
    line->what = (st_component)word;
    int64_t *nums[] = {&line->quantity, &line->rate,   &line->factor_bp,
                       &line->carry_in, &line->amount, &line->carry};
    for (size_t k = 0; k < ST_ARRAY_LEN(nums); k++)
        if (!take(r, ',') || !read_num(r, INT64_MIN, INT64_MAX, nums[k]))
            return false;
    return take(r, ']');
}

static bool read_lines(reader *r, st_entry *e)
{
    if (!take(r, '['))
        return false;
    if (take(r, ']'))
        return true;
    do {
        if (e->nlines == ST_LINES_MAX || !read_line(r, &e->lines[e->nlines++]))
            return false;
    } while (take(r, ','));
    return take(r, ']');
}

/* A posting is between the book's account and the one of its component, and no other. */
static bool read_contra(reader *r, st_entry *e)
{
    if (!take(r, '['))
        return false;
    for (int i = 0; i < e->nlines; i++) {
        const char *name = st_component_name(e->lines[i].what);
        size_t n = strlen(name);
        if ((i > 0 && !take(r, ',')) || !take(r, '"') || !take(r, '#') ||
            (size_t)(r->end - r->p) <= n || memcmp(r->p, name, n) != 0)
            return false;
        r->p += n;
        if (!take(r, '"'))
            return false;
    }
    e->contra = e->nlines > 0;
    return e->contra && take(r, ']');
}

/* The last key: all but the closing brace is the document, which must be as we write it. */
static bool read_doc(reader *r, st_entry *e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    if (r->end - r->p < 2)
        return false;
    size_t n = (size_t)(r->end - r->p) - 1;
    if (memchr(r->p, '\0', n))
        return false;
    char *doc = st_arena_strndup(r->arena, r->p, n);
    e->doc = doc;
    r->p += n;
    if (e->kind == ST_ENTRY_PRICES) {
        ST_CLEANUP(st_freep) st_price_book *book = st_xcalloc(1, sizeof *book);
        if (st_price_book_read("doc.json", doc, n, 0, book, NULL) < 0)
            return false;
        st_price_book_write(book, &again);
    } else {
        st_price_plan plan;
        if (st_price_plan_read("doc.json", doc, n, 0, &plan, NULL) < 0)
            return false;
        st_price_plan_write(&plan, &again);
    }
    return again.n == n && memcmp(again.s, doc, n) == 0;
}

static bool read_value(reader *r, st_entry *e, const st_entry_field *f)
{
    void *at = (char *)e + f->offset;
    int64_t n = 0;
    switch (f->type) {
    case ST_E_I64:
        return read_num(r, INT64_MIN, INT64_MAX, (int64_t *)at);
    case ST_E_INT:
        if (!read_num(r, INT_MIN, INT_MAX, &n))
            return false;
        *(int *)at = (int)n;
        return true;
    case ST_E_WORD:
        return read_word(r, f, (int *)at);
    case ST_E_TEXT:
        return read_text(r, (const char **)at);
    case ST_E_GRANTS:
        return read_grants(r, e);
    case ST_E_LINES:
        return read_lines(r, e);
    case ST_E_CONTRA:
        return read_contra(r, e);
    case ST_E_DOC:
        return read_doc(r, e);
    }
    return false;
}

static bool read_fields(reader *r, st_entry *e)
{
    char before = '{';
    for (int i = 0; i < st_entry_nfields; i++) {
        const st_entry_field *f = &st_entry_fields[i];
        uint32_t bit = 1u << e->kind; /* of no account in the first rows, which all kinds have */
        if (!((f->need | f->may) & bit))
            continue;
        const char *back = r->p;
        bool there = take(r, before) && take_key(r, f);
        if (there) {
            before = ',';
            r->key = f->key;
            if (!read_value(r, e, f))
                return false;
        } else if (f->need & bit) {
            r->key = f->key;
            return false;
        } else {
            r->p = back;
            if (f->type == ST_E_I64)
                *(int64_t *)((char *)e + f->offset) = f->none;
        }
    }
    return take(r, '}') && r->p == r->end;
}

/* Before lost work had entries of its own, it was credited in those of usage, at the rate of the last interval. Such lines were
 * rounded by another unit, so no rule of today gives their carries. */
static bool credits_in_usage(const st_entry *e, const char *text, size_t len)
{
    static const char key[] = ",\"lost\":";
    return (e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_FIX) &&
           memmem(text, len, key, sizeof key - 1);
}

int st_entry_read(const char *text, size_t len, st_arena *arena, st_entry *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    reader r = {.p = text, .end = text + len, .arena = arena, .key = "\"seq\":"};
    st_entry e = {0};
    bool good = read_fields(&r, &e);
    if (!good && credits_in_usage(&e, text, len))
        return st_fail(err, ST_EPARSE,
                       "no entry of a book: it credits lost work by a rule of before lost work had "
                       "entries of its own, "
                       "which this version does not read. Start the stintd that wrote this store "
                       "once more, save its bills (stint bill MONTH -o file), and begin with an "
                       "empty data folder");
    if (!good)
        return st_fail(err, ST_EPARSE, "no entry of a book: wrong at byte %zu, at or behind %.*s",
                       (size_t)(r.p - text), (int)strlen(r.key) - 1, r.key);
    st_entry_write(&e, &again);
    if (again.n != len || memcmp(again.s, text, len) != 0)
        return st_fail(err, ST_EPARSE, "no entry of a book: a book would write it differently");
    *ret = e;
    return 0;
}
