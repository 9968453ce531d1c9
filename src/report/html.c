/*
 * The page of a run: its frame, the key figures, the order of its sections and the table of
 * accounts; see report/html_page.h for the rest.
 */
#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "report/html_page.h"

#define HOUR           3600000.0
#define GPU_HOUR       (1000 * HOUR) /* in milli-GPU x ms */
#define TABLE_ROWS_MAX 500

/* ---- sections and tables ------------------------------------------------------------ */

void st_page_open(st_page *g, const char *heading, const char *how)
{
    st_strbuf_addf(g->out, "<section>\n<h2>%s</h2>\n<p class=\"how\">%s</p>\n", heading, how);
}

void st_page_close(st_page *g)
{
    st_strbuf_add(g->out, "</section>\n");
}

void st_page_table_open(st_page *g)
{
    st_strbuf_add(g->out,
                  "<details><summary>As a table</summary>\n<div class=\"scroll\"><table>\n");
}

void st_page_table_close(st_page *g)
{
    st_strbuf_add(g->out, "</tbody></table></div></details>\n");
}

void st_page_time_table(st_page *g, const st_page_column *columns, size_t n)
{
    size_t rows = ST_MIN(g->n, ST_PAGE_ROWS_MAX);
    char buf[ST_HTML_MAX];

    if (rows == 0 || n == 0)
        return;
    st_page_table_open(g);
    st_strbuf_add(g->out, "<thead><tr><th>Time</th>");
    for (size_t c = 0; c < n; c++) {
        st_strbuf_add(g->out, "<th>");
        st_quote_html(g->out, columns[c].heading);
        st_strbuf_add(g->out, "</th>");
    }
    st_strbuf_add(g->out, "</tr></thead>\n<tbody>");
    for (size_t i = 0; i < rows; i++) {
        size_t at = rows > 1 ? i * (g->n - 1) / (rows - 1) : 0;

        st_strbuf_addf(g->out, "<tr><th scope=\"row\">%s</th>",
                       st_html_moment(buf, g->trace->epoch_s, g->run->samples.v[at].at_ms));
        for (size_t c = 0; c < n; c++)
            st_strbuf_addf(g->out, "<td>%s</td>", st_html_short(buf, columns[c].y[at]));
        st_strbuf_add(g->out, "</tr>\n");
    }
    st_page_table_close(g);
}

/* ---- key figures -------------------------------------------------------------------- */

static void figure(st_page *g, const char *what, const char *big, const char *more)
{
    st_strbuf_addf(g->out, "<div><dt>%s</dt><dd class=\"big\">", what);
    st_quote_html(g->out, big);
    st_strbuf_add(g->out, "</dd><dd class=\"more\">");
    st_quote_html(g->out, more);
    st_strbuf_add(g->out, "</dd></div>\n");
}

