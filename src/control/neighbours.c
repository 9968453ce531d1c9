/*
 * Cases of neighbours (control/neighbours.h): from the notes of agents to documents of the store, and to events.
 */
#include "control/neighbours.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "control/state.h"

#define KEEP_MS (INT64_C(30) * 24 * 3600 * 1000)

const char *st_case_state_name(st_case_state state)
{
    static const char *const names[] = {
#define X(id, name, about) name,
        ST_CASE_TABLE(X)
#undef X
    };

    return names[state];
}

int st_case_state_parse(const char *name)
{
    for (int s = 0; s < ST_CASE_STATE_COUNT; s++)
        if (strcmp(st_case_state_name((st_case_state)s), name) == 0)
            return s;
    return -1;
}

/* ---- documents ------------------------------------------------------------------------------------ */

static json_t *side_json(const st_case_job *j)
{
    return json_pack("{s:I,s:I,s:s,s:s}", "job", (json_int_t)j->job, "serial",
                     (json_int_t)j->serial, "account", j->account, "name", j->name);
}

static json_t *case_json(const st_case *c)
{
    return json_pack("{s:o,s:o,s:s,s:i,s:s,s:s,s:i,s:i,s:I,s:I,s:I}", "victim",
                     side_json(&c->side[ST_SIDE_VICTIM]), "suspect",
                     side_json(&c->side[ST_SIDE_SUSPECT]), "node", c->node, "gpu", c->gpu, "state",
                     st_case_state_name(c->state), "action", st_nb_rung_name(c->action), "before",
                     c->before_pct, "now", c->now_pct, "since", (json_int_t)c->since_ms, "last",
                     (json_int_t)c->last_ms, "times", (json_int_t)c->times);
}

static int64_t number(const json_t *map, const char *key)
{
    return json_integer_value(json_object_get(map, key));
}

static bool read_text(const json_t *map, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(map, key));

    if (text)
        snprintf(ret, size, "%s", text);
    return text != NULL;
}

static bool read_side(const json_t *map, st_case_job *ret)
{
    ret->job = (uint64_t)number(map, "job");
    ret->serial = number(map, "serial");
    return read_text(map, "account", ret->account, sizeof ret->account) &&
           read_text(map, "name", ret->name, sizeof ret->name);
}

bool st_case_read(const char *doc, st_case *ret)
{
    json_t *root = json_loads(doc, 0, NULL);
    const char *state = json_string_value(json_object_get(root, "state"));
    const char *action = json_string_value(json_object_get(root, "action"));
    int s = state ? st_case_state_parse(state) : -1, a = action ? st_nb_rung_parse(action) : -1;
    bool ok;

    *ret = (st_case){.gpu = (int)number(root, "gpu"),
                     .state = (st_case_state)s,
                     .action = (st_nb_rung)a,
                     .before_pct = (int)number(root, "before"),
                     .now_pct = (int)number(root, "now"),
                     .since_ms = number(root, "since"),
                     .last_ms = number(root, "last"),
                     .times = number(root, "times")};
    ok = s >= 0 && a >= 0 && read_text(root, "node", ret->node, sizeof ret->node) &&
         read_side(json_object_get(root, "victim"), &ret->side[ST_SIDE_VICTIM]) &&
         read_side(json_object_get(root, "suspect"), &ret->side[ST_SIDE_SUSPECT]);
    json_decref(root);
    return ok;
}

/* ---- sentences ------------------------------------------------------------------------------------ */

/* "4.5 times its usual value" */
static void times_text(int pct, char buf[48])
{
    char n[ST_FMT_MAX];

    snprintf(buf, 48, "%s times its usual value", st_fmt_milli(n, (int64_t)pct * 10));
}

static void victim_text(const st_case *c, char ret[ST_CASE_TEXT])
{
    char before[48], now[48];

    times_text(c->before_pct, before);
    times_text(c->now_pct, now);
    switch (c->state) {
    case ST_CASE_HELD:
        snprintf(ret, ST_CASE_TEXT,
                 "another job on its GPU made p99 of its requests %s; now it is %s, because %s",
                 before, now,
                 c->action == ST_NB_CAP ? "that job is limited to half of its share"
                                        : "other jobs there wait while it is at work");
        break;
    case ST_CASE_UNSOLVED:
        snprintf(ret, ST_CASE_TEXT,
                 "another job on its GPU makes p99 of its requests %s, and limits do not help; ask "
                 "for a MIG slice or a whole GPU (--level)",
                 before);
        break;
    case ST_CASE_UNEXPLAINED:
        snprintf(ret, ST_CASE_TEXT,
                 "p99 of its requests is %s, and no job on its GPU explains it: look at the host, "
                 "the GPU and the job itself",
                 before);
        break;
    case ST_CASE_OVER:
        snprintf(ret, ST_CASE_TEXT,
                 "another job on its GPU had made p99 of its requests %s; that is over", before);
        break;
    default:
        snprintf(ret, ST_CASE_TEXT,
                 "another job on its GPU makes p99 of its requests %s; stint looks for what helps",
                 before);
    }
}

