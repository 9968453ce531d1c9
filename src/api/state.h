/*
 * The inside of the API. Private to src/api.
 */
#ifndef ST_API_STATE_H
#define ST_API_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/api.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/native.h"
#include "model/proof.h"
#include "rules/rules.h"

typedef struct st_challenges st_challenges;
typedef struct st_moments st_moments;
typedef struct st_hub st_hub;
typedef struct st_park st_park;
typedef struct st_points st_points;
struct st_money_pages;
typedef struct st_sessions st_sessions;
typedef struct st_tunnels st_tunnels;
typedef struct st_usages st_usages;
typedef struct st_work st_work;
typedef struct st_zones st_zones;

struct st_api {
    st_api_options options;
    st_control *control;
    st_directory *dir;
    st_allowance *allowance;
    st_http_server *server, *agents;
    st_route *agent_routes; /* of `agents` */
    atomic_int agent_port;  /* 0: none of its own */
    st_park *agent_park;    /* what waits there for nothing that tenants do */
    st_hub *hub;
    st_rules *rules;
    st_park *park;
    st_tunnels *tunnels;           /* api/tunnels.h */
    atomic_int_fast64_t zoned_ms;  /* when bookings were last held against zone data */
    atomic_int_fast64_t tidied_ms; /* likewise folders of jobs */
    atomic_int_fast64_t pruned_ms; /* when old logs were last looked for */
    st_work *lists;                /* that are read from the store */
    st_work *bodies;               /* of batches, that are read */
    st_work *work;                 /* exports */
    st_work *asks;                 /* questions that are answered at once */
    st_work *lab;                  /* those that are tried out first: dry runs, what-if */
    st_work *files;                /* what waits for the disk of volumes */
    struct st_pulls *pulls;        /* images from registries */
    struct st_fills *fills;        /* how full volumes are (api/volumes.h) */
    st_moments *history;           /* past moments (api/history.c) */
    st_usages *usages;             /* books that are added up (api/usages.h) */
    st_challenges *challenges;
    st_sessions *sessions;              /* of browsers (api/sessions.h) */
    st_zones *zones;                    /* time zones by name */
    st_points *points;                  /* the log of checkpoints */
    struct st_money_pages *money_pages; /* api/money_metrics.h */
    struct st_services_run *services;   /* api/services.h */
    struct st_gate *gate;               /* api/gate.h */
    pthread_mutex_t lock;               /* of the readers */
    ST_VEC(st_store *) readers;         /* idle connections to the store */
};

/* Roles of the table, as bits. */
#define ST_MAY(role)  (1u << (role))
#define ST_MAY_OWNER  ST_MAY(ST_ROLE_OWNER)
#define ST_MAY_ADMIN  (ST_MAY_OWNER | ST_MAY(ST_ROLE_ADMIN))
#define ST_MAY_SUBMIT (ST_MAY_ADMIN | ST_MAY(ST_ROLE_MEMBER))
#define ST_MAY_CALL   (ST_MAY_SUBMIT | ST_MAY(ST_ROLE_CALLER))
#define ST_MAY_AUDIT  (ST_MAY_ADMIN | ST_MAY(ST_ROLE_AUDITOR))
#define ST_MAY_SEE    (ST_MAY_SUBMIT | ST_MAY(ST_ROLE_VIEWER) | ST_MAY(ST_ROLE_AUDITOR))
#define ST_MAY_NODE   ST_MAY(ST_ROLE_NODE)
#define ST_MAY_JOIN   (ST_MAY_NODE | ST_MAY(ST_ROLE_JOIN))

/* Whoever calls. */
typedef struct st_caller {
    st_identity who; /* first */
    bool signed_by;  /* a node with a key: the rest is there */
    bool waiting;    /* its voice is not believed (engine/voices.h) */
    st_proof proof;
    uint64_t session;          /* of a browser; 0: it came with a token */
    int32_t counted;           /* its account's number (state/allowance.h) */
    bool charged[ST_AL_COUNT]; /* what its account pays for until the call is over */
} st_caller;

/* pulls.c */
struct st_pulls *st_pulls_new(st_api *api);
void st_pulls_free(struct st_pulls *p);

/* prove.c: nodes prove themselves (doc/decisions/0021). */
st_challenges *st_challenges_new(void);
void st_challenges_free(st_challenges *c);
/* Whether the text is a challenge that was given out lately and not used; it is used now. */
bool st_challenges_take(st_challenges *c, const char *text, int64_t now);
/* Who sent a proof: fills *ret, or fails with ST_EAUTH. */
int st_api_prove(st_api *api, const char *proof, st_caller *ret, st_err *err);
/* A node with a key is not let in by a token: ST_EAUTH. */
int st_api_unbound(const st_api *api, const st_identity *who, st_err *err);
/* Whether method, target and body are what was signed; false: answered. */
bool st_api_proved(st_api *api, st_call *call);
/* The same for a proof that is not the caller's own. */
bool st_api_digest_is(const st_call *call, const st_proof *proof);
const st_caller *st_api_caller(const st_call *call);
/* One more of what its account has of stintd (state/allowance.h), until the call is over; false: it has as much
 * as it may, and the call is answered. */
