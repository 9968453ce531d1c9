/*
 * The follower (control/follower.h).
 */
#include "control/follower.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "control/feed.h"
#include "control/state.h"

#define WAITING_MAX 8192                /* transactions it may be behind, */
#define BYTES_MAX   (INT64_C(64) << 20) /* and what they may weigh, before it is seeded instead */
#define SEED_MS     5000 /* at most one seed in so long, for a follower that is lost */
#define NICE        5    /* the writer goes first where there are too few processors */

/* One transaction, or a whole state. */
typedef struct feed {
    struct feed *next;
    bool seed;
    int64_t seq, at_ms;
    uint64_t hash;
    bool logged;
    st_strbuf data;   /* the log's row; or the state, as a snapshot has it */
    st_strbuf posted; /* entries, each with a NUL behind it */
    st_asides versions, docs;
} feed;

struct st_follower {
    st_control *copy;
    st_store *store; /* a reader, for what is only there; under store_lock */
    pthread_mutex_t store_lock;
    pthread_rwlock_t lock; /* of the copy and of its position; see enter() */
    pthread_mutex_t turn_lock;
    pthread_cond_t turn;
    uint64_t ticket, serving; /* under turn_lock */
    st_replay replay;         /* the thread's */
    int64_t position;
    uint64_t state; /* which one it is; likewise under lock */

    /* The loop's. The gate may be held by a thread that has to leave its processor to others: what cannot be handed over
     * at once waits here, and the loop goes on. */
    feed *mine, **mine_tail;
    atomic_uint_fast64_t given; /* transactions and states, by count; before anybody is answered */
    atomic_int_fast64_t committed;

    pthread_mutex_t gate; /* of all that follows */
    pthread_cond_t fed, moved;
    feed *head, **tail;
    size_t waiting;
    int64_t bytes;
    uint64_t played;
    bool lost, stopping;
    int64_t seeded_ms; /* by the monotonic clock */
    st_follower_stats stats;
    bool runs; /* of who starts and stops it */
    pthread_t thread;
};

static int64_t monotonic_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void feed_free(feed *f)
{
    if (!f)
        return;
    st_strbuf_done(&f->data);
    st_strbuf_done(&f->posted);
    st_asides_done(&f->versions);
    st_asides_done(&f->docs);
    free(f);
}

static int64_t weight(const feed *f)
{
    return (int64_t)(sizeof *f + f->data.n + f->posted.n);
}

/* ---- what is told besides ------------------------------------------------------------------- */

/* Of a job's document only the workload, the class and labels are ever asked for, and few have any. */
static void tell_words(st_control *ctl, const st_live *live, st_asides *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_doc_words words;

    st_doc_names(st_live_doc(ctl, live), arena, &words);
    if (!words.workload && !words.labels && !words.priority_class)
        return;
    st_strbuf_addf(&doc, "{\"labels\":%s", words.labels ? words.labels : "{}");
    if (words.workload) {
        st_strbuf_add(&doc, ",\"workload\":");
        st_quote_json(&doc, words.workload);
    }
    if (words.priority_class) {
        st_strbuf_add(&doc, ",\"priority_class\":");
        st_quote_json(&doc, words.priority_class);
    }
    st_strbuf_addc(&doc, '}');
    st_asides_add(ret, (int64_t)live->id, st_strbuf_str(&doc));
}

void st_tx_tell_job(st_tx *tx, const st_live *live)
{
    tell_words(tx->ctl, live, &tx->docs);
}

static void take_asides(st_control *copy, const feed *f)
{
    for (size_t i = 0; i < f->versions.n; i++)
        if (f->versions.v[i].n > 0)
            st_map_put(copy->versions, f->versions.v[i].text, f->versions.v[i].n);
        else
            st_map_del(copy->versions, f->versions.v[i].text);
    for (size_t i = 0; i < f->docs.n; i++) {
        st_live *live = st_xcalloc(1, sizeof *live);

        *live = (st_live){.id = (uint64_t)f->docs.v[i].n, .doc = st_xstrdup(f->docs.v[i].text)};
        st_control_add_live(copy, live);
    }
}

static void forget_ended(st_control *copy, const st_effects *fx)
{
    for (size_t i = 0; i < fx->list.n; i++) {
        st_live *live =
            fx->list.v[i].kind == ST_FX_END ? st_control_known(copy, fx->list.v[i].job) : NULL;
        if (live)
            st_vec_push(&copy->over, live);
    }
    st_rows_forget_ended(copy);
}

