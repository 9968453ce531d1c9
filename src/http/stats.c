/*
 * Counters of the server. Each is an atomic that only grows; a reader may see
 * one call in some of them and not yet in others, which Prometheus expects.
 */
#include "http/stats.h"

#include <stdatomic.h>

#include "base/mem.h"

static const int64_t bounds_us[] = {100,   250,   500,    1000,   2500,    5000,   10000,
                                    25000, 50000, 100000, 250000, 1000000, 5000000};
#define NBOUND ((int)ST_ARRAY_LEN(bounds_us))

typedef struct row {
    atomic_uint_fast64_t by_class[6]; /* index is status / 100 */
    atomic_uint_fast64_t bucket[ST_ARRAY_LEN(bounds_us) + 1];
    atomic_uint_fast64_t sum_us;
} row;

struct st_stats {
    const st_route *routes;
    int nroute;
    atomic_uint_fast64_t rejected[ST_REJECT_COUNT];
    row rows[]; /* one more than there are routes: the last is for none */
};

st_stats *st_stats_new(const st_route *routes, int nroute)
{
    st_stats *stats = st_xcalloc(1, sizeof(*stats) + ((size_t)nroute + 1) * sizeof(row));

    stats->routes = routes;
    stats->nroute = nroute;
    return stats;
}

void st_stats_free(st_stats *stats)
{
    free(stats);
}

static void count(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint64_t read_counter(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void st_stats_call(st_stats *stats, int route, int status, int64_t duration_us)
{
    row *r = &stats->rows[route < 0 ? stats->nroute : route];
    int bucket = 0;

    ST_ASSERT(status >= 100 && status <= 599);
    while (bucket < NBOUND && duration_us > bounds_us[bucket])
        bucket++;
    count(&r->by_class[status / 100], 1);
    count(&r->bucket[bucket], 1);
    count(&r->sum_us, (uint64_t)duration_us);
}

void st_stats_reject(st_stats *stats, st_reject why)
{
    count(&stats->rejected[why], 1);
}

static const char *label_of(const st_stats *stats, int i)
{
    return i < stats->nroute ? stats->routes[i].id : "none";
}

static void write_calls(const st_stats *stats, st_metrics *m)
{
    static const char *const classes[] = {"0xx", "1xx", "2xx", "3xx", "4xx", "5xx"};

    st_metrics_family(m, "stint_http_requests_total", ST_METRIC_COUNTER,
                      "Requests answered, by route and class of status.");
    for (int i = 0; i <= stats->nroute; i++) {
        for (int class = 0; class < 6; class ++) {
            uint64_t n = read_counter(&stats->rows[i].by_class[class]);

            if (n == 0)
                continue;
            st_metrics_label(m, "route", label_of(stats, i));
            st_metrics_label(m, "status", classes[class]);
            st_metrics_int(m, (int64_t)n);
        }
    }
}

static void write_durations(const st_stats *stats, st_metrics *m)
{
    st_metrics_family(m, "stint_http_request_seconds", ST_METRIC_HISTOGRAM,
                      "From the end of the headers to the end of the answer; of an event stream to "
                      "its beginning.");
    for (int i = 0; i <= stats->nroute; i++) {
        uint64_t counts[ST_ARRAY_LEN(bounds_us) + 1], total = 0;

        for (int b = 0; b <= NBOUND; b++)
            total += counts[b] = read_counter(&stats->rows[i].bucket[b]);
        if (total == 0)
            continue;
        st_metrics_label(m, "route", label_of(stats, i));
        st_metrics_histogram_us(m, bounds_us, counts, NBOUND, counts[NBOUND],
                                read_counter(&stats->rows[i].sum_us));
    }
}

void st_stats_write(const st_stats *stats, st_metrics *m)
{
    static const char *const labels[] = {
#define LABEL(name, label) label,
        ST_REJECT_TABLE(LABEL)
#undef LABEL
    };

    write_calls(stats, m);
    write_durations(stats, m);
    st_metrics_family(m, "stint_http_rejected_total", ST_METRIC_COUNTER,
                      "Requests, connections and streams turned away, by reason.");
    for (int i = 0; i < ST_REJECT_COUNT; i++) {
        st_metrics_label(m, "reason", labels[i]);
        st_metrics_int(m, (int64_t)read_counter(&stats->rejected[i]));
    }
}
