/*
 * An MPS control daemon and its folder (run/mps.h).
 */
#include "run/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "run/os.h"

#define PROGRAM     "nvidia-cuda-mps-control"
#define PID_FILE    PROGRAM ".pid"
#define RECORD      "daemon.json"
#define MARK        "STINT_MPS_DIR="
#define LOG_INSIDE  "/dev/shm/mps-log"
#define ANSWER_MAX  8192
#define QUIT_MS     2000
#define KILL_MS     3000
#define PID_MS      3000
#define ENVIRON_MAX (64u << 10)

/* ---- its folder --------------------------------------------------------------------------------- */

int st_mps_find(const char *given, char ret[PATH_MAX], st_err *err)
{
    if (given && (given[0] != '/' || access(given, X_OK) != 0))
        return st_fail(err, ST_ENOENT,
                       "%s is not a program that can be started; give its whole path", given);
    if (given)
        return st_os_path(ret, err, "%s", given);
    if (!st_os_which(PROGRAM, ret))
        return st_fail(
            err, ST_EDOWN,
            "there is no " PROGRAM " on this node: install the part of the driver that has "
            "it (nvidia-compute-utils or nvidia-driver-cuda), or give --mps-control PATH");
    return 0;
}

static void boot_id(char ret[40])
{
    char text[64] = "";

    if (st_os_peek("/proc/sys/kernel/random/boot_id", text, sizeof(text)) < 0)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    snprintf(ret, 40, "%.39s", text);
}

static int write_record(const char *dir, const st_mps_record *r, st_err *err)
{
    char path[PATH_MAX];
    ST_CLEANUP(st_os_jsonp)
    json_t *o = json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:s}", "gpu", r->gpu, "uuid", r->uuid,
                          "domain", r->domain, "uid", (json_int_t)r->uid, "pid", (json_int_t)r->pid,
                          "birth", (json_int_t)r->birth, "boot", r->boot);
    int e = st_os_path(path, err, "%s/" RECORD, dir);

    return e ? e : st_os_write_json(path, o, err);
}

int st_mps_note(const char *dir, const st_mps_record *record, st_err *err)
{
    st_mps_record r = *record;
    int e = st_os_mkdirs(dir, 0700, err);

    r.pid = 0;
    r.birth = 0;
    boot_id(r.boot);
    return e ? e : write_record(dir, &r, err);
}

static void copy(char *to, size_t room, const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    snprintf(to, room, "%s", s ? s : "");
}

int st_mps_read(const char *dir, st_mps_record *ret, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *o = NULL;
    char path[PATH_MAX];
    st_mps_record r = {0};
    int e = st_os_path(path, err, "%s/" RECORD, dir);

    if (e || (e = st_os_read_json(path, &o, err)) != 0)
        return e;
    r.gpu = (int)json_integer_value(json_object_get(o, "gpu"));
    r.uid = json_integer_value(json_object_get(o, "uid"));
    r.pid = json_integer_value(json_object_get(o, "pid"));
    r.birth = (uint64_t)json_integer_value(json_object_get(o, "birth"));
    copy(r.uuid, sizeof(r.uuid), o, "uuid");
    copy(r.domain, sizeof(r.domain), o, "domain");
    copy(r.boot, sizeof(r.boot), o, "boot");
    *ret = r;
    return 0;
}

static int64_t shm_mib(void)
{
    struct sysinfo si;
    int64_t half = ST_MPS_SHM_MIB;

    if (sysinfo(&si) == 0)
        half = (int64_t)((uint64_t)si.totalram * si.mem_unit >> 21);
    return ST_MIN(ST_MAX(half, 64), ST_MPS_SHM_MIB);
}

/* A folder in the daemon's /dev/shm in which its user may make things and take no others away. */
static int make_inside(const char *shm, const char *name, st_err *err)
{
    char path[PATH_MAX];
    int e = st_os_path(path, err, "%s/%s", shm, name);

    if (!e && (mkdir(path, 0700) != 0 || chmod(path, 01777) != 0))
        e = st_fail(err, ST_EIO, "cannot make %s: %s", path, strerror(errno));
    return e;
}

