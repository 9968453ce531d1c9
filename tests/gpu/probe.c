/*
 * stint-gpu-probe: what a GPU driver of ours says, as JSON, one object to a line. For looking at a
 * node and for tests/gpu/h200.sh; not installed.
 *
 *   stint-gpu-probe [--driver nvml|sim:PROFILE] [--library PATH] [--gpu N] COMMAND
 *     show               inventory, MIG profiles and instances
 *     sample N MS        N samples, MS apart, with processes and instances
 *     cost N             what N samples of every GPU take
 *     carve P@S,...      make the MIG instances exactly these ("" for none), with times
 *     exercise           every MIG profile once, then layouts into each other, with times
 *     mig on|off
 *     mode N             the compute mode: 0 default, 2 prohibited, 3 one process
 *     wait MS            events until then
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "gpu/export.h"
#include "gpu/sim.h"

#define PROCS_MAX 64

typedef struct probe {
    st_gpu *g;
    int gpu;
    st_strbuf out; /* the object being written */
} probe;

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static void sleep_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void key(st_strbuf *out, const char *name)
{
    char last = out->n ? out->s[out->n - 1] : '{';
    st_strbuf_addf(out, "%s", last == '{' || last == '[' ? "" : ",");
    if (name) {
        st_quote_json(out, name);
        st_strbuf_addc(out, ':');
    }
}

static void put_str(st_strbuf *out, const char *name, const char *value)
{
    key(out, name);
    st_quote_json(out, value);
}

static void put_int(st_strbuf *out, const char *name, int64_t value)
{
    key(out, name);
    st_strbuf_addf(out, "%" PRId64, value);
}

static void put_bool(st_strbuf *out, const char *name, bool value)
{
    key(out, name);
    st_strbuf_add(out, value ? "true" : "false");
}

static void begin(st_strbuf *out, const char *name, char bracket)
{
    key(out, name);
    st_strbuf_addc(out, bracket);
}

static void flush(probe *p)
{
    puts(st_strbuf_str(&p->out));
    fflush(stdout);
    st_strbuf_clear(&p->out);
}

/* A line that says what was asked, how long it took and how it went. */
static int report(probe *p, const char *what, int64_t began_us, int result, const st_err *err)
{
    int64_t took_us = now_us() - began_us;

    st_strbuf_addc(&p->out, '{');
    put_str(&p->out, "did", what);
    put_int(&p->out, "us", took_us);
    put_bool(&p->out, "ok", result >= 0);
    if (result < 0)
        put_str(&p->out, "error", err->msg);
    st_strbuf_addc(&p->out, '}');
    flush(p);
    return result;
}

/* ---- show ------------------------------------------------------------------------------- */

static void put_gpu(st_strbuf *out, const st_gpu_info *info, int n)
{
    begin(out, NULL, '{');
    put_int(out, "index", info->index);
    put_str(out, "uuid", info->uuid);
    put_str(out, "bus_id", info->bus_id);
    put_str(out, "name", info->name);
    put_str(out, "serial", info->serial);
    put_str(out, "type", info->type);
    put_int(out, "vram_mib", info->vram_mib);
    put_int(out, "compute_capability", info->cc);
    put_int(out, "minor", info->minor);
    put_str(out, "node", info->node);
    put_str(out, "board", st_board_name(info->board));
    put_bool(out, "mig_capable", info->mig_capable);
    put_bool(out, "mig_on", info->mig_on);
    put_int(out, "mode", info->mode);
    put_int(out, "numa", info->numa);
    put_str(out, "cpus", info->cpus);
    put_int(out, "pcie_gen", info->pcie_gen);
    put_int(out, "pcie_gen_max", info->pcie_gen_max);
    put_int(out, "pcie_width", info->pcie_width);
    put_int(out, "pcie_width_max", info->pcie_width_max);
    put_int(out, "power_limit_mw", info->power_limit_mw);
    put_int(out, "links", info->links);
    put_int(out, "links_switch", info->links_switch);
    begin(out, "peers", '[');
    for (int i = 0; i < n; i++)
        put_int(out, NULL, info->peer[i]);
    st_strbuf_addc(out, ']');
    begin(out, "ancestors", '[');
    for (int i = 0; i < n; i++)
        put_int(out, NULL, info->ancestor[i]);
    st_strbuf_add(out, "]}");
}

static void put_instance(st_strbuf *out, const st_gpu_instance *i)
{
    begin(out, NULL, '{');
    put_int(out, "gi", i->gi);
    put_int(out, "ci", i->ci);
    put_int(out, "profile", i->profile);
    put_int(out, "start", i->start);
    put_int(out, "size", i->size);
    put_int(out, "vram_mib", i->vram_mib);
    put_str(out, "uuid", i->uuid);
    put_str(out, "gi_node", i->node[0]);
    put_str(out, "ci_node", i->node[1]);
    st_strbuf_addc(out, '}');
}

