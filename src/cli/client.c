/*
 * The HTTP client (cli/client.h) over libcurl.
 */
#include "cli/client.h"

#include <curl/curl.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/mem.h"
#include "base/quote.h"
#include "cli/pieces.h"
#include "cli/spinner.h"

#define CONNECT_S  10L
#define ANSWER_S   300L
#define BODY_MAX   (256u << 20)
#define TRIES      6
#define PAUSE_MS   200 /* before the second try; doubled each time */
#define POLL_MS    200
#define QUEUE_WAIT 5 /* seconds a server may ask us to wait */

struct st_client {
    st_cli_profile profile;
    CURL *curl;
    FILE *errors;
    long most_s; /* how long an answer may take; 0: as usual */
};

struct st_events {
    CURLM *multi;
    CURL *curl;
    struct curl_slist *headers;
    st_client *client;
    st_sse sse;
    st_response response; /* where it is not a stream */
    st_err err;           /* of the callback */
    bool over;
    CURLcode result; /* once it is over */
};

st_client *st_client_new(st_cli_profile *profile, FILE *errors)
{
    st_client *c = st_xcalloc(1, sizeof *c);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    c->profile = *profile;
    *profile = (st_cli_profile){0};
    c->errors = errors;
    c->curl = curl_easy_init();
    ST_ASSERT(c->curl);
    return c;
}

void st_client_hurry(st_client *client, long most_s)
{
    client->most_s = most_s;
}

void st_client_free(st_client *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->curl);
    st_profile_done(&c->profile);
    free(c);
}

int st_client_open(FILE *errors, st_client **ret, st_err *err)
{
    st_cli_profile p = {0};
    int r = st_profile_now(&p, err);

    if (r == 0)
        *ret = st_client_new(&p, errors);
    return r;
}

const st_cli_profile *st_client_profile(const st_client *client)
{
    return &client->profile;
}

void st_response_done(st_response *r)
{
    st_strbuf_done(&r->body);
}

