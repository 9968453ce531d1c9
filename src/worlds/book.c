/*
 * Bookings in random worlds: made, confirmed, changed, cancelled, and jobs sent into them. What is drawn here is drawn
 * from a stream of its own, so that worlds without bookings stay as they are.
 */
#include "worlds/worlds.h"

#include "base/macros.h"

#define MINUTE INT64_C(60000)

#define ZONES     3 /* whose clocks change apart from each other */
#define ZONE_MOST 12

static int64_t pick(st_rng *rng, const int64_t *of, size_t n)
{
    return of[st_rng_below(rng, n)];
}

#define PICK(rng, ...)                          \
    pick((rng), (const int64_t[]){__VA_ARGS__}, \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static const st_booking *some_booking(st_fuzz_gen *gen)
{
    const st_core *core = st_fuzz_run_core(gen->run);
    size_t n = st_core_nbookings(core);
    return n > 0 ? st_core_booking_at(core, st_rng_below(&gen->book_rng, n)) : NULL;
}

static uint64_t some_number(st_fuzz_gen *gen)
{
    const st_booking *b = some_booking(gen);
    if (!b || st_rng_chance(&gen->book_rng, 1, 20))
        return st_rng_below(&gen->book_rng, gen->next_booking + 2);
    return b->id;
}

/* Labels are few, so that some nodes have what a booking requires and others have not. */
static const char *const labels[] = {NULL, "driver=550.54\n", "driver=535\n", "net=ib\n",
                                     "driver=550.54\nnet=ib\n"};

static void relabel(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->label_rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    const char *name = fleet->nodes.v[st_rng_below(rng, fleet->nodes.n)]->name;
    st_tape_entry *entry = st_fuzz_record(gen, ST_EV_LABELS, true);
    entry->node = st_tape_text(gen->tape, "%s", name);
    entry->event.u.labels.text = labels[st_rng_below(rng, ST_ARRAY_LEN(labels))];
    entry->event.u.labels.force = st_rng_chance(rng, 1, 2);
}

/* Perhaps what its nodes must have. */
static void configure(st_fuzz_gen *gen, st_booking_spec *spec)
{
    static const char *const wanted[] = {"driver=550\n", "driver=535\n", "net=ib\n",
                                         "driver=550\nnet=ib\n"};
    st_rng *rng = &gen->label_rng;
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    if (!gen->labels)
        return;
    uint64_t roll = st_rng_below(rng, 8);
    if (roll < 3)
        spec->require = wanted[st_rng_below(rng, ST_ARRAY_LEN(wanted))];
    if (roll == 0 || roll > 5)
        return;
    spec->dedicated = true;
    spec->cpu_m = spec->ram_mib = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->type == spec->type)
            spec->gpus = fleet->nodes.v[i]->ndevs;
    spec->tasks = st_rng_chance(rng, 3, 4) ? 1 : 2;
}

/* Perhaps of slices or shares; draws nothing. */
static void divide(const st_fuzz_gen *gen, st_booking_spec *spec)
{
    static const st_level levels[] = {ST_LEVEL_MIG, ST_LEVEL_MPS, ST_LEVEL_MIG, ST_LEVEL_TIME};
    const st_fleet *fleet = st_core_fleet(st_fuzz_run_core(gen->run));
    if (spec->id % 5 != 2 || spec->dedicated)
        return;
    st_parts *p = &spec->parts;
    p->level = levels[spec->id / 5 % ST_ARRAY_LEN(levels)];
    p->profile = (st_mig)(spec->id / 20 % ST_MIG_COUNT);
    p->share_m = p->level == ST_LEVEL_MIG ? 0 : 100 + 150 * (int64_t)(spec->id % 4);
    p->n = 1 + (int)(spec->id % 9);
    spec->gpus = 1;
    spec->tasks = ST_MAX(st_parts_gpus(fleet->types.v[spec->type].board, p), 1);
}

