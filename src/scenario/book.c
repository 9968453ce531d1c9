/*
 * Bookings in a scenario: `book`, of one window or a series, and `unbook`.
 */
#include "base/num.h"
#include "base/quote.h"
#include "scenario/read.h"
#include "spec/windows.h"

typedef struct book_fields {
    st_job_fields asks;
    const char *booking;
    const st_doc_node *require;
    st_window_fields when;
    bool dedicated;
    int64_t from_ms, for_ms, every_ms, no_show_ms;
    int count;
} book_fields;

#define COMMON_ROWS                                                                             \
    {.key = "booking", .kind = ST_F_NAME, .offset = offsetof(book_fields, booking)},            \
        {.key = "no_show", .kind = ST_F_DURATION, .offset = offsetof(book_fields, no_show_ms)}, \
        {.key = "require", .kind = ST_F_NODE, .offset = offsetof(book_fields, require)},        \
        {.key = "dedicated", .kind = ST_F_BOOL, .offset = offsetof(book_fields, dedicated)},    \
        ST_JOB_ROWS(book_fields, asks)

/* By moments of the scenario, and by a zone's clock. */
static const st_field rows[] = {
    {.key = "from", .kind = ST_F_DURATION, .offset = offsetof(book_fields, from_ms)},
    {.key = "for", .kind = ST_F_DURATION, .offset = offsetof(book_fields, for_ms)},
    {.key = "every", .kind = ST_F_DURATION, .offset = offsetof(book_fields, every_ms)},
    {.key = "count",
     .kind = ST_F_INT,
     .offset = offsetof(book_fields, count),
     .lo = 1,
     .hi = ST_SCN_WINDOWS_MAX},
    COMMON_ROWS,
    {0},
};
static const st_field zone_rows[] = {ST_WINDOW_ROWS(book_fields, when), COMMON_ROWS, {0}};

int st_scn_find_booking(const st_scenario *s, const st_doc_node *node, int64_t *ret, st_err *err)
{
    const char *name;
    char q[ST_QUOTE_MAX];
    int r = st_doc_str(s->doc, node, &name, err);

    if (r < 0 || st_map_get(s->booking_ids, name, ret))
        return r;
    return st_doc_fail(s->doc, node, err, ST_ENOENT, "there is no booking %s before this line",
                       st_quote(q, name));
}

static int check(st_scenario *s, const st_doc_node *map, const book_fields *f, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (!f->booking || !f->asks.account)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "a booking needs `booking` and `account`");
    if (st_map_get(s->booking_ids, f->booking, NULL))
        return st_doc_fail(s->doc, map, err, ST_EEXIST, "there is a booking %s already",
                           st_quote(q, f->booking));
    if (f->when.from)
        return 0; /* a zone's windows are looked at where they are read */
    if (f->for_ms <= 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "key \"for\" is missing");
    if (f->count > 1 && f->every_ms <= 0)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "a series needs `every`");
    if (f->every_ms > ST_DURATION_MAX_MS / f->count ||
        f->from_ms > ST_DURATION_MAX_MS - f->for_ms - f->count * f->every_ms)
        return st_doc_fail(s->doc, map, err, ST_ERANGE, "its last window is too late");
    return 0;
}

static void by_moments(const st_scenario *s, const book_fields *f, st_scn_book *book)
{
    book->windows = st_arena_alloc(s->arena, (size_t)f->count * sizeof *book->windows);
    for (int i = 0; i < f->count; i++)
        book->windows[i] =
            (st_window){f->from_ms + i * f->every_ms, f->from_ms + i * f->every_ms + f->for_ms};
}

