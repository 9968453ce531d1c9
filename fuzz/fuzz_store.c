/*
 * Opens whatever bytes as a store and reads everything through the typed helpers: rows, or an
 * error, never a crash. The sums of the pages are put right first, so that what is behind them is
 * reached: a fuzzer would not find them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "fuzz.h"
#include "store/store.h"

#define PAGE 4096
#define SUM  8

static int any_job(void *ctx, const st_job_row *row, st_err *err)
{
    (void)ctx, (void)err;
    ST_ASSERT(row->account && row->spec && row->result);
    return 0;
}

static int any_log(void *ctx, const st_log_row *row, st_err *err)
{
    (void)ctx, (void)err;
    ST_ASSERT(row->version && row->data.p);
    return 0;
}

static int any_token(void *ctx, const st_token_row *row, st_err *err)
{
    (void)ctx, (void)err;
    ST_ASSERT(row->hash.p && row->role);
    return 0;
}

static int any_act(void *ctx, const st_audit_row *row, st_err *err)
{
    (void)ctx, (void)err;
    ST_ASSERT(row->actor && row->detail);
    return 0;
}

static int any_document(void *ctx, const st_document_row *row, st_err *err)
{
    (void)ctx, (void)err;
    ST_ASSERT(row->kind && row->doc);
    return 0;
}

static void ignore(void *ctx, const char *sentence)
{
    (void)ctx;
    ST_ASSERT(sentence[0]);
}

static void read_all(st_store *store)
{
    static const char *const accounts[] = {"a", "b"};
    st_job_filter f = {.within = {2, 2}, .scan = 3, .name_has = "t"};
    st_arena *a = st_arena_new();
    st_snap_row snap;
    st_idem_row idem;
    st_err err;
    int64_t n;

    (void)st_store_jobs_list(store, &(st_job_filter){0}, any_job, NULL, &err);
    (void)st_store_jobs_list(store, &f, any_job, NULL, &err);
    (void)st_store_log_read(store, 0, any_log, NULL, &err);
    (void)st_store_snap_get(store, INT64_MAX, a, &snap, &err);
    (void)st_store_tokens(store, any_token, NULL, &err);
    (void)st_store_audit_list(store, &(st_audit_filter){0}, any_act, NULL, &err);
    (void)st_store_idem_get(store, "a", "k", a, &idem, &err);
    (void)st_store_documents(store, NULL, any_document, NULL, &err);
    (void)st_store_check(store, accounts, 2, ignore, NULL, &n, &err);
    st_arena_free(a);
}

static void put_sums(uint8_t *image, size_t size)
{
    for (size_t at = 0; at + PAGE <= size; at += PAGE) {
        uint64_t sum = st_hash_bytes(image + at, PAGE - SUM, at);

        for (int i = 0; i < SUM; i++)
            image[at + PAGE - SUM + (size_t)i] = (uint8_t)(sum >> (8 * i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[] = "/dev/shm/stint-fuzz-XXXXXX", path[64], beside[80];
    static const char *const ends[] = {"", "-wal", "-shm", ".lock"};
    uint8_t *image = st_xmalloc(size + 1);
    st_store *store = NULL;
    st_err err;
    int fd;

    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof(path), "%s/db", folder);
    memcpy(image, data, size);
    put_sums(image, size);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, image, size) != (ssize_t)size)
        abort();
    close(fd);
    free(image);
    if (st_store_open(path, &(st_store_options){.read_only = true}, &store, &err) == 0)
        read_all(store);
    st_store_close(store);
    for (size_t i = 0; i < ST_ARRAY_LEN(ends); i++) {
        snprintf(beside, sizeof(beside), "%s%s", path, ends[i]);
        unlink(beside);
    }
    rmdir(folder);
    return 0;
}