/* ---- taking turns ------------------------------------------------------------------------------ */

/* In order of arrival: rows that come one behind the other must not keep questions out, nor questions rows. */
static void enter(st_follower *fl, bool alone)
{
    uint64_t mine;

    pthread_mutex_lock(&fl->turn_lock);
    mine = fl->ticket++;
    while (fl->serving != mine)
        pthread_cond_wait(&fl->turn, &fl->turn_lock);
    pthread_mutex_unlock(&fl->turn_lock);
    if (alone)
        pthread_rwlock_wrlock(&fl->lock);
    else
        pthread_rwlock_rdlock(&fl->lock);
    pthread_mutex_lock(&fl->turn_lock);
    fl->serving++;
    pthread_cond_broadcast(&fl->turn);
    pthread_mutex_unlock(&fl->turn_lock);
}

/* ---- playing ---------------------------------------------------------------------------------- */

static int play_entries(st_control *copy, const feed *f, st_err *err)
{
    st_billing *b = copy->billing;
    int r = 0;

    for (size_t at = 0; r == 0 && at < f->posted.n;) {
        size_t len = strlen(f->posted.s + at);
        st_entry e;

        st_arena_reset(b->arena);
        r = st_entry_read(f->posted.s + at, len, b->arena, &e, err);
        if (r == 0)
            r = st_billing_apply(b, b->ledger, &e, err);
        if (r == 0)
            b->books.last_ms = ST_MAX(b->books.last_ms, e.at_ms);
        at += len + 1;
    }
    return r;
}

static int play_row(st_follower *fl, const feed *f, st_err *err)
{
    st_control *copy = fl->copy;
    const st_log_row row = {.seq = f->seq, .at_ms = f->at_ms, .data = {f->data.s, f->data.n}};
    int r = 0;

    if (f->logged) {
        r = st_replay_play(copy, &fl->replay, &row, true, err);
        if (r == 0 && st_core_hash(copy->core) != f->hash)
            r = st_fail(err, ST_ECORRUPT, "row %" PRId64 " leads to another state here", f->seq);
        if (r == 0)
            st_billing_begin(copy, &fl->replay.notes, f->at_ms);
    }
    if (r == 0)
        r = play_entries(copy, f, err);
    take_asides(copy, f);
    if (f->logged)
        forget_ended(copy, &fl->replay.fx);
    return r;
}

/* The old state is given up only for a new one that is whole. */
static int play_seed(st_follower *fl, const feed *f, st_err *err)
{
    int r;

    st_control_unload(fl->copy);
    fl->copy->live = st_idmap_new();
    fl->copy->versions = st_map_new();
    r = st_billing_load(fl->copy, f->data.s, f->data.n, err);
    take_asides(fl->copy, f);
    return r;
}

static int play(st_follower *fl, const feed *f, st_err *err)
{
    int r;

    enter(fl, true);
    r = f->seed ? play_seed(fl, f, err) : play_row(fl, f, err);
    fl->position = fl->copy->log_seq = f->seq;
    fl->state++;
    pthread_rwlock_unlock(&fl->lock);
    return r;
}

/* ---- the thread -------------------------------------------------------------------------------- */

typedef struct nothing {
    st_cmd cmd;
} nothing;

static int run_nothing(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)tx;
    (void)cmd;
    (void)err;
    return 0;
}

static void done_nothing(st_cmd *cmd, const st_err *err)
{
    (void)err;
    free(cmd);
}

/* The loop looks at the follower when a turn is over: let there be one. */
static void call_for_seed(st_control *ctl)
{
    nothing *n = st_xcalloc(1, sizeof *n);

    n->cmd.run = run_nothing;
    n->cmd.done = done_nothing;
    if (!st_control_post(ctl, &n->cmd))
        free(n);
}

/* With the gate held. What is behind a lost row is of no use either. */
static void drop_waiting(st_follower *fl)
{
    while (fl->head) {
        feed *f = fl->head;

        fl->head = f->next;
        fl->played++;
        feed_free(f);
    }
    fl->tail = &fl->head;
    fl->waiting = 0;
    fl->bytes = 0;
}

