/*
 * Sums of books that are kept from question to question (api/usages.h).
 */
#include "api/usages.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "bill/bill.h"

struct st_usages_book {
    char *name; /* what it is of, as in `names` of the whole */
    st_sums_by sums;
    int64_t from, upto;   /* entries that are in it; none where upto < from */
    pthread_mutex_t lock; /* of the above */

    /* Under the lock of the whole. */
    int refs;
    size_t counted; /* rows, in `rows` of the whole */
    uint64_t asked; /* when, by its count of questions */
};

struct st_usages {
    pthread_mutex_t lock;
    ST_VEC(st_usages_book *) books;
    st_map *names; /* the same by name: pointers */
    size_t rows, rows_max;
    uint64_t asks;
};

/* ---- sums ------------------------------------------------------------------------------------------ */

void st_sums_init(st_sums_by *u)
{
    *u = (st_sums_by){.at = st_map_new(), .texts = st_arena_new()};
}

void st_sums_done(st_sums_by *u)
{
    st_map_free(u->at);
    st_arena_free(u->texts);
    st_vec_free(&u->rows);
}

st_sums_row *st_sums_row_of(st_sums_by *u, const char *key)
{
    int64_t at;

    if (st_map_get(u->at, key, &at))
        return &u->rows.v[at];
    st_map_put(u->at, key, (int64_t)u->rows.n);
    st_vec_push(&u->rows, ((st_sums_row){.key = st_arena_strdup(u->texts, key)}));
    return &u->rows.v[u->rows.n - 1];
}

void st_sums_row_add(st_sums_row *to, const st_sums_row *row)
{
    to->entries += row->entries;
    to->share += row->share;
    to->held += row->held;
    to->seen += row->seen;
    to->busy += row->busy;
    to->energy_mj += row->energy_mj;
    to->lost += row->lost;
    to->amount += row->amount;
    to->jobs += row->jobs;
}

/* An interval ends at midnight; what has none counts on the day it was made. */
static const char *day_of(const st_entry *e, char *buf)
{
    st_utc(buf, e->from_ms > 0 ? e->from_ms : e->at_ms);
    buf[10] = '\0'; /* 2026-10-01 */
    return buf;
}

#define KEY_MAX 1100

/* The labels as one text, "a=1,b=2"; of `only` its value. */
static const char *label_of(const st_entry *e, const char *only, char buf[KEY_MAX])
{
    json_t *root = e->labels ? json_loads(e->labels, 0, NULL) : NULL, *value;
    const char *key;
    size_t n = 0;

    buf[0] = '\0';
    json_object_foreach(root, key, value)
    {
        if (only ? strcmp(key, only) != 0 : n >= KEY_MAX)
            continue;
        if (only)
            snprintf(buf, KEY_MAX, "%s", json_string_value(value));
        else
            n += (size_t)snprintf(buf + n, KEY_MAX - n, "%s%s=%s", n > 0 ? "," : "", key,
                                  json_string_value(value));
    }
    json_decref(root);
    return buf[0] ? buf : "(none)";
}

/* A word, or that with SEP LABEL SEP WHERE behind it. */
void st_sums_key(const char *by, const char *label, const char *where, st_strbuf *out)
{
    st_strbuf_add(out, by);
    if (label || where)
        st_strbuf_addf(out, "%c%s%c%s", ST_SUMS_SEP, label ? label : "", ST_SUMS_SEP,
                       where ? where : "");
}

bool st_sums_is(const char *by, const char *word)
{
    size_t n = strlen(word);

    return strncmp(by, word, n) == 0 && (by[n] == '\0' || by[n] == ST_SUMS_SEP);
}

/* The label whose values are meant; NULL: all. */
static const char *label_in(const char *by, char buf[KEY_MAX])
{
    const char *at = strchr(by, ST_SUMS_SEP);
    size_t n = at ? strcspn(at + 1, (char[]){ST_SUMS_SEP, '\0'}) : 0;

    snprintf(buf, KEY_MAX, "%.*s", (int)n, at ? at + 1 : "");
    return n > 0 ? buf : NULL;
}

