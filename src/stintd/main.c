/*
 * stintd: the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stintd/check.h"
#include "stintd/drop.h"
#include "stintd/memory.h"
#include "stintd/restore.h"
#include "stintd/stintd.h"

static const char usage[] =
    "stintd [--config FILE] [--data DIR] [--listen ADDR:PORT] [--sample]\n"
    "stintd --check-store [--config FILE] [--data DIR]\n"
    "stintd --restore BACKUP [--config FILE] [--data DIR]\n"
    "\n"
    "The control plane: API, admission, scheduler, store.\n"
    "  --config FILE       configuration in YAML; `stintd --help-config` prints every key\n"
    "  --data DIR          directory for the store, the socket and the first token; made if "
    "missing\n"
    "  --listen ADDR:PORT  override listen of the configuration; port 0 takes any free one\n"
    "  --sample            fill an empty store with a sample organisation\n"
    "  --check-store       verify the store, report problems, and exit with 0 or 1\n"
    "  --restore BACKUP    put a copy made by `stint admin backup` in the store's place and exit;\n"
    "                      the next start waits for `stint admin restore accept`\n"
    "  --version, --help, --help-config\n";

enum {
    OPT_CONFIG = 256,
    OPT_DATA,
    OPT_LISTEN,
    OPT_SAMPLE,
    OPT_CHECK,
    OPT_RESTORE,
    OPT_HELP_CONFIG
};

typedef struct options {
    const char *self; /* how stintd was called */
    const char *config, *data, *listen, *restore;
    bool sample, check;
} options;

static int fail(const st_err *err)
{
    fprintf(stderr, "stintd: %s\n", err->msg);
    return st_err_exit(err->code);
}

/* Where things are when a directory was given. */
static int use_data(const options *o, st_config *config, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    if (!o->data)
        return 0;
    if (mkdir(o->data, 0700) < 0 && errno != EEXIST)
        return st_fail(err, ST_EIO, "%s: cannot be made: %s", o->data, strerror(errno));
    st_strbuf_addf(&path, "%s/stint.db", o->data);
    config->store = st_arena_strdup(config->arena, st_strbuf_str(&path));
    st_strbuf_clear(&path);
    st_strbuf_addf(&path, "%s/stintd.sock", o->data);
    config->socket = st_arena_strdup(config->arena, st_strbuf_str(&path));
    return 0;
}

/* The command line goes before the file, and that is said where both name a place. */
static void say_overruled(const options *o, const st_config *was, const st_config *config)
{
    st_config unset;

    st_config_init(&unset);
    if (o->data && strcmp(was->store, unset.store) != 0 && strcmp(was->store, config->store) != 0)
        fprintf(stderr, "event=config_overruled key=store by=--data uses=%s\n", config->store);
    if (o->data && was->socket && strcmp(was->socket, config->socket) != 0)
        fprintf(stderr, "event=config_overruled key=socket by=--data uses=%s\n", config->socket);
    st_config_done(&unset);
}

static int load(const options *o, st_config *config, bool first, st_err *err)
{
    st_config was;
    int r = o->config ? st_config_load(config, o->config, err) : 0;

    was = *config;
    if (r == 0)
        r = use_data(o, config, err);
    if (r == 0 && first)
        say_overruled(o, &was, config);
    if (r == 0 && o->listen)
        config->listen = o->listen;
    return r;
}

/* For whoever reads it again: as at the start, with what the command line says. */
static int load_again(void *ctx, st_config *ret, st_err *err)
{
    return load(ctx, ret, false, err);
}

static int parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, OPT_CONFIG},
        {"data", required_argument, NULL, OPT_DATA},
        {"listen", required_argument, NULL, OPT_LISTEN},
        {"sample", no_argument, NULL, OPT_SAMPLE},
        {"check-store", no_argument, NULL, OPT_CHECK},
        {"restore", required_argument, NULL, OPT_RESTORE},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"help-config", no_argument, NULL, OPT_HELP_CONFIG},
        {0},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf help = {0};

    for (int c; (c = getopt_long(argc, argv, "hV", longs, NULL)) >= 0;) {
        switch (c) {
        case OPT_CONFIG:
            o->config = optarg;
            break;
        case OPT_DATA:
            o->data = optarg;
            break;
        case OPT_LISTEN:
            o->listen = optarg;
            break;
        case OPT_SAMPLE:
            o->sample = true;
            break;
        case OPT_CHECK:
            o->check = true;
            break;
        case OPT_RESTORE:
            o->restore = optarg;
            break;
        case OPT_HELP_CONFIG:
            st_config_help(&help);
            fputs(st_strbuf_str(&help), stdout);
            return 1;
        case 'V':
            puts("stintd " ST_VERSION);
            return 1;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "stintd: %s is not an option\n", argv[optind]);
        return -1;
    }
    return 0;
}