bool st_api_charge(st_api *api, st_call *call, st_allowed what);

/* session.c: whose cookie came with the call: 1, 0 where there is none, or ST_EAUTH. */
int st_api_cookie(st_api *api, const st_call *call, st_caller *ret, st_err *err);

/* Who is calling. Copied into the call; good as long as it. */
const st_identity *st_api_who(const st_call *call);
/* Whether the account is the caller's or below. */
bool st_api_sees(st_api *api, const st_call *call, const char *account);
/* The same answer for what is not there and what is not the caller's. */
void st_api_no_such(st_call *call, const char *what, const char *name);

/* A connection of the store for reading, for the length of a handler. */
st_store *st_api_reader(st_api *api, st_err *err);
void st_api_reader_back(st_api *api, st_store *reader);

/* zone_moves.c. At every tick: bookings are held against the zone data when it is time to. */
void st_api_zones_follow(st_api *api, int64_t now_ms);

/* Defers the call and runs the handler, which answers, in a thread for lists. */
void st_api_aside(st_api *api, st_call *call, st_handler *fn);

/* Hands a command to the loop, in the lane of the caller's organisation; where it is not taken the call is answered 503 and `cmd` freed by
 * its own done. */
void st_api_post(st_api *api, st_call *call, st_cmd *cmd);
/* keyed.c: what comes with an Idempotency-Key is done once. Part of st_api_post. */
int st_api_key(st_api *api, st_call *call, st_cmd *cmd, st_err *err);

/* Says on an answer behind which row of the log its state stands. */
/* series.c: the end of the last bucket of a width that is there; 0: none is. */
int st_api_series_end(st_store *reader, int64_t width, int64_t *ret, st_err *err);

void st_api_stamp(st_api *api, st_call *call, int64_t position);
/* The same, of what is committed at this moment: before the store is read, or after a write. */
void st_api_stamp_now(st_api *api, st_call *call);

/* devices.c: the map, and jobs by state, of the accounts below `root`; fields of an object. */
void st_api_map_json(const st_core *core, int32_t root, st_strbuf *out);
void st_api_states_json(const st_core *core, int32_t root, st_strbuf *out);

/* history.c */
st_moments *st_moments_new(void);
void st_moments_free(st_moments *h);

/* JSON pieces. */
void st_out_time(st_strbuf *out, const char *key, int64_t ms); /* ,"key":"2026-…Z" or null */
void st_out_text(st_strbuf *out, const char *key, const char *text); /* ,"key":"…" */
void st_out_milli(st_strbuf *out, const char *key, int64_t milli);   /* ,"key":1.5 */
void st_out_int(st_strbuf *out, const char *key, int64_t n);
void st_out_raw(st_strbuf *out, const char *key, const char *json);
void st_out_labels(st_strbuf *out, const char *key, const char *labels); /* ,"key":{…} */
/* ,"key_udollars":1500000,"key":"1.50". Any amount: one micro-dollar less than nothing is no word for "unset". */
void st_out_money(st_strbuf *out, const char *key, int64_t udollars);
/* The same, or null and null where it is not known. */
void st_out_money_if(st_strbuf *out, const char *key, bool known, int64_t udollars);
void st_fmt_time(char buf[32], int64_t ms);

/* A job as `who` may see it; NULL: as in a list, where nobody's private parts are shown. */
void st_api_job_json(st_api *api, const st_identity *who, const st_job_row *row, st_strbuf *out);
/* The name of its priority class; false, and "", where it has none. */
bool st_api_job_class(const st_job_row *row, char ret[ST_NAME_MAX + 1]);
/* Only some of its fields, as bits; read from "id,state". */
void st_api_job_fields(st_api *api, const st_identity *who, const st_job_row *row, uint32_t fields,
                       st_strbuf *out);
int st_api_job_fields_read(const char *text, uint32_t *ret, st_err *err);

/* The moment that a query names: 2026-11-15, 2026-11-15T08:30:00Z, or a duration: so long ago. 0: it names none. */
int st_api_query_time(const st_api *api, const st_call *call, const char *key, int64_t *ret,
                      st_err *err);

