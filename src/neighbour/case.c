/*
 * From a suspicion to a cure (neighbour/neighbour.h).
 *
 *   watch -> paused -> let go -> paused again -> acted -> held -> watch
 *
 * A suspect is one that arrived or grew shortly before its neighbour became slow. It is paused for a window, let go for
 * one and paused again; only if the victim is better, worse and better, it is the one. Then actions are tried, the
 * cheapest first, each looked at for a window and taken back if it did not help. Slowness that nobody's arrival explains,
 * or that stays when all suspects were let go, is an incident of the node or of the job itself.
 */
#include <string.h>

#include "base/macros.h"
#include "neighbour/state.h"

#define PAUSE_PM   1
#define SETTLE_MS  100   /* work in flight when an order is given */
#define WAIT_MS    30000 /* the victim has no requests any more: the case is closed */
#define UNCLEAR_MS INT64_C(20000)
#define SEEN_MS    1000 /* growth is seen a little later than what it does */
#define SUSTAINED  3    /* times the windows of a suspicion, for an incident */

static nb_pair *pair_of(st_nb *nb, uint64_t victim, uint64_t suspect, bool make)
{
    for (int i = 0; i < nb->npair; i++)
        if (nb->pair[i].victim == victim && nb->pair[i].suspect == suspect)
            return &nb->pair[i];
    if (!make)
        return NULL;
    if (nb->npair == NB_PAIRS) {
        memmove(nb->pair, nb->pair + 1, sizeof nb->pair - sizeof nb->pair[0]);
        nb->npair--;
    }
    nb->pair[nb->npair] = (nb_pair){.victim = victim, .suspect = suspect};
    return &nb->pair[nb->npair++];
}

/* ---- orders ----------------------------------------------------------------------------------- */

st_nb_order st_nb_order_of(const st_nb *nb, uint64_t id)
{
    st_nb_order o = {0};
    bool acts = nb->step == NB_ACTED || nb->step == NB_HELD;

    if (id == nb->suspect && (nb->step == NB_PAUSED || nb->step == NB_AGAIN))
        o.cap_pm = PAUSE_PM;
    if (id == nb->victim && acts && nb->rung == ST_NB_PROTECT)
        o.protect = true;
    for (int i = 0; acts && nb->rung == ST_NB_CAP && id == nb->suspect && i < nb->ntask; i++)
        if (nb->task[i].id == id)
            o.cap_pm = ST_MAX(nb->task[i].share_pm / 2, 1);
    return o;
}

/* Requests that were under way when an order was given belong to neither side of it. */
static void go(st_nb *nb, nb_step step, nb_task *victim, int64_t now)
{
    nb->step = step;
    nb->until_ms = now + WAIT_MS;
    st_nb_fresh_window(victim, now + SETTLE_MS);
}

static void end_case(st_nb *nb, int64_t now)
{
    nb_task *v = st_nb_find(nb, nb->victim);

    if (v)
        st_nb_fresh_window(v, now + SETTLE_MS);
    nb->step = NB_WATCH;
    nb->victim = nb->suspect = 0;
}

/* After an action, the victim is judged anew, and not at once. */
static void rest(st_nb *nb, int64_t now)
{
    nb_task *v = st_nb_find(nb, nb->victim);

    if (v)
        memset(v->past, 0, sizeof v->past);
    nb->free_ms = now + nb->policy.dwell_ms;
    end_case(nb, now);
}

static bool possible(const nb_task *victim, const nb_task *suspect, st_nb_rung rung)
{
    if (rung == ST_NB_PROTECT)
        return !victim->latency;
    return rung != ST_NB_CAP || suspect->capable;
}

/* From this rung on; a wish is said, and nothing is waited for. */
static void act(st_nb *nb, nb_task *victim, st_nb_rung from, int64_t now)
{
    const nb_task *suspect = st_nb_find(nb, nb->suspect);

    for (nb->rung = from; nb->rung < ST_NB_MOVE && !possible(victim, suspect, nb->rung);)
        nb->rung++;
    st_nb_say(nb, ST_NB_ACTED, nb->victim, nb->suspect, nb->ratio, now);
    if (nb->rung == ST_NB_MOVE) {
        nb_pair *p = pair_of(nb, nb->victim, nb->suspect, true);

        p->pardoned_ms = now + nb->policy.pardon_ms;
        p->wished = true;
        rest(nb, now);
        return;
    }
    go(nb, NB_ACTED, victim, now);
}