/* With the gate held: it gets a whole state as soon as there may be one. */
static void lose(st_follower *fl)
{
    fl->lost = true;
    drop_waiting(fl);
}

static feed *take(st_follower *fl)
{
    feed *f;

    pthread_mutex_lock(&fl->gate);
    while (!fl->head && !fl->stopping)
        pthread_cond_wait(&fl->fed, &fl->gate);
    f = fl->stopping ? NULL : fl->head;
    if (f) {
        fl->head = f->next;
        if (!fl->head)
            fl->tail = &fl->head;
        fl->waiting--;
        fl->bytes -= weight(f);
    }
    pthread_mutex_unlock(&fl->gate);
    return f;
}

static void *follow(void *arg)
{
    st_control *ctl = arg;
    st_follower *fl = ctl->follower;
    feed *f;

    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    while ((f = take(fl))) {
        st_err err = {0};
        int r = play(fl, f, &err);

        if (r < 0)
            st_control_say(ctl, "event=follower_lost seq=%" PRId64 " reason=\"%s\"", f->seq,
                           err.msg);
        pthread_mutex_lock(&fl->gate);
        fl->played++;
        fl->stats.rows += !f->seed;
        fl->stats.seeds += f->seed;
        if (r < 0)
            lose(fl);
        pthread_cond_broadcast(&fl->moved);
        pthread_mutex_unlock(&fl->gate);
        if (r < 0)
            call_for_seed(ctl);
        feed_free(f);
    }
    return NULL;
}

/* ---- in the loop ---------------------------------------------------------------------------------- */

/* With the gate held. */
static void append(st_follower *fl, feed *f)
{
    *fl->tail = f;
    fl->tail = &f->next;
    fl->waiting++;
    fl->bytes += weight(f);
    pthread_cond_signal(&fl->fed);
}

/* It is known to whoever asks from now on, who waits until it was played. */
static void announce(st_follower *fl, const feed *f)
{
    atomic_fetch_add(&fl->given, 1); /* first: who knows the position waits for it */
    atomic_store(&fl->committed, f->seq);
}

static feed *next_of_mine(st_follower *fl)
{
    feed *f = fl->mine;

    if (f) {
        fl->mine = f->next;
        fl->mine_tail = fl->mine ? fl->mine_tail : &fl->mine;
        f->next = NULL;
    }
    return f;
}

static feed *whole_state(st_control *ctl)
{
    feed *f = st_xcalloc(1, sizeof *f);

    f->seed = true;
    f->seq = ctl->log_seq;
    st_billing_save(ctl, &f->data);
    st_versions_tell(ctl, &f->versions);
    for (size_t i = 0; i < ctl->all.n; i++)
        tell_words(ctl, ctl->all.v[i], &f->docs);
    return f;
}

void st_follower_seed(st_control *ctl)
{
    st_follower *fl = ctl->follower;
    feed *f;

    if (!fl)
        return;
    if (ctl->pace.owed) { /* with the pass */
        pthread_mutex_lock(&fl->gate);
        lose(fl);
        fl->seeded_ms = monotonic_ms() - SEED_MS;
        pthread_mutex_unlock(&fl->gate);
        return;
    }
    f = whole_state(ctl);
    announce(fl, f);
    pthread_mutex_lock(&fl->gate);
    for (feed *old; (old = next_of_mine(fl)); fl->played++)
        feed_free(old);
    drop_waiting(fl);
    append(fl, f);
    fl->lost = false;
    fl->seeded_ms = monotonic_ms();
    pthread_mutex_unlock(&fl->gate);
}

bool st_follower_hand_over(st_control *ctl)
{
    st_follower *fl = ctl->follower;
    feed *drop = NULL, *f;
    bool seed;

    if (!fl || pthread_mutex_trylock(&fl->gate) != 0)
        return !fl;
    while ((f = next_of_mine(fl))) {
        if (fl->waiting >= WAITING_MAX || fl->bytes >= BYTES_MAX)
            lose(fl);
        if (!fl->lost) {
            append(fl, f);
            continue;
        }
        f->next = drop; /* the seed will have it */
        drop = f;
        fl->played++;
    }
    seed = fl->lost && !ctl->down && !ctl->pace.owed && monotonic_ms() - fl->seeded_ms >= SEED_MS;
    pthread_mutex_unlock(&fl->gate);
    for (; drop; drop = f) {
        f = drop->next;
        feed_free(drop);
    }
    if (seed)
        st_follower_seed(ctl);
    return true;
}

