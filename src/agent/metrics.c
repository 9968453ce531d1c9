/*
 * The devices of a node, sampled once a second: rollups per grant, health, and a page for
 * Prometheus under the names of gpu/metrics.h.
 *
 * The page has a responder of its own, on the agent's acting loop: it answers one thing, to few, and
 * src/http brings threads, routes and limits that would need locks around everything here.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "agent/launch.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "gpu/export.h"
#include "gpu/guard.h"
#include "gpu/sim.h"

#define LEFT_MS  30000 /* for what a task left behind to go away */
#define LOAD_MIB 64
#define KEEP_MS  10000 /* between two times that what was counted is written down */

/* ---- samples ------------------------------------------------------------------------------------ */

static int sharers(const st_host *h, int gpu)
{
    int n = 0;

    for (size_t i = 0; i < h->journal.tasks.n; i++)
        n += h->journal.tasks.v[i].phase == ST_PHASE_RUNNING &&
             (h->journal.tasks.v[i].place.devs >> gpu & 1);
    return ST_MAX(n, 1);
}

/* Of a slice, what counts for it, instead of the whole GPU. */
static void see_slice(const st_host *h, const st_task *t, int d, st_gpu_sample *from,
                      st_gpu_sample *now)
{
    const st_slice *slice = st_slices_find(&h->slices, &t->key, d);
    st_mig profile = (st_mig)t->place.mig_profile;

    st_slice_view(now, slice ? &slice->sample : NULL, profile, now);
    st_slice_view(from, NULL, profile, from);
}

static void add_up(st_host *h, st_task *t, const st_gpu_sample *before, int64_t now_ms)
{
    int64_t mib = 0, least = ST_MAX(ST_MAX(t->started_ms, t->used.at_ms), 1);
    bool memory = false;

    for (int d = 0; d < h->inv.n; d++) {
        st_gpu_sample whole = h->sample[d], *now = &whole;
        st_gpu_sample from = before[d];
        int n = sharers(h, d);

        if (!(t->place.devs >> d & 1) || now->at_ms == 0)
            continue;
        if (t->place.mig_profile >= 0) {
            see_slice(h, t, d, &from, now);
            n = 1;
        }
        from.at_ms = ST_MAX(from.at_ms, least);
        st_rollup_add(&t->used, &from, now, ST_WHOLE_M / n);
        memory = memory || st_gpu_has(now, ST_GPU_FB_USED);
        mib += st_gpu_has(now, ST_GPU_FB_USED) ? now->v[ST_GPU_FB_USED] / n : 0;
    }
    if (memory)
        st_rollup_memory(&t->used, mib);
    t->used.at_ms = now_ms;
}

/* What was counted outlives us, but for the last seconds. */
static void keep(st_host *h)
{
    int64_t boot = st_boot_ms();

    if (boot < h->used_ms)
        return;
    h->used_ms = boot + KEEP_MS;
    h->dirty = true;
}

/* A driver that hangs says nothing about its GPUs: what runs goes on, and nothing is handed out. */
static void see_driver(st_host *h)
{
    char call[64];

    st_gpu_hangs(h->gpu, call);
    if (!call[0] == !h->hangs[0])
        return;
    h->changed = true;
    st_say(h, call[0] ? "driver-hangs" : "driver-back", "call=\"%s\"", call);
    h->hangs[0] = '\0';
    if (call[0])
        snprintf(h->hangs, sizeof h->hangs, ST_GPU_HANGS ": %s", call);
}

