/*
 * `stint account limit`: what an account may have of the service itself. `stint quota --service` shows it.
 */
#include <string.h>

#include "base/quote.h"
#include "cli/admin_doc.h"

typedef struct limit_flags {
    st_cli_format format;
} limit_flags;

const st_cli_row st_cli_account_limit_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(limit_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

/* "pending=1000" as a key and a value. */
static int put_pair(st_body *body, char *pair, st_err *err)
{
    char *value = strchr(pair, '='), q[ST_QUOTE_MAX];

    if (!value || value == pair || !value[1])
        return st_fail(err, ST_EINVAL, "%s: NAME=N is wanted, for example pending=1000",
                       st_quote(q, pair));
    *value++ = '\0';
    st_body_put(body, pair, value);
    return 0;
}

int st_cli_account_limit(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    ST_CLEANUP(st_body_done) st_body body = {0};
    limit_flags f = {0};
    int n, r = st_cli_read(argc, argv, st_cli_account_limit_options, &f, 2, 64, &n, err);

    for (int i = 2; r == 0 && i <= n; i++)
        r = put_pair(&body, argv[i], err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_admin_path(&path, "accounts", argv[1]);
    st_strbuf_add(&path, "/service-quota");
    st_strbuf_addf(&said, "account %s has the limits; stint quota --service %s shows them", argv[1],
                   argv[1]);
    const st_request request = {
        .method = "PATCH", .path = st_strbuf_str(&path), .body = st_body_end(&body)};
    r = st_admin_send(cli, client, &request, f.format, st_strbuf_str(&said), err);
    return r < 0 ? st_admin_near(client, "accounts", argv[1], r, err) : 0;
}