void st_follower_feed(st_tx *tx, bool logged)
{
    st_control *ctl = tx->ctl;
    st_follower *fl = ctl->follower;
    feed *f;

    if (!fl || (!logged && tx->posted.n == 0 && tx->versions.n == 0))
        return;
    f = st_xcalloc(1, sizeof *f);
    *f = (feed){.seq = ctl->log_seq,
                .at_ms = tx->now,
                .hash = st_core_hash(ctl->core),
                .logged = logged,
                .data = tx->log,
                .posted = tx->posted,
                .versions = tx->versions,
                .docs = tx->docs};
    tx->log = tx->posted = (st_strbuf){0};
    memset(&tx->versions, 0, sizeof tx->versions);
    memset(&tx->docs, 0, sizeof tx->docs);
    announce(fl, f);
    *fl->mine_tail = f;
    fl->mine_tail = &f->next;
    st_follower_hand_over(ctl);
}

int st_follower_start(st_control *ctl, st_err *err)
{
    st_follower *fl = st_xcalloc(1, sizeof *fl);
    pthread_condattr_t clock;
    feed *f;
    int r;

    ctl->follower = fl;
    fl->tail = &fl->head;
    fl->mine_tail = &fl->mine;
    fl->replay.arena = st_arena_new();
    fl->seeded_ms = monotonic_ms() - SEED_MS;
    ST_ASSERT(pthread_rwlock_init(&fl->lock, NULL) == 0);
    ST_ASSERT(pthread_mutex_init(&fl->turn_lock, NULL) == 0);
    ST_ASSERT(pthread_cond_init(&fl->turn, NULL) == 0);
    ST_ASSERT(pthread_mutex_init(&fl->gate, NULL) == 0);
    ST_ASSERT(pthread_mutex_init(&fl->store_lock, NULL) == 0);
    ST_ASSERT(pthread_cond_init(&fl->fed, NULL) == 0);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&fl->moved, &clock) == 0);
    pthread_condattr_destroy(&clock);
    r = st_control_open_copy(ctl->store, &fl->copy, err);
    if (r == 0)
        r = st_store_open_reader(ctl->store, &fl->store, err);
    if (r == 0)
        r = st_billing_zone_as(fl->copy, ctl, err);
    if (r == 0) {
        fl->copy->options = ctl->options;
        fl->copy->options.engine = NULL;
        fl->copy->options.listen = NULL;
        fl->copy->store = NULL;
        st_directory_free(fl->copy->dir);
        fl->copy->dir = ctl->dir; /* it has a lock of its own */
        fl->copy->follower = fl;
        f = whole_state(ctl);
        r = play(fl, f, err);
        atomic_store(&fl->committed, f->seq);
        fl->lost =
            ctl->pace.owed; /* what it was given does not know what for: the pass brings another */
        feed_free(f);
    }
    if (r == 0 && pthread_create(&fl->thread, NULL, follow, ctl) != 0)
        r = st_fail(err, ST_EINTERNAL, "the follower's thread cannot be started");
    fl->runs = r == 0;
    if (r < 0)
        st_follower_free(ctl);
    return r;
}

void st_follower_stop(st_control *ctl)
{
    st_follower *fl = ctl->follower;

    if (!fl || !fl->runs)
        return;
    pthread_mutex_lock(&fl->gate);
    fl->stopping = true;
    pthread_cond_broadcast(&fl->fed);
    pthread_cond_broadcast(&fl->moved);
    pthread_mutex_unlock(&fl->gate);
    pthread_join(fl->thread, NULL);
    fl->runs = false;
}

