/*
 * Running one task of a job on this node as a fenced OCI container.
 *
 *   st_run_start    writes a bundle, starts a supervisor (stint-shim) and returns; the container
 *                   comes up within some tens of milliseconds
 *   st_run_get      what a task is doing now, from its folder in the state directory
 *   st_run_list     all of them, also those started before this program was
 *   st_run_signal   a signal to the job's own processes, not to its init
 *   st_run_kill     ends every process of the task and verifies that none is left
 *   st_run_remove   forgets an ended task and its logs
 *
 * What a task may rely on is in doc/dev/tasks.md. Invariants:
 *   1. The supervisor outlives its starter; limits hold and the exit is recorded, with its true
 *      time, while nobody watches. Nothing here ends a task but st_run_kill and its own limits.
 *   2. Only files in the state directory connect a task with its starter. A folder whose lock is
 *      free has no supervisor.
 *   3. A task is started at most once per id: its folder is made exclusively.
 *   4. A task gets the devices, mounts and variables its spec names and nothing else of the node.
 */
#ifndef ST_RUN_RUN_H
#define ST_RUN_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ST_RUN_ID_MAX   96 /* bytes of an id with its NUL */
#define ST_RUN_NAME_MAX 64 /* of a tenant's name with its NUL */
#define ST_RUN_TEXT_MAX 256

/* ---- what to run ------------------------------------------------------------------------ */

typedef enum { ST_NET_NONE, ST_NET_HOST, ST_NET_TENANT } st_run_net;

/* A device node. With major < 0 type and numbers are those of host_path (or path) on the node. */
typedef struct st_run_device {
    const char *path;      /* inside, under /dev/ */
    const char *host_path; /* NULL: the same */
    int64_t major, minor;
    bool block;
    const char *access; /* of r, w and m; NULL: "rw" */
} st_run_device;

typedef struct st_run_mount {
    const char *source; /* absolute, on the node */
    const char *target; /* absolute, inside */
    bool writable;
} st_run_mount;

/* A file in /run/stint/secrets; with `env` also a variable of that name, whose bytes have no NUL. */
typedef struct st_run_secret {
    const char *name;
    const void *bytes;
    size_t n;
    bool env;
} st_run_secret;

#define ST_RUN_SECRETS_MAX      32
#define ST_RUN_SECRET_BYTES_MAX 65536

/* A task's place in its gang; world_size 0: it has none. */
typedef struct st_run_gang {
    const char *master_addr;
    int64_t master_port;
    int64_t rank, world_size;
    int64_t local_rank, local_world_size;
    int64_t node_rank;
    const char *hostfile;  /* text, "HOST slots=N" a line; NULL: none */
    const char *hosts;     /* text, "ADDRESS NAME" a line, for its /etc/hosts; NULL: none */
    const char *addresses; /* of all tasks by rank, with commas between them; NULL: not said */
    const char *self;      /* its own, for its host name; NULL: 127.0.0.1 */
} st_run_gang;

/* Where another node of the gang is: in the tenant's segment, and on the site's network. IPv4 addresses. */
typedef struct st_run_peer {
    const char *inside, *outside;
} st_run_peer;

#define ST_RUN_SEGMENT_MAX  0xfffffe
#define ST_RUN_SEGMENT_PORT 14789

/* What lets the tenant's network reach other nodes, for a gang that is on several; number 0: it does not. */
typedef struct st_run_segment {
    int64_t number; /* the tenant's, and never anybody else's; 1 to ST_RUN_SEGMENT_MAX */
    int64_t port;   /* of UDP, the same on all nodes */
    st_run_peer here;
    const st_run_peer *peers; /* the other nodes */
    size_t npeer;
} st_run_segment;

/* Its root file system. What a tenant writes never chooses a path of the node: who fills this in does. */
typedef enum {
    ST_IMAGE_HOST,   /* the node's own programs, read-only */
    ST_IMAGE_FOLDER, /* a folder of the site's, as it is */
    ST_IMAGE_OCI,    /* an OCI image layout, unpacked once */
} st_run_image_kind;

