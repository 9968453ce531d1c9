/*
 * Who a node is: its key, made on it and never sent, and its voice, which begins with the agent
 * (model/proof.h, doc/decisions/0021).
 */
#ifndef ST_AGENT_IDENT_H
#define ST_AGENT_IDENT_H

#include "base/err.h"
#include "base/strbuf.h"
#include "model/proof.h"

typedef struct st_ident {
    unsigned char secret[ST_SECRET_BYTES];
    char key[ST_KEY_TEXT]; /* the public one */
    char boot[ST_BOOT_TEXT];
    char session[ST_SESSION_TEXT]; /* "": none was given yet */
    uint64_t n;                    /* messages of it */
    bool fresh;                    /* the key was made just now: nobody knows it */
} st_ident;

/* Reads DIR/node.key (0600), or makes it. A file that is no key is refused, not replaced. */
int st_ident_open(st_ident *id, const char *dir, bool sync, st_err *err);
void st_ident_done(st_ident *id);

/* Messages are of this session from now on. */
void st_ident_session(st_ident *id, const char *session);
/* The proof of the next message; without a session, or with a challenge, of an answer to that. */
void st_ident_prove(st_ident *id, const char *name, const char *challenge, const char *method,
                    const char *target, const void *body, size_t len, st_strbuf *out);

#endif