static void put_mig(probe *p)
{
    st_gpu_profile profiles[ST_MIG_COUNT];
    st_gpu_instances list = {0};
    st_err err = {0};

    if (st_gpu_mig_profiles(p->g, p->gpu, profiles, &err) < 0) {
        put_str(&p->out, "mig", err.msg);
        return;
    }
    begin(&p->out, "profiles", '[');
    for (int i = 0; i < ST_MIG_COUNT; i++) {
        begin(&p->out, NULL, '{');
        put_bool(&p->out, "offered", profiles[i].offered);
        put_int(&p->out, "vram_mib", profiles[i].vram_mib);
        put_int(&p->out, "sms", profiles[i].sms);
        put_int(&p->out, "most", profiles[i].most);
        put_int(&p->out, "left", profiles[i].left);
        put_int(&p->out, "starts", profiles[i].starts);
        st_strbuf_addc(&p->out, '}');
    }
    st_strbuf_addc(&p->out, ']');
    begin(&p->out, "instances", '[');
    st_gpu_mig_list(p->g, p->gpu, &list, &err);
    for (int i = 0; i < list.n; i++)
        put_instance(&p->out, &list.v[i]);
    st_strbuf_addc(&p->out, ']');
}

static int show(probe *p, st_err *err)
{
    ST_CLEANUP(st_freep) st_gpu_inventory *inv = st_xcalloc(1, sizeof(*inv));
    int64_t began_us = now_us();
    int r = st_gpu_inventory_get(p->g, inv, err);

    if (report(p, "inventory", began_us, r, err) < 0)
        return r;
    st_strbuf_addc(&p->out, '{');
    put_str(&p->out, "driver", st_gpu_driver(p->g));
    put_str(&p->out, "version", inv->driver);
    put_int(&p->out, "cuda", inv->cuda);
    begin(&p->out, "gpus", '[');
    for (int i = 0; i < inv->n; i++)
        put_gpu(&p->out, &inv->gpu[i], inv->n);
    st_strbuf_addc(&p->out, ']');
    put_mig(p);
    st_strbuf_addc(&p->out, '}');
    flush(p);
    return 0;
}

/* ---- sample ----------------------------------------------------------------------------- */

static void put_sample(st_strbuf *out, const st_gpu_sample *s)
{
    for (int m = 0; m < ST_GPU_METRIC_COUNT; m++) {
        if (!st_gpu_has(s, (st_gpu_metric)m))
            continue;
        key(out, st_gpu_metric_name((st_gpu_metric)m));
        st_gpu_export_value((st_gpu_metric)m, s->v[m], out);
    }
}

static void put_procs(probe *p)
{
    st_gpu_proc list[PROCS_MAX];
    size_t n = 0;
    st_err err = {0};

    if (st_gpu_procs(p->g, p->gpu, list, PROCS_MAX, &n, &err) < 0) {
        put_str(&p->out, "processes", err.msg);
        return;
    }
    begin(&p->out, "processes", '[');
    for (size_t i = 0; i < ST_MIN(n, PROCS_MAX); i++) {
        begin(&p->out, NULL, '{');
        put_int(&p->out, "pid", list[i].pid);
        put_int(&p->out, "mem_mib", list[i].mem_mib);
        put_int(&p->out, "sm", list[i].sm);
        put_int(&p->out, "gi", list[i].gi);
        put_bool(&p->out, "mps", list[i].mps);
        st_strbuf_addc(&p->out, '}');
    }
    st_strbuf_addc(&p->out, ']');
}

static int sample_once(probe *p, int64_t now_ms, st_err *err)
{
    st_gpu_instances list = {0};
    st_gpu_sample s;
    int r = st_gpu_sample_get(p->g, p->gpu, ST_GPU_WHOLE, now_ms, &s, err);

    if (r < 0)
        return r;
    st_strbuf_addc(&p->out, '{');
    put_sample(&p->out, &s);
    put_procs(p);
    begin(&p->out, "instances", '[');
    if (st_gpu_mig_list(p->g, p->gpu, &list, err) < 0)
        list.n = 0;
    for (int i = 0; i < list.n; i++) {
        if (st_gpu_sample_get(p->g, p->gpu, list.v[i].gi, now_ms, &s, err) < 0)
            continue;
        begin(&p->out, NULL, '{');
        put_int(&p->out, "gi", list.v[i].gi);
        put_sample(&p->out, &s);
        st_strbuf_addc(&p->out, '}');
    }
    st_strbuf_add(&p->out, "]}");
    flush(p);
    return 0;
}

