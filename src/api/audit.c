/*
 * The audit log: who changed what, in the caller's subtree, by who, what and when.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/state.h"
#include "base/num.h"
#include "base/quote.h"

#define AUDIT_MAX 1000

typedef struct audit_list {
    st_api *api;
    const st_call *call;
    st_strbuf out;
    int64_t n, limit, last;
    bool named; /* rows of one actor are asked for, by name */
} audit_list;

/* Who did it, "USER ACCOUNT TOKEN" in the row. */
typedef struct actor {
    char user[ST_NAME_MAX + 1], account[ST_NAME_MAX + 1];
    long long token;
    bool seen; /* somebody from outside the caller's subtree, which is somebody above, is not */
} actor;

static void read_actor(const audit_list *l, const st_audit_row *row, actor *ret)
{
    *ret = (actor){0};
    if (sscanf(row->actor, "%128s %128s %lld", ret->user, ret->account, &ret->token) == 3 &&
        strcmp(ret->account, "-") == 0)
        ret->account[0] = '\0';
    ret->seen = st_api_sees(l->api, l->call, ret->account);
}

/* Who is not seen has no name and comes from nowhere. */
static void actor_json(const audit_list *l, const actor *who, const char *source, st_strbuf *out)
{
    char token[ST_ID_TEXT];

    st_out_text(out, "actor", who->seen ? who->user : "an account above yours");
    if (who->seen)
        st_out_text(out, "actor_account", who->account);
    if (who->seen && who->token > 0) {
        st_control_name(l->api->control, 't', (uint64_t)who->token, token);
        st_out_text(out, "actor_token", token);
    }
    st_out_text(out, "source", who->seen ? source : "");
}

static int audit_row(void *ctx, const st_audit_row *row, st_err *err)
{
    audit_list *l = ctx;
    char id[ST_ID_TEXT];
    actor who;

    (void)err;
    read_actor(l, row, &who);
    if (l->named && !who.seen)
        return 0; /* whether somebody above has such a name is not to be found out */
    if (l->n == l->limit) {
        l->n++;
        return 1;
    }
    st_strbuf_add(&l->out, l->n++ > 0 ? ",{" : "{");
    st_control_name(l->api->control, 'a', (uint64_t)row->seq, id);
    st_out_text(&l->out, "id", id);
    st_out_time(&l->out, "at", row->at_ms);
    actor_json(l, &who, row->source, &l->out);
    st_out_text(&l->out, "account", row->account);
    st_out_text(&l->out, "verb", row->verb);
    st_out_text(&l->out, "target", row->target);
    st_out_raw(&l->out, "detail", row->detail[0] ? row->detail : "null");
    st_strbuf_addc(&l->out, '}');
    l->last = row->seq;
    return 0;
}

static int same_seq(void *ctx, const st_audit_row *row, st_err *err)
{
    int64_t *seq = ctx;

    (void)err;
    if (row->seq == *seq)
        *seq = 0;
    return 1;
}

/* A cursor is a row that the caller has seen: other numbers would tell where its own rows stand
 * among everybody's. */
static int audit_from(st_api *api, st_store *reader, const char *cursor, st_audit_filter *f,
                      st_err *err)
{
    st_audit_filter one = {.within = f->within};
    uint64_t seq;
    int64_t at = -1;
    int r = 0;

    if (st_control_named(api->control, 'a', cursor, &seq)) {
        at = (int64_t)seq;
        one.before_seq = at + 1;
        one.limit = 1;
        r = st_store_audit_list(reader, &one, same_seq, &at, err);
        f->before_seq = (int64_t)seq;
    }
    if (r == 0 && at != 0)
        r = st_fail(err, ST_EINVAL, "invalid cursor; list again without it");
    return r;
}

static int read_filter(st_api *api, const st_call *call, audit_list *l, st_audit_filter *f,
                       st_err *err)
{
    const char *by = st_call_query(call, "by"), *what = st_call_query(call, "what");
    char q[ST_QUOTE_MAX];
    int r = st_api_query_time(api, call, "since", &f->since_ms, err);

    if (r == 0)
        r = st_api_query_time(api, call, "until", &f->until_ms, err);
    if (r == 0 && by && !st_name_ok(by))
        r = st_fail(err, ST_EINVAL, "by: %s is no name of a user", st_quote(q, by));
    if (r == 0 && what && strspn(what, "abcdefghijklmnopqrstuvwxyz._-") != strlen(what))
        r = st_fail(err, ST_EINVAL, "what: %s is no verb, such as token.create, nor a noun",
                    st_quote(q, what));
    f->by = by;
    f->what = what;
    l->named = by;
    /* Rows that are left out do not count: the list itself stops. */
    f->limit = by ? 0 : l->limit + 1;
    return r;
}

void st_api_audit_list(st_call *call, void *ctx)
{
    st_api *api = ctx;
    audit_list l = {.api = api, .call = call, .limit = st_call_query_int(call, "limit", 100)};
    const char *cursor = st_call_query(call, "cursor"), *account = st_call_query(call, "account");
    st_audit_filter f = {0};
    st_store *reader = NULL;
    st_err err = {0};
    char next[ST_ID_TEXT];
    int r = 0;

    if (account && (!account[0] || !st_api_sees(api, call, account))) {
        st_api_no_such(call, "account", account);
        return;
    }
    l.limit = ST_MAX(1, ST_MIN(l.limit, AUDIT_MAX));
    r = read_filter(api, call, &l, &f, &err);
    f.within = st_directory_range(api->dir, account ? account : st_api_who(call)->account);
    st_api_stamp_now(api, call);
    st_strbuf_add(&l.out, "{\"rows\":[");
    reader = r == 0 ? st_api_reader(api, &err) : NULL;
    if (reader && cursor)
        r = audit_from(api, reader, cursor, &f, &err);
    if (reader && r == 0)
        r = st_store_audit_list(reader, &f, audit_row, &l, &err);
    st_api_reader_back(api, reader);
    if (!reader || r < 0) {
        st_call_fail(call, &err);
    } else {
        st_strbuf_addc(&l.out, ']');
        if (l.n > l.limit) {
            st_control_name(api->control, 'a', (uint64_t)l.last, next);
            st_out_text(&l.out, "next", next);
        }
        st_strbuf_addc(&l.out, '}');
        st_call_reply_buf(call, 200, NULL, &l.out);
    }
    st_strbuf_done(&l.out);
}

void st_api_audit_verify(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_audit_verdict v = {0};
    st_strbuf out = {0};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = reader ? st_store_audit_verify(reader, &v, &err) : -1;

    st_api_reader_back(api, reader);
    if (r < 0) {
        st_call_fail(call, &err);
        return;
    }
    st_strbuf_addc(&out, '{');
    st_out_raw(&out, "intact", v.bad_seq == 0 ? "true" : "false");
    /* How long the chain is and where it ends moves with what everybody does. */
    if (st_api_who(call)->account[0] == '\0') {
        st_out_int(&out, "rows", v.rows);
        if (v.bad_seq != 0)
            st_out_text(&out, "why", v.why);
        st_out_raw(&out, "head", "\"");
        for (size_t i = 0; i < sizeof v.head; i++)
            st_strbuf_addf(&out, "%02x", v.head[i]);
        st_strbuf_addc(&out, '"');
    }
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}