/* What is wrong with a GPU; false: nothing that takes it out of service. */
static bool judge(const st_host *h, int d, bool answers, st_sick_gpu *ret)
{
    const st_gpu_sample *s = &h->sample[d];
    st_xid_action action = st_xid_of(&h->process->xids, s->v[ST_GPU_XID]);

    if (!answers && h->hangs[0])
        return false;
    ret->found = (st_finding){.kind = ST_FAULT_GPU, .gpu = d};
    if (!answers) {
        snprintf(ret->reason, sizeof ret->reason, "GPU %d does not answer", d);
    } else if (st_gpu_has(s, ST_GPU_XID) && st_xid_fatal(action)) {
        ret->found = (st_finding){.kind = ST_FAULT_XID, .gpu = d, .code = s->v[ST_GPU_XID]};
        snprintf(ret->reason, sizeof ret->reason, "GPU %d had XID %" PRId64 " and needs %s", d,
                 s->v[ST_GPU_XID],
                 action == ST_XID_REBOOT    ? "a reboot of its node"
                 : action == ST_XID_INSPECT ? "somebody to look at it"
                                            : "a reset");
    } else if (st_gpu_has(s, ST_GPU_RECOVERY) && s->v[ST_GPU_RECOVERY] > 0) {
        ret->found =
            (st_finding){.kind = ST_FAULT_RECOVERY, .gpu = d, .code = s->v[ST_GPU_RECOVERY]};
        snprintf(ret->reason, sizeof ret->reason, "GPU %d asks for recovery action %" PRId64, d,
                 s->v[ST_GPU_RECOVERY]);
    } else {
        return false;
    }
    return true;
}

/* Whether the others can go on without it: not where its node must be rebooted at once. */
static bool stands_alone(const st_host *h, const st_sick_gpu *g)
{
    const st_finding *f = &g->found;

    if (f->kind == ST_FAULT_XID)
        return st_xid_of(&h->process->xids, f->code) == ST_XID_RESET;
    return f->kind == ST_FAULT_GPU || st_remedy_of(f) == ST_REMEDY_RESET;
}

/* GPUs are out alone while most of them are well; else the node is. */
static void judge_gpus(st_host *h, uint16_t sick, const st_sick_gpu found[ST_DEVS_MAX])
{
    bool alone;

    pthread_mutex_lock(&h->mail.lock);
    alone = h->mail.gpus_alone && 2 * __builtin_popcount(sick) <= h->inv.n;
    pthread_mutex_unlock(&h->mail.lock);
    for (unsigned devs = sick; devs; devs &= devs - 1)
        alone &= stands_alone(h, &found[__builtin_ctz(devs)]);
    if (sick && !alone) {
        const st_sick_gpu *first = &found[__builtin_ctz(sick)];

        h->found = first->found;
        snprintf(h->ill, sizeof h->ill, "%s", first->reason);
        sick = 0;
    }
    for (int d = 0; d < h->inv.n; d++) {
        bool is = sick >> d & 1, was = h->sick >> d & 1;

        if (is != was)
            st_say(h, "gpu-health", "gpu=%d state=%s reason=\"%s\"", d, is ? "failed" : "ok",
                   is ? found[d].reason : "");
        h->changed |= is != was;
        if (is)
            h->sick_gpu[d] = found[d];
    }
    h->sick = sick;
}

