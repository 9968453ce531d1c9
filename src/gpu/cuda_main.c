/*
 * stint-cuda: what stint-agent has done to CUDA processes and devices, one call each (doc/dev/gpu.md).
 * Answers with one JSON object on stdout; the exit status is in the table below.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "base/quote.h"
#include "gpu/cuda.h"
#include "gpu/cuda_test.h"

#define LOCK_MS      10000
#define EXIT_CHECKER 5 /* a test could not be made, for a reason that is no device's */

enum {
    EXIT_DONE = 0,
    EXIT_NOT_DONE = 1, /* and everything is as it was */
    EXIT_USAGE = 2,
    EXIT_NO_DRIVER = 3, /* this driver cannot */
    EXIT_HALF_DONE = 4, /* and it could not be undone */
};

typedef struct options {
    const char *verb, *library;
    int64_t lock_ms;
    st_cuda_pids pids;
    st_cuda_map map;
    const char *level, *simulated; /* of measure */
    int64_t seconds, hang_s;
} options;

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* {"ok": …, "ms": …, what follows, "error": …} */
static int answer(bool ok, int64_t since_ms, const st_strbuf *more, const st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_strbuf_addf(&out, "{\"ok\":%s,\"ms\":%lld", ok ? "true" : "false",
                   (long long)(now_ms() - since_ms));
    if (more && more->n > 0)
        st_strbuf_addf(&out, ",%s", more->s);
    if (!ok) {
        st_strbuf_add(&out, ",\"error\":");
        st_quote_json(&out, err->msg);
    }
    printf("%s}\n", out.s);
    return ok ? EXIT_DONE : err->code == ST_EDOWN ? EXIT_NO_DRIVER : EXIT_NOT_DONE;
}

static void add_states(const cu_lib *lib, const st_cuda_pids *pids, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};

    if (st_cuda_states(lib, pids, &list, NULL) == 0)
        st_strbuf_addf(out, "\"processes\":[%s]", st_strbuf_str(&list));
}

/* ---- verbs ---------------------------------------------------------------------------------- */

static int do_probe(const cu_lib *lib, const options *o, int64_t since)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    bool checkpoint = lib->lock && lib->checkpoint && lib->restore && lib->unlock && lib->state;
    int version = 0, devices = 0;

    (void)o;
    (void)CU(lib, version, &version);
    (void)CU(lib, count, &devices);
    st_strbuf_addf(&out, "\"cuda\":%d,\"devices\":%d,\"checkpoint\":%s", version, devices,
                   checkpoint ? "true" : "false");
    return answer(true, since, &out, NULL);
}

static int do_state(const cu_lib *lib, const options *o, int64_t since)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    st_err err = {0};
    int r = st_cuda_states(lib, &o->pids, &list, &err);

    if (r == 0)
        st_strbuf_addf(&out, "\"processes\":[%s]", st_strbuf_str(&list));
    return answer(r == 0, since, &out, &err);
}

static int do_pause(const cu_lib *lib, const options *o, int64_t since)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};
    bool undone = true;
    int r = st_cuda_pause(lib, &o->pids, (int)o->lock_ms, &undone, &err), status;

    st_strbuf_addf(&out, "\"undone\":%s,", r < 0 && undone ? "true" : "false");
    add_states(lib, &o->pids, &out);
    if (out.s[out.n - 1] == ',')
        st_strbuf_add(&out, "\"processes\":[]");
    status = answer(r == 0, since, &out, &err);
    return r < 0 && !undone ? EXIT_HALF_DONE : status;
}

static int do_resume(const cu_lib *lib, const options *o, int64_t since)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};
    int r = st_cuda_resume(lib, &o->pids, &o->map, &err), status;

    add_states(lib, &o->pids, &out);
    status = answer(r == 0, since, &out, &err);
    return r < 0 && status == EXIT_NOT_DONE ? EXIT_HALF_DONE : status;
}

static int do_scan(const cu_lib *lib, const options *o, int64_t since)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_cuda_scan scan = {0};
    st_err err = {0};
    int r = st_cuda_scan_all(lib, &scan, &err);

    (void)o;
    st_strbuf_addf(&out,
                   "\"result\":\"%s\",\"devices\":%d,\"total\":%llu,\"bytes\":%llu,\"left\":%llu,"
                   "\"found\":%llu",
                   r < 0              ? "failed"
                   : scan.overwritten ? "overwritten"
                                      : "clean",
                   scan.devices, (unsigned long long)scan.total, (unsigned long long)scan.bytes,
                   (unsigned long long)scan.left, (unsigned long long)scan.found);
    return answer(r == 0, since, &out, &err);
}

/* What simulated devices would have measured was reckoned by who has them. */
static int say_simulated(const char *figures)
{
    const char *at = strstr(figures, "\"exit\":");
    int64_t status = at ? strtoll(at + strlen("\"exit\":"), NULL, 10) : 0;

    printf("%s\n", figures);
    return (int)(status & 0xff);
}