void st_follower_free(st_control *ctl)
{
    st_follower *fl = ctl->follower;

    if (!fl)
        return;
    st_follower_stop(ctl);
    drop_waiting(fl);
    for (feed *f; (f = next_of_mine(fl));)
        feed_free(f);
    if (fl->copy && fl->copy->dir == ctl->dir)
        fl->copy->dir = NULL;
    st_control_free_copy(fl->copy);
    st_store_close(fl->store);
    st_replay_done(&fl->replay);
    pthread_rwlock_destroy(&fl->lock);
    pthread_mutex_destroy(&fl->turn_lock);
    pthread_cond_destroy(&fl->turn);
    pthread_mutex_destroy(&fl->gate);
    pthread_mutex_destroy(&fl->store_lock);
    pthread_cond_destroy(&fl->fed);
    pthread_cond_destroy(&fl->moved);
    free(fl);
    ctl->follower = NULL;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static void set_deadline(struct timespec *ret)
{
    clock_gettime(CLOCK_MONOTONIC, ret);
    ret->tv_sec += ST_READ_WAIT_MS / 1000;
    ret->tv_nsec += ST_READ_WAIT_MS % 1000 * 1000000;
    if (ret->tv_nsec >= 1000000000) {
        ret->tv_sec++;
        ret->tv_nsec -= 1000000000;
    }
}

/* Until everything that was committed when the question came has been played; or long enough: what there is, is true
 * of a moment, and says of which. */
static int wait_for_now(st_follower *fl, int64_t at_least, st_err *err)
{
    int64_t committed = atomic_load(&fl->committed);
    uint64_t now = atomic_load(&fl->given);
    struct timespec until;
    int r = 0, late = 0;

    set_deadline(&until);
    pthread_mutex_lock(&fl->gate);
    if (at_least > committed)
        r = st_fail(err, ST_EINVAL,
                    "invalid Stint-Position; send one from an earlier answer, or none");
    while (r == 0 && (fl->played < now || fl->lost) && !fl->stopping && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&fl->moved, &fl->gate, &until);
    if (r == 0 && fl->stopping)
        r = st_fail(err, ST_EDOWN, "stintd is stopping");
    pthread_mutex_unlock(&fl->gate);
    return r;
}

int st_control_read(st_control *ctl, st_read_how how, int64_t at_least, st_read_fn *fn, void *ctx,
                    int64_t *ret_position, st_err *err)
{
    st_follower *fl = ctl->follower;
    int r;

    if (!fl)
        return st_fail(err, ST_EDOWN, "stintd is starting or stopping");
    r = wait_for_now(fl, at_least, err);
    if (r < 0)
        return r;
    enter(fl, how == ST_READ_ALONE);
    if (!fl->copy->core) {
        r = st_fail(err, ST_EDOWN, "the state is being read again; try again in a moment");
    } else {
        st_tx tx = {.ctl = fl->copy,
                    .now = ST_MAX(st_control_now(ctl), st_control_last_ms(fl->copy))};

        if (ret_position)
            *ret_position = fl->position;
        r = fn(ctx, &tx, err);
    }
    pthread_rwlock_unlock(&fl->lock);
    return r;
}

uint64_t st_tx_state(const st_tx *tx)
{
    return tx->ctl->follower->state;
}

int64_t st_control_position(st_control *ctl)
{
    return ctl->follower ? atomic_load(&ctl->follower->committed) : 0;
}

json_t *st_tx_node_past(st_tx *tx, const char *kind, const char *node)
{
    st_follower *fl = tx->ctl->follower;
    json_t *list;
    st_err err;
    int r;

    pthread_mutex_lock(&fl->store_lock);
    list = st_document_json(fl->store, kind, node, &r, &err);
    pthread_mutex_unlock(&fl->store_lock);
    return list;
}

void st_tx_flags_of(st_tx *tx, const char *node, st_flag_fn fn, void *ctx)
{
    st_follower *fl = tx->ctl->follower;

    pthread_mutex_lock(&fl->store_lock);
    st_node_flags(fl->store, node, fn, ctx);
    pthread_mutex_unlock(&fl->store_lock);
}

void st_tx_key_of(st_tx *tx, const char *node, char ret[ST_KEY_TEXT], bool *ret_rejoin)
{
    st_follower *fl = tx->ctl->follower;

    pthread_mutex_lock(&fl->store_lock);
    st_node_key(fl->store, node, ret, ret_rejoin);
    pthread_mutex_unlock(&fl->store_lock);
}

void st_control_follower_stats(st_control *ctl, st_follower_stats *ret)
{
    st_follower *fl = ctl->follower;

    *ret = (st_follower_stats){0};
    if (!fl)
        return;
    pthread_mutex_lock(&fl->gate);
    *ret = fl->stats;
    ret->committed = atomic_load(&fl->committed);
    ret->waiting = fl->waiting;
    pthread_mutex_unlock(&fl->gate);
}