static int make_shm(const char *dir, st_err *err)
{
    char shm[PATH_MAX], logs[PATH_MAX], options[64];
    int e;

    if ((e = st_os_path(shm, err, "%s/shm", dir)) != 0 ||
        (e = st_os_path(logs, err, "%s/log", dir)) != 0 ||
        (e = st_os_mkdirs(shm, 0755, err)) != 0 || (e = st_os_mkdirs(logs, 0700, err)) != 0)
        return e;
    snprintf(options, sizeof(options), "mode=1777,size=%" PRId64 "k", shm_mib() * 1024);
    if (chmod(logs, 01777) != 0 ||
        mount("tmpfs", shm, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) != 0)
        return st_fail(err, ST_EIO, "cannot mount a tmpfs on %s: %s", shm, strerror(errno));
    e = make_inside(shm, "mps", err);
    return e ? e : make_inside(shm, "mps-log", err);
}

/* ---- talking to it ------------------------------------------------------------------------------ */

/* In the child: its own view of the node, with the folder's tmpfs as /dev/shm. */
static int enter(const void *ctx)
{
    const st_mps *m = ctx;
    char shm[PATH_MAX], logs[PATH_MAX];

    if (st_os_path(shm, NULL, "%s/shm", m->dir) != 0 ||
        st_os_path(logs, NULL, "%s/log", m->dir) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
        mount(shm, "/dev/shm", NULL, MS_BIND, NULL) != 0 ||
        mount(logs, LOG_INSIDE, NULL, MS_BIND, NULL) != 0)
        return 126;
    return 0;
}

/* Runs the program with an environment of nothing but what it needs. */
static int call(const st_mps *m, const char *option, const char *uuid, const char *input,
                char said[ANSWER_MAX])
{
    char mark[PATH_MAX + 32], gpu[128];
    const char *argv[] = {m->control, option, NULL};
    const char *env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                         "CUDA_MPS_PIPE_DIRECTORY=" ST_MPS_PIPE,
                         "CUDA_MPS_LOG_DIRECTORY=" LOG_INSIDE,
                         mark,
                         uuid ? gpu : NULL,
                         NULL};
    const st_os_call c = {.argv = argv,
                          .env = env,
                          .input = input,
                          .timeout_ms = ST_MPS_ANSWER_MS,
                          .before = enter,
                          .ctx = m};

    snprintf(mark, sizeof(mark), MARK "%s", m->dir);
    snprintf(gpu, sizeof(gpu), "CUDA_VISIBLE_DEVICES=%s", uuid ? uuid : "");
    return st_os_ask(&c, said, ANSWER_MAX);
}

static int ask(const st_mps *m, char said[ANSWER_MAX], st_err *err, const char *fmt, ...)
    ST_PRINTF(4, 5);

static int ask(const st_mps *m, char said[ANSWER_MAX], st_err *err, const char *fmt, ...)
{
    char command[160], q[ST_QUOTE_MAX];
    va_list args;
    int status;

    va_start(args, fmt);
    vsnprintf(command, sizeof(command) - 1, fmt, args);
    va_end(args);
    strcat(command, "\n");
    status = call(m, NULL, NULL, command, said);
    command[strcspn(command, "\n")] = '\0';
    if (status < 0)
        return st_fail(err, ST_EDOWN, "the MPS daemon did not answer `%s`: %s", command,
                       strerror(errno));
    if (status != 0)
        return st_fail(err, ST_EDOWN, "the MPS daemon was told `%s` and answered %s (status %d)",
                       command, st_quote(q, said), status);
    return 0;
}

/* ---- its processes ------------------------------------------------------------------------------ */

/* It was started with our folder in its environment. */
static bool ours(const char *dir, int64_t pid)
{
    ST_CLEANUP(st_freep) char *text = st_xmalloc(ENVIRON_MAX);
    char path[64];
    ssize_t n;
    size_t len = strlen(MARK);

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/environ", pid);
    n = st_os_peek(path, text, ENVIRON_MAX);
    for (ssize_t i = 0; i < n; i += (ssize_t)strlen(text + i) + 1)
        if (strncmp(text + i, MARK, len) == 0 && strcmp(text + i + len, dir) == 0)
            return true;
    return false;
}

/* Sends a signal (0: none) to all that are ours; how many there are. */
static int each_process(const char *dir, int signal)
{
    DIR *d = opendir("/proc");
    int n = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        int64_t pid = strtoll(e->d_name, NULL, 10);

        if (pid <= 1 || pid == getpid() || !ours(dir, pid))
            continue;
        n++;
        if (signal)
            kill((pid_t)pid, signal);
    }
    if (d)
        closedir(d);
    return n;
}

