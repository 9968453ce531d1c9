/*
 * The memory of devices between two tenants: read by stint-cuda, or by the simulated driver, before
 * a device goes on. What cannot be read or cleared keeps the device, and makes the node ill.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/helper.h"
#include "agent/host.h"
#include "agent/pause.h"
#include "agent/steps.h"
#include "gpu/sim.h"

#define AGAIN_MS 10000 /* after it failed */

static void done(st_host *h, st_task *t, const st_scrub *result)
{
    bool news = result->result != ST_SCRUB_NONE && result->result != t->scrub.result;

    t->scrub = *result;
    t->scanning = false;
    t->clean = true;
    h->dirty = h->changed = true;
    if (news)
        st_say(h, "scrubbed",
               "job=%s task=%d result=%s bytes=%" PRId64 " found=%" PRId64 " ms=%" PRId64,
               t->key.job, t->key.task, st_scrub_name(result->result), result->bytes, result->found,
               result->ms);
}

static void failed(st_host *h, st_task *t, const char *why)
{
    t->scanning = false;
    t->scrub = (st_scrub){.result = ST_SCRUB_FAILED};
    t->tries = 0;
    h->scrub_ms = st_boot_ms() + AGAIN_MS;
    h->dirty = h->changed = true;
    snprintf(h->unscrubbed, sizeof h->unscrubbed, "%.100s", why);
    st_say(h, "scrub-failed", "job=%s task=%d reason=\"%s\"", t->key.job, t->key.task, why);
}

/* ---- simulated ------------------------------------------------------------------------------ */

static void scan_sim(st_host *h, st_task *t, int gi)
{
    st_scrub all = {.result = ST_SCRUB_CLEAN};
    st_err err = {0};

    for (int d = 0; d < h->inv.n; d++) {
        int64_t bytes = 0, found = 0;

        if (!(t->place.devs >> d & 1))
            continue;
        if (st_gpu_sim_scan(h->gpu, d, gi, &bytes, &found, &err) < 0) {
            failed(h, t, err.msg);
            return;
        }
        all.bytes += bytes;
        all.found += found;
    }
    if (all.found > 0)
        all.result = ST_SCRUB_OVERWRITTEN;
    done(h, t, &all);
}

/* ---- real ------------------------------------------------------------------------------------- */

static int start_scan(st_host *h, st_task *t, const char *name, const char *slice, st_err *err)
{
    const char *argv[] = {h->cuda, "scan", NULL};
    ST_CLEANUP(st_strbuf_done) st_strbuf env = {0};

    st_strbuf_add(&env, "CUDA_VISIBLE_DEVICES=");
    for (int d = 0; d < h->inv.n; d++)
        if (t->place.devs >> d & 1)
            st_strbuf_addf(&env, "%s%s", env.s[env.n - 1] == '=' ? "" : ",",
                           slice ? slice : h->inv.gpu[d].uuid);
    /* It uses devices as tasks do, and has no right beyond theirs. */
    return st_helper_start(h->dir, name, 0, argv, (const char *[]){env.s, NULL}, err);
}

static void take(st_host *h, st_task *t, const json_t *said)
{
    const char *word = json_string_value(json_object_get(said, "result"));
    const char *why = json_string_value(json_object_get(said, "error"));
    int result = word ? st_scrub_parse(word) : -1;
    st_scrub s = {.result = (st_scrub_result)ST_MAX(result, 0),
                  .bytes = json_integer_value(json_object_get(said, "bytes")),
                  .found = json_integer_value(json_object_get(said, "found")),
                  .ms = json_integer_value(json_object_get(said, "ms"))};

    if (json_is_true(json_object_get(said, "ok")) &&
        (result == ST_SCRUB_CLEAN || result == ST_SCRUB_OVERWRITTEN))
        done(h, t, &s);
    else
        failed(h, t, why ? why : "stint-cuda gave no reason");
}

static void scan_real(st_host *h, st_task *t, const char *slice)
{
    char name[128];
    json_t *said = NULL;
    st_err err = {0};

    st_cuda_name(t, "scan", name);
    switch (st_helper_look(h->dir, name, &said)) {
    case ST_HELPER_RUNNING:
        break;
    case ST_HELPER_DONE:
        take(h, t, said);
        st_helper_forget(h->dir, name);
        break;
    case ST_HELPER_NONE:
        if (t->scanning && ++t->tries > ST_STEP_TRIES) {
            failed(h, t, "stint-cuda was killed, again and again");
            break;
        }
        t->scanning = h->dirty = true;
        st_host_save(h);
        if (start_scan(h, t, name, slice, &err) < 0)
            failed(h, t, err.msg);
        break;
    }
    json_decref(said);
}

/* ---- for both ----------------------------------------------------------------------------------- */

void st_host_scrub(st_host *h, st_task *t, bool scan)
{
    st_gpu_instance slice;
    bool mig = t->place.mig_profile >= 0;
    st_scrub none = t->scrub;

    if (t->scrub.result == ST_SCRUB_FAILED && st_boot_ms() < h->scrub_ms)
        return;
    /* A slice that is not there has no memory; what was never run has left none. */
    if (mig && scan && !st_host_slice(h, &t->place, &slice))
        scan = false;
    if (!h->gpu || !scan || (!h->sim_gpus && !st_host_cuda(h))) {
        if (none.result == ST_SCRUB_PENDING || none.result == ST_SCRUB_FAILED)
            none = (st_scrub){.result = ST_SCRUB_NONE};
        done(h, t, &none);
    } else if (!st_host_cuda(h)) {
        scan_sim(h, t, mig ? slice.gi : ST_GPU_WHOLE);
    } else {
        scan_real(h, t, mig ? slice.uuid : NULL);
    }
}

void st_host_judge_scrubs(st_host *h)
{
    for (size_t i = 0; i < h->journal.tasks.n && !h->ill[0]; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        if (t->scrub.result != ST_SCRUB_FAILED || t->clean)
            continue;
        snprintf(h->ill, sizeof h->ill, "GPU memory of job %s could not be cleared: %.80s",
                 t->key.job, h->unscrubbed[0] ? h->unscrubbed : "it is being tried again");
        h->found = (st_finding){.kind = ST_FAULT_SCRUB, .gpu = -1};
    }
}
