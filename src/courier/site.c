/* What the site allows (courier.h). Hosts are compared as curl reads them: in small letters, numbers as four decimals. */
#include "courier/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"

#define LOGIN_MAX 400

/* The next word of a list; NULL at the end. */
static char *next_word(const char **at)
{
    size_t n;

    *at += strspn(*at, ", \t\r\n");
    n = strcspn(*at, ", \t\r\n");
    if (n == 0)
        return NULL;
    *at += n;
    return st_xstrndup(*at - n, n);
}

static void lower(char *s)
{
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            *s = (char)(*s + ('a' - 'A'));
}

/* [http://]HOST[:PORT] */
static int add_host(st_courier *c, char *word, st_err *err)
{
    st_courier_host h = {.plain = strncmp(word, "http://", 7) == 0};
    char *host = word + (h.plain ? 7 : strncmp(word, "https://", 8) == 0 ? 8 : 0);
    char *colon = strrchr(host, ':'), *end = NULL;
    char q[ST_QUOTE_MAX];
    long port = h.plain ? 80 : 443;

    if (colon && colon[1] && !strchr(colon, ']')) {
        port = strtol(colon + 1, &end, 10);
        *colon = '\0';
    }
    lower(host);
    if ((end && *end) || port < 1 || port > 65535 || !*host || strpbrk(host, "/@?#") ||
        strstr(host, "**") || (strchr(host, '*') && strncmp(host, "*.", 2) != 0) ||
        strchr(host + 1, '*'))
        return st_fail(err, ST_EINVAL,
                       "notice_hosts: %s is no host such as hooks.example.com, *.example.com or "
                       "hooks.example.com:8443",
                       st_quote(q, word));
    h.port = (int)port;
    h.host = st_xstrdup(host);
    st_vec_push(&c->hosts, h);
    return 0;
}

static int read_hosts(st_courier *c, const char *list, st_err *err)
{
    int r = 0;

    while (r == 0 && list) {
        ST_CLEANUP(st_freep) char *word = next_word(&list);

        if (!word)
            break;
        r = add_host(c, word, err);
    }
    return r;
}

static int read_networks(st_courier *c, const char *list, st_err *err)
{
    char q[ST_QUOTE_MAX];

    while (list) {
        ST_CLEANUP(st_freep) char *word = next_word(&list);
        st_network net;

        if (!word)
            break;
        if (!st_network_read(word, &net))
            return st_fail(err, ST_EINVAL, "notice_networks: %s is no network such as 10.2.0.0/16",
                           st_quote(q, word));
        st_vec_push(&c->networks, net);
    }
    return 0;
}

/* A part before the @ of which no server and no shell makes anything else. */
static bool is_mail(const char *address)
{
    const char *at = strchr(address, '@');

    if (!at || at == address || !at[1] || strlen(address) > ST_COURIER_MAIL_MAX ||
        address[0] == '-' || address[0] == '.')
        return false;
    for (const char *p = address; *p; p++)
        if (p != at && !(*p >= '0' && *p <= '9') && !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') &&
            !strchr(p < at ? "._+-" : ".-", *p))
            return false;
    return true;
}

static int read_mail(st_courier *c, const st_courier_options *o, st_err *err)
{
    const char *list = o->domains;

    if (!o->smtp)
        return 0;
    if (strncmp(o->smtp, "smtp://", 7) != 0 && strncmp(o->smtp, "smtps://", 8) != 0)
        return st_fail(err, ST_EINVAL,
                       "notice_mail: %.200s is no address such as smtp://mail.example.com:25",
                       o->smtp);
    if (strchr(o->smtp, '@'))
        return st_fail(err, ST_EINVAL,
                       "notice_mail: the address must not have a password in it; put it into the "
                       "file that notice_mail_login names");
    if (!o->from || !is_mail(o->from))
        return st_fail(err, ST_EINVAL,
                       "notice_mail needs notice_mail_from, for example stint@example.com");
    c->smtp = st_xstrdup(o->smtp);
    c->from = st_xstrdup(o->from);
    while (list) {
        char *word = next_word(&list);

        if (!word)
            break;
        lower(word);
        st_vec_push(&c->domains, word);
    }
    return 0;
}

static int read_login(st_courier *c, const char *path, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = path ? st_file_read(path, LOGIN_MAX, &text, err) : 0;

    if (r < 0 || !path)
        return r;
    c->login = st_xstrndup(st_strbuf_str(&text), strcspn(st_strbuf_str(&text), "\r\n"));
    explicit_bzero(text.s, text.cap);
    return strchr(c->login, ':') ? 0
                                 : st_fail(err, ST_EINVAL,
                                           "notice_mail_login: the first line of %.200s must be "
                                           "USER:PASSWORD",
                                           path);
}

