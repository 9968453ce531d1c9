/*
 * The watch on neighbours (neighbour/neighbour.h) on this node: feeds it from the books of tasks that share a GPU, and writes what
 * it orders into their grants. It runs here, not in stintd, so that a victim is helped in seconds and while stintd is away.
 *
 * An agent that is started again knows nothing of what was ordered before, and takes it back.
 *
 * What was found and done goes to stintd with each report until one with it was heard (doc/dev/agent-protocol.md).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/launch.h"
#include "base/hash.h"
#include "base/mem.h"
#include "guard/abi.h"
#include "neighbour/neighbour.h"

#define LOOK_MS 250
#define SAID    64 /* notes that stintd has not heard; the oldest make room */

_Static_assert(ST_NB_TIMES == GUARD_TIMES, "one table of times");

/* A task on one GPU. */
typedef struct client {
    uint64_t id;
    st_task_key key;
    char tenant[64];
    bool latency, seen;
    int share_pm;
    uint64_t times[GUARD_TIMES];
    st_nb_order told;
} client;

typedef struct device {
    st_nb *nb;
    client *client[ST_NB_TASKS];
    int n;
} device;

/* A note as stintd hears it: who it is about may be gone by then. */
typedef struct said {
    st_nb_note note;
    int64_t no;       /* grows, also from one start of the agent to the next */
    uint64_t telling; /* the first report that had it; 0: none has */
    int gpu;
    st_task_key victim, suspect; /* suspect.job "": none */
} said;

struct st_neighbours {
    device dev[ST_DEVS_MAX];
    guard_usage usage;
    uint64_t notes[ST_NB_KIND_COUNT];
    said said[SAID];
    int nsaid;
    int64_t last_no;
};

static void forget(device *d)
{
    for (int i = 0; i < d->n; i++)
        free(d->client[i]);
    st_nb_free(d->nb);
    *d = (device){0};
}

void st_host_neighbours_free(st_host *h)
{
    for (int d = 0; h->neighbours && d < ST_DEVS_MAX; d++)
        forget(&h->neighbours->dev[d]);
    free(h->neighbours);
    h->neighbours = NULL;
}

typedef struct round {
    st_host *h;
    st_nb_sample v[ST_DEVS_MAX][ST_NB_TASKS];
    int n[ST_DEVS_MAX];
} round;

static client *client_of(st_host *h, device *d, const st_task *t, int gpu, uint64_t id)
{
    guard_limit l;
    client *c;

    for (int i = 0; i < d->n; i++)
        if (d->client[i]->id == id)
            return d->client[i];
    if (d->n == ST_NB_TASKS || !st_host_guard_limit(h, t, gpu, &l))
        return NULL;
    c = d->client[d->n++] = st_xcalloc(1, sizeof *c);
    c->id = id;
    c->key = t->key;
    c->latency = l.latency;
    c->share_pm = (int)ST_MIN(l.share_pm, 1000u);
    snprintf(c->tenant, sizeof c->tenant, "%s", t->tenant);
    if (l.cap_pm || l.protect) /* of an agent before this one */
        st_host_guard_order(h, t, gpu, 0, false);
    return c;
}

/* Requests, where it marks them; what it waits for, where its latency counts; else nothing. */
static const _Atomic uint64_t *times_of(const guard_usage *b, bool latency)
{
    if (atomic_load(&b->count[GUARD_COUNT_REQUESTS]) > 0)
        return b->request;
    return latency ? b->burst : NULL;
}

static void sample(void *ctx, const st_task *t, int gpu, int slot, const char *dir)
{
    round *r = ctx;
    device *d = &r->h->neighbours->dev[gpu];
    guard_usage *b = &r->h->neighbours->usage;
    const _Atomic uint64_t *times;
    char id[ST_RUN_ID_MAX];
    client *c;

    (void)slot;
    if (r->n[gpu] == ST_NB_TASKS || t->phase != ST_PHASE_RUNNING || !st_guard_read_usage(dir, b))
        return;
    st_launch_id(t, id);
    c = client_of(r->h, d, t, gpu, st_hash_str(17, id) | 1);
    if (!c)
        return;
    c->seen = true;
    times = times_of(b, c->latency);
    for (int i = 0; times && i < GUARD_TIMES; i++)
        c->times[i] = atomic_load(&times[i]);
    r->v[gpu][r->n[gpu]++] = (st_nb_sample){.id = c->id,
                                            .gpu_ns = atomic_load(&b->count[GUARD_COUNT_GPU_NS]),
                                            .times = times ? c->times : NULL,
                                            .share_pm = c->share_pm,
                                            .latency = c->latency,
                                            .capable = !c->latency};
}

