/*
 * Commands about services: those of people, and those of the controller (control/services.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/services.h"
#include "control/services_state.h"
#include "control/state.h"

static const char *const verbs[ST_SERVICE_VERBS] = {"service.create", "service.set",
                                                    "service.restart", "service.remove"};

/* ---- by people ---------------------------------------------------------------------------------- */

static int no_service(const st_cmd_service *c, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no service %s",
                   st_quote(q, strcmp(c->account, c->who.account) == 0 ? c->name : c->kept));
}

static int may_change(const st_cmd_service *c, const json_t *doc, st_err *err)
{
    const char *user = json_string_value(json_object_get(doc, "user"));

    if (c->who.role != ST_ROLE_MEMBER ||
        (strcmp(c->account, c->who.account) == 0 && user && strcmp(user, c->who.user) == 0))
        return 0;
    return st_fail(err, ST_EPERM,
                   "service %s belongs to %s in account %s: ask them, or an admin of the account",
                   c->name, user ? user : "somebody else", c->account);
}

static void put_maker(const st_cmd_service *c, json_t *doc)
{
    json_object_set_new(doc, "by",
                        json_pack("{s:s,s:s,s:s}", "account", c->who.account, "user", c->who.user,
                                  "role", st_role_words[c->who.role]));
}

/* What is said of it over what is wanted; null is the default again. */
static int merge(const st_cmd_service *c, json_t *wanted, st_err *err)
{
    json_t *value;
    const char *key;

    json_object_foreach(c->wanted, key, value)
    {
        if (strcmp(key, "name") == 0 || strcmp(key, "account") == 0)
            return st_fail(err, ST_EINVAL, "the %s of a service stays: make another one", key);
        if (json_is_null(value))
            json_object_del(wanted, key);
        else
            json_object_set(wanted, key, value);
    }
    return 0;
}

/* The document as it is to be; the caller frees it. */
static int next_doc(st_tx *tx, st_cmd_service *c, const char *text, json_t **ret, st_err *err)
{
    json_t *doc = text ? json_loads(text, 0, NULL) : json_object(), *wanted;
    int64_t revision = json_integer_value(json_object_get(doc, "revision"));
    const char *job = json_string_value(json_object_get(doc, "job"));
    ST_CLEANUP(st_doc_freep) st_doc *texts = NULL;
    st_service_said said;
    int r = text ? may_change(c, doc, err) : 0;

    if (!text)
        json_object_set_new(doc, "wanted", json_object());
    wanted = json_object_get(doc, "wanted");
    if (r == 0 && c->verb != ST_SERVICE_REMOVE && json_is_true(json_object_get(doc, "removed")))
        r = st_fail(err, ST_ESTATE, "service %s is being removed", c->name);
    if (r == 0 && c->was && job && strcmp(c->was, job) != 0)
        r = st_fail(err, ST_EVERSION,
                    "service %s has changed since you read it; read it again and repeat the change",
                    c->name);
    if (r == 0 && c->wanted)
        r = merge(c, wanted, err);
    if (!text) {
        json_object_set_new(wanted, "name", json_string(c->name));
        json_object_set_new(doc, "user", json_string(c->user));
        json_object_set_new(doc, "made", json_integer(st_version_next(tx)));
    }
    if (c->job) {
        json_object_set_new(doc, "job", json_string(c->job));
        put_maker(c, doc); /* it runs by the rights of whoever wrote it */
    }
    if (c->job || c->verb == ST_SERVICE_RESTART)
        json_object_set_new(doc, "revision", json_integer(revision + 1));
    if (c->verb == ST_SERVICE_REMOVE)
        json_object_set_new(doc, "removed", json_true());
    if (r == 0)
        r = st_service_read_json(wanted, &texts, &said, err);
    if (r < 0)
        json_decref(doc);
    else
        *ret = doc;
    return r;
}

static int write_doc(st_tx *tx, st_cmd_service *c, int64_t before, st_err *err)
{
    const st_document_row row = {.kind = ST_SERVICE_KIND,
                                 .name = c->kept,
                                 .version = before,
                                 .at_ms = c->version,
                                 .doc = c->doc};
    int r = st_tx_fault(tx, st_store_document_put(tx->ctl->store, &row, err), err);

    if (r == 0)
        st_version_set(tx, ST_SERVICE_KIND, c->kept, c->version);
    return r == 0 ? st_tx_audit(tx, &c->who, verbs[c->verb], c->account, c->name, NULL, err) : r;
}

