/*
 * Sessions of browsers. A person logs in once with a token, or with a code that stands for one, and the browser gets a
 * cookie whose text is known to nobody else: only its hash is kept, here in memory. So a session ends with the program;
 * it ends an hour after its last use, twelve hours after its login, and never outlives its token, which is looked at on
 * every call.
 *
 * A code is for one login, within five minutes, from this machine: `stint console` prints a link with it, so that nobody
 * pastes a token into a page.
 *
 * From any thread.
 */
#ifndef ST_API_SESSIONS_H
#define ST_API_SESSIONS_H

#include "state/directory.h"

#define ST_SESSION_IDLE_MS  (INT64_C(3600) * 1000)
#define ST_SESSION_WHOLE_MS (INT64_C(12) * 3600 * 1000)
#define ST_CODE_MS          (INT64_C(300) * 1000)
#define ST_LOGIN_SECRET     32
#define ST_LOGIN_TEXT       48   /* of a cookie's value or of a code, with the NUL */
#define ST_CODES_EACH       8    /* of one token; the oldest makes room */
#define ST_CODES_MAX        1024 /* likewise */

typedef struct st_sessions st_sessions;

/* `gone` is told of every session that is over, with what its caller counts it by (st_session_begin). */
st_sessions *st_sessions_new(void (*gone)(void *ctx, int32_t counted), void *ctx);
void st_sessions_free(st_sessions *all);
ST_DEFINE_FREEP(st_sessions, st_sessions_free)

/* A new session of `who`; its cookie's value is *ret. Answers its number, which no other ever has and which is not 0. */
uint64_t st_session_begin(st_sessions *all, const st_identity *who, int32_t counted, int64_t now,
                          char ret[ST_LOGIN_TEXT]);
/* Whose cookie this is; 0: nobody's, or it is over. It is used now. Whether its token still opens something is the caller's
 * to ask. */
uint64_t st_session_find(st_sessions *all, const char *text, int64_t now, st_identity *ret);
/* Whether it is not over. */
bool st_session_lives(st_sessions *all, uint64_t number, int64_t now);
void st_session_end(st_sessions *all, uint64_t number);
/* Forgets what is over. */
void st_sessions_sweep(st_sessions *all, int64_t now);
/* When it is over at the latest. */
int64_t st_session_until(int64_t begun);

/* A code for one login as `who`. */
void st_code_make(st_sessions *all, const st_identity *who, int64_t now, char ret[ST_LOGIN_TEXT]);
/* Takes it: a second time it is none. */
bool st_code_take(st_sessions *all, const char *text, int64_t now, st_identity *ret);

#endif
