/*
 * Pulling images from the site's registries: begun by one call, asked about with the same call until it is over. One is pulled at a
 * time, in a thread of its own; what became of the last ones is remembered for a while. The catalogue is changed by whoever
 * asked, as for any other layout.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "api/work.h"
#include "base/mem.h"

#define PULLS_MAX 16
#define KEPT_MS   INT64_C(600000)

typedef enum { PULL_RUNS, PULL_DONE, PULL_FAILED } pull_state;

typedef struct pull {
    struct st_pulls *of;
    char *from, *path;
    char digest[72];
    pull_state state;
    st_err err;
    int64_t over_ms;
} pull;

struct st_pulls {
    st_api *api;
    st_work *work; /* one thread */
    pthread_mutex_t lock;
    ST_VEC(pull *) v;
};

static void pull_free(pull *p)
{
    free(p->from);
    free(p->path);
    free(p);
}

struct st_pulls *st_pulls_new(st_api *api)
{
    struct st_pulls *p = st_xcalloc(1, sizeof *p);

    p->api = api;
    p->work = st_work_new(1, PULLS_MAX, 5);
    ST_ASSERT(pthread_mutex_init(&p->lock, NULL) == 0);
    return p;
}

void st_pulls_free(struct st_pulls *p)
{
    if (!p)
        return;
    st_work_free(p->work);
    for (size_t i = 0; i < p->v.n; i++)
        pull_free(p->v.v[i]);
    st_vec_free(&p->v);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void run(void *arg)
{
    pull *p = arg;
    const st_api_options *o = &p->of->api->options;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    char digest[72] = "";
    st_err err = {0};
    int r = o->pull(o->ctx, p->from, &path, digest, &err);

    pthread_mutex_lock(&p->of->lock);
    p->err = err;
    p->path = st_xstrdup(st_strbuf_str(&path));
    memcpy(p->digest, digest, sizeof digest);
    p->state = r == 0 ? PULL_DONE : PULL_FAILED;
    p->over_ms = o->clock(o->ctx);
    pthread_mutex_unlock(&p->of->lock);
}

/* With the lock held: those that are over for long are forgotten. */
static void forget(struct st_pulls *p, int64_t now)
{
    for (size_t i = p->v.n; i-- > 0;)
        if (p->v.v[i]->state != PULL_RUNS && now > p->v.v[i]->over_ms + KEPT_MS) {
            pull_free(p->v.v[i]);
            st_vec_remove(&p->v, i);
        }
}

static size_t find(const struct st_pulls *p, const char *from)
{
    size_t i = 0;

    while (i < p->v.n && strcmp(p->v.v[i]->from, from) != 0)
        i++;
    return i;
}

static int begin(struct st_pulls *p, const char *from, st_err *err)
{
    pull *one;

    if (p->v.n >= PULLS_MAX)
        return st_fail(err, ST_EDOWN,
                       "%d images are being pulled or were just now; try again later", PULLS_MAX);
    one = st_xcalloc(1, sizeof *one);
    one->of = p;
    one->from = st_xstrdup(from);
    if (!st_work_run(p->work, run, one)) {
        pull_free(one);
        return st_fail(err, ST_EDOWN, "many images are being pulled just now; try again later");
    }
    st_vec_push(&p->v, one);
    return 0;
}

/* What is over is told once, so that the next call pulls again: a name may stand for something new. */
static json_t *tell(struct st_pulls *p, size_t i, st_err *err)
{
    pull *one = p->v.v[i];
    json_t *said = NULL;

    if (one->state == PULL_RUNS)
        return json_pack("{s:s, s:s}", "from", one->from, "state", "pulling");
    if (one->state == PULL_DONE)
        said = json_pack("{s:s, s:s, s:s, s:s}", "from", one->from, "state", "done", "layout",
                         one->path, "digest", one->digest);
    else
        *err = one->err;
    st_vec_remove(&p->v, i);
    pull_free(one);
    return said;
}

void st_api_image_pull(st_call *call, void *ctx)
{
    st_api *api = ctx;
    struct st_pulls *p = api->pulls;
    json_t *doc = NULL, *said = NULL;
    const char *from = NULL;
    st_err err = {0};
    int r = st_call_json(call, &doc, &err);
    size_t i;

    if (r == 0) {
        from = json_string_value(json_object_get(doc, "from"));
        if (!from || json_object_size(doc) != 1)
            r = st_fail(&err, ST_EINVAL, "say which image, as {\"from\": \"HOST/NAME:TAG\"}");
        else if (!api->options.pull)
            r = st_fail(
                &err, ST_ESTATE,
                "this site pulls from no registry; its configuration names them (registries)");
    }
    if (r == 0) {
        pthread_mutex_lock(&p->lock);
        forget(p, api->options.clock(api->options.ctx));
        i = find(p, from);
        r = i == p->v.n ? begin(p, from, &err) : 0;
        if (r == 0)
            said = tell(p, i, &err);
        pthread_mutex_unlock(&p->lock);
    }
    if (said)
        st_call_reply_json(call, 200, said);
    else
        st_call_fail(call, &err);
    json_decref(doc);
}
