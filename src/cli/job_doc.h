/*
 * A job as a document, from what stands on the command line: the flags of `submit` and `run`, a
 * file below them, the command behind them.
 */
#ifndef ST_CLI_JOB_DOC_H
#define ST_CLI_JOB_DOC_H

#include <jansson.h>

#include "base/strbuf.h"
#include "cli/cli.h"

/* X(field, option, letter, key, value, about): flags that are keys of the document as they are. */
#define ST_JOB_FLAGS(X)                                                                            \
    X(name, "name", 'n', "name", "NAME",                                                           \
      "name of the job; jobs of one kind share a name up to a number (default: job)")              \
    X(account, "account", 'A', "account", "ACCOUNT",                                               \
      "account that the job belongs to (default: yours)")                                          \
    X(gpus, "gpus", 'g', "gpus", "N", "whole GPUs per task (default: 1)")                          \
    X(tasks, "tasks", 't', "tasks", "N", "identical tasks that start together (default: 1)")       \
    X(cpu, "cpu", 'c', "cpu", "N", "CPUs per task (default: set by the pool)")                     \
    X(ram, "ram", 0, "ram", "SIZE",                                                                \
      "memory per task: 64Gi, 512Mi or a number of GiB (default: set by the pool)")                \
    X(level, "level", 0, "level", "whole|mig|mps|time",                                            \
      "how the job gets its GPUs (default: whole)")                                                \
    X(profile, "profile", 0, "profile", "PROFILE", "MIG slice: 1g, 3g or 3g.40gb (level mig)")     \
    X(share, "share", 0, "share", "PART",                                                          \
      "part of one GPU, for example 0.25 (levels mps and time)")                                   \
    X(vram, "vram", 0, "vram", "SIZE", "GPU memory per task (default: all, or the share's part)")  \
    X(gpu_time, "gpu-time", 0, "gpu_time", "DURATION",                                             \
      "GPU time per task, after which it is ended (levels mps and time; default: no limit)")       \
    X(limit, "limit", 'l', "limit", "DURATION", "time limit: 90m, 12h (default: none)")            \
    X(priority, "priority", 'p', "priority", "P",                                                  \
      "low, normal, high or a number; counts inside your account (default: normal)")               \
    X(on_preempt, "on-preempt", 0, "on_preempt", "checkpoint|pause|requeue|cancel",                \
      "what happens when the job is preempted (default: requeue)")                                 \
    X(grace, "grace", 0, "grace", "DURATION",                                                      \
      "time the job needs to save when it is preempted (default: the cluster's grace)")            \
    X(on_fault, "on-fault", 0, "on_fault", "requeue|fail",                                         \
      "what happens when a node fails under the job (default: requeue)")                           \
    X(pool, "pool", 0, "pool", "POOL", "use only nodes of this pool (default: any)")               \
    X(booking, "booking", 0, "booking", "ID", "run in this booking (stint book list)")             \
    X(begin, "begin", 0, "begin", "TIME",                                                          \
      "do not start before: \"2026-12-01 09:00\", \"friday 18:00\", +2h (default: at once)")       \
    X(end_by, "end-by", 0, "end_by", "TIME", "end the job by then, with time to save before")      \
    X(by, "by", 0, "by", "TIME", "deadline; jobs of your account are ordered by it")               \
    X(priority_class, "class", 0, "priority_class", "NAME",                                        \
      "priority class (`stint class list`): its priority, and what it pays")                       \
    X(if_never, "if-never", 0, "if_never", "cancel|keep",                                          \
      "what becomes of a job that waits for what can never be (default: cancel)")                  \
    X(retries, "retries", 0, "retries", "N", "try the job again when it fails, so often at most")  \
    X(retry_after, "retry-after", 0, "retry_after", "DURATION",                                    \
      "wait before the first retry; then twice as long each time (default: 1m)")                   \
    X(retry_max, "retry-max", 0, "retry_max", "DURATION",                                          \
      "longest wait before a retry (default: 1h)")                                                 \
    X(slot, "slot", 0, "slot", "NAME",                                                             \
      "run only in the windows of this series of bookings, one after the other")                   \
    X(zone, "zone", 0, "zone", "ZONE", "time zone of these times (default: this machine's)")       \
    X(size, "size", 0, "size", "SIZE",                                                             \
      "named size that fills in GPUs, CPUs and memory (stint size list)")                          \
    X(workload, "workload", 0, "workload",                                                         \
      "inference|finetune|training|render|video|notebook|batch",                                   \
      "kind of work; fills in what you leave open")                                                \
    X(model, "model", 0, "model", "MODEL",                                                         \
      "model size or name, for example 13b or 8x7b (workloads inference, finetune)")               \
    X(dtype, "dtype", 0, "dtype", "fp32|bf16|fp16|fp8|int8|int4",                                  \
      "data type of the weights (workloads inference, finetune)")                                  \
    X(context, "context", 0, "context", "N",                                                       \
      "tokens per sequence (workloads inference, finetune)")                                       \
    X(concurrency, "concurrency", 0, "concurrency", "N", "sequences at once (workload inference)") \
    X(attention, "attention", 0, "attention", "gqa|mha",                                           \
      "attention heads that are cached (workload inference)")                                      \
    X(method, "method", 0, "method", "full|lora|qlora", "fine-tuning method (workload finetune)")  \
    X(batch_size, "batch-size", 0, "batch_size", "N", "sequences per step (workload finetune)")    \
    X(frames, "frames", 0, "frames", "RANGES",                                                     \
      "frames, for example 1-240,300-310x2 (workloads render, video)")                             \
    X(chunk, "chunk", 0, "chunk", "N", "frames per job (workloads render, video)")                 \
    X(duration, "duration", 0, "duration", "DURATION",                                             \
      "length of the video, instead of frames (workload video)")                                   \
    X(fps, "fps", 0, "fps", "N", "frames per second (workload video)")                             \
    X(image, "image", 'i', "image", "IMAGE", "image of the catalogue, data:PATH, or host")         \
    X(workdir, "workdir", 0, "workdir", "DIR", "directory in which the command starts")            \
    X(network, "network", 0, "network", "none|host|tenant",                                        \
      "network access: none, the tenant's own, or the host's")                                     \
    X(signal, "signal", 0, "signal", "NAME", "signal that asks the job to save (default: TERM)")   \
    X(notify_signal, "notify-signal", 0, "notify_signal", "NAME",                                  \
      "signal that warns the job before that")

