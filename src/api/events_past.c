/*
 * Which events somebody asks for, and those of the past (api/events_log.h): the caller's subtree alone, as for streams.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/events.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"

#define LIMIT_MAX   1000
#define LIMIT_USUAL 100

/* Kinds that are no effects of the core. */
static const char *const more_kinds[] = {"budget",   "cap",       "anomaly", "data",
                                         "deadline", "neighbour", NULL};

/* ---- filters ------------------------------------------------------------------------------------ */

static bool is_kind(const char *word)
{
    for (int k = 0; k < ST_FX_COUNT; k++)
        if (strcmp(st_effect_name((st_effect_kind)k), word) == 0)
            return true;
    for (const char *const *at = more_kinds; *at; at++)
        if (strcmp(*at, word) == 0)
            return true;
    return false;
}

static int bad_kind(const char *word, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf all = {0};
    char q[ST_QUOTE_MAX];

    for (int k = 0; k < ST_FX_COUNT; k++)
        st_strbuf_addf(&all, "%s%s", k ? ", " : "", st_effect_name((st_effect_kind)k));
    for (const char *const *at = more_kinds; *at; at++)
        st_strbuf_addf(&all, ", %s", *at);
    return st_fail(err, ST_EINVAL, "there is no kind %s of events; kinds are %s", st_quote(q, word),
                   st_strbuf_str(&all));
}

static int read_kinds(const st_call *call, st_event_filter *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf words = {0};
    const char *word;

    for (int i = 0; (word = st_call_query_nth(call, "kind", i)); i++) {
        if (!is_kind(word))
            return bad_kind(word, err);
        st_strbuf_addf(&words, "%s%s ", words.n ? "" : " ", word);
    }
    ret->kinds = words.n > 0 ? st_strbuf_take(&words) : NULL;
    return 0;
}

/* The job of the query; false: the call is answered. */
static bool find_job(st_api *api, st_call *call, const char *text, uint64_t *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_job_row row;
    st_err err;
    int r = st_api_see_job(api, call, text, arena, ret, &row, &err);

    if (r == -ST_ENOENT)
        st_api_no_such(call, "job", text);
    else if (r < 0)
        st_call_fail(call, &err);
    return r == 0;
}

bool st_event_filter_read(st_api *api, st_call *call, st_event_filter *ret)
{
    const char *job = st_call_query(call, "job"), *account = st_call_query(call, "account");
    const char *node = st_call_query(call, "node");
    st_err err;

    *ret = (st_event_filter){0};
    if (job && !find_job(api, call, job, &ret->job))
        return false;
    if (account && (!account[0] || !st_api_sees(api, call, account))) {
        st_api_no_such(call, "account", account);
        return false;
    }
    if (read_kinds(call, ret, &err) < 0) {
        st_call_fail(call, &err);
        return false;
    }
    ret->account = account ? st_xstrdup(account) : NULL;
    ret->node = node ? st_xstrdup(node) : NULL;
    return true;
}

void st_event_filter_done(st_event_filter *f)
{
    free(f->account);
    free(f->node);
    free(f->kinds);
}

bool st_event_passes(const st_api *api, const st_event_filter *f, uint64_t job, const char *kind,
                     const char *account, const char *node)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf word = {0};

    if ((f->job && f->job != job) || (f->node && (!node || strcmp(f->node, node) != 0)))
        return false;
    if (f->kinds) {
        st_strbuf_addf(&word, " %s ", kind);
        if (!strstr(f->kinds, st_strbuf_str(&word)))
            return false;
    }
    return !f->account || st_directory_within(api->dir, account, f->account);
}

/* ---- the past ------------------------------------------------------------------------------------ */

typedef struct past {
    st_event_filter filter;
    int64_t since_ms, until_ms, limit, n, position;
    st_question *q;
} past;

static void past_free(void *owner)
{
    past *p = owner;

    st_event_filter_done(&p->filter);
    free(p);
}

static int add_event(void *ctx, const st_logged_event *e, int64_t position)
{
    past *p = ctx;
    st_question *q = p->q;
    ST_CLEANUP(st_strbuf_done) st_strbuf gone = {0};
    const char *account = e->account;
    char id[ST_ID_TEXT];

    if (p->until_ms > 0 && e->at_ms > p->until_ms)
        return 0;
    if (e->admins && q->who.role != ST_ROLE_ADMIN && q->who.role != ST_ROLE_OWNER)
        return 0;
    if (account[0] && e->serial != st_directory_serial(q->api->dir, account)) {
        st_strbuf_addf(&gone, ST_GONE_NAME, account, (long long)e->serial);
        account = st_strbuf_str(&gone); /* another one has the name now */
    }
    if (!st_directory_within(q->api->dir, account, q->who.account) ||
        !st_event_passes(q->api, &p->filter, e->job, e->kind, account, e->node))
        return 0;
    st_strbuf_add(&q->out, p->n++ > 0 ? ",{" : "{");
    if (e->run == st_events_log_run(st_hub_log(q->api->hub))) {
        st_control_name(q->api->control, 'e', e->seq, id);
        st_out_text(&q->out, "id", id);
        st_strbuf_addc(&q->out, ',');
    }
    st_strbuf_add(&q->out, e->text + 1); /* its own brace is open already */
    p->position = position;
    return p->n == p->limit;
}

static int list_past(st_question *q, st_err *err)
{
    past *p = q->owner;
    char next[ST_POSITION_TEXT];
    int r;

    p->q = q;
    q->position = st_control_position(q->api->control);
    st_strbuf_add(&q->out, "{\"events\":[");
    r = st_events_log_read(st_hub_log(q->api->hub), p->since_ms, &p->position, add_event, p, err);
    if (r < 0)
        return r;
    st_strbuf_addc(&q->out, ']');
    if (p->position != 0) {
        st_control_position_text(q->api->control, p->position, next);
        st_out_text(&q->out, "next", next);
    }
    st_strbuf_addc(&q->out, '}');
    return 0;
}

static int read_past(st_api *api, const st_call *call, past *p, st_err *err)
{
    const char *cursor = st_call_query(call, "cursor");
    int64_t limit = st_call_query_int(call, "limit", LIMIT_USUAL);
    int r = st_api_query_time(api, call, "since", &p->since_ms, err);

    p->limit = ST_MAX(1, ST_MIN(limit, LIMIT_MAX));
    if (r == 0)
        r = st_api_query_time(api, call, "until", &p->until_ms, err);
    if (r == 0 && cursor &&
        (!st_control_position_parse(api->control, cursor, &p->position) || p->position <= 0))
        r = st_fail(err, ST_EINVAL, "invalid cursor; list again without it");
    if (r == 0 && !st_hub_log(api->hub))
        r = st_fail(err, ST_ENOENT, "this site keeps no events of the past (events_keep)");
    return r;
}

void st_api_events_past(st_call *call, void *ctx)
{
    st_api *api = ctx;
    past *p = st_xcalloc(1, sizeof *p);
    st_question *q;
    st_err err;

    if (read_past(api, call, p, &err) < 0) {
        st_call_fail(call, &err);
        past_free(p);
        return;
    }
    if (!st_event_filter_read(api, call, &p->filter)) {
        past_free(p);
        return;
    }
    q = st_question_new(api, call, NULL, NULL, 0);
    q->ask = list_past;
    q->drop = past_free;
    q->owner = p;
    st_question_post(q);
}
