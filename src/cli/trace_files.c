/*
 * A trace on its way into files (cli/trace_files.h), for `sim gen` and `sim replay`.
 */
#include "cli/trace_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/strbuf.h"
#include "gen/gen.h"

static int write_file(const char *dir, const char *name, const st_trace *trace,
                      void (*write)(const st_trace *, FILE *), FILE *said, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    FILE *f;
    int failed;

    st_strbuf_addf(&path, "%s/%s", dir, name);
    f = fopen(st_strbuf_str(&path), "w");
    if (!f)
        return st_fail(err, ST_EIO, "cannot write %s: %s", st_strbuf_str(&path), strerror(errno));
    write(trace, f);
    failed = ferror(f);
    if (fclose(f) != 0 || failed)
        return st_fail(err, ST_EIO, "cannot write %s: %s", st_strbuf_str(&path), strerror(errno));
    fprintf(said, "Wrote %s\n", st_strbuf_str(&path));
    return 0;
}

int st_trace_files_write(const char *dir, const st_trace *trace,
                         void (*world)(const st_trace *, FILE *), FILE *said, st_err *err)
{
    int r;

    if (mkdir(dir, 0777) < 0 && errno != EEXIST)
        return st_fail(err, ST_EIO, "cannot make the folder %s: %s", dir, strerror(errno));
    r = write_file(dir, "world.yaml", trace, world, said, err);
    return r < 0 ? r : write_file(dir, "jobs.csv", trace, st_gen_write_jobs, said, err);
}