/* X(key, value, about): keys of the document that no such flag stands for. */
#define ST_JOB_KEYS(X)                                                                             \
    X("user", "NAME", "user that the job belongs to (default: you; admins may name another)")      \
    X("type", "TYPE or [TYPE, ...]", "GPU types the job accepts (default: any)")                   \
    X("topology", "{require: LEVEL} or {prefer: LEVEL}",                                           \
      "keep all tasks inside one nvlink, node, rack, block or zone")                               \
    X("latency_critical", "true|false",                                                            \
      "share a GPU only with jobs of your account (default: false)")                               \
    X("hard", "true|false", "admit the job only if its deadline can be promised (default: false)") \
    X("rdma", "true|false",                                                                        \
      "give the tasks the node's RDMA devices; the pool must permit it (default: false)")          \
    X("terminal", "true|false", "give each task a terminal, for `stint attach` (default: false)")  \
    X("stdin", "true|false",                                                                       \
      "keep the standard input of each task open, for `stint attach` (default: false)")            \
    X("hard_share", "true|false",                                                                  \
      "never get more than the share, even beside idle neighbours (levels mps and time; "          \
      "default: false)")                                                                           \
    X("command", "[WORD, ...]", "program and arguments")                                           \
    X("script", "TEXT", "shell script, instead of command")                                        \
    X("env", "{NAME: VALUE}", "environment variables")                                             \
    X("secrets", "{NAME: SECRET}",                                                                 \
      "secrets as files /run/stint/secrets/NAME; {secret: SECRET, as: env} also sets a variable")  \
    X("volumes", "[NAME:/PATH[:ro], ...]",                                                         \
      "volumes of your account, and shared ones from above, at these paths")                       \
    X("with", "DIGEST",                                                                            \
      "folder that the job comes with, at /work; stint submit --with DIR brings it")               \
    X("after", "JOB or {job: JOB, end: any|ok|fail, each: true, only: true}, or a list of them",   \
      "start only when these jobs or arrays have ended so; each: one for one with their jobs; "    \
      "only: not the array of that name")                                                          \
    X("hold", "true|false", "hold the job until it is released (default: false)")                  \
    X("throttle", "N", "of an array: how many of its jobs run at a time (default: no limit)")      \
    X("retry_on", "exit or [exit, timeout]",                                                       \
      "what is tried again: failing, or the time limit too (default: exit)")                       \
    X("comment", "TEXT", "comment, shown with the job")                                            \
    X("array", "N, FIRST-LAST or {count: N}",                                                      \
      "submit one job per index (variable STINT_ARRAY_INDEX)")                                     \
    X("node_labels", "[NAME=VALUE, NAME!=VALUE, ...]",                                             \
      "use only nodes with these labels, or without (`stint node show`)")                          \
    X("exclude_nodes", "[NODE, ...]", "nodes on which the job does not run")                       \
    X("labels", "{NAME: VALUE}", "labels, shown with the job")                                     \
    X("estimate", "TEXT", "how the memory estimate was made; written by stintd")                   \
    X("sim", "{run: DURATION, exit: N}", "run time and exit status on simulated nodes")

typedef struct st_job_flags {
#define X(field, option, letter, key, value, about) const char *field;
    ST_JOB_FLAGS(X)
#undef X
    const char *type, *topology, *sim_run, *sim_exit, *file, *comment, *retry_on;
    st_cli_words after, after_ok, after_fail;
    st_cli_words node_labels, exclude_nodes;
    bool each, hold;
    const char *accounts;                             /* of `whatif` */
    st_cli_words env, secrets, volumes, labels, with; /* the last of `whatif` */
    const char *array;
    const char *folder; /* that it comes with */
    bool latency_critical, hard_share, hard, rdma, terminal, input, dry_run, print, wait;
    st_cli_format format;
} st_job_flags;

/* "gpus=4,limit=2h" as fields of a job; *ret is the caller's. */
int st_job_fields_doc(const char *text, json_t **ret, st_err *err);

/* The document; *ret is the caller's. {"jobs": [...]} for a file with several. */
int st_job_doc(const st_job_flags *flags, int ncommand, char **command, json_t **ret, st_err *err);

/* What the server said of a document, with the flag or the line of the file instead of the line of
 * `body`, which is the document as it was sent, one value a line. */
void st_job_place(const st_job_flags *flags, const char *body, const char *detail, st_strbuf *out);

#endif