void st_client_key(char ret[ST_KEY_MAX])
{
    unsigned char bytes[16] = {0};
    ssize_t n = getrandom(bytes, sizeof bytes, 0);

    ST_ASSERT(n == (ssize_t)sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

void st_url_add(st_strbuf *out, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        bool plain = (*s >= '0' && *s <= '9') || (*s >= 'A' && *s <= 'Z') ||
                     (*s >= 'a' && *s <= 'z') || strchr("-._~", *s);

        if (plain)
            st_strbuf_addc(out, (char)*s);
        else
            st_strbuf_addf(out, "%%%02X", *s);
    }
}

void st_url_query(st_strbuf *path, const char *key, const char *value)
{
    if (!value)
        return;
    st_strbuf_addf(path, "%c%s=", strchr(st_strbuf_str(path), '?') ? '&' : '?', key);
    st_url_add(path, value);
}

/* ---- what the server says ---------------------------------------------------------------- */

static int code_of_name(const char *name)
{
#define X(id, string, http, cli, remedy) \
    if (strcmp(name, string) == 0)       \
        return id;
    ST_ERR_TABLE(X)
#undef X
    return 0;
}

static int code_of_status(long status)
{
    switch (status) {
    case 401:
        return ST_EAUTH;
    case 403:
        return ST_EPERM;
    case 404:
        return ST_ENOENT;
    case 409:
        return ST_ESTATE;
    case 412:
    case 428:
        return ST_EVERSION;
    case 413:
        return ST_ELIMIT;
    default:
        return status >= 500 || status == 429 ? ST_EDOWN : ST_EINVAL;
    }
}

static const char *advice(int code, long status)
{
    if (status == 401)
        return " (`stint login` saves another)";
    if (code == ST_EDOWN)
        return " (nothing was changed; try again)";
    return "";
}

int st_client_problem(const st_response *response, const char *url, st_err *err)
{
    json_t *doc = json_loadb(st_strbuf_str(&response->body), response->body.n, 0, NULL);
    const char *name = json_string_value(json_object_get(doc, "code"));
    const char *detail = json_string_value(json_object_get(doc, "detail"));
    const char *place = "body.json:1: "; /* of what was made from flags, and nobody has seen */
    int code = name ? code_of_name(name) : 0, r;

    if (!code)
        code = code_of_status(response->status);
    if (detail && strncmp(detail, place, strlen(place)) == 0)
        detail += strlen(place);
    if (detail && *detail)
        r = st_fail(err, code, "%s%s", detail, advice(code, response->status));
    else
        r = st_fail(err, code, "%s answered with status %ld and no explanation; is that stintd?",
                    url, response->status);
    json_decref(doc);
    return r;
}

/* ---- one request --------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    st_response *r = ctx;

    if (r->body.n + size * n > BODY_MAX)
        return 0;
    st_strbuf_addn(&r->body, data, size * n);
    return size * n;
}

/* The number behind a header of that name; false: it is another one. */
static bool header_number(const char *data, size_t len, const char *name, int64_t *ret)
{
    size_t n = strlen(name);
    char text[24];

    if (len <= n || strncasecmp(data, name, n) != 0)
        return false;
    snprintf(text, sizeof text, "%.*s", (int)ST_MIN(len - n, sizeof text - 1), data + n);
    *ret = ST_MAX(strtoll(text, NULL, 10), 0);
    return true;
}

static bool header_text(const char *data, size_t len, const char *name, char *ret, size_t room)
{
    size_t n = strlen(name);

    if (len <= n || strncasecmp(data, name, n) != 0)
        return false;
    while (n < len && data[n] == ' ')
        n++;
    snprintf(ret, room, "%.*s", (int)(len - n), data + n);
    ret[strcspn(ret, "\r\n")] = '\0';
    return true;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
    st_response *r = ctx;
    size_t len = size * n;
    int64_t number;

    if (header_number(data, len, "retry-after:", &number)) {
        r->retry_after_s = (long)number;
    } else {
        (void)(header_text(data, len, "etag:", r->etag, sizeof r->etag) ||
               header_number(data, len, "stint-log-next:", &r->log.next) ||
               header_number(data, len, "stint-log-stay:", &r->log.stay) ||
               header_number(data, len, "stint-log-newest:", &r->log.newest) ||
               header_text(data, len, "stint-digest:", r->digest, sizeof r->digest) ||
               header_text(data, len, "stint-file-version:", r->version, sizeof r->version));
    }
    return len;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    st_spinner_turn(ctx, NULL);
    return 0;
}

static struct curl_slist *header(struct curl_slist *list, const char *name, const char *value)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0};
    struct curl_slist *longer;

    if (!value)
        return list;
    st_strbuf_addf(&line, "%s: %s", name, value);
    longer = curl_slist_append(list, st_strbuf_str(&line));
    ST_ASSERT(longer);
    explicit_bzero(line.s, line.n);
    return longer;
}

static struct curl_slist *common_headers(const st_client *c)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bearer = {0};
    struct curl_slist *list = NULL;

    if (c->profile.token) {
        st_strbuf_addf(&bearer, "Bearer %s", c->profile.token);
        list = header(NULL, "Authorization", st_strbuf_str(&bearer));
        explicit_bzero(bearer.s, bearer.n);
    }
    return list;
}

/* Address, socket and trust; the same for requests and streams. */
static void aim(const st_client *c, CURL *curl, const char *path)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf url = {0};
    const char *base = c->profile.url;

    if (strncmp(base, "unix:", 5) == 0) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, base + 5);
        st_strbuf_add(&url, "http://localhost");
    } else {
        st_strbuf_addn(&url, base, strlen(base) - (base[strlen(base) - 1] == '/'));
    }
    st_strbuf_add(&url, path);
    curl_easy_setopt(curl, CURLOPT_URL, st_strbuf_str(&url));
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "stint/" ST_VERSION);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    if (c->profile.ca)
        curl_easy_setopt(curl, CURLOPT_CAINFO, c->profile.ca);
}