int st_courier_new(const st_courier_options *options, st_courier **ret, st_err *err)
{
    ST_CLEANUP(st_courier_freep) st_courier *c = st_xcalloc(1, sizeof *c);
    int r = read_hosts(c, options->hosts, err);

    if (r == 0)
        r = read_networks(c, options->networks, err);
    if (r == 0)
        r = read_mail(c, options, err);
    if (r == 0)
        r = read_login(c, options->smtp_login, err);
    if (r == 0 && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        r = st_fail(err, ST_EINTERNAL, "libcurl cannot be used");
    if (r < 0)
        return r;
    c->curl = true;
    c->ca = options->ca ? st_xstrdup(options->ca) : NULL;
    *ret = ST_TAKE(c);
    return 0;
}

void st_courier_free(st_courier *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->hosts.n; i++)
        free(c->hosts.v[i].host);
    for (size_t i = 0; i < c->domains.n; i++)
        free(c->domains.v[i]);
    st_vec_free(&c->hosts);
    st_vec_free(&c->networks);
    st_vec_free(&c->domains);
    if (c->login)
        explicit_bzero(c->login, strlen(c->login));
    free(c->login);
    free(c->ca);
    free(c->smtp);
    free(c->from);
    if (c->curl)
        curl_global_cleanup();
    free(c);
}

static bool host_is(const st_courier_host *h, const char *host)
{
    size_t n = strlen(host), m;

    if (h->host[0] != '*')
        return strcmp(h->host, host) == 0;
    m = strlen(h->host + 1); /* ".example.com" */
    return n > m && strcmp(host + n - m, h->host + 1) == 0;
}

/* What curl would connect to, and the address as it understands it. */
static int take_apart(CURLU *u, const char *url, bool *ret_plain, char **ret_host, int *ret_port,
                      st_err *err)
{
    char *scheme = NULL, *user = NULL, *password = NULL, *port = NULL, *fragment = NULL;
    int r = 0;

    if (strlen(url) > ST_COURIER_URL_MAX || !st_text_honest(url) || strpbrk(url, " \\\r\n\t"))
        r = st_fail(err, ST_EINVAL, "a webhook is an address without blanks, of %d bytes at most",
                    ST_COURIER_URL_MAX);
    else if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
             curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
             curl_url_get(u, CURLUPART_HOST, ret_host, 0) != CURLUE_OK ||
             curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
             (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0))
        r = st_fail(err, ST_EINVAL,
                    "a webhook is an address such as https://hooks.example.com/path");
    (void)curl_url_get(u, CURLUPART_USER, &user, 0);
    (void)curl_url_get(u, CURLUPART_PASSWORD, &password, 0);
    (void)curl_url_get(u, CURLUPART_FRAGMENT, &fragment, 0);
    if (r == 0 && (user || password || fragment))
        r = st_fail(err, ST_EINVAL,
                    "a webhook's address has no user, no password and no # in it; what is signed "
                    "needs none");
    if (r == 0) {
        *ret_plain = strcmp(scheme, "http") == 0;
        *ret_port = (int)strtol(port, NULL, 10);
        lower(*ret_host);
    }
    curl_free(scheme);
    curl_free(user);
    curl_free(password);
    curl_free(port);
    curl_free(fragment);
    return r;
}

int st_courier_parse(const st_courier *c, CURLU *u, const char *url, char host[ST_COURIER_HOST_MAX],
                     st_err *err)
{
    char *name = NULL, q[ST_QUOTE_MAX];
    bool plain = false, there = false, any = false;
    int port = 0, r = take_apart(u, url, &plain, &name, &port, err);

    if (r == 0 && strlen(name) >= ST_COURIER_HOST_MAX)
        r = st_fail(err, ST_EINVAL, "the host of the webhook is too long");
    for (size_t i = 0; r == 0 && i < c->hosts.n && !there; i++) {
        const st_courier_host *h = &c->hosts.v[i];

        any = any || host_is(h, name);
        there = host_is(h, name) && h->port == port && h->plain == plain;
    }
    if (r == 0 && !there && any)
        r = st_fail(err, ST_EPERM,
                    "webhooks to %s may not use %s on port %d; ask the site's admin "
                    "(notice_hosts)",
                    st_quote(q, name), plain ? "http" : "https", port);
    else if (r == 0 && !there)
        r = st_fail(err, ST_EPERM,
                    "webhooks may not go to %s; ask the site's admin to list the host "
                    "(notice_hosts)",
                    st_quote(q, name));
    if (r == 0 && host)
        snprintf(host, ST_COURIER_HOST_MAX, "%s", name);
    curl_free(name);
    return r;
}

int st_courier_url(const st_courier *c, const char *url, char host[ST_COURIER_HOST_MAX],
                   st_err *err)
{
    CURLU *u = curl_url();
    int r = u ? st_courier_parse(c, u, url, host, err)
              : st_fail(err, ST_EINTERNAL, "no memory for an address");

    curl_url_cleanup(u);
    return r;
}

int st_courier_mail(const st_courier *c, const char *address, st_err *err)
{
    const char *at = strchr(address, '@');
    char q[ST_QUOTE_MAX];

    if (!c->smtp)
        return st_fail(err, ST_EPERM,
                       "this site sends no mail; ask its admin (notice_mail), or use a webhook");
    if (!is_mail(address))
        return st_fail(err, ST_EINVAL, "%s is no mail address such as ada@example.com",
                       st_quote(q, address));
    for (size_t i = 0; i < c->domains.n; i++)
        if (strcasecmp(at + 1, c->domains.v[i]) == 0)
            return 0;
    return st_fail(err, ST_EPERM,
                   "mail may not go to %s; ask the site's admin to list its domain "
                   "(notice_mail_domains)",
                   st_quote(q, at + 1));
}