/* Nothing of the victim is in it: not even how slow it is. */
static void suspect_text(const st_case *c, char ret[ST_CASE_TEXT])
{
    static const char *const slows = "it slows requests of another job on its GPU";

    switch (c->state) {
    case ST_CASE_HELD:
        snprintf(ret, ST_CASE_TEXT, "%s, so it %s", slows,
                 c->action == ST_NB_CAP ? "gets at most half of its share for now"
                                        : "waits while that job is at work");
        break;
    case ST_CASE_UNSOLVED:
        snprintf(ret, ST_CASE_TEXT, "%s, and limits do not help; it is not limited", slows);
        break;
    case ST_CASE_OVER:
        snprintf(ret, ST_CASE_TEXT,
                 "it slowed requests of another job on its GPU; it is no longer limited");
        break;
    default:
        snprintf(ret, ST_CASE_TEXT, "%s; stint looks for what helps", slows);
    }
}

void st_case_text(const st_case *c, st_case_side side, char ret[ST_CASE_TEXT])
{
    if (side == ST_SIDE_VICTIM)
        victim_text(c, ret);
    else
        suspect_text(c, ret);
}

/* ---- room ------------------------------------------------------------------------------------------ */

typedef struct kept_case {
    char name[40];
    int64_t last_ms;
} kept_case;

typedef struct kept_cases {
    ST_VEC(kept_case) v;
} kept_cases;

static int add_kept(void *ctx, const st_document_row *row, st_err *err)
{
    kept_cases *list = ctx;
    kept_case k = {.last_ms = row->at_ms};

    (void)err;
    snprintf(k.name, sizeof k.name, "%s", row->name);
    st_vec_push(&list->v, k);
    return 0;
}

/* Before one more is written: what was heard of longest ago goes, and what is too old. */
static int make_room(st_tx *tx, st_err *err)
{
    kept_cases list = {0};
    int r = st_store_documents(tx->ctl->store, ST_CASE_KIND, add_kept, &list, err);
    size_t oldest = 0, n = list.v.n;

    for (size_t i = 0; r >= 0 && i < list.v.n; i++) {
        if (list.v.v[i].last_ms < list.v.v[oldest].last_ms)
            oldest = i;
        if (list.v.v[i].last_ms >= tx->now - KEEP_MS)
            continue;
        r = st_document_erase(tx, ST_CASE_KIND, list.v.v[i].name, err);
        n--;
    }
    if (r >= 0 && n >= ST_CASES_MAX)
        r = st_document_erase(tx, ST_CASE_KIND, list.v.v[oldest].name, err);
    st_vec_free(&list.v);
    return r < 0 ? st_tx_fault(tx, r, err) : 0;
}

/* ---- notes ------------------------------------------------------------------------------------------ */

static bool fill_side(const st_control *ctl, uint64_t job, st_case_job *ret)
{
    const st_live *live = st_control_live(ctl, job);

    if (!live)
        return false;
    ret->job = job;
    ret->serial = st_directory_serial(ctl->dir, live->account);
    snprintf(ret->account, sizeof ret->account, "%s", live->account);
    snprintf(ret->name, sizeof ret->name, "%s", live->name);
    return true;
}

/* Found anew: what was before counts in `times`. False: one of the two has ended. */
static bool begin_case(st_tx *tx, const st_report *rep, bool known, st_case *c)
{
    st_case fresh = {.gpu = rep->neighbour.gpu,
                     .state = rep->neighbour.kind == ST_NB_INCIDENT ? ST_CASE_UNEXPLAINED
                                                                    : ST_CASE_CONFIRMED,
                     .before_pct = rep->neighbour.ratio_pct,
                     .since_ms = rep->neighbour.at_ms,
                     .times = known ? c->times + 1 : 1};

    snprintf(fresh.node, sizeof fresh.node, "%s",
             st_core_fleet(tx->ctl->core)->nodes.v[rep->node]->name);
    if (!fill_side(tx->ctl, rep->job, &fresh.side[ST_SIDE_VICTIM]) ||
        (rep->neighbour.suspect &&
         !fill_side(tx->ctl, rep->neighbour.suspect, &fresh.side[ST_SIDE_SUSPECT])))
        return false;
    *c = fresh;
    return true;
}

