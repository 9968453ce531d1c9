/*
 * The inside of the agent: one node, and the process that has them. Private to src/agent.
 *
 * Two threads. The voice:
 *
 *   voice.c     registrations, statuses, lists, leases, logs: all that stintd says and hears
 *   register.c  how a node gets in
 *
 * And the acting one, the process's first:
 *
 *   loop.c      wakes nodes up, ends the process
 *   node.c      a node's turn: hear, look, plan, act, report
 *   report.c    what a node has, as the text of a status
 *   act.c       carries out what the plan says
 *   start.c     starts tasks, by workers
 *   sweep.c     finds what runs here and nobody knows of
 *   disk.c      what it does about a full disk
 *   data.c      counts what tenants have in /data, where the disk does not
 *   remove.c    forgets tasks, by workers
 *   pin.c       which CPUs tasks run on
 *   pause.c     takes tasks off their devices and puts them back
 *   scrub.c     reads the memory of devices between tenants
 *   logs.c      hands what tasks write to the voice
 *   metrics.c   samples devices, answers scrapes
 *   mps.c       MPS daemons: one per GPU and trust domain
 *   guard.c     files by which tasks that share a GPU are limited
 *   guard_usage.c  what such tasks say of themselves, and the end of their GPU time
 *   neighbour.c who slows whom on a shared GPU
 *   mps_work.c  starts, tells and ends them, by workers
 *   watch.c     who shares a GPU keeps to the memory it was granted
 *   symptoms.c  what is wrong with it in service
 *   trial.c     tests the node when it is asked to
 *   trial_run.c runs what measures its GPUs, as a task
 *
 * A field of st_host belongs to the acting thread unless it says otherwise; what both need is in the
 * mail (agent/voice.h), under its lock.
 */
#ifndef ST_AGENT_HOST_H
#define ST_AGENT_HOST_H

#include <limits.h>

#include "agent/agent.h"
#include "agent/exec.h"
#include "agent/ident.h"
#include "agent/journal.h"
#include "agent/line.h"
#include "agent/notice.h"
#include "agent/poll.h"
#include "agent/slices.h"
#include "agent/storage.h"
#include "agent/telemetry.h"
#include "agent/trial.h"
#include "agent/tunnel.h"
#include "agent/voice.h"
#include "agent/worker.h"
#include "base/rng.h"
#include "health/health.h"
#include "health/symptoms.h"
#include "model/volume.h"

#define ST_HOST_NAME_MAX 64
#define ST_TOKEN_MAX     128
/* After carving failed: a slice is in use for a moment after its last process. */
#define ST_CARVE_PAUSE_MS 150

typedef struct st_process st_process;

/* When something may be tried, and again after it failed. Boot clock. */
typedef struct st_retry {
    int64_t at_ms;
    int failures;
} st_retry;

/* What a worker does to an MPS daemon. */
typedef enum st_daemon_work {
    ST_DAEMON_IDLE,
    ST_DAEMON_START,
    ST_DAEMON_LIMIT,
    ST_DAEMON_STOP,
    ST_DAEMON_REMOVE,
} st_daemon_work;

/* An MPS daemon; its folder has the rest. */
typedef struct st_daemon {
    int id; /* for whoever works at it */
    int gpu;
    char domain[64], dir[PATH_MAX];
    st_daemon_work work;        /* under way */
    bool ending, stopped;       /* it is to go; its processes have */
    st_mps_limits limits, next; /* that its server has (0: not known), and is told */
    bool failed;                /* what a start waited for, for this reason: */
    st_err why;
    bool gone;         /* nothing is left but that, for who waits */
    int64_t began_ms;  /* boot clock: the work under way */
    int64_t wanted_ms; /* boot clock: until then somebody waits to start on it */
    int64_t retry_ms;  /* boot clock: not before, after something failed */
    int64_t look_ms;   /* boot clock: when to see whether it lives */
} st_daemon;

/* What a tenant has in /data, or what a volume holds (data.c). */
typedef struct st_data_use {
    char tenant[64];                     /* or the id of a volume */
    char volume[ST_VOLUME_NAME_MAX + 1]; /* its name; "": it is a tenant's /data */
    st_storage limit;                    /* of a volume */
    bool known, used;                    /* it was counted; it is to be */
    int times;                           /* it was found above its limit, one after the other */
    st_storage use;
    char over[160];  /* why it is too much; "": it is not */
    int64_t next_ms; /* boot clock: not before */
} st_data_use;

