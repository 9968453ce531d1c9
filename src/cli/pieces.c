/*
 * Jobs of arrays by their index (cli/pieces.h). Names of such jobs end in their index, which makes the list short; the index itself
 * decides.
 */
#include "cli/pieces.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "cli/pages.h"
#include "cli/view.h"

#define JOBS       "/v1/jobs/"
#define PIECES_MAX 100000
#define DIGITS_MAX 9

/* Whether it is ARRAY_INDEX; where the index begins. */
static bool read_name(const char *name, size_t n, size_t *ret_index)
{
    size_t at = n;

    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    if (at == n || n - at > DIGITS_MAX || at < 3 || name[at - 1] != '_' || name[0] != 'j')
        return false;
    *ret_index = at;
    return true;
}

static const char *find(const json_t *jobs, int64_t index)
{
    const json_t *job;
    size_t i;

    json_array_foreach(jobs, i, job)
    {
        const json_t *at = st_view_at(job, "spec.array.index");

        if (json_is_integer(at) && json_integer_value(at) == index)
            return st_view_text(job, "id");
    }
    return NULL;
}

int st_piece_path(st_client *client, const char *path, st_strbuf *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    const char *name = path + strlen(JOBS), *id;
    size_t n, at;
    int64_t index;
    json_t *doc;
    int r;

    if (strncmp(path, JOBS, strlen(JOBS)) != 0)
        return 0;
    n = strcspn(name, "/?");
    if (!read_name(name, n, &at))
        return 0;
    index = strtoll(name + at, NULL, 10);
    st_strbuf_addf(&list, "/v1/jobs?limit=1000&fields=id,spec&array=%.*s&name=.%lld", (int)(at - 1),
                   name, (long long)index);
    r = st_pages_get(NULL, client, st_strbuf_str(&list), "jobs", PIECES_MAX, &doc, err);
    if (r < 0)
        return r;
    id = find(st_view_at(doc, "jobs"), index);
    if (id)
        st_strbuf_addf(ret, JOBS "%s%s", id, name + n);
    json_decref(doc);
    return id ? 1
              : st_fail(err, ST_ENOENT, "there is no job with index %lld in array %.*s",
                        (long long)index, (int)(at - 1), name);
}
