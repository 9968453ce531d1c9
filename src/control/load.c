/*
 * From the store back to a running core: the snapshot, the log behind it, and what is remembered
 * of live jobs.
 */
#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/billing.h"
#include "control/state.h"

/* A fact of the store that is made up when it is first asked for. */
static int secret(st_control *ctl, const char *key, unsigned char *bytes, size_t n, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char hex[65];
    const char *text;
    int r = st_store_meta_get(ctl->store, key, arena, &text, err);

    ST_ASSERT(n * 2 < sizeof hex);
    if (r == -ST_ENOENT) {
        randombytes_buf(bytes, n);
        sodium_bin2hex(hex, sizeof hex, bytes, n);
        return st_meta_keep(ctl->store, key, hex, err);
    }
    if (r == 0 && sodium_hex2bin(bytes, n, text, strlen(text), NULL, NULL, NULL) != 0)
        r = st_fail(err, ST_ECORRUPT, "the store's %s is damaged; restore a backup", key);
    return r;
}

/* It is taken, not written: who read the same number at the same time and was slower does not get it. Nobody is told
 * before it is on the disk. */
static int swap_epoch(st_control *ctl, const char *was, int64_t epoch, st_err *err)
{
    char number[32];

    snprintf(number, sizeof number, "%" PRId64, epoch);
    ctl->epoch_next = epoch;
    return st_store_meta_swap(ctl->store, "epoch", was, number, err);
}

int st_epoch_take(st_control *ctl, int64_t epoch, st_err *err)
{
    char was[32];

    snprintf(was, sizeof was, "%" PRId64, ctl->epoch);
    return swap_epoch(ctl, was, epoch, err);
}

void st_epoch_taken(st_control *ctl)
{
    ctl->epoch = ctl->epoch_next;
    if (ctl->options.engine)
        st_engine_lead(ctl->options.engine, ctl->epoch);
}

static int read_epoch(st_control *ctl, st_arena *arena, const char **ret, int64_t *ret_epoch,
                      st_err *err)
{
    int r = st_store_meta_get(ctl->store, "epoch", arena, ret, err);

    *ret_epoch = r == 0 ? strtoll(*ret, NULL, 10) : 0;
    return r == -ST_ENOENT ? 0 : r;
}

/* Each start as the one that decides has a higher number than all before. */
static int next_epoch(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *was = NULL;
    int64_t epoch = 0;
    int r = st_store_begin(ctl->store, err);

    if (r < 0)
        return r;
    r = read_epoch(ctl, arena, &was, &epoch, err);
    if (r == 0)
        r = swap_epoch(ctl, was, ST_MAX(epoch + 1, st_restoring_epoch(ctl)), err);
    r = st_store_end(ctl->store, r, err);
    if (r == 0)
        st_epoch_taken(ctl);
    return r;
}

/* A commit that took one may have come to the disk although it failed. */
int st_epoch_confirm(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *was = NULL;
    int64_t epoch = 0;
    int r = st_store_begin(ctl->store, err);

    if (r < 0)
        return r;
    r = read_epoch(ctl, arena, &was, &epoch, err);
    if (r == 0 && epoch != ctl->epoch && epoch != ctl->epoch_next)
        r = st_fail(err, ST_ESTATE, "another stintd decides since, with epoch %" PRId64, epoch);
    if (r == 0)
        r = swap_epoch(ctl, was, epoch, err);
    r = st_store_end(ctl->store, r, err);
    if (r == 0 && ctl->epoch_next != ctl->epoch)
        st_epoch_taken(ctl);
    return r;
}

/* ---- the core ------------------------------------------------------------------------------ */

void st_replay_done(st_replay *rp)
{
    st_effects_done(&rp->fx);
    st_vec_free(&rp->notes);
    st_arena_free(ST_TAKE(rp->arena));
}