static int64_t fleet_gpus(const st_trace *t)
{
    int64_t n = 0;

    for (size_t i = 0; i < t->nodes.n; i++)
        n += t->nodes.v[i].ndevs;
    return n;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* The median large, mean and p99 below. */
static void figure_spread(st_page *g, const char *what, const st_spread *s)
{
    char p50[ST_HTML_MAX], mean[ST_HTML_MAX], p99[ST_HTML_MAX], more[160] = "no job";

    if (s->n > 0)
        snprintf(more, sizeof(more), "median; mean %s, p99 %s",
                 st_html_duration(mean, llround(s->mean)), st_html_duration(p99, s->p99));
    figure(g, what, s->n > 0 ? st_html_duration(p50, s->p50) : "–", more);
}

static void figure_jobs(st_page *g)
{
    const st_run_stats *s = &g->stats;
    const struct {
        uint64_t n;
        const char *words;
    } rows[] = {
        {s->done, "done"},           {s->timeout, "ended by their limit"},
        {s->cancelled, "cancelled"}, {s->unfinished, "without an end"},
        {s->refused, "refused"},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf more = {0};
    char n[ST_HTML_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (i == 0 || rows[i].n > 0)
            st_strbuf_addf(&more, "%s%s %s", i > 0 ? ", " : "",
                           st_html_count(n, (int64_t)rows[i].n), rows[i].words);
    figure(g, "Jobs", st_html_count(n, (int64_t)s->jobs), st_strbuf_str(&more));
}

/* Free beside a queue, with the two causes that weigh most. */
static void figure_idle(st_page *g)
{
    const st_run_stats *s = &g->stats;
    char big[ST_HTML_MAX], n[ST_HTML_MAX];
    ST_CLEANUP(st_strbuf_done) st_strbuf more = {0};
    bool told[ST_IDLE_COUNT] = {false};

    st_strbuf_add(&more, "of capacity, free while waiting jobs asked for it");
    for (int k = 0; k < 2; k++) {
        int most = -1;

        for (int c = 0; c < ST_IDLE_COUNT; c++)
            if (!told[c] && s->idle[c] > 0 && (most < 0 || s->idle[c] > s->idle[most]))
                most = c;
        if (most < 0)
            break;
        told[most] = true;
        st_strbuf_addf(&more, "%s %s %s", k > 0 ? "," : ":", st_html_per_cent(n, s->idle[most]),
                       st_idle_what((st_idle)most));
    }
    figure(g, "Idle beside a queue", st_html_per_cent(big, s->idle_all), st_strbuf_str(&more));
}

static void figure_losses(st_page *g)
{
    const st_run_stats *s = &g->stats;
    char big[ST_HTML_MAX], n[ST_HTML_MAX], more[160];
    double most = 0;

    snprintf(more, sizeof(more), "of %s jobs", st_html_count(n, (int64_t)s->preempted_jobs));
    figure(g, "Preemptions", st_html_count(big, (int64_t)s->preemptions), more);
    snprintf(more, sizeof(more), "%s GPU-hours run in vain, or spent on saving and restoring",
             st_html_count(n, llround(s->lost_gpu_hours)));
    figure(g, "Work lost", st_html_per_cent(big, ratio(s->lost_gpu_hours, s->allocated_gpu_hours)),
           more);
    for (size_t i = 0; i < g->run->samples.n; i++)
        most = ST_MAX(most, ratio((double)g->run->samples.v[i].stranded_m,
                                  (double)g->run->samples.v[i].capacity_m));
    snprintf(more, sizeof(more), "of capacity on average; at most %s", st_html_per_cent(n, most));
    figure(g, "Stranded", st_html_per_cent(big, s->stranded), more);
    figure_idle(g);
}

static void figure_least(st_page *g)
{
    const st_run_stats *s = &g->stats;
    char big[ST_HTML_MAX], more[ST_NAME_MAX + 64] = "nobody was entitled to anything";

    if (s->worst >= 0)
        snprintf(more, sizeof(more), "held of what it was entitled to: %s",
                 g->trace->accounts.v[s->worst].name);
    figure(g, "Least served account", s->worst >= 0 ? st_html_per_cent(big, s->worst_ratio) : "–",
           more);
}

static void key_figures(st_page *g)
{
    char big[ST_HTML_MAX], n[ST_HTML_MAX], more[160];

    st_strbuf_add(g->out, "<dl class=\"figures\">\n");
    if (g->run->last_submit_ms > 0) {
        snprintf(more, sizeof(more), "of the GPUs until the last job came; %s to the end",
                 st_html_per_cent(n, g->stats.allocation));
        figure(g, "Allocated", st_html_per_cent(big, g->stats.allocation_arriving), more);
    } else {
        snprintf(more, sizeof(more), "of the GPUs over %s", st_html_duration(n, g->run->end_ms));
        figure(g, "Allocated", st_html_per_cent(big, g->stats.allocation), more);
    }
    figure_spread(g, "Waiting for the first start", &g->stats.queueing);
    figure_spread(g, "Completion, from submit to end", &g->stats.completion);
    figure_jobs(g);
    figure_losses(g);
    figure_least(g);
    st_strbuf_add(g->out, "</dl>\n");
}

/* ---- accounts ----------------------------------------------------------------------- */

static void account_row(st_page *g, int32_t account)
{
    const st_run_account *a = &g->run->accounts.v[account];
    char buf[ST_HTML_MAX];

    st_strbuf_add(g->out, "<tr><th scope=\"row\">");
    st_quote_html(g->out, g->trace->accounts.v[account].name);
    st_strbuf_addf(g->out, "</th><td>%s</td>", st_html_count(buf, (int64_t)a->jobs));
    st_strbuf_addf(g->out, "<td>%s</td>",
                   st_html_count(buf, (int64_t)((double)a->held / GPU_HOUR + 0.5)));
    st_strbuf_addf(g->out, "<td>%s</td>",
                   st_html_count(buf, (int64_t)((double)a->entitled / GPU_HOUR + 0.5)));
    if (a->entitled > 0)
        st_strbuf_addf(g->out, "<td>%.2f</td>", (double)a->held / (double)a->entitled);
    else
        st_strbuf_add(g->out, "<td>–</td>");
    st_strbuf_addf(g->out, "<td>%s</td>", st_html_count(buf, (int64_t)a->preemptions));
    st_strbuf_addf(g->out, "<td>%s</td>", st_html_short(buf, (double)a->lost / GPU_HOUR));
    st_strbuf_addf(g->out, "<td>%s</td></tr>\n",
                   a->jobs > 0 ? st_html_duration(buf, a->late_ms_sum / (int64_t)a->jobs) : "–");
}

static void accounts(st_page *g)
{
    size_t rows = ST_MIN(g->naccounts, TABLE_ROWS_MAX);

    st_page_open(g, "Accounts",
                 "Who held most comes first. Entitled is what an account asked for, at most its "
                 "guarantee and its part of the surplus.");
    st_strbuf_add(g->out,
                  "<div class=\"scroll\"><table>\n<thead><tr><th>Account</th><th>Jobs</th>"
                  "<th>Held, GPU-hours</th><th>Entitled, GPU-hours</th><th>Held / entitled</th>"
                  "<th>Preemptions</th><th>Lost, GPU-hours</th><th>Mean wait</th></tr></thead>\n"
                  "<tbody>");
    for (size_t i = 0; i < rows; i++)
        account_row(g, g->order[i]);
    st_strbuf_add(g->out, "</tbody></table></div>\n");
    if (rows < g->naccounts)
        st_strbuf_addf(g->out, "<p class=\"how\">and %zu more</p>\n", g->naccounts - rows);
    st_page_close(g);
}

/* ---- the frame ---------------------------------------------------------------------- */

static void head(st_page *g)
{
    char from[ST_HTML_MAX], to[ST_HTML_MAX], n[ST_HTML_MAX], m[ST_HTML_MAX];

    st_strbuf_add(g->out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                          "<meta name=\"viewport\" content=\"width=device-width, "
                          "initial-scale=1\"/>\n<title>");
    st_quote_html(g->out, g->trace->name);
    st_strbuf_add(g->out, ": what became of it</title>\n<style>\n/*<![CDATA[*/\n");
    for (size_t i = 0; st_page_style[i]; i++)
        st_strbuf_add(g->out, st_page_style[i]);
    st_strbuf_add(g->out, "/*]]>*/\n</style>\n</head>\n");
    /* The places of the read-outs, shared by all plots over time. */
    st_strbuf_add(g->out, "<body data-times=\"{&quot;x&quot;:[");
    for (size_t i = 0; i < st_plot_hover_count(g->n); i++) {
        double at = g->x[st_plot_hover_at(g->n, i)];

        st_strbuf_addf(g->out, "%s%.0f", i > 0 ? "," : "", ratio(at * 1000, (double)g->to_ms));
    }
    st_strbuf_add(g->out, "],&quot;l&quot;:[");
    for (size_t i = 0; i < st_plot_hover_count(g->n); i++)
        st_strbuf_addf(
            g->out, "%s&quot;%s&quot;", i > 0 ? "," : "",
            st_html_moment(from, g->trace->epoch_s, (int64_t)g->x[st_plot_hover_at(g->n, i)]));
    st_strbuf_add(g->out, "]}\">\n<header>\n<h1>");
    st_quote_html(g->out, g->trace->name);
    st_strbuf_addf(g->out, "</h1>\n<p class=\"lead\">%s GPUs in %s nodes, from %s to %s</p>\n",
                   st_html_count(n, fleet_gpus(g->trace)),
                   st_html_count(m, (int64_t)g->trace->nodes.n),
                   st_html_moment(from, g->trace->epoch_s, 0),
                   st_html_moment(to, g->trace->epoch_s, g->run->end_ms));
    key_figures(g);
    if (g->to_ms < g->run->end_ms)
        st_strbuf_addf(g->out,
                       "<p class=\"how cut\">Plots over time end at %s, after the last jobs came; "
                       "until the end only what was left ran out.</p>\n",
                       st_html_moment(to, g->trace->epoch_s, g->to_ms));
    st_strbuf_add(g->out, "</header>\n<main>\n");
}

typedef struct holder {
    int64_t held;
    int32_t account;
} holder;

static int by_held(const void *a, const void *b)
{
    const holder *x = a, *y = b;

    if (x->held != y->held)
        return x->held > y->held ? -1 : 1;
    return x->account < y->account ? -1 : 1;
}

/* Accounts that only stand above others have no jobs and are left out. */
static void order_accounts(st_page *g)
{
    size_t n = ST_MIN(g->trace->accounts.n, g->run->accounts.n);
    ST_CLEANUP(st_freep) holder *list = st_xcalloc(n + 1, sizeof(*list));

    for (size_t i = 0; i < n; i++)
        if (g->run->accounts.v[i].jobs > 0)
            list[g->naccounts++] = (holder){g->run->accounts.v[i].held, (int32_t)i};
    qsort(list, g->naccounts, sizeof(*list), by_held);
    g->order = st_xcalloc(g->naccounts + 1, sizeof(*g->order));
    for (size_t i = 0; i < g->naccounts; i++)
        g->order[i] = list[i].account;
}

/* A few long jobs may run on for weeks after the last one came. Plots then end soon after it, or
 * all that happened would be squeezed to the left. */
static void choose_span(st_page *g)
{
    const st_trace *t = g->trace;
    int64_t came_ms = t->jobs.n > 0 ? t->jobs.v[t->jobs.n - 1].submit_ms : 0;
    size_t all = g->run->samples.n;

    g->to_ms = g->run->end_ms;
    if (all > 0)
        g->to_ms = ST_MAX(g->to_ms, g->run->samples.v[all - 1].at_ms);
    if (came_ms > 0 && g->to_ms > came_ms + came_ms / 2)
        g->to_ms = came_ms + came_ms / 4;
    g->n = 0;
    while (g->n < all && g->run->samples.v[g->n].at_ms <= g->to_ms)
        g->n++;
}

static void page_done(st_page *g)
{
    free(g->x);
    free(g->order);
}

int st_trace_html(const st_trace_run *run, st_strbuf *out)
{
    ST_CLEANUP(page_done)
    st_page g = {.run = run, .trace = run->trace, .out = out, .n = run->samples.n};

    ST_ASSERT(run->jobs.n <= run->trace->jobs.n);
    choose_span(&g);
    g.x = st_xcalloc(g.n + 1, sizeof(*g.x));
    for (size_t i = 0; i < g.n; i++)
        g.x[i] = (double)run->samples.v[i].at_ms;
    st_run_stats_of(run, &g.stats);
    order_accounts(&g);
    head(&g);
    st_page_allocation(&g);
    st_page_queue(&g);
    st_page_shares(&g);
    st_page_waiting(&g);
    st_page_stranded(&g);
    accounts(&g);
    st_strbuf_addf(out,
                   "</main>\n<footer>Played by stint %s. GPU-hours are hours of one GPU; a share "
                   "counts as its part.</footer>\n<script>\n//<![CDATA[\n%s//]]>\n</script>\n"
                   "</body>\n</html>\n",
                   ST_VERSION, st_page_script);
    return 0;
}
