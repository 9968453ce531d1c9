/*
 * The configuration of stintd: one YAML file, one row per key in a table (config.c), with its
 * kind, default, range and meaning. An unknown key is refused with its line. `stintd --help-config`
 * prints the table.
 */
#ifndef ST_STINTD_CONFIG_H
#define ST_STINTD_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "model/policy.h"
#include "rules/estimate.h"
#include "state/allowance.h"

typedef struct st_config {
    st_arena *arena;
    const char *user;   /* to become when root starts it; NULL: stays who it is */
    const char *store;  /* the database's file */
    const char *listen; /* ADDRESS:PORT */
    const char *socket; /* for local admins; NULL: none */
    const char *cert, *key;
    bool insecure;
    const char *agent_listen; /* "auto", or ADDRESS:PORT; NULL: none */
    const char *engine;       /* "sim", "native" or "auto" */
    const char *logs;         /* the directory for what tasks write; NULL: beside the store */
    int64_t clock_limit_ms, agent_lease_ms, log_mib, log_keep_ms, job_keep_ms, history_keep_ms;
    int64_t series_step_ms, series_keep_ms, series_keep_10_ms, series_keep_60_ms;
    bool agent_keep, shells, forwards;
    int64_t tunnel_idle_ms;
    int64_t connections, strangers, rate, threads, body_mib, snapshot_rows;
    const char *billing_zone, *billing_currency, *billing_cluster;
    const char *billing_key;                      /* NULL: beside the store */
    const char *witness;                          /* NULL: nobody */
    int64_t anomaly, anomaly_floor, anomaly_days; /* times; dollars */
    int64_t credit_alone;    /* dollars that one owner may credit; ST_UNSET: any */
    const char *secrets_key; /* likewise */
    const char *remedy;      /* the site's program that mends nodes; NULL: none */
    int64_t remedy_timeout_ms;
    /* Where notices may go (courier/courier.h); NULL: nowhere. */
    const char *notice_hosts, *notice_networks, *notice_ca;
    const char *notice_mail, *notice_mail_login, *notice_mail_from, *notice_mail_domains;
    int64_t notice_retry_ms, notice_keep_ms;
    st_estimate_rules estimate; /* of the memory of models */
    /* NULL: none */
    const char *images, *registries, *registry_policy, *registry_signatures, *registry_auth;
    int64_t folder_keep_ms, events_keep_ms;
    const char *volumes;    /* NULL: volumes/ beside the store */
    const char *backup_dir; /* NULL: backups/ beside the store */
    st_policy policy;
    st_allowance_limits quota, quota_total; /* of an organisation, of the cluster */
} st_config;

void st_config_init(st_config *config);
void st_config_done(st_config *config);
int st_config_load(st_config *config, const char *path, st_err *err);
/* The keys that differ, one with each call, NULL at the end; begin with *at 0. */
const char *st_config_changed(const st_config *a, const st_config *b, size_t *at);
void st_config_help(st_strbuf *out);

#endif
