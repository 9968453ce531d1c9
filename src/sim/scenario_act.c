/*
 * What a timeline does, as events for the core; and whether what had to be
 * refused was.
 */
#include <string.h>

#include "sim/scenario_play.h"

static void lay(int64_t *into, int64_t said)
{
    if (said != ST_SCN_KEEP)
        *into = said;
}

static void lay_quota(st_quota *into, const st_quota *said)
{
    lay(&into->gpu_m, said->gpu_m);
    lay(&into->cpu_m, said->cpu_m);
    lay(&into->ram_mib, said->ram_mib);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        lay(&into->type_m[t], said->type_m[t]);
}

static void lay_limits(st_limits *into, const st_limits *said)
{
    lay(&into->gpu_m, said->gpu_m);
    lay(&into->vram_mib, said->vram_mib);
    lay(&into->share_m, said->share_m);
    lay(&into->run_ms, said->run_ms);
}

void st_play_account_spec(const st_play *play, const st_scn_account *said, st_account_spec *ret)
{
    const st_tree *tree = st_core_tree(play->core);
    int32_t id = st_tree_find(tree, said->name);

    st_account_spec_init(ret);
    if (id > ST_ROOT) {
        const st_account *a = st_tree_account(tree, id);

        *ret = (st_account_spec){
            .parent = a->parent == ST_ROOT ? NULL : st_tree_account(tree, a->parent)->name,
            .guarantee = a->guarantee,
            .max = a->max,
            .weight_m = a->weight_m,
            .priority = a->priority,
            .job_limits = a->job_limits,
            .user_limits = a->user_limits,
            .trust = a->trust,
            .own_domain = a->own_domain,
            .min_run_ms = a->min_run_ms,
        };
    }
    ret->name = said->name;
    if (said->parent)
        ret->parent = said->parent;
    lay_quota(&ret->guarantee, &said->guarantee);
    lay_quota(&ret->max, &said->max);
    lay_limits(&ret->job_limits, &said->job_limits);
    lay_limits(&ret->user_limits, &said->user_limits);
    lay(&ret->weight_m, said->weight_m);
    lay(&ret->min_run_ms, said->min_run_ms);
    if (said->priority != ST_SCN_KEEP)
        ret->priority = (int)said->priority;
    if (said->trust >= 0)
        ret->trust = (st_trust)said->trust;
    if (said->own_domain >= 0)
        ret->own_domain = said->own_domain;
}

/* An id no job of the scenario has. */
static uint64_t job_id(const st_play *play, const st_scn_action *a)
{
    return a->job >= 0 ? (uint64_t)a->job + 1 : (uint64_t)play->s->jobs.n + 1;
}

static void event_of(const st_play *play, const st_scn_action *a, st_event *ev)
{
    *ev = (st_event){.kind = ST_EV_TIMER};
    switch (a->kind) {
    case ST_DO_SUBMIT:
        ev->kind = ST_EV_SUBMIT;
        ev->u.job = play->s->jobs.v[a->job].spec;
        break;
    case ST_DO_FINISH:
    case ST_DO_FAIL:
        ev->kind = ST_EV_FINISH;
        ev->u.finish.id = job_id(play, a);
        ev->u.finish.failed = a->kind == ST_DO_FAIL;
        break;
    case ST_DO_CANCEL:
        ev->kind = ST_EV_CANCEL;
        ev->u.id = job_id(play, a);
        break;
    case ST_DO_CHECKPOINTED:
        ev->kind = ST_EV_CHECKPOINTED;
        ev->u.id = job_id(play, a);
        break;
    case ST_DO_NODE:
        ev->kind = ST_EV_NODE_STATE;
        ev->u.node_state.node = a->node;
        ev->u.node_state.state = a->state;
        break;
    case ST_DO_ACCOUNT:
        ev->kind = ST_EV_ACCOUNT;
        st_play_account_spec(play, a->account, &ev->u.account);
        break;
    case ST_DO_PRIORITY:
        ev->kind = ST_EV_PRIORITY;
        ev->u.priority.id = job_id(play, a);
        ev->u.priority.priority = a->priority;
        break;
    case ST_DO_COUNT:
        break;
    }
}

/* A refusal that was expected must come, with the right code and words. */
static void check_refusal(st_play *play, const st_scn_action *a, int r, const st_err *why)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    play->looked++;
    if (r == 0) {
        st_strbuf_addf(&text, "%s: expected to be refused, was accepted", st_scn_do_name(a->kind));
    } else if (a->code != 0 && why->code != a->code) {
        st_strbuf_addf(&text, "%s: expected to be refused with %s, found %s: %s",
                       st_scn_do_name(a->kind), st_err_name(a->code), st_err_name(why->code),
                       why->msg);
    } else if (a->match && !strstr(why->msg, a->match)) {
        st_strbuf_addf(&text, "%s: expected a refusal that says \"%s\", found: %s",
                       st_scn_do_name(a->kind), a->match, why->msg);
    }
    if (text.n > 0)
        st_play_differ(play, a->line, st_strbuf_take(&text));
}

int st_play_apply(st_play *play, const st_event *ev, st_err *why)
{
    int r = st_core_apply(play->core, ev, play->now, &play->fx, why);

    st_play_follow(play);
    if (r == 0)
        st_vec_push(&play->events_in, *ev);
    return r;
}

void st_play_act(st_play *play, const st_scn_action *a)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *impossible = a->kind == ST_DO_SUBMIT ? play->s->jobs.v[a->job].impossible : NULL;
    st_err why = {0};
    st_event ev;
    int r;

    play->cancelling = a->kind == ST_DO_CANCEL;
    if (impossible) {
        r = st_fail(&why, ST_EINVAL, "%s", impossible);
    } else {
        event_of(play, a, &ev);
        r = st_play_apply(play, &ev, &why);
    }
    play->cancelling = false;
    if (r < 0)
        st_play_note_refusal(play, a, why.msg);
    if (a->refuse) {
        check_refusal(play, a, r, &why);
    } else if (r < 0 && play->s->asserts) {
        st_strbuf_addf(&text, "%s was refused: %s", st_scn_do_name(a->kind), why.msg);
        st_play_differ(play, a->line, st_strbuf_take(&text));
    }
}
