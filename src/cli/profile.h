/*
 * Where stintd is and who one is there: profiles in ~/.config/stint/config (or $STINT_CONFIG), and
 * the environment, which wins: STINT_PROFILE, STINT_URL, STINT_TOKEN, STINT_CA.
 *
 *     current: default
 *     profiles:
 *       default: {url: "https://stint.example:7878", token: stint_…, ca: /etc/stint/ca.pem}
 *
 * The file holds secrets: it is written with mode 0600 and refused when others can read it. A
 * token is only ever sent to the address it was saved with.
 */
#ifndef ST_CLI_PROFILE_H
#define ST_CLI_PROFILE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define ST_PROFILE_DEFAULT "default"

typedef struct st_cli_profile {
    char *name, *url; /* http://, https:// or unix:PATH */
    char *token, *ca; /* NULL: none */
} st_cli_profile;

typedef struct st_profiles {
    char *current; /* NULL: the one called default */
    ST_VEC(st_cli_profile) all;
} st_profiles;

void st_profile_done(st_cli_profile *p);
void st_profiles_done(st_profiles *p);

/* The file's path. */
int st_profiles_path(st_strbuf *ret, st_err *err);

/* A file that is not there has no profiles. */
int st_profiles_load(const char *path, st_profiles *ret, st_err *err);
int st_profiles_save(const char *path, const st_profiles *profiles, st_err *err);

st_cli_profile *st_profiles_find(const st_profiles *profiles, const char *name);
/* Replaces the one of that name, or adds it; takes what p owns. */
void st_profiles_put(st_profiles *profiles, st_cli_profile *p);
bool st_profiles_remove(st_profiles *profiles, const char *name);

/* What this call is to use: the environment laid over the profile it names, or the current one.
 * Fails when there is no address. */
int st_profile_now(st_cli_profile *ret, st_err *err);

/* Whether an address has a form we can use. */
int st_profile_check_url(const char *url, st_err *err);

#endif
