/* See remedy.h. */
#include "stintd/remedy.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "control/remedies.h"
#include "stintd/child.h"

#define LOOK_MS 2000 /* between two looks for something to do */

struct st_remedies {
    st_serve *serve;
    char *program; /* NULL: none */
    int64_t timeout_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool stopping(st_remedies *r)
{
    bool stop;

    pthread_mutex_lock(&r->lock);
    stop = r->stop;
    pthread_mutex_unlock(&r->lock);
    return stop;
}

int st_remedies_check(const char *program, st_err *err)
{
    struct stat st;

    if (!program)
        return 0;
    if (program[0] != '/')
        return st_fail(err, ST_EINVAL, "remedy: %.200s must be a path from / on", program);
    if (stat(program, &st) < 0 || !S_ISREG(st.st_mode) || access(program, X_OK) < 0)
        return st_fail(err, ST_EINVAL, "remedy: %.200s is no program that can be run", program);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return st_fail(err, ST_EINVAL, "remedy: others may write to %.200s; chmod go-w it",
                       program);
    return 0;
}

/* ---- the program ------------------------------------------------------------------------------- */

static bool ends(void *ctx)
{
    return stopping(ctx);
}

static void read_text(const st_strbuf *out, st_remedy_turn *turn, bool *ret_good)
{
    json_t *doc = out->n > 0 ? json_loadb(out->s, out->n, 0, NULL) : NULL;
    const char *text = json_string_value(json_object_get(doc, "text"));

    *ret_good = json_is_object(doc);
    if (text)
        st_said_text(text, turn->text, sizeof turn->text);
    json_decref(doc);
}

static void run_program(st_remedies *r, st_remedy_turn *turn)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *argv[] = {r->program, NULL};
    int status = st_child_run(
        &(st_child){
            .argv = argv, .input = turn->ask, .timeout_ms = r->timeout_ms, .ends = ends, .ctx = r},
        &out);
    bool good;

    if (status == -2) {
        turn->state = "broken";
        snprintf(turn->text, sizeof turn->text, "the program cannot be run: %s", strerror(errno));
        return;
    }
    read_text(&out, turn, &good);
    if (status < 0) {
        turn->state = "timeout";
        snprintf(turn->text, sizeof turn->text, "it was killed after %" PRId64 " s",
                 r->timeout_ms / 1000);
    } else if (status == 126 || status == 127 || (status == 0 && !good)) {
        turn->state = "broken";
        snprintf(turn->text, sizeof turn->text,
                 status == 0 ? "it answered no JSON" : "the program cannot be run (status %d)",
                 status);
    } else {
        turn->state = status == 0 ? "done" : "failed";
        if (!turn->text[0])
            snprintf(turn->text, sizeof turn->text, "status %d", status);
    }
}

/* ---- the thread ---------------------------------------------------------------------------------- */

/* False: there is nothing to do, or the store is down. */
static bool one(st_remedies *r)
{
    st_remedy_turn turn = {.state = "said"};
    st_remedy_cmd next = {.cmd = {.run = st_remedies_next}, .turn = &turn};
    st_remedy_cmd done = {.cmd = {.run = st_remedies_done}, .turn = &turn};
    int64_t begun;
    st_err err;

    if (st_serve_do(r->serve, &next.cmd, &err) < 0 || !turn.ask) {
        free(turn.ask);
        return false;
    }
    begun = now_ms();
    if (r->program)
        run_program(r, &turn);
    else
        snprintf(turn.text, sizeof turn.text, "%s", "no program is configured (remedy)");
    turn.took_ms = now_ms() - begun;
    free(ST_TAKE(turn.ask));
    (void)st_serve_do(r->serve, &done.cmd, &err); /* else it is lost, and told so with the next */
    return true;
}

static void *loop(void *arg)
{
    st_remedies *r = arg;

    while (!stopping(r)) {
        struct timespec until;

        if (one(r))
            continue;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOOK_MS / 1000;
        pthread_mutex_lock(&r->lock);
        while (!r->stop && pthread_cond_timedwait(&r->wake, &r->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

int st_remedies_new(st_serve *serve, const char *program, int64_t timeout_ms, st_remedies **ret,
                    st_err *err)
{
    st_remedies *r = st_xcalloc(1, sizeof *r);
    pthread_condattr_t attr;
    int e;

    r->serve = serve;
    r->program = program ? st_xstrdup(program) : NULL;
    r->timeout_ms = timeout_ms;
    ST_ASSERT(pthread_mutex_init(&r->lock, NULL) == 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&r->wake, &attr) == 0);
    pthread_condattr_destroy(&attr);
    e = pthread_create(&r->thread, NULL, loop, r);
    if (e != 0) {
        free(r->program);
        free(r);
        return st_fail(err, ST_EINTERNAL, "the remedies' thread cannot be started (%d)", e);
    }
    *ret = r;
    return 0;
}

void st_remedies_free(st_remedies *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r->program);
    free(r);
}
