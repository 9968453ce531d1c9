/*
 * Answers whose body comes from elsewhere, as fast as their clients take it. Private to src/http.
 */
#ifndef ST_HTTP_PIPE_H
#define ST_HTTP_PIPE_H

#include "http/http.h"

typedef struct st_pipe st_pipe;

#define ST_PIPE_BYTES 65536 /* held for a client that does not take them */

/* Both are called in a thread of the server: the writer was told that there is no room, and there is; and, once, nothing can
 * be sent any more, or all of it is. They must not call back into the pipe. */
typedef struct st_pipe_hooks {
    void (*want)(void *ctx);
    void (*closed)(void *ctx);
    void *ctx;
} st_pipe_hooks;

/* Answers the call, now or after it was deferred, with a body of `length` bytes (-1: that is not known) that the caller writes
 * until st_pipe_end, which must come. Headers that were set go with it. */
st_pipe *st_call_pipe(st_call *call, int status, const char *type, int64_t length,
                      const st_pipe_hooks *hooks);
/* Takes all of it; false: no more before `want`. */
bool st_pipe_write(st_pipe *pipe, const char *bytes, size_t n);
/* That was all; or, with `well` false, the rest will not come and the client's connection is cut. */
void st_pipe_end(st_pipe *pipe, bool well);
/* Now and then: whether a client that waits is still there is found out. */
void st_pipe_check(st_pipe *pipe);

#endif