void st_host_sample(st_host *h, int64_t now_ms)
{
    st_gpu_sample before[ST_DEVS_MAX];
    st_sick_gpu found[ST_DEVS_MAX];
    uint16_t sick = 0;
    char was[sizeof h->ill];
    st_gpu_event event;
    st_err err;

    if (!h->gpu)
        return;
    memcpy(before, h->sample, sizeof before);
    memcpy(was, h->ill, sizeof was);
    h->ill[0] = '\0';
    while (st_gpu_wait(h->gpu, 0, &event, &err) == 1)
        st_say(h, "gpu-event", "gpu=%d kind=%s value=%" PRId64 "%s%s", event.gpu,
               st_gpu_event_name(event.kind), event.value,
               event.kind == ST_GPU_EVENT_XID ? " action=" : "",
               event.kind == ST_GPU_EVENT_XID
                   ? st_xid_action_name(st_xid_of(&h->process->xids, event.value))
                   : "");
    for (int d = 0; d < h->inv.n; d++) {
        st_gpu_sample s;
        int r = st_gpu_sample_get(h->gpu, d, ST_GPU_WHOLE, now_ms, &s, &err);

        if (r == 0)
            h->sample[d] = s;
        else
            see_driver(h);
        sick |= (uint16_t)(judge(h, d, r == 0, &found[d]) << d);
    }
    judge_gpus(h, sick, found);
    see_driver(h);
    st_slices_sample(h->gpu, h->journal.tasks.v, h->journal.tasks.n, now_ms, &h->slices);
    for (size_t i = 0; i < h->journal.tasks.n && !h->ill[0]; i++) {
        const st_task *t = &h->journal.tasks.v[i];

        if (st_task_live(t) || t->gone || now_ms <= t->ended_ms + LEFT_MS || h->hangs[0])
            continue;
        snprintf(h->ill, sizeof h->ill, "job %s is over and has left something running",
                 t->key.job);
        h->found = (st_finding){.kind = ST_FAULT_LEFT, .gpu = -1};
    }
    st_host_judge_scrubs(h);
    if (strcmp(was, h->ill) != 0) {
        h->changed = true;
        st_say(h, "health", "state=%s reason=\"%s\"", h->ill[0] ? "failed" : "ok", h->ill);
    }
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (h->journal.tasks.v[i].phase == ST_PHASE_RUNNING && h->journal.tasks.v[i].place.devs) {
            add_up(h, &h->journal.tasks.v[i], before, now_ms);
            keep(h);
        }
}

static uint64_t load_id(const st_task *t)
{
    return st_hash_u64(st_hash_str((uint64_t)t->key.stay, t->key.job), (uint64_t)t->key.task);
}

int64_t st_host_sim_pid(const st_task *t)
{
    return 1000 + (int64_t)(load_id(t) % 4000000);
}

/* Some of its memory, and mostly busy: enough to see somebody is there. A container is seen by its first
 * process, and has as much as a pause finds room for anywhere. */
void st_host_load(st_host *h, const st_task *t, bool on, int64_t now_ms)
{
    uint64_t id = load_id(t);
    int64_t pid = st_host_sim_pid(t);
    st_err err;

    if (h->exec->run) {
        char run_id[ST_RUN_ID_MAX];
        size_t n;

        st_launch_id(t, run_id);
        if (st_run_pids(h->exec->run, run_id, &pid, 1, &n, &err) < 0 || n == 0)
            pid = st_host_sim_pid(t);
    }
    for (int d = 0; h->sim_gpus && d < h->inv.n; d++) {
        int64_t granted = st_host_granted_mib(h, &t->place, d) / 16;
        st_gpu_load load = {.pid = pid,
                            .mem_mib = h->exec->run ? ST_MIN(granted, LOAD_MIB) : granted,
                            .busy_m = 850,
                            .mps = t->place.level == ST_LEVEL_MPS};
        st_gpu_instances now;
        int gi = ST_GPU_WHOLE;

        if (!(t->place.devs >> d & 1))
            continue;
        if (t->place.mig_profile >= 0 && st_gpu_mig_list(h->gpu, d, &now, &err) == 0)
            for (int i = 0; i < now.n; i++)
                if (now.v[i].start == t->place.mig_start)
                    gi = now.v[i].gi;
        st_gpu_sim_load(h->gpu, d, gi, id, on ? &load : NULL, now_ms, &err);
    }
}

/* ---- in a status --------------------------------------------------------------------------------- */

