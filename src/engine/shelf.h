/*
 * Which jobs have logs, whose they are and how large: what decides who makes room. Private to src/engine; logs.c
 * holds its lock around it.
 */
#ifndef ST_ENGINE_SHELF_H
#define ST_ENGINE_SHELF_H

#include <stdbool.h>
#include <stdint.h>

typedef struct st_shelf st_shelf;

typedef struct st_shelved {
    uint64_t job;
    char *account;  /* "": not known, the cluster's */
    int32_t org;    /* what it belongs to; the caller's */
    int32_t number; /* who pays for it; the caller's */
    int64_t bytes, newest_ms;
} st_shelved;

st_shelf *st_shelf_new(void);
void st_shelf_free(st_shelf *shelf);

/* NULL: it has none. Good until the next change. */
st_shelved *st_shelf_find(st_shelf *shelf, uint64_t job);
st_shelved *st_shelf_add(st_shelf *shelf, uint64_t job, const char *account);
void st_shelf_remove(st_shelf *shelf, uint64_t job);

/* The one whose last line is oldest: of the organisation, or (-1) of the one that has most; never `except`. */
st_shelved *st_shelf_oldest(st_shelf *shelf, int32_t org, uint64_t except);

/* All of them. */
st_shelved *st_shelf_all(st_shelf *shelf, int64_t *ret_n);

#endif