/* The first token, for whoever set this up: only in a file that they alone can read. */
static int first_token(st_serve *serve, const char *dir, st_err *err)
{
    st_cmd_token cmd = {.who = {.role = ST_ROLE_OWNER, .user = "stintd", .source = "first start"},
                        .account = "",
                        .user = "root",
                        .role = ST_ROLE_OWNER,
                        .label = "first start",
                        .expires_ms = ST_STORE_NEVER};
    char path[4096], part[4096 + 8];
    int fd, r;

    snprintf(path, sizeof path, "%s/owner.token", dir);
    snprintf(part, sizeof part, "%s.part", path);
    if (access(path, F_OK) == 0)
        return 0;
    st_cmd_token_make(&cmd);
    r = st_serve_do(serve, &cmd.cmd, err);
    if (r < 0)
        return r;
    /* Whole or not at all: half a token would never be made again. */
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || dprintf(fd, "%s\n", cmd.text) < 0 || fsync(fd) < 0 || rename(part, path) < 0)
        r = st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    explicit_bzero(cmd.text, sizeof cmd.text);
    if (fd >= 0)
        close(fd);
    return r;
}

/* As many files as connections want, where the system lets us; the store needs a few more. */
static void want_files(int64_t connections)
{
    struct rlimit files;
    rlim_t want = (rlim_t)connections + 256;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= want)
        return;
    files.rlim_cur = ST_MIN(want, files.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < want)
        fprintf(stderr, "event=few_files files=%llu connections=%lld\n",
                (unsigned long long)files.rlim_cur, (long long)connections);
}

/* stint is beside stintd, or both are in the path. */
static void tell_sample(const options *o, const char *url, bool made)
{
    const char *name = strrchr(o->self, '/');
    char stint[4096];

    snprintf(stint, sizeof stint, "%.*sstint", name ? (int)(name + 1 - o->self) : 0, o->self);
    st_sample_tell(o->data ? o->data : ".", url, stint, made);
}

/* Waits for one, and keeps house meanwhile. */
static int next_signal(const sigset_t *signals, st_memory *memory)
{
    const struct timespec wait = {.tv_sec = ST_MEMORY_LOOK_S};
    int sig;

    while ((sig = sigtimedwait(signals, NULL, &wait)) < 0) {
        ST_ASSERT(errno == EAGAIN || errno == EINTR);
        if (errno == EAGAIN)
            st_memory_look(memory);
    }
    return sig;
}

static int run(st_serve *serve, options *o, const st_config *config, const sigset_t *signals)
{
    st_memory memory = {0};
    bool made = false;
    char url[300];
    st_err err = {0};
    int port = 0, sig, r;

    st_serve_reader(serve, load_again, o);
    r = st_serve_start(serve, &port, &err);

    if (r == 0 && o->data)
        r = first_token(serve, o->data, &err);
    if (r == 0 && o->sample && strcmp(config->engine, "native") == 0)
        r = st_fail(&err, ST_EINVAL,
                    "--sample has a simulated fleet: set engine to auto or sim in the "
                    "configuration");
    if (r == 0 && o->sample)
        r = st_sample_make(serve, o->data ? o->data : ".", &made, &err);
    if (r < 0)
        return fail(&err);
    snprintf(url, sizeof url, "%s://%.*s:%d", config->cert ? "https" : "http",
             (int)(strrchr(config->listen, ':') - config->listen), config->listen, port);
    if (o->sample)
        tell_sample(o, url, made);
    fprintf(stderr, "event=listening address=%s port=%d tls=%s\n", config->listen, port,
            config->cert ? "yes" : "no");
    while ((sig = next_signal(signals, &memory)) == SIGHUP)
        st_serve_reload(serve);
    fprintf(stderr, "event=stopping signal=%s\n", strsignal(sig));
    st_serve_stop(serve);
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.self = argv[0]};
    st_config config;
    st_serve *serve = NULL;
    sigset_t signals;
    st_err err = {0};
    int r = parse(argc, argv, &o);

    if (r != 0)
        return r > 0 ? 0 : 2;
    umask(077);
    if (sodium_init() < 0)
        return 70;
    st_config_init(&config);
    r = load(&o, &config, true, &err);
    if (r == 0)
        r = st_drop(config.user, o.data, &err);
    if (r < 0) {
        st_config_done(&config);
        return fail(&err);
    }
    if (o.restore) {
        r = st_restore_store(config.store, o.restore, config.billing_key, &err);
        st_config_done(&config);
        return r < 0 ? fail(&err) : 0;
    }
    if (o.check) {
        r = st_check_store(config.store, config.billing_key);
        st_config_done(&config);
        return r;
    }
    /* Blocked before any thread starts; main alone waits for them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk, not an end */
    want_files(config.connections);
    r = st_serve_new(&config, &serve, &err);
    r = r < 0 ? fail(&err) : run(serve, &o, &config, &signals);
    st_serve_free(serve);
    st_config_done(&config);
    return r;
}
