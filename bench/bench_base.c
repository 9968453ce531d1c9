/*
 * What the ground costs: reading documents, hash maps, arenas.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/doc.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/strbuf.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void bench_doc(const char *name, const char *row, const char *open, const char *close)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_doc *doc = NULL;
    st_err err = {0};
    double start;

    st_strbuf_add(&text, open);
    for (int i = 0; i < 100000; i++)
        st_strbuf_add(&text, row);
    st_strbuf_add(&text, close);
    start = now_s();
    ST_ASSERT(st_doc_parse(name, text.s, text.n, &doc, &err) == 0);
    printf("%-10s %8.1f MB/s\n", name, (double)text.n / 1e6 / (now_s() - start));
    st_doc_free(doc);
}

static void bench_map(void)
{
    ST_CLEANUP(st_idmap_freep) st_idmap *m = st_idmap_new();
    const uint64_t n = 2000000;
    double start = now_s();
    int64_t sum = 0, got = 0;

    for (uint64_t i = 0; i < n; i++)
        st_idmap_put(m, i * 1000003, (int64_t)i);
    printf("idmap put  %8.1f M/s\n", (double)n / 1e6 / (now_s() - start));
    start = now_s();
    for (uint64_t i = 0; i < n; i++)
        if (st_idmap_get(m, i * 1000003, &got))
            sum += got;
    printf("idmap get  %8.1f M/s\n", (double)n / 1e6 / (now_s() - start));
    ST_ASSERT(sum == (int64_t)(n * (n - 1) / 2));
}

static void bench_hash(void)
{
    char block[4096];
    uint64_t h = 0;
    double start;

    memset(block, 7, sizeof(block));
    start = now_s();
    for (int i = 0; i < 100000; i++)
        h = st_hash_bytes(block, sizeof(block), h);
    printf("hash       %8.1f MB/s (%016llx)\n", 409.6 / (now_s() - start), (unsigned long long)h);
}

static void bench_arena(void)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    double start = now_s();

    for (int pass = 0; pass < 100; pass++) {
        for (int i = 0; i < 100000; i++)
            st_arena_alloc(a, 64);
        st_arena_reset(a);
    }
    printf("arena      %8.1f M/s\n", 10.0 / (now_s() - start));
}

int main(void)
{
    bench_doc("in.yaml", "- {name: job, gpus: 8, ram: 64Gi, limit: 1h30m}\n", "", "");
    bench_doc("in.json", "{\"name\": \"job\", \"gpus\": 8, \"ram\": \"64Gi\"},\n", "[", "0]");
    bench_map();
    bench_hash();
    bench_arena();
    return 0;
}
