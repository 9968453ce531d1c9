/*
 * What is seen of GPUs and host over time (health/symptoms.h). While something is wrong the node is on hold: it takes nothing
 * new, and what runs there goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"

#define LOOK_MS 10000 /* between two looks, at most */

static int64_t value_of(const st_gpu_sample *s, st_gpu_metric m)
{
    return st_gpu_has(s, m) ? s->v[m] : ST_DIAG_UNKNOWN;
}

static int64_t number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoll(at + strlen(word), NULL, 10) : -1;
}

static int64_t memory_percent(void)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int64_t total, free;

    if (st_file_load("/proc", "meminfo", &text, NULL) < 0)
        return ST_DIAG_UNKNOWN;
    total = number_behind(st_strbuf_str(&text), "MemTotal:");
    free = number_behind(st_strbuf_str(&text), "MemAvailable:");
    return total > 0 && free >= 0 ? free * 100 / total : ST_DIAG_UNKNOWN;
}

/* A GPU that is gone is said to be elsewhere, and nothing is seen of it. */
static void look_at(const st_host *h, const st_gpu_inventory *inv, int d, st_symptom_look *ret)
{
    const st_gpu_info *info = &inv->gpu[d];
    const st_gpu_sample *s = &h->sample[d];
    bool seen = !info->lost && s->at_ms > 0;
    static const st_gpu_sample none;

    s = seen ? s : &none;
    *ret = (st_symptom_look){.links = seen ? info->links : ST_DIAG_UNKNOWN,
                             .corrected = value_of(s, ST_GPU_ECC_SBE_VOL),
                             .uncorrected = value_of(s, ST_GPU_ECC_DBE_VOL),
                             .remap_pending = value_of(s, ST_GPU_REMAP_PENDING),
                             .width = seen ? info->pcie_width : ST_DIAG_UNKNOWN,
                             .width_max = seen ? info->pcie_width_max : ST_DIAG_UNKNOWN,
                             .throttle = value_of(s, ST_GPU_THROTTLE)};
}

static void look(st_host *h, int64_t now)
{
    ST_CLEANUP(st_freep) st_gpu_inventory *inv = st_xcalloc(1, sizeof *inv);
    st_symptom_look gpu[ST_DEVS_MAX];
    st_err err;
    int n = 0;

    if (h->gpu && !h->hangs[0] && st_gpu_inventory_get(h->gpu, inv, &err) == 0)
        n = ST_MIN(inv->n, h->inv.n);
    for (int d = 0; d < n; d++)
        look_at(h, inv, d, &gpu[d]);
    st_symptoms_see(h->symptoms, gpu, n, h->sim_gpus ? ST_DIAG_UNKNOWN : memory_percent(), now);
}

void st_host_symptoms(st_host *h, int64_t now)
{
    char was[sizeof h->symptom];

    if (!h->symptoms) {
        st_symptom_rules rules;
        st_err err;

        ST_ASSERT(st_symptom_rules_read(h->process->conf->symptoms, &rules, &err) == 0);
        h->symptoms = st_xcalloc(1, sizeof *h->symptoms);
        st_symptoms_init(h->symptoms, &rules);
    }
    if (now < h->symptoms_ms)
        return;
    h->symptoms_ms = now + ST_MAX(ST_MIN(h->symptoms->rules.lasts_ms / 6, LOOK_MS), 1000);
    memcpy(was, h->symptom, sizeof was);
    h->symptom[0] = '\0';
    look(h, now);
    (void)st_symptoms_worst(h->symptoms, h->inv.n, now, &h->symptom_found, h->symptom);
    if (!was[0] == !h->symptom[0])
        return;
    h->changed = true;
    st_say(h, h->symptom[0] ? "symptom" : "symptom-over", "reason=\"%s\"",
           h->symptom[0] ? h->symptom : was);
}
