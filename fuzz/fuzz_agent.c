/*
 * Fuzzes what an agent reads: its node's list from stintd, and its own journal. Orders that hold what
 * they promise, and a journal that is the same once written and read again.
 */
#include <jansson.h>
#include <string.h>

#include "agent/journal.h"
#include "agent/plan.h"
#include "base/macros.h"
#include "fuzz.h"

static void fuzz_list(const char *text, size_t size)
{
    static const st_board boards[ST_DEVS_MAX] = {ST_BOARD_H100_80, ST_BOARD_A100_40};
    json_t *root = json_loadb(text, size, 0, NULL);
    st_acts acts = {0};
    st_agent_list list;
    st_err err = {0};

    if (!root)
        return;
    if (st_list_read(root, boards, 0, &list, &err) < 0) {
        ST_ASSERT(err.code != 0 && err.msg[0]);
        json_decref(root);
        return;
    }
    for (size_t i = 0; i < list.orders.n; i++) {
        ST_ASSERT(list.orders.v[i].key.job[0] && !strchr(list.orders.v[i].key.job, '/'));
        ST_ASSERT(list.orders.v[i].signal > 0);
    }
    st_plan(&(st_agent_view){.list = &list}, 1, &acts);
    ST_ASSERT(acts.n <= list.orders.n + ST_DEVS_MAX);
    st_vec_free(&acts);
    st_agent_list_done(&list);
    json_decref(root);
}

static void fuzz_journal(const char *text, size_t size)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf once = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf twice = {0};
    st_journal a = {0}, b = {0};
    st_err err = {0};

    if (st_journal_read(text, size, &a, &err) < 0) {
        ST_ASSERT(err.code == ST_ECORRUPT && !a.tasks.v);
        return;
    }
    st_journal_write(&a, &once);
    ST_ASSERT(st_journal_read(once.s, once.n, &b, &err) == 0);
    st_journal_write(&b, &twice);
    ST_ASSERT(strcmp(once.s, twice.s) == 0);
    st_journal_done(&a);
    st_journal_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_list((const char *)data, size);
    fuzz_journal((const char *)data, size);
    return 0;
}
