/*
 * The table of routes: every operation, who may call it, what it takes and gives. The router, the
 * checks of roles and queries, /openapi.json and the isolation test all read this one.
 */
#include "api/state.h"

#define STATES \
    "pending running notified checkpointing paused stopping done failed timeout cancelled"

static const st_query_row audit_query[] = {
    {.name = "by", .type = ST_QUERY_TEXT, .about = "what this user did"},
    {.name = "what",
     .type = ST_QUERY_TEXT,
     .about = "rows of this verb (token.create), or of all of a noun (token)"},
    {.name = "since",
     .type = ST_QUERY_TEXT,
     .about = "from this time on: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago"},
    {.name = "until", .type = ST_QUERY_TEXT, .about = "before this time, likewise"},
    {.name = "limit",
     .type = ST_QUERY_INT,
     .about = "rows at most, 100 unless given, 1000 at most"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "where to go on: `next` of the page before"},
    {0},
};
static const st_query_row jobs_query[] = {
    {.name = "account", .type = ST_QUERY_TEXT, .about = "of this account and those below it"},
    {.name = "user", .type = ST_QUERY_TEXT, .about = "of this user"},
    {.name = "array", .type = ST_QUERY_TEXT, .about = "pieces of this array"},
    {.name = "name", .type = ST_QUERY_TEXT, .about = "whose name contains this"},
    {.name = "state",
     .type = ST_QUERY_WORD,
     .about = "in this state; may be given several times",
     .words = STATES,
     .many = true},
    {.name = "limit",
     .type = ST_QUERY_INT,
     .about = "rows at most, 100 unless given, 1000 at most"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "where to go on: `next` of the page before"},
    {.name = "fields",
     .type = ST_QUERY_TEXT,
     .about = "only these of each job, in one word: id,name,state"},
    {0},
};
static const st_query_row submit_query[] = {
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "keep nothing; say whether it would start or why it would wait"},
    {0},
};
static const st_query_row account_query[] = {
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "keep nothing; say, with status 200, whose floors would shrink"},
    {0},
};
static const st_query_row logs_query[] = {
    {.name = "task", .type = ST_QUERY_INT, .about = "which task, 0 unless given"},
    {.name = "offset", .type = ST_QUERY_INT, .about = "leave out this many bytes"},
    {.name = "stay",
     .type = ST_QUERY_INT,
     .about = "of which start of the job, the last unless given"},
    {.name = "follow",
     .type = ST_QUERY_BOOL,
     .about = "wait until there is more; Stint-Log-Next says from where to go on, "
              "Stint-Log-End that nothing will come"},
    {.name = "wait", .type = ST_QUERY_INT, .about = "seconds to wait, 30 unless given, 60 at most"},
    {0},
};
static const st_query_row counts_query[] = {
    {.name = "account", .type = ST_QUERY_TEXT, .about = "of this account and those below it"},
    {0},
};
static const st_query_row force_query[] = {
    {.name = "force",
     .type = ST_QUERY_BOOL,
     .about = "although it has failed, and what it ran may live until its lease is over"},
    {0},
};
static const st_query_row desired_query[] = {
    {.name = "revision",
     .type = ST_QUERY_INT,
     .about = "the one that is known: answers when there is another"},
    {.name = "wait", .type = ST_QUERY_INT, .about = "seconds to wait for that, 60 at most"},
    {0},
};
static const st_query_row append_query[] = {
    {.name = "offset", .type = ST_QUERY_INT, .about = "of the first byte in what the task wrote"},
    {0},
};
#define BILL_ACCOUNT                                                                        \
    {                                                                                       \
        .name = "account", .type = ST_QUERY_TEXT,                                           \
        .about = "of this account; the caller's own unless given, for an owner all of them" \
    }
