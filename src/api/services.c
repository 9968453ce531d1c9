/*
 * Services: made, shown, changed, removed, and what they tell of themselves. The controller (services_run.c) does the rest.
 */
#include "api/services.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"

/* ---- which ------------------------------------------------------------------------------------- */

st_service *st_api_service_of(st_api *api, const st_identity *who, const char *text, st_err *err)
{
    const st_services *all = st_control_services(api->control);
    st_service *s = st_services_find(all, who->account, text), *found = NULL;
    char q[ST_QUOTE_MAX];
    int n = 0;

    if (s && st_directory_within(api->dir, s->account, who->account))
        return s;
    for (size_t i = 0; !strchr(text, '/') && i < all->all.n; i++)
        if (strcmp(all->all.v[i]->name, text) == 0 &&
            st_directory_within(api->dir, all->all.v[i]->account, who->account)) {
            found = all->all.v[i];
            n++;
        }
    if (n == 1)
        return found;
    if (n > 1)
        st_fail(err, ST_ENOENT, "%d accounts have a service %s: say ACCOUNT/%s", n, text, text);
    else
        st_fail(err, ST_ENOENT, "there is no service %s", st_quote(q, text));
    return NULL;
}

/* ---- showing ------------------------------------------------------------------------------------ */

/* In one word; the first that is so. */
static const char *state_word(const st_service *s, int ready, int old)
{
    if (s->spec.removed)
        return "removing";
    if (s->memory.ended)
        return s->replicas.n > 0 ? "ending" : "idle";
    if (ready == 0)
        return s->memory.fails > 0 ? "failing" : "starting";
    if (old > 0)
        return "updating";
    return ready >= s->memory.target ? "ready" : "degraded";
}

static void replica_json(const st_api *api, const st_service_replica *r, st_strbuf *out)
{
    char id[ST_ID_TEXT] = "";

    if (r->job > 0)
        st_control_id_text(api->control, r->job, id);
    st_strbuf_addf(out, "{\"replica\":%lld", (long long)r->serial);
    st_out_text(out, "job", id);
    st_out_text(out, "state", st_svc_state_words[r->state]);
    st_out_time(out, "since", r->since_ms > 0 ? r->since_ms : ST_STORE_NEVER);
    st_out_int(out, "revision", r->revision);
    st_out_text(out, "node", r->node >= 0 ? r->node_name : "");
    st_out_int(out, "requests", r->open);
    st_out_raw(out, "moving", r->moving && r->left_ms == 0 ? "true" : "false");
    st_out_text(out, "trouble", r->healthy ? "" : r->trouble);
    st_strbuf_addc(out, '}');
}

static void replicas_json(const st_api *api, const st_service *s, st_strbuf *out)
{
    int ready = 0, old = 0, open = 0;

    for (size_t i = 0; i < s->replicas.n; i++) {
        const st_service_replica *r = &s->replicas.v[i];

        ready += r->state == ST_SVC_READY;
        old += r->revision != s->spec.revision;
        open += r->open;
    }
    st_out_text(out, "state", state_word(s, ready, old));
    st_out_int(out, "ready", ready);
    st_out_int(out, "target", s->memory.target);
    st_out_int(out, "requests", open);
    st_strbuf_add(out, ",\"replicas\":[");
    for (size_t i = 0; i < s->replicas.n; i++) {
        st_strbuf_add(out, i ? "," : "");
        replica_json(api, &s->replicas.v[i], out);
    }
    st_strbuf_addc(out, ']');
}

/* The template, as much of it as the reader may see of such a job. */
static void template_json(st_api *api, const st_identity *who, const st_service *s, st_strbuf *out)
{
    const st_vault_who job = {st_directory_serial(api->dir, s->account), s->user};
    bool same = strcmp(who->account, s->account) == 0;
    st_vault_view view = ST_VIEW_NAMES;
    st_err err;

    if (same && strcmp(who->user, s->user) == 0)
        view = ST_VIEW_ALL;
    else if ((ST_MAY(who->role) & ST_MAY_ADMIN) || (same && who->role == ST_ROLE_MEMBER))
        view = ST_VIEW_WORK;
    st_out_raw(out, "job", "");
    if (st_vault_doc_open(st_control_vault(api->control), &job, s->job, view, out, &err) < 0)
        st_strbuf_add(out, "{}");
}

