/*
 * What a site has set up, as files that people review and keep: accounts, pools, quotas, classes, images, sizes, rules,
 * plans, prices. One table says
 * what there is of each, where it is listed and what of it is a setting. Used by admin_export.c and admin_import.c.
 */
#ifndef ST_CLI_SITE_FILES_H
#define ST_CLI_SITE_FILES_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/client.h"

#define ST_SITE_FILE_MAX ((size_t)16 << 20)

typedef enum st_site_put {
    ST_SITE_PATCH, /* made by POST to the list, changed by PATCH */
    ST_SITE_PUT,   /* made and changed by PUT */
    ST_SITE_POST,  /* published: never changed, never taken back */
} st_site_put;

/* In the order in which they are put in place. */
typedef struct st_site_kind {
    const char *name; /* "pools": the file is pools.json, the list /v1/pools and its key "pools" */
    const char *one;  /* "pool" */
    const char *naming; /* the key of its name */
    st_site_put put;
    const char *const *derived; /* keys that are no settings, NULL at the end */
    bool text;                  /* a folder with a file for each, and no JSON */
    const char *of; /* what of each account it is: /v1/accounts/NAME/plan; NULL: it has a list */
} st_site_kind;

#define ST_SITE_ALL "*" /* whose plan those have who have none of their own */

/* Where one is changed. */
void st_site_path(const st_site_kind *kind, const char *name, st_strbuf *out);

extern const st_site_kind st_site_kinds[]; /* without a name at the end */

/* The settings of what the service has, an array in order of names. */
int st_site_fetch(st_client *client, const st_site_kind *kind, json_t **ret, st_err *err);
const char *st_site_name(const st_site_kind *kind, const json_t *row);
/* The row of that name; NULL. */
json_t *st_site_find(const st_site_kind *kind, const json_t *rows, const char *name);

#endif