static int fail_curl(const st_client *c, CURLcode code, const char *said, st_err *err)
{
    const char *url = c->profile.url, *why = said && *said ? said : curl_easy_strerror(code);

    switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return st_fail(err, ST_EDOWN,
                       "cannot reach stintd at %s: %s; is it running, and is the address right?",
                       url, why);
    case CURLE_PEER_FAILED_VERIFICATION:
        return st_fail(err, ST_EAUTH,
                       "%s is not trusted: %s; give the certificate of its authority with `stint "
                       "login --ca FILE` or STINT_CA",
                       url, why);
    case CURLE_SSL_CACERT_BADFILE:
        return st_fail(err, ST_EINVAL, "%s: cannot be used as a list of authorities: %s",
                       c->profile.ca ? c->profile.ca : "the system's certificates", why);
    case CURLE_OPERATION_TIMEDOUT:
        return st_fail(err, ST_EDOWN, "%s did not answer in time: %s", url, why);
    case CURLE_WRITE_ERROR:
        return st_fail(err, ST_ERANGE, "%s answered with more than %u MiB; ask for less", url,
                       BODY_MAX >> 20);
    default:
        return st_fail(err, ST_EDOWN, "the connection to %s broke: %s", url, why);
    }
}

static bool is_lost(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE ||
           code == CURLE_OPERATION_TIMEDOUT;
}

static CURLcode perform(st_client *c, const st_request *q, st_response *ret, char *said)
{
    struct curl_slist *headers = common_headers(c);
    ST_CLEANUP(st_spinner_done) st_spinner spinner;
    CURLcode code;

    if (q->body)
        headers = header(headers, "Content-Type", q->type ? q->type : "application/json");
    headers = header(headers, "If-Match", q->if_match);
    headers = header(headers, "Idempotency-Key", q->key);
    st_spinner_begin(&spinner, c->errors, "waiting for stintd");
    curl_easy_reset(c->curl); /* keeps the connection */
    aim(c, c->curl, q->path);
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, c->most_s ? c->most_s : ANSWER_S);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c->curl, CURLOPT_ERRORBUFFER, said);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, ret);
    curl_easy_setopt(c->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c->curl, CURLOPT_HEADERDATA, ret);
    curl_easy_setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c->curl, CURLOPT_XFERINFODATA, &spinner);
    if (q->body)
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, q->body);
    if (q->body && q->n > 0)
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)q->n);
    if (q->method && strcmp(q->method, "GET") != 0)
        curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, q->method);
    code = curl_easy_perform(c->curl);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_slist_free_all(headers);
    return code;
}

/* The server calls a document "body"; its author knows it as a file. */
static void name_file(const char *file, st_err *err)
{
    static const char *const names[] = {"body:", "body.yaml:", "body.json:"};
    char said[sizeof err->msg];

    for (size_t i = 0; file && i < ST_ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);

        if (strncmp(err->msg, names[i], n) == 0) {
            snprintf(said, sizeof said, "%s", err->msg + n);
            st_fail(err, err->code, "%s:%s", strcmp(file, "-") == 0 ? "stdin" : file, said);
            return;
        }
    }
}

static void pause_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static int call(st_client *client, const st_request *request, st_response *ret, st_err *err)
{
    char said[CURL_ERROR_SIZE];
    int64_t wait_ms = PAUSE_MS;

    for (int try = 1;; try++) {
        st_response r = {0};
        bool again = request->key && try < TRIES;
        CURLcode code;

        said[0] = '\0';
        code = perform(client, request, &r, said);
        if (code == CURLE_OK && r.status >= 200 && r.status < 300) {
            *ret = r;
            return 0;
        }
        /* With a key it makes no difference how often it arrives. */
        if (again && code == CURLE_OK)
            again = (r.status == 503 || r.status == 429) && r.retry_after_s <= QUEUE_WAIT;
        if (!again || (code != CURLE_OK && !is_lost(code))) {
            int e = code == CURLE_OK ? st_client_problem(&r, client->profile.url, err)
                                     : fail_curl(client, code, said, err);

            if (err)
                name_file(request->file, err);
            st_response_done(&r);
            return e;
        }
        pause_ms(ST_MAX(wait_ms, r.retry_after_s * 1000));
        wait_ms *= 2;
        st_response_done(&r);
    }
}