/* How a node gets in: by its key; with a join token; with a token of the time before keys. */
typedef enum st_way { ST_WAY_KEY, ST_WAY_JOIN, ST_WAY_TOKEN } st_way;

/* What the voice has of a node; nobody else looks. */
typedef struct st_talk {
    char token[ST_TOKEN_MAX]; /* of the time before keys; "": none */
    st_ident ident;
    pthread_mutex_t ident_lock;      /* who proves something: the voice, and tunnels */
    bool tunnels;                    /* stintd may ask for some */
    st_way way;                      /* how it tries to get in */
    char challenge[ST_SESSION_TEXT]; /* to be answered; "": to be asked for */
    int port;                        /* for agents, as last told; 0: never */
    bool asked;                      /* for one; the answer is under way */
    bool registered;
    int64_t registered_ms;                  /* boot clock: when it last was */
    int64_t lease_ms, interval_ms, wait_ms; /* the terms */
    st_agent_line *main, *poll, *log;
    st_retry main_at, poll_at, log_at;
    int behind;        /* statuses in a row whose answer named another list than ours */
    int64_t sent_ms;   /* boot clock: the status under way */
    uint64_t sent_no;  /* its report */
    int64_t soon_ms;   /* boot clock: not before, even if something is urgent */
    int64_t log_ok_ms; /* boot clock: when a piece of a log was last answered, or first sent */
    bool unsaved;      /* the lease could not be written down */
    bool stalled;      /* that was said, and nothing is until it is over */
    int64_t next_ms;   /* boot clock: its next turn */
} st_talk;

/* A task that was noted and is about to be begun. */
typedef struct st_begin {
    st_task_key key;
    const st_order *order;
    bool again; /* it was saved and goes on; before is its earlier record */
    st_task before;
} st_begin;

struct guard_limit;
struct guard_usage;
typedef struct st_neighbours st_neighbours;

/* An image that is to be there before a task asks for it. */
typedef struct st_image_want {
    char path[PATH_MAX], digest[80];
    bool oci, listed;
    bool known, ready; /* whether it was tried, and is there */
    int use;           /* keeps it; -1: nothing does */
    int64_t again_ms;  /* boot clock: when to try again */
    char reason[200];
} st_image_want;

/* Why a GPU cannot be used, and what that is without words. */
typedef struct st_sick_gpu {
    char reason[120];
    st_finding found;
} st_sick_gpu;