static const st_query_row bill_query[] = {
    BILL_ACCOUNT,
    {.name = "format",
     .type = ST_QUERY_WORD,
     .about = "json unless given; html is fit for paper, focus is FOCUS 1.2, file proves itself "
              "(`stint bill verify`)",
     .words = "json csv html focus file"},
    {0},
};
static const st_query_row entries_query[] = {
    BILL_ACCOUNT,
    {.name = "component", .type = ST_QUERY_TEXT, .about = "that posted to this component"},
    {.name = "gpu", .type = ST_QUERY_TEXT, .about = "of this GPU type"},
    {.name = "level",
     .type = ST_QUERY_WORD,
     .about = "at this isolation level",
     .words = "whole mig mps time"},
    {.name = "job", .type = ST_QUERY_TEXT, .about = "of this job"},
    {.name = "format", .type = ST_QUERY_WORD, .about = "json unless given", .words = "json csv"},
    {.name = "limit",
     .type = ST_QUERY_INT,
     .about = "entries at most, 1000 at most; unless given 100, as csv all of them"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "where to go on: `next` of the page before"},
    {0},
};
static const st_query_row metered_query[] = {
    BILL_ACCOUNT,
    {.name = "by",
     .type = ST_QUERY_WORD,
     .about = "added up by user unless given",
     .words = "account user gpu level job day"},
    {0},
};
static const st_query_row forecast_query[] = {BILL_ACCOUNT, {0}};
static const st_query_row token_query[] = {
    {.name = "remove",
     .type = ST_QUERY_BOOL,
     .about = "take it off the list; it must be revoked or have expired"},
    {0},
};
static const st_query_row secret_query[] = {
    {.name = "below",
     .type = ST_QUERY_BOOL,
     .about = "jobs of accounts below may use it too; otherwise those of this account alone"},
    {0},
};
static const st_query_row events_query[] = {
    {.name = "job", .type = ST_QUERY_TEXT, .about = "only events of this job"},
    {0},
};

#define OPEN(method, pattern, fn, id, summary, response)                                      \
    {                                                                                         \
        method, pattern, 0, ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE, fn, id, summary, NULL, NULL, \
            response, 0                                                                       \
    }
#define READ(pattern, roles, fn, id, summary, query, response)              \
    {                                                                       \
        "GET", pattern, roles, 0, fn, id, summary, query, NULL, response, 0 \
    }
/* Answering is work: how many an account has in flight is bounded. */
#define ASK(pattern, roles, fn, id, summary, query, response)                             \
    {                                                                                     \
        "GET", pattern, roles, ST_ROUTE_COSTLY, fn, id, summary, query, NULL, response, 0 \
    }
#define WRITE(method, pattern, roles, flags, fn, id, summary, request, response, status) \
    {                                                                                    \
        method, pattern, roles, flags, fn, id, summary, NULL, request, response, status  \
    }

