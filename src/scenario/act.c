/*
 * What a timeline does, as events for the core; and whether what had to be
 * refused was.
 */
#include <string.h>

#include "scenario/play.h"

/* An id no job of the scenario has. */
static uint64_t job_id(const st_play *play, const st_scn_action *a)
{
    return a->job >= 0 ? (uint64_t)a->job + 1 : (uint64_t)play->s->jobs.n + 1;
}

static bool is_series(const st_play *play, uint64_t id)
{
    for (size_t i = 0; i < st_core_nbookings(play->core); i++)
        if (st_core_booking_at(play->core, i)->series == id)
            return true;
    return false;
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
        if (a->within_ms > 0)
            ev->u.node_state.by_ms = a->at_ms + a->within_ms;
        ev->u.node_state.then = a->then;
        ev->u.node_state.part = a->part;
        break;
    case ST_DO_ACCOUNT:
        ev->kind = ST_EV_ACCOUNT;
        st_spec_account_lay(st_core_tree(play->core), a->account, &ev->u.account);
        break;
    case ST_DO_PRIORITY:
        ev->kind = ST_EV_PRIORITY;
        ev->u.priority.id = job_id(play, a);
        ev->u.priority.priority = a->priority;
        break;
    case ST_DO_GONE:
        ev->kind = ST_EV_GONE;
        ev->u.gone.id = job_id(play, a);
        break;
    case ST_DO_AGENT:
        ev->kind = ST_EV_AGENT;
        ev->u.node_state.node = a->node;
        break;
    case ST_DO_TESTER:
        ev->kind = ST_EV_AGENT;
        ev->u.node_state.node = a->node;
        ev->u.node_state.tests = true;
        break;
    case ST_DO_TESTED:
        ev->kind = ST_EV_TESTED;
        ev->u.tested.node = a->node;
        ev->u.tested.test = st_core_fleet(play->core)->nodes.v[a->node]->test;
        ev->u.tested.passed = a->passed;
        ev->u.tested.finding = a->finding;
        break;
    case ST_DO_FAULT:
    case ST_DO_HEALED:
        ev->kind = ST_EV_NODE_STATE;
        ev->u.node_state.node = a->node;
        ev->u.node_state.how = a->kind == ST_DO_FAULT ? ST_HOW_FAULT : ST_HOW_HEALED;
        ev->u.node_state.state = a->state;
        ev->u.node_state.finding = a->finding;
        ev->u.node_state.part = a->part;
        break;
    case ST_DO_RESET:
        ev->kind = ST_EV_INCIDENT;
        ev->u.id = (uint64_t)a->incident;
        break;
    case ST_DO_LIMIT:
        ev->kind = ST_EV_LIMIT;
        ev->u.limit.id = job_id(play, a);
        ev->u.limit.limit_ms = a->limit_ms;
        break;
    case ST_DO_BOOK:
        ev->kind = ST_EV_BOOK;
        ev->u.book.spec = a->book->spec;
        ev->u.book.windows = a->book->windows;
        ev->u.book.nwindows = a->book->n;
        ev->u.book.confirm = true;
        break;
    case ST_DO_UNBOOK:
        ev->kind = ST_EV_BOOK_CANCEL;
        ev->u.booking.id = a->booking;
        ev->u.booking.series = is_series(play, a->booking);
        break;
    case ST_DO_LABELS:
        ev->kind = ST_EV_LABELS;
        ev->u.labels.node = a->node;
        ev->u.labels.text = a->labels;
        ev->u.labels.force = a->force;
        break;
    case ST_DO_HOLD:
    case ST_DO_RELEASE:
        ev->kind = ST_EV_HOLD;
        ev->u.hold.id = job_id(play, a);
        ev->u.hold.on = a->kind == ST_DO_HOLD;
        ev->u.hold.by = a->by;
        break;
    case ST_DO_THROTTLE:
        ev->kind = ST_EV_ARRAY;
        ev->u.array.id = job_id(play, a);
        ev->u.array.throttle = a->throttle;
        break;
    case ST_DO_CLOCKS: /* st_play_clocks */
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

    if (a->kind == ST_DO_CLOCKS) {
        st_play_clocks(play, a);
        return;
    }
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
