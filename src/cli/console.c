/*
 * `stint console`: a link that opens the console in a browser on this machine, logged in as whoever asks. The link is for
 * one use within five minutes; what it carries stands behind the #, which browsers send nobody.
 */
#include <string.h>

#include "cli/view.h"

typedef struct console_flags {
    const char *url;
} console_flags;

const st_cli_row st_cli_console_options[] = {
    {"url", 'u', ST_CLI_STRING, offsetof(console_flags, url), "URL",
     "address of the console (default: the one stint talks to)", 0, 0},
    {0},
};

int st_cli_console(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    console_flags f = {0};
    json_t *doc = NULL;
    size_t len;
    int n, r = st_cli_read(argc, argv, st_cli_console_options, &f, 0, 0, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    if (!f.url)
        f.url = st_client_profile(client)->url;
    if (strncmp(f.url, "http", 4) != 0)
        return st_fail(err, ST_EINVAL, "browsers cannot open %s; give --url http://127.0.0.1:PORT",
                       f.url);
    r = st_client_json(client, &(st_request){.method = "POST", .path = "/v1/session/code"}, &doc,
                       NULL, err);
    if (r < 0)
        return r;
    len = strlen(f.url);
    while (len > 0 && f.url[len - 1] == '/')
        len--;
    fprintf(cli->out, "%.*s/#code=%s\n", (int)len, f.url, st_view_text(doc, "code"));
    json_decref(doc);
    return 0;
}
