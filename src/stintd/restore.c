/*
 * Putting a backup in the store's place (stintd/restore.h). The copy is made, checked and marked under another name; only
 * then it gets the store's, in one step.
 */
#include "stintd/restore.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "control/restore.h"
#include "stintd/check.h"

int st_restore_store(const char *store, const char *backup, const char *key, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf part = {0}, aside = {0}, said = {0}, beside = {0};
    struct timespec t;
    struct tm tm;
    char when[32];
    int r = 0;

    clock_gettime(CLOCK_REALTIME, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;

    if (st_store_is_file(store, backup)) {
        r = st_control_mark_restored(store, backup, now, &said, err);
    } else {
        gmtime_r(&t.tv_sec, &tm);
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &tm);
        st_store_beside_of(store, "billing.key", &beside);
        r = st_store_stage(store, backup, &part, err);
        if (r == 0 && st_check_store(st_strbuf_str(&part), key ? key : st_strbuf_str(&beside)) != 0)
            r = st_fail(err, ST_ECORRUPT, "%s is damaged; the store is as it was", backup);
        if (r == 0)
            r = st_control_mark_restored(st_strbuf_str(&part), backup, now, &said, err);
        if (r == 0)
            r = st_store_replace(store, st_strbuf_str(&part), when, &aside, err);
        st_store_unstage(store, st_strbuf_str(&part));
    }
    if (r < 0)
        return r;
    fputs(st_strbuf_str(&said), stdout);
    if (aside.n > 0 && access(st_strbuf_str(&aside), F_OK) == 0)
        printf("The store that was there is %s.\n", st_strbuf_str(&aside));
    puts("Start stintd. It waits: agents report what they have and nothing is started or ended. "
         "Look\n"
         "at what would become of it with `stint admin restore`, then run `stint admin restore "
         "accept`.");
    return 0;
}
