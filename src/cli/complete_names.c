/*
 * `stint completion --list KIND`: names that a shell may offer. It is asked at every press of a key: it waits for two seconds at most,
 * and says nothing where something is wrong.
 *
 * Names are other people's words, and a shell may take what it is offered for more than a word: bash looks for $(...) in it. So only names of
 * letters, digits and . _ @ : + / = - are listed, and none that begins with a dash.
 */
#include "cli/complete.h"

#include <jansson.h>
#include <string.h>

#include "base/macros.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "cli/client.h"
#include "cli/view.h"

#define HURRY_S 2

static const struct {
    const char *kind, *path, *key;
} kinds[] = {
    {"accounts", "/v1/accounts", "name"},
    {"bookings", "/v1/bookings", "id"},
    {"classes", "/v1/classes", "name"},
    {"images", "/v1/images", "name"},
    {"jobs",
     "/v1/jobs?fields=id&limit=1000&state=pending&state=running&state=notified&state="
     "checkpointing&state=paused&state=stopping",
     "id"},
    {"nodes", "/v1/nodes", "name"},
    {"pools", "/v1/pools", "name"},
    {"types", "/v1/types", "name"},
};

static bool is_tame(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._@:+/=-";
    return name && *name && *name != '-' && name[strspn(name, plain)] == '\0';
}

int st_cli_complete_names(st_cli *cli, const char *kind, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    const char *words[ST_ARRAY_LEN(kinds) + 1] = {NULL};
    json_t *doc = NULL, *row;
    st_err quiet = {0};
    char q[ST_QUOTE_MAX];
    size_t at = 0, i;

    for (size_t k = 0; k < ST_ARRAY_LEN(kinds); k++)
        words[k] = kinds[k].kind;
    while (at < ST_ARRAY_LEN(kinds) && strcmp(kinds[at].kind, kind) != 0)
        at++;
    if (at == ST_ARRAY_LEN(kinds)) {
        const char *nearest = st_suggest(kind, words);

        return st_fail(err, ST_EINVAL, "there are no names of %s%s%s%s", st_quote(q, kind),
                       nearest ? " (did you mean " : "", nearest ? nearest : "",
                       nearest ? "?)" : "");
    }
    if (st_client_open(cli->errors, &client, &quiet) < 0)
        return 0;
    st_client_hurry(client, HURRY_S);
    if (st_client_get(client, kinds[at].path, &doc, &quiet) < 0)
        return 0;
    json_array_foreach(json_object_get(doc, kind), i, row)
    {
        const char *name = st_view_text(row, kinds[at].key);

        if (is_tame(name))
            fprintf(cli->out, "%s\n", name);
    }
    json_decref(doc);
    return 0;
}