/* What the daemon says its pid is; believed only right after its start, before it has clients. */
static int find_daemon(const char *dir, st_mps_record *r, st_err *err)
{
    int64_t until = st_os_mono_ms() + PID_MS;
    char path[PATH_MAX], text[32];
    int e = st_os_path(path, err, "%s/shm/mps/" PID_FILE, dir);

    while (!e) {
        int64_t pid = st_os_peek(path, text, sizeof(text)) > 0 ? strtoll(text, NULL, 10) : 0;

        if (pid > 1 && ours(dir, pid) && (r->birth = st_os_birth((pid_t)pid)) > 0) {
            r->pid = pid;
            boot_id(r->boot);
            return write_record(dir, r, err);
        }
        if (st_os_mono_ms() > until)
            return st_fail(err, ST_EDOWN, "the MPS daemon was started and is not there; see %s/log",
                           dir);
        st_os_sleep_ms(10);
    }
    return e;
}

bool st_mps_alive(const char *dir)
{
    st_mps_record r;
    char boot[40];

    if (st_mps_read(dir, &r, NULL) != 0 || r.pid <= 1)
        return false;
    boot_id(boot);
    return strcmp(boot, r.boot) == 0 && st_os_birth((pid_t)r.pid) == r.birth;
}

static int servers(const st_mps *m, int64_t buf[ST_MPS_PIDS_MAX], size_t *ret_n, st_err *err)
{
    char said[ANSWER_MAX];
    int e = ask(m, said, err, "get_server_list");

    if (!e)
        *ret_n = ST_MIN(st_mps_pids(said, buf, ST_MPS_PIDS_MAX), (size_t)ST_MPS_PIDS_MAX);
    return e;
}

/* ---- limits ------------------------------------------------------------------------------------- */

/* For a server, or (0) for the next one. */
static int set_limits(const st_mps *m, int64_t server, const st_mps_limits *l, st_err *err)
{
    char said[ANSWER_MAX], who[24] = "";
    const char *kind = server ? "" : "default_";
    int64_t percent;
    bool same;
    int e;

    if (server)
        snprintf(who, sizeof(who), " %" PRId64, server);
    if ((e = ask(m, said, err, "set_%sactive_thread_percentage%s %d", kind, who, l->percent)) !=
            0 ||
        (e = ask(m, said, err, "set_%sdevice_pinned_mem_limit%s 0 %" PRId64 "M", kind, who,
                 l->mem_mib)) != 0 ||
        (e = ask(m, said, err, "get_%sactive_thread_percentage%s", kind, who)) != 0 ||
        (e = st_mps_percent(said, &percent, err)) != 0)
        return e;
    /* Hardware may not have so fine a grain; a percent is as near as it must come. */
    if (llabs(percent - l->percent * INT64_C(1000)) >= 1000)
        return st_fail(err, ST_EDOWN, "MPS was told %d %% of the threads and has %" PRId64 " %%",
                       l->percent, percent / 1000);
    if ((e = ask(m, said, err, "get_%sdevice_pinned_mem_limit%s 0", kind, who)) != 0 ||
        (e = st_mps_memory_is(said, l->mem_mib, &same, err)) != 0)
        return e;
    said[strcspn(said, "\n")] = '\0';
    return same ? 0
                : st_fail(err, ST_EDOWN,
                          "MPS was told a memory limit of %" PRId64 " MiB and has %.32s",
                          l->mem_mib, said);
}

int st_mps_limit(const st_mps *m, const st_mps_limits *limits, st_err *err)
{
    int64_t pids[ST_MPS_PIDS_MAX];
    size_t n = 0;
    int e;

    ST_ASSERT(limits->percent >= 1 && limits->percent <= 100 && limits->mem_mib > 0);
    if ((e = set_limits(m, 0, limits, err)) != 0 || (e = servers(m, pids, &n, err)) != 0)
        return e;
    for (size_t i = 0; i < n && !e; i++)
        e = set_limits(m, pids[i], limits, err);
    return e;
}

/* ---- its life ------------------------------------------------------------------------------------ */

static int start_daemon(const st_mps *m, st_mps_record *r, st_err *err)
{
    char said[ANSWER_MAX], q[ST_QUOTE_MAX];
    int e = make_shm(m->dir, err);
    int status;

    if (e)
        return e;
    status = call(m, "-d", r->uuid, NULL, said);
    if (status != 0)
        return st_fail(err, ST_EDOWN, "the MPS daemon did not start (status %d): %s; see %s -d",
                       status, st_quote(q, said), m->control);
    return find_daemon(m->dir, r, err);
}