typedef struct st_host {
    st_process *process;
    char name[ST_HOST_NAME_MAX], machine[80], dir[PATH_MAX]; /* fixed once it is open */

    st_talk talk; /* the voice's */
    st_mail mail; /* of both */

    st_gpu *gpu; /* NULL: it has none */
    bool sim_gpus;
    st_gpu_inventory inv;
    st_board boards[ST_DEVS_MAX];
    st_exec *exec;

    st_journal journal;
    bool dirty;   /* the journal is newer than its file */
    bool changed; /* stintd is to hear at once */
    st_agent_list list;
    bool has_list;
    ST_VEC(st_begin) begins; /* of this turn */
    int room;                /* how many more may begin now */
    bool swept;              /* since then */
    bool clearing;           /* a worker removes what earlier attempts left */
    int64_t foreign_ms;      /* boot clock: since when somebody else is on a GPU; 0: nobody is */
    ST_VEC(st_task) leaving; /* those a worker removes, or is about to */
    bool removing;           /* it does */
    int64_t segments_ms;     /* when networks are looked at again */
    int64_t now_ms;          /* boot clock: when this turn began */
    st_notices *notices;     /* NULL: there are none */
    bool fenced;             /* tasks were killed because the lease had ended */
    char ill[160];           /* why the node cannot be used; "": it can */
    st_finding found;        /* what that is, without words */
    uint16_t sick;           /* GPUs that cannot be used, while the node can */
    st_sick_gpu sick_gpu[ST_DEVS_MAX];
    char stuck[160];       /* why nothing can be written down, and so nothing started; "": it can */
    char hangs[120];       /* what the GPU driver does not come back from; "": it does */
    char full[120];        /* why the disk has no room for another task; "": it has */
    st_symptoms *symptoms; /* NULL: nothing was looked at yet */
    char symptom[ST_DIAG_TEXT]; /* what is wrong with it in service, and lasts; "": nothing */
    st_finding symptom_found;   /* what that is, without words */
    int64_t symptoms_ms;        /* boot clock: when to look again */
    char unfit[200];    /* why starts fail here, for tenants that have nothing else in common */
    char unfit_for[64]; /* the first of them */
    int64_t unfit_ms;   /* boot clock: when it is tried again */
    bool reserved;      /* some of it is set aside */
    int64_t disk_ms;    /* boot clock: when to look at it again */

    st_storage data_limit; /* of each tenant */
    bool data_held;        /* the file system sees to it; otherwise: */
    ST_VEC(st_data_use) data;
    st_counted *counted; /* by a worker, whose memory this is as well; NULL: nobody is counted */
    char counting[64];   /* whose it is; "": nobody is at work */
    int64_t data_ms;     /* boot clock: when to see who is next */

    int64_t skew_ms; /* stintd's clock less the boot clock, when its list came */

    uint64_t report_no; /* the last report that was handed over */
    int64_t wall_of_ms; /* UTC less the boot clock, for the times in it */
    int64_t report_ms;  /* boot clock: when the next is due, even if nothing has changed */
    int64_t urgent_ms;  /* boot clock: and not before, even if something has */
    st_task_key log_key;
    size_t log_next; /* whose turn it is */
    int64_t log_ms;  /* boot clock: when to look for output again */

    int64_t next_ms;               /* boot clock: its next turn */
    int64_t sweep_ms;              /* boot clock: when to look for strays again */
    int64_t sample_ms;             /* boot clock: the next sample */
    int64_t carve_ms[ST_DEVS_MAX]; /* boot clock: not before, after it failed */
    int64_t unmig_ms[ST_DEVS_MAX]; /* boot clock: until then a GPU may refuse to leave MIG mode */
    st_gpu_sample sample[ST_DEVS_MAX];
    st_slices slices;    /* of running tasks, at the same moment */
    uint16_t lost;       /* GPUs that did not answer */
    char cuda[PATH_MAX]; /* the program stint-cuda */
    int checkpoint;      /* whether it can take checkpoints: 1, -1, 0 not known */
    int probes;          /* how often it was asked */
    char no_checkpoint[200];
    int64_t scrub_ms;     /* boot clock: when a scrub that failed is tried again */
    char unscrubbed[120]; /* why it failed */
    int64_t used_ms;      /* boot clock: when what tasks used is next written down */

    int64_t test_wanted,
        test_no;           /* the test that stintd asks for, and the last that was made; 0 none */
    st_strbuf test_text;   /* what that has found, JSON */
    bool test_told;        /* stintd has heard that */
    uint64_t test_telling; /* the first report that says so; 0: none yet */
    int64_t test_ms;       /* boot clock: when it is told again if it is still asked for */
    st_trial trial;

    ST_VEC(st_image_want) images; /* that the list wants ready (agent/images.c) */
    char unpacking[PATH_MAX];     /* which a worker is at; "": none */

    ST_VEC(st_daemon) daemons;
    int last_daemon;            /* the last id */
    char mps_control[PATH_MAX]; /* "": not looked for yet, or not there */
    bool guards;                /* there are files of the guard */
    int64_t guard_ms;           /* boot clock: when to look for slots that are free */
    st_neighbours *neighbours;  /* NULL: nothing shares a GPU with limits */
    int64_t neighbour_ms;       /* boot clock: when to look at them next */
} st_host;

typedef ST_VEC(st_host *) st_hosts;

struct st_process {
    const st_agent_conf *conf;
    st_poll *poll; /* where the acting thread waits */
    st_workers *workers;
    st_lines *lines; /* the voice's */
    st_ways *ways;
    st_hosts hosts;
    st_topology topology; /* n = 0: nothing is run here */
    st_cpu_load load;     /* of all CPUs, good while `loaded` */
    bool loaded;
    st_rng rng; /* the voice's, for pauses that differ */
    st_xid_rules xids;
};

/* One line to the log: event=… node=… and the rest as given. */
void st_say(const st_host *h, const char *event, const char *fmt, ...) ST_PRINTF(3, 4);

/* node.c */
st_host *st_host_new(st_process *process, const char *name, const char *dir);
/* Whether a task of its lives. */
bool st_host_busy(const st_host *h);
void st_host_free(st_host *h);
int st_host_open(st_host *h, st_err *err); /* its files, GPUs, executor */
void st_host_turn(st_host *h);
/* Sees what became of a task, and says so. */
void st_host_look(st_host *h, st_task *t, int64_t boot_ms);
void st_host_save(st_host *h);

/* report.c */
void st_host_report(st_host *h);
/* Notes what was heard of it. */
void st_host_report_heard(st_host *h, uint64_t heard_no);

/* voice.c; on its thread */
void st_retry_ok(st_retry *r);
void st_retry_later(st_host *h, st_retry *r);

