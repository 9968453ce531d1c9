/*
 * Who may begin work on a shared device. There is no judge: each task writes its own page and reads the others'. The
 * one that wants the device and has used the least of it, over its share, goes next; a tie goes to the lower slot.
 *
 * 1. A turn ends when its work is done on the device, so one task's work is measured by itself.
 * 2. Nobody is believed for long. Who shows no sign of life for two turns is not waited for; who holds others up for
 *    longer than any honest turn is not waited for, for as long as it held us up. What a page says
 *    can cost a neighbour time, never more.
 * 3. A task that waited for its own work (a training step does, again and again) keeps its place for a moment;
 *    else one that never waits would slip in each time.
 */
#include <time.h>

#include "guard/guard.h"

#define US            UINT64_C(1000)
#define MS            UINT64_C(1000000)
#define LOOK_NS       (500 * US) /* the longest sleep without a look */
#define PAUSE_NS      (200 * US)
#define COMPANY_NS    (20 * MS)
#define HOLD_LEAST_NS (100 * MS)
#define PEEK_NS       (100 * US)
#define START_NS      (10 * US) /* from a launch until it runs */
#define TOLD_PM       20
#define SPIN_NS       (100 * US)
#define LATE_NS       (1 * MS) /* clocks are one clock; what is further ahead is a lie */

static uint64_t quantum(const guard_device *d)
{
    return d->limit->quantum_us * US;
}

static uint64_t share(const guard_device *d)
{
    return d->limit->share_pm ? d->limit->share_pm : 1;
}

static uint64_t age(uint64_t then, uint64_t now)
{
    if (then > now)
        return then - now > LATE_NS ? UINT64_MAX : 0;
    return now - then;
}

bool guard_in_company(guard_device *d, uint64_t now)
{
    guard_turn o;

    if (now - d->company_ns < PEEK_NS)
        return d->company;
    d->company_ns = now;
    d->company = false;
    for (int i = 0; i < d->nnear && !d->company; i++)
        d->company = !atomic_load(&d->board->slot[d->near[i]].latency) && /* which takes no turns */
                     guard_peek(d, d->near[i], &o) && age(o.seen_ns, now) < COMPANY_NS;
    return d->company;
}

static void show(guard_device *d, uint32_t state, uint64_t now)
{
    atomic_store(&d->turn->seen_ns, now);
    if (atomic_exchange(&d->turn->state, state) == state)
        return;
    atomic_fetch_add(&d->turn->word, 1);
    guard_futex_wake(&d->turn->word, GUARD_ALL);
}

/* ---- between processes of one task ----------------------------------------------------------------- */

static void take_task_turn(guard_device *d)
{
    uint32_t mine = (uint32_t)d->me + 1, was = 0;

    while (!atomic_compare_exchange_strong(&d->usage->holder, &was, mine)) {
        uint32_t owner = was;
        uint64_t held = atomic_load(&d->usage->held_ns);

        if (owner == mine)
            break;
        guard_futex_wait(&d->usage->holder, owner, LOOK_NS);
        /* Stopped, dead, or gone to do something else. */
        if (atomic_load(&d->usage->holder) == owner && atomic_load(&d->usage->held_ns) == held &&
            age(held, guard_now()) > 2 * quantum(d) &&
            atomic_compare_exchange_strong(&d->usage->holder, &owner, mine))
            break;
        was = 0;
    }
    atomic_store(&d->usage->held_ns, guard_now());
}

static void give_task_turn(guard_device *d)
{
    uint32_t mine = (uint32_t)d->me + 1;

    if (atomic_compare_exchange_strong(&d->usage->holder, &mine, 0))
        guard_futex_wake(&d->usage->holder, 1);
}

/* ---- between tasks --------------------------------------------------------------------------------- */

/* Whom we have to wait for, and its word; -1: nobody. */
static int blocker(guard_device *d, uint64_t mine, uint64_t now, uint32_t *word)
{
    int found = -1;

    for (int i = 0; i < d->nnear; i++) {
        int j = d->near[i];
        guard_turn o;
        uint64_t seen;

        if (d->stopped_ns[j] > now || !guard_peek(d, j, &o) || o.state == GUARD_IDLE)
            continue;
        seen = age(o.seen_ns, now);
        if (seen > 2 * quantum(d))
            continue;
        *word = found < 0 || o.state == GUARD_RUNS ? o.word : *word;
        if (o.state == GUARD_RUNS)
            return j;
        if ((o.vtime < mine || (o.vtime == mine && j < (int)d->limit->slot)) &&
            (o.state == GUARD_WANTS || seen < PAUSE_NS)) {
            found = j;
            *word = o.word;
        }
    }
    return found;
}

