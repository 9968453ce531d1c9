/*
 * A cluster to try things on: an organisation with three teams, sixteen simulated nodes, prices, a token
 * for each sample user and some jobs. Made once, in a store that has no accounts yet.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/doc.h"
#include "base/mem.h"
#include "billing/money.h"
#include "control/control.h"
#include "stintd/stintd.h"

static const st_identity stintd = {.role = ST_ROLE_OWNER, .user = "stintd", .source = "sample"};

static int event(st_serve *serve, st_event ev, const char *verb, const char *target, st_err *err)
{
    st_cmd_event cmd = {.who = stintd, .event = ev, .verb = verb, .target = target};

    st_cmd_event_init(&cmd);
    return st_serve_do(serve, &cmd.cmd, err);
}

/* What an agent would have found. */
static int label(st_serve *serve, const char *node, st_err *err)
{
    json_t *set = json_pack("{s:s}", "driver", "550.54.15");
    st_cmd_labels cmd = {.who = stintd, .node = node, .set = set};
    int r;

    st_cmd_labels_init(&cmd);
    r = st_serve_do(serve, &cmd.cmd, err);
    json_decref(set);
    return r;
}

static int make_fleet(st_serve *serve, st_err *err)
{
    const st_type_doc *h100 = st_spec_known_type("h100");
    st_event type = {.kind = ST_EV_TYPE}, pool = {.kind = ST_EV_POOL};
    int r;

    type.u.type.name = h100->name;
    type.u.type.vram_mib = h100->vram_mib;
    type.u.type.board = h100->board;
    r = event(serve, type, "type.create", h100->name, err);
    pool.u.pool.name = "main";
    pool.u.pool.levels = ST_POOL_LEVELS;
    pool.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    pool.u.pool.rules.allow = 1u << ST_ALLOW_HOST_IMAGE; /* its jobs name no image */
    if (r == 0)
        r = event(serve, pool, "pool.create", "main", err);
    for (int i = 0; r == 0 && i < 16; i++) {
        st_event node = {.kind = ST_EV_NODE};
        char name[16], rack[16];

        snprintf(name, sizeof name, "node%02d", i + 1);
        snprintf(rack, sizeof rack, "rack%d", i / 4 + 1);
        node.u.node = (st_node_spec){.name = name,
                                     .ndevs = ST_NODE_GPUS,
                                     .cpu_m = ST_NODE_CPU_M,
                                     .ram_mib = ST_NODE_RAM_MIB,
                                     .block = "block1",
                                     .rack = rack};
        r = event(serve, node, "node.create", name, err);
        if (r == 0)
            r = label(serve, name, err);
    }
    return r;
}

/* Accounts and jobs are written as people write them, and read by the same readers. */
static int read_map(const char *text, st_doc **ret, st_err *err)
{
    return st_doc_parse("sample", text, strlen(text), ret, err);
}

static int make_account(st_serve *serve, const char *text, st_err *err)
{
    const st_spec_names names = st_directory_names(st_control_directory(st_serve_control(serve)));
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_cmd_account cmd = {.who = stintd, .create = true};
    const st_doc_node *children;
    int r = read_map(text, &doc, err);

    if (r == 0)
        r = st_spec_account(doc, st_doc_root(doc), &names, true, &cmd.said, &children, err);
    if (r < 0)
        return r;
    cmd.name = cmd.said.name;
    cmd.parent = cmd.said.parent ? cmd.said.parent : "";
    st_cmd_account_put(&cmd);
    r = st_serve_do(serve, &cmd.cmd, err);
    st_strbuf_done(&cmd.floors);
    return r;
}

/* From now on: used or not, the floors of the sample cost something, and what is borrowed costs more. */
static const char prices[] =
    "prices: sample\n"
    "gpu:\n"
    "  h100: {reserved: 1.80, burst: 2.20, on_demand: 3.10, mig: 110%, mps: 90%, time: 60%}\n"
    "  \"*\": {reserved: 1.80, burst: 2.20}\n"
    "cpu: 0.01\n"
    "ram: 0.002\n"
    "topology: {rack: 5%, nvlink: 10%}\n"
    "credit: {lost: 100%, fault: 100%}\n"
    "pieces: {render: {frames: 0.004}}\n";

/* Of the organisation and all in it; and of one team, which may not spend more than it has. */
static const char *const plans[] = {
    "{account: acme, chargeback: true, discount: 10%, burst: 64, budget: 150000}",
    "{account: genomics, chargeback: true, discount: 10%, cap: 40000, warn: [50%, 80%, 95%]}",
};

static int make_prices(st_serve *serve, st_err *err)
{
    st_cmd_prices *cmd = st_xcalloc(1, sizeof *cmd); /* a price book is large */
    int r = st_price_book_read("sample", prices, strlen(prices), 0, &cmd->book, err);

    cmd->who = stintd;
    cmd->now = true;
    st_cmd_prices_init(cmd);
    if (r == 0)
        r = st_serve_do(serve, &cmd->cmd, err);
    free(cmd);
    return r;
}

static int make_plan(st_serve *serve, const char *text, st_err *err)
{
    st_cmd_plan cmd = {.who = stintd, .now = true};
    int r = st_price_plan_read("sample", text, strlen(text), 0, &cmd.plan, err);

    st_cmd_plan_init(&cmd);
    return r < 0 ? r : st_serve_do(serve, &cmd.cmd, err);
}