typedef struct st_run_image {
    st_run_image_kind kind;
    const char *root; /* a folder of the node */
    const char *path; /* of a layout, beneath it; NULL: the folder itself */
    const char
        *digest; /* "sha256:…" that a layout's manifest must have; NULL: the one its index names */
    bool own;    /* it is in the tenant's storage: read as the tenant, and for nobody else */
} st_run_image;

typedef struct st_run_spec {
    const char *id;        /* "job/stay/task": one to three parts of letters, digits, - and _ */
    const char *tenant;    /* the same characters */
    int64_t uid, gid;      /* the host's ids it runs as, at least ST_RUN_UID_MIN */
    const int64_t *groups; /* others it is in, likewise */
    size_t ngroup;
    int64_t userns_ids; /* > 0: a user namespace whose ids 0… are uid…uid+n-1; runs as 0 inside */

    const char *const *command; /* NULL-terminated; NULL when there is a script */
    const char *script;         /* text; run by its #! line or by /bin/sh */
    const char *const *env;     /* "NAME=value", NULL-terminated; NULL: none */
    const st_run_secret *secrets;
    size_t nsecret;
    const char *workdir; /* NULL: /data if there is one, else /tmp */
    st_run_image image;

    const st_run_device *devices;
    size_t ndevice;
    const st_run_mount *mounts;
    size_t nmount;
    const char *gpu_uuids;        /* "GPU-…,MIG-…", for CUDA_VISIBLE_DEVICES; NULL: no GPU */
    const char *gpu_visible;      /* CUDA_VISIBLE_DEVICES instead of these; NULL: these */
    const char *cdi_file;         /* a CDI spec; NULL: none */
    const char *const *cdi_names; /* devices of it, NULL-terminated */

    int64_t cpu_m;    /* 0: no limit */
    const char *cpus; /* which, as in "0-3,8"; NULL: any */
    int64_t ram_mib;  /* 0: no limit */
    int64_t pids;     /* 0: ST_RUN_PIDS_DEFAULT */
    int64_t shm_mib;  /* /dev/shm; 0: half the RAM, at most 64 GiB */
    const char *shm;  /* a folder of the node to see there instead, shared; NULL: none */
    bool lock_memory; /* as much of its RAM as it likes: RDMA needs that */
    int64_t tmp_mib;  /* /tmp; 0: ST_RUN_TMP_DEFAULT_MIB */
    const char *data; /* the tenant's storage on the node, seen at /data; NULL: none */
    st_run_net net;
    st_run_segment segment; /* with net tenant */
    st_run_gang gang;

    int64_t time_limit_ms; /* 0: none */
    int64_t grace_ms;      /* between its signal and the kill */
    int signal;            /* what tells it to stop; 0: SIGTERM */
    int64_t log_bytes;     /* kept per stream; 0: ST_RUN_LOG_DEFAULT */
    bool merge_output;     /* stderr goes to the stdout log, in order */
    bool terminal;         /* it has a terminal; what that shows is the stdout log */
    bool input;            /* its standard input is what is written to it (st_run_attach) */
} st_run_spec;

#define ST_RUN_UID_MIN         10000
#define ST_RUN_PIDS_DEFAULT    4096
#define ST_RUN_TMP_DEFAULT_MIB 1024
#define ST_RUN_LOG_DEFAULT     (INT64_C(64) << 20)
#define ST_RUN_LOG_MIN         (INT64_C(64) << 10)

/* Fails with one sentence about the first thing wrong with it. Pure. */
int st_run_check(const st_run_spec *spec, st_err *err);

/* ---- where to run ----------------------------------------------------------------------- */

/* NULL or 0 stands for the default. */
typedef struct st_run_conf {
    const char *state_dir;   /* /var/lib/stint/run; on a disk, for logs live there too */
    const char *cgroup_root; /* "stint": the group all tasks live under */
    const char *runtime;     /* path of one; default: the first of crun and runc that works here */
    const char *libexec;     /* the folder of stint-shim and stint-init; default: our own */
    const char *lease;       /* the file with the end of the node's lease; default: there is none */
    int64_t
        images_mib;   /* of unpacked images at most; default: a quarter of the disk, up to 64 GiB */
    int64_t image_ms; /* to read and unpack one; default: 10 minutes */
} st_run_conf;