/* Somebody began in the same moment: the lower slot goes on. */
static bool collided(guard_device *d, uint64_t now)
{
    for (int i = 0; i < d->nnear; i++) {
        int j = d->near[i];
        guard_turn o;

        if (j < (int)d->limit->slot && d->stopped_ns[j] <= now && guard_peek(d, j, &o) &&
            o.state == GUARD_RUNS && age(o.seen_ns, now) < 2 * quantum(d))
            return true;
    }
    return false;
}

/* Who was away comes back beside those who are here: neither with a claim to all that time, nor with an old debt of more
 * than two turns. */
static uint64_t catch_up(guard_device *d, uint64_t now)
{
    uint64_t mine = atomic_load(&d->turn->vtime), least = UINT64_MAX, most;

    for (int i = 0; i < d->nnear; i++) {
        guard_turn o;

        if (guard_peek(d, d->near[i], &o) && o.state != GUARD_IDLE &&
            age(o.seen_ns, now) < COMPANY_NS && o.vtime < least)
            least = o.vtime;
    }
    if (age(d->ran_ns, now) <= COMPANY_NS || least == UINT64_MAX)
        return mine;
    most = least + 2 * quantum(d) * 1000 / share(d);
    mine = mine < least ? least : mine > most ? most : mine;
    atomic_store(&d->turn->vtime, mine);
    return mine;
}

uint32_t guard_most(const guard_device *d)
{
    uint32_t most = d->limit->hard ? (uint32_t)share(d) : 0, cap = d->limit->cap_pm;

    return cap && (!most || cap < most) ? cap : most;
}

void guard_spend(guard_device *d, uint64_t used_ns)
{
    uint64_t now = guard_now(), next = atomic_load(&d->usage->next_ns);
    uint32_t most = guard_most(d);

    if (!most)
        return;
    d->cost_ns = used_ns * 1000 / most;
    /* A little is saved up, so that a late wake-up costs nothing. */
    if (next + used_ns + 4 * quantum(d) < now)
        next = now - used_ns - 4 * quantum(d);
    atomic_store(&d->usage->next_ns, next + d->cost_ns);
}

/* Its owner reads it in the task's output, once for each cap; a pause for a test is too short to be told. */
static void tell_cap(guard_device *d)
{
    uint32_t cap = d->limit->cap_pm;
    bool told = cap == d->told_pm;

    d->told_pm = cap;
    if (!told && cap >= TOLD_PM)
        guard_say("this task gets less of its GPU for a while, because requests of a neighbour "
                  "became slow beside it",
                  "");
}

/* A cap that is lifted is lifted at once, and nobody waits longer than its latest work costs. */
void guard_wait_until_allowed(guard_device *d)
{
    uint64_t began = guard_now(), now = began;

    while (guard_most(d) && now < atomic_load(&d->usage->next_ns) && now - began < d->cost_ns) {
        uint64_t left = atomic_load(&d->usage->next_ns) - now;
        struct timespec t = {.tv_nsec = (long)(left < 20 * MS ? left : 20 * MS)};

        atomic_store(&d->usage->held_ns, now);
        nanosleep(&t, NULL);
        now = guard_now();
    }
    if (now > began)
        guard_count(d, GUARD_COUNT_CAPPED_NS, now - began);
    tell_cap(d);
}

void guard_turn_wait(guard_device *d)
{
    uint64_t began = guard_now(), now = began, mine;
    uint64_t most = 4 * quantum(d) * 1000 / share(d), held[GUARD_SLOTS] = {0};

    if (most < HOLD_LEAST_NS)
        most = HOLD_LEAST_NS;
    take_task_turn(d);
    guard_wait_until_allowed(d);
    now = guard_now();
    mine = catch_up(d, now);
    show(d, GUARD_WANTS, now);
    for (;;) {
        uint32_t word = 0;
        int j = blocker(d, mine, now, &word);
        uint64_t then = now;

        if (j < 0) {
            show(d, GUARD_RUNS, now);
            if (!collided(d, now))
                break;
            show(d, GUARD_WANTS, now);
            if ((j = blocker(d, mine, now, &word)) < 0)
                continue;
        }
        guard_futex_wait(&d->other[j]->word, word, PAUSE_NS);
        now = guard_now();
        held[j] += now - then;
        if (held[j] > most) {
            d->stopped_ns[j] = now + held[j];
            held[j] = 0;
        }
        atomic_store(&d->turn->seen_ns, now);
        atomic_store(&d->usage->held_ns, now);
    }
    d->has_turn = true;
    guard_count(d, GUARD_COUNT_TURNS, 1);
    guard_count(d, GUARD_COUNT_WAIT_NS, now - began);
}

void guard_turn_pass(guard_device *d, uint64_t used_ns)
{
    uint64_t now = guard_now();

    atomic_fetch_add(&d->turn->vtime, used_ns * 1000 / share(d));
    d->has_turn = false;
    d->ran_ns = now;
    show(d, GUARD_PAUSE, now);
    give_task_turn(d);
}