static void make(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->book_rng;
    const st_tree *tree = st_core_tree(st_fuzz_run_core(gen->run));
    st_event *ev = &st_fuzz_record(gen, ST_EV_BOOK, true)->event;
    st_booking_spec *spec = &ev->u.book.spec;
    size_t a = tree->accounts.n > 1 ? 1 + st_rng_below(rng, tree->accounts.n - 1) : 0;
    int n = (int)PICK(rng, 1, 1, 1, 1, 2, 4);
    st_window *windows = st_arena_alloc(gen->tape->arena, (size_t)n * sizeof *windows);
    int64_t length_ms = PICK(rng, 1000, MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 60 * MINUTE);
    int64_t from_ms = gen->now + PICK(rng, 0, 2 * MINUTE, 3 * MINUTE, 4 * MINUTE, 5 * MINUTE,
                                      8 * MINUTE, 15 * MINUTE, 60 * MINUTE);
    int64_t apart_ms = PICK(rng, 0, 1000, 5 * MINUTE, 60 * MINUTE);
    from_ms += st_rng_range(rng, 0, MINUTE) - (st_rng_chance(rng, 1, 40) ? 2 * MINUTE : 0);
    for (int i = 0; i < n; i++) {
        windows[i] = (st_window){from_ms, from_ms + length_ms};
        from_ms += length_ms + apart_ms;
    }
    *spec = (st_booking_spec){.id = gen->next_booking,
                              .series = n > 1 ? gen->next_booking : 0,
                              .name = st_tape_text(gen->tape, "b%d", (int)gen->next_booking),
                              .account = st_tape_text(gen->tape, "%s", tree->accounts.v[a]->name),
                              .user = "u0",
                              .pool = -1,
                              .type = (int32_t)st_rng_below(rng, (uint64_t)gen->ntypes),
                              .tasks = (int)PICK(rng, 1, 1, 1, 2, 2, 3, 4),
                              .gpus = (int)PICK(rng, 1, 1, 1, 1, 2, 2, 4, 8),
                              .no_show_ms = PICK(rng, ST_TIME_NEVER, ST_TIME_NEVER, 0, MINUTE)};
    if (st_rng_chance(rng, 1, 6))
        spec->pool = (int32_t)st_rng_below(rng, (uint64_t)gen->npools);
    if (st_rng_chance(rng, 1, 4)) {
        spec->topo = (st_topo)st_rng_range(rng, ST_TOPO_ZONE, ST_TOPO_NVLINK);
        spec->topo_required = st_rng_chance(rng, 2, 3);
    }
    if (st_rng_chance(rng, 1, 3)) {
        spec->cpu_m = 500 * st_rng_range(rng, 1, 4);
        spec->ram_mib = 512 * st_rng_range(rng, 1, 4);
    }
    configure(gen, spec);
    divide(gen, spec);
    gen->next_booking += (uint64_t)n;
    st_book_quote quotes[4]; /* asking changes nothing */
    st_core_quote(st_fuzz_run_core(gen->run), spec, windows, (size_t)n, quotes, NULL);
    ev->u.book.windows = windows;
    ev->u.book.nwindows = n;
    ev->u.book.hold_ms = PICK(rng, 0, MINUTE, 10 * MINUTE);
    ev->u.book.confirm = st_rng_chance(rng, 3, 4);
}

void st_fuzz_book_limits(st_fuzz_gen *gen, st_book_limits *limits)
{
    st_rng *rng = &gen->book_rng;
    if (!gen->books || !st_rng_chance(rng, 1, 3))
        return;
    if (st_rng_chance(rng, 1, 2))
        limits->hours_m = PICK(rng, 0, 100, 500, 2000, 8000);
    if (st_rng_chance(rng, 1, 2))
        limits->concurrent = PICK(rng, 0, 1, 1, 2, 3);
    if (st_rng_chance(rng, 1, 4))
        limits->length_ms = PICK(rng, MINUTE, 10 * MINUTE, 30 * MINUTE);
    if (st_rng_chance(rng, 1, 4))
        limits->lead_ms = PICK(rng, 0, 4 * MINUTE, 20 * MINUTE);
}

void st_fuzz_book_pool(st_fuzz_gen *gen, st_pool_rules *rules)
{
    st_rng *rng = &gen->book_rng;
    if (!gen->books)
        return;
    if (st_rng_chance(rng, 1, 4))
        rules->book_share_m = PICK(rng, 100, 300, 500, 900);
    if (st_rng_chance(rng, 1, 8))
        rules->book_horizon_ms = PICK(rng, 4 * MINUTE, 20 * MINUTE);
}

static void change(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->book_rng;
    const st_booking *b = some_booking(gen);
    if (!b)
        return;
    st_window w = {b->from_ms, b->to_ms};
    int tasks = b->tasks;
    if (st_rng_chance(rng, 1, 3)) {
        int64_t by_ms = st_rng_range(rng, -10 * MINUTE, 20 * MINUTE);
        w.from_ms += by_ms;
        w.to_ms += by_ms;
    } else if (st_rng_chance(rng, 1, 3)) {
        tasks += (int)st_rng_range(rng, -1, 2);
    } else {
        w.to_ms += st_rng_range(rng, -10 * MINUTE, 30 * MINUTE);
    }
    uint64_t id = b->id;
    st_event *ev = &st_fuzz_record(gen, ST_EV_BOOK_CHANGE, true)->event;
    ev->u.rebook.id = id;
    ev->u.rebook.from_ms = w.from_ms;
    ev->u.rebook.to_ms = w.to_ms;
    ev->u.rebook.tasks = tasks;
}

