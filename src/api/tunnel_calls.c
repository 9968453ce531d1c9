/*
 * Routes of tunnels (api/tunnels.h): who opens one to what.
 */
#include <stdlib.h>
#include <string.h>

#include "api/tunnels.h"
#include "base/mem.h"
#include "base/quote.h"

#define COMMAND_ARGS  256
#define COMMAND_BYTES 65536
#define AUDIT_BYTES   1024 /* of a command that are kept in the audit log */
#define SIZE_MAX_     1000 /* rows and columns of a terminal */
#define TERM_MAX      32
#define FROM_MOST     (INT64_C(1) << 50)

typedef struct opening {
    st_cmd_tunnel enter; /* first */
    st_api *api;
    st_call *call;
    st_tunnel_spec spec;
    st_strbuf order, detail;
} opening;

static void opening_free(opening *o)
{
    st_strbuf_done(&o->order);
    st_strbuf_done(&o->detail);
    free(o);
}

/* In the loop: it stands in the audit log. */
static void opened(st_cmd *cmd, const st_err *err)
{
    opening *o = (opening *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char id[ST_TUNNEL_ID], name[ST_ID_TEXT];
    st_err why = {0};

    if (!err) {
        memcpy(o->spec.account, o->enter.account, sizeof o->spec.account);
        if (st_tunnel_begin(o->api->tunnels, &o->spec, id, &why) < 0)
            err = &why;
    }
    if (err) {
        st_call_fail(o->call, err);
    } else {
        st_control_id_text(o->api->control, o->spec.place.job, name);
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "id", id);
        st_out_text(&out, "kind", st_tunnel_words[o->spec.kind]);
        st_out_text(&out, "job", name);
        st_out_int(&out, "task", o->spec.place.task);
        st_out_int(&out, "stay", o->spec.place.stay);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(o->call, 201, NULL, &out);
    }
    opening_free(o);
}

/* ---- what is asked for ---------------------------------------------------------------------------- */

static int read_kind(const json_t *body, st_tunnel_kind *ret, st_err *err)
{
    const char *word = json_string_value(json_object_get(body, "kind"));
    char q[ST_QUOTE_MAX];

    for (int k = 0; word && k < ST_TUNNEL_KIND_COUNT; k++)
        if (strcmp(st_tunnel_words[k], word) == 0) {
            *ret = (st_tunnel_kind)k;
            return 0;
        }
    return st_fail(err, ST_EINVAL, "kind is exec, forward or attach, not %s",
                   word ? st_quote(q, word) : "missing");
}

static int read_int(const json_t *body, const char *key, int64_t low, int64_t high,
                    int64_t otherwise, int64_t *ret, st_err *err)
{
    const json_t *v = json_object_get(body, key);
    int64_t n = json_integer_value(v);

    if (v && (!json_is_integer(v) || n < low || n > high))
        return st_fail(err, ST_ERANGE, "%s is a whole number from %lld to %lld", key,
                       (long long)low, (long long)high);
    *ret = v ? n : otherwise;
    return 0;
}

/* Only what a kind takes: what nobody looks at would be taken for something that was done. */
static int check_keys(const json_t *body, st_tunnel_kind kind, st_err *err)
{
    static const char *const takes[ST_TUNNEL_KIND_COUNT] = {
        [ST_TUNNEL_EXEC] = " kind task command tty rows cols term ",
        [ST_TUNNEL_FORWARD] = " kind task port ",
        [ST_TUNNEL_ATTACH] = " kind task read_only from "};
    char word[40], q[ST_QUOTE_MAX];
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)body, key, value)
    {
        snprintf(word, sizeof word, " %.36s ", key);
        if (!strstr(takes[kind], word))
            return st_fail(err, ST_EINVAL, "%s is no key of kind %s; it takes%s", st_quote(q, key),
                           st_tunnel_words[kind], takes[kind]);
    }
    return 0;
}

