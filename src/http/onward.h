/*
 * Requests to servers that nobody trusts, over sockets that somebody else has made; and their answers as those of calls.
 * One thread has all of them, so that one that takes long costs memory and no thread.
 *
 * Invariants:
 *  1 One is over exactly once. Its call is answered exactly once: with what came, or with an error of ours. One that has
 *    begun and cannot be ended well is cut.
 *  2 What is held of an answer is bounded: nothing is read while the client does not take what there is.
 *  3 Where nothing moves for too long, it ends.
 */
#ifndef ST_HTTP_ONWARD_H
#define ST_HTTP_ONWARD_H

#include "http/http.h"
#include "http/inflow.h"
#include "http/upstream.h"

typedef struct st_onwards st_onwards;

typedef struct st_onward {
    st_call *call;     /* deferred; NULL: only the status is wanted */
    st_strbuf request; /* head, and the body where there is no inflow; taken */
    st_inflow *in;     /* the call's body, which follows as it comes; taken. NULL: none does */
    bool chunked;      /* in chunks */
    bool head_only;    /* it is HEAD */
    int64_t head_ms;   /* for the answer's head to come */
    int64_t idle_ms;   /* without anything moving, behind it */
    /* A header of the answer: sets it on the call if it is to pass. NULL: none passes. */
    void (*header)(void *ctx, st_call *call, const char *name, const char *value);
    /* Before so many bytes of a body in chunks go on: whether they may. NULL: any. */
    int (*body)(void *ctx, size_t n, st_err *err);
    /* About once a second: whether it may still go on. NULL: always. */
    bool (*alive)(void *ctx);
    /* 101 came: from here on the call and the socket are its, with what came behind the head. `over` is not called. NULL: 101
     * makes no sense. */
    void (*switched)(void *ctx, st_call *call, const st_upstream *up, int fd, const char *early,
                     size_t n);
    /* Once, at the end, from the thread: the status that came, or 0 and why none did. */
    void (*over)(void *ctx, int status, const st_err *err);
    void *ctx;
} st_onward;

int st_onwards_new(st_onwards **ret, st_err *err);
/* Cuts what is under way and ends the thread; before the server stops. */
void st_onwards_free(st_onwards *f);

/* From any thread. Takes its texts and the socket, which does not block; -1: there is none, for `why`. */
void st_onward_begin(st_onwards *f, const st_onward *x, int fd, const st_err *why);

#endif