int st_replay_play(st_control *ctl, st_replay *rp, const st_log_row *row, bool strict, st_err *err)
{
    size_t at = 0;
    bool events = false;
    int r = 0;

    st_arena_reset(rp->arena);
    st_effects_clear(&rp->fx);
    st_vec_clear(&rp->notes);
    while (at < row->data.n && !st_notes_here(row->data.p, row->data.n, at)) {
        st_event event;
        st_err why;

        r = st_event_decode(row->data.p, row->data.n, &at, rp->arena, &event, err);

        if (r < 0)
            return st_fail_prefix(err, "row %" PRId64 " of the log: ", row->seq);
        events = true;
        if (st_core_apply(ctl->core, &event, row->at_ms, &rp->fx, &why) < 0 && strict)
            return st_fail(err, ST_ECORRUPT, "row %" PRId64 " of the log: %s is refused now: %s",
                           row->seq, st_event_name(event.kind), why.msg);
    }
    if (at < row->data.n)
        r = st_notes_read(row->data.p, row->data.n, at, &rp->notes, err);
    if (r < 0)
        return st_fail_prefix(err, "row %" PRId64 " of the log: ", row->seq);
    if (st_notes_pass(&rp->notes, events)) {
        st_core_settle(ctl->core, row->at_ms, &rp->fx);
        ctl->pace.owed = false;
    } else {
        ctl->pace.owed |= events;
    }
    st_money_meter(ctl, &rp->fx, &rp->notes, row->at_ms);
    ctl->last_ms = ST_MAX(ctl->last_ms, row->at_ms);
    return 0;
}

typedef struct loading {
    st_control *ctl;
    st_replay replay;
} loading;

static int replay_row(void *ctx, const st_log_row *row, st_err *err)
{
    loading *l = ctx;
    st_control *ctl = l->ctl;
    bool ours = strcmp(row->version, ST_LOG_VERSION) == 0;
    int r = st_replay_play(ctl, &l->replay, row, ours && !ctl->parted, err);

    if (r < 0)
        return r;
    if (ctl->billing->witness)
        ctl->billing->witness(ctl->billing->witness_ctx, ctl);
    ctl->log_seq = row->seq;
    if (st_core_hash(ctl->core) == row->hash || ctl->parted)
        return 0;
    if (ours)
        return st_fail(err, ST_ECORRUPT,
                       "row %" PRId64 " of the log does not lead to the state it led to when it "
                       "was written; restore a backup, or report this with a copy of the store",
                       row->seq);
    ctl->parted = true;
    st_control_say(ctl, "event=log_parted seq=%" PRId64 " written_by=%s", row->seq, row->version);
    return 0;
}

static int load_core(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    loading l = {.ctl = ctl};
    st_snap_row snap = {0};
    int r = st_store_snap_get(ctl->store, INT64_MAX, arena, &snap, err);

    if (r == 0)
        r = st_billing_load(ctl, snap.data.p, snap.data.n, err);
    else if (r == -ST_ENOENT) {
        ctl->core = st_core_new(&ctl->options.policy);
        r = 0;
    }
    if (r < 0)
        return r;
    ctl->snap_seq = ctl->log_seq = snap.seq;
    ctl->snap_ms = snap.at_ms;
    ctl->last_ms = ST_MAX(ctl->last_ms, snap.at_ms);
    l.replay.arena = st_arena_new();
    r = st_store_log_read(ctl->store, snap.seq + 1, replay_row, &l, err);
    st_replay_done(&l.replay);
    return r;
}

/* ---- live jobs ----------------------------------------------------------------------------- */

static void read_detail(st_live *live, const char *detail)
{
    json_t *root = json_loads(detail, 0, NULL);
    const json_t *since = json_object_get(root, "since_ms");

    live->stay = (int)json_integer_value(json_object_get(root, "stay"));
    live->ran_ms = json_integer_value(json_object_get(root, "ran_ms"));
    live->since_ms = since ? json_integer_value(since) : -1;
    if (json_object_get(root, "limit_ms")) {
        int64_t limit = json_integer_value(json_object_get(root, "limit_ms"));

        live->limit_ms = limit > 0 ? limit : ST_TIME_NEVER;
    }
    live->held_by = (int)json_integer_value(json_object_get(root, "held_by"));
    live->tries = (int)json_integer_value(json_object_get(root, "tries"));
    live->retry_ms = json_integer_value(json_object_get(root, "retry_ms"));
    live->by_ms = json_integer_value(json_object_get(root, "by_ms"));
    live->hard = json_object_get(root, "hard") != NULL;
    live->at_risk = live->risk_told = json_object_get(root, "at_risk") != NULL;
    json_decref(root);
}

/* What its pieces share; none: they are of a store from before they did. */
static int head_of(st_control *ctl, int64_t array, st_array_head **ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = NULL;
    const char *text = NULL;
    int64_t at;
    int r = 0;

    if (st_idmap_get(ctl->heads, (uint64_t)array, &at)) {
        *ret = (st_array_head *)(intptr_t)at;
        return 0;
    }
    arena = st_arena_new();
    r = st_store_array_get(ctl->store, array, arena, &text, err);
    if (r < 0 && r != -ST_ENOENT)
        return r;
    *ret = st_control_head(ctl, (uint64_t)array, text);
    return 0;
}

