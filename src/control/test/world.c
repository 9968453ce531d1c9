/*
 * A control loop to try things on (test/world.h).
 */
#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "base/doc.h"
#include "control/notices.h"
#include "control/test/world.h"

static int64_t tell_time(void *ctx)
{
    world *w = ctx;
    void (*when_read)(world *) = __atomic_load_n(&w->when_read, __ATOMIC_ACQUIRE);
    int64_t now = __atomic_load_n(&w->now, __ATOMIC_RELAXED);

    if (when_read)
        when_read(w);
    return now;
}

static void listen_in(void *ctx, const char *line)
{
    world *w = ctx;

    if (strstr(line, "event=reconciled differences=0"))
        __atomic_add_fetch(&w->compared, 1, __ATOMIC_RELAXED);
    if (strstr(line, "event=book_shared account=team id="))
        w->shared++;
    if (strstr(line, "event=log_parted "))
        w->parted++;
    if (strstr(line, "event=entry_refused") || strstr(line, "event=fix_of_nothing")) {
        __atomic_add_fetch(&w->refused, 1, __ATOMIC_RELAXED);
        print_error("%s\n", line);
    }
}

static void hear(void *ctx, const st_notice *n)
{
    world *w = ctx;

    if (n->cap) {
        size_t at = strlen(w->capped);

        snprintf(w->capped + at, sizeof w->capped - at, "%s ", n->cap->does);
    }
    w->unusual += n->anomaly != NULL;
    if (!n->budget)
        return;
    if (w->notices)
        st_notices_hear(w->ctl, n);
    w->warnings++;
    w->warned = *n->budget;
    snprintf(w->warned_account, sizeof w->warned_account, "%s", n->account);
}

void let_pass(world *w, int64_t ms)
{
    __atomic_add_fetch(&w->now, ms, __ATOMIC_RELAXED);
}

int open_control(world *w, st_err *err)
{
    const st_control_options options = {.store = w->place.path,
                                        .store_options = {.vfs = VFS},
                                        .policy = st_policy_default(),
                                        .clock = tell_time,
                                        .log = listen_in,
                                        .listen = hear,
                                        .ctx = w,
                                        .engine = w->engine,
                                        .pass_long_us = w->pass_long_us,
                                        .snap_rows = w->snap_rows,
                                        .tell_ms = w->tell_ms,
                                        .keep_jobs_ms = w->keep_jobs_ms,
                                        .keep_log_ms = w->keep_log_ms,
                                        .billing = w->billing};
    int r = st_control_new(&options, &w->ctl, err);

    return r < 0 ? r : st_control_start(w->ctl, err);
}

int begin_at(void **state, int64_t now)
{
    st_err err = {0};
    world *w = calloc(1, sizeof *w);

    assert_true(sodium_init() >= 0);
    scratch_init(&w->place);
    w->vfs = faulty_new(VFS);
    w->now = now;
    assert_ok(open_control(w, &err));
    *state = w;
    return 0;
}

int begin(void **state)
{
    return begin_at(state, 1000);
}

int end(void **state)
{
    world *w = *state;

    st_control_free(w->ctl);
    assert_int_equal(w->refused, 0);
    faulty_free(w->vfs);
    scratch_done(&w->place);
    free(w);
    return 0;
}

/* ---- commands, waited for ------------------------------------------------------------------ */

typedef struct wait_for {
    st_cmd cmd;
    st_cmd *inner;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    st_err err;
} wait_for;

static int run_inner(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd *inner = ((wait_for *)cmd)->inner;

    return inner->run(tx, inner, err);
}

static void publish_inner(st_control *ctl, st_cmd *cmd)
{
    st_cmd *inner = ((wait_for *)cmd)->inner;

    if (inner->publish)
        inner->publish(ctl, inner);
}

static void wake(st_cmd *cmd, const st_err *err)
{
    wait_for *w = (wait_for *)cmd;

    pthread_mutex_lock(&w->lock);
    if (err)
        w->err = *err;
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

int do_cmd(world *w, st_cmd *cmd, st_err *err)
{
    wait_for wait = {
        .cmd = {.run = run_inner, .publish = publish_inner, .done = wake, .calm = cmd->calm},
        .inner = cmd,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .cond = PTHREAD_COND_INITIALIZER};

    assert_true(st_control_post(w->ctl, &wait.cmd));
    pthread_mutex_lock(&wait.lock);
    while (!wait.done)
        pthread_cond_wait(&wait.cond, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    *err = wait.err;
    return wait.err.code ? -wait.err.code : 0;
}

const st_identity owner = {.role = ST_ROLE_OWNER, .user = "root", .source = "test"};

void make_event(world *w, st_event event)
{
    st_err err = {0};
    st_cmd_event cmd = {.who = owner, .event = event, .verb = "test", .target = "test"};

    st_cmd_event_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
}

int put_account(world *w, bool create, const char *name, const char *parent, const char *doc,
                st_err *ret)
{
    const st_spec_names names = st_directory_names(st_control_directory(w->ctl));
    st_cmd_account cmd = {.who = owner, .create = create, .name = name, .parent = parent};
    const st_doc_node *children;
    st_doc *parsed;
    st_err err = {0};
    int r;

    assert_ok(st_doc_parse(name, doc, strlen(doc), &parsed, &err));
    assert_ok(
        st_spec_account(parsed, st_doc_root(parsed), &names, create, &cmd.said, &children, &err));
    st_cmd_account_put(&cmd);
    r = do_cmd(w, &cmd.cmd, ret);
    st_strbuf_done(&cmd.floors);
    st_doc_free(parsed);
    return r;
}

void make_account(world *w, const char *name, const char *parent, const char *doc)
{
    st_err err = {0};

    assert_ok(put_account(w, true, name, parent, doc, &err));
}

void make_fleet(world *w)
{
    st_event type = {.kind = ST_EV_TYPE}, pool = {.kind = ST_EV_POOL}, node = {.kind = ST_EV_NODE};

    type.u.type.name = "h100";
    type.u.type.vram_mib = 81920;
    make_event(w, type);
    pool.u.pool.name = "main";
    pool.u.pool.levels = ST_POOL_LEVELS;
    pool.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    make_event(w, pool);
    node.u.node = (st_node_spec){.name = "n1", .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20};
    make_event(w, node);
    make_account(w, "team", "", "{name: team}");
}

int submit(world *w, const char *key, const char *body, uint64_t *ret_id, st_err *err)
{
    st_submit_item item = {.spec = {.name = "train",
                                    .account = "team",
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .limit_ms = w->limit_ms ? w->limit_ms : 3600000,
                                    .shape = {.gpus = 1, .types = 1, .cpu_m = 1000}},
                           .doc = body};
    st_cmd_submit cmd = {.who = owner, .key = key, .items = &item, .n = 1};
    int r;

    crypto_generichash(cmd.digest, sizeof cmd.digest, (const unsigned char *)body, strlen(body),
                       NULL, 0);
    st_cmd_submit_init(&cmd);
    r = do_cmd(w, &cmd.cmd, err);
    *ret_id = item.id;
    return r;
}

void restart(world *w)
{
    st_err err = {0};
    st_control_free(w->ctl);
    w->ctl = NULL;
    assert_ok(open_control(w, &err));
}