/* With the lock held. In a list without the template and the settings. */
static void service_json(st_api *api, const st_identity *who, const st_service *s, bool whole,
                         st_strbuf *out)
{
    char *wanted;

    st_strbuf_addc(out, '{');
    st_out_text(out, "name", s->name);
    st_out_text(out, "account", s->account);
    st_out_text(out, "user", s->user);
    st_out_int(out, "port", s->port);
    st_out_int(out, "revision", s->spec.revision);
    st_out_time(out, "created", s->made_ms);
    replicas_json(api, s, out);
    st_out_text(out, "trouble", s->why);
    st_out_time(out, "trouble_at", s->why_ms > 0 ? s->why_ms : ST_STORE_NEVER);
    if (s->memory.fails > 0)
        st_out_time(out, "next_start", s->memory.retry_ms);
    if (whole) {
        wanted = json_dumps(s->wanted, JSON_COMPACT | JSON_SORT_KEYS);
        st_out_raw(out, "wanted", wanted);
        free(wanted);
        template_json(api, who, s, out);
    }
    st_strbuf_addc(out, '}');
}

static void show(st_api *api, st_call *call, const st_identity *who, const char *text, int status)
{
    st_services *all = st_control_services(api->control);
    st_strbuf out = {0};
    st_err err = {0};
    int64_t version = 0;
    st_service *s;

    pthread_mutex_lock(&all->lock);
    s = st_api_service_of(api, who, text, &err);
    if (s) {
        version = s->version;
        service_json(api, who, s, true, &out);
    }
    pthread_mutex_unlock(&all->lock);
    if (s) {
        st_api_set_version(call, version);
        st_call_reply_buf(call, status, NULL, &out);
    } else {
        st_call_fail(call, &err);
    }
    st_strbuf_done(&out);
}

void st_api_service_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_services *all = st_control_services(api->control);
    const st_identity *who = st_api_who(call);
    st_strbuf out = {0};
    bool first = true;

    st_strbuf_add(&out, "{\"services\":[");
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->all.n; i++) {
        if (!st_directory_within(api->dir, all->all.v[i]->account, who->account))
            continue;
        st_strbuf_add(&out, first ? "" : ",");
        first = false;
        service_json(api, who, all->all.v[i], false, &out);
    }
    pthread_mutex_unlock(&all->lock);
    st_strbuf_add(&out, "]}");
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

void st_api_service_show(st_call *call, void *ctx)
{
    show(ctx, call, st_api_who(call), st_call_param(call, "name"), 200);
}

/* ---- changing ------------------------------------------------------------------------------------ */

typedef struct change {
    st_cmd_service service;
    st_api *api;
    st_call *call;
    int (*put)(st_tx *tx, st_cmd *cmd, st_err *err);
    json_t *wanted;
    char *job, *was;
} change;

static void change_free(change *c)
{
    json_decref(c->wanted);
    free(c->job);
    free(c->was);
    free(c->service.doc);
    free(c);
}

static void change_done(st_cmd *cmd, const st_err *err)
{
    change *c = (change *)cmd;

    if (err)
        st_call_fail(c->call, err);
    else
        show(c->api, c->call, &c->service.who, c->service.kept,
             c->service.verb == ST_SERVICE_CREATE ? 201 : 200);
    change_free(c);
}

static int change_run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    change *c = (change *)cmd;
    int r = c->service.verb == ST_SERVICE_CREATE
                ? 0
                : st_api_condition_of(tx, c->call, ST_SERVICE_KIND, c->service.kept,
                                      c->service.name, err);

    return r < 0 ? r : c->put(tx, cmd, err);
}

static change *change_new(st_call *call, st_api *api, st_service_verb verb)
{
    change *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->service.verb = verb;
    c->service.who = *st_api_who(call);
    st_cmd_service_init(&c->service);
    c->put = c->service.cmd.run;
    c->service.cmd.run = change_run;
    c->service.cmd.done = change_done;
    return c;
}

static void change_post(change *c, int r, const st_err *err)
{
    if (r < 0) {
        st_call_fail(c->call, err);
        change_free(c);
        return;
    }
    c->service.wanted = c->wanted;
    c->service.job = c->job;
    c->service.was = c->was;
    st_call_defer(c->call);
    st_api_post(c->api, c->call, &c->service.cmd);
}

