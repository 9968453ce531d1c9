/*
 * The table of routes: every operation, who may call it, what it takes and gives. The router, the
 * checks of roles and queries, /openapi.json and the isolation test all read this one.
 */
#include "api/state.h"

#define STATES \
    "pending running notified checkpointing paused stopping done failed timeout cancelled"

static const st_query_row audit_query[] = {
    {.name = "by", .type = ST_QUERY_TEXT, .about = "changes by this user"},
    {.name = "what",
     .type = ST_QUERY_TEXT,
     .about = "changes of this kind (token.create), or of all kinds of a noun (token)"},
    {.name = "since",
     .type = ST_QUERY_TEXT,
     .about = "start: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago"},
    {.name = "until", .type = ST_QUERY_TEXT, .about = "end, in the same forms"},
    {.name = "limit", .type = ST_QUERY_INT, .about = "number of rows, up to 1000 (default: 100)"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "`next` of the previous page"},
    {0},
};
static const st_query_row points_query[] = {
    {.name = "after", .type = ST_QUERY_INT, .about = "how many to skip: what you have of the log"},
    {.name = "limit", .type = ST_QUERY_INT, .about = "number of them, up to 1000 (default: 100)"},
    {0},
};
static const st_query_row proof_query[] = {
    {.name = "from", .type = ST_QUERY_INT, .about = "size of the log that you kept"},
    {.name = "to", .type = ST_QUERY_INT, .about = "a later size (default: the log's as of now)"},
    {0},
};
static const st_query_row jobs_query[] = {
    {.name = "account", .type = ST_QUERY_TEXT, .about = "jobs of this account and those below it"},
    {.name = "user", .type = ST_QUERY_TEXT, .about = "jobs of this user"},
    {.name = "array", .type = ST_QUERY_TEXT, .about = "jobs of this array"},
    {.name = "name", .type = ST_QUERY_TEXT, .about = "jobs whose name contains this"},
    {.name = "state",
     .type = ST_QUERY_WORD,
     .about = "jobs in this state; repeatable",
     .words = STATES,
     .many = true},
    {.name = "since",
     .type = ST_QUERY_TEXT,
     .about = "jobs not over by then: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago"},
    {.name = "until", .type = ST_QUERY_TEXT, .about = "jobs submitted by then, in the same forms"},
    {.name = "limit", .type = ST_QUERY_INT, .about = "number of rows, up to 1000 (default: 100)"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "`next` of the previous page"},
    {.name = "fields",
     .type = ST_QUERY_TEXT,
     .about = "fields of each job, comma-separated: id,name,state"},
    {0},
};
static const st_query_row submit_query[] = {
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "keep nothing; show whether the job would start or why it would wait"},
    {0},
};
static const st_query_row account_query[] = {
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "keep nothing; show, with status 200, whose floors would shrink"},
    {0},
};
static const st_query_row logs_query[] = {
    {.name = "task", .type = ST_QUERY_INT, .about = "task number (default: 0)"},
    {.name = "offset", .type = ST_QUERY_INT, .about = "number of bytes to skip"},
    {.name = "stay",
     .type = ST_QUERY_INT,
     .about = "start of the job, counted from 1 (default: the last)"},
    {.name = "follow",
     .type = ST_QUERY_BOOL,
     .about = "wait for more; Stint-Log-Next is the next offset, Stint-Log-End means that the "
              "output is complete"},
    {.name = "wait", .type = ST_QUERY_INT, .about = "seconds to wait, up to 60 (default: 30)"},
    {0},
};
static const st_query_row counts_query[] = {
    {.name = "account", .type = ST_QUERY_TEXT, .about = "jobs of this account and those below it"},
    {0},
};
static const st_query_row force_query[] = {
    {.name = "force",
     .type = ST_QUERY_BOOL,
     .about = "remove a failed node too; its tasks may live until its lease ends"},
    {0},
};
static const st_query_row pool_query[] = {
    {.name = "force",
     .type = ST_QUERY_BOOL,
     .about = "although bookings lose their place there; they are degraded until another is free"},
    {0},
};
static const st_query_row desired_query[] = {
    {.name = "revision",
     .type = ST_QUERY_INT,
     .about = "revision the agent has; the call answers when there is a newer one"},
    {.name = "wait", .type = ST_QUERY_INT, .about = "seconds to wait, up to 60"},
    {0},
};
static const st_query_row append_query[] = {
    {.name = "offset",
     .type = ST_QUERY_INT,
     .about = "position of the first byte in the task's output"},
    {0},
};
#define BILL_ACCOUNT                                                  \
    {                                                                 \
        .name = "account", .type = ST_QUERY_TEXT,                     \
        .about = "account (default: yours; for an owner all of them)" \
    }
