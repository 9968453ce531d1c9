/*
 * Where notices may go, how they are signed and written, and one attempt to bring one there.
 *
 * Tenants say where their notices go, and stintd's machine reaches more than tenants do. So the site's configuration says which hosts
 * and which domains of mail there are; without it there are none. The address that a connection goes to is looked at when it is made,
 * not when the name was looked up: what the name stands for a moment later does not matter. No redirect is followed, no proxy asked, an
 * attempt takes ten seconds at most, and what is answered is counted and thrown away.
 *
 * It knows nothing of accounts and jobs. A courier does not change after it was made, and may be used from any thread.
 */
#ifndef ST_COURIER_COURIER_H
#define ST_COURIER_COURIER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/strbuf.h"

#define ST_COURIER_URL_MAX  2000
#define ST_COURIER_HOST_MAX 256
#define ST_COURIER_MAIL_MAX 200
#define ST_COURIER_KEY      32 /* bytes of a key */
#define ST_COURIER_KEY_TEXT 64 /* "whsec_…" and the NUL */

/* ---- what the site allows (site.c) ------------------------------------------------------------- */

/* As the configuration has it; lists have commas or blanks between their words. NULL: nothing. */
typedef struct st_courier_options {
    const char *hosts; /* "hooks.example.com", "*.example.com", "host:8443", "http://host:8080" */
    const char *networks;   /* private ones that may be reached: "10.2.0.0/16" */
    const char *ca;         /* file of certificates that are trusted, instead of the system's */
    const char *smtp;       /* "smtp://mail.example.com:25" or "smtps://…" */
    const char *smtp_login; /* file with USER:PASSWORD in its first line */
    const char *from;       /* the sender's address */
    const char *domains;    /* that mail may go to: "example.com" */
} st_courier_options;

typedef struct st_courier st_courier;

int st_courier_new(const st_courier_options *options, st_courier **ret, st_err *err);
void st_courier_free(st_courier *c);
ST_DEFINE_FREEP(st_courier, st_courier_free)

/* Whether a webhook may go there; *host is what others may see of the address. */
int st_courier_url(const st_courier *c, const char *url, char host[ST_COURIER_HOST_MAX],
                   st_err *err);
/* Whether mail may go there. */
int st_courier_mail(const st_courier *c, const char *address, st_err *err);

/* ---- addresses (address.c) --------------------------------------------------------------------- */

/* Whether everybody on the internet could reach it: nothing of this machine, of a private network or of a link. */
bool st_address_public(const struct sockaddr *sa);
/* A network, "10.2.0.0/16"; a number alone is itself. */
typedef struct st_network {
    unsigned char bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
    int bits;
} st_network;
bool st_network_read(const char *text, st_network *ret);
bool st_network_has(const st_network *net, const struct sockaddr *sa);

/* ---- signatures (sign.c) ------------------------------------------------------------------------ */

/* A new key, as receivers are given it. */
void st_courier_key(char ret[ST_COURIER_KEY_TEXT]);
/* "v1,BASE64": HMAC-SHA256 under the key over "ID.SECONDS.BODY". False: that is no key. */
bool st_courier_sign(const char *key, const char *id, int64_t seconds, const char *body,
                     st_strbuf *out);

/* ---- mail (mail.c) -------------------------------------------------------------------------------- */

/* A message with its headers; the subject is one line whatever is in it. */
void st_courier_message(const char *from, const char *to, const char *subject, const char *text,
                        const char *id, int64_t seconds, st_strbuf *out);

/* ---- one attempt (send.c) ----------------------------------------------------------------------- */

typedef struct st_sending st_sending;

typedef struct st_letter {
    const char *id;
    const char *to;             /* an https:// address, or one of mail */
    const char *key;            /* of a webhook */
    const char *body;           /* of a webhook: JSON */
    const char *subject, *text; /* of a mail */
    int64_t seconds;            /* since the epoch: now */
    bool mail;
} st_letter;

/* Ready for curl's multi interface; texts are copied. ST_EPERM: it may not go there (any more). */
int st_sending_new(const st_courier *c, const st_letter *letter, st_sending **ret, st_err *err);
void st_sending_free(st_sending *s);
CURL *st_sending_handle(st_sending *s);
/* What came of it: 0 it was taken; else *err says why not, in words for the tenant. *ret_status: HTTP's or SMTP's, 0 for none. */
int st_sending_end(st_sending *s, CURLcode code, long *ret_status, st_err *err);

#endif
