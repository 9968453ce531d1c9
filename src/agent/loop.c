/*
 * The process: its nodes, in turn, and the place where the acting thread waits. The other thread is the
 * voice's (agent/voice.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/fence.h"
#include "agent/files.h"
#include "agent/helper.h"
#include "agent/host.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "gpu/guard.h"
#include "gpu/sim.h"

/* For one call of the driver; turning MIG on resets a GPU. */
#define DRIVER_READ_MS   5000
#define DRIVER_CHANGE_MS 30000

/* In one piece: both threads have something to say. */
void st_say(const st_host *h, const char *event, const char *fmt, ...)
{
    ST_CLEANUP(st_freep) char *text = NULL;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vasprintf(&text, fmt, args);
    va_end(args);
    ST_ASSERT(n >= 0);
    st_text_tame(text);
    fprintf(stderr, "event=%s node=%s %s\n", event, h->name, text);
}

/* ---- who runs tasks here ------------------------------------------------------------------------- */

/* Containers, if the node can: tried for real once. `auto` falls back to none, and says so. */
static int choose_exec(const st_agent_conf *conf, bool *ret_real, st_err *err)
{
    st_run_finding found[ST_RUN_FINDINGS_MAX];
    st_run_conf run = {.runtime = conf->runtime};
    char state[PATH_MAX];
    const st_run_finding *bad;

    *ret_real = false;
    if (strcmp(conf->exec, "sim") == 0) {
        fprintf(stderr, "event=exec kind=sim reason=\"asked for: tasks are not really run\"\n");
        return 0;
    }
    snprintf(state, sizeof state, "%s/run", conf->data);
    run.state_dir = state;
    bad = st_run_probe_bad(found, st_run_probe(&run, found));
    if (!bad) {
        *ret_real = true;
        return 0;
    }
    if (strcmp(conf->exec, "oci") == 0)
        return st_fail(err, ST_EDOWN, "containers cannot be run here: %s: %s; %s", bad->name,
                       bad->text, bad->fix);
    if (!conf->sim)
        return st_fail(
            err, ST_EDOWN,
            "containers cannot be run here: %s: %s; %s. (`stint-agent doctor` says more)",
            bad->name, bad->text, bad->fix);
    fprintf(stderr,
            "event=exec kind=sim reason=\"no containers here, so tasks are not really run: %s: "
            "%s\"\n",
            bad->name, bad->text);
    return 0;
}

static int open_nvml(const void *ctx, st_gpu **ret, st_err *err)
{
    return st_gpu_nvml_open(ctx, ret, err);
}

/* The simulated driver does not hang, and a process may have hundreds of them. */
static int open_gpus(const st_agent_conf *conf, st_host *h, st_err *err)
{
    static const st_gpu_limits limits = {.read_ms = DRIVER_READ_MS, .change_ms = DRIVER_CHANGE_MS};
    st_gpu_sim_options sim = {.profile = conf->sim,
                              .node = h->name,
                              .seed = st_hash_str(11, h->name),
                              .control = conf->sim_faults};
    int r;

    if (conf->sim) {
        h->sim_gpus = true;
        r = st_gpu_sim_open(&sim, &h->gpu, err);
    } else {
        r = st_gpu_guard_open(open_nvml, NULL, &limits, &h->gpu, err);
        if (r == -ST_EDOWN &&
            !strstr(err->msg, ST_GPU_HANGS)) { /* a node without GPUs is one for jobs without */
            st_say(h, "no-gpus", "reason=\"%s\"", err->msg);
            return 0;
        }
    }
    if (r == 0)
        r = st_gpu_inventory_get(h->gpu, &h->inv, err);
    for (int d = 0; r == 0 && d < h->inv.n; d++) {
        h->boards[d] = h->inv.gpu[d].board;
        if (strcmp(h->inv.gpu[d].type, h->inv.gpu[0].type) != 0)
            r = st_fail(err, ST_EINVAL, "GPU 0 is %s and GPU %d is %s: a node has GPUs of one type",
                        h->inv.gpu[0].type, d, h->inv.gpu[d].type);
    }
    return r;
}

