/*
 * `stint admin reload`: stintd reads its configuration again, and says what came of it.
 */
#include "cli/client.h"
#include "cli/view.h"

static void say(st_cli *cli, const json_t *keys, const char *words)
{
    const json_t *key;
    size_t i;

    json_array_foreach(keys, i, key) fprintf(cli->out, "%s %s\n", json_string_value(key), words);
}

int st_cli_admin_reload(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    const json_t *changed, *restart;
    json_t *doc = NULL;
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_json(client, &(st_request){.method = "POST", .path = "/v1/admin/reload"},
                           &doc, NULL, err);
    if (r < 0)
        return r;
    changed = st_view_at(doc, "changed");
    restart = st_view_at(doc, "restart_needed");
    say(cli, changed, "is in force now");
    say(cli, restart, "counts from the next start of stintd on");
    if (json_array_size(changed) + json_array_size(restart) == 0)
        fprintf(cli->out, "nothing has changed\n");
    json_decref(doc);
    return 0;
}