/* The job of the path, if the caller may see it; otherwise the call is answered. */
bool st_api_find_job(st_api *api, st_call *call, st_arena *arena, uint64_t *ret_id,
                     st_job_row *ret);
/* Whether the caller may see a job of this id: 0, -ST_ENOENT (*err is left alone), or a fault. */
int st_api_see_job(st_api *api, const st_call *call, const char *text, st_arena *arena,
                   uint64_t *ret_id, st_job_row *ret, st_err *err);

/* expand.c: what a submit becomes. Documents are taken through the rules where they concern them;
 * one may become many. */
typedef struct st_expansion {
    st_api *api;
    const st_identity *who;
    st_arena *arena;
    ST_VEC(st_doc *) docs; /* the specs point into them */
    ST_VEC(st_submit_item) items;
    int arrays;
} st_expansion;

/* Adds the items of one document, or fails. */
int st_expand(st_expansion *x, const st_doc *doc, const st_doc_node *map, st_err *err);
void st_expansion_done(st_expansion *x);

/* after.c: what a document's job is to wait for; and, when the pieces of an array are there, what each of them is. */
int st_api_afters(st_expansion *x, const st_doc *doc, const st_doc_node *map, st_submit_item *item,
                  st_err *err);
int st_api_afters_each(st_expansion *x, size_t first, const st_rules_jobs *jobs, st_err *err);

/* versions.c: whether the conditions of an edit hold for this version of what it changes; else ST_EVERSION. */
int st_api_condition(const st_call *call, const char *version, bool there, const char *what,
                     const char *name, st_err *err);
/* The same of a version that control keeps; `kept` is the document's name there. */
int st_api_condition_of(st_tx *tx, const st_call *call, const char *kind, const char *kept,
                        const char *name, st_err *err);
void st_api_set_version(st_call *call, int64_t version);

/* documents.c: a small document of the site's, on its way into the store. */
typedef struct st_document_change {
    st_cmd_document document;
    st_api *api;
    st_call *call;
    char account[ST_NAME_MAX + 1]; /* whose it is; "": the cluster's */
    char name[ST_NAME_MAX + 1];
    char *kept, *text; /* its name and document in the store */
    json_t *doc;       /* as it came, where it is JSON */
    /* NULL, or in the loop before anything else; may set `kept`. */
    int (*before)(st_tx *tx, struct st_document_change *c, st_err *err);
    int (*put)(st_tx *tx, st_cmd *cmd, st_err *err); /* what st_cmd_document_put gave */
} st_document_change;

/* Of the name in the path. */
st_document_change *st_document_change_new(st_call *call, st_api *api, const char *kind);
/* Answers with the error, or posts the command and answers later. Owns it. */
void st_document_change_post(st_document_change *c, int r, const st_err *err);
/* Whether every account of a list, or NULL, is there: one that is not would be given the document with its name. */
int st_document_accounts_ok(st_api *api, const json_t *said, st_err *err);

/* rules.c: reads rules and sizes from the store. */
int st_api_rules_load(st_api *api, st_err *err);
/* node_life.c: what comes next for a node that does not serve; the key `gpus_out`, where it has some. */
struct st_question;
const char *st_api_node_next(const st_node *n);
void st_api_node_gpus(const struct st_question *q, const st_node *n, st_strbuf *out);
/* agent.c */
#define ST_AGENT_WAIT_S 60 /* how long a list may be waited for */
/* Whether there are agents here; false: answered. */
bool st_api_need_native(const st_api *api, st_call *call);
/* What an agent goes by: epoch, revision, clock, lease. */
void st_api_agent_terms(const st_agent_answer *terms, st_strbuf *out);

/* checkpoints.c: the head as it was at a size; ST_ESTATE: the log has not come so far. */
int st_api_log_head_at(st_api *api, int64_t size, struct st_log_head *ret, st_err *err);
/* witnesses.c: what witnesses have signed last, a JSON array. */
int st_api_cosigned(st_store *reader, st_strbuf *out, st_err *err);

/* checkpoints.c */
st_points *st_points_new(void);
void st_points_free(st_points *p);

/* events.c */
st_hub *st_hub_new(st_api *api);
void st_hub_free(st_hub *hub);
void st_hub_send(st_hub *hub, const st_notice *notice);
size_t st_hub_streams(st_hub *hub);
/* Ends the streams of tokens that open nothing any more. */
void st_hub_check(st_hub *hub, int64_t now);