/* ---- beside a latency task -------------------------------------------------------------------------- */

/* How often it begins, and how even that is, told by who knows it: the median of the latest gaps, and how far the others
 * are off, but for the worst. So a pause, or another rhythm, is over after a few requests. */
static void tell_rhythm(guard_device *d, uint64_t now)
{
    uint64_t v[GUARD_GAPS], worst = 0, off = 0;
    guard_turn *t = d->turn;

    d->gap[d->ngap++ % GUARD_GAPS] = now - t->last_ns;
    t->last_ns = now;
    if (d->ngap < GUARD_GAPS)
        return;
    for (int i = 0; i < GUARD_GAPS; i++) {
        int k = i;

        for (; k > 0 && v[k - 1] > d->gap[i]; k--)
            v[k] = v[k - 1];
        v[k] = d->gap[i];
    }
    t->period_ns = v[GUARD_GAPS / 2];
    for (int i = 0; i < GUARD_GAPS; i++) {
        uint64_t far = v[i] > t->period_ns ? v[i] - t->period_ns : t->period_ns - v[i];

        off = far > worst ? worst : far > off ? far : off;
        worst = far > worst ? far : worst;
    }
    t->off_ns = off;
}

void guard_show_active(guard_device *d, bool active, uint64_t now)
{
    uint64_t was = atomic_load(&d->turn->active_ns);

    atomic_store(&d->turn->seen_ns, now);
    if ((was != 0) == active)
        return;
    if (active)
        tell_rhythm(d, now);
    atomic_store(&d->turn->active_ns, active ? now : 0);
    atomic_fetch_add(&d->turn->word, 1);
    if (active)
        return;
    guard_futex_wake(&d->turn->word, GUARD_ALL);
    guard_count(d, GUARD_COUNT_GPU_NS, now - was); /* from the launch until it was waited for */
}

/* It comes as by the clock, and to wait for it costs a fifth of the time at most. */
static bool rhythmic(const guard_device *d, const guard_turn *o)
{
    return o->period_ns > 0 && o->off_ns * 10 <= o->period_ns &&
           (o->off_ns + d->each_ns) * 5 <= o->period_ns;
}

/* Whether it is due so soon that a launch of ours would still run: then for how long it is to be waited for. */
static uint64_t due_in(const guard_device *d, const guard_turn *o, uint64_t now)
{
    uint64_t due = o->last_ns + o->period_ns, late = due + o->off_ns + 20 * US;

    if (!rhythmic(d, o) || now + o->off_ns + d->each_ns + START_NS < due || now > late)
        return 0;
    return late - now;
}

uint64_t guard_room(guard_device *d, uint64_t now)
{
    uint64_t room = UINT64_MAX;

    for (int i = 0; i < d->nnear; i++) {
        int j = d->near[i];
        guard_turn o;
        uint64_t due;

        if (!atomic_load(&d->board->slot[j].latency) || !guard_peek(d, j, &o) ||
            age(o.seen_ns, now) > quantum(d))
            continue;
        due = o.last_ns + o.period_ns - o.off_ns - START_NS;
        if (o.active_ns || !rhythmic(d, &o) || due <= now)
            return 0;
        room = due - now < room ? due - now : room;
    }
    return room == UINT64_MAX ? 0 : room;
}

/* Looks for a moment without pause, for what takes a moment; then sleeps. */
static void wait_for(guard_device *d, int slot, uint32_t word, uint64_t began, uint64_t most)
{
    if (guard_now() - began < SPIN_NS) {
        for (int i = 0; i < 16; i++)
            __builtin_ia32_pause();
        return;
    }
    guard_futex_wait(&d->other[slot]->word, word, most < LOOK_NS ? most : LOOK_NS);
}

/* At most a turn at a time, and then as long without waiting: even one that is always active, or says so, leaves
 * half. */
void guard_yield_to_latency(guard_device *d)
{
    uint64_t began = guard_now(), now = began;

    for (int i = 0; i < d->nnear; i++) {
        int j = d->near[i];

        if (!atomic_load(&d->board->slot[j].latency) || d->stopped_ns[j] > now)
            continue;
        for (;;) {
            guard_turn o;
            bool there = guard_peek(d, j, &o) && age(o.seen_ns, now) < quantum(d);
            uint64_t due;

            due = there && o.active_ns == 0 ? due_in(d, &o, now) : 0;
            if (!there || (o.active_ns == 0 && due == 0))
                break;
            if (now - began > quantum(d)) {
                d->stopped_ns[j] = now + quantum(d);
                break;
            }
            wait_for(d, j, o.word, began, due ? due : LOOK_NS);
            now = guard_now();
        }
    }
    if (now == began)
        return;
    guard_count(d, GUARD_COUNT_YIELDS, 1);
    guard_count(d, GUARD_COUNT_WAIT_NS, now - began);
}
