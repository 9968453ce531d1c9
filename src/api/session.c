/*
 * Login of browsers: POST and DELETE /v1/session, POST /v1/session/code, and whose cookie came with a call.
 *
 * A browser sends its cookie with whatever any page of the same site asks it to, and another port of the same host is the
 * same site. So a call with a cookie must come from a page of ours: what it changes carries a header that no form can
 * send, and the browser's own word where the page is from (Sec-Fetch-Site, or Origin where it is too old for that). The
 * cookie has the prefix __Host-: browsers keep it for exactly this host, and take it over TLS or from this machine alone.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "api/sessions.h"
#include "api/state.h"
#include "base/mem.h"
#include "spec/fields.h"

#define COOKIE "__Host-stint"
#define HEADER "Stint-Console"

/* ---- who asks -------------------------------------------------------------------------------- */

static bool is_here(const st_peer *peer)
{
    return peer->is_unix || strncmp(peer->address, "127.", 4) == 0 ||
           strcmp(peer->address, "::1") == 0 || strncmp(peer->address, "::ffff:127.", 11) == 0;
}

/* Whether the Origin is this very server, as the caller names it. */
static bool is_own_origin(const st_call *call)
{
    const char *origin = st_call_header(call, "Origin"), *host = st_call_header(call, "Host");
    const char *scheme = st_call_peer(call)->is_tls ? "https://" : "http://";

    return origin && host && strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcmp(origin + strlen(scheme), host) == 0;
}

static bool is_read(const st_call *call)
{
    return strcmp(st_call_method(call), "GET") == 0 || strcmp(st_call_method(call), "HEAD") == 0;
}

/* Reading may also begin in the address bar. */
static bool is_from_us(const st_call *call)
{
    const char *site = st_call_header(call, "Sec-Fetch-Site");

    if (is_read(call))
        return !site || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    return st_call_header(call, HEADER) &&
           (site ? strcmp(site, "same-origin") == 0 : is_own_origin(call));
}

/* The value of our cookie, in `ret`. One that is too long is none of ours. */
static bool find_cookie(const char *header, char ret[ST_LOGIN_TEXT])
{
    for (const char *at = header; *at;) {
        size_t len = strcspn(at, ";");
        const char *eq = memchr(at, '=', len);
        size_t name = eq ? (size_t)(eq - at) : 0, value = eq ? len - name - 1 : 0;

        if (name == strlen(COOKIE) && memcmp(at, COOKIE, name) == 0 && value < ST_LOGIN_TEXT) {
            memcpy(ret, eq + 1, value);
            ret[value] = '\0';
            return true;
        }
        at += len;
        at += strspn(at, "; ");
    }
    return false;
}

int st_api_cookie(st_api *api, const st_call *call, st_caller *ret, st_err *err)
{
    const char *header = st_call_header(call, "Cookie");
    int64_t now = api->options.clock(api->options.ctx);
    char text[ST_LOGIN_TEXT];

    if (!header || !find_cookie(header, text))
        return 0;
    if (!is_from_us(call))
        return st_fail(err, ST_EAUTH,
                       "this call came from a page of another site; open the console itself");
    ret->session = st_session_find(api->sessions, text, now, &ret->who);
    explicit_bzero(text, sizeof text);
    if (ret->session && !st_directory_opens(api->dir, ret->who.token, now)) {
        st_session_end(api->sessions, ret->session);
        ret->session = 0;
    }
    if (ret->session == 0)
        return st_fail(err, ST_EAUTH, "your session is over; log in again");
    return 1;
}

/* ---- login ------------------------------------------------------------------------------------- */

typedef struct login {
    const char *token, *code;
} login;

static const st_field login_rows[] = {
    {.key = "token", .kind = ST_F_TEXT, .offset = offsetof(login, token)},
    {.key = "code", .kind = ST_F_TEXT, .offset = offsetof(login, code)},
    {0},
};

static int by_code(st_api *api, const st_call *call, const char *code, int64_t now,
                   st_identity *ret, st_err *err)
{
    if (!is_here(st_call_peer(call)))
        return st_fail(err, ST_EAUTH,
                       "a login link works in a browser on stintd's machine; log in with a token");
    if (!st_code_take(api->sessions, code, now, ret) ||
        !st_directory_opens(api->dir, ret->token, now))
        return st_fail(err, ST_EAUTH,
                       "this login link was used or is older than five minutes; get a new one with "
                       "`stint console`");
    return 0;
}

