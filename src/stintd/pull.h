/*
 * Images from registries (doc/run/nodes.md): skopeo, as the user of stintd, copies one into an OCI layout below the site's folder of
 * images, which every node has at the same path. A layout is called by the digest of its manifest, so the same image is there
 * once, and what an image was does not change. Agents check it against its digest and unpack it as one that the owner has put
 * there (run/image.h).
 *
 * Only registries of the configuration are asked, by their name and port as they stand there.
 */
#ifndef ST_STINTD_PULL_H
#define ST_STINTD_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

typedef struct st_pull {
    const char *dir;        /* where layouts are; a whole path. NULL: nothing is pulled */
    const char *registries; /* HOST[:PORT], parted by blanks or commas; NULL: none */
    const char *policy;     /* file of signatures that are asked for; NULL: none are */
    const char *signatures; /* folder that says where signatures are; NULL: the machine's */
    const char *auth;       /* file of logins; NULL: none */
    const char *skopeo;     /* the program */
    bool (*ends)(void *ctx);
    void *ctx;
} st_pull;

/* Whether the configuration makes sense. */
int st_pull_check(const st_pull *p, st_err *err);
/* Takes long. *ret_path is the layout, *ret_digest that of its manifest. */
int st_pull_image(const st_pull *p, const char *from, st_strbuf *ret_path, char ret_digest[72],
                  st_err *err);

#endif