void st_host_gpus_json(const st_host *h, st_strbuf *out)
{
    static const struct {
        st_gpu_metric metric;
        const char *key;
    } rows[] = {
        {ST_GPU_GPU_UTIL, "util"}, {ST_GPU_SM_ACTIVE, "sm"}, {ST_GPU_FB_USED, "mem_mib"},
        {ST_GPU_POWER, "power"},   {ST_GPU_TEMP, "temp"},    {ST_GPU_XID, "xid"},
    };

    st_strbuf_addc(out, '[');
    for (int d = 0; d < h->inv.n; d++) {
        st_strbuf_addf(out, "%s{\"index\":%d", d ? "," : "", d);
        for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
            if (st_gpu_has(&h->sample[d], rows[i].metric)) {
                st_strbuf_addf(out, ",\"%s\":", rows[i].key);
                st_gpu_export_value(rows[i].metric, h->sample[d].v[rows[i].metric], out);
            }
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

/* ---- the page ------------------------------------------------------------------------------------ */

#define SCRAPERS    8
#define REQUEST_MAX 4096

typedef struct scraper {
    st_scrape *of;
    st_agent_watch watch; /* fd -1: free */
    st_strbuf in, out;
    size_t sent;
} scraper;

struct st_scrape {
    st_process *process;
    st_agent_watch listen;
    scraper at[SCRAPERS];
};

static const st_task *holder(const st_host *h, int gpu)
{
    for (size_t i = 0; i < h->journal.tasks.n; i++)
        if (st_task_live(&h->journal.tasks.v[i]) &&
            h->journal.tasks.v[i].phase != ST_PHASE_PAUSED &&
            (h->journal.tasks.v[i].place.devs >> gpu & 1))
            return &h->journal.tasks.v[i];
    return NULL;
}

static void own_metrics(const st_process *p, st_strbuf *out)
{
    st_strbuf_add(out, "# HELP stint_agent_up 1 when the node was answered within its lease.\n"
                       "# TYPE stint_agent_up gauge\n");
    for (size_t i = 0; i < p->hosts.n; i++)
        st_strbuf_addf(out, "stint_agent_up{node=\"%s\"} %d\n", p->hosts.v[i]->name,
                       st_voice_leased(p->hosts.v[i]));
    st_strbuf_add(out, "# HELP stint_agent_tasks Tasks the node has a record of.\n"
                       "# TYPE stint_agent_tasks gauge\n");
    for (size_t i = 0; i < p->hosts.n; i++)
        st_strbuf_addf(out, "stint_agent_tasks{node=\"%s\"} %zu\n", p->hosts.v[i]->name,
                       p->hosts.v[i]->journal.tasks.n);
}

typedef struct rows {
    ST_VEC(st_gpu_export_row) list;
    ST_VEC(char *) grants;
} rows;

static void add_row(rows *r, st_gpu_export_row row, const st_task *t)
{
    char *grant = NULL;

    if (t && asprintf(&grant, "%s/%d/%d", t->key.job, t->key.stay, t->key.task) >= 0) {
        row.tenant = t->tenant;
        row.job = t->key.job;
        row.grant = grant;
        st_vec_push(&r->grants, grant);
    }
    st_vec_push(&r->list, row);
}

/* GPUs, each with who holds it, and slices; a GPU in slices is held by nobody as a whole. */
static void page(const st_process *p, st_strbuf *out)
{
    rows r = {0};

    for (size_t i = 0; i < p->hosts.n; i++) {
        st_host *h = p->hosts.v[i];

        for (int d = 0; d < h->inv.n; d++)
            add_row(&r,
                    (st_gpu_export_row){
                        .gpu = &h->inv.gpu[d], .host = h->name, .sample = &h->sample[d]},
                    h->inv.gpu[d].mig_on ? NULL : holder(h, d));
        for (size_t k = 0; k < h->slices.n; k++) {
            const st_slice *s = &h->slices.v[k];

            add_row(&r,
                    (st_gpu_export_row){.gpu = &h->inv.gpu[s->gpu],
                                        .instance = &s->instance,
                                        .host = h->name,
                                        .sample = &s->sample},
                    st_journal_find(&h->journal, &s->key));
        }
    }
    own_metrics(p, out);
    st_host_guard_metrics(&p->hosts, out);
    st_host_neighbours_metrics(&p->hosts, out);
    st_gpu_export(r.list.v, r.list.n, out);
    for (size_t i = 0; i < r.grants.n; i++)
        free(r.grants.v[i]);
    st_vec_free(&r.grants);
    st_vec_free(&r.list);
}

static void hang_up(scraper *s)
{
    if (s->watch.fd < 0)
        return;
    st_poll_remove(s->of->process->poll, &s->watch);
    close(s->watch.fd);
    s->watch.fd = -1;
    st_strbuf_done(&s->in);
    st_strbuf_done(&s->out);
}

static void answer(scraper *s)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    bool ok = strncmp(s->in.s, "GET /metrics", 12) == 0 && strchr(" ?", s->in.s[12]);

    if (ok)
        page(s->of->process, &body);
    else
        st_strbuf_add(&body, "there is only /metrics here\n");
    st_strbuf_addf(&s->out,
                   "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                   ok ? "200 OK" : "404 Not Found", body.n);
    st_strbuf_addn(&s->out, st_strbuf_str(&body), body.n);
    st_poll_add(s->of->process->poll, &s->watch, EPOLLOUT);
}

static void on_scraper(void *ctx, uint32_t events)
{
    scraper *s = ctx;
    char bytes[1024];
    ssize_t n;

    if (s->out.n > 0 && events & EPOLLOUT) {
        n = send(s->watch.fd, s->out.s + s->sent, s->out.n - s->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        s->sent += n > 0 ? (size_t)n : 0;
        if ((n < 0 && errno != EAGAIN) || s->sent == s->out.n)
            hang_up(s);
        return;
    }
    n = recv(s->watch.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0 || s->in.n + (size_t)n > REQUEST_MAX || s->out.n > 0) {
        hang_up(s);
        return;
    }
    st_strbuf_addn(&s->in, bytes, (size_t)n);
    if (strstr(s->in.s, "\r\n\r\n"))
        answer(s);
}

static void on_listen(void *ctx, uint32_t events)
{
    st_scrape *s = ctx;
    int fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    scraper *at = &s->at[0];

    (void)events;
    if (fd < 0)
        return;
    for (int i = 0; i < SCRAPERS; i++)
        if (s->at[i].watch.fd < 0) {
            at = &s->at[i];
            break;
        }
    hang_up(at); /* all taken: the first has had its time */
    *at = (scraper){.of = s, .watch = {.fd = fd, .ready = on_scraper, .ctx = at}};
    st_poll_add(s->process->poll, &at->watch, EPOLLIN);
}

int st_scrape_new(st_process *process, const char *address, st_scrape **ret, st_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    const char *colon = strrchr(address, ':');
    char host[64] = "";
    int64_t port;
    st_scrape *s;
    int fd, one = 1;

    if (!colon || (size_t)(colon - address) >= sizeof host ||
        st_parse_i64(colon + 1, 0, 65535, &port, NULL) < 0)
        return st_fail(err, ST_EINVAL, "--metrics %s: not an ADDRESS:PORT", address);
    memcpy(host, address, (size_t)(colon - address));
    at.sin_port = htons((uint16_t)port);
    if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
        return st_fail(err, ST_EINVAL, "--metrics %s: %s is not an IPv4 address", address, host);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 16) != 0) {
        int r = st_fail(err, ST_EIO, "--metrics %s: %s", address, strerror(errno));

        if (fd >= 0)
            close(fd);
        return r;
    }
    getsockname(fd, (struct sockaddr *)&at, &len);
    s = st_xcalloc(1, sizeof *s);
    s->process = process;
    for (int i = 0; i < SCRAPERS; i++)
        s->at[i].watch.fd = -1;
    s->listen = (st_agent_watch){.fd = fd, .ready = on_listen, .ctx = s};
    st_poll_add(process->poll, &s->listen, EPOLLIN);
    fprintf(stderr, "event=metrics address=%s port=%d\n", host, ntohs(at.sin_port));
    *ret = s;
    return 0;
}

void st_scrape_free(st_scrape *s)
{
    if (!s)
        return;
    for (int i = 0; i < SCRAPERS; i++)
        hang_up(&s->at[i]);
    st_poll_remove(s->process->poll, &s->listen);
    close(s->listen.fd);
    free(s);
}