static int by_clock(st_scenario *s, const st_doc_node *map, const book_fields *f, st_scn_book *book,
                    st_err *err)
{
    st_occurrences when = {0};
    int r = st_scn_find_zone(s, st_doc_get(map, "zone"), f->when.zone, &book->zone, err);

    if (r == 0)
        r = st_spec_windows(s->doc, &f->when, s->zones.v[book->zone], s->start_ms, &when, err);
    if (r == 0 && when.n > ST_SCN_WINDOWS_MAX)
        r = st_doc_fail(s->doc, map, err, ST_ERANGE, "a series has at most %d windows",
                        ST_SCN_WINDOWS_MAX);
    if (r == 0) {
        book->n = (int)when.n;
        book->windows = st_arena_alloc(s->arena, when.n * sizeof *book->windows);
        book->walls = st_arena_alloc(s->arena, when.n * sizeof *book->walls);
    }
    for (size_t i = 0; r == 0 && i < when.n; i++) {
        book->windows[i] =
            (st_window){when.v[i].from_ms - s->start_ms, when.v[i].to_ms - s->start_ms};
        book->walls[i] = when.v[i].wall;
    }
    st_vec_free(&when);
    return r;
}

int st_scn_read_book(st_scenario *s, const st_doc_node *map, const st_scn_action *base, st_err *err)
{
    const st_spec_names names = st_scn_spec_names(s);
    book_fields f = {.asks = ST_JOB_FIELDS_INIT,
                     .when = ST_WINDOW_FIELDS_INIT,
                     .count = 1,
                     .no_show_ms = ST_TIME_NEVER};
    st_scn_action action = *base;
    st_job_spec job = {.pool = -1};
    st_scn_book *book;
    const char *require = NULL;
    bool none = false;
    bool zone = st_doc_get(map, "zone") != NULL;
    int r = st_fields_read(s->doc, map, zone ? zone_rows : rows, &f, err);

    if (r == 0)
        r = check(s, map, &f, err);
    if (r == 0)
        r = st_spec_job(s->doc, map, &f.asks, &names, &job, &none, err);
    if (r == 0)
        r = st_scn_read_labels(s, f.require, &require, err);
    if (r < 0)
        return r;
    book = st_arena_alloc(s->arena, sizeof *book);
    *book = (st_scn_book){.n = f.count, .id = s->next_booking + 1};
    r = zone ? by_clock(s, map, &f, book, err) : 0;
    if (r < 0)
        return r;
    if (!zone)
        by_moments(s, &f, book);
    const int32_t type = job.shape.types ? __builtin_ctz(job.shape.types) : 0;
    st_parts parts = {.level = job.shape.level};
    int gpus = 0;
    if (parts.level != ST_LEVEL_WHOLE) { /* one for each task */
        parts.profile = job.shape.profile;
        parts.share_m = job.shape.share_m;
        parts.n = job.tasks;
        gpus = st_parts_gpus(names.board(names.ctx, type), &parts);
    }
    book->spec = (st_booking_spec){.id = book->id,
                                   .series = book->n > 1 ? book->id : 0,
                                   .name = f.booking,
                                   .account = f.asks.account,
                                   .user = f.asks.user ? f.asks.user : f.asks.account,
                                   .pool = job.pool,
                                   .type = type,
                                   .tasks = gpus > 0 ? gpus : job.tasks,
                                   .gpus = job.shape.gpus,
                                   .topo = job.topo,
                                   .topo_required = job.topo_required,
                                   .cpu_m = job.shape.cpu_m,
                                   .ram_mib = job.shape.ram_mib,
                                   .require = require,
                                   .dedicated = f.dedicated,
                                   .parts = parts,
                                   .no_show_ms = f.no_show_ms};
    s->next_booking += (uint64_t)book->n;
    st_map_put(s->booking_ids, f.booking, (int64_t)book->id);
    action.book = book;
    st_vec_push(&s->actions, action);
    return 0;
}

/* Of a series all that is left. */
int st_scn_read_unbook(st_scenario *s, const st_doc_node *node, const st_scn_action *base,
                       st_err *err)
{
    for (const st_doc_node *n = NULL; (n = st_field_each(node, n));) {
        st_scn_action action = *base;
        int64_t id;
        int r = st_scn_find_booking(s, n, &id, err);

        if (r < 0)
            return r;
        action.booking = (uint64_t)id;
        st_vec_push(&s->actions, action);
    }
    return 0;
}