/* A server that comes up says so; what else it may be, and older programs that cannot be asked, will do. */
static bool coming(const st_mps *m, int64_t server)
{
    char said[ANSWER_MAX];

    return ask(m, said, NULL, "get_server_status %" PRId64, server) == 0 &&
           strstr(said, "INITIALIZING");
}

/* Returns when it is there, with the limits. */
static int start_server(const st_mps *m, int64_t uid, const st_mps_limits *limits, st_err *err)
{
    int64_t until = st_os_mono_ms() + ST_MPS_START_MS, pids[ST_MPS_PIDS_MAX];
    char said[ANSWER_MAX];
    size_t n = 0;
    int e = ask(m, said, err, "start_server -uid %" PRId64, uid);

    while (!e && (e = servers(m, pids, &n, err)) == 0 && (n == 0 || coming(m, pids[0]))) {
        if (st_os_mono_ms() > until)
            return st_fail(err, ST_EDOWN, "the MPS server has not come up in %d s; see %s/log",
                           ST_MPS_START_MS / 1000, m->dir);
        st_os_sleep_ms(20);
    }
    return e ? e : set_limits(m, pids[0], limits, err);
}

int st_mps_start(const st_mps *m, const st_mps_limits *limits, st_err *err)
{
    st_mps_record r;
    int e;

    /* Limits first: a server takes the defaults of the moment it starts. */
    if ((e = st_mps_read(m->dir, &r, err)) != 0 || (e = start_daemon(m, &r, err)) != 0 ||
        (e = set_limits(m, 0, limits, err)) != 0)
        return e;
    return start_server(m, r.uid, limits, err);
}

int st_mps_try(const st_mps *m, const char *uuid, st_err *err)
{
    st_mps_record r = {.domain = "doctor"};
    char said[ANSWER_MAX];
    int64_t percent;
    int e;

    snprintf(r.uuid, sizeof(r.uuid), "%s", uuid);
    if ((e = st_mps_note(m->dir, &r, err)) == 0 && (e = start_daemon(m, &r, err)) == 0 &&
        (e = ask(m, said, err, "get_default_active_thread_percentage")) == 0)
        e = st_mps_percent(said, &percent, err);
    st_mps_stop(m, NULL);
    st_mps_remove(m->dir, NULL);
    return e;
}

int st_mps_part(const st_mps *m, const int64_t *pids, size_t n, int *ret_parted, st_err *err)
{
    int64_t server[ST_MPS_PIDS_MAX], client[ST_MPS_PIDS_MAX];
    char said[ANSWER_MAX];
    size_t ns = 0;
    int parted = 0;
    int e = servers(m, server, &ns, err);

    for (size_t s = 0; s < ns && !e; s++) {
        e = ask(m, said, err, "get_client_list %" PRId64, server[s]);
        size_t nc =
            e ? 0 : ST_MIN(st_mps_pids(said, client, ST_MPS_PIDS_MAX), (size_t)ST_MPS_PIDS_MAX);

        for (size_t c = 0; c < nc && !e; c++)
            for (size_t i = 0; i < n; i++)
                if (client[c] == pids[i]) {
                    e = ask(m, said, err, "terminate_client %" PRId64 " %" PRId64, server[s],
                            client[c]);
                    parted += !e;
                    break;
                }
    }
    *ret_parted = parted;
    return e;
}

int st_mps_stop(const st_mps *m, st_err *err)
{
    int64_t until;
    char said[ANSWER_MAX], shm[PATH_MAX];
    int e = st_os_path(shm, err, "%s/shm", m->dir);

    if (e)
        return e;
    if (m->control && m->control[0] && st_mps_alive(m->dir))
        (void)ask(m, said, NULL, "quit");
    for (until = st_os_mono_ms() + QUIT_MS; each_process(m->dir, 0) > 0;) {
        if (!st_mps_alive(m->dir) || st_os_mono_ms() > until)
            break; /* what is left has nobody to tell it to end */
        st_os_sleep_ms(20);
    }
    for (until = st_os_mono_ms() + KILL_MS; each_process(m->dir, SIGKILL) > 0;) {
        if (st_os_mono_ms() > until)
            return st_fail(err, ST_EDOWN, "processes of the MPS daemon in %s do not end", m->dir);
        st_os_sleep_ms(20);
    }
    while (umount2(shm, MNT_DETACH) == 0) /* once per mount, should there be several */
        ;
    return 0;
}

int st_mps_remove(const char *dir, st_err *err)
{
    return st_os_remove_tree(dir, err);
}
