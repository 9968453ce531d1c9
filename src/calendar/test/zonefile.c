/* Zones of the distribution, for unit tests (zonefile.h). */
#include <ftw.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/testing.h"
#include "base/vec.h"
#include "calendar/calendar.h"
#include "calendar/test/zonefile.h"

st_tz *zonefile(const char *name)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    char path[256];
    st_err err = {0};
    st_tz *tz = NULL;

    snprintf(path, sizeof path, ZONE_DIR "/%s", name);
    assert_ok(st_file_read(path, ST_TZ_BYTES_MAX, &bytes, &err));
    assert_ok(st_tz_parse(name, bytes.s, bytes.n, &tz, &err));
    return tz;
}

static ST_VEC(char *) found;

static int look(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    const char *name = path + strlen(ZONE_DIR "/");
    char magic[4] = "";

    (void)st;
    (void)at;
    if ((flag != FTW_F && flag != FTW_SL) || strncmp(name, "right/", 6) == 0 ||
        strncmp(name, "posix/", 6) == 0 || strcmp(name, "localtime") == 0 ||
        strcmp(name, "posixrules") == 0)
        return 0;
    FILE *f = fopen(path, "rb");

    if (f && fread(magic, 1, 4, f) == 4 && memcmp(magic, "TZif", 4) == 0)
        st_vec_push(&found, st_xstrdup(name));
    if (f)
        fclose(f);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **zonefile_names(size_t *ret_n)
{
    memset(&found, 0, sizeof found);
    assert_int_equal(nftw(ZONE_DIR, look, 16, FTW_PHYS), 0);
    qsort(found.v, found.n, sizeof *found.v, by_name);
    *ret_n = found.n;
    st_vec_push(&found, NULL);
    return found.v;
}

int64_t wall(int year, int month, int day, int hour, int minute)
{
    st_date d = {year, month, day};

    return st_date_to_day(&d) * ST_DAY_S + hour * 3600 + minute * 60;
}
