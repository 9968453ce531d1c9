/*
 * The scribe: one batch is filled while the one before it is written. See scribe.h.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "scribe.h"

#define BATCH 1000

typedef struct batch {
    st_arena *arena; /* all texts */
    ST_VEC(st_book_row) rows;
    ST_VEC(st_checkpoint_row) points;
} batch;

struct scribe {
    st_store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    batch both[2];
    int fills;   /* which of them is filled */
    bool handed; /* the other waits to be written or is */
    bool over;
};

static void must(int r, const st_err *err)
{
    if (r >= 0)
        return;
    fprintf(stderr, "store: %s\n", err->msg);
    exit(1);
}

static void write_batch(st_store *store, batch *b)
{
    st_err err = {0};

    must(st_store_begin(store, &err), &err);
    for (size_t i = 0; i < b->rows.n; i++)
        must(st_store_book_append(store, &b->rows.v[i], &err), &err);
    for (size_t i = 0; i < b->points.n; i++)
        must(st_store_checkpoint_put(store, &b->points.v[i], &err), &err);
    must(st_store_commit(store, &err), &err);
    st_vec_clear(&b->rows);
    st_vec_clear(&b->points);
    st_arena_reset(b->arena);
}

static void *write_all(void *ctx)
{
    scribe *s = ctx;

    pthread_mutex_lock(&s->lock);
    while (s->handed || !s->over) {
        if (!s->handed) {
            pthread_cond_wait(&s->turn, &s->lock);
            continue;
        }
        batch *b = &s->both[!s->fills];
        pthread_mutex_unlock(&s->lock);
        write_batch(s->store, b);
        pthread_mutex_lock(&s->lock);
        s->handed = false;
        pthread_cond_signal(&s->turn);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void hand_over(scribe *s, bool last)
{
    pthread_mutex_lock(&s->lock);
    while (s->handed)
        pthread_cond_wait(&s->turn, &s->lock);
    s->fills = !s->fills;
    s->handed = true;
    s->over = last;
    pthread_cond_signal(&s->turn);
    pthread_mutex_unlock(&s->lock);
}

scribe *scribe_new(const char *path)
{
    scribe *s = st_xcalloc(1, sizeof *s);
    st_err err = {0};

    s->both[0].arena = st_arena_new();
    s->both[1].arena = st_arena_new();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->turn, NULL);
    must(st_store_open(path, &(st_store_options){.loose = true}, &s->store, &err), &err);
    if (pthread_create(&s->thread, NULL, write_all, s) != 0)
        must(st_fail(&err, ST_EINTERNAL, "no thread to write with"), &err);
    return s;
}

static void *copy(st_arena *arena, const void *bytes, size_t n)
{
    return memcpy(st_arena_alloc(arena, n ? n : 1), bytes, n);
}

void scribe_row(scribe *s, const st_book_row *row)
{
    batch *b = &s->both[s->fills];
    st_book_row mine = *row;

    mine.account = st_arena_strdup(b->arena, row->account);
    mine.period = st_arena_strdup(b->arena, row->period);
    mine.job = st_arena_strdup(b->arena, row->job);
    mine.data = st_arena_strdup(b->arena, row->data);
    mine.chain.p = copy(b->arena, row->chain.p, row->chain.n);
    st_vec_push(&b->rows, mine);
    if (b->rows.n == BATCH)
        hand_over(s, false);
}

void scribe_point(scribe *s, const st_checkpoint_row *row)
{
    batch *b = &s->both[s->fills];
    st_checkpoint_row mine = *row;

    mine.data = st_arena_strdup(b->arena, row->data);
    st_vec_push(&b->points, mine);
}

st_store *scribe_end(scribe *s)
{
    st_store *store = s->store;

    hand_over(s, true);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->turn);
    for (int i = 0; i < 2; i++) {
        st_vec_free(&s->both[i].rows);
        st_vec_free(&s->both[i].points);
        st_arena_free(s->both[i].arena);
    }
    free(s);
    return store;
}