/* The end of a node's lease, in a file that its agent writes: BOOT-ID END keep|kill DNE. It is of this boot or
 * it is none. Supervisors end their tasks when it is over, whoever else is dead. */
typedef struct st_run_lease {
    int64_t end_ms; /* boot clock; 0: there is none */
    bool keep;      /* tasks outlive it */
} st_run_lease;

#define ST_RUN_LEASE_REASON "the lease of its node ended"

st_run_lease st_run_lease_read(const char *text, const char *boot_id); /* pure */
st_run_lease st_run_lease_load(const char *path);
int st_run_lease_save(const char *path, const st_run_lease *lease, st_err *err);

typedef struct st_run st_run;

/* Makes the state directory and picks the runtime. */
int st_run_new(const st_run_conf *conf, st_run **ret, st_err *err);
void st_run_free(st_run *run);
ST_DEFINE_FREEP(st_run, st_run_free)

const char *st_run_runtime(const st_run *run);
/* Whether tasks can be held to certain CPUs here; where not, `cpus` of a spec is refused. */
bool st_run_pins(const st_run *run);

/* Has an image of the site ready: unpacked, or a folder that is there. It may take as long as `image_ms`. And keeps an
 * unpacked one from being taken away as long as what it returns is open; -1: there is nothing to keep. */
int st_run_prepare(const st_run *run, const st_run_image *image, st_err *err);
int st_run_keep(const st_run *run, const st_run_image *image);

/* Removes what earlier versions left and nobody uses any more; ST_ESTATE while a task does. It may take long. */
int st_run_tidy(const st_run *run, st_err *err);

/* Has the kernel know of tenants' segments what the tasks here need, and nothing else: for a program that starts, and
 * now and then, since others may change the node's rules. */
int st_run_segments(const st_run *run, st_err *err);
/* Whether there were any since the machine was started. */
bool st_run_segmented(const st_run *run);

/* Removes the group around all tasks, if all of them are over. The next one has it again. */
void st_run_rest(const st_run *run);

/* Removes the state directory with its images and networks, and the group; ST_ESTATE while it
 * holds a task. For taking a node out of service; the handle is good for nothing but freeing. */
int st_run_clear(st_run *run, st_err *err);

/* ---- a task's life ---------------------------------------------------------------------- */

/* X(name, string): what a task is doing. */
#define ST_RUN_STATE_TABLE(X)                                                    \
    X(ST_RUN_STARTING, "starting") /* the supervisor is bringing it up */        \
    X(ST_RUN_RUNNING, "running")                                                 \
    X(ST_RUN_ENDED, "ended")            /* the exit fields are valid */          \
    X(ST_RUN_UNSUPERVISED, "unwatched") /* runs on, its supervisor was killed */ \
    X(ST_RUN_LOST, "lost")              /* gone, and nobody saw how it ended */

typedef enum {
#define ST_RUN_STATE_ENUM(name, string) name,
    ST_RUN_STATE_TABLE(ST_RUN_STATE_ENUM)
#undef ST_RUN_STATE_ENUM
} st_run_state;

/* X(name, string): why a task ended. */
#define ST_RUN_WHY_TABLE(X)                                                   \
    X(ST_RUN_WHY_EXIT, "exit") /* by itself: status or signal */              \
    X(ST_RUN_WHY_TIME, "time_limit")                                          \
    X(ST_RUN_WHY_OOM, "out_of_memory")                                        \
    X(ST_RUN_WHY_KILLED, "killed")      /* st_run_kill; text says what for */ \
    X(ST_RUN_WHY_START, "start_failed") /* text says why */

typedef enum {
#define ST_RUN_WHY_ENUM(name, string) name,
    ST_RUN_WHY_TABLE(ST_RUN_WHY_ENUM)
#undef ST_RUN_WHY_ENUM
} st_run_why;

/* X(name, string): what a task was told with its last signal. */
#define ST_RUN_TOLD_TABLE(X)          \
    X(ST_RUN_TOLD_NOTHING, "nothing") \
    X(ST_RUN_TOLD_SAVE, "save")       \
    X(ST_RUN_TOLD_STOP, "stop")

