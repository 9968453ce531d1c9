/* One attempt to bring a letter somewhere (courier.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "courier/state.h"

#define CONNECT_S  5
#define ALL_S      10
#define ANSWER_MAX 65536 /* bytes, headers and all; what is more is not waited for */

struct st_sending {
    const st_courier *courier;
    CURL *curl;
    CURLU *url;
    struct curl_slist *list; /* headers, or the receiver */
    st_strbuf body;
    size_t at;   /* of a mail: what curl has taken */
    size_t seen; /* of the answer */
    bool mail, refused, full;
    char why[CURL_ERROR_SIZE];
};

/* The address itself is looked at, after all names are: whoever answers for a name cannot change it any more. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    st_sending *s = ctx;
    bool good = s->mail || st_address_public(&address->addr);

    for (size_t i = 0; i < s->courier->networks.n && !good; i++)
        good = st_network_has(&s->courier->networks.v[i], &address->addr);
    if (!good || purpose != CURLSOCKTYPE_IPCXN) {
        s->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t throw_away(char *data, size_t size, size_t n, void *ctx)
{
    st_sending *s = ctx;

    (void)data;
    s->seen += size * n;
    s->full = s->seen > ANSWER_MAX;
    return s->full ? 0 : size * n;
}

static size_t give(char *data, size_t size, size_t n, void *ctx)
{
    st_sending *s = ctx;
    size_t left = s->body.n - s->at, room = size * n, take = left < room ? left : room;

    memcpy(data, st_strbuf_str(&s->body) + s->at, take);
    s->at += take;
    return take;
}

static void add_header(st_sending *s, const char *name, const char *value)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0};

    st_strbuf_addf(&line, "%s: %s", name, value);
    s->list = curl_slist_append(s->list, st_strbuf_str(&line));
}

static int make_webhook(st_sending *s, const st_letter *l, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf signature = {0};
    char seconds[32];
    int r = st_courier_parse(s->courier, s->url, l->to, NULL, err);

    if (r < 0)
        return r;
    st_strbuf_add(&s->body, l->body);
    if (!st_courier_sign(l->key, l->id, l->seconds, l->body, &signature))
        return st_fail(err, ST_ECORRUPT, "the notice has no key to sign with; add it anew");
    snprintf(seconds, sizeof seconds, "%" PRId64, l->seconds);
    add_header(s, "Content-Type", "application/json");
    add_header(s, "User-Agent", "stint-notice");
    add_header(s, "Expect", "");
    add_header(s, "webhook-id", l->id);
    add_header(s, "webhook-timestamp", seconds);
    add_header(s, "webhook-signature", st_strbuf_str(&signature));
    curl_easy_setopt(s->curl, CURLOPT_CURLU, s->url);
    curl_easy_setopt(s->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->list);
    curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, st_strbuf_str(&s->body));
    curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->body.n);
    return 0;
}

static int make_mail(st_sending *s, const st_letter *l, st_err *err)
{
    const st_courier *c = s->courier;
    int r = st_courier_mail(c, l->to, err);

    if (r < 0)
        return r;
    st_courier_message(c->from, l->to, l->subject, l->text, l->id, l->seconds, &s->body);
    s->list = curl_slist_append(NULL, l->to);
    curl_easy_setopt(s->curl, CURLOPT_URL, c->smtp);
    curl_easy_setopt(s->curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    curl_easy_setopt(s->curl, CURLOPT_MAIL_FROM, c->from);
    curl_easy_setopt(s->curl, CURLOPT_MAIL_RCPT, s->list);
    curl_easy_setopt(s->curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(s->curl, CURLOPT_READFUNCTION, give);
    curl_easy_setopt(s->curl, CURLOPT_READDATA, s);
    /* A password goes over nothing but TLS. */
    curl_easy_setopt(s->curl, CURLOPT_USE_SSL, (long)(c->login ? CURLUSESSL_ALL : CURLUSESSL_TRY));
    if (c->login) {
        ST_CLEANUP(st_freep) char *user = st_xstrndup(c->login, strcspn(c->login, ":"));

        curl_easy_setopt(s->curl, CURLOPT_USERNAME, user);
        curl_easy_setopt(s->curl, CURLOPT_PASSWORD, strchr(c->login, ':') + 1);
    }
    return 0;
}

int st_sending_new(const st_courier *c, const st_letter *letter, st_sending **ret, st_err *err)
{
    st_sending *s = st_xcalloc(1, sizeof *s);
    int r;

    s->courier = c;
    s->mail = letter->mail;
    s->curl = curl_easy_init();
    s->url = curl_url();
    if (!s->curl || !s->url)
        r = st_fail(err, ST_EINTERNAL, "no memory for a connection");
    else
        r = letter->mail ? make_mail(s, letter, err) : make_webhook(s, letter, err);
    if (r < 0) {
        st_sending_free(s);
        return r;
    }
    curl_easy_setopt(s->curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(s->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(s->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(s->curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s->curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(s->curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(s->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(s->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(s->curl, CURLOPT_TIMEOUT, (long)ALL_S);
    curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, throw_away);
    curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(s->curl, CURLOPT_HEADERFUNCTION, throw_away);
    curl_easy_setopt(s->curl, CURLOPT_HEADERDATA, s);
    curl_easy_setopt(s->curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(s->curl, CURLOPT_OPENSOCKETDATA, s);
    curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->why);
    curl_easy_setopt(s->curl, CURLOPT_PRIVATE, s);
    if (c->ca)
        curl_easy_setopt(s->curl, CURLOPT_CAINFO, c->ca);
    *ret = s;
    return 0;
}

void st_sending_free(st_sending *s)
{
    if (!s)
        return;
    curl_easy_cleanup(s->curl);
    curl_url_cleanup(s->url);
    curl_slist_free_all(s->list);
    st_strbuf_done(&s->body);
    free(s);
}

CURL *st_sending_handle(st_sending *s)
{
    return s->curl;
}

int st_sending_end(st_sending *s, CURLcode code, long *ret_status, st_err *err)
{
    long status = 0;

    curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
    *ret_status = status;
    if (s->refused)
        return st_fail(err, ST_EPERM,
                       "the host has a private address, which this site does not allow "
                       "(notice_networks)");
    /* One that answers at length has answered. */
    if (code != CURLE_OK && (s->mail || !s->full || code != CURLE_WRITE_ERROR))
        return st_fail(err, ST_EIO, "%.200s", s->why[0] ? s->why : curl_easy_strerror(code));
    if (!s->mail && status >= 300 && status < 400)
        return st_fail(err, ST_EIO, "it answered %ld; redirects are not followed", status);
    if (!s->mail && (status < 200 || status > 299))
        return st_fail(err, ST_EIO, "it answered %ld", status);
    return 0;
}
