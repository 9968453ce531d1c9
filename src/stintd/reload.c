/*
 * The configuration is read again while stintd runs: on SIGHUP, and when an owner asks for it.
 *
 * 1 A file that cannot be read, or a value that cannot be taken, changes nothing at all.
 * 2 What can change while stintd runs changes now; every other key that differs is named, and counts from the next start on.
 * 3 What is in force is always what st_serve_config says: a key that was named stays as it is there, and is named again.
 *
 * Certificates are read again too, from the files that were configured at the start.
 */
#include "stintd/reload.h"

#include <stdio.h>
#include <string.h>

#include "stintd/remedy.h"

/* Keys that change while stintd runs; the others are somebody's address, file or size. */
static const char *const live[] = {"policy",         "quota",   "quota_total",   "remedy",
                                   "remedy_timeout", "anomaly", "anomaly_floor", "anomaly_days"};

static bool is_live(const char *key)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(live); i++)
        if (strcmp(live[i], key) == 0)
            return true;
    return false;
}

static bool changed(const st_reloaded *r, const char *key)
{
    for (int i = 0; i < r->nchanged; i++)
        if (strcmp(r->changed[i], key) == 0)
            return true;
    return false;
}

static void compare(const st_config *was, const st_config *is, st_reloaded *ret)
{
    const char *key;
    size_t at = 0;

    *ret = (st_reloaded){0};
    while ((key = st_config_changed(was, is, &at))) {
        if (is_live(key) && ret->nchanged < ST_RELOAD_KEYS)
            ret->changed[ret->nchanged++] = key;
        else if (ret->nrestart < ST_RELOAD_KEYS)
            ret->restart[ret->nrestart++] = key;
    }
}

typedef struct anomaly_change {
    st_cmd cmd;
    st_anomaly_options options;
} anomaly_change;

static int run_anomaly(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)tx, (void)cmd, (void)err;
    return 0;
}

static void publish_anomaly(st_control *ctl, st_cmd *cmd)
{
    st_control_set_anomaly(ctl, &((anomaly_change *)cmd)->options);
}

static void set_anomaly(st_serve *serve, const st_config *c)
{
    anomaly_change change = {.cmd = {.run = run_anomaly, .publish = publish_anomaly},
                             .options = {.times = c->anomaly,
                                         .floor_udollars = c->anomaly_floor * 1000000,
                                         .days = (int)c->anomaly_days}};
    st_err err;

    (void)st_serve_do(serve, &change.cmd, &err); /* a loop that has stopped counts nothing */
}

/* What can be refused comes first, and the scheduler's word comes last of that: it is an event, and is not taken back. */
static int apply(st_serve *serve, st_config *config, const st_config *now, const st_reloaded *r,
                 st_err *err)
{
    bool remedy = changed(r, "remedy") || changed(r, "remedy_timeout");
    int rc = remedy ? st_remedies_check(now->remedy, err) : 0;

    if (rc == 0)
        rc = st_serve_read_tls(serve, err);
    if (rc == 0 && changed(r, "policy"))
        rc = st_serve_policy(serve, &now->policy, err);
    if (rc < 0)
        return rc;
    config->policy = now->policy;
    config->quota = now->quota;
    config->quota_total = now->quota_total;
    if (changed(r, "quota") || changed(r, "quota_total"))
        st_allowance_defaults(st_control_allowance(st_serve_control(serve)), &now->quota,
                              &now->quota_total);
    config->anomaly = now->anomaly;
    config->anomaly_floor = now->anomaly_floor;
    config->anomaly_days = now->anomaly_days;
    set_anomaly(serve, config);
    config->remedy_timeout_ms = now->remedy_timeout_ms;
    if (changed(r, "remedy"))
        config->remedy = now->remedy ? st_arena_strdup(config->arena, now->remedy) : NULL;
    return remedy ? st_serve_remedies(serve, err) : 0;
}

int st_reload(st_serve *serve, st_reloaded *ret, st_err *err)
{
    st_config now, *config = st_serve_config(serve);
    int r;

    st_config_init(&now);
    r = st_serve_read_config(serve, &now, err);
    if (r == 0)
        compare(config, &now, ret);
    if (r == 0)
        r = apply(serve, config, &now, ret, err);
    st_config_done(&now);
    return r;
}

static void add_keys(st_strbuf *out, const char *key, const char *const *keys, int n)
{
    st_strbuf_addf(out, "%s\"%s\":[", out->n > 1 ? "," : "", key);
    for (int i = 0; i < n; i++)
        st_strbuf_addf(out, "%s\"%s\"", i ? "," : "", keys[i]);
    st_strbuf_addc(out, ']');
}

void st_reload_json(const st_reloaded *r, st_strbuf *out)
{
    st_strbuf_addc(out, '{');
    add_keys(out, "changed", r->changed, r->nchanged);
    add_keys(out, "restart_needed", r->restart, r->nrestart);
    st_strbuf_addc(out, '}');
}

void st_reload_say(const st_reloaded *r)
{
    for (int i = 0; i < r->nchanged; i++)
        fprintf(stderr, "event=config_changed key=%s\n", r->changed[i]);
    for (int i = 0; i < r->nrestart; i++)
        fprintf(stderr, "event=restart_needed key=%s\n", r->restart[i]);
    fprintf(stderr, "event=reloaded\n");
}
