/*
 * `stint notebook`: a service of one replica that ends when nobody uses it, and the way to it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "cli/admin_doc.h"
#include "cli/service_flags.h"
#include "cli/spinner.h"
#include "cli/tunnel.h"

#define NAME        "notebook"
#define PORT        "8888"
#define IDLE        "1h"
#define TOKEN       "JUPYTER_TOKEN" /* Jupyter reads it */
#define LOOK_MS     500
#define TOKEN_BYTES 24

/* ---- the service -------------------------------------------------------------------------------- */

static json_t *jupyter(const char *port)
{
    char option[32];

    snprintf(option, sizeof option, "--port=%s", port);
    return json_pack("[s,s,s,s,s]", "jupyter", "lab", "--ip=127.0.0.1", option, "--no-browser");
}

/* Who knows the address may run programs there: it has a secret of its own. */
static int add_token(json_t *job, st_err *err)
{
    unsigned char bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 1];
    json_t *env = json_object_get(job, "env");

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return st_fail(err, ST_EIO, "the system has no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (!json_is_object(env)) {
        env = json_object();
        json_object_set_new(job, "env", env);
    }
    if (!json_object_get(env, TOKEN))
        json_object_set_new(env, TOKEN, json_string(text));
    return 0;
}

static int create(st_client *client, const st_service_flags *flags, const char *name, int n,
                  char **command, st_err *err)
{
    st_service_flags f = *flags;
    ST_CLEANUP(st_freep) char *body = NULL;
    char key[ST_KEY_MAX];
    json_t *doc = NULL, *job, *answer = NULL;
    int r;

    f.port = f.port ? f.port : PORT;
    f.idle = f.idle ? f.idle : IDLE;
    f.drain = "0s";
    r = st_service_doc(&f, n, command, &doc, err);
    if (r < 0)
        return r;
    job = json_object_get(doc, "job");
    json_object_set_new(doc, "name", json_string(name));
    if (!json_object_get(job, "command") && !json_object_get(job, "script"))
        json_object_set_new(job, "command", jupyter(f.port));
    r = add_token(job, err);
    body = json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(doc);
    st_client_key(key);
    if (r == 0)
        r = st_client_json(
            client,
            &(st_request){.method = "POST", .path = "/v1/services", .body = body, .key = key},
            &answer, NULL, err);
    json_decref(answer);
    return r;
}

/* It is there: woken if it sleeps. */
static int wake(st_client *client, const char *path, const json_t *s, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf where = {0};
    const char *state = st_view_text(s, "state");
    char key[ST_KEY_MAX];
    json_t *answer = NULL;
    int r;

    if (strcmp(state, "removing") == 0)
        return st_fail(err, ST_ESTATE, "service %s is being removed; try again in a moment",
                       st_view_text(s, "name"));
    if (strcmp(state, "idle") != 0 && strcmp(state, "ending") != 0)
        return 0;
    st_strbuf_addf(&where, "%s/restart", path);
    st_client_key(key);
    r = st_client_json(client,
                       &(st_request){.method = "POST", .path = st_strbuf_str(&where), .key = key},
                       &answer, NULL, err);
    json_decref(answer);
    return r;
}

/* ---- until it is ready ---------------------------------------------------------------------------- */

static const json_t *ready_of(const json_t *s)
{
    const json_t *list = st_view_at(s, "replicas"), *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (strcmp(st_view_text(row, "state"), "ready") == 0)
            return row;
    }
    return NULL;
}

static void say(const json_t *s, char *out, size_t size)
{
    const json_t *row = json_array_get(st_view_at(s, "replicas"), 0);

    if (row)
        snprintf(out, size, "job %s is %s", st_view_text(row, "job"), st_view_text(row, "state"));
    else
        snprintf(out, size, "%s", st_view_text(s, "state"));
}

/* *ret is the service as it is then; the caller's. */
static int await(st_cli *cli, st_client *client, const char *path, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_spinner_done) st_spinner spinner;
    char what[100];

    st_spinner_begin(&spinner, cli->errors, "the notebook starts");
    st_signals_block();
    for (;;) {
        json_t *s = NULL;
        int r = st_client_get(client, path, &s, err);

        if (r < 0)
            return r;
        if (ready_of(s)) {
            *ret = s;
            return 0;
        }
        if (strcmp(st_view_text(s, "state"), "failing") == 0) {
            r = st_fail(err, ST_ESTATE,
                        "the notebook does not come up: %.400s; stint service "
                        "remove %s ends it",
                        st_view_text(s, "trouble"), st_view_text(s, "name"));
            json_decref(s);
            return r;
        }
        say(s, what, sizeof what);
        st_spinner_turn(&spinner, what);
        json_decref(s);
        if (st_signals_wait(LOOK_MS))
            return st_fail(err, ST_ESTATE, "it was left while it starts; the same command goes on");
    }
}

/* ---- the way to it ---------------------------------------------------------------------------------- */

static void tell(const st_forward_to *to, int local, int task, const char *job)
{
    const json_t *s = to->ctx;
    const char *token = json_string_value(json_object_get(st_view_at(s, "job.env"), TOKEN));

    (void)task;
    fprintf(to->cli->out, "http://127.0.0.1:%d/%s%s\n", local, token ? "?token=" : "",
            token ? token : "");
    fprintf(to->cli->errors, "job %s; Ctrl-C leaves it, `stint service remove %s` ends it\n", job,
            st_view_text(s, "name"));
}

static int lead(st_cli *cli, st_client *client, const st_service_flags *f, const json_t *s,
                st_err *err)
{
    st_forward_to to = {.cli = cli,
                        .client = client,
                        .job = st_view_text(ready_of(s), "job"),
                        .port = json_integer_value(st_view_at(s, "port")),
                        .tell = tell,
                        .ctx = s};

    if (st_parse_i64(f->local ? f->local : PORT, 0, 65535, &to.local, err) < 0)
        return st_fail_prefix(err, "option --local: ");
    return st_forward(&to, err);
}

int st_cli_notebook(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_service_flags f = {0};
    const char *name;
    json_t *s = NULL;
    int n, r = st_cli_read(argc, argv, st_cli_notebook_options, &f, 0, INT32_MAX, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    name = f.job.name ? f.job.name : NAME;
    st_admin_path(&path, "services", name);
    r = st_client_get(client, st_strbuf_str(&path), &s, err);
    if (r == -ST_ENOENT)
        r = create(client, &f, name, n, argv + 1, err);
    else if (r == 0)
        r = wake(client, st_strbuf_str(&path), s, err);
    json_decref(s);
    s = NULL;
    if (r == 0)
        r = await(cli, client, st_strbuf_str(&path), &s, err);
    if (r == 0)
        r = lead(cli, client, &f, s, err);
    json_decref(s);
    return r;
}