static int run_change(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_service *c = (st_cmd_service *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row old = {0};
    bool create = c->verb == ST_SERVICE_CREATE;
    json_t *doc = NULL;
    int r;

    if (!st_tx_within(tx, c->account, c->who.account))
        return create ? st_no_account(c->account, err) : no_service(c, err);
    r = st_tx_open(tx, err);
    if (r < 0)
        return r;
    r = st_store_document_get(tx->ctl->store, ST_SERVICE_KIND, c->kept, arena, &old, err);
    if (r < 0 && r != -ST_ENOENT)
        return st_tx_fault(tx, r, err);
    if (create && r == 0)
        return st_fail(err, ST_EEXIST, "there is a service %s already%s", c->name,
                       strstr(old.doc, "\"removed\":true") ? "; it is being removed" : "");
    if (!create && r < 0)
        return no_service(c, err);
    r = next_doc(tx, c, create ? NULL : old.doc, &doc, err);
    if (r == 0 && create)
        r = st_allowance_charge(tx->ctl->allowance, c->account, ST_AL_SERVICES, 1, c->who.account,
                                err);
    if (r == 0) {
        c->doc = json_dumps(doc, JSON_COMPACT);
        c->version = st_version_next(tx);
        r = write_doc(tx, c, old.version, err);
    }
    json_decref(doc);
    return r;
}

static void publish_change(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_service *c = (const st_cmd_service *)cmd;
    st_err err;

    st_services_take(ctl->services, c->kept, c->doc, c->version, &err);
}

void st_cmd_service_init(st_cmd_service *cmd)
{
    cmd->cmd.run = run_change;
    cmd->cmd.publish = publish_change;
}

/* ---- by the controller ---------------------------------------------------------------------------- */

/* Whether it is still the service that the controller means. */
static int still_there(st_tx *tx, const st_cmd_replica *c, st_err *err)
{
    st_service *s;
    bool same;

    pthread_mutex_lock(&tx->ctl->services->lock);
    s = st_services_kept(tx->ctl->services, c->kept);
    same = s && s->made_ms == c->made_ms;
    pthread_mutex_unlock(&tx->ctl->services->lock);
    return same ? 0 : st_fail(err, ST_ENOENT, "service %s is gone", c->kept);
}

static int erase(st_tx *tx, const st_cmd_replica *c, st_err *err)
{
    const char *slash = strrchr(c->kept, '/');
    ST_CLEANUP(st_freep) char *account = st_xstrndup(c->kept, (size_t)(slash - c->kept));
    int r = st_document_erase(tx, ST_SERVICE_KIND, c->kept, err);

    if (r == 0)
        r = st_document_erase(tx, ST_SERVICE_STATE, c->kept, err);
    if (r < 0)
        return r;
    st_version_set(tx, ST_SERVICE_KIND, c->kept, 0);
    st_allowance_release(tx->ctl->allowance, account, ST_AL_SERVICES, 1);
    return 0;
}

static int run_replica(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_replica *c = (st_cmd_replica *)cmd;
    int r = still_there(tx, c, err);

    if (r == 0 && c->submit)
        r = c->submit->cmd.run(tx, &c->submit->cmd, err);
    if (r < 0)
        return r;
    if (!c->state)
        return erase(tx, c, err);
    if (c->submit) {
        json_t *list = json_object_get(c->state, "replicas");
        char id[32];

        snprintf(id, sizeof id, "%" PRIu64, c->submit->items[0].id);
        json_object_set_new(json_array_get(list, json_array_size(list) - 1), "job",
                            json_string(id));
    }
    return st_document_write(tx, ST_SERVICE_STATE, c->kept, json_incref(c->state), err);
}

static void publish_replica(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_replica *c = (const st_cmd_replica *)cmd;

    if (!c->state)
        st_services_drop(ctl->services, c->kept);
}

void st_cmd_replica_init(st_cmd_replica *cmd)
{
    cmd->cmd.run = run_replica;
    cmd->cmd.publish = publish_replica;
}

/* ---- what became of replicas ------------------------------------------------------------------------ */

/* Whether a node that takes no jobs, or a job ahead of it, will have its place. */
static bool is_moving(const st_core *core, const st_job *job)
{
    const st_fleet *fleet = st_core_fleet(core);

    if (job->state != ST_JOB_RUNNING && job->state != ST_JOB_PENDING)
        return true;
    for (int i = 0; job->state == ST_JOB_RUNNING && i < job->tasks; i++)
        if (fleet->nodes.v[job->grants[i].node]->state != ST_NODE_READY)
            return true;
    return false;
}

static void enter(st_service_replica *r, st_svc_state state, int64_t now)
{
    if (r->state != state || r->since_ms == 0) {
        r->state = state;
        r->since_ms = now;
    }
}

/* Why a replica's job ended that was not told to, in words that are kept until the next. */
static void note_end(st_control *ctl, st_service *s, const st_service_replica *r, int64_t now)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char id[ST_ID_TEXT], status[48] = "";
    st_job_row row;
    st_err err;

    if (r->left_ms > 0 || st_store_job_get(ctl->store, (int64_t)r->job, arena, &row, &err) < 0)
        return;
    st_control_id_text(ctl, r->job, id);
    if (row.exit_code != ST_STORE_NEVER)
        snprintf(status, sizeof status, ", exit status %d", (int)row.exit_code);
    snprintf(s->why, sizeof s->why, "replica %d (job %s) ended: %s%s%s%.160s", (int)r->serial, id,
             row.state, status, row.reason[0] ? ": " : "", row.reason);
    s->why_ms = now;
}

