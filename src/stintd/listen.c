/*
 * Where stintd listens besides the API's own address (stintd/listen.h).
 */
#include "stintd/listen.h"

#include <stdio.h>
#include <string.h>

#include "base/net.h"

int st_listen_secure(const st_config *c, const char *where, st_listen_log *log, st_err *err)
{
    char line[300];

    if (!where || c->cert || st_net_loopback(where))
        return 0;
    if (!c->insecure)
        return st_fail(
            err, ST_EINVAL,
            "%s is not loopback, and without TLS tokens, jobs and secrets would go in the "
            "clear: set tls_cert and tls_key, or insecure: true if the network is yours "
            "alone",
            where);
    snprintf(
        line, sizeof line,
        "event=INSECURE address=%.100s reason=\"insecure: true; tokens, jobs and secrets go in "
        "the clear\"",
        where);
    log(NULL, line);
    return 0;
}

static int listen_at(const st_config *c, st_api *api, const char *where, int *ret_port, st_err *err)
{
    return st_http_listen(st_api_agent_server(api), where, c->cert, c->key, ret_port, err);
}

/* The port after the API's; another that is free will do, since agents are told. */
static int listen_next(const st_config *c, st_api *api, int port, int *ret_port, st_err *err)
{
    const char *listen = c->listen, *colon = strrchr(listen, ':');
    bool any = strcmp(colon, ":0") == 0 || port >= 65535;
    char where[128];
    int r = -1;

    for (int free_one = any; free_one <= 1 && r < 0; free_one++) {
        snprintf(where, sizeof where, "%.*s:%d", (int)(colon - listen), listen,
                 free_one ? 0 : port + 1);
        r = listen_at(c, api, where, ret_port, err);
    }
    return r;
}

int st_listen_agents(const st_config *c, st_api *api, int port, st_listen_log *log, st_err *err)
{
    char line[80];
    int at = 0, r = 0;

    if (!c->agent_listen)
        return 0;
    if (strcmp(c->agent_listen, "auto") == 0) {
        r = listen_next(c, api, port, &at, err);
    } else {
        r = st_listen_secure(c, c->agent_listen, log, err);
        if (r == 0)
            r = listen_at(c, api, c->agent_listen, &at, err);
    }
    if (r < 0)
        return r;
    st_api_agent_port(api, at);
    snprintf(line, sizeof line, "event=agents_served port=%d", at);
    log(NULL, line);
    return 0;
}
