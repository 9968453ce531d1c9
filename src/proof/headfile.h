/* A kept head of the log of checkpoints, for checking offline: lines of JSON.
 *
 *   head         signed by the cluster
 *   cosigned ... by witnesses, each about this head or an earlier one
 *   goes_on ...  from an earlier size, the hashes that prove that this head goes on from it
 *
 * The first line alone is a file too. */
#ifndef ST_PROOF_HEADFILE_H
#define ST_PROOF_HEADFILE_H

#include "proof/proof.h"

#define ST_HEADFILE_MAX  (1 << 20)
#define ST_WITNESSES_MAX 64

typedef struct st_goes_on {
    int64_t from;
    st_hashes more;
} st_goes_on;

typedef struct st_headfile {
    st_log_head head;
    ST_VEC(st_cosign) cosigns;
    ST_VEC(st_goes_on) proofs;
} st_headfile;

void st_headfile_done(st_headfile *f);
void st_headfile_write(const st_headfile *f, st_strbuf *out);
int st_headfile_read(const char *text, size_t len, st_headfile *ret, st_err *err);
/* Whether text begins as one. */
bool st_headfile_is(const char *text, size_t len);

/* Everything in it holds: the head is signed, by `key` where one is given; each witness's signature fits, and the head goes on
 * from what they signed. Where given, `witness` is one of them, and the head goes on from `old`. ST_ECORRUPT with what is
 * wrong. */
int st_headfile_verify(const st_headfile *f, const unsigned char *key, const unsigned char *witness,
                       const st_log_head *old, st_err *err);

#endif