static int add_host(st_process *p, const char *name, const char *dir, bool real, st_err *err)
{
    st_host *h = st_host_new(p, name, dir);
    int r = 0;

    st_vec_push(&p->hosts, h);
    st_helper_find(p->conf->cuda, "stint-cuda", h->cuda);
    if (strlen(name) >= ST_HOST_NAME_MAX)
        return st_fail(err, ST_ELIMIT, "the name %s is too long", name);
    r = st_dir_make(dir, err);
    if (r == 0)
        r = open_gpus(p->conf, h, err);
    if (r == 0 && real)
        r = st_exec_oci_new(dir, p->conf, &h->exec, err);
    else if (r == 0)
        h->exec = st_exec_sim_new();
    return r == 0 ? st_host_open(h, err) : r;
}

static int add_hosts(st_process *p, bool real, st_err *err)
{
    const st_agent_conf *c = p->conf;
    char own[ST_HOST_NAME_MAX] = "node", name[ST_HOST_NAME_MAX + 24], dir[PATH_MAX];
    int r = 0;

    if (real)
        st_topology_load(&p->topology);
    if (c->name)
        snprintf(own, sizeof own, "%s", c->name);
    else
        gethostname(own, sizeof own - 1);
    if (c->sim_nodes <= 1)
        return add_host(p, own, c->data, real, err);
    for (int64_t i = 1; i <= c->sim_nodes && r == 0; i++) {
        snprintf(name, sizeof name, "%s-%lld", own, (long long)i);
        snprintf(dir, sizeof dir, "%s/%s", c->data, name);
        r = add_host(p, name, dir, real, err);
    }
    return r;
}

/* ---- life ---------------------------------------------------------------------------------------- */

/* Two agents on one folder would each start what the other has. The lock is the process's own and not of those it
 * forks: one that was killed while a child of it had not yet become what it should keeps nobody from starting again. */
static int lock_data(const char *dir, int *ret, st_err *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof path, "%s/lock", dir) >= (int)sizeof path)
        return st_fail(err, ST_EINVAL, "%s: the name is too long", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: %s", path, strerror(errno));
    if (fcntl(fd, F_SETLK, &lock) != 0) {
        close(fd);
        return st_fail(err, ST_ESTATE, "%s: another agent has it", dir);
    }
    *ret = fd;
    return 0;
}

static void on_signal(void *ctx, uint32_t events)
{
    (void)events;
    *(bool *)ctx = true;
}

static int watch_signals(st_process *p, st_agent_watch *watch, st_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    watch->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (watch->fd < 0)
        return st_fail(err, ST_EIO, "signals cannot be waited for: %s", strerror(errno));
    st_poll_add(p->poll, watch, EPOLLIN);
    return 0;
}

static bool poked(st_host *h)
{
    bool was;

    pthread_mutex_lock(&h->mail.lock);
    was = h->mail.poked;
    pthread_mutex_unlock(&h->mail.lock);
    return was;
}

static void turns(st_process *p, const bool *over)
{
    while (!*over) {
        int64_t boot = st_boot_ms(), next = boot + 1000;

        for (size_t i = 0; i < p->hosts.n; i++) {
            st_host *h = p->hosts.v[i];

            if (h->next_ms <= boot || poked(h) || st_notices_ready(h->notices))
                st_host_turn(h);
            next = ST_MIN(next, h->next_ms);
        }
        next = ST_MIN(next, st_workers_turn(p->workers));
        for (size_t i = 0; i < p->hosts.n; i++)
            next = ST_MIN(next, p->hosts.v[i]->next_ms);
        st_poll_wait(p->poll, (int)ST_MAX(0, next - st_boot_ms()));
    }
}

/* It has nothing to look after, and nobody stays for it. */
static void rest(st_host *h)
{
    st_fence_rest(h->dir);
    if (h->exec && h->exec->run)
        st_run_rest(h->exec->run);
}