/* register.c; on the voice's thread, but for the last */
void st_host_register(st_host *h);
void st_host_registered(st_host *h, const st_answer *a);
int st_host_identity(st_host *h, st_err *err);
/* Asks stintd, as this node (body NULL: a GET). */
void st_host_ask(st_host *h, st_agent_line *line, const char *path, const char *type,
                 const char *body, size_t n, int64_t timeout_ms);

/* images.c */
void st_host_images_want(st_host *h);
void st_host_images(st_host *h, int64_t now);
void st_host_images_json(const st_host *h, st_strbuf *out);
void st_host_images_done(st_host *h);
/* trial.c */
void st_host_test(st_host *h, int64_t boot_ms);

/* act.c */
void st_host_act(st_host *h, int64_t now_ms);
bool st_host_carved(st_host *h, st_carved *ret);
/* Hands on a signal that it is owed, if it can take it. */
void st_host_signal(st_host *h, st_task *t, int64_t now_ms);
/* The slice of a task, as it is now; false: it is not there. */
bool st_host_slice(st_host *h, const st_task_place *place, st_gpu_instance *ret);

/* start.c */
void st_host_room(st_host *h); /* how many may begin, before a plan is carried out */
/* Notes a task that is to be started; false: not now. */
bool st_host_start(st_host *h, const st_order *order);
/* Begins those that were noted. */
void st_host_begin(st_host *h, int64_t now_ms);
/* What a start that went well, or did not, says of the node. */
void st_host_judge_start(st_host *h, const st_task *t);
/* Ends the start of one that is not to be. */
void st_host_unstart(st_host *h, st_task *t);

/* pin.c */
void st_host_pin(st_host *h, st_task *t, const st_order *order);
/* It was off its CPUs, and goes on. */
void st_host_repin(st_host *h, st_task *t);

/* remove.c */
/* Forgets a task that is over; false: not now. */
bool st_host_remove(st_host *h, const st_task *t);
void st_host_remove_begin(st_host *h);
/* Has removed what earlier versions left. */
void st_host_tidy(st_host *h);
/* segments.c: networks of tenants that reach other nodes. */
void st_host_segments(st_host *h, int64_t now_ms);

/* sweep.c */
bool st_sweep_parse(const char *name, st_task *ret);
/* How many strays there were. `now`: even if it was done a moment ago. */
size_t st_host_sweep(st_host *h, int64_t boot_ms, bool now);
/* Whether somebody is on GPUs that a task is to have alone, and who. */
bool st_host_foreign(st_host *h, const st_task_place *place, char why[160]);

/* settings.c: MIG and compute modes of its GPUs, which with --settings leave stay as they are */
int st_host_set_mode(st_host *h, int gpu, st_gpu_mode mode, st_err *err);
/* It follows what is asked of an empty GPU; where that needs a person, it is refused. */
int st_host_mig_mode(st_host *h, int gpu, bool on, st_err *err);
int st_host_slices_set(st_host *h, int gpu, const st_gpu_slot *wanted, int n,
                       st_gpu_reconciled *ret, st_err *err);
/* Whether a task can be run with settings that stay as they are; anything suits otherwise. */
int st_settings_suit(st_host *h, const st_task_place *p, st_err *err);

/* symptoms.c */
void st_host_symptoms(st_host *h, int64_t boot_ms);

/* disk.c */
/* Whether there is room for the files of a new node, its key first: without it, it would be another node at its next start.
 * What is wrong otherwise is said by who needs it. */
bool st_disk_joins(const char *dir);
void st_host_disk_open(st_host *h); /* what an earlier agent has set aside is ours to give up */
void st_host_disk(st_host *h, int64_t boot_ms);
/* What was set aside is given up; false: there is nothing. */
bool st_host_disk_give(st_host *h);

/* data.c */
void st_host_data_open(st_host *h);
void st_host_data_close(st_host *h);
void st_host_data(st_host *h, int64_t boot_ms);
/* Whether it is known what a tenant has, and why that is too much ("": it is not). */
bool st_host_data_known(st_host *h, const char *tenant, const char **ret_over);
/* Why a volume of the order holds too much; "": none does, as far as is known. */
const char *st_host_volumes_over(st_host *h, const st_order *o);

/* scrub.c */
void st_host_scrub(st_host *h, st_task *t, bool scan);
void st_host_judge_scrubs(st_host *h);
/* All of it, now; the reason is for its owner. */
void st_host_kill(st_host *h, st_task *t, const char *reason, int64_t now_ms);