static int do_measure(const cu_lib *none, const options *o, int64_t since)
{
    static const char *const levels[] = {
        [ST_DEPTH_SHORT] = "short", [ST_DEPTH_LONG] = "long", [ST_DEPTH_BURN] = "burn"};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_cuda_measure how = {
        .library = o->library, .seconds = o->seconds, .hang_ms = o->hang_s * 1000};
    static st_test_figures figures;
    st_err err = {0};
    char with[128];
    int r;

    (void)none;
    for (int l = ST_DEPTH_SHORT; o->level && l <= ST_DEPTH_BURN; l++)
        if (strcmp(levels[l], o->level) == 0)
            how.depth = (st_test_depth)l;
    if (how.depth == 0) {
        fprintf(stderr, "stint-cuda: --level is short, long or burn\n");
        return EXIT_USAGE;
    }
    if (o->simulated)
        return say_simulated(o->simulated);
    r = st_cuda_measure_all(&how, &figures, with, &err);
    if (r < 0) {
        (void)answer(false, since, NULL, &err);
        return EXIT_CHECKER;
    }
    figures.with = with;
    st_test_figures_json(&figures, &out);
    printf("%s\n", st_strbuf_str(&out));
    return EXIT_DONE;
}

static const struct verb {
    const char *name, *about;
    bool pids;
    int (*run)(const cu_lib *lib, const options *o, int64_t since);
} verbs[] = {
    {"probe", "what this driver can do", false, do_probe},
    {"state", "PID...: running, locked, checkpointed or failed", true, do_state},
    {"pause", "PID...: off their devices, into host memory; all or none", true, do_pause},
    {"resume", "PID...: back onto devices and on; --map OLDUUID=NEWUUID for other GPUs", true,
     do_resume},
    {"scan", "read all memory of the devices in CUDA_VISIBLE_DEVICES, clear what is not zero",
     false, do_scan},
    {"measure", "--level short|long|burn: test the devices in CUDA_VISIBLE_DEVICES", false,
     do_measure},
};

/* ---- arguments ------------------------------------------------------------------------------ */

static int usage(FILE *out)
{
    fprintf(out, "stint-cuda VERB [PID...] [OPTION...]\n\n");
    for (size_t i = 0; i < ST_ARRAY_LEN(verbs); i++)
        fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].about);
    fprintf(out,
            "\n  --lock-ms N      how long a process may take to come to rest; %d\n"
            "  --library FILE   instead of libcuda.so.1\n"
            "  --seconds N      of matrix products, of measure; as its level has it\n"
            "  --hang-s N       until a device is given up, of measure; as its level has it\n"
            "  --simulated TEXT what measure says, of devices that are not there\n\n"
            "exit status: 0 done, 1 not done and all as it was, 2 bad arguments, 3 this driver\n"
            "cannot, 4 half done and not undone, 5 a test could not be made\n",
            LOCK_MS);
    return EXIT_USAGE;
}

static int read_option(options *o, const char *name, const char *value, st_err *err)
{
    if (!value)
        return st_fail(err, ST_EINVAL, "%s needs something behind it", name);
    if (strcmp(name, "--map") == 0)
        return st_cuda_map_add(&o->map, value, err);
    if (strcmp(name, "--lock-ms") == 0)
        return st_parse_i64(value, 1, INT_MAX, &o->lock_ms, err);
    if (strcmp(name, "--seconds") == 0)
        return st_parse_i64(value, 1, 86400, &o->seconds, err);
    if (strcmp(name, "--hang-s") == 0)
        return st_parse_i64(value, 1, 86400, &o->hang_s, err);
    if (strcmp(name, "--level") == 0 || strcmp(name, "--simulated") == 0) {
        *(name[2] == 'l' ? &o->level : &o->simulated) = value;
        return 0;
    }
    if (strcmp(name, "--library") != 0)
        return st_fail(err, ST_EINVAL, "%s is no option", name);
    o->library = value;
    return 0;
}

static int read_pid(options *o, const char *text, st_err *err)
{
    int64_t pid;
    int r = st_parse_i64(text, 1, INT_MAX, &pid, err);

    if (r == 0 && o->pids.n >= ST_CUDA_PIDS_MAX)
        r = st_fail(err, ST_ELIMIT, "at most %d processes at once", ST_CUDA_PIDS_MAX);
    if (r == 0)
        o->pids.pid[o->pids.n++] = (int)pid;
    return r;
}

static int read_arguments(int argc, char **argv, options *o, st_err *err)
{
    int r = 0;

    o->verb = argv[1];
    for (int i = 2; r == 0 && i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            r = read_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
            i++;
        } else {
            r = read_pid(o, argv[i], err);
        }
    }
    return r;
}

int main(int argc, char **argv)
{
    options o = {.lock_ms = LOCK_MS};
    const struct verb *verb = NULL;
    int64_t since = now_ms();
    st_err err = {0};
    cu_lib lib;

    if (argc < 2 || strcmp(argv[1], "--help") == 0)
        return usage(argc < 2 ? stderr : stdout);
    for (size_t i = 0; i < ST_ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, argv[1]) == 0)
            verb = &verbs[i];
    if (!verb || read_arguments(argc, argv, &o, &err) < 0 || verb->pids != (o.pids.n > 0)) {
        fprintf(stderr, "stint-cuda: %s\n\n", err.msg[0] ? err.msg : "not like that");
        return usage(stderr);
    }
    if (verb->run == do_measure) /* each of its processes loads the driver itself */
        return verb->run(NULL, &o, since);
    if (st_cuda_load(o.library, &lib, &err) < 0)
        return answer(false, since, NULL, &err);
    return verb->run(&lib, &o, since);
}