static const st_query_row bill_query[] = {
    BILL_ACCOUNT,
    {.name = "format",
     .type = ST_QUERY_WORD,
     .about = "format (default: json); html for printing, focus is FOCUS 1.2, file can be verified "
              "offline (`stint bill verify`)",
     .words = "json csv html focus file"},
    {0},
};
static const st_query_row entries_query[] = {
    {.name = "account",
     .type = ST_QUERY_TEXT,
     .about = "account (default: yours); for owners also #fleet, where the devices were"},
    {.name = "component", .type = ST_QUERY_TEXT, .about = "entries for this component"},
    {.name = "gpu", .type = ST_QUERY_TEXT, .about = "entries of this GPU type"},
    {.name = "level",
     .type = ST_QUERY_WORD,
     .about = "entries at this isolation level",
     .words = "whole mig mps time"},
    {.name = "job", .type = ST_QUERY_TEXT, .about = "entries of this job"},
    {.name = "format",
     .type = ST_QUERY_WORD,
     .about = "format (default: json)",
     .words = "json csv"},
    {.name = "limit",
     .type = ST_QUERY_INT,
     .about = "number of entries, up to 1000 (default: 100; all of them as csv)"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "`next` of the previous page"},
    {0},
};
static const st_query_row metered_query[] = {
    BILL_ACCOUNT,
    {.name = "by",
     .type = ST_QUERY_WORD,
     .about = "group by (default: user)",
     .words = "account user gpu level job name label cost-center day"},
    {0},
};
static const st_query_row invoices_query[] = {
    {.name = "account",
     .type = ST_QUERY_TEXT,
     .about = "invoices of this account and those below it"},
    {0},
};
static const st_query_row invoice_query[] = {
    {.name = "format",
     .type = ST_QUERY_WORD,
     .about = "format (default: json); html for printing",
     .words = "json csv html"},
    {0},
};
static const st_query_row cost_query[] = {
    {.name = "period", .type = ST_QUERY_TEXT, .about = "a month, 2026-10 (default: open)"},
    {0},
};
static const st_query_row trial_query[] = {
    {.name = "format",
     .type = ST_QUERY_WORD,
     .about = "format (default: json)",
     .words = "json csv"},
    {0},
};
static const st_query_row forecast_query[] = {BILL_ACCOUNT, {0}};
static const st_query_row token_query[] = {
    {.name = "remove",
     .type = ST_QUERY_BOOL,
     .about = "remove it from the list; it must be revoked or expired"},
    {0},
};
static const st_query_row book_query[] = {
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "book nothing; show whether each window fits, and what would instead"},
    {0},
};
static const st_query_row bookings_query[] = {
    {.name = "account",
     .type = ST_QUERY_TEXT,
     .about = "bookings of this account and those below it"},
    {.name = "all", .type = ST_QUERY_BOOL, .about = "those that are over, too (default: false)"},
    {.name = "limit", .type = ST_QUERY_INT, .about = "number of bookings (default: all of them)"},
    {.name = "cursor", .type = ST_QUERY_TEXT, .about = "`next` of the previous page"},
    {0},
};
static const st_query_row series_query[] = {
    {.name = "series", .type = ST_QUERY_BOOL, .about = "cancel all that is left of its series"},
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "cancel nothing; show in `cancel_fee` what would be due"},
    {0},
};
static const st_query_row calendar_query[] = {
    {.name = "account",
     .type = ST_QUERY_TEXT,
     .about = "bookings of this account and those below it"},
    {.name = "from", .type = ST_QUERY_TEXT, .about = "start: 2026-12-01 (default: today)"},
    {.name = "to", .type = ST_QUERY_TEXT, .about = "end (default: seven days later)"},
    {.name = "zone", .type = ST_QUERY_TEXT, .about = "time zone (default: UTC)"},
    {0},
};
static const st_query_row feed_query[] = {
    {.name = "token", .type = ST_QUERY_TEXT, .about = "token of the feed"},
    {0},
};
static const st_query_row secret_query[] = {
    {.name = "below",
     .type = ST_QUERY_BOOL,
     .about = "let jobs of accounts below use it too (default: false)"},
    {0},
};
static const st_query_row neighbours_query[] = {
    {.name = "job", .type = ST_QUERY_TEXT, .about = "this job alone"},
    {.name = "all", .type = ST_QUERY_BOOL, .about = "what is over, too (default: false)"},
    {0},
};
static const st_query_row events_query[] = {
    {.name = "job", .type = ST_QUERY_TEXT, .about = "events of this job"},
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
    OPEN("GET", "/healthz", st_api_healthz, "healthz", "Check that the process answers",
         "text/plain"),
    OPEN("GET", "/readyz", st_api_readyz, "readyz", "Check that stintd takes commands",
         "text/plain"),
    OPEN("GET", "/openapi.json", st_api_openapi_doc, "openapi", "Get this document",
         "application/json"),
    ASK("/metrics", ST_MAY_SEE, st_api_metrics, "metrics",
        "Get metrics for Prometheus, of your subtree", NULL, "text/plain"),

    READ("/v1/whoami", ST_MAY_SEE | ST_MAY_NODE, st_api_whoami, "whoami",
         "Show your user, account and role", NULL, "Identity"),
    READ("/v1/roles", ST_MAY_SEE, st_api_roles, "listRoles", "List roles and what each may do",
         NULL, "Roles"),

    {"GET", "/", 0, ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE | ST_ROUTE_PAGE, st_api_page, "getConsole",
     "Open the console", NULL, NULL, "text/html", 0},
    {"GET", "/console/{file}", 0, ST_ROUTE_NO_AUTH | ST_ROUTE_NO_RATE | ST_ROUTE_PAGE,
     st_api_page_file, "getConsoleFile", "Get a file of the console", NULL, NULL, "*/*", 0},
    {"POST", "/v1/session", 0, ST_ROUTE_NO_AUTH | ST_ROUTE_SECRET | ST_ROUTE_UNCHANGED,
     st_api_session_begin, "createSession",
     "Log a browser in with a token or a login code; the answer sets a cookie", NULL, "Login",
     "Session", 201},
    WRITE("DELETE", "/v1/session", ST_MAY_SEE, ST_ROUTE_UNCHANGED, st_api_session_end,
          "removeSession", "Log a browser out", NULL, NULL, 204),
    WRITE("POST", "/v1/session/code", ST_MAY_SEE, ST_ROUTE_SECRET | ST_ROUTE_UNCHANGED,
          st_api_session_code, "createLoginCode",
          "Create a code for one login of a browser on stintd's machine", NULL, "LoginCode", 201),

    {"POST", "/v1/jobs", ST_MAY_SUBMIT, ST_ROUTE_YAML, st_api_jobs_submit, "submitJob",
     "Submit a job; with dry_run: show what would happen, as a Why with status 200", submit_query,
     "JobSpec", "Submitted|SubmitAnswered", 201},
    WRITE("POST", "/v1/jobs/batch", ST_MAY_SUBMIT, ST_ROUTE_YAML | ST_ROUTE_BIG, st_api_jobs_batch,
          "submitJobs", "Submit up to 10000 jobs; each is accepted or refused by itself",
          "JobBatch", "JobBatchResult|JobBatchResult", 201),
    ASK("/v1/jobs", ST_MAY_SEE, st_api_jobs_list, "listJobs", "List jobs, newest first", jobs_query,
        "JobList"),
    READ("/v1/jobs/{id}", ST_MAY_SEE, st_api_job_get, "getJob", "Show one job", NULL, "Job"),
    WRITE("DELETE", "/v1/jobs/{id}", ST_MAY_SUBMIT, 0, st_api_job_cancel, "cancelJob",
          "Cancel a job", NULL, "Job", 200),
    WRITE("PATCH", "/v1/jobs/{id}", ST_MAY_SUBMIT, 0, st_api_job_patch, "changeJob",
          "Change a job's priority or its time limit", "JobChange", "Job", 200),
    ASK("/v1/jobs/{id}/why", ST_MAY_SEE, st_api_job_why, "explainJob",
        "Show why a job waits and when it should start", NULL, "Why"),
    WRITE(
        "POST", "/v1/whatif", ST_MAY_SUBMIT, ST_ROUTE_YAML | ST_ROUTE_UNCHANGED | ST_ROUTE_COSTLY,
        st_api_whatif, "whatIf",
        "Show when variants of a job would start, or what other quotas would change; keep nothing",
        "WhatIf", "WhatIfAnswer", 200),
    READ("/v1/jobs/{id}/logs", ST_MAY_SEE, st_api_job_logs, "getJobLogs",
         "Read the output of a task", logs_query, "text/plain"),

    ASK("/v1/arrays/{id}", ST_MAY_SEE, st_api_array_get, "getArray",
        "Show the progress of an array, by state and by frame", NULL, "Array"),
    WRITE("DELETE", "/v1/arrays/{id}", ST_MAY_SUBMIT, 0, st_api_array_cancel, "cancelArray",
          "Cancel all jobs of an array that have not ended", NULL, "ArrayCancelled", 200),

    READ("/v1/sizes", ST_MAY_SEE, st_api_sizes_list, "listSizes",
         "List named sizes: yours, those from above, the cluster's", NULL, "SizeList"),
    WRITE("PUT", "/v1/sizes/{name}", ST_MAY_ADMIN, ST_ROUTE_CONDITION, st_api_size_put, "putSize",
          "Create or replace a size of your account", "SizeSpec", "NameRef", 200),
    WRITE("DELETE", "/v1/sizes/{name}", ST_MAY_ADMIN, ST_ROUTE_CONDITION, st_api_size_remove,
          "removeSize", "Remove a size of your account", NULL, NULL, 204),
    ASK("/v1/classes", ST_MAY_SEE, st_api_classes_list, "listClasses",
        "List priority classes that your jobs may name, with what they pay", NULL, "ClassList"),
    WRITE("PUT", "/v1/classes/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_class_put,
          "putClass", "Create or replace a priority class", "ClassSpec", "NameRef", 200),
    WRITE("DELETE", "/v1/classes/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_class_remove,
          "removeClass", "Remove a priority class; a built-in one is as it was", NULL, NULL, 204),
    READ("/v1/images", ST_MAY_SEE, st_api_images_list, "listImages",
         "List images you may use; the owner sees all, with paths", NULL, "ImageList"),
    READ("/v1/images/{name}", ST_MAY_SEE, st_api_image_get, "getImage", "Show one image", NULL,
         "Image"),
    WRITE("PUT", "/v1/images/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_image_put,
          "putImage", "Add an image to the catalogue, or replace one", "ImageSpec", "NameRef", 200),
    WRITE("DELETE", "/v1/images/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_image_remove,
          "removeImage", "Remove an image from the catalogue", NULL, NULL, 204),
    READ("/v1/rules", ST_MAY_OWNER, st_api_rules_list, "listRules",
         "List scripts that check every submit, in order", NULL, "RuleList"),
    WRITE("PUT", "/v1/rules/{name}", ST_MAY_OWNER, ST_ROUTE_ANY_BODY | ST_ROUTE_CONDITION,
          st_api_rule_put, "putRule",
          "Create or replace a Lua script; it applies from the next submit on", "RuleText",
          "NameRef", 200),
    WRITE("DELETE", "/v1/rules/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_rule_remove,
          "removeRule", "Remove a script", NULL, NULL, 204),
    WRITE("POST", "/v1/rules/check", ST_MAY_OWNER, ST_ROUTE_ANY_BODY | ST_ROUTE_UNCHANGED,
          st_api_rule_check, "checkRule", "Check a script without saving it", "RuleText", NULL,
          204),

    ASK("/v1/neighbours", ST_MAY_SEE, st_api_neighbours, "listNeighbours",
        "List your jobs that a neighbour on a shared GPU slows, and those that slow one",
        neighbours_query, "NeighbourList"),

    ASK("/v1/accounts", ST_MAY_SEE, st_api_accounts_list, "listAccounts",
        "List your account and those below it", NULL, "AccountList"),
    {"POST", "/v1/accounts", ST_MAY_ADMIN, ST_ROUTE_YAML, st_api_account_make, "createAccount",
     "Create an account below yours", account_query, "AccountSpec", "AccountRef", 201},
    ASK("/v1/accounts/{name}", ST_MAY_SEE, st_api_account_get, "getAccount", "Show one account",
        NULL, "Account"),
    {"PATCH", "/v1/accounts/{name}", ST_MAY_ADMIN, ST_ROUTE_YAML | ST_ROUTE_IF_MATCH,
     st_api_account_patch, "changeAccount",
     "Change quota, weight or limits; what you do not mention stays", account_query, "AccountSpec",
     "AccountRef", 200},
    WRITE("DELETE", "/v1/accounts/{name}", ST_MAY_ADMIN, ST_ROUTE_CONDITION, st_api_account_remove,
          "removeAccount", "Remove an empty account; stintd revokes its tokens and keeps its books",
          NULL, NULL, 204),
    ASK("/v1/accounts/{name}/quota", ST_MAY_SEE, st_api_account_quota, "getQuota",
        "Show an account's guarantee, maximum and use", NULL, "Quota"),
    READ("/v1/accounts/{name}/service-quota", ST_MAY_SEE, st_api_service_get, "getServiceQuota",
         "Show the service quota of an account and its use", NULL, "ServiceQuota"),
    WRITE("PATCH", "/v1/accounts/{name}/service-quota", ST_MAY_ADMIN, ST_ROUTE_YAML,
          st_api_service_set, "changeServiceQuota",
          "Set the service quota of an account below yours; what you do not mention stays",
          "ServiceQuotaChange", "ServiceQuota", 200),
    ASK("/v1/accounts/{name}/usage", ST_MAY_SEE, st_api_account_usage, "getUsage",
        "Show what an account's users hold and have used recently", NULL, "Usage"),
    ASK("/v1/accounts/{name}/plan", ST_MAY_SEE, st_api_plan_get, "getPlan",
        "Show how an account is charged", NULL, "Plan"),
    WRITE("PUT", "/v1/accounts/{name}/plan", ST_MAY_OWNER, ST_ROUTE_YAML | ST_ROUTE_CONDITION,
          st_api_plan_put, "putPlan",
          "Set discount, chargeback, budget and cap of an account and those below it", "PlanSpec",
          "PlanRef", 200),
    READ("/v1/accounts/{name}/secrets", ST_MAY_SEE, st_api_secrets_list, "listSecrets",
         "List the names of an account's secrets, and of those from above that its jobs may use",
         NULL, "SecretList"),
    {"PUT", "/v1/accounts/{name}/secrets/{key}", ST_MAY_SUBMIT, ST_ROUTE_ANY_BODY,
     st_api_secret_put, "putSecret",
     "Create or replace a secret; the body is its value. Members may change their own",
     secret_query, "SecretValue", "SecretRef", 200},
    WRITE("DELETE", "/v1/accounts/{name}/secrets/{key}", ST_MAY_SUBMIT, 0, st_api_secret_remove,
          "removeSecret", "Remove a secret; later starts of jobs do not get it", NULL, NULL, 204),
    READ("/v1/accounts/{name}/budget", ST_MAY_SEE, st_api_budget_get, "getBudget",
         "Show what is spent, on hold and left this month", NULL, "Budget"),
    WRITE("POST", "/v1/accounts/{name}/credits", ST_MAY_OWNER, 0, st_api_credit_make,
          "createCredit", "Credit an account or reverse a credit, with a reason", "CreditSpec",
          "CreditRef|CreditPending", 201),
    READ("/v1/credits/pending", ST_MAY_OWNER, st_api_credits_pending, "listPendingCredits",
         "List credits that wait for a second owner", NULL, "CreditPendingList"),
    ASK("/v1/plan", ST_MAY_OWNER, st_api_plan_get, "getClusterPlan",
        "Show the plan of all accounts that have none", NULL, "Plan"),
    WRITE("PUT", "/v1/plan", ST_MAY_OWNER, ST_ROUTE_YAML | ST_ROUTE_CONDITION, st_api_plan_put,
          "putClusterPlan", "Set the plan of all accounts that have none", "PlanSpec", "PlanRef",
          200),
    ASK("/v1/prices", ST_MAY_SEE, st_api_prices_list, "listPrices",
        "List price books, past, present and future", NULL, "PriceList"),
    WRITE("POST", "/v1/prices", ST_MAY_OWNER, ST_ROUTE_YAML, st_api_prices_publish, "publishPrices",
          "Publish a price book, valid from now or from a later time", "PriceBook", "PriceRef",
          201),
    ASK("/v1/billing", ST_MAY_SEE, st_api_billing, "getBilling",
        "Show the key that signs bills, the currency and the billing time zone", NULL, "Billing"),
    ASK("/v1/billing/checkpoints", ST_MAY_SEE, st_api_checkpoints, "listCheckpoints",
        "List signed checkpoints over all books, oldest first, with the signed head of their log",
        points_query, "CheckpointList"),
    ASK("/v1/billing/checkpoints/proof", ST_MAY_SEE, st_api_checkpoint_proof, "getCheckpointProof",
        "Prove that the log of checkpoints goes on from an earlier size", proof_query,
        "CheckpointProof"),
    ASK("/v1/billing/witnesses", ST_MAY_SEE, st_api_witnesses, "listWitnesses",
        "List witnesses of the log of checkpoints, and what each has signed last", NULL,
        "WitnessList"),
    WRITE("PUT", "/v1/billing/witnesses/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION,
          st_api_witness_put, "putWitness", "Register the key of a witness, or replace it",
          "Witness", "NameRef", 200),
    WRITE("DELETE", "/v1/billing/witnesses/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION,
          st_api_witness_remove, "removeWitness", "Remove a witness", NULL, NULL, 204),
    WRITE("PUT", "/v1/billing/witnesses/{name}/head", ST_MAY_SEE, ST_ROUTE_CONDITION, st_api_cosign,
          "cosignHead", "Bring a witness's signature of a head of the log; it proves itself",
          "Cosigned", "NameRef", 200),
    ASK("/v1/bills", ST_MAY_SEE, st_api_bills_list, "listBills", "List closed months", NULL,
        "MonthList"),
    ASK("/v1/bills/{period}", ST_MAY_SEE, st_api_bill_get, "getBill",
        "Show the bill of a month (2026-10) or so far (open), of an account and all below it",
        bill_query, "Bill"),
    ASK("/v1/bills/{period}/entries", ST_MAY_SEE, st_api_bill_entries, "listBillEntries",
        "List the entries behind a line of an account's bill", entries_query, "EntryList"),
    ASK("/v1/bills/{period}/forecast", ST_MAY_SEE, st_api_forecast, "getForecast",
        "Forecast what the month will cost, with an interval, and show what each day has cost",
        forecast_query, "Forecast"),
    ASK("/v1/bills/{period}/usage", ST_MAY_SEE, st_api_metered, "getMetered",
        "Sum up usage, from the same entries as the bill", metered_query, "Metered"),
    ASK("/v1/bills/{period}/trial-balance", ST_MAY_OWNER | ST_MAY(ST_ROLE_AUDITOR),
        st_api_trial_balance, "getTrialBalance",
        "Show what every account of the books was debited and credited in a month", trial_query,
        "TrialBalance"),
    ASK("/v1/fleet/cost", ST_MAY_OWNER | ST_MAY(ST_ROLE_AUDITOR), st_api_fleet_cost, "getFleetCost",
        "Show where the GPUs were in a month, what that is worth, and who wasted most", cost_query,
        "FleetCost"),
    ASK("/v1/issuer", ST_MAY_OWNER, st_api_issuer_get, "getIssuer", "Show who issues invoices",
        NULL, "Issuer"),
    WRITE("PUT", "/v1/issuer", ST_MAY_OWNER, ST_ROUTE_YAML | ST_ROUTE_CONDITION, st_api_issuer_put,
          "putIssuer", "Set name, address and number series of who issues invoices", "IssuerSpec",
          "NameRef", 200),
    ASK("/v1/accounts/{name}/billing", ST_MAY_SEE, st_api_bill_to_get, "getBillTo",
        "Show an account's billing details: name, address, taxes", NULL, "BillTo"),
    WRITE("PUT", "/v1/accounts/{name}/billing", ST_MAY_OWNER, ST_ROUTE_YAML | ST_ROUTE_CONDITION,
          st_api_bill_to_put, "putBillTo",
          "Set an account's billing details; it then gets invoices, for accounts below it too",
          "BillToSpec", "NameRef", 200),
    WRITE("DELETE", "/v1/accounts/{name}/billing", ST_MAY_OWNER, ST_ROUTE_CONDITION,
          st_api_bill_to_remove, "removeBillTo",
          "Remove an account's billing details; invoices that were issued stay", NULL, NULL, 204),
    ASK("/v1/invoices", ST_MAY_SEE, st_api_invoices_list, "listInvoices",
        "List invoices and credit notes of your account and those below it", invoices_query,
        "InvoiceList"),
    WRITE("POST", "/v1/invoices", ST_MAY_OWNER, 0, st_api_invoices_issue, "issueInvoices",
          "Issue the invoices of a closed month, and credit notes for what it corrects",
          "InvoiceOrder", "InvoicesIssued", 201),
    ASK("/v1/invoices/{number}", ST_MAY_SEE, st_api_invoice_get, "getInvoice",
        "Show an invoice or a credit note, as it was issued", invoice_query, "Invoice"),
    {"POST", "/v1/bookings", ST_MAY_SUBMIT, ST_ROUTE_YAML, st_api_bookings_make, "book",
     "Book GPUs for a window or a series, whole or not at all; with dry_run: a quote, status 200",
     book_query, "BookingSpec", "Booked|Quote", 201},
    ASK("/v1/bookings", ST_MAY_SEE, st_api_bookings_list, "listBookings",
        "List bookings of your account and those below it, by their start", bookings_query,
        "BookingList"),
    ASK("/v1/bookings/{id}", ST_MAY_SEE, st_api_booking_get, "getBooking", "Show one booking", NULL,
        "Booking"),
    WRITE("POST", "/v1/bookings/{id}/confirm", ST_MAY_SUBMIT, ST_ROUTE_CONDITION,
          st_api_booking_confirm, "confirmBooking", "Confirm a quote that is held, or its series",
          NULL, "Booking", 200),
    WRITE("PATCH", "/v1/bookings/{id}", ST_MAY_SUBMIT, ST_ROUTE_YAML | ST_ROUTE_CONDITION,
          st_api_booking_change, "changeBooking",
          "Change a booking's window or size; whole, or refused", "BookingChange", "Booking", 200),
    {"DELETE", "/v1/bookings/{id}", ST_MAY_SUBMIT, ST_ROUTE_CONDITION, st_api_booking_cancel,
     "cancelBooking", "Cancel a booking, or what is left of its series", series_query, NULL,
     "Booking", 200},
    ASK("/v1/calendar", ST_MAY_SEE, st_api_calendar, "getCalendar",
        "Show the bookings of a stretch of time, in a time zone", calendar_query, "Calendar"),
    {"GET", "/v1/calendar.ics", 0, ST_ROUTE_NO_AUTH, st_api_calendar_feed, "getCalendarFeed",
     "Get bookings as iCalendar, with the token of a feed in the address", feed_query, NULL,
     "text/calendar", 0},
    WRITE("POST", "/v1/calendar/feeds", ST_MAY_SEE, ST_ROUTE_SECRET, st_api_feed_make, "createFeed",
          "Create the token of a calendar feed of your account; only this answer has its secret",
          NULL, "NewToken", 201),
    WRITE("POST", "/v1/calendar/windows", ST_MAY_SEE, ST_ROUTE_YAML | ST_ROUTE_UNCHANGED,
          st_api_calendar_windows, "expandWindows",
          "Show when a window or a series is, in its time zone; keep nothing", "WindowsSpec",
          "Windows", 200),
    ASK("/v1/users", ST_MAY_SEE, st_api_users_list, "listUsers",
        "List users with a token, and their roles", NULL, "UserList"),

    ASK("/v1/tokens", ST_MAY_SEE, st_api_tokens_list, "listTokens",
        "List your tokens; admins see those of the subtree", NULL, "TokenList"),
    WRITE("POST", "/v1/tokens", ST_MAY_ADMIN, ST_ROUTE_SECRET, st_api_token_make, "createToken",
          "Create a token; only this answer has its secret", "TokenSpec", "NewToken", 201),
    READ("/v1/tokens/{id}", ST_MAY_SEE, st_api_token_get, "getToken", "Show one token", NULL,
         "Token"),
    {"DELETE", "/v1/tokens/{id}", ST_MAY_SEE, 0, st_api_token_revoke, "revokeToken",
     "Revoke a token; with remove: remove a revoked or expired one from the list", token_query,
     NULL, NULL, 204},

    ASK("/v1/types", ST_MAY_SEE, st_api_types_list, "listTypes", "List GPU types", NULL,
        "TypeList"),
    WRITE("POST", "/v1/types", ST_MAY_OWNER, 0, st_api_type_make, "createType",
          "Add a GPU type; common ones need only a name", "TypeSpec", "NameRef", 201),
    ASK("/v1/pools", ST_MAY_SEE, st_api_pools_list, "listPools", "List pools", NULL, "PoolList"),
    WRITE("POST", "/v1/pools", ST_MAY_OWNER, 0, st_api_pool_make, "createPool", "Create a pool",
          "PoolSpec", "NameRef", 201),
    ASK("/v1/pools/{name}", ST_MAY_SEE, st_api_pool_get, "getPool", "Show one pool", NULL, "Pool"),
    {"PATCH", "/v1/pools/{name}", ST_MAY_OWNER, ST_ROUTE_IF_MATCH, st_api_pool_patch, "changePool",
     "Change a pool; what you do not mention stays", pool_query, "PoolChange", "NameRef", 200},
    ASK("/v1/devices", ST_MAY_SEE, st_api_devices, "mapDevices",
        "Map all devices, one letter each: what your jobs have there", NULL, "DeviceMap"),
    ASK("/v1/counts", ST_MAY_SEE, st_api_counts, "countJobs", "Count jobs and their GPUs by state",
        counts_query, "JobCounts"),
    ASK("/v1/nodes", ST_MAY_SEE, st_api_nodes_list, "listNodes",
        "List nodes, with your own jobs on them", NULL, "NodeList"),
    WRITE("POST", "/v1/nodes", ST_MAY_OWNER, 0, st_api_node_make, "createNode",
          "Add a simulated node", "NodeSpec", "NameRef", 201),
    ASK("/v1/nodes/{name}", ST_MAY_SEE, st_api_node_get, "getNode", "Show one node", NULL, "Node"),
    WRITE("PATCH", "/v1/nodes/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_node_patch,
          "changeNode", "Drain a node, take it back, or declare it failed", "NodeChange", "NameRef",
          200),
    WRITE("POST", "/v1/nodes/{name}/test", ST_MAY_OWNER, 0, st_api_node_test, "testNode",
          "Have a node tested by its agent", NULL, "NameRef", 202),
    ASK("/v1/nodes/{name}/tests", ST_MAY_SEE, st_api_node_tests, "listNodeTests",
        "List the last tests of a node, newest last", NULL, "NodeTests"),
    ASK("/v1/nodes/{name}/history", ST_MAY_SEE, st_api_node_history, "listNodeHistory",
        "List what became of a node, newest last", NULL, "NodeHistory"),

    {"DELETE", "/v1/nodes/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_node_remove,
     "removeNode", "Remove a node without jobs and free its name", force_query, NULL, NULL, 204},
    WRITE("DELETE", "/v1/pools/{name}", ST_MAY_OWNER, ST_ROUTE_CONDITION, st_api_pool_remove,
          "removePool", "Remove a pool without nodes", NULL, NULL, 204),
    WRITE("POST", "/v1/nodes/{name}/rejoin", ST_MAY_OWNER, 0, st_api_node_rejoin, "rejoinNode",
          "Let a machine take the node's place with a join token and a new key", NULL, "NameRef",
          200),

    {"GET", "/v1/events", ST_MAY_SEE, ST_ROUTE_STREAM, st_api_events, "streamEvents",
     "Stream the events of your subtree", events_query, NULL, "text/event-stream", 0},
    ASK("/v1/audit", ST_MAY_AUDIT, st_api_audit_list, "listAudit",
        "List who changed what in your subtree, newest first", audit_query, "AuditList"),
    ASK("/v1/audit/verify", ST_MAY_OWNER | ST_MAY(ST_ROLE_AUDITOR), st_api_audit_verify,
        "verifyAudit", "Check the chain of hashes of the audit log", NULL, "AuditVerdict"),
    OPEN("GET", "/v1/agent/challenge", st_api_agent_challenge, "getChallenge",
         "Get a challenge that an agent signs to register", "Challenge"),
    WRITE("POST", "/v1/agent/register", ST_MAY_JOIN, ST_ROUTE_NO_KEY, st_api_agent_register,
          "registerNode", "Register a machine as a node, or bring a node back", "NodeRegistration",
          "NodeTerms", 201),
    {"GET", "/v1/agent/desired", ST_MAY_NODE, ST_ROUTE_NO_RATE, st_api_agent_desired, "getDesired",
     "Get the list of what should run on the agent's node; 204 if unchanged", desired_query, NULL,
     "DesiredState", 0},
    {"POST", "/v1/agent/status", ST_MAY_NODE, ST_ROUTE_NO_RATE | ST_ROUTE_UNCHANGED | ST_ROUTE_BIG,
     st_api_agent_status, "postStatus", "Report what runs on the agent's node and renew its lease",
     NULL, "NodeStatus", "NodeTerms", 0},
    {"POST", "/v1/agent/logs/{job}/{stay}/{task}", ST_MAY_NODE,
     ST_ROUTE_NO_RATE | ST_ROUTE_ANY_BODY | ST_ROUTE_UNCHANGED, st_api_agent_logs, "appendLog",
     "Append output of a task on the agent's node", append_query, "application/octet-stream",
     "LogReceipt", 0},

    WRITE("POST", "/v1/admin/join-tokens", ST_MAY_OWNER, ST_ROUTE_SECRET, st_api_join_make,
          "createJoinToken", "Create a token with which machines become nodes", "JoinTokenSpec",
          "JoinToken", 201),
    WRITE("POST", "/v1/admin/reconcile", ST_MAY_OWNER, ST_ROUTE_UNCHANGED, st_api_reconcile,
          "reconcile", "Compare meter, ledger, store and agents' counters", NULL, "Reconciled",
          200),
    WRITE("POST", "/v1/admin/rotate-secrets-key", ST_MAY_OWNER, 0, st_api_secrets_rotate,
          "rotateSecretsKey", "Create a new secrets key and re-encrypt everything with it", NULL,
          "Rotated", 200),
    READ("/v1/admin/clock", ST_MAY_OWNER, st_api_clock_get, "getClock",
         "Show stintd's time, the machine's clock and whether stintd trusts it", NULL, "Clock"),
    WRITE("POST", "/v1/admin/clock", ST_MAY_OWNER, 0, st_api_clock_accept, "acceptClock",
          "Accept the machine's clock; stintd then closes the months that are over", "ClockAccept",
          "Clock", 200),
    WRITE("POST", "/v1/admin/backup", ST_MAY_OWNER, 0, st_api_backup, "backup",
          "Copy the store into the backup directory, under a new name", "BackupSpec",
          "BackupResult", 201),
    READ("/v1/admin/restore", ST_MAY_OWNER, st_api_restore_get, "getRestore",
         "Show what becomes of tasks and jobs after a restore from a backup", NULL, "Restore"),
    WRITE("POST", "/v1/admin/restore", ST_MAY_OWNER, 0, st_api_restore_accept, "acceptRestore",
          "Accept a restore: nodes end what the store does not know, and stintd decides again",
          "RestoreAccept", "Restore", 200),
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
        .description = "One API for every team that shares the fleet. You see your own account and "
                       "those below it, and nothing else.",
        .license = "Apache-2.0",
        .roles = st_role_words,
    };
    return st_openapi_write(&info, routes, st_api_schemas(), out, err);
}