/* mps.c */
int st_host_mps_open(st_host *h, st_err *err);
void st_host_mps_tidy(st_host *h, int64_t now_ms);
/* Whether the node can do it; what is in the way is the error. */
int st_host_mps_check(st_host *h, const st_task_place *place, st_err *err);
/* Whether these GPUs are free of daemons that somebody else left: 0; 1: not yet, they are being ended. */
int st_host_mps_clear(st_host *h, const st_task_place *place, st_err *err);
/* Whether a task has the daemon it needs, with its limits: 0; 1: not yet, that is seen to. */
int st_host_mps_ready(st_host *h, const st_task_place *place, st_err *err);
/* What a task that is about to start has of its daemon. */
int st_host_mps_client(const st_host *h, const st_task *t, st_mps_client *ret, st_err *err);
/* A task is over: whether its GPU is free of the daemon, if nobody else needs it. */
bool st_host_mps_leave(st_host *h, const st_task *t);

/* guard.c */
void st_host_guard_open(st_host *h);
/* Slots of tasks that are gone become free. */
void st_host_guard_tidy(st_host *h, int64_t now_ms);
/* Makes the files of a task that is about to start; `uid` is who may write them, -1: its tenant. */
int st_host_guard_client(st_host *h, const st_task *t, const st_order *o, int64_t uid,
                         st_guard_client *ret, st_err *err);
/* Where the library is; an error where it is not. */
int st_guard_find(const char *given, char ret[PATH_MAX], st_err *err);
/* Each task that has a slot on a GPU; `dir` has its book. */
typedef void (*st_guard_slot_fn)(void *ctx, const st_task *t, int gpu, int slot, const char *dir);
void st_host_guard_each(const st_host *h, st_guard_slot_fn fn, void *ctx);
/* Where its book for a GPU is; false: it has none. */
bool st_host_guard_dir(const st_host *h, const st_task *t, int gpu, char ret[PATH_MAX]);
/* What it may use of a GPU; false: that is not known. */
bool st_host_guard_limit(const st_host *h, const st_task *t, int gpu, struct guard_limit *ret);
/* Changes its grant while it runs. */
void st_host_guard_order(const st_host *h, const st_task *t, int gpu, int cap_pm, bool protect);

/* guard_usage.c */
bool st_guard_read_usage(const char *dir, struct guard_usage *ret);
void st_host_guard_metrics(const st_hosts *hosts, st_strbuf *out);
/* Ends tasks that have used the GPU time they may. */
void st_host_guard_limits(st_host *h, int64_t now_ms);

/* neighbour.c */
void st_host_neighbours(st_host *h, int64_t now_ms);
void st_host_neighbours_free(st_host *h);
void st_host_neighbours_metrics(const st_hosts *hosts, st_strbuf *out);
/* What stintd has not heard of it, for the report of this number; and up to which one it has. */
void st_host_neighbours_json(st_host *h, uint64_t report_no, st_strbuf *out);
void st_host_neighbours_heard(st_host *h, uint64_t heard_no);

/* mps_work.c: none of it waits */
st_daemon *st_daemon_of(const st_host *h, int gpu, const char *domain);
void st_daemon_start(st_host *h, st_daemon *d, const st_mps_limits *limits);
void st_daemon_limit(st_host *h, st_daemon *d, const st_mps_limits *limits);
/* Ends it, or goes on with that. It is gone from the list when it is over, not before this returns. */
void st_daemon_end(st_host *h, st_daemon *d);
/* Nothing of it is left. */
void st_daemon_forget(st_host *h, st_daemon *d);
/* Takes a task off its server before it is killed: true when that is done, or is given up. */
bool st_host_mps_parted(st_host *h, st_task *t, int64_t now_ms);
/* What a task at level mps or time may have of a GPU's memory. */
int64_t st_host_granted_mib(const st_host *h, const st_task_place *place, int gpu);

/* watch.c */
void st_host_watch(st_host *h, int64_t now_ms);

/* logs.c */
void st_host_logs(st_host *h);

/* metrics.c */
void st_host_sample(st_host *h, int64_t now_ms);
void st_host_gpus_json(const st_host *h, st_strbuf *out);
/* The simulated devices show what the task does, or does no more. */
void st_host_load(st_host *h, const st_task *t, bool on, int64_t now_ms);
/* The pid under which they show it. */
int64_t st_host_sim_pid(const st_task *t);

typedef struct st_scrape st_scrape;
int st_scrape_new(st_process *process, const char *address, st_scrape **ret, st_err *err);
void st_scrape_free(st_scrape *s);
ST_DEFINE_FREEP(st_scrape, st_scrape_free)

#endif
