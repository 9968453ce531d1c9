/*
 * The Prometheus text format. Numbers are integers or decimals with a fixed
 * point, so nothing here rounds.
 */
#include "http/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static bool is_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_' && *s != ':')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_' && *s != ':')
            return false;
    return true;
}

static void add_escaped(st_strbuf *out, const char *s, bool quotes)
{
    for (; *s; s++) {
        if (*s == '\n')
            st_strbuf_add(out, "\\n");
        else if (*s == '\\')
            st_strbuf_add(out, "\\\\");
        else if (*s == '"' && quotes)
            st_strbuf_add(out, "\\\"");
        else
            st_strbuf_addc(out, *s);
    }
}

void st_metrics_family(st_metrics *m, const char *name, st_metric_type type, const char *help)
{
    static const char *const words[] = {"counter", "gauge", "histogram"};

    ST_ASSERT(is_name(name));
    ST_ASSERT(m->labels.n == 0);
    m->family = name;
    m->type = type;
    st_strbuf_addf(m->out, "# HELP %s ", name);
    add_escaped(m->out, help, false);
    st_strbuf_addf(m->out, "\n# TYPE %s %s\n", name, words[type]);
}

void st_metrics_label(st_metrics *m, const char *name, const char *value)
{
    ST_ASSERT(is_name(name) && !strchr(name, ':'));
    if (m->labels.n > 0)
        st_strbuf_addc(&m->labels, ',');
    st_strbuf_addf(&m->labels, "%s=\"", name);
    add_escaped(&m->labels, value, true);
    st_strbuf_addc(&m->labels, '"');
}

/* Name, suffix and labels, up to where the value goes; `le` is one more label. */
static void begin_sample(st_metrics *m, const char *suffix, const char *le)
{
    ST_ASSERT(m->family);
    st_strbuf_addf(m->out, "%s%s", m->family, suffix);
    if (m->labels.n > 0 || le) {
        st_strbuf_addf(m->out, "{%s", st_strbuf_str(&m->labels));
        if (le)
            st_strbuf_addf(m->out, "%sle=\"%s\"", m->labels.n > 0 ? "," : "", le);
        st_strbuf_addc(m->out, '}');
    }
    st_strbuf_addc(m->out, ' ');
}

void st_metrics_int(st_metrics *m, int64_t value)
{
    ST_ASSERT(m->type != ST_METRIC_HISTOGRAM);
    begin_sample(m, "", NULL);
    st_strbuf_addf(m->out, "%" PRId64 "\n", value);
    st_strbuf_clear(&m->labels);
}

void st_metrics_milli(st_metrics *m, int64_t milli)
{
    char text[ST_FMT_MAX];

    ST_ASSERT(m->type != ST_METRIC_HISTOGRAM);
    begin_sample(m, "", NULL);
    st_strbuf_addf(m->out, "%s\n", st_fmt_milli(text, milli));
    st_strbuf_clear(&m->labels);
}

/* Millionths as a decimal, without zeros at the end: microseconds as seconds. */
static void format_micro(char buf[ST_FMT_MAX], uint64_t us)
{
    int n = snprintf(buf, ST_FMT_MAX, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);

    while (buf[n - 1] == '0')
        n--;
    if (buf[n - 1] == '.')
        n--;
    buf[n] = '\0';
}

void st_metrics_micro(st_metrics *m, int64_t micro)
{
    char text[ST_FMT_MAX];

    ST_ASSERT(m->type != ST_METRIC_HISTOGRAM);
    begin_sample(m, "", NULL);
    format_micro(text, micro < 0 ? 0 - (uint64_t)micro : (uint64_t)micro);
    st_strbuf_addf(m->out, "%s%s\n", micro < 0 ? "-" : "", text);
    st_strbuf_clear(&m->labels);
}

void st_metrics_histogram_us(st_metrics *m, const int64_t *bounds_us, const uint64_t *counts, int n,
                             uint64_t above, uint64_t sum_us)
{
    char text[ST_FMT_MAX];
    uint64_t total = 0;

    ST_ASSERT(m->type == ST_METRIC_HISTOGRAM);
    for (int i = 0; i < n; i++) {
        total += counts[i];
        format_micro(text, (uint64_t)bounds_us[i]);
        begin_sample(m, "_bucket", text);
        st_strbuf_addf(m->out, "%" PRIu64 "\n", total);
    }
    total += above;
    begin_sample(m, "_bucket", "+Inf");
    st_strbuf_addf(m->out, "%" PRIu64 "\n", total);
    format_micro(text, sum_us);
    begin_sample(m, "_sum", NULL);
    st_strbuf_addf(m->out, "%s\n", text);
    begin_sample(m, "_count", NULL);
    st_strbuf_addf(m->out, "%" PRIu64 "\n", total);
    st_strbuf_clear(&m->labels);
}

void st_metrics_done(st_metrics *m)
{
    st_strbuf_done(&m->labels);
}