static void call_it(change *c, const char *account, const char *name)
{
    snprintf(c->service.account, sizeof c->service.account, "%s", account);
    snprintf(c->service.name, sizeof c->service.name, "%s", name);
    snprintf(c->service.kept, sizeof c->service.kept, "%s/%s", account, name);
}

/* The one in the path, as it is now; what else of it is wanted is copied with the lock held. */
static int aim(change *c, char **ret_job, char user[ST_NAME_MAX + 1], st_err *err)
{
    st_services *all = st_control_services(c->api->control);
    st_service *s;

    pthread_mutex_lock(&all->lock);
    s = st_api_service_of(c->api, &c->service.who, st_call_param(c->call, "name"), err);
    if (s) {
        call_it(c, s->account, s->name);
        if (ret_job)
            *ret_job = st_xstrdup(s->job);
        if (user)
            snprintf(user, ST_NAME_MAX + 1, "%s", s->user);
    }
    pthread_mutex_unlock(&all->lock);
    return s ? 0 : -err->code;
}

/* A template was read from text of our own, whose lines nobody has written. */
static int without_line(int r, st_err *err)
{
    st_err why = *err;
    const char *rest = strncmp(why.msg, "job.json:1: ", 12) == 0 ? why.msg + 12 : why.msg;

    return r < 0 ? st_fail(err, why.code, "the service's job: %.500s", rest) : 0;
}

/* A template becomes what is kept, if it may be a job at all. Takes it. */
static int seal(change *c, const char *user, json_t *template, st_err *err)
{
    st_api *api = c->api;
    const st_identity *who = &c->service.who;
    const st_vault_who job = {st_directory_serial(api->dir, c->service.account), user},
                       by = {st_directory_serial(api->dir, who->account), who->user};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf sealed = {0};
    st_expansion x = {.arena = arena};
    char *text;
    int r;

    json_object_set_new(template, "account", json_string(c->service.account));
    json_object_set_new(template, "user", json_string(user));
    json_object_set_new(template, "name", json_string(c->service.name));
    /* Replicas on one node listen on one port, so each has a network to itself unless it says otherwise. */
    if (!json_object_get(template, "network"))
        json_object_set_new(template, "network", json_string("none"));
    text = json_dumps(template, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(template);
    r = without_line(st_service_expand(api, who, text, &x, &doc, err), err);
    if (r == 0)
        r = st_vault_doc_seal(st_control_vault(api->control), &job, &by, text, &sealed, err);
    if (r == 0)
        c->job = st_strbuf_take(&sealed);
    st_expansion_done(&x);
    explicit_bzero(text, strlen(text));
    free(text);
    return r;
}

static int check_account(const change *c, const char *account, st_err *err)
{
    const st_identity *who = &c->service.who;
    char q[ST_QUOTE_MAX];

    if (!account[0])
        return st_fail(err, ST_EINVAL,
                       "your token belongs to the whole cluster, so the service needs an account: "
                       "give --account NAME (\"account\" in a document)");
    if (strlen(account) > ST_NAME_MAX || !st_directory_within(c->api->dir, account, who->account))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, account));
    if (who->role == ST_ROLE_MEMBER && strcmp(account, who->account) != 0)
        return st_fail(err, ST_EPERM, "your token submits to account %s, not to %s", who->account,
                       st_quote(q, account));
    return 0;
}

static int read_new(change *c, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const st_identity *who = &c->service.who;
    const char *account, *user;
    st_service_said said = {0};
    json_t *template;
    int r = st_call_doc(c->call, &doc, err);

    if (r == 0)
        r = st_service_read(doc, st_doc_root(doc), &said, err);
    if (r == 0 && (!said.job || said.job->kind != ST_DOC_MAP))
        r = st_doc_fail(doc, said.job ? said.job : st_doc_root(doc), err, ST_EINVAL,
                        "a service needs a job: what each replica runs, as it is submitted");
    account = r == 0 && said.account ? said.account : who->account;
    if (r == 0)
        r = check_account(c, account, err);
    if (r < 0)
        return r;
    call_it(c, account, said.name);
    st_spec_json(st_doc_root(doc), &text);
    c->wanted = json_loads(st_strbuf_str(&text), 0, NULL);
    template = json_incref(json_object_get(c->wanted, "job"));
    json_object_del(c->wanted, "job");
    json_object_del(c->wanted, "account");
    json_object_del(c->wanted, "name");
    user = json_string_value(json_object_get(template, "user"));
    snprintf(c->service.user, sizeof c->service.user, "%s", user ? user : who->user);
    return seal(c, c->service.user, template, err);
}