int st_client_call(st_client *client, const st_request *request, st_response *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_request plain = *request;
    int r = st_piece_path(client, request->path, &path, err);

    if (r > 0)
        plain.path = st_strbuf_str(&path);
    return r < 0 ? r : call(client, &plain, ret, err);
}

int st_client_json(st_client *client, const st_request *request, json_t **ret,
                   st_response *ret_response, st_err *err)
{
    st_response response = {0};
    json_error_t bad;
    json_t *doc;
    int r = st_client_call(client, request, &response, err);

    if (r < 0)
        return r;
    doc = json_loadb(st_strbuf_str(&response.body), response.body.n, 0, &bad);
    if (!doc) {
        st_response_done(&response);
        return st_fail(err, ST_EDOWN,
                       "%s answered with something that is not JSON (%s); is that "
                       "stintd?",
                       client->profile.url, bad.text);
    }
    *ret = doc;
    if (ret_response)
        *ret_response = response;
    else
        st_response_done(&response);
    return 0;
}

int st_client_get(st_client *client, const char *path, json_t **ret, st_err *err)
{
    return st_client_json(client, &(st_request){.path = path}, ret, NULL, err);
}

/* ---- streams ------------------------------------------------------------------------------- */

static size_t on_event_bytes(char *data, size_t size, size_t n, void *ctx)
{
    st_events *e = ctx;
    long status = 0;

    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return on_body(data, size, n, &e->response);
    return st_sse_feed(&e->sse, data, size * n, &e->err) < 0 ? 0 : size * n;
}

st_events *st_events_open(st_client *client, const char *path, const char *last_id)
{
    st_events *e = st_xcalloc(1, sizeof *e);

    e->client = client;
    e->multi = curl_multi_init();
    e->curl = curl_easy_init();
    ST_ASSERT(e->multi && e->curl);
    e->headers = header(common_headers(client), "Accept", "text/event-stream");
    e->headers = header(e->headers, "Last-Event-ID", last_id && *last_id ? last_id : NULL);
    aim(client, e->curl, path);
    curl_easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->headers);
    curl_easy_setopt(e->curl, CURLOPT_TCP_KEEPALIVE, 1L); /* a server that vanished is noticed */
    curl_easy_setopt(e->curl, CURLOPT_WRITEFUNCTION, on_event_bytes);
    curl_easy_setopt(e->curl, CURLOPT_WRITEDATA, e);
    curl_multi_add_handle(e->multi, e->curl);
    return e;
}

void st_events_free(st_events *e)
{
    if (!e)
        return;
    curl_multi_remove_handle(e->multi, e->curl);
    curl_easy_cleanup(e->curl);
    curl_multi_cleanup(e->multi);
    curl_slist_free_all(e->headers);
    st_sse_done(&e->sse);
    st_response_done(&e->response);
    free(e);
}

static int ended(st_events *e, st_err *err)
{
    curl_easy_getinfo(e->curl, CURLINFO_RESPONSE_CODE, &e->response.status);
    if (e->err.code) {
        *err = e->err;
        return -err->code;
    }
    if (e->result != CURLE_OK)
        return fail_curl(e->client, e->result, NULL, err);
    if (e->response.status != 200)
        return st_client_problem(&e->response, e->client->profile.url, err);
    return st_fail(err, ST_EDOWN, "%s ended the stream of events", e->client->profile.url);
}

int st_events_next(st_events *e, int timeout_ms, st_sse_event *ret, st_err *err)
{
    int64_t until = st_cli_clock_ms() + timeout_ms;

    for (;;) {
        int64_t left = until - st_cli_clock_ms();
        int running = 0, queued;
        const CURLMsg *msg;

        if (st_sse_take(&e->sse, ret))
            return 1;
        if (e->over)
            return ended(e, err);
        curl_multi_perform(e->multi, &running);
        while ((msg = curl_multi_info_read(e->multi, &queued))) {
            if (msg->msg == CURLMSG_DONE) {
                e->over = true;
                e->result = msg->data.result;
            }
        }
        if (e->over || e->sse.ready.n > 0)
            continue;
        if (left <= 0)
            return 0;
        curl_multi_poll(e->multi, NULL, 0, (int)ST_MIN(left, POLL_MS), NULL);
    }
}