static int sample(probe *p, int64_t n, int64_t gap_ms, st_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        int r = sample_once(p, now_us() / 1000, err);
        if (r < 0)
            return r;
        if (i + 1 < n)
            sleep_ms(gap_ms);
    }
    return 0;
}

static int cost(probe *p, int64_t n, st_err *err)
{
    struct rusage a, b;
    int64_t best_us = INT64_MAX, sum_us = 0;
    st_gpu_sample s;

    if (n < 1)
        return st_fail(err, ST_EINVAL, "the cost of how many samples?");
    getrusage(RUSAGE_SELF, &a);
    for (int64_t i = 0; i < n; i++) {
        int64_t began_us = now_us();
        for (int gpu = 0; gpu < p->g->n; gpu++) {
            int r = st_gpu_sample_get(p->g, gpu, ST_GPU_WHOLE, began_us / 1000, &s, err);
            if (r < 0)
                return r;
        }
        int64_t took_us = now_us() - began_us;
        best_us = ST_MIN(best_us, took_us);
        sum_us += took_us;
        sleep_ms(120);
    }
    getrusage(RUSAGE_SELF, &b);
    st_strbuf_addc(&p->out, '{');
    put_int(&p->out, "samples", n);
    put_int(&p->out, "best_us", best_us);
    put_int(&p->out, "mean_us", sum_us / n);
    put_int(
        &p->out, "cpu_us_each",
        ((b.ru_utime.tv_sec - a.ru_utime.tv_sec + b.ru_stime.tv_sec - a.ru_stime.tv_sec) * 1000000 +
         b.ru_utime.tv_usec - a.ru_utime.tv_usec + b.ru_stime.tv_usec - a.ru_stime.tv_usec) /
            n);
    put_int(&p->out, "rss_kib", b.ru_maxrss);
    st_strbuf_addc(&p->out, '}');
    flush(p);
    return 0;
}

/* ---- MIG -------------------------------------------------------------------------------- */

static int carve_slots(probe *p, const st_gpu_slot *slots, int n, const char *what, st_err *err)
{
    st_gpu_reconciled done = {0};
    int64_t began_us = now_us();
    int r = st_gpu_mig_reconcile(p->g, p->gpu, slots, n, &done, err);

    if (report(p, what, began_us, r, err) < 0)
        return r;
    st_strbuf_addc(&p->out, '{');
    put_int(&p->out, "kept", done.kept);
    put_int(&p->out, "made", done.made);
    put_int(&p->out, "removed", done.removed);
    put_int(&p->out, "busy", done.busy);
    begin(&p->out, "instances", '[');
    for (int i = 0; i < done.now.n; i++)
        put_instance(&p->out, &done.now.v[i]);
    st_strbuf_add(&p->out, "]}");
    flush(p);
    return 0;
}

/* "3g@4,1g@0" */
static int carve(probe *p, const char *layout, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(layout);
    ST_CLEANUP(st_freep) st_gpu_inventory *inv = st_xcalloc(1, sizeof(*inv));
    st_gpu_slot slots[ST_GPU_INSTANCES_MAX];
    char *save = NULL;
    int n = 0, r = st_gpu_inventory_get(p->g, inv, err);

    for (char *s = strtok_r(copy, ",", &save); r == 0 && s; s = strtok_r(NULL, ",", &save)) {
        char *at = strchr(s, '@');
        int64_t start = 0;
        if (at)
            *at = '\0';
        int profile = st_mig_parse(inv->gpu[p->gpu].board, s);
        if (!at || profile < 0 || n == ST_GPU_INSTANCES_MAX ||
            st_parse_i64(at + 1, 0, 7, &start, NULL) < 0)
            return st_fail(err, ST_EPARSE, "a layout is PROFILE@START,..., such as 3g@4,1g@0");
        slots[n++] = (st_gpu_slot){(st_mig)profile, (int)start};
    }
    return r < 0 ? r : carve_slots(p, slots, n, layout, err);
}

static int mig_mode(probe *p, bool on, st_err *err)
{
    int64_t began_us = now_us();
    return report(p, on ? "mig on" : "mig off", began_us, st_gpu_mig_mode(p->g, p->gpu, on, err),
                  err);
}