void st_api_service_create(st_call *call, void *ctx)
{
    change *c = change_new(call, ctx, ST_SERVICE_CREATE);
    st_err err = {0};
    int r = read_new(c, &err);

    change_post(c, r, &err);
}

/* Keys of the template that are said, over those there are; null takes one away. */
static int change_job(change *c, const json_t *said, st_err *err)
{
    const st_vault_who job = {st_directory_serial(c->api->dir, c->service.account),
                              c->service.user};
    ST_CLEANUP(st_wipe) st_strbuf plain = {0};
    json_t *template, *value;
    const char *key;
    int r;

    if (!json_is_object(said))
        return st_fail(err, ST_EINVAL, "job is an object: keys of the template that change");
    r = st_vault_doc_open(st_control_vault(c->api->control), &job, c->was, ST_VIEW_ALL, &plain,
                          err);
    if (r < 0)
        return r;
    template = json_loads(st_strbuf_str(&plain), 0, NULL);
    json_object_foreach((json_t *)(uintptr_t)said, key, value)
    {
        if (strcmp(key, "user") == 0 || strcmp(key, "account") == 0 || strcmp(key, "name") == 0)
            r = st_fail(err, ST_EINVAL, "the %s of a service's jobs stays", key);
        else if (json_is_null(value))
            json_object_del(template, key);
        else
            json_object_set(template, key, value);
    }
    if (r == 0)
        return seal(c, c->service.user, template, err);
    json_decref(template);
    return r;
}

void st_api_service_change(st_call *call, void *ctx)
{
    change *c = change_new(call, ctx, ST_SERVICE_SET);
    st_err err = {0};
    json_t *said;
    int r = st_call_json(call, &c->wanted, &err);

    if (r == 0 && !json_is_object(c->wanted))
        r = st_fail(&err, ST_EINVAL, "a change is an object: keys of the service that change");
    if (r == 0)
        r = aim(c, &c->was, c->service.user, &err);
    said = r == 0 ? json_object_get(c->wanted, "job") : NULL;
    if (said)
        r = change_job(c, said, &err);
    if (said)
        json_object_del(c->wanted, "job");
    if (!said) {
        free(c->was);
        c->was = NULL;
    }
    change_post(c, r, &err);
}

static void simple(st_call *call, st_api *api, st_service_verb verb)
{
    change *c = change_new(call, api, verb);
    st_err err = {0};
    int r = aim(c, NULL, NULL, &err);

    change_post(c, r, &err);
}

void st_api_service_restart(st_call *call, void *ctx)
{
    simple(call, ctx, ST_SERVICE_RESTART);
}

void st_api_service_remove(st_call *call, void *ctx)
{
    simple(call, ctx, ST_SERVICE_REMOVE);
}

/* ---- what it tells -------------------------------------------------------------------------------- */

static int read_figure(const json_t *doc, const char *key, int64_t *ret, st_err *err)
{
    const json_t *v = json_object_get(doc, key);

    if (!v)
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > 1000000000)
        return st_fail(err, ST_ERANGE, "%s is a whole number from 0 to 1000000000", key);
    *ret = json_integer_value(v);
    return 0;
}

void st_api_service_figures(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_services *all = st_control_services(api->control);
    int64_t queue = -1, latency = -1;
    json_t *doc = NULL;
    st_err err = {0};
    st_service *s = NULL;
    int r = st_call_json(call, &doc, &err);

    if (r == 0)
        r = read_figure(doc, "queue", &queue, &err);
    if (r == 0)
        r = read_figure(doc, "latency_ms", &latency, &err);
    if (r == 0 && queue < 0 && latency < 0)
        r = st_fail(&err, ST_EINVAL, "tell queue or latency_ms");
    json_decref(doc);
    if (r == 0) {
        pthread_mutex_lock(&all->lock);
        s = st_api_service_of(api, st_api_who(call), st_call_param(call, "name"), &err);
        if (s) {
            s->queue = queue >= 0 ? queue : s->queue;
            s->latency_ms = latency >= 0 ? latency : s->latency_ms;
            s->told_ms = api->options.clock(api->options.ctx);
        }
        pthread_mutex_unlock(&all->lock);
        r = s ? 0 : -1;
    }
    if (r < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_empty(call, 204);
}
