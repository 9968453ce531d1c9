/*
 * The arguments of stint-agent, one row each.
 */
#include <stddef.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/plan.h"
#include "base/net.h"
#include "base/num.h"
#include "health/health.h"
#include "health/symptoms.h"
#include "neighbour/neighbour.h"
#include "run/run.h"

typedef enum { KIND_TEXT, KIND_COUNT, KIND_PORT, KIND_MILLI, KIND_MIB, KIND_TIME, KIND_FLAG } kind;

/* X(option, kind, field, what follows it, meaning) */
#define OPTION_TABLE(X)                                                                         \
    X("--server", KIND_TEXT, server, "URL",                                                     \
      "address of stintd: https://HOST:PORT, or http:// on this machine")                       \
    X("--insecure", KIND_FLAG, insecure, "",                                                    \
      "allow http:// to another machine; jobs and secrets then travel unencrypted")             \
    X("--ca", KIND_TEXT, ca, "FILE", "certificates to trust (default: the system's)")           \
    X("--join-token-file", KIND_TEXT, join_file, "FILE",                                        \
      "file with a join token; needed until the node has registered")                           \
    X("--data", KIND_TEXT, data, "DIR", "the agent's folder (default: /var/lib/stint/agent)")   \
    X("--name", KIND_TEXT, name, "NAME", "node name (default: hostname)")                       \
    X("--address", KIND_TEXT, address, "ADDRESS",                                               \
      "address at which other nodes reach this one (default: the one stintd sees)")             \
    X("--segment-port", KIND_PORT, segment_port, "PORT",                                        \
      "UDP port between nodes for networks of tenants, the same on all nodes (default: 14789)") \
    X("--rack", KIND_TEXT, rack, "NAME", "rack of the node")                                    \
    X("--block", KIND_TEXT, block, "NAME", "block of the network fabric")                       \
    X("--zone", KIND_TEXT, zone, "NAME", "zone of the node")                                    \
    X("--cpu", KIND_MILLI, cpu_m, "N", "CPUs for jobs (default: all)")                          \
    X("--ram", KIND_MIB, ram_mib, "SIZE", "RAM for jobs (default: all)")                        \
    X("--exec", KIND_TEXT, exec, "auto|oci|sim",                                                \
      "run containers (oci), nothing (sim), or containers where they work (default: auto)")     \
    X("--runtime", KIND_TEXT, runtime, "PATH",                                                  \
      "OCI runtime for containers (default: crun where it works, else runc)")                   \
    X("--grace", KIND_TIME, stop_grace_ms, "TIME",                                              \
      "time between a task's signal and its kill (default: 10s)")                               \
    X("--scrub", KIND_TEXT, scrub, "tenant|always|never",                                       \
      "clear GPU memory before another tenant gets it (default: tenant), after every task, or " \
      "never")                                                                                  \
    X("--settings", KIND_TEXT, settings, "manage|leave",                                        \
      "set MIG and compute mode of GPUs as jobs need (default: manage), or leave them as they " \
      "are")                                                                                    \
    X("--xid", KIND_TEXT, xids, "XID=ACTION,...",                                               \
      "what an XID asks for at this site: log, restart, follow, reset, reboot or inspect")      \
    X("--cuda", KIND_TEXT, cuda, "FILE",                                                        \
      "program for checkpoints and memory scans (default: stint-cuda beside this one)")         \
    X("--dcgmi", KIND_TEXT, dcgmi, "FILE|none",                                                 \
      "NVIDIA's dcgmi, with which tests are made where it is installed (default: "              \
      "/usr/bin/dcgmi); none: with stint-cuda")                                                 \
    X("--test-limit", KIND_TIME, test_ms, "TIME",                                               \
      "end a test that takes longer (default: the time of its level and a minute)")             \
    X("--mps-control", KIND_TEXT, mps_control, "PATH",                                          \
      "path of nvidia-cuda-mps-control (default: found in PATH)")                               \
    X("--guard", KIND_TEXT, guard, "FILE|none",                                                 \
      "library that limits tasks which share a GPU (default: libstint-guard.so where it was "   \
      "installed); none: they are only watched")                                                \
    X("--neighbour", KIND_TEXT, neighbour, "NAME=N,...",                                        \
      "thresholds of the watch on neighbours, for example ratio_pct=150,hold_ms=60000")         \
    X("--symptoms", KIND_TEXT, symptoms, "NAME=N,...",                                          \
      "thresholds for what is wrong with a node in service, for example "                       \
      "lasts_ms=30000,link_changes=5")                                                          \
    X("--data-limit", KIND_MIB, data_mib, "SIZE",                                               \
      "space for each account in /data on this node (default: half of the disk)")               \
    X("--volumes", KIND_TEXT, volumes, "DIR",                                                   \
      "directory of the volumes, the same tree that stintd has (default: none here)")           \
    X("--image-cache", KIND_MIB, images_mib, "SIZE",                                            \
      "space for unpacked images (default: a quarter of the disk, at most 64Gi)")               \
    X("--image-timeout", KIND_TIME, image_ms, "TIME",                                           \
      "time to read and unpack an image (default: 10m)")                                        \
    X("--metrics", KIND_TEXT, metrics, "ADDRESS:PORT",                                          \
      "serve metrics for Prometheus at this address")                                           \
    X("--sim", KIND_TEXT, sim, "PROFILE", "simulate GPUs, for example h100x8")                  \
    X("--sim-nodes", KIND_COUNT, sim_nodes, "N", "simulate this many nodes, NAME-1 to NAME-N")  \
    X("--sim-faults", KIND_TEXT, sim_faults, "FILE",                                            \
      "file with faults of simulated GPUs, one per line")