static const st_route routes[] = {
    OPEN("GET", "/healthz", st_api_healthz, "healthz", "The process answers", "text/plain"),
    OPEN("GET", "/readyz", st_api_readyz, "readyz", "Commands are taken", "text/plain"),
    OPEN("GET", "/openapi.json", st_api_openapi_doc, "openapi", "This document",
         "application/json"),
    ASK("/metrics", ST_MAY_SEE, st_api_metrics, "metrics",
        "Numbers for Prometheus, of the caller's subtree", NULL, "text/plain"),

    READ("/v1/whoami", ST_MAY_SEE | ST_MAY_NODE, st_api_whoami, "whoami",
         "Who the token stands for", NULL, "Identity"),
    READ("/v1/roles", ST_MAY_SEE, st_api_roles, "listRoles", "What each role may", NULL, "Roles"),

    {"POST", "/v1/jobs", ST_MAY_SUBMIT, ST_ROUTE_YAML, st_api_jobs_submit, "submitJob",
     "Submit a job; with dry_run: what would become of it, as a Why with status 200", submit_query,
     "JobSpec", "Submitted|SubmitAnswered", 201},
    WRITE("POST", "/v1/jobs/batch", ST_MAY_SUBMIT, ST_ROUTE_YAML | ST_ROUTE_BIG, st_api_jobs_batch,
          "submitJobs", "Submit up to 10000 jobs; each is taken or refused by itself", "JobBatch",
          "JobBatchResult|JobBatchResult", 201),
    ASK("/v1/jobs", ST_MAY_SEE, st_api_jobs_list, "listJobs", "Jobs, newest first", jobs_query,
        "JobList"),
    READ("/v1/jobs/{id}", ST_MAY_SEE, st_api_job_get, "getJob", "One job", NULL, "Job"),
    WRITE("DELETE", "/v1/jobs/{id}", ST_MAY_SUBMIT, 0, st_api_job_cancel, "cancelJob",
          "Cancel a job", NULL, "Job", 200),
    WRITE("PATCH", "/v1/jobs/{id}", ST_MAY_SUBMIT, 0, st_api_job_patch, "changeJob",
          "Change a job's priority", "JobChange", "Job", 200),
    ASK("/v1/jobs/{id}/why", ST_MAY_SEE, st_api_job_why, "explainJob",
        "Why it waits, what would start it, when it should", NULL, "Why"),
    WRITE("POST", "/v1/whatif", ST_MAY_SUBMIT, ST_ROUTE_YAML | ST_ROUTE_UNCHANGED | ST_ROUTE_COSTLY,
          st_api_whatif, "whatIf",
          "What would become of variants of a job, or of your jobs with other quotas; nothing is "
          "kept",
          "WhatIf", "WhatIfAnswer", 200),
    READ("/v1/jobs/{id}/logs", ST_MAY_SEE, st_api_job_logs, "getJobLogs", "What a task has written",
         logs_query, "text/plain"),

    ASK("/v1/arrays/{id}", ST_MAY_SEE, st_api_array_get, "getArray",
        "How far the pieces of an array are, by state and by frame", NULL, "Array"),
    WRITE("DELETE", "/v1/arrays/{id}", ST_MAY_SUBMIT, 0, st_api_array_cancel, "cancelArray",
          "Cancel all jobs of an array that are not over", NULL, "ArrayCancelled", 200),

    READ("/v1/sizes", ST_MAY_SEE, st_api_sizes_list, "listSizes",
         "Names for shapes: the caller's, those above, the cluster's", NULL, "SizeList"),
    WRITE("PUT", "/v1/sizes/{name}", ST_MAY_ADMIN, ST_ROUTE_CONDITION, st_api_size_put, "putSize",
          "Make or replace a size of the caller's account", "SizeSpec", "NameRef", 200),
    WRITE("DELETE", "/v1/sizes/{name}", ST_MAY_ADMIN, ST_ROUTE_CONDITION, st_api_size_remove,
          "removeSize", "Remove a size of the caller's account", NULL, NULL, 204),
    READ("/v1/images", ST_MAY_SEE, st_api_images_list, "listImages",
         "Images the caller may name in a job; for the owner all, with paths", NULL, "ImageList"),
    READ("/v1/images/{name}", ST_MAY_SEE, st_api_image_get, "getImage", "One image", NULL, "Image"),
    WRITE("PUT", "/v1/images/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_image_put,
          "putImage", "Add an image to the catalogue, or replace one", "ImageSpec", "NameRef", 200),
    WRITE("DELETE", "/v1/images/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_image_remove,
          "removeImage", "Remove an image from the catalogue", NULL, NULL, 204),
    READ("/v1/rules", ST_MAY_OWNER, st_api_rules_list, "listRules",
         "Scripts that every submit goes through, in order", NULL, "RuleList"),
    WRITE("PUT", "/v1/rules/{name}", ST_MAY_OWNER, ST_ROUTE_ANY_BODY | ST_ROUTE_CONDITION,
          st_api_rule_put, "putRule",
          "Make or replace a rule: a Lua script, in force from the next submit on", "RuleText",
          "NameRef", 200),
    WRITE("DELETE", "/v1/rules/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_rule_remove,
          "removeRule", "Remove a rule", NULL, NULL, 204),
    WRITE("POST", "/v1/rules/check", ST_MAY_OWNER, ST_ROUTE_ANY_BODY | ST_ROUTE_UNCHANGED,
          st_api_rule_check, "checkRule", "Whether a script would be taken; nothing is changed",
          "RuleText", NULL, 204),

    ASK("/v1/accounts", ST_MAY_SEE, st_api_accounts_list, "listAccounts",
        "The caller's account and those below it", NULL, "AccountList"),
    {"POST", "/v1/accounts", ST_MAY_ADMIN, ST_ROUTE_YAML, st_api_account_make, "createAccount",
     "Make an account below one's own", account_query, "AccountSpec", "AccountRef", 201},
    ASK("/v1/accounts/{name}", ST_MAY_SEE, st_api_account_get, "getAccount", "One account", NULL,
        "Account"),
    {"PATCH", "/v1/accounts/{name}", ST_MAY_ADMIN, ST_ROUTE_YAML | ST_ROUTE_IF_MATCH,
     st_api_account_patch, "changeAccount",
     "Change quota, weight, limits; what is not mentioned stays", account_query, "AccountSpec",
     "AccountRef", 200},
    WRITE("DELETE", "/v1/accounts/{name}", ST_MAY_ADMIN, ST_ROUTE_CONDITION, st_api_account_remove,
          "removeAccount",
          "Remove an empty account; its tokens are revoked, its money stays in the books", NULL,
          NULL, 204),
    ASK("/v1/accounts/{name}/quota", ST_MAY_SEE, st_api_account_quota, "getQuota",
        "What it is promised, may reach and holds", NULL, "Quota"),
    READ("/v1/accounts/{name}/service-quota", ST_MAY_SEE, st_api_service_get, "getServiceQuota",
         "What it has of the service itself, and may have", NULL, "ServiceQuota"),
    WRITE("PATCH", "/v1/accounts/{name}/service-quota", ST_MAY_ADMIN, ST_ROUTE_YAML,
          st_api_service_set, "changeServiceQuota",
          "Limit what an account below one's own has of the service; what is not mentioned stays",
          "ServiceQuotaChange", "ServiceQuota", 200),
    ASK("/v1/accounts/{name}/usage", ST_MAY_SEE, st_api_account_usage, "getUsage",
        "What its users hold and have used lately", NULL, "Usage"),
    ASK("/v1/accounts/{name}/plan", ST_MAY_SEE, st_api_plan_get, "getPlan",
        "How an account is charged", NULL, "Plan"),
    WRITE("PUT", "/v1/accounts/{name}/plan", ST_MAY_OWNER, ST_ROUTE_YAML | ST_ROUTE_CONDITION,
          st_api_plan_put, "putPlan",
          "Discounts, chargeback, budget and cap of an account and those below it", "PlanSpec",
          "PlanRef", 200),
    READ("/v1/accounts/{name}/secrets", ST_MAY_SEE, st_api_secrets_list, "listSecrets",
         "Names of an account's secrets, and of those above that its jobs may use; never a value",
         NULL, "SecretList"),
    {"PUT", "/v1/accounts/{name}/secrets/{key}", ST_MAY_SUBMIT, ST_ROUTE_ANY_BODY,
     st_api_secret_put, "putSecret",
     "Put a secret: the body is its value, as it is. Members put new ones and change their own",
     secret_query, "SecretValue", "SecretRef", 200},
    WRITE("DELETE", "/v1/accounts/{name}/secrets/{key}", ST_MAY_SUBMIT, 0, st_api_secret_remove,
          "removeSecret", "Remove a secret: no later start of a job gets it", NULL, NULL, 204),
    READ("/v1/accounts/{name}/budget", ST_MAY_SEE, st_api_budget_get, "getBudget",
         "What is spent, on hold and left this month", NULL, "Budget"),
    WRITE("POST", "/v1/accounts/{name}/credits", ST_MAY_OWNER, 0, st_api_credit_make,
          "createCredit", "Give an account money back, with a reason", "CreditSpec", "CreditRef",
          201),
    ASK("/v1/plan", ST_MAY_OWNER, st_api_plan_get, "getClusterPlan",
        "The plan of all accounts that have none of their own or above them", NULL, "Plan"),
    WRITE("PUT", "/v1/plan", ST_MAY_OWNER, ST_ROUTE_YAML | ST_ROUTE_CONDITION, st_api_plan_put,
          "putClusterPlan", "The same, set", "PlanSpec", "PlanRef", 200),
    ASK("/v1/prices", ST_MAY_SEE, st_api_prices_list, "listPrices",
        "Price books, past, present and future", NULL, "PriceList"),
    WRITE("POST", "/v1/prices", ST_MAY_OWNER, ST_ROUTE_YAML, st_api_prices_publish, "publishPrices",
          "Publish a price book, good from now or from a later moment on", "PriceBook", "PriceRef",
          201),
    ASK("/v1/billing", ST_MAY_SEE, st_api_billing, "getBilling",
        "The key that signs bills, the currency, the zone in which months end", NULL, "Billing"),
    ASK("/v1/bills", ST_MAY_SEE, st_api_bills_list, "listBills", "Months that are closed", NULL,
        "MonthList"),
    ASK("/v1/bills/{period}", ST_MAY_SEE, st_api_bill_get, "getBill",
        "The bill of a month (2026-10), or so far (open), of an account and all below it",
        bill_query, "Bill"),
    ASK("/v1/bills/{period}/entries", ST_MAY_SEE, st_api_bill_entries, "listBillEntries",
        "The entries of one account's own book that a line of its bill is made of", entries_query,
        "EntryList"),
    ASK("/v1/bills/{period}/forecast", ST_MAY_SEE, st_api_forecast, "getForecast",
        "What the month will have cost at its end, with an interval, and what each day has cost",
        forecast_query, "Forecast"),
    ASK("/v1/bills/{period}/usage", ST_MAY_SEE, st_api_metered, "getMetered",
        "What was used, added up; from the same entries as the bill", metered_query, "Metered"),
    ASK("/v1/users", ST_MAY_SEE, st_api_users_list, "listUsers", "Who has a token, and its role",
        NULL, "UserList"),

    ASK("/v1/tokens", ST_MAY_SEE, st_api_tokens_list, "listTokens",
        "One's own tokens; for admins, those of the subtree", NULL, "TokenList"),
    WRITE("POST", "/v1/tokens", ST_MAY_ADMIN, ST_ROUTE_SECRET, st_api_token_make, "createToken",
          "Make a token; the secret is in the answer and nowhere else", "TokenSpec", "NewToken",
          201),
    READ("/v1/tokens/{id}", ST_MAY_SEE, st_api_token_get, "getToken", "One token", NULL, "Token"),
    {"DELETE", "/v1/tokens/{id}", ST_MAY_SEE, 0, st_api_token_revoke, "revokeToken",
     "Revoke a token; with remove: take one that is revoked or has expired off the list",
     token_query, NULL, NULL, 204},

    ASK("/v1/types", ST_MAY_SEE, st_api_types_list, "listTypes", "GPU types", NULL, "TypeList"),
    WRITE("POST", "/v1/types", ST_MAY_OWNER, 0, st_api_type_make, "createType",
          "Make a GPU type known; the common ones need only a name", "TypeSpec", "NameRef", 201),
    ASK("/v1/pools", ST_MAY_SEE, st_api_pools_list, "listPools", "Pools", NULL, "PoolList"),
    WRITE("POST", "/v1/pools", ST_MAY_OWNER, 0, st_api_pool_make, "createPool", "Make a pool",
          "PoolSpec", "NameRef", 201),
    ASK("/v1/pools/{name}", ST_MAY_SEE, st_api_pool_get, "getPool", "One pool", NULL, "Pool"),
    WRITE("PATCH", "/v1/pools/{name}", ST_MAY_OWNER, ST_ROUTE_IF_MATCH, st_api_pool_patch,
          "changePool", "Change what a pool allows; what is not mentioned stays", "PoolChange",
          "NameRef", 200),
    ASK("/v1/devices", ST_MAY_SEE, st_api_devices, "mapDevices",
        "All devices, a letter each: what the caller's own have there", NULL, "DeviceMap"),
    ASK("/v1/counts", ST_MAY_SEE, st_api_counts, "countJobs",
        "How many jobs are in each state that is not over, and their GPUs", counts_query,
        "JobCounts"),
    ASK("/v1/nodes", ST_MAY_SEE, st_api_nodes_list, "listNodes",
        "Nodes, with the caller's own jobs on them", NULL, "NodeList"),
    WRITE("POST", "/v1/nodes", ST_MAY_OWNER, 0, st_api_node_make, "createNode",
          "Announce a node (simulated engine)", "NodeSpec", "NameRef", 201),
    ASK("/v1/nodes/{name}", ST_MAY_SEE, st_api_node_get, "getNode", "One node", NULL, "Node"),
    WRITE("PATCH", "/v1/nodes/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_node_patch,
          "changeNode", "Drain a node, take it back, or declare it failed", "NodeChange", "NameRef",
          200),

    {"DELETE", "/v1/nodes/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_node_remove,
     "removeNode", "Remove a node that nobody is on; its name is free", force_query, NULL, NULL,
     204},
    WRITE("DELETE", "/v1/pools/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_pool_remove,
          "removePool", "Remove a pool without nodes", NULL, NULL, 204),
    WRITE("POST", "/v1/nodes/{name}/rejoin", ST_MAY_OWNER, 0, st_api_node_rejoin, "rejoinNode",
          "Let a machine take the node's place with a join token and a new key", NULL, "NameRef",
          200),

    {"GET", "/v1/events", ST_MAY_SEE, ST_ROUTE_STREAM, st_api_events, "streamEvents",
     "What happens in the caller's subtree, as it happens", events_query, NULL, "text/event-stream",
     0},
    ASK("/v1/audit", ST_MAY_AUDIT, st_api_audit_list, "listAudit",
        "Who changed what, newest first, in the caller's subtree", audit_query, "AuditList"),
    ASK("/v1/audit/verify", ST_MAY_OWNER | ST_MAY(ST_ROLE_AUDITOR), st_api_audit_verify,
        "verifyAudit", "Follow the chain of hashes from its start", NULL, "AuditVerdict"),
    OPEN("GET", "/v1/agent/challenge", st_api_agent_challenge, "getChallenge",
         "Something new for an agent to sign when it registers", "Challenge"),
    WRITE("POST", "/v1/agent/register", ST_MAY_JOIN, 0, st_api_agent_register, "registerNode",
          "An agent says what its machine has and becomes a node, or comes back as one",
          "NodeRegistration", "NodeTerms", 201),
    {"GET", "/v1/agent/desired", ST_MAY_NODE, ST_ROUTE_NO_RATE, st_api_agent_desired, "getDesired",
     "What should be on the caller's node; 204 when that has not changed", desired_query, NULL,
     "DesiredState", 0},
    {"POST", "/v1/agent/status", ST_MAY_NODE, ST_ROUTE_NO_RATE | ST_ROUTE_UNCHANGED | ST_ROUTE_BIG,
     st_api_agent_status, "postStatus", "What is on the caller's node; renews its lease", NULL,
     "NodeStatus", "NodeTerms", 0},
    {"POST", "/v1/agent/logs/{job}/{stay}/{task}", ST_MAY_NODE,
     ST_ROUTE_NO_RATE | ST_ROUTE_ANY_BODY | ST_ROUTE_UNCHANGED, st_api_agent_logs, "appendLog",
     "What a task on the caller's node has written", append_query, "application/octet-stream",
     "LogReceipt", 0},

    WRITE("POST", "/v1/admin/join-tokens", ST_MAY_OWNER, ST_ROUTE_SECRET, st_api_join_make,
          "createJoinToken", "Make a token with which machines become nodes", "JoinTokenSpec",
          "JoinToken", 201),
    WRITE("POST", "/v1/admin/reconcile", ST_MAY_OWNER, ST_ROUTE_UNCHANGED, st_api_reconcile,
          "reconcile", "Compare meter, ledger, store and agents' counters", NULL, "Reconciled",
          200),
    WRITE("POST", "/v1/admin/rotate-secrets-key", ST_MAY_OWNER, 0, st_api_secrets_rotate,
          "rotateSecretsKey", "Make a new key of the site and seal everything under it", NULL,
          "Rotated", 200),
    READ("/v1/admin/clock", ST_MAY_OWNER, st_api_clock_get, "getClock",
         "stintd's time, the machine's clock, and whether it is believed", NULL, "Clock"),
    WRITE("POST", "/v1/admin/clock", ST_MAY_OWNER, 0, st_api_clock_accept, "acceptClock",
          "The machine's clock is right: time goes on from there, and months that are over are "
          "closed",
          "ClockAccept", "Clock", 200),
    WRITE("POST", "/v1/admin/backup", ST_MAY_OWNER, 0, st_api_backup, "backup",
          "Write a copy of the store into the folder for backups, under a new name", "BackupSpec",
          "BackupResult", 201),
    {0},
};

const st_route *st_api_routes(void)
{
    return routes;
}

int st_api_openapi(st_strbuf *out, st_err *err)
{
    static const st_openapi_info info = {
        .title = "Stint",
        .version = ST_VERSION,
        .description = "One API for every team that shares the fleet. Callers see their own "
                       "account and those below it; nothing else exists for them.",
        .license = "Apache-2.0",
        .roles = st_role_words,
    };
    return st_openapi_write(&info, routes, st_api_schemas(), out, err);
}