/* Whether the entry is one of those that are asked for. */
static bool is_asked(const char *by, const st_entry *e)
{
    const char *where = strrchr(by, ST_SUMS_SEP), *equals = where ? strchr(where, '=') : NULL;
    char name[KEY_MAX], value[KEY_MAX];

    if (!equals)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(equals - where - 1), where + 1);
    return e->job && strcmp(label_of(e, name, value), equals + 1) == 0;
}

static const char *key_of(const char *by, const st_entry *e, char buf[KEY_MAX])
{
    const char *none = e->kind == ST_ENTRY_CREDIT   ? "(credit)"
                       : e->kind == ST_ENTRY_WINDOW ? "(booking)"
                                                    : "(floor)";

    char name[KEY_MAX];

    if (st_sums_is(by, "day"))
        return day_of(e, buf);
    if (st_sums_is(by, "user"))
        return e->user ? e->user : none;
    if (st_sums_is(by, "job"))
        return e->job ? e->job : none;
    if (st_sums_is(by, "name"))
        return e->name ? e->name : e->job ? "(none)" : none;
    if (st_sums_is(by, "label"))
        return e->job ? label_of(e, label_in(by, name), buf) : none;
    if (st_sums_is(by, "cost-center"))
        return e->job ? label_of(e, "cost-center", buf) : none;
    if (st_sums_is(by, "gpu"))
        return e->gpu ? e->gpu : "(none)";
    if (st_sums_is(by, "level"))
        return e->gpu ? st_level_name(e->level) : "(none)";
    return e->account;
}

void st_sums_add(st_sums_by *u, const char *by, const st_entry *e, int sign)
{
    st_sums_row row = {.entries = sign};
    const bool fix = e->kind == ST_ENTRY_FIX;
    char buf[KEY_MAX];

    if (e->kind != ST_ENTRY_USAGE && !fix && e->kind != ST_ENTRY_LOST && e->nlines == 0)
        return;
    if (!is_asked(by, e))
        return;
    for (int i = 0; i < e->nlines; i++)
        row.amount += sign * e->lines[i].amount;
    row.lost = e->kind == ST_ENTRY_LOST ? sign * e->lost : 0;
    if (e->kind == ST_ENTRY_USAGE || fix) {
        row.share = sign * e->share;
        row.held = sign * e->held;
        row.seen = fix || e->seen != ST_UNKNOWN ? sign * e->seen : 0;
        row.busy = fix || e->seen != ST_UNKNOWN ? sign * e->busy : 0;
        row.energy_mj = fix || e->energy_mj != ST_UNKNOWN ? sign * e->energy_mj : 0;
        row.jobs = !fix && e->stay == 1 && e->piece == 1 ? sign : 0;
    }
    st_sums_row_add(st_sums_row_of(u, key_of(by, e, buf)), &row);
}

/* ---- entries ---------------------------------------------------------------------------------------- */

typedef struct fold {
    st_sums_by *to;
    const st_usages_ask *ask;
    int sign;
    st_arena *arena;
    int64_t last;
} fold;

static int fold_row(void *ctx, const st_book_row *row, st_err *err)
{
    fold *f = ctx;
    st_entry e;
    int r;

    f->last = row->seq;
    if (strcmp(row->period, f->ask->period) != 0)
        return 0;
    st_arena_reset(f->arena);
    r = st_entry_read(row->data, strlen(row->data), f->arena, &e, err);
    if (r == 0)
        st_sums_add(f->to, f->ask->by, &e, f->sign);
    return r;
}

/* Entries [from, to]; a fault leaves what was added before it, up to *ret_last. */
static int fold_entries(st_store *reader, const st_usages_ask *ask, int64_t from, int64_t to,
                        int sign, st_sums_by *ret, int64_t *ret_last, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    fold f = {.to = ret, .ask = ask, .sign = sign, .arena = arena, .last = from - 1};
    int r = from <= to ? st_store_book_of(reader, ask->book, from, to, fold_row, &f, err) : 0;

    *ret_last = f.last;
    return r;
}

int st_usages_fold(st_store *reader, const st_usages_ask *ask, st_sums_by *into, st_err *err)
{
    int64_t last;

    return fold_entries(reader, ask, ask->from, ask->to, 1, into, &last, err);
}