static int read_command(const json_t *body, st_strbuf *order, st_strbuf *detail, st_err *err)
{
    const json_t *command = json_object_get(body, "command"), *word;
    ST_CLEANUP(st_freep) char *text = NULL;
    size_t i, bytes = 0;

    if (!json_is_array(command) || json_array_size(command) == 0)
        return st_fail(err, ST_EINVAL, "command is a list: the program and its arguments");
    if (json_array_size(command) > COMMAND_ARGS)
        return st_fail(err, ST_ELIMIT, "command has at most %d arguments", COMMAND_ARGS);
    json_array_foreach(command, i, word)
    {
        if (!json_is_string(word) || strlen(json_string_value(word)) != json_string_length(word))
            return st_fail(err, ST_EINVAL, "command is a list of texts without NUL");
        bytes += json_string_length(word) + 1;
    }
    if (bytes > COMMAND_BYTES)
        return st_fail(err, ST_ELIMIT, "command has at most %d bytes", COMMAND_BYTES);
    if (json_string_length(json_array_get(command, 0)) == 0)
        return st_fail(err, ST_EINVAL, "command: the name of the program is empty");
    text = json_dumps(command, JSON_COMPACT);
    st_strbuf_addf(order, ",\"command\":%s", text);
    if (strlen(text) <= AUDIT_BYTES) {
        st_strbuf_addf(detail, ",\"command\":%s", text);
        return 0;
    }
    /* Its beginning, as text. */
    st_strbuf_add(detail, ",\"command_begins\":");
    text[AUDIT_BYTES] = '\0';
    for (size_t n = AUDIT_BYTES; n > 0 && ((unsigned char)text[n - 1] & 0x80); n--)
        text[n - 1] = '\0'; /* not in the middle of a character */
    st_quote_json(detail, text);
    return 0;
}

static int read_terminal(const json_t *body, bool asked, st_strbuf *order, st_err *err)
{
    const json_t *term = json_object_get(body, "term");
    const char *name = json_string_value(term);
    int64_t rows, cols;

    if (read_int(body, "rows", 1, SIZE_MAX_, 24, &rows, err) < 0 ||
        read_int(body, "cols", 1, SIZE_MAX_, 80, &cols, err) < 0)
        return -err->code;
    if (term &&
        (!name || !*name || strlen(name) > TERM_MAX ||
         strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._") !=
             strlen(name)))
        return st_fail(err, ST_EINVAL, "term is the name of a terminal, as in $TERM");
    if (asked)
        st_strbuf_addf(order, ",\"tty\":true,\"rows\":%d,\"cols\":%d,\"term\":\"%s\"", (int)rows,
                       (int)cols, name ? name : "xterm");
    return 0;
}

/* What a job writes may be seen by whoever may read its log; what is typed into it goes where a command would. */
static int read_attach(opening *o, const json_t *body, st_err *err)
{
    const json_t *read_only = json_object_get(body, "read_only");
    int64_t from;
    int r = read_int(body, "from", -FROM_MOST, FROM_MOST, 0, &from, err);

    if (r < 0)
        return r;
    if (read_only && !json_is_boolean(read_only))
        return st_fail(err, ST_EINVAL, "read_only is true or false");
    o->enter.watches = json_is_true(read_only);
    if (!o->enter.watches && o->api->options.no_shells)
        return st_fail(err, ST_EPERM,
                       "this site does not let anybody enter jobs (shells: false); with read_only "
                       "they can be watched");
    st_strbuf_addf(&o->order, ",\"write\":%s,\"from\":%lld", o->enter.watches ? "false" : "true",
                   (long long)from);
    st_strbuf_addf(&o->detail, ",\"read_only\":%s", o->enter.watches ? "true" : "false");
    return 0;
}

static int check_role(const opening *o, st_err *err)
{
    const st_role role = o->spec.caller.who.role;

    if (o->enter.watches || (ST_MAY(role) & ST_MAY_SUBMIT))
        return 0;
    return st_fail(err, ST_EPERM,
                   "your role (%s) may watch jobs (attach with read_only), not enter them",
                   st_role_words[role]);
}