/* The clocks of a zone change their rules: what was booked there and is ahead moves by as much, in the order of
 * control/zone_moves.c, in one moment. */
static void turn_clocks(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->clock_rng;
    const st_core *core = st_fuzz_run_core(gen->run);
    int64_t by_ms =
        PICK(rng, -60 * MINUTE, -30 * MINUTE, -5 * MINUTE, 5 * MINUTE, 30 * MINUTE, 60 * MINUTE);
    uint64_t zone = st_rng_below(rng, ZONES);
    const st_booking *list[ZONE_MOST];
    int n = 0;
    for (size_t i = 0; i < st_core_nbookings(core) && n < ZONE_MOST; i++) {
        const st_booking *b = st_core_booking_at(core, i);
        if ((b->series ? b->series : b->id) % ZONES != zone || b->open || b->job ||
            b->state != ST_BOOKING_CONFIRMED || b->from_ms <= gen->now)
            continue;
        int at = n++;
        for (; at > 0 && (list[at - 1]->from_ms < b->from_ms) == (by_ms > 0); at--)
            list[at] = list[at - 1];
        list[at] = b;
    }
    for (int i = 0; i < n; i++) {
        st_event *ev = &st_fuzz_record(gen, ST_EV_BOOK_CHANGE, true)->event;
        ev->u.rebook.id = list[i]->id;
        ev->u.rebook.from_ms = list[i]->from_ms + by_ms;
        ev->u.rebook.to_ms = list[i]->to_ms + by_ms;
        ev->u.rebook.tasks = list[i]->tasks;
    }
}

static void name_one(st_fuzz_gen *gen, st_event_kind kind)
{
    uint64_t id = some_number(gen);
    const st_booking *b = st_core_booking(st_fuzz_run_core(gen->run), id);
    st_event *ev = &st_fuzz_record(gen, kind, true)->event;
    ev->u.booking.series = b && b->series && st_rng_chance(&gen->book_rng, 1, 2);
    ev->u.booking.id = ev->u.booking.series ? b->series : id;
}

void st_fuzz_book(st_fuzz_gen *gen)
{
    st_rng *rng = &gen->book_rng;
    size_t nodes = st_core_fleet(st_fuzz_run_core(gen->run))->nodes.n;
    for (size_t i = 0; gen->labels && !gen->labelled && i < nodes; i++)
        relabel(gen); /* most have some from the beginning */
    gen->labelled = true;
    if (gen->labels && st_rng_chance(&gen->label_rng, 1, 6))
        relabel(gen);
    if (gen->clocks && st_rng_chance(&gen->clock_rng, 1, 12))
        turn_clocks(gen);
    if (!gen->books || !st_rng_chance(rng, 1, 2))
        return;
    size_t live = st_core_nbookings(st_fuzz_run_core(gen->run));
    uint64_t roll = st_rng_below(rng, 100);
    if (roll < 65 && live < 12)
        make(gen);
    else if (roll < 76)
        name_one(gen, ST_EV_BOOK_CONFIRM);
    else if (roll < 90)
        change(gen);
    else
        name_one(gen, ST_EV_BOOK_CANCEL);
}

void st_fuzz_book_job(st_fuzz_gen *gen, st_job_spec *job)
{
    job->meek = gen->books && st_rng_chance(&gen->book_rng, 1, 5);
    const st_booking *b =
        gen->books && st_rng_chance(&gen->book_rng, 1, 3) ? some_booking(gen) : NULL;
    if (!b)
        return;
    const st_tree *tree = st_core_tree(st_fuzz_run_core(gen->run));
    job->booking = b->id;
    job->account = st_tape_text(gen->tape, "%s", tree->accounts.v[b->account]->name);
    job->shape.types = 0;
    job->pool = -1;
    job->topo = ST_TOPO_NONE;
    job->shape.needs = 0;
    job->shape.level = ST_LEVEL_WHOLE;
    job->shape.gpus = (int)PICK(&gen->book_rng, 1, 1, b->gpus, b->gpus);
    job->tasks = (int)PICK(&gen->book_rng, 1, 1, b->tasks);
    if (st_rng_chance(&gen->book_rng, 1, 2))
        job->shape.cpu_m = job->shape.ram_mib = 0;
}
