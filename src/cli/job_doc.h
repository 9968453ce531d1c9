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
#define ST_JOB_FLAGS(X)                                                                      \
    X(name, "name", 'n', "name", "NAME", "what it is called")                                \
    X(account, "account", 'A', "account", "ACCOUNT", "who it is for, your own unless given") \
    X(gpus, "gpus", 'g', "gpus", "N", "whole GPUs per task")                                 \
    X(tasks, "tasks", 't', "tasks", "N", "identical tasks that start together")              \
    X(cpu, "cpu", 'c', "cpu", "N", "CPUs per task")                                          \
    X(ram, "ram", 0, "ram", "SIZE", "memory per task: 64Gi, 512Mi, or GiB")                  \
    X(level, "level", 0, "level", "whole|mig|mps|time", "how a GPU is shared")               \
    X(profile, "profile", 0, "profile", "PROFILE", "a MIG slice: 1g, 3g, 3g.40gb")           \
    X(share, "share", 0, "share", "PART", "of one GPU, with --level mps or time: 0.25")      \
    X(vram, "vram", 0, "vram", "SIZE", "GPU memory per task")                                \
    X(limit, "limit", 'l', "limit", "DURATION", "ends it after so long: 90m, 12h")           \
    X(priority, "priority", 'p', "priority", "P", "low, normal, high or a number")           \
    X(on_preempt, "on-preempt", 0, "on_preempt", "checkpoint|pause|requeue|cancel",          \
      "what to do when it must yield")                                                       \
    X(pool, "pool", 0, "pool", "POOL", "only on nodes of this pool")                         \
    X(size, "size", 0, "size", "SIZE", "a size the admins have defined")                     \
    X(workload, "workload", 0, "workload",                                                   \
      "inference|finetune|training|render|video|notebook|batch",                             \
      "what kind of work it is; fills in what is left open")                                 \
    X(model, "model", 0, "model", "MODEL", "of inference and finetune: 13b, 8x7b or a name") \
    X(dtype, "dtype", 0, "dtype", "fp32|bf16|fp16|fp8|int8|int4", "of its weights")          \
    X(context, "context", 0, "context", "N", "tokens of a sequence")                         \
    X(concurrency, "concurrency", 0, "concurrency", "N", "of inference: sequences at once")  \
    X(attention, "attention", 0, "attention", "gqa|mha", "of inference")                     \
    X(method, "method", 0, "method", "full|lora|qlora", "of finetune")                       \
    X(batch_size, "batch-size", 0, "batch_size", "N", "of finetune: sequences in a step")    \
    X(frames, "frames", 0, "frames", "RANGES", "of render and video: 1-240,300-310x2")       \
    X(chunk, "chunk", 0, "chunk", "N", "of render and video: frames in one job")             \
    X(duration, "duration", 0, "duration", "DURATION", "of video, instead of frames")        \
    X(fps, "fps", 0, "fps", "N", "of video: frames a second")                                \
    X(image, "image", 'i', "image", "IMAGE", "of the catalogue, data:PATH, or host")         \
    X(workdir, "workdir", 0, "workdir", "DIR", "where the command starts")                   \
    X(network, "network", 0, "network", "none|host|tenant", "what it can reach")             \
    X(signal, "signal", 0, "signal", "NAME", "what tells it to save")                        \
    X(notify_signal, "notify-signal", 0, "notify_signal", "NAME",                            \
      "what tells it, before that, that it must leave soon")

typedef struct st_job_flags {
#define X(field, option, letter, key, value, about) const char *field;
    ST_JOB_FLAGS(X)
#undef X
    const char *type, *topology, *sim_run, *sim_exit, *file;
    const char *accounts;                    /* of `whatif` */
    st_cli_words env, secrets, labels, with; /* the last of `whatif` */
    const char *array;
    bool latency_critical, dry_run, print, wait;
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
