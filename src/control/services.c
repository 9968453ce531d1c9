/*
 * The services there are, read from the store and kept as they are committed (control/services.h). Their commands are in
 * services_change.c.
 */
#include "control/services.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "control/services_state.h"
#include "control/state.h"

/* ---- one -------------------------------------------------------------------------------------- */

static void service_free(st_service *s)
{
    if (!s)
        return;
    json_decref(s->wanted);
    free(s->job);
    st_vec_free(&s->replicas);
    free(s);
}

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

static st_role role_of(const char *word)
{
    for (int i = 0; i < ST_ROLE_COUNT; i++)
        if (word && strcmp(st_role_words[i], word) == 0)
            return (st_role)i;
    return ST_ROLE_VIEWER; /* who may not submit */
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text ? text : "";
}

static int64_t number_of(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

/* What is wanted, from the document as it is kept. */
static int take_doc(st_service *s, const json_t *doc, st_err *err)
{
    const json_t *by = json_object_get(doc, "by");
    ST_CLEANUP(st_doc_freep) st_doc *texts = NULL;
    st_service_said said;
    int r = st_service_read_json(json_object_get(doc, "wanted"), &texts, &said, err);

    if (r < 0)
        return r;
    st_service_spec(&said, &s->spec);
    s->spec.revision = (int)number_of(doc, "revision");
    s->spec.removed = json_is_true(json_object_get(doc, "removed"));
    s->port = said.port;
    s->health = (st_svc_health)said.health;
    s->interval_ms = said.interval_ms;
    s->timeout_ms = said.timeout_ms;
    s->failures = said.failures;
    s->made_ms = number_of(doc, "made");
    copy(s->path, sizeof s->path, said.path);
    copy(s->user, sizeof s->user, text_of(doc, "user"));
    s->by = (st_identity){.role = role_of(text_of(by, "role")), .source = "service"};
    copy(s->by.account, sizeof s->by.account, text_of(by, "account"));
    copy(s->by.user, sizeof s->by.user, text_of(by, "user"));
    json_decref(s->wanted);
    s->wanted = json_incref(json_object_get(doc, "wanted"));
    free(s->job);
    s->job = st_xstrdup(text_of(doc, "job"));
    return 0;
}

static void name_it(st_service *s, const char *kept)
{
    const char *slash = strrchr(kept, '/');
    int n = slash ? (int)(slash - kept) : 0;

    copy(s->kept, sizeof s->kept, kept);
    snprintf(s->account, sizeof s->account, "%.*s", n, kept);
    copy(s->name, sizeof s->name, slash ? slash + 1 : kept);
}

/* ---- what is remembered ------------------------------------------------------------------------- */

json_t *st_service_state_json(const st_service *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->replicas.n; i++) {
        const st_service_replica *r = &s->replicas.v[i];
        char id[32];

        snprintf(id, sizeof id, "%llu", (unsigned long long)r->job);
        json_array_append_new(list,
                              json_pack("{s:I,s:i,s:s,s:I}", "n", (json_int_t)r->serial, "revision",
                                        r->revision, "job", id, "left", (json_int_t)r->left_ms));
    }
    return json_pack("{s:I,s:I,s:i,s:i,s:I,s:I,s:b,s:s,s:I,s:o}", "version", (json_int_t)s->version,
                     "next", (json_int_t)s->next_serial, "target", s->memory.target, "fails",
                     s->memory.fails, "failed", (json_int_t)s->memory.failed_ms, "retry",
                     (json_int_t)s->memory.retry_ms, "ended", s->memory.ended, "why", s->why,
                     "why_at", (json_int_t)s->why_ms, "replicas", list);
}

static void take_state(st_service *s, const json_t *doc)
{
    const json_t *row;
    size_t i;

    s->next_serial = number_of(doc, "next");
    s->memory.target = (int)number_of(doc, "target");
    copy(s->why, sizeof s->why, text_of(doc, "why"));
    s->why_ms = number_of(doc, "why_at");
    if (number_of(doc, "version") == s->version) { /* an edit begins anew */
        s->memory.fails = (int)number_of(doc, "fails");
        s->memory.failed_ms = number_of(doc, "failed");
        s->memory.retry_ms = number_of(doc, "retry");
        s->memory.ended = json_is_true(json_object_get(doc, "ended"));
    }
    json_array_foreach(json_object_get(doc, "replicas"), i, row)
    {
        st_service_replica r = {.serial = number_of(row, "n"),
                                .revision = (int)number_of(row, "revision"),
                                .job = strtoull(text_of(row, "job"), NULL, 10),
                                .left_ms = number_of(row, "left"),
                                .node = -1};

        st_vec_push(&s->replicas, r);
    }
}