/* ---- what is kept ----------------------------------------------------------------------------------- */

st_usages *st_usages_new(size_t rows_max)
{
    st_usages *k = st_xcalloc(1, sizeof *k);

    k->rows_max = rows_max;
    k->names = st_map_new();
    ST_ASSERT(pthread_mutex_init(&k->lock, NULL) == 0);
    return k;
}

static void book_free(st_usages_book *b)
{
    st_sums_done(&b->sums);
    pthread_mutex_destroy(&b->lock);
    free(b->name);
    free(b);
}

void st_usages_free(st_usages *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->books.n; i++) {
        ST_ASSERT(k->books.v[i]->refs == 0);
        book_free(k->books.v[i]);
    }
    st_vec_free(&k->books);
    st_map_free(k->names);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static st_usages_book *find(st_usages *k, const st_usages_ask *ask)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
    st_usages_book *b = NULL;
    int64_t at;

    st_strbuf_addf(&name, "%zu:%s %s %s", strlen(ask->by), ask->by, ask->period, ask->book);
    if (st_map_get(k->names, name.s, &at)) {
        b = (st_usages_book *)(intptr_t)at;
    } else {
        b = st_xcalloc(1, sizeof *b);
        b->name = st_strbuf_take(&name);
        b->from = ask->from;
        b->upto = ask->from - 1;
        st_sums_init(&b->sums);
        ST_ASSERT(pthread_mutex_init(&b->lock, NULL) == 0);
        st_vec_push(&k->books, b);
        st_map_put(k->names, b->name, (int64_t)(intptr_t)b);
    }
    b->refs++;
    b->asked = ++k->asks;
    return b;
}

int st_usages_lend(st_usages *k, st_store *reader, const st_usages_ask *ask, st_sums_by *ahead,
                   st_usages_book **ret, st_err *err)
{
    st_usages_book *b;
    int64_t last;
    int r = 0;

    pthread_mutex_lock(&k->lock);
    b = find(k, ask);
    pthread_mutex_unlock(&k->lock);
    pthread_mutex_lock(&b->lock);
    ST_ASSERT(b->from == ask->from); /* where a month begins in a book is fixed */
    if (b->upto < ask->to)
        r = fold_entries(reader, ask, b->upto + 1, ask->to, 1, &b->sums, &b->upto, err);
    else if (b->upto > ask->to)
        r = fold_entries(reader, ask, ask->to + 1, b->upto, -1, ahead, &last, err);
    if (r < 0) {
        pthread_mutex_unlock(&b->lock);
        st_usages_back(k, b);
        return r;
    }
    *ret = b;
    return 0;
}

const st_sums_by *st_usages_sums(const st_usages_book *b)
{
    return &b->sums;
}

void st_usages_unlock(st_usages_book *b)
{
    pthread_mutex_unlock(&b->lock);
}

/* With the lock held: those that nobody has, the oldest first. */
static void make_room(st_usages *k)
{
    while (k->rows > k->rows_max) {
        size_t oldest = k->books.n;

        for (size_t i = 0; i < k->books.n; i++)
            if (k->books.v[i]->refs == 0 &&
                (oldest == k->books.n || k->books.v[i]->asked < k->books.v[oldest]->asked))
                oldest = i;
        if (oldest == k->books.n)
            return;
        k->rows -= k->books.v[oldest]->counted;
        st_map_del(k->names, k->books.v[oldest]->name);
        book_free(k->books.v[oldest]);
        st_vec_remove(&k->books, oldest);
    }
}

void st_usages_back(st_usages *k, st_usages_book *b)
{
    size_t rows;

    pthread_mutex_lock(&b->lock);
    rows = b->sums.rows.n + 1; /* one for itself */
    pthread_mutex_unlock(&b->lock);
    pthread_mutex_lock(&k->lock);
    if (rows > b->counted) { /* another may have counted later rows already */
        k->rows += rows - b->counted;
        b->counted = rows;
    }
    b->refs--;
    make_room(k);
    pthread_mutex_unlock(&k->lock);
}
