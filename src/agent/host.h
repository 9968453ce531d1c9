/*
 * The inside of the agent: one node, and the process that has them. Private to src/agent.
 *
 *   loop.c      wakes nodes up, ends the process
 *   node.c      a node's turn: look, plan, act, speak; statuses, lists, leases
 *   register.c  how it gets in
 *   act.c       carries out what the plan says
 *   logs.c      brings what tasks write to stintd
 *   metrics.c   samples devices, answers scrapes
 */
#ifndef ST_AGENT_HOST_H
#define ST_AGENT_HOST_H

#include <limits.h>

#include "agent/agent.h"
#include "agent/exec.h"
#include "agent/journal.h"
#include "agent/line.h"
#include "agent/telemetry.h"
#include "base/rng.h"

#define ST_HOST_NAME_MAX 64
#define ST_TOKEN_MAX     128

typedef struct st_process st_process;

/* When something may be tried, and again after it failed. Boot clock. */
typedef struct st_retry {
    int64_t at_ms;
    int failures;
} st_retry;

typedef struct st_host {
    st_process *process;
    char name[ST_HOST_NAME_MAX], machine[80], dir[PATH_MAX];
    char token[ST_TOKEN_MAX];
    bool registered;

    st_gpu *gpu; /* NULL: it has none */
    bool sim_gpus;
    st_gpu_inventory inv;
    st_board boards[ST_DEVS_MAX];
    st_exec *exec;

    st_journal journal;
    bool dirty;   /* the journal is newer than its file */
    bool changed; /* stintd is to hear at once */
    st_list list;
    bool has_list;
    bool fenced;     /* tasks were killed because the lease had ended */
    char ill[160];   /* why the node cannot be used; "": it can */
    char stuck[160]; /* why nothing can be written down, and so nothing started; "": it can */

    /* The terms. */
    int64_t lease_ms, interval_ms, wait_ms, chunk;
    bool keep;
    int64_t lease_end_ms; /* boot clock; 0: none was given yet */
    int64_t skew_ms;      /* stintd's clock less ours */

    st_line *main, *poll, *log;
    st_retry main_at, poll_at, log_at;
    int behind;      /* statuses in a row whose answer named another list than ours */
    int64_t sent_ms; /* boot clock: the status under way */
    st_task_key log_key;
    size_t log_next; /* whose turn it is */

    int64_t next_ms;               /* boot clock: its next turn */
    int64_t sample_ms;             /* boot clock: the next sample */
    int64_t carve_ms[ST_DEVS_MAX]; /* boot clock: not before, after it failed */
    st_gpu_sample sample[ST_DEVS_MAX];
    uint16_t lost;   /* GPUs that did not answer */
    int64_t used_ms; /* boot clock: when what tasks used is next written down */
} st_host;

typedef ST_VEC(st_host *) st_hosts;

struct st_process {
    const st_agent_conf *conf;
    st_lines *lines;
    st_hosts hosts;
    st_rng rng; /* for pauses that differ */
};

/* One line to the log: event=… node=… and the rest as given. */
void st_say(const st_host *h, const char *event, const char *fmt, ...) ST_PRINTF(3, 4);

/* node.c */
st_host *st_host_new(st_process *process, const char *name, const char *dir);
void st_host_free(st_host *h);
int st_host_open(st_host *h, st_err *err); /* its files, GPUs, executor */
void st_host_turn(st_host *h);
void st_host_wake(st_host *h); /* its turn is now */
void st_retry_ok(st_retry *r);
void st_retry_later(st_host *h, st_retry *r);
void st_host_terms(st_host *h, const json_t *answer, int64_t sent_ms);
void st_host_save(st_host *h);

/* register.c */
void st_host_register(st_host *h);
void st_host_registered(st_host *h, const st_answer *a);
int st_host_identity(st_host *h, st_err *err);

/* act.c */
void st_host_act(st_host *h, int64_t now_ms);
bool st_host_carved(st_host *h, st_carved *ret);

/* logs.c */
void st_host_logs(st_host *h);
void st_host_logs_heard(void *ctx, const st_answer *a);

/* metrics.c */
void st_host_sample(st_host *h, int64_t now_ms);
void st_host_gpus_json(const st_host *h, st_strbuf *out);
/* The simulated devices show what the task does, or does no more. */
void st_host_load(st_host *h, const st_task *t, bool on, int64_t now_ms);

typedef struct st_scrape st_scrape;
int st_scrape_new(st_process *process, const char *address, st_scrape **ret, st_err *err);
void st_scrape_free(st_scrape *s);
ST_DEFINE_FREEP(st_scrape, st_scrape_free)

#endif