static void obey(st_host *h, device *d, int gpu)
{
    for (int i = 0; i < d->n; i++) {
        client *c = d->client[i];
        st_nb_order o = st_nb_order_of(d->nb, c->id);
        const st_task *t = st_journal_find(&h->journal, &c->key);

        if (!t || (o.cap_pm == c->told.cap_pm && o.protect == c->told.protect))
            continue;
        st_host_guard_order(h, t, gpu, o.cap_pm, o.protect);
        c->told = o;
    }
}

static const st_task_key *key_of(const device *d, uint64_t id)
{
    static const st_task_key nobody = {.job = ""};

    for (int i = 0; i < d->n; i++)
        if (d->client[i]->id == id)
            return &d->client[i]->key;
    return &nobody;
}

static bool has_action(const st_nb_note *n)
{
    return n->kind == ST_NB_ACTED || n->kind == ST_NB_VERIFIED || n->kind == ST_NB_REVERTED;
}

static void keep(st_host *h, const device *d, int gpu, const st_nb_note *n)
{
    st_neighbours *nb = h->neighbours;

    if (nb->nsaid == SAID)
        memmove(nb->said, nb->said + 1, sizeof nb->said - sizeof nb->said[0]);
    else
        nb->nsaid++;
    nb->last_no = ST_MAX(nb->last_no + 1, st_wall_ms() * 1000);
    nb->said[nb->nsaid - 1] = (said){.note = *n,
                                     .no = nb->last_no,
                                     .gpu = gpu,
                                     .victim = *key_of(d, n->victim),
                                     .suspect = *key_of(d, n->suspect)};
    h->changed = true;
}

static void tell(st_host *h, device *d, int gpu)
{
    st_nb_note v[16];
    size_t n = st_nb_notes(d->nb, v, ST_ARRAY_LEN(v));

    for (size_t i = 0; i < n; i++) {
        const char *victim = key_of(d, v[i].victim)->job, *suspect = key_of(d, v[i].suspect)->job;

        h->neighbours->notes[v[i].kind]++;
        st_say(h, "neighbour", "what=%s gpu=%d job=%s suspect=%s action=%s p99_percent=%d",
               st_nb_kind_name(v[i].kind), gpu, victim[0] ? victim : "-",
               suspect[0] ? suspect : "-", has_action(&v[i]) ? st_nb_rung_name(v[i].rung) : "-",
               v[i].ratio_pct);
        keep(h, d, gpu, &v[i]);
    }
}

/* Everybody has left: what was ordered is over, and stintd hears so. */
static void close_device(st_host *h, device *d, int gpu, int64_t now_ms)
{
    if (d->nb) {
        st_nb_feed(d->nb, now_ms, NULL, 0);
        tell(h, d, gpu);
    }
    forget(d);
}

/* ---- for stintd ------------------------------------------------------------------------------------- */

static void who_json(const st_task_key *key, st_strbuf *out)
{
    st_strbuf_addf(out, "\"job\":\"%s\",\"stay\":%d,\"task\":%d", key->job, key->stay, key->task);
}