static int who_logs_in(st_api *api, const st_call *call, const login *l, int64_t now,
                       st_identity *ret, st_err *err)
{
    int r;

    if (!l->token == !l->code)
        return st_fail(err, ST_EINVAL, "send `token` or `code`");
    if (l->code)
        return by_code(api, call, l->code, now, ret, err);
    r = st_directory_token(api->dir, l->token, now, ret, err);
    if (r == -ST_EAUTH)
        st_control_refused(api->control, st_call_peer(call)->address);
    if (r == 0 && !(ST_MAY(ret->role) & ST_MAY_SEE))
        return st_fail(err, ST_EAUTH, "a token of a machine opens no console");
    return r;
}

static void set_cookie(st_call *call, const char *value, int64_t seconds)
{
    char text[ST_LOGIN_TEXT + 128];

    snprintf(text, sizeof text,
             COOKIE "=%s; Path=/; Max-Age=%lld; Secure; HttpOnly; SameSite=Strict", value,
             (long long)seconds);
    st_call_set_header(call, "Set-Cookie", text);
    explicit_bzero(text, sizeof text);
}

static void session_json(const st_identity *who, int64_t until, st_strbuf *out)
{
    st_strbuf_addc(out, '{');
    st_out_text(out, "user", who->user);
    st_out_text(out, "account", who->account);
    st_out_text(out, "role", st_role_words[who->role]);
    st_out_time(out, "until", until);
    st_strbuf_addc(out, '}');
}

static int log_in(st_api *api, st_call *call, st_strbuf *out, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    int64_t now = api->options.clock(api->options.ctx);
    const st_peer *peer = st_call_peer(call);
    char text[ST_LOGIN_TEXT];
    st_identity who = {0};
    int32_t counted;
    login l = {0};
    int r = st_call_doc(call, &doc, err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(doc, st_doc_root(doc), login_rows, &l, err);
    if (r < 0)
        return r;
    if (!peer->is_tls && !is_here(peer))
        return st_fail(err, ST_EAUTH,
                       "the console logs in over TLS, or on stintd's own machine: the token would "
                       "be read on the way. Give stintd a certificate, or use an SSH tunnel");
    if (!is_from_us(call))
        return st_fail(err, ST_EAUTH, "a login comes from the console's own page");
    r = who_logs_in(api, call, &l, now, &who, err);
    if (r < 0)
        return r;
    counted = st_allowance_number(api->allowance, who.account);
    r = st_allowance_charge_as(api->allowance, counted, ST_AL_SESSIONS, 1, who.account, err);
    if (r < 0)
        return r;
    snprintf(who.source, sizeof who.source, "%s", peer->address);
    st_session_begin(api->sessions, &who, counted, now, text);
    set_cookie(call, text, ST_SESSION_WHOLE_MS / 1000);
    explicit_bzero(text, sizeof text);
    session_json(&who, st_session_until(now), out);
    return 0;
}

void st_api_session_begin(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_err err = {0};

    st_call_set_header(call, "Cache-Control", "no-store");
    if (log_in(ctx, call, &out, &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 201, NULL, &out);
}

void st_api_session_end(st_call *call, void *ctx)
{
    st_api *api = ctx;

    st_session_end(api->sessions, st_api_caller(call)->session); /* with a token there is none */
    set_cookie(call, "", 0);
    st_call_reply_empty(call, 204);
}

void st_api_session_code(st_call *call, void *ctx)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_api *api = ctx;
    int64_t now = api->options.clock(api->options.ctx);
    char text[ST_LOGIN_TEXT];
    st_err err = {0};

    if (!is_here(st_call_peer(call)))
        st_fail(&err, ST_EINVAL,
                "a login link is for browsers on stintd's own machine, and you call from another");
    else if (st_api_caller(call)->session) /* or a session could go on for ever */
        st_fail(&err, ST_EINVAL, "a login link is made with a token, not by a session");
    if (err.code) {
        st_call_fail(call, &err);
        return;
    }
    st_code_make(api->sessions, st_api_who(call), now, text);
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "code", text);
    st_out_time(&out, "expires", now + ST_CODE_MS);
    st_strbuf_addc(&out, '}');
    explicit_bzero(text, sizeof text);
    st_call_set_header(call, "Cache-Control", "no-store");
    st_call_reply_buf(call, 201, NULL, &out);
}