static int make_job(st_serve *serve, const char *text, st_err *err)
{
    const st_spec_names names = st_directory_names(st_control_directory(st_serve_control(serve)));
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf json = {0};
    st_submit_item item = {0};
    st_cmd_submit cmd = {.who = stintd, .items = &item, .n = 1};
    int r = read_map(text, &doc, err);

    if (r == 0)
        r = st_spec_submit(doc, st_doc_root(doc), &names, &item.spec, err);
    if (r < 0)
        return r;
    st_spec_json(st_doc_root(doc), &json);
    item.doc = st_strbuf_str(&json);
    st_cmd_submit_init(&cmd);
    return st_serve_do(serve, &cmd.cmd, err);
}

static int make_token(st_serve *serve, const char *account, const char *user, st_role role,
                      FILE *out, st_err *err)
{
    st_cmd_token cmd = {.who = stintd,
                        .account = account,
                        .user = user,
                        .role = role,
                        .label = "sample",
                        .expires_ms = ST_STORE_NEVER};
    int r;

    st_cmd_token_make(&cmd);
    r = st_serve_do(serve, &cmd.cmd, err);
    if (r == 0)
        fprintf(out, "%-8s %-8s %-10s %s\n", user, st_role_words[role],
                account[0] ? account : "(cluster)", cmd.text);
    explicit_bzero(cmd.text, sizeof cmd.text);
    return r;
}

static const char *const accounts[] = {
    "{name: acme, guarantee: {gpu: 112}}",
    "{name: vision, parent: acme, guarantee: {gpu: 48}}",
    "{name: speech, parent: acme, guarantee: {gpu: 32}}",
    "{name: genomics, parent: acme, guarantee: {gpu: 16}, weight: 2}",
};

/* On the simulated fleet, whatever joins later: there is nothing in them to be run. */
static const char *const jobs[] = {
    "{name: pretrain, account: vision, user: ada, pool: main, tasks: 6, gpus: 8, limit: 12h, "
    "on_preempt: checkpoint, sim: {run: 3h}}",
    "{name: sweep-1, account: vision, user: ada, pool: main, gpus: 4, limit: 2h, "
    "on_preempt: checkpoint, sim: {run: 20m}}",
    "{name: asr, account: speech, user: grace, pool: main, tasks: 4, gpus: 8, limit: 8h, "
    "on_preempt: checkpoint, sim: {run: 90m}}",
    "{name: tts-service, account: speech, user: grace, pool: main, level: mps, share: 0.25, "
    "sim: {run: 7d}}",
    "{name: fold, account: genomics, user: rosalind, pool: main, tasks: 4, gpus: 8, limit: 6h, "
    "on_preempt: requeue, sim: {run: 40m}}",
    "{name: notebook, account: genomics, user: rosalind, pool: main, profile: 1g, limit: 8h, "
    "sim: {run: 4h}}",
    "{name: big, account: vision, user: ada, pool: main, tasks: 8, gpus: 8, limit: 4h, "
    "on_preempt: checkpoint, sim: {run: 1h}}",
};

static int make_tokens(st_serve *serve, const char *dir, st_err *err)
{
    static const struct {
        const char *account, *user;
        st_role role;
    } people[] = {
        {"", "root", ST_ROLE_OWNER},
        {"acme", "omar", ST_ROLE_ADMIN},
        {"vision", "ada", ST_ROLE_MEMBER},
        {"speech", "grace", ST_ROLE_MEMBER},
        {"genomics", "rosalind", ST_ROLE_MEMBER},
        {"acme", "audrey", ST_ROLE_AUDITOR},
    };
    char path[4096];
    FILE *out;
    int fd, r = 0;

    snprintf(path, sizeof path, "%s/tokens", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(people); i++)
        r = make_token(serve, people[i].account, people[i].user, people[i].role, out, err);
    if (fclose(out) != 0 && r == 0)
        r = st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    return r;
}

int st_sample_make(st_serve *serve, const char *dir, bool *ret_made, st_err *err)
{
    int r = 0;

    *ret_made = false;
    if (st_directory_within(st_control_directory(st_serve_control(serve)), "acme", ""))
        return 0;
    r = make_fleet(serve, err);
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(accounts); i++)
        r = make_account(serve, accounts[i], err);
    if (r == 0)
        r = make_prices(serve, err);
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(plans); i++)
        r = make_plan(serve, plans[i], err);
    if (r == 0)
        r = make_tokens(serve, dir, err);
    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(jobs); i++)
        r = make_job(serve, jobs[i], err);
    *ret_made = r == 0;
    return r;
}

/* The sample's own tokens are for trying things out: they are printed. */
void st_sample_tell(const char *dir, const char *url, const char *stint, bool made)
{
    char path[4096], line[512];
    FILE *in;

    snprintf(path, sizeof path, "%s/tokens", dir);
    printf("Stint is at %s, %s.\n\n", url,
           made ? "with a made-up fleet of 128 GPUs and an organisation that shares it"
                : "as it was left");
    in = fopen(path, "re");
    printf("USER     ROLE     ACCOUNT    TOKEN\n");
    while (in && fgets(line, sizeof line, in))
        fputs(line, stdout);
    if (in)
        fclose(in);
    printf("\nTry, in another terminal (these are kept in %s):\n\n"
           "  export STINT_URL=%s STINT_TOKEN=$(awk '$1==\"ada\" {print $4}' %s)\n"
           "  %s ps\n"
           "  %s submit --name mine --gpus 2 --limit 1h -- python3 train.py\n"
           "  %s why $(%s ps -o csv --state pending | tail -n 1 | cut -d, -f1)\n"
           "  %s bill\n"
           "\nCtrl-C stops it; the next start finds everything as it was.\n",
           path, url, path, stint, stint, stint, stint, stint);
    fflush(stdout);
}