static int load_job(void *ctx, const st_job_row *row, st_err *err)
{
    st_control *ctl = ctx;
    const st_job *job = st_core_job(ctl->core, (uint64_t)row->id);
    st_array_head *head = NULL;
    st_live *live;
    int r;

    if (!job)
        return st_fail(err, ST_ECORRUPT,
                       "job %" PRId64 " is %s in the table of jobs, and the core does not have it",
                       row->id, row->state);
    r = row->part_of > 0 ? head_of(ctl, row->part_of, &head, err) : 0;
    if (r < 0)
        return r;
    live = st_xcalloc(1, sizeof *live);
    *live = (st_live){.id = (uint64_t)row->id,
                      .account = st_xstrdup(row->account),
                      .user = st_xstrdup(row->user_name),
                      .name = st_xstrdup(row->name),
                      .head = head,
                      .doc = st_xstrdup(row->spec),
                      .detail = st_xstrdup(row->result),
                      .submit_ms = row->submit_ms,
                      .start_ms = row->start_ms,
                      .end_ms = ST_STORE_NEVER,
                      .gpu_m = row->gpu_m,
                      .lost = row->lost,
                      .part_of = row->part_of,
                      .priority = job->priority,
                      .preemptions = job->preemptions,
                      .exit_code = ST_STORE_NEVER,
                      .state = job->stopping ? ST_JOB_STOPPING : job->state,
                      .class = job->class};
    read_detail(live, row->result);
    st_core_recall_stay(ctl->core, live->id, live->stay, 0);
    st_control_add_live(ctl, live);
    st_live_charge(ctl, live);
    return 0;
}

static int last_job(void *ctx, const st_job_row *row, st_err *err)
{
    (void)err;
    *(uint64_t *)ctx = (uint64_t)row->id;
    return 1;
}

static int load_jobs(st_control *ctl, st_err *err)
{
    const char *live[ST_JOB_PAUSED + 2];
    const st_job_filter running = {.states = live, .nstates = ST_ARRAY_LEN(live), .own_part = true};
    const st_job_filter newest = {.limit = 1};
    int r;

    for (int s = 0; s <= ST_JOB_PAUSED; s++)
        live[s] = st_job_state_name((st_job_state)s);
    live[ST_JOB_PAUSED + 1] = st_job_state_name(ST_JOB_STOPPING);
    ctl->last_id = 0;
    r = st_store_jobs_list(ctl->store, &newest, last_job, &ctl->last_id, err);
    if (r >= 0)
        r = st_store_jobs_list(ctl->store, &running, load_job, ctl, err);
    if (r >= 0 && ctl->all.n != st_core_njobs(ctl->core))
        r = st_fail(err, ST_ECORRUPT, "the core has %zu live jobs and the table of jobs has %zu",
                    st_core_njobs(ctl->core), ctl->all.n);
    return r < 0 ? r : 0;
}

/* ---- the rest ------------------------------------------------------------------------------ */

static int load_token(void *ctx, const st_token_row *row, st_err *err)
{
    st_control *ctl = ctx;
    (void)err;
    ctl->last_token = ST_MAX(ctl->last_token, row->id);
    st_directory_put_token(ctl->dir, row);
    return 0;
}

/* Rows of tokens that were removed are not there to be counted. */
static int load_last_token(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *text;
    int r = st_store_meta_get(ctl->store, ST_LAST_TOKEN, arena, &text, err);

    if (r == 0)
        ctl->last_token = ST_MAX(ctl->last_token, strtoll(text, NULL, 10));
    return r == -ST_ENOENT ? 0 : r;
}

/* Acts that nothing else follows from are in no other table. */
static int last_act(void *ctx, const st_audit_row *row, st_err *err)
{
    st_control *ctl = ctx;

    (void)err;
    ctl->last_ms = ST_MAX(ctl->last_ms, row->at_ms);
    return 0;
}

static int load_last_act(st_control *ctl, st_err *err)
{
    const st_audit_filter newest = {.limit = 1};

    return st_store_audit_list(ctl->store, &newest, last_act, ctl, err);
}

/* Who only looks cannot bring things in line. */
static int parted_copy(st_err *err)
{
    return st_fail(
        err, ST_ESTATE,
        "the log was written by another version of stintd, and this one decides otherwise; "
        "start this one once, which brings everything in line");
}