static int read_spec(opening *o, const json_t *body, int64_t *ret_task, st_err *err)
{
    const json_t *tty = json_object_get(body, "tty");
    int64_t port;
    int r = read_kind(body, &o->spec.kind, err);

    if (r == 0)
        r = check_keys(body, o->spec.kind, err);
    if (r == 0)
        r = read_int(body, "task", 0, ST_TASKS_MAX - 1, 0, ret_task, err);
    if (r < 0)
        return r;
    if (tty && !json_is_boolean(tty))
        return st_fail(err, ST_EINVAL, "tty is true or false");
    st_strbuf_addf(&o->order, ",\"kind\":\"%s\"", st_tunnel_words[o->spec.kind]);
    st_strbuf_addf(&o->detail, "{\"task\":%d", (int)*ret_task);
    switch (o->spec.kind) {
    case ST_TUNNEL_EXEC:
        if (o->api->options.no_shells)
            return st_fail(err, ST_EPERM,
                           "this site does not let anybody enter jobs (shells: false)");
        r = read_command(body, &o->order, &o->detail, err);
        if (r == 0)
            r = read_terminal(body, json_is_true(tty), &o->order, err);
        break;
    case ST_TUNNEL_ATTACH:
        r = read_attach(o, body, err);
        break;
    default:
        if (o->api->options.no_forwards)
            return st_fail(err, ST_EPERM,
                           "this site does not let anybody reach ports of jobs (forwards: false)");
        r = read_int(body, "port", 1, 65535, 0, &port, err);
        if (r == 0 && port == 0)
            r = st_fail(err, ST_EINVAL, "port is missing: a number from 1 to 65535");
        if (r == 0) {
            st_strbuf_addf(&o->order, ",\"port\":%d", (int)port);
            st_strbuf_addf(&o->detail, ",\"port\":%d", (int)port);
        }
        break;
    }
    st_strbuf_addc(&o->detail, '}');
    return r == 0 ? check_role(o, err) : r;
}

void st_api_tunnel_make(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    opening *o;
    json_t *body = NULL;
    int64_t task = 0;
    st_job_row row;
    st_err err = {0};
    uint64_t id;
    int r;

    if (!st_api_find_job(api, call, arena, &id, &row))
        return;
    o = st_xcalloc(1, sizeof *o);
    o->api = api;
    o->call = call;
    o->spec.caller = *st_api_caller(call);
    r = st_call_json(call, &body, &err);
    if (r == 0 && !json_is_object(body))
        r = st_fail(&err, ST_EINVAL, "the body is an object with the kind of tunnel");
    if (r == 0)
        r = read_spec(o, body, &task, &err);
    json_decref(body);
    if (r == 0)
        r = st_tunnel_place_of(api, id, (int)task, row.state, &o->spec.place, &err);
    if (r < 0) {
        st_call_fail(call, &err);
        opening_free(o);
        return;
    }
    o->spec.order = st_strbuf_str(&o->order);
    o->enter = (st_cmd_tunnel){.who = *st_api_who(call),
                               .job = id,
                               .watches = o->enter.watches,
                               .verb = st_tunnel_verbs[o->spec.kind],
                               .detail = st_strbuf_str(&o->detail)};
    st_cmd_tunnel_init(&o->enter);
    o->enter.cmd.done = opened;
    st_call_defer(call);
    st_api_post(api, call, &o->enter.cmd);
}

/* ---- the others ------------------------------------------------------------------------------------- */

void st_api_tunnels_list(st_call *call, void *ctx)
{
    const st_api *api = ctx;
    st_strbuf out = {0};

    st_strbuf_add(&out, "{\"tunnels\":[");
    st_tunnels_list(api->tunnels, call, &out);
    st_strbuf_add(&out, "]}");
    st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_tunnel_connect(st_call *call, void *ctx)
{
    const st_api *api = ctx;

    st_tunnel_line(api->tunnels, call, st_call_param(call, "id"));
}

void st_api_tunnel_end(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_err err = {0};

    if (st_tunnel_end(api->tunnels, api, call, st_call_param(call, "id"), &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_empty(call, 204);
}
