/*
 * For tests of this folder: a folder of their own that goes away, and rows to fill a store with.
 */
#ifndef ST_STORE_TEST_SCRATCH_H
#define ST_STORE_TEST_SCRATCH_H

#include <dirent.h>
#include <unistd.h>

#include "base/testing.h"
#include "store/store.h"

/* Each write of a test is a transaction of its own. */
#define LOOSE (&(const st_store_options){.loose = true})

typedef struct scratch {
    char folder[64];
    char path[96];   /* a store in it */
    char second[96]; /* another one */
} scratch;

static inline ST_UNUSED void scratch_init(scratch *s)
{
    /* The memory file system spares the disk; what it would not keep is played by faulty_vfs. */
    snprintf(s->folder, sizeof(s->folder), "%s/stint-store-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->path, sizeof(s->path), "%s/store.db", s->folder);
    snprintf(s->second, sizeof(s->second), "%s/second.db", s->folder);
}

static inline ST_UNUSED void scratch_empty(const scratch *s)
{
    DIR *d = opendir(s->folder);
    struct dirent *e;
    char name[400];

    assert_non_null(d);
    while ((e = readdir(d))) {
        snprintf(name, sizeof(name), "%s/%s", s->folder, e->d_name);
        if (e->d_name[0] != '.')
            unlink(name);
    }
    closedir(d);
}

static inline ST_UNUSED void scratch_done(const scratch *s)
{
    scratch_empty(s);
    rmdir(s->folder);
}

static inline ST_UNUSED st_job_row a_job(int64_t id, const char *account)
{
    return (st_job_row){.id = id,
                        .account = account,
                        .user_name = "ann",
                        .name = "train",
                        .state = "pending",
                        .class_name = "guaranteed",
                        .submit_ms = 1000 + id,
                        .start_ms = ST_STORE_NEVER,
                        .end_ms = ST_STORE_NEVER,
                        .priority = 5,
                        .gpu_m = 8000,
                        .exit_code = ST_STORE_NEVER,
                        .reason = "",
                        .spec = "{\"gpus\":8}",
                        .result = ""};
}

static inline ST_UNUSED st_audit_row an_act(const char *account, const char *verb)
{
    return (st_audit_row){.at_ms = 7,
                          .actor = "ann",
                          .account = account,
                          .source = "10.0.0.1",
                          .verb = verb,
                          .target = "job 1",
                          .detail = ""};
}

static inline ST_UNUSED st_log_row a_log(int64_t seq)
{
    return (st_log_row){.seq = seq,
                        .at_ms = seq * 10,
                        .version = "0.1.0",
                        .data = {.p = "event", .n = 5},
                        .hash = UINT64_MAX - (uint64_t)seq};
}

#endif
