/*
 * Reading the configuration again (reload.c), and what st_serve lends to it. Private to src/stintd.
 */
#ifndef ST_STINTD_RELOAD_H
#define ST_STINTD_RELOAD_H

#include "stintd/stintd.h"

#define ST_RELOAD_KEYS 128

/* Keys of the table, which live as long as the program. */
typedef struct st_reloaded {
    const char *changed[ST_RELOAD_KEYS]; /* in force now */
    int nchanged;
    const char *restart[ST_RELOAD_KEYS]; /* from the next start on */
    int nrestart;
} st_reloaded;

/* One at a time; the caller sees to it. */
int st_reload(st_serve *serve, st_reloaded *ret, st_err *err);
void st_reload_json(const st_reloaded *r, st_strbuf *out);
/* To the log. */
void st_reload_say(const st_reloaded *r);

/* serve.c */
st_config *st_serve_config(st_serve *serve);
int st_serve_read_config(st_serve *serve, st_config *ret, st_err *err);
int st_serve_read_tls(st_serve *serve, st_err *err);
int st_serve_policy(st_serve *serve, const st_policy *policy, st_err *err);
int st_serve_remedies(st_serve *serve, st_err *err);

#endif
