/*
 * Tunnels from here (cli/tunnel.h).
 */
#include "cli/tunnel.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define ANSWER_MS 40000 /* stintd waits for the node for half as long */

int st_tunnel_open(st_client *client, const char *job, json_t *body, st_tunnel *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_freep) char *text = json_dumps(body, JSON_COMPACT);
    json_t *answer = NULL;
    int r;

    if (!text)
        return st_fail(err, ST_EINVAL, "the command is not UTF-8");
    st_job_path(&path, job, "/tunnels");
    r = st_client_json(client,
                       &(st_request){.method = "POST", .path = st_strbuf_str(&path), .body = text},
                       &answer, NULL, err);
    if (r < 0)
        return st_job_near(client, job, r, err);
    snprintf(ret->id, sizeof ret->id, "%s", st_view_text(answer, "id"));
    snprintf(ret->job, sizeof ret->job, "%s", st_view_text(answer, "job"));
    ret->task = (int)json_integer_value(json_object_get(answer, "task"));
    ret->stay = (int)json_integer_value(json_object_get(answer, "stay"));
    json_decref(answer);
    return 0;
}

int st_tunnel_connect(st_client *client, const st_tunnel *t, st_dial **ret, st_err *err)
{
    const st_cli_profile *p = st_client_profile(client);
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_response response = {0};
    int r;

    st_strbuf_add(&path, "/v1/tunnels/");
    st_url_add(&path, t->id);
    st_strbuf_add(&path, "/connect");
    const st_dial_to to = {.url = p->url,
                           .ca = p->ca,
                           .target = st_strbuf_str(&path),
                           .bearer = p->token,
                           .protocol = "stint-tunnel",
                           .program = "stint/" ST_VERSION,
                           .timeout_ms = ANSWER_MS};
    r = st_dial_open(&to, ret, &response.status, &response.body, err);
    if (r < 0 && response.status > 0)
        r = st_client_problem(&response, p->url, err);
    st_response_done(&response);
    return r;
}

void st_tunnel_close(st_client *client, const st_tunnel *t)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_response response = {0};
    st_err quiet;

    st_strbuf_add(&path, "/v1/tunnels/");
    st_url_add(&path, t->id);
    (void)st_client_call(client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                         &response, &quiet);
    st_response_done(&response);
}

bool st_tunnel_lives(st_client *client, const st_tunnel *t)
{
    json_t *answer = NULL;
    const json_t *row;
    st_err quiet;
    bool lives;
    size_t i;

    if (st_client_get(client, "/v1/tunnels", &answer, &quiet) < 0)
        return true;
    lives = false;
    json_array_foreach(json_object_get(answer, "tunnels"), i, row) lives =
        lives || strcmp(st_view_text(row, "id"), t->id) == 0;
    json_decref(answer);
    return lives;
}
