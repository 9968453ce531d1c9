/*
 * HTTP to stintd without waiting: any number of lines, each with one request at a time, on one
 * curl_multi and one place to wait. A node of an agent has a line for registering and statuses, one
 * for its list and one for logs. All of it belongs to one thread (agent/voice.h).
 */
#ifndef ST_AGENT_LINE_H
#define ST_AGENT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

typedef struct st_lines st_lines;
typedef struct st_agent_line st_agent_line;

typedef struct st_lines_conf {
    const char *url; /* http://… or https://… */
    const char *ca;  /* NULL: those of the system */
} st_lines_conf;

/* What came: status 0 with a sentence in err when nothing did. */
typedef struct st_answer {
    long status;
    const char *body;
    size_t n;
    st_err err;
} st_answer;

typedef void (*st_line_fn)(void *ctx, const st_answer *answer);

int st_lines_new(const st_lines_conf *conf, st_lines **ret, st_err *err);
void st_lines_free(st_lines *lines); /* after its lines */

/* stintd serves agents at this port of its address; where it does not answer, the address itself is used. */
void st_lines_port(st_lines *lines, int port);

/* Where that is now: https://ADDRESS:PORT. */
const char *st_lines_url(const st_lines *lines);

/* Waits for something to happen, timeout_ms at most, and calls whom it concerns. */
void st_lines_wait(st_lines *lines, int timeout_ms);
/* From any thread: the wait ends. */
void st_lines_wake(st_lines *lines);

st_agent_line *st_line_new(st_lines *lines, st_line_fn fn, void *ctx);
void st_line_free(st_agent_line *line);
ST_DEFINE_FREEP(st_agent_line, st_line_free)

bool st_line_busy(const st_agent_line *line);
/* The next request has this in the header Stint-Proof. */
void st_line_prove(st_agent_line *line, const char *proof);
/* token NULL: none is sent; body NULL: a GET. The answer comes within timeout_ms, in st_lines_wait. */
void st_line_ask(st_agent_line *line, const char *path, const char *token, const char *type,
                 const char *body, size_t n, int64_t timeout_ms);
/* Forgets the request; no answer comes. */
void st_line_drop(st_agent_line *line);

#endif