static void look_at(st_control *ctl, st_service *s, st_service_replica *r, int64_t now)
{
    const st_live *live = st_control_live(ctl, r->job);
    const st_job *job = st_core_job(ctl->core, r->job);
    bool runs = job && (job->state == ST_JOB_RUNNING || job->state == ST_JOB_NOTIFIED ||
                        job->state == ST_JOB_CHECKPOINTING);

    r->node = -1;
    r->moving = r->began = false;
    if (!live || !job) {
        if (r->state != ST_SVC_OVER)
            note_end(ctl, s, r, now);
        enter(r, ST_SVC_OVER, now);
        return;
    }
    r->moving = is_moving(ctl->core, job);
    if (!runs || r->stay != job->stay) { /* what was known of its health is no more */
        r->healthy = r->checking = false;
        r->bad = 0;
        r->check_ms = 0;
    }
    r->stay = job->stay;
    if (runs) {
        const st_node *node = st_core_fleet(ctl->core)->nodes.v[job->grants[0].node];

        r->node = node->id;
        r->agent = node->agent;
        snprintf(r->node_name, sizeof r->node_name, "%s", node->name);
        r->began = live->said_start_ms > 0 || !node->agent;
    }
    if (s->health == ST_SVC_HEALTH_NONE || !r->agent) /* there is nothing to ask */
        r->healthy = r->began;
    if (r->left_ms > 0) {
        r->state = ST_SVC_LEAVING;
        r->since_ms = r->left_ms;
    } else if (!runs) {
        enter(r, ST_SVC_WAITING, now);
    } else if (r->bad >= s->failures && r->state == ST_SVC_READY) {
        enter(r, ST_SVC_SICK, now);
    } else if (r->healthy && r->began) {
        enter(r, ST_SVC_READY, now);
    } else if (r->state != ST_SVC_READY && r->state != ST_SVC_SICK) {
        enter(r, ST_SVC_STARTING, now);
    }
}

static int run_look(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_services *all = tx->ctl->services;

    (void)cmd;
    (void)err;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->all.n; i++)
        for (size_t k = 0; k < all->all.v[i]->replicas.n; k++)
            if (all->all.v[i]->replicas.v[k].job > 0)
                look_at(tx->ctl, all->all.v[i], &all->all.v[i]->replicas.v[k], tx->now);
    pthread_mutex_unlock(&all->lock);
    return 0;
}

void st_cmd_look_init(st_cmd_look *cmd)
{
    cmd->cmd.run = run_look;
}

/* ---- another key ------------------------------------------------------------------------------------- */

static int reseal_one(st_tx *tx, st_service *s, st_err *err)
{
    st_control *ctl = tx->ctl;
    const st_vault_who job = {st_directory_serial(ctl->dir, s->account), s->user};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_freep) char *text = NULL;
    st_document_row row = {0};
    bool changed = false;
    json_t *doc;
    int r;

    if (st_vault_doc_renew(ctl->vault, &job, NULL, s->job, false, &out, &changed, err) < 0) {
        st_control_say(ctl, "event=seal_failed account=%s service=%s reason=\"%s\"", s->account,
                       s->name, err->msg);
        return 0;
    }
    if (!changed)
        return 0;
    r = st_tx_fault(
        tx, st_store_document_get(ctl->store, ST_SERVICE_KIND, s->kept, arena, &row, err), err);
    if (r < 0)
        return r;
    doc = json_loads(row.doc, 0, NULL);
    json_object_set_new(doc, "job", json_string(st_strbuf_str(&out)));
    text = json_dumps(doc, JSON_COMPACT);
    json_decref(doc);
    row.doc = text; /* the same edit: nobody wrote anything else */
    r = st_tx_fault(tx, st_store_document_put(ctl->store, &row, err), err);
    if (r == 0) {
        free(s->job);
        s->job = st_strbuf_take(&out);
    }
    return r;
}

int st_services_reseal(st_tx *tx, st_err *err)
{
    st_services *all = tx->ctl->services;
    int r = 0;

    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; r == 0 && i < all->all.n; i++)
        r = reseal_one(tx, all->all.v[i], err);
    pthread_mutex_unlock(&all->lock);
    return r;
}
