/*
 * Requests per second of a trivial handler, by wrk when it is there.
 * `bench_http serve` only serves, and says its port.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/http.h"

static const char body[] =
    "{\"id\":\"j-000000000000\",\"account\":\"physics/lattice\",\"state\":\"running\",\"text\":\""
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
    "\"}";

static void get_job(st_call *call, void *ctx)
{
    (void)ctx;
    st_call_reply_static(call, 200, "application/json", body, sizeof(body) - 1);
}

static const st_route routes[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}",
     .flags = ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE,
     .handler = get_job,
     .id = "getJob",
     .response = "Job"},
    {0},
};

int main(int argc, char **argv)
{
    st_http_options options = {.routes = routes};
    st_http_server *server;
    st_err err;
    char command[256];
    int port;

    if (st_http_server_new(&options, &server, &err) < 0 ||
        st_http_listen(server, "127.0.0.1:0", NULL, NULL, &port, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "serve") == 0) {
        printf("%d\n", port);
        fflush(stdout);
        pause();
    }
    if (system("command -v wrk >/dev/null 2>&1") != 0) {
        puts("http: wrk is not installed; not measured");
    } else {
        printf("http: %zu bytes per answer, wrk -t1 -c64\n", sizeof(body) - 1);
        fflush(stdout);
        snprintf(command, sizeof(command),
                 "wrk -t1 -c64 -d5 --latency http://127.0.0.1:%d/v1/jobs/j-000000000000", port);
        if (system(command) != 0)
            return 1;
    }
    st_http_server_free(server);
    return 0;
}