/* False: nothing that people would want to know. */
static bool go_on(const st_report *rep, st_case *c)
{
    st_case_state was = c->state;

    switch (rep->neighbour.kind) {
    case ST_NB_ACTED: /* the last rung is a wish: on this GPU there is nothing left to try */
        if (rep->neighbour.rung == ST_NB_MOVE && was == ST_CASE_HELD)
            return false;
        c->state = rep->neighbour.rung == ST_NB_MOVE ? ST_CASE_UNSOLVED : ST_CASE_ACTING;
        c->action = rep->neighbour.rung;
        break;
    case ST_NB_VERIFIED:
        c->state = ST_CASE_HELD;
        c->action = rep->neighbour.rung;
        c->now_pct = rep->neighbour.ratio_pct;
        break;
    case ST_NB_REVERTED:
        if (rep->neighbour.ratio_pct > 0)
            c->state = ST_CASE_ACTING; /* the next is tried */
        else if (was != ST_CASE_UNSOLVED)
            c->state = ST_CASE_OVER;
        break;
    default:
        break;
    }
    return c->state != was && c->state != ST_CASE_ACTING;
}

int st_case_take(st_tx *tx, const st_report *rep, st_case *ret, bool *ret_told, st_err *err)
{
    st_nb_kind kind = rep->neighbour.kind;
    bool found = kind == ST_NB_CONFIRMED || kind == ST_NB_INCIDENT, known;
    ST_CLEANUP(st_freep) char *doc = NULL;
    char name[40];
    int r;

    *ret_told = false;
    if (kind == ST_NB_SUSPECTED || kind == ST_NB_PARDONED)
        return 0;
    snprintf(name, sizeof name, "%016" PRIx64 "-%016" PRIx64, rep->job, rep->neighbour.suspect);
    json_t *row = st_document_json(tx->ctl->store, ST_CASE_KIND, name, &r, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    doc = row ? json_dumps(row, JSON_COMPACT) : NULL;
    json_decref(row);
    known = doc && st_case_read(doc, ret);
    if (found ? !begin_case(tx, rep, known, ret) : !known)
        return 0;
    *ret_told = found || go_on(rep, ret);
    ret->last_ms = rep->neighbour.at_ms;
    r = found && !known ? make_room(tx, err) : 0;
    return r < 0 ? r : st_document_write(tx, ST_CASE_KIND, name, case_json(ret), err);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static void tell_side(st_control *ctl, const st_case *c, st_case_side side)
{
    const st_effect none = {.kind = ST_FX_NODE, .node = -1, .account = -1};
    const st_live *live = st_control_live(ctl, c->side[side].job);
    char text[ST_CASE_TEXT];

    if (!live)
        return;
    st_case_text(c, side, text);
    const st_notice n = {.seq = ++ctl->notice_seq,
                         .at_ms = st_control_last_ms(ctl),
                         .job = live->id,
                         .account = live->account,
                         .kind = "neighbour",
                         .name = live->name,
                         .state = st_job_state_name(live->state),
                         .reason = text,
                         .fx = &none};
    ctl->options.listen(ctl->options.ctx, &n);
}

/* Slow without a neighbour: those who look after nodes hear of it as well. */
static void tell_incident(st_control *ctl, const st_case *c)
{
    const st_effect none = {.kind = ST_FX_NODE, .node = -1, .account = -1};
    char text[ST_CASE_TEXT];

    snprintf(text, sizeof text,
             "requests of a job on GPU %d became slow, and no job there explains it", c->gpu);
    const st_notice n = {.seq = ++ctl->notice_seq,
                         .at_ms = st_control_last_ms(ctl),
                         .account = "",
                         .kind = "incident",
                         .name = c->node,
                         .fx = &none,
                         .incident = {.flag = "slow-requests", .reason = text}};
    ctl->options.listen(ctl->options.ctx, &n);
}

static void count(st_control *ctl, const st_case *c, st_case_side side)
{
    const st_job *job = st_core_job(ctl->core, c->side[side].job);

    if (job)
        st_tallies_neighbour(ctl->tallies, job->account, side == ST_SIDE_SUSPECT);
}

void st_case_tell(st_control *ctl, const st_case *c)
{
    for (int s = 0; c->state == ST_CASE_CONFIRMED && s < 2; s++)
        count(ctl, c, (st_case_side)s);
    st_control_say(ctl, "event=neighbour node=%s gpu=%d state=%s times=%" PRId64, c->node, c->gpu,
                   st_case_state_name(c->state), c->times);
    if (!ctl->options.listen)
        return;
    tell_side(ctl, c, ST_SIDE_VICTIM);
    if (c->side[ST_SIDE_SUSPECT].job)
        tell_side(ctl, c, ST_SIDE_SUSPECT);
    if (c->state == ST_CASE_UNEXPLAINED)
        tell_incident(ctl, c);
}
