/* See witness.h. */
#include "stintd/witness.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "proof/proof.h"

#define LOOK_S     5     /* between two looks for a new head */
#define CONNECT_S  5     /* to be connected */
#define POST_S     10    /* for all of it */
#define ANSWER_MAX 65536 /* bytes, that are thrown away */

struct st_witness {
    st_api *api;
    char *url;
    st_witness_log log;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    int64_t posted; /* the size of the last head that was taken; -1: none yet */
    bool failing;
};

int st_witness_check(const char *url, st_err *err)
{
    bool plain = strncmp(url, "http://", 7) == 0, tls = strncmp(url, "https://", 8) == 0;
    const char *host = url + (tls ? 8 : 7);

    if ((!plain && !tls) || !*host || *host == '/')
        return st_fail(err, ST_EINVAL,
                       "witness: %.200s is not an address such as "
                       "https://witness.example/heads",
                       url);
    if (memchr(host, '@', strcspn(host, "/")))
        return st_fail(err, ST_EINVAL,
                       "witness: the address must not have a user or password in it");
    return 0;
}

static size_t throw_away(char *data, size_t size, size_t n, void *ctx)
{
    size_t *seen = ctx;

    (void)data;
    *seen += size * n;
    return *seen > ANSWER_MAX ? 0 : size * n;
}

static int post(const st_witness *w, const char *text, st_err *err)
{
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    char why[CURL_ERROR_SIZE] = "";
    size_t seen = 0;
    long status = 0;
    CURLcode rc;

    if (!curl || !headers) {
        curl_easy_cleanup(curl);
        curl_slist_free_all(headers);
        return st_fail(err, ST_EINTERNAL, "no memory for a connection");
    }
    curl_easy_setopt(curl, CURLOPT_URL, w->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)POST_S);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, throw_away);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &seen);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    rc = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    if (rc != CURLE_OK)
        return st_fail(err, ST_EIO, "%.200s", why[0] ? why : curl_easy_strerror(rc));
    if (status < 200 || status > 299)
        return st_fail(err, ST_EIO, "it answered %ld", status);
    return 0;
}

static void say(st_witness *w, bool fails, int64_t size, const st_err *err)
{
    char line[400];

    if (fails == w->failing && (fails || w->posted >= 0))
        return; /* once each way */
    w->failing = fails;
    if (fails)
        snprintf(line, sizeof line, "event=witness_away reason=\"%.250s\"", err->msg);
    else
        snprintf(line, sizeof line, "event=witness_has size=%" PRId64, size);
    w->log(w->ctx, line);
}

static void look(st_witness *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_log_head head;
    st_err err = {0};
    int r = st_api_log_head(w->api, &head, &err);

    if (r == 0 && (head.size == 0 || head.size == w->posted))
        return;
    if (r == 0) {
        st_log_head_write(&head, &text);
        r = post(w, st_strbuf_str(&text), &err);
    }
    say(w, r < 0, head.size, &err);
    if (r == 0)
        w->posted = head.size;
}

static void *loop(void *arg)
{
    st_witness *w = arg;
    struct timespec until;

    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        pthread_mutex_unlock(&w->lock);
        look(w);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOOK_S;
        pthread_mutex_lock(&w->lock);
        while (!w->stop && pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT)
            continue;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int st_witness_new(const char *url, st_api *api, st_witness_log log, void *ctx, st_witness **ret,
                   st_err *err)
{
    st_witness *w;
    pthread_condattr_t attr;
    int r = st_witness_check(url, err);

    if (r < 0)
        return r;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return st_fail(err, ST_EINTERNAL, "libcurl cannot be used");
    w = st_xcalloc(1, sizeof *w);
    w->api = api;
    w->url = st_xstrdup(url);
    w->log = log;
    w->ctx = ctx;
    w->posted = -1;
    ST_ASSERT(pthread_mutex_init(&w->lock, NULL) == 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&w->wake, &attr) == 0);
    pthread_condattr_destroy(&attr);
    r = pthread_create(&w->thread, NULL, loop, w);
    if (r != 0) {
        free(w->url);
        free(w);
        return st_fail(err, ST_EINTERNAL, "the witness's thread cannot be started (%d)", r);
    }
    *ret = w;
    return 0;
}

void st_witness_free(st_witness *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->url);
    free(w);
    curl_global_cleanup();
}
