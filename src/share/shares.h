/*
 * The question `stint sim shares` answers: these accounts, this capacity, these
 * demands - who gets what? Reads the question from a document, checks it and
 * divides each resource with st_share_divide.
 *
 *     capacity: {gpu: 11, cpu: 400}
 *     basis: borrowed                # or total; borrowed when left out
 *     accounts:
 *       - {name: a, parent: org, guarantee: {gpu: 2}, max: {gpu: 10}, weight: 1,
 *          priority: 0, demand: {gpu: 10}}
 */
#ifndef ST_SHARE_SHARES_H
#define ST_SHARE_SHARES_H

#include <stdbool.h>

#include "base/doc.h"
#include "base/err.h"
#include "share/divide.h"

#define ST_SHARES_ACCOUNTS_MAX  100000
#define ST_SHARES_RESOURCES_MAX 16

typedef struct st_shares_resource {
    const char *name;
    double capacity;
    bool mentioned;     /* by some account; the others are not worth reporting */
    st_divide_in *in;   /* one per account */
    st_divide_out *out; /* one per account */
    double left;
    int64_t left_whole;
} st_shares_resource;

typedef struct st_shares_account {
    const char *name;
    const char *parent_name; /* NULL at the top */
    int parent;              /* index, -1 at the top */
    int depth;               /* 1 at the top */
    bool inner;              /* has children */
    const st_doc_node *node;
} st_shares_account;

typedef struct st_shares {
    const st_doc *doc;
    struct st_arena *arena; /* owns the arrays */
    st_share_counts counts;
    int naccounts, nresources;
    st_shares_account *accounts; /* in the order of the document */
    st_shares_resource resources[ST_SHARES_RESOURCES_MAX];
} st_shares;

/* Reads, checks and divides. The result points into the document, which must outlive it. */
int st_shares_new(const st_doc *doc, st_shares **ret, st_err *err);
void st_shares_free(st_shares *s);
ST_DEFINE_FREEP(st_shares, st_shares_free)

#endif