typedef enum {
#define ST_RUN_TOLD_ENUM(name, string) name,
    ST_RUN_TOLD_TABLE(ST_RUN_TOLD_ENUM)
#undef ST_RUN_TOLD_ENUM
} st_run_told;

const char *st_run_state_name(st_run_state state);
const char *st_run_why_name(st_run_why why);

typedef struct st_run_task {
    char id[ST_RUN_ID_MAX];
    char tenant[ST_RUN_NAME_MAX];
    st_run_state state;
    int64_t asked_ms;        /* when st_run_start was called; UTC */
    int64_t started_us;      /* the job's first instruction; 0: not yet */
    int64_t started_boot_ms; /* the same, by the boot clock */
    int64_t deadline_ms;     /* of the time limit; 0: none */
    int shim_pid, init_pid;  /* while it runs */
    st_run_told told;

    /* Once ended. */
    st_run_why why;
    int status; /* exit status, -1 if a signal ended it */
    int signal; /* 0 if it exited */
    bool oom;   /* something in it was killed for memory, even if it went on */
    bool gone;  /* every process was seen gone when the record was written */
    int64_t ended_ms;
    int64_t ended_boot_ms; /* the same, by the boot clock */
    bool node_fault;       /* of start_failed: for the node's reasons, not what was asked for */
    int64_t log_lost;      /* bytes of output that could not be written */
    char text[ST_RUN_TEXT_MAX];
} st_run_task;

/* Returns when the supervisor is on its way; watch the state. ST_EEXIST: the id is taken. */
int st_run_start(st_run *run, const st_run_spec *spec, st_err *err);

/* Where its records and logs are, whether there are any or not. */
int st_run_folder(const st_run *run, const char *id, char ret[PATH_MAX], st_err *err);

/* Whose fault an error at a start is: the node's, or that of what was asked for. */
bool st_run_node_fault(const st_err *err);

int st_run_get(const st_run *run, const char *id, st_run_task *ret, st_err *err);

/* All tasks in order of id; free(*ret). Folders that make no sense are left out and counted. */
int st_run_list(const st_run *run, st_run_task **ret, size_t *ret_n, size_t *ret_bad, st_err *err);

/* Waits until the task has ended (or is lost), at most timeout_ms; ST_EDOWN if it has not. */
int st_run_wait(const st_run *run, const char *id, int64_t timeout_ms, st_run_task *ret,
                st_err *err);

int st_run_signal(const st_run *run, const char *id, int signal, st_err *err);

/* Notes what its signal means, so that its exit is understood by whoever knows nothing else of it. */
int st_run_tell(const st_run *run, const char *id, st_run_told told, st_err *err);

/* Ends it whole; ST_EDOWN if a process is left after timeout_ms. Fine on what has ended. */
int st_run_kill(const st_run *run, const char *id, const char *reason, int64_t timeout_ms,
                st_err *err);

/* How many processes of the task exist now; 0 is proof that it is gone. */
int st_run_count(const st_run *run, const char *id, int64_t *ret, st_err *err);

/* The names of all groups under the root, in any hierarchy, and of all folders of tasks: "job.stay.task", as
 * ids are with dots. This is what the kernel and the disk know; later attempts come first; free(*ret). */
#define ST_RUN_TRY "stint-try" /* how those begin that a runtime is tried in */
void st_run_traces(const st_run *run, char (**ret)[ST_RUN_ID_MAX], size_t *ret_n);
/* Kills all that is in one of them, without waiting, and removes it when it is empty; returns how many
 * are left. */
int64_t st_run_group_end(const st_run *run, const char *name);

/* ---- into a task (enter.c) ----------------------------------------------------------------- */

/* A socket, which does not block, connected to a port on the loopback address of the task's own network; ST_EPERM where
 * that is the node's. What err says may be told to the task's owner. From any thread. */
int st_run_connect(const st_run *run, const char *id, int port, int timeout_ms, int *ret,
                   st_err *err);

