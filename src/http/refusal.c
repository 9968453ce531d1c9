/*
 * What libmicrohttpd refuses by itself, before anybody here is asked: headers that are none, a Content-Length that is no
 * number, more of either than fits. It would answer in HTML, and in some cases with its headers twice. There is no hook for
 * that, but it queues such an answer as a program would: by MHD_queue_response, which is ours here. The answer is then
 * written to the connection directly, as a problem document, and libmicrohttpd told that there is none, so that it closes
 * the connection.
 *
 * Our own answers go around this (st_mhd_queue). Where the library calls itself directly, which depends on how it was
 * linked, it goes on answering in HTML; a test says so.
 */
#include <dlfcn.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"
#include "http/call.h"

#define UNREAD_MAX (1 << 20)

typedef enum MHD_Result queue_fn(struct MHD_Connection *mhd, unsigned int status,
                                 struct MHD_Response *response);

/* As the program's own, this stands before the library's in the order of search. */
enum MHD_Result MHD_queue_response(struct MHD_Connection *mhd, unsigned int status,
                                   struct MHD_Response *response);

enum MHD_Result st_mhd_queue(struct MHD_Connection *mhd, unsigned int status,
                             struct MHD_Response *response)
{
    union {
        void *found;
        queue_fn *fn;
    } real = {.found = dlsym(RTLD_NEXT, "MHD_queue_response")};

    ST_ASSERT(real.found);
    return real.fn(mhd, status, response);
}

typedef struct refusal {
    unsigned int status;
    st_problem_id problem;
    const char *detail;
} refusal;

static const refusal refusals[] = {
    {400, ST_P_BAD_REQUEST,
     "the request cannot be read: its first line is not METHOD TARGET HTTP/1.1, a header has no "
     "colon, Content-Length is no number, or a piece of the body has no length"},
    {413, ST_P_TOO_LARGE, "Content-Length is more than any body may have"},
    {414, ST_P_TARGET, "path and query have at most %d bytes"},
    {431, ST_P_HEADERS, "request line and headers have at most %d bytes"},
    {505, ST_P_VERSION, "this is a server of HTTP/1.1"},
};

static const refusal *refusal_of(unsigned int status)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(refusals); i++)
        if (refusals[i].status == status)
            return &refusals[i];
    return &refusals[0];
}

static void write_answer(const st_http_options *opt, const refusal *why, const char *id,
                         st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    char detail[200], date[64];
    time_t now = time(NULL);
    struct tm utc;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(detail, sizeof detail, why->detail,
             why->problem == ST_P_TARGET ? opt->target_bytes : opt->header_bytes);
#pragma GCC diagnostic pop
    st_problem_write(&(st_problem){.status = st_problem_status(why->problem),
                                   .code = st_problem_code(why->problem),
                                   .detail = detail},
                     id, &body);
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
    st_strbuf_addf(out,
                   "HTTP/1.1 %d %s\r\nDate: %s\r\nConnection: close\r\n"
                   "Content-Type: application/problem+json\r\nContent-Length: %zu\r\n\r\n%s",
                   st_problem_status(why->problem),
                   MHD_get_reason_phrase_for((unsigned int)st_problem_status(why->problem)), date,
                   body.n, st_strbuf_str(&body));
}

/* Nothing was written behind the last answer, so there is room for this in the socket's buffer; who has none gets none. What
 * the client has sent and nobody will read is taken away: left there, it would cost the client the answer. */
static void send_all(struct MHD_Connection *mhd, int fd, const st_strbuf *out)
{
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    char unread[4096];
    int64_t taken = 0;

    if (tls && tls->tls_session) {
        gnutls_record_send(tls->tls_session, out->s, out->n);
    } else {
        send(fd, out->s, out->n, MSG_DONTWAIT | MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
    }
    while (taken < UNREAD_MAX) {
        ssize_t n = recv(fd, unread, sizeof unread, MSG_DONTWAIT);

        if (n <= 0)
            break;
        taken += n;
    }
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *mhd, unsigned int status,
                                   struct MHD_Response *response)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const refusal *why = refusal_of(status);
    st_conn *conn;

    (void)response;
    if (!info || !info->socket_context)
        return MHD_NO;
    conn = info->socket_context;
    st_stats_reject(conn->server->stats, ST_REJECT_MALFORMED);
    if (conn->call)
        conn->call->status = st_problem_status(why->problem);
    write_answer(&conn->server->opt, why, conn->call ? conn->call->id : NULL, &out);
    send_all(mhd, conn->fd, &out);
    return MHD_NO;
}