static const struct option {
    const char *name;
    kind kind;
    size_t offset;
    const char *value, *about;
} options[] = {
#define X(name, kind, field, value, about) \
    {name, kind, offsetof(st_agent_conf, field), value, about},
    OPTION_TABLE(X)
#undef X
};

static void help(FILE *out)
{
    fprintf(out,
            "stint-agent: runs what stintd decides, on this node.\n\n"
            "  stint-agent --server URL [--join-token-file FILE] [OPTION...]\n"
            "  stint-agent doctor [OPTION...]   what works here, what does not, how to fix it\n"
            "  stint-agent --version\n\n");
    for (size_t i = 0; i < ST_ARRAY_LEN(options); i++) {
        char left[48];

        snprintf(left, sizeof left, "%s %s", options[i].name, options[i].value);
        fprintf(out, "  %-28s %s\n", left, options[i].about);
    }
}

static const struct option *find(const char *name)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(options); i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

static int set(const struct option *o, const char *value, st_agent_conf *conf, st_err *err)
{
    char *at = (char *)conf + o->offset;
    int r = 0;

    switch (o->kind) {
    case KIND_TEXT:
        *(const char **)at = value;
        break;
    case KIND_COUNT:
        r = st_parse_i64(value, 1, 10000, (int64_t *)at, err);
        break;
    case KIND_PORT:
        r = st_parse_i64(value, 1, 65535, (int64_t *)at, err);
        break;
    case KIND_MILLI:
        r = st_parse_milli(value, 1, INT64_C(1) << 40, (int64_t *)at, err);
        break;
    case KIND_MIB:
        r = st_parse_mib(value, (int64_t *)at, err);
        break;
    case KIND_TIME:
        r = st_parse_duration_ms(value, (int64_t *)at, err);
        break;
    case KIND_FLAG:
        break;
    }
    return r < 0 ? st_fail_prefix(err, "%s: ", o->name) : 0;
}

static int check(const st_agent_conf *c, st_err *err)
{
    if (strcmp(c->exec, "auto") != 0 && strcmp(c->exec, "oci") != 0 && strcmp(c->exec, "sim") != 0)
        return st_fail(err, ST_EINVAL, "--exec %s: is none of auto, oci and sim", c->exec);
    if (st_scrub_policy_parse(c->scrub) < 0)
        return st_fail(err, ST_EINVAL, "--scrub %s: is none of tenant, always and never", c->scrub);
    if (strcmp(c->settings, "manage") != 0 && strcmp(c->settings, "leave") != 0)
        return st_fail(err, ST_EINVAL, "--settings %s: is neither manage nor leave", c->settings);
    if (c->neighbour && st_nb_policy_read(c->neighbour, &(st_nb_policy){0}, err) < 0)
        return st_fail_prefix(err, "--neighbour: ");
    if (st_symptom_rules_read(c->symptoms, &(st_symptom_rules){0}, err) < 0)
        return st_fail_prefix(err, "--symptoms: ");
    if (c->server && strncmp(c->server, "http://", 7) == 0 && !st_net_loopback(c->server + 7) &&
        !c->insecure)
        return st_fail(
            err, ST_EINVAL,
            "--server %s: jobs and their secrets would go in the clear; use https://, or "
            "add --insecure if the network is yours alone",
            c->server);
    if (st_xid_rules_read(c->xids, &(st_xid_rules){0}, err) < 0)
        return st_fail_prefix(err, "--xid: ");
    if (c->volumes && c->volumes[0] != '/')
        return st_fail(err, ST_EINVAL, "--volumes %s: must be an absolute path", c->volumes);
    if (c->runtime && c->runtime[0] != '/')
        return st_fail(err, ST_EINVAL, "--runtime %s: must be an absolute path", c->runtime);
    if (c->sim_nodes > 1 && !c->sim)
        return st_fail(err, ST_EINVAL, "--sim-nodes needs --sim: a machine is one node");
    return 0;
}

int st_agent_conf_read(int argc, char **argv, st_agent_conf *ret, FILE *out, st_err *err)
{
    st_agent_conf c = {.data = "/var/lib/stint/agent",
                       .exec = "auto",
                       .scrub = "tenant",
                       .settings = "manage",
                       .xids = "",
                       .sim_nodes = 1,
                       .segment_port = ST_RUN_SEGMENT_PORT,
                       .stop_grace_ms = 10000};

    for (int i = 0; i < argc; i++) {
        const struct option *o = find(argv[i]);
        int r;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            help(out);
            return 1;
        }
        if (strcmp(argv[i], "--version") == 0) {
            fprintf(out, "stint-agent " ST_VERSION "\n");
            return 1;
        }
        if (!o)
            return st_fail(err, ST_EINVAL, "%s is no option; --help lists them", argv[i]);
        if (o->kind == KIND_FLAG) {
            *(bool *)((char *)&c + o->offset) = true;
            continue;
        }
        if (i + 1 >= argc)
            return st_fail(err, ST_EINVAL, "%s needs %s", o->name, o->value);
        r = set(o, argv[++i], &c, err);
        if (r < 0)
            return r;
    }
    *ret = c;
    return check(&c, err);
}