/* ---- suspects ------------------------------------------------------------------------------------ */

/* When the slowness began, at the latest; now, if it has not. */
static int64_t onset_ms(const st_nb *nb, const nb_task *t, int64_t now)
{
    int64_t at = now;

    for (int i = 0; i < nb->policy.of && i < NB_PAST; i++)
        if (t->past[i].slow)
            at = t->past[i].at_ms;
    return at;
}

/* Who arrived or grew last before it became slow, and was not let go lately. A pair that was confirmed before is known. */
nb_task *st_nb_suspect(st_nb *nb, const nb_task *victim, int64_t now)
{
    int64_t onset = onset_ms(nb, victim, now);
    nb_task *best = NULL;

    for (int i = 0; i < nb->ntask; i++) {
        nb_task *t = &nb->task[i];
        const nb_pair *p = pair_of(nb, victim->id, t->id, false);
        bool lately = t->grew_ms >= 0 && now - t->grew_ms <= nb->policy.follow_ms &&
                      t->grew_ms <= onset + SEEN_MS;

        if (t == victim || !t->capable || (p && p->pardoned_ms > now))
            continue;
        if ((lately || (p && p->hold_ms)) && (!best || t->grew_ms > best->grew_ms))
            best = t;
    }
    return best;
}

/* Where it did not become clear, it may be tested again soon. */
static void pardon(st_nb *nb, bool clear, int64_t now)
{
    st_nb_say(nb, ST_NB_PARDONED, nb->victim, nb->suspect, nb->ratio, now);
    pair_of(nb, nb->victim, nb->suspect, true)->pardoned_ms =
        now + (clear ? nb->policy.pardon_ms : ST_MIN(UNCLEAR_MS, nb->policy.pardon_ms));
    end_case(nb, now);
}

/* Who slows it is known, and still here: that nothing helped is no riddle. */
static bool explained(st_nb *nb, const nb_task *t)
{
    for (int i = 0; i < nb->npair; i++)
        if (nb->pair[i].victim == t->id && nb->pair[i].wished &&
            st_nb_find(nb, nb->pair[i].suspect))
            return true;
    return false;
}

static void incident(st_nb *nb, nb_task *t, double ratio, int64_t now)
{
    if (explained(nb, t))
        return;
    if (t->slow_windows < SUSTAINED * nb->policy.of || now < t->incident_ms)
        return;
    t->incident_ms = now + nb->policy.incident_ms;
    st_nb_say(nb, ST_NB_INCIDENT, t->id, 0, ratio, now);
    st_nb_forget(t);
}

/* How slow it is, since it is. */
static void measure(st_nb *nb, const nb_task *t)
{
    double n = 0, late = 0, above = 0, ratio = 0, windows = 0;
    int64_t since = onset_ms(nb, t, t->past[0].at_ms);

    for (int i = 0; i < nb->policy.of && i < NB_PAST && t->past[i].at_ms >= since; i++) {
        n += t->past[i].count;
        late += t->past[i].late;
        above += t->past[i].above;
        ratio += t->past[i].ratio;
        windows++;
    }
    nb->late = n > 0 ? late / n : 0;
    nb->above = n > 0 ? above / n : 0;
    nb->ratio = windows > 0 ? ratio / windows : 0;
}

static void watch(st_nb *nb, nb_task *t, int64_t now)
{
    const nb_task *suspect;

    if (now < nb->free_ms || !st_nb_is_slow(nb, t))
        return;
    suspect = st_nb_suspect(nb, t, now);
    if (!suspect) {
        incident(nb, t, t->past[0].ratio, now);
        return;
    }
    nb->victim = t->id;
    nb->suspect = suspect->id;
    measure(nb, t);
    st_nb_say(nb, ST_NB_SUSPECTED, t->id, suspect->id, nb->ratio, now);
    go(nb, NB_PAUSED, t, now);
}

/* ---- a window of the victim, with a case open ----------------------------------------------------- */

/* Half of what was too much is gone. */
static bool eased(const st_nb *nb, double ratio)
{
    return ratio > 0 && ratio - 1 <= (nb->ratio - 1) / 2;
}