static int exercise(probe *p, st_err *err)
{
    static const struct {
        const char *what;
        int n;
        st_gpu_slot slots[4];
    } layouts[] = {
        {"3g@4 2g@2 1g@0 1g@1 from nothing",
         4,
         {{ST_MIG_3G, 4}, {ST_MIG_2G, 2}, {ST_MIG_1G, 0}, {ST_MIG_1G, 1}}},
        {"the same again", 4, {{ST_MIG_3G, 4}, {ST_MIG_2G, 2}, {ST_MIG_1G, 0}, {ST_MIG_1G, 1}}},
        {"4g@0 beside the 3g", 2, {{ST_MIG_3G, 4}, {ST_MIG_4G, 0}}},
        {"nothing", 0, {{ST_MIG_1G, 0}}},
    };

    int worst = 0;

    if (mig_mode(p, true, err) < 0)
        return -err->code;
    show(p, err);
    for (int i = 0; i < ST_MIG_COUNT; i++) {
        st_mig profile = (st_mig)i;
        st_gpu_instance made;
        char what[64];
        int start = st_mig_best_start(0, 0, profile);
        for (int again = 0; again < 2; again++) {
            int64_t began_us = now_us();
            snprintf(what, sizeof(what), "make profile %d at %d", i, start);
            if (report(p, what, began_us,
                       st_gpu_mig_create(p->g, p->gpu, profile, start, &made, err), err) < 0) {
                worst = -err->code;
                continue;
            }
            began_us = now_us();
            snprintf(what, sizeof(what), "remove instance %d", made.gi);
            report(p, what, began_us, st_gpu_mig_destroy(p->g, p->gpu, made.gi, err), err);
        }
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(layouts); i++)
        if (carve_slots(p, layouts[i].slots, layouts[i].n, layouts[i].what, err) < 0)
            worst = -err->code;
    return mig_mode(p, false, err) < 0 ? -err->code : worst;
}

static int wait_events(probe *p, int64_t ms, st_err *err)
{
    int64_t end_us = now_us() + ms * 1000;

    for (int64_t left; (left = (end_us - now_us()) / 1000) > 0;) {
        st_gpu_event e;
        int r = st_gpu_wait(p->g, (int)left, &e, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        st_strbuf_addc(&p->out, '{');
        put_str(&p->out, "event", st_gpu_event_name(e.kind));
        put_int(&p->out, "gpu", e.gpu);
        put_int(&p->out, "gi", e.gi);
        put_int(&p->out, "value", e.value);
        st_strbuf_addc(&p->out, '}');
        flush(p);
    }
    return report(p, "wait for events", end_us - ms * 1000, 0, err);
}

/* ---- the command line ------------------------------------------------------------------- */

static int command(probe *p, char **argv, int argc, st_err *err)
{
    int64_t a = 0, b = 0;
    const char *verb = argc > 0 ? argv[0] : "show";

    if (argc > 1 && strcmp(verb, "carve") != 0 && strcmp(verb, "mig") != 0 &&
        st_parse_i64(argv[1], 0, 1000000, &a, err) < 0)
        return -err->code;
    if (argc > 2 && st_parse_i64(argv[2], 1, 1000000, &b, err) < 0)
        return -err->code;
    if (strcmp(verb, "show") == 0)
        return show(p, err);
    if (strcmp(verb, "sample") == 0 && argc == 3)
        return sample(p, a, b, err);
    if (strcmp(verb, "cost") == 0 && argc == 2)
        return cost(p, a, err);
    if (strcmp(verb, "carve") == 0 && argc == 2)
        return carve(p, argv[1], err);
    if (strcmp(verb, "exercise") == 0)
        return exercise(p, err);
    if (strcmp(verb, "mig") == 0 && argc == 2)
        return mig_mode(p, strcmp(argv[1], "on") == 0, err);
    if (strcmp(verb, "mode") == 0 && argc == 2)
        return st_gpu_set_mode(p->g, p->gpu, (st_gpu_mode)a, err);
    if (strcmp(verb, "wait") == 0 && argc == 2)
        return wait_events(p, a, err);
    return st_fail(err, ST_EINVAL, "no command %s of that form; see the head of probe.c", verb);
}

int main(int argc, char **argv)
{
    const char *driver = "nvml";
    st_gpu_nvml_options nvml = {0};
    st_gpu_sim_options sim = {.node = "probe", .seed = 1};
    probe p = {0};
    st_err err = {0};
    int64_t gpu;
    int at = 1, r;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--driver") == 0)
            driver = argv[at + 1];
        else if (strcmp(argv[at], "--library") == 0)
            nvml.library = argv[at + 1];
        else if (strcmp(argv[at], "--gpu") == 0 &&
                 st_parse_i64(argv[at + 1], 0, ST_DEVS_MAX - 1, &gpu, &err) == 0)
            p.gpu = (int)gpu;
    }
    if (strncmp(driver, "sim:", 4) == 0) {
        sim.profile = driver + 4;
        r = st_gpu_sim_open(&sim, &p.g, &err);
    } else {
        r = st_gpu_nvml_open(&nvml, &p.g, &err);
    }
    if (r == 0)
        r = command(&p, argv + at, argc - at, &err);
    if (r < 0)
        fprintf(stderr, "stint-gpu-probe: %s\n", err.msg);
    st_gpu_free(p.g);
    st_strbuf_done(&p.out);
    return r < 0 ? st_err_exit(err.code) : 0;
}