/* A command in the task, beside its own: the same namespaces, control group, user and limits. `spec` is JSON: command, tty,
 * rows, cols, term. *ret: a socket on which frames go both ways (tunnel/frame.h); where it is closed the command ends. */
int st_run_enter(const st_run *run, const char *id, const char *spec, int *ret, st_err *err);

/* ---- held still (hold.c) ---------------------------------------------------------------- */

/* Every process of it stands still, or goes on. ST_EDOWN if that is not so after timeout_ms. A frozen
 * task can be killed; it does not see signals before it goes on. */
int st_run_freeze(const st_run *run, const char *id, bool on, int64_t timeout_ms, st_err *err);

/* Its processes, by the host's numbers: fills buf up to `room`; *ret_n is how many there are. */
int st_run_pids(const st_run *run, const char *id, int64_t *buf, size_t room, size_t *ret_n,
                st_err *err);
/* When a process began: with its pid, a name that is never used again. 0: there is none. */
uint64_t st_run_birth(int pid);

/* Bytes of RAM that it uses and may use (INT64_MAX: no limit); and another limit, until the next. */
int st_run_ram(const st_run *run, const char *id, int64_t *ret_used, int64_t *ret_limit,
               st_err *err);
int st_run_ram_limit(const st_run *run, const char *id, int64_t bytes, st_err *err);

/* Other CPUs, as in st_run_spec. */
int st_run_cpus(const st_run *run, const char *id, const char *cpus, st_err *err);

/* Lets it use one more device file of the node, under the same name. ST_EDOWN where the device rules of a
 * running task cannot be changed: with cgroups of version 2 alone. */
int st_run_device_add(const st_run *run, const char *id, const char *path, st_err *err);

/* Another end of its time limit, by the boot clock; 0: none for now, its time stands still. Nothing changes for a task
 * that has no limit. */
int st_run_deadline(const st_run *run, const char *id, int64_t deadline_ms, st_err *err);

/* A connection to its own terminal or streams, with frames both ways (tunnel/frame.h), for several at a time. `from`: the byte
 * of its output to begin at; below 0: so many before the end. Without may_write whatever is sent ends it. */
int st_run_attach(const st_run *run, const char *id, int64_t from, bool may_write, int *ret,
                  st_err *err);

/* ---- afterwards ------------------------------------------------------------------------- */

/* ST_ESTATE while it runs, or while its supervisor cleans up for longer than a few seconds. */
int st_run_remove(const st_run *run, const char *id, st_err *err);

/* ---- output ----------------------------------------------------------------------------- */

typedef enum { ST_RUN_OUT, ST_RUN_ERR } st_run_stream;

typedef struct st_run_piece {
    int64_t offset; /* of the first byte; beyond what was asked if that has been rotated away */
    int64_t end;    /* where the stream ends now */
    size_t n;       /* bytes in the buffer */
} st_run_piece;

/* Reads from a byte offset of the stream, counted since the task began. */
int st_run_log_read(const st_run *run, const char *id, st_run_stream stream, int64_t offset,
                    char *buf, size_t cap, st_run_piece *ret, st_err *err);

/* ---- is this node fit? ------------------------------------------------------------------ */

typedef enum { ST_CHECK_OK, ST_CHECK_WARN, ST_CHECK_BAD } st_run_verdict;

typedef struct st_run_finding {
    const char *name; /* "runtime", "cgroups", … */
    st_run_verdict verdict;
    char text[ST_RUN_TEXT_MAX]; /* what was found */
    char fix[ST_RUN_TEXT_MAX];  /* what to do about it; "" when all is well */
} st_run_finding;

#define ST_RUN_FINDINGS_MAX 24

/* Tries everything a task needs, for real. Returns how many findings there are. */
size_t st_run_probe(const st_run_conf *conf, st_run_finding ret[ST_RUN_FINDINGS_MAX]);

/* Whether networks of tenants can reach other nodes from here, tried for real, and what keeps their packets from being
 * read on the way. `address` is the node's; NULL: not known. */
void st_run_probe_segments(const char *address, st_run_finding *ret);

/* The first finding that keeps tasks from running; NULL if none does. */
const st_run_finding *st_run_probe_bad(const st_run_finding *findings, size_t n);

#endif