/* What helped is kept, and where it did not help enough, there is a wish besides. */
static void judge_action(st_nb *nb, nb_task *t, double ratio, int64_t now)
{
    nb_pair *p = pair_of(nb, nb->victim, nb->suspect, true);
    st_nb_rung rung = nb->rung;

    if (!eased(nb, ratio)) {
        st_nb_say(nb, ST_NB_REVERTED, nb->victim, nb->suspect, ratio, now);
        act(nb, t, nb->rung + 1, now);
        return;
    }
    p->hold_ms = p->hold_ms ? ST_MIN(2 * p->hold_ms, nb->policy.hold_max_ms) : nb->policy.hold_ms;
    p->rung = rung;
    st_nb_say(nb, ST_NB_VERIFIED, nb->victim, nb->suspect, ratio, now);
    if (ratio * 100 > (double)nb->policy.ratio_pct && !p->wished) {
        nb->rung = ST_NB_MOVE;
        st_nb_say(nb, ST_NB_ACTED, nb->victim, nb->suspect, ratio, now);
        nb->rung = rung;
        p->wished = true;
    }
    memset(t->past, 0, sizeof t->past); /* it is judged by what comes from now on */
    st_nb_fresh_window(t, now);
    nb->step = NB_HELD;
    nb->until_ms = now + p->hold_ms;
}

/* The mean of the latest windows; 0: too few. */
static double mean_ratio(const st_nb *nb, const nb_task *t)
{
    double sum = 0;

    for (int i = 0; i < nb->policy.of && i < NB_PAST; i++) {
        if (t->past[i].ratio <= 0)
            return 0;
        sum += t->past[i].ratio;
    }
    return sum / (double)nb->policy.of;
}

void st_nb_case_window(st_nb *nb, nb_task *t, int64_t now)
{
    double mean;

    if (nb->step == NB_WATCH)
        watch(nb, t, now);
    if (nb->step != NB_HELD || t->id != nb->victim)
        return;
    mean = mean_ratio(nb, t);
    if (mean > 0 && !eased(nb, mean))
        judge_action(nb, t, mean, now);
}

static void confirm(st_nb *nb, nb_task *t, int64_t now)
{
    const nb_pair *known = pair_of(nb, nb->victim, nb->suspect, false);

    st_nb_say(nb, ST_NB_CONFIRMED, nb->victim, nb->suspect, nb->ratio, now);
    act(nb, t, known && known->hold_ms ? known->rung : ST_NB_PROTECT, now);
}

static bool still_busy(st_nb *nb, int64_t now)
{
    const nb_task *suspect = st_nb_find(nb, nb->suspect);

    return suspect && now - suspect->busy_ms < SETTLE_MS;
}

/* The victim is looked at until it is clear how it does. */
static void test(st_nb *nb, nb_task *t, int64_t now)
{
    nb_verdict v;
    double ratio;

    /* Long kernels that were in flight when it was paused are not its neighbour's innocence. */
    if ((nb->step == NB_PAUSED || nb->step == NB_AGAIN) && still_busy(nb, now)) {
        st_nb_fresh_window(t, now + SETTLE_MS);
        return;
    }
    if (nb->step == NB_ACTED) {
        if (st_nb_enough(nb, t, now, &ratio))
            judge_action(nb, t, ratio, now);
        return;
    }
    v = st_nb_verdict(nb, t, now);
    if (v == NB_UNCLEAR)
        return;
    if (v != (nb->step == NB_LET_GO ? NB_SLOW : NB_BETTER))
        pardon(nb, v != NB_NEITHER, now);
    else if (nb->step == NB_AGAIN)
        confirm(nb, t, now);
    else
        go(nb, nb->step == NB_PAUSED ? NB_LET_GO : NB_AGAIN, t, now);
    if (nb->step == NB_WATCH) /* it was not that one: the next, if it is still slow */
        watch(nb, t, now);
}

void st_nb_case_tick(st_nb *nb, int64_t now)
{
    nb_task *victim = st_nb_find(nb, nb->victim);
    bool acts = nb->step == NB_ACTED || nb->step == NB_HELD;

    if (nb->step == NB_WATCH)
        return;
    if (!victim || !st_nb_find(nb, nb->suspect) || now >= nb->until_ms) {
        if (acts)
            st_nb_say(nb, ST_NB_REVERTED, nb->victim, nb->suspect, 0, now);
        rest(nb, now);
    } else if (nb->step != NB_HELD) {
        test(nb, victim, now);
    }
}