int st_control_load(st_control *ctl, st_err *err)
{
    bool first = ctl->epoch == 0;
    int r = 0;

    st_control_unload(ctl);
    ctl->parted = false;
    ctl->live = st_idmap_new();
    ctl->heads = st_idmap_new();
    ctl->versions = st_map_new();
    if (first)
        r = secret(ctl, "veil", ctl->veil_key, sizeof ctl->veil_key, err);
    if (r == 0)
        r = st_books_shared(ctl, false, err);
    if (r == 0)
        r = load_core(ctl, err);
    if (r == 0 && first)
        r = st_books_shared(ctl, true, err);
    if (r == 0)
        r = st_billing_fold(ctl, err);
    if (r == 0)
        r = load_last_act(ctl, err);
    if (r == 0)
        r = st_allowed_load(ctl, err);
    if (r == 0 && ctl->parted)
        r = ctl->lanes ? st_parted_agree(ctl, err) : parted_copy(err);
    if (r == 0)
        r = load_jobs(ctl, err);
    if (r == 0)
        r = st_versions_load(ctl, err);
    if (r == 0 && first)
        r = st_tokens_filed(ctl, err);
    if (r == 0 && first)
        r = st_store_tokens(ctl->store, load_token, ctl, err);
    if (r == 0)
        st_count_tokens(ctl, st_core_now(ctl->core));
    if (r >= 0)
        r = st_count_keys(ctl, err);
    if (r == 0 && first)
        r = load_last_token(ctl, err);
    if (r == 0)
        r = st_bookings_load(ctl, err);
    if (r == 0 && ctl->lanes)
        r = st_notices_load(ctl, err);
    if (r == 0)
        r = st_mark_load(ctl, err);
    if (r == 0 && ctl->lanes)
        r = st_restoring_load(ctl, err);
    if (r == 0 && first)
        r = next_epoch(ctl, err);
    if (r == 0 && ctl->parted)
        r = st_parted_end(ctl, err);
    return r < 0 ? r : 0;
}

void st_control_unload(st_control *ctl)
{
    st_core_free(ST_TAKE(ctl->core));
    ctl->pace.owed = false;
    st_billing_reset(ctl);
    for (size_t i = 0; i < ctl->all.n; i++)
        st_control_drop_live(ctl, ctl->all.v[i]);
    st_vec_clear(&ctl->all);
    st_vec_clear(&ctl->dirty);
    st_vec_clear(&ctl->over);
    st_idmap_free(ST_TAKE(ctl->live));
    st_idmap_free(ST_TAKE(ctl->heads));
    st_strbuf_done(&ctl->whole);
    st_map_free(ST_TAKE(ctl->versions));
    st_noticers_free(ctl);
}

int st_control_open_copy(st_store *store, st_control **ret, st_err *err)
{
    st_control *ctl = st_xcalloc(1, sizeof *ctl);
    int r;

    *ctl = (st_control){.store = store, .epoch = 1, .options = {.policy = st_policy_default()}};
    ctl->dir = st_directory_new();
    ctl->allowance = st_allowance_new(NULL, NULL);
    r = st_billing_open(ctl, false, err);
    if (r == 0)
        r = st_books_shared(ctl, false, err);
    if (r == 0)
        r = secret(ctl, "veil", ctl->veil_key, sizeof ctl->veil_key, err);
    if (r < 0) {
        st_control_free_copy(ctl);
        return r;
    }
    *ret = ctl;
    return 0;
}

void st_control_free_copy(st_control *ctl)
{
    if (!ctl)
        return;
    st_control_unload(ctl);
    st_billing_free(ctl);
    st_allowance_free(ctl->allowance);
    st_directory_free(ctl->dir);
    st_vec_free(&ctl->all);
    st_vec_free(&ctl->dirty);
    st_vec_free(&ctl->over);
    free(ctl);
}

int st_control_replay(st_store *store, st_core **ret, int64_t *ret_last_ms, st_err *err)
{
    ST_CLEANUP(st_control_free_copyp) st_control *ctl = NULL;
    int r = st_control_open_copy(store, &ctl, err);

    if (r == 0)
        r = st_control_load(ctl, err);
    if (r == 0 && ret_last_ms)
        *ret_last_ms = st_control_last_ms(ctl);
    if (r == 0)
        *ret = ST_TAKE(ctl->core);
    return r;
}

void st_control_set_anomaly(st_control *ctl, const st_anomaly_options *options)
{
    ctl->options.billing.anomaly = *options;
}

bool st_control_has_policy(const st_control *ctl, const st_policy *policy)
{
    const st_policy *p = st_core_policy(ctl->core);

#define X(field, key, kind, def, lo, hi, what) \
    if (p->field != policy->field)             \
        return false;
    ST_POLICY_TABLE(X)
#undef X
    return p->order == policy->order && p->counts == policy->counts;
}