/* ---- all ---------------------------------------------------------------------------------------- */

st_services *st_services_new(void)
{
    st_services *s = st_xcalloc(1, sizeof *s);
    pthread_condattr_t attr;

    ST_ASSERT(pthread_mutex_init(&s->lock, NULL) == 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&s->changed, &attr) == 0);
    pthread_condattr_destroy(&attr);
    return s;
}

void st_services_free(st_services *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->all.n; i++)
        service_free(s->all.v[i]);
    st_vec_free(&s->all);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

st_services *st_control_services(st_control *ctl)
{
    return ctl->services;
}

st_service *st_services_kept(const st_services *s, const char *kept)
{
    for (size_t i = 0; i < s->all.n; i++)
        if (strcmp(s->all.v[i]->kept, kept) == 0)
            return s->all.v[i];
    return NULL;
}

st_service *st_services_find(const st_services *s, const char *account, const char *text)
{
    char kept[ST_SERVICE_KEPT_MAX];

    if (strchr(text, '/'))
        return st_services_kept(s, text);
    if (strlen(text) > ST_SERVICE_NAME_MAX)
        return NULL;
    snprintf(kept, sizeof kept, "%s/%s", account, text);
    return st_services_kept(s, kept);
}

st_service_replica *st_service_replica_of(st_service *s, int64_t serial)
{
    for (size_t i = 0; i < s->replicas.n; i++)
        if (s->replicas.v[i].serial == serial)
            return &s->replicas.v[i];
    return NULL;
}

static int in_order(const void *a, const void *b)
{
    return strcmp((*(st_service *const *)a)->kept, (*(st_service *const *)b)->kept);
}

int st_services_take(st_services *s, const char *kept, const char *doc, int64_t version,
                     st_err *err)
{
    json_t *root = json_loads(doc, 0, NULL);
    st_service *one;
    bool fresh;
    int r;

    pthread_mutex_lock(&s->lock);
    one = st_services_kept(s, kept);
    fresh = !one;
    if (fresh) {
        one = st_xcalloc(1, sizeof *one);
        name_it(one, kept);
    }
    r = take_doc(one, root, err);
    if (r == 0) {
        one->version = version;
        one->memory.fails = 0;
        one->memory.retry_ms = 0;
        one->memory.ended = false;
        one->memory.busy_ms = 0;
        one->look_ms = 0;
        if (fresh) {
            st_vec_push(&s->all, one);
            qsort(s->all.v, s->all.n, sizeof s->all.v[0], in_order);
        }
        pthread_cond_broadcast(&s->changed);
    } else if (fresh) {
        service_free(one);
    }
    pthread_mutex_unlock(&s->lock);
    json_decref(root);
    return r;
}

void st_services_drop(st_services *s, const char *kept)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->all.n; i++) {
        if (strcmp(s->all.v[i]->kept, kept) != 0)
            continue;
        service_free(s->all.v[i]);
        st_vec_remove(&s->all, i);
        break;
    }
    pthread_mutex_unlock(&s->lock);
}

static int load_one(void *ctx, const st_document_row *row, st_err *err)
{
    return st_services_take(ctx, row->name, row->doc, row->at_ms, err);
}

static int load_state(void *ctx, const st_document_row *row, st_err *err)
{
    st_service *s = st_services_kept(ctx, row->name);
    json_t *doc = json_loads(row->doc, 0, NULL);

    (void)err;
    if (s)
        take_state(s, doc);
    json_decref(doc);
    return 0;
}

int st_services_load(st_services *s, st_store *store, st_err *err)
{
    int r = st_store_documents(store, ST_SERVICE_KIND, load_one, s, err);

    if (r >= 0)
        r = st_store_documents(store, ST_SERVICE_STATE, load_state, s, err);
    return r < 0 ? r : 0;
}