/* Supervisors and containers are told paths that are good from anywhere. */
static int whole_path(const char *dir, char ret[PATH_MAX], st_err *err)
{
    int r = st_dir_make(dir, err);

    if (r == 0 && !realpath(dir, ret))
        r = st_fail(err, ST_EIO, "%s: %s", dir, strerror(errno));
    return r;
}

/* Who has a key, or has run a task, is not new, and must look after what runs, with room or without. */
static bool is_new(const char *dir)
{
    static const char *const kept[] = {"node.key", "tasks.json"};
    char path[PATH_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(kept); i++)
        if (snprintf(path, sizeof path, "%s/%s", dir, kept[i]) >= (int)sizeof path ||
            access(path, F_OK) == 0)
            return false;
    return true;
}

/* Nothing is open yet, so whoever ends the agent here ends it. */
static void wait_for_room(const st_agent_conf *conf)
{
    bool told = false;

    if (conf->sim_nodes > 1 || !is_new(conf->data))
        return;
    for (; !st_disk_joins(conf->data); sleep(1)) {
        if (!told)
            fprintf(stderr,
                    "event=disk-full reason=\"there is no room for the files of a new node in %s; "
                    "it joins when there is\"\n",
                    conf->data);
        told = true;
    }
    if (told)
        fprintf(stderr, "event=disk-ok reason=\"there is room for a new node\"\n");
}

int st_agent_run(const st_agent_conf *given, st_err *err)
{
    char data[PATH_MAX];
    st_agent_conf whole = *given, *conf = &whole;
    st_lines_conf lines = {.url = conf->server, .ca = conf->ca};
    ST_CLEANUP(st_scrape_freep) st_scrape *scrape = NULL;
    st_process p = {.conf = conf, .poll = st_poll_new()};
    st_agent_voice *voice = NULL;
    bool over = false, real = false;
    st_agent_watch signals = {.fd = -1, .ready = on_signal, .ctx = &over};
    int lock = -1, r;

    p.workers = st_workers_new(p.poll);
    p.ways = st_ways_new();
    st_rng_seed(&p.rng, (uint64_t)st_wall_ms() ^ (uint64_t)getpid() << 40);
    wait_for_room(given);
    r = whole_path(given->data, data, err);
    whole.data = data;
    if (r == 0)
        r = st_xid_rules_read(given->xids ? given->xids : "", &p.xids, err);
    if (r == 0)
        r = lock_data(conf->data, &lock, err);
    if (r == 0)
        r = choose_exec(conf, &real, err);
    if (r == 0)
        r = st_lines_new(&lines, &p.lines, err);
    if (r == 0)
        r = watch_signals(&p, &signals, err);
    if (r == 0)
        r = add_hosts(&p, real, err);
    if (r == 0 && conf->metrics)
        r = st_scrape_new(&p, conf->metrics, &scrape, err);
    if (r == 0)
        r = st_voice_start(&p, &voice, err);
    if (r == 0) {
        if (conf->insecure)
            fprintf(
                stderr,
                "event=INSECURE server=%s reason=\"--insecure: jobs, secrets and logs may go to "
                "stintd in the clear, and whoever is on the way can read them\"\n",
                conf->server);
        fprintf(stderr, "event=agent version=" ST_VERSION " nodes=%zu exec=%s server=%s\n",
                p.hosts.n, real ? "oci" : "sim", conf->server);
        turns(&p, &over);
        fprintf(stderr, "event=leaving reason=\"told to; tasks run on\"\n");
    }
    st_voice_stop(voice);
    st_ways_free(p.ways);
    st_workers_free(p.workers);
    st_scrape_free(ST_TAKE(scrape));
    for (size_t i = 0; i < p.hosts.n; i++) {
        if (over && !st_host_busy(p.hosts.v[i]))
            rest(p.hosts.v[i]);
        st_host_free(p.hosts.v[i]);
    }
    st_vec_free(&p.hosts);
    if (signals.fd >= 0)
        close(signals.fd);
    st_lines_free(p.lines);
    st_poll_free(p.poll);
    if (lock >= 0)
        close(lock);
    return r;
}