/* Handlers, by noun. */
st_handler st_api_checkpoints, st_api_checkpoint_proof;
st_handler st_api_neighbours;
st_handler st_api_witnesses, st_api_witness_put, st_api_witness_remove, st_api_cosign;
st_handler st_api_healthz, st_api_readyz, st_api_openapi_doc, st_api_metrics;
st_handler st_api_whoami, st_api_roles;
st_handler st_api_session_begin, st_api_session_end, st_api_session_code;
st_handler st_api_page, st_api_page_file;
st_handler st_api_jobs_submit, st_api_jobs_batch, st_api_jobs_list, st_api_job_get;
st_handler st_api_job_use;
st_handler st_api_job_cancel, st_api_job_patch, st_api_job_why, st_api_job_logs, st_api_whatif;
st_handler st_api_accounts_list, st_api_account_make, st_api_account_get, st_api_account_patch;
st_handler st_api_service_get, st_api_service_set;
st_handler st_api_account_remove;
st_handler st_api_account_quota, st_api_account_usage, st_api_users_list;
st_handler st_api_tokens_list, st_api_token_make, st_api_token_get, st_api_token_revoke;
st_handler st_api_views_list, st_api_view_put, st_api_view_remove;
st_handler st_api_types_list, st_api_type_make, st_api_pools_list, st_api_pool_make;
st_handler st_api_pool_get, st_api_pool_patch;
st_handler st_api_devices_accounts, st_api_devices_use;
st_handler st_api_devices, st_api_counts, st_api_history, st_api_series;
st_handler st_api_nodes_list, st_api_node_make, st_api_node_get, st_api_node_patch;
st_handler st_api_incidents, st_api_incident, st_api_incident_reset;
st_handler st_api_node_remedies;
st_handler st_api_node_test, st_api_node_tests, st_api_node_history;
st_handler st_api_type_limits, st_api_type_limits_patch;
st_handler st_api_node_rejoin, st_api_node_labels, st_api_node_remove, st_api_pool_remove;
st_handler st_api_events, st_api_events_past, st_api_audit_list, st_api_audit_verify;
st_handler st_api_reload, st_api_backup, st_api_clock_get, st_api_clock_accept, st_api_restore_get,
    st_api_restore_accept;
st_handler st_api_service_list, st_api_service_create, st_api_service_show, st_api_service_change,
    st_api_service_restart, st_api_service_remove, st_api_service_figures, st_api_service_call;
st_handler st_api_sizes_list, st_api_size_put, st_api_size_remove;
st_handler st_api_classes_list, st_api_class_put, st_api_class_remove;
st_handler st_api_image_pull;
st_handler st_api_images_list, st_api_image_get, st_api_image_put, st_api_image_remove;
st_handler st_api_rules_list, st_api_rule_put, st_api_rule_remove, st_api_rule_check;
st_handler st_api_array_get, st_api_array_cancel, st_api_array_patch;
st_handler st_api_volumes_list, st_api_volume_get, st_api_volume_put, st_api_volume_remove;
st_handler st_api_chunks_put, st_api_folder_make, st_api_job_files, st_api_job_bytes;
st_handler st_api_files_list, st_api_bytes_get, st_api_bytes_put, st_api_file_remove;
st_handler st_api_secrets_list, st_api_secret_put, st_api_secret_remove, st_api_secrets_rotate;
st_handler st_api_notices_list, st_api_notice_get, st_api_notice_add, st_api_notice_remove,
    st_api_notice_test;
st_handler st_api_join_make, st_api_agent_register, st_api_agent_desired, st_api_agent_status;
st_handler st_api_agent_logs, st_api_agent_challenge, st_api_agent_tunnel;
st_handler st_api_prices_check;
st_handler st_api_tunnel_make, st_api_tunnels_list, st_api_tunnel_connect, st_api_tunnel_end;
st_handler st_api_prices_list, st_api_prices_publish, st_api_plan_get, st_api_plan_put;
st_handler st_api_budget_get, st_api_credit_make, st_api_billing, st_api_reconcile;
st_handler st_api_fleet_cost;
st_handler st_api_fleet_health;
st_handler st_api_issuer_get, st_api_issuer_put, st_api_bill_to_get, st_api_bill_to_put,
    st_api_bill_to_remove;
st_handler st_api_invoices_list, st_api_invoice_get, st_api_invoices_issue, st_api_trial_balance;
st_handler st_api_calendar_windows, st_api_calendar, st_api_calendar_feed, st_api_feed_make;
st_handler st_api_bookings_make, st_api_bookings_list, st_api_booking_get, st_api_booking_confirm,
    st_api_booking_change, st_api_booking_cancel;
st_handler st_api_bills_list, st_api_bill_get, st_api_bill_entries, st_api_forecast, st_api_metered,
    st_api_credits_pending;

/* Whether the caller is of the cluster and not of an account; if not, the call is answered. For reports of the whole fleet. */
bool st_api_is_of_cluster(st_call *call);

#endif