void st_host_neighbours_json(st_host *h, uint64_t report_no, st_strbuf *out)
{
    st_neighbours *nb = h->neighbours;

    st_strbuf_addc(out, '[');
    for (int i = 0; nb && i < nb->nsaid; i++) {
        said *s = &nb->said[i];

        s->telling = s->telling ? s->telling : report_no;
        st_strbuf_addf(out, "%s{\"no\":%" PRId64 ",\"at_ms\":%" PRId64 ",\"what\":\"%s\",",
                       i ? "," : "", s->no, s->note.at_ms + h->wall_of_ms,
                       st_nb_kind_name(s->note.kind));
        if (has_action(&s->note))
            st_strbuf_addf(out, "\"action\":\"%s\",", st_nb_rung_name(s->note.rung));
        st_strbuf_addf(out, "\"gpu\":%d,\"p99_percent\":%d,", s->gpu, s->note.ratio_pct);
        who_json(&s->victim, out);
        if (s->suspect.job[0]) {
            st_strbuf_add(out, ",\"suspect\":{");
            who_json(&s->suspect, out);
            st_strbuf_addc(out, '}');
        }
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

void st_host_neighbours_heard(st_host *h, uint64_t heard_no)
{
    st_neighbours *nb = h->neighbours;
    int n = 0;

    for (int i = 0; nb && i < nb->nsaid; i++)
        if (nb->said[i].telling == 0 || nb->said[i].telling > heard_no)
            nb->said[n++] = nb->said[i];
    if (nb)
        nb->nsaid = n;
}

static void leave(device *d)
{
    int n = 0;

    for (int i = 0; i < d->n; i++)
        if (d->client[i]->seen)
            d->client[n++] = d->client[i];
        else
            free(d->client[i]);
    d->n = n;
}

/* The thresholds were checked when the agent started. */
static st_nb *new_watch(const st_host *h)
{
    const char *given = h->process->conf->neighbour;
    st_nb_policy p = st_nb_defaults;
    st_err err;

    if (given)
        (void)st_nb_policy_read(given, &p, &err);
    return st_nb_new(&p);
}

void st_host_neighbours(st_host *h, int64_t now_ms)
{
    round *r;

    if (!h->guards) {
        for (int g = 0; h->neighbours && g < ST_DEVS_MAX; g++)
            close_device(h, &h->neighbours->dev[g], g, now_ms);
        return;
    }
    if (now_ms < h->neighbour_ms)
        return;
    h->neighbour_ms = now_ms + LOOK_MS;
    if (!h->neighbours)
        h->neighbours = st_xcalloc(1, sizeof *h->neighbours);
    r = st_xcalloc(1, sizeof *r);
    r->h = h;
    for (int g = 0; g < ST_DEVS_MAX; g++)
        for (int i = 0; i < h->neighbours->dev[g].n; i++)
            h->neighbours->dev[g].client[i]->seen = false;
    st_host_guard_each(h, sample, r);
    for (int g = 0; g < ST_DEVS_MAX; g++) {
        device *d = &h->neighbours->dev[g];

        if (r->n[g] == 0) {
            close_device(h, d, g, now_ms);
            continue;
        }
        if (!d->nb)
            d->nb = new_watch(h);
        st_nb_feed(d->nb, now_ms, r->v[g], (size_t)r->n[g]);
        tell(h, d, g);
        obey(h, d, g);
        leave(d);
    }
    free(r);
}

/* ---- metrics ----------------------------------------------------------------------------------------- */

static void one_task(const st_host *h, const device *d, int gpu, int what, st_strbuf *out)
{
    static const char *const names[] = {"stint_neighbour_p99_ratio", "stint_neighbour_cap",
                                        "stint_neighbour_protected"};

    for (int i = 0; i < d->n; i++) {
        const client *c = d->client[i];
        int ratio = st_nb_ratio_pct(d->nb, c->id);
        double value = what == 0   ? ratio / 100.0
                       : what == 1 ? c->told.cap_pm / 1000.0
                                   : c->told.protect;

        if (what == 0 && ratio == 0)
            continue;
        st_strbuf_addf(out, "%s{node=\"%s\",gpu=\"%d\",tenant=\"%s\",job=\"%s\"} %g\n", names[what],
                       h->name, gpu, c->tenant, c->key.job, value);
    }
}

void st_host_neighbours_metrics(const st_hosts *hosts, st_strbuf *out)
{
    static const char *const heads[] = {
        "# HELP stint_neighbour_p99_ratio p99 of a job's requests over its usual value.\n"
        "# TYPE stint_neighbour_p99_ratio gauge\n",
        "# HELP stint_neighbour_cap Cap on a job that slows a neighbour, of its GPU; 0: none.\n"
        "# TYPE stint_neighbour_cap gauge\n",
        "# HELP stint_neighbour_protected 1: neighbours of this job wait while it is at work.\n"
        "# TYPE stint_neighbour_protected gauge\n"};

    for (int what = 0; what < (int)ST_ARRAY_LEN(heads); what++) {
        st_strbuf_add(out, heads[what]);
        for (size_t i = 0; i < hosts->n; i++)
            for (int g = 0; hosts->v[i]->neighbours && g < ST_DEVS_MAX; g++)
                one_task(hosts->v[i], &hosts->v[i]->neighbours->dev[g], g, what, out);
    }
    st_strbuf_add(out,
                  "# HELP stint_neighbour_notes_total What the watch on neighbours found and did.\n"
                  "# TYPE stint_neighbour_notes_total counter\n");
    for (size_t i = 0; i < hosts->n; i++)
        for (int k = 0; hosts->v[i]->neighbours && k < ST_NB_KIND_COUNT; k++)
            st_strbuf_addf(out,
                           "stint_neighbour_notes_total{node=\"%s\",what=\"%s\"} %" PRIu64 "\n",
                           hosts->v[i]->name, st_nb_kind_name((st_nb_kind)k),
                           hosts->v[i]->neighbours->notes[k]);
}
