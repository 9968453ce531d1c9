/* Prometheus text. Samples of one metric stand together, so the loop is over metrics first. */
#include "gpu/export.h"

#include <inttypes.h>
#include <stdio.h>

static void add_label(st_strbuf *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    st_strbuf_addf(out, "%s%s=\"", out->s[out->n - 1] == '{' ? "" : ",", name);
    for (const char *p = value; *p; p++) {
        if (*p == '\n')
            st_strbuf_add(out, "\\n");
        else if (*p == '"' || *p == '\\')
            st_strbuf_addf(out, "\\%c", *p);
        else
            st_strbuf_addc(out, *p);
    }
    st_strbuf_addc(out, '"');
}

static void add_labels(st_strbuf *out, const st_gpu_export_row *row)
{
    char text[32];

    st_strbuf_addc(out, '{');
    snprintf(text, sizeof(text), "%d", row->gpu->index);
    add_label(out, "gpu", text);
    add_label(out, "UUID", row->gpu->uuid);
    add_label(out, "pci_bus_id", row->gpu->bus_id);
    snprintf(text, sizeof(text), "nvidia%d", row->gpu->minor);
    add_label(out, "device", row->gpu->minor >= 0 ? text : NULL);
    add_label(out, "modelName", row->gpu->name);
    if (row->instance) {
        snprintf(text, sizeof(text), "%d", row->instance->gi);
        if (row->instance->profile >= 0)
            add_label(out, "GPU_I_PROFILE",
                      st_mig_name(row->gpu->board, (st_mig)row->instance->profile));
        add_label(out, "GPU_I_ID", text);
    }
    add_label(out, "Hostname", row->host);
    add_label(out, "tenant", row->tenant);
    add_label(out, "job", row->job);
    add_label(out, "grant", row->grant);
    st_strbuf_addc(out, '}');
}

void st_gpu_export_value(st_gpu_metric m, int64_t value, st_strbuf *out)
{
    int64_t scale = st_gpu_metric_scale(m);
    int64_t rest = value % scale;

    st_strbuf_addf(out, "%s%" PRId64, value < 0 && value / scale == 0 ? "-" : "", value / scale);
    if (rest == 0)
        return;
    st_strbuf_addc(out, '.');
    for (rest = rest < 0 ? -rest : rest; rest != 0; rest %= scale) {
        scale /= 10;
        st_strbuf_addc(out, (char)('0' + rest / scale));
    }
}

void st_gpu_export(const st_gpu_export_row *rows, size_t n, st_strbuf *out)
{
    for (int i = 0; i < ST_GPU_METRIC_COUNT; i++) {
        st_gpu_metric m = (st_gpu_metric)i;
        bool begun = false;
        for (size_t r = 0; r < n; r++) {
            if (!st_gpu_has(rows[r].sample, m))
                continue;
            const char *name = st_gpu_metric_name(m);
            if (!begun)
                st_strbuf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, st_gpu_metric_help(m),
                               name, st_gpu_metric_type(m));
            begun = true;
            st_strbuf_add(out, name);
            add_labels(out, &rows[r]);
            st_strbuf_addc(out, ' ');
            st_gpu_export_value(m, rows[r].sample->v[m], out);
            st_strbuf_addc(out, '\n');
        }
    }
}
