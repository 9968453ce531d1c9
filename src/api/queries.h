/*
 * What routes are asked with: the queries of the table in routes.c, which alone includes this.
 */
#ifndef ST_API_QUERIES_H
#define ST_API_QUERIES_H

#include "api/state.h"

#define STATES \
    "pending running notified checkpointing paused stopping done failed timeout cancelled"

static const st_query_row audit_query[] = {
    {.name = "by", .type = ST_QUERY_TEXT, .about = "changes by this user"},
    {.name = "what",
     .type = ST_QUERY_TEXT,
     .about = "changes of this kind (token.create), or of all kinds of a noun (token)"},
    {.name = "account",
     .type = ST_QUERY_TEXT,
     .about = "changes in this account and those below it"},
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
    {.name = "label",
     .type = ST_QUERY_TEXT,
     .about = "jobs with this label, NAME=VALUE; repeatable: jobs with all of them",
     .many = true},
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
    {.name = "tail", .type = ST_QUERY_INT, .about = "number of lines from the end, up to 4 MiB"},
    {.name = "since",
     .type = ST_QUERY_TEXT,
     .about = "what was written then or later: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two "
              "hours ago"},
    {.name = "stay",
     .type = ST_QUERY_INT,
     .about = "start of the job, counted from 1 (default: the last)"},
    {.name = "follow",
     .type = ST_QUERY_BOOL,
     .about = "wait for more; Stint-Log-Next is the next offset, Stint-Log-End means that the "
              "output is complete, a Stint-Log-Newest above Stint-Log-Stay that the job has "
              "started again"},
    {.name = "wait", .type = ST_QUERY_INT, .about = "seconds to wait, up to 60 (default: 30)"},
    {0},
};
static const st_query_row counts_query[] = {
    {.name = "account", .type = ST_QUERY_TEXT, .about = "jobs of this account and those below it"},
    {.name = "by",
     .type = ST_QUERY_WORD,
     .about = "also count jobs that have not ended in groups, those with most GPUs first; names "
              "that differ only by a number at their end are one group",
     .words = "account user name"},
    {0},
};
static const st_query_row figures_query[] = {
    {.name = "of",
     .type = ST_QUERY_WORD,
     .about = "whose figures (default: account); of nodes and GPUs for the owner",
     .words = "account job node gpu"},
    {.name = "name",
     .type = ST_QUERY_TEXT,
     .about = "account, job id, node, or node:GPU (default: your account; for an owner the "
              "cluster)"},
    {.name = "since",
     .type = ST_QUERY_TEXT,
     .about = "start: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago (default: 1d)"},
    {.name = "until", .type = ST_QUERY_TEXT, .about = "end, in the same forms (default: now)"},
    {.name = "step",
     .type = ST_QUERY_TEXT,
     .about = "width of a bucket: 1m, 10m, 1h or a multiple (default: the narrowest that reaches "
              "back to since in 1500 buckets)"},
    {0},
};
static const st_query_row use_query[] = {
    {.name = "figure",
     .type = ST_QUERY_TEXT,
     .about = "utilisation (default), memory, power or temperature"},
    {0},
};
static const st_query_row history_query[] = {
    {.name = "at",
     .type = ST_QUERY_TEXT,
     .about = "moment: 2026-11-15T03:12:00Z, or 2h for two hours ago (default: now)"},
    {.name = "before",
     .type = ST_QUERY_TEXT,
     .about = "how long before it events are told, up to 1h (default: 15m)"},
    {0},
};
static const st_query_row force_query[] = {
    {.name = "force",
     .type = ST_QUERY_BOOL,
     .about = "remove a failed node too; its tasks may live until its lease ends"},
    {0},
};
static const st_query_row node_query[] = {
    {.name = "force",
     .type = ST_QUERY_BOOL,
     .about = "although bookings lose their place; they are degraded until another is free"},
    {0},
};
static const st_query_row pool_query[] = {
    {.name = "dry_run",
     .type = ST_QUERY_BOOL,
     .about = "change nothing; show the pool before and after, and the jobs that would start "
              "or have to leave"},
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
    {.name = "tunnels",
     .type = ST_QUERY_BOOL,
     .about = "the agent takes tunnels: the call answers when there is one"},
    {0},
};
static const st_query_row dial_query[] = {
    {.name = "refused",
     .type = ST_QUERY_TEXT,
     .about = "why there will be no connection; without it the call becomes one"},
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
    {.name = "label",
     .type = ST_QUERY_TEXT,
     .about = "with by=label: the label by whose values is grouped (default: all labels together)"},
    {.name = "where", .type = ST_QUERY_TEXT, .about = "only jobs with this label, NAME=VALUE"},
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
static const st_query_row notices_query[] = {
    {.name = "account",
     .type = ST_QUERY_TEXT,
     .about = "notices of this account and those below it (default: yours)"},
    {0},
};
static const st_query_row incidents_query[] = {
    {.name = "node", .type = ST_QUERY_TEXT, .about = "of this node alone"},
    {.name = "job", .type = ST_QUERY_TEXT, .about = "of nodes that this job was on"},
    {.name = "all", .type = ST_QUERY_BOOL, .about = "what is over, too (default: false)"},
    {0},
};
static const st_query_row neighbours_query[] = {
    {.name = "job", .type = ST_QUERY_TEXT, .about = "this job alone"},
    {.name = "all", .type = ST_QUERY_BOOL, .about = "what is over, too (default: false)"},
    {0},
};
#define EVENTS_OF                                                                \
    {.name = "job", .type = ST_QUERY_TEXT, .about = "events of this job"},       \
        {.name = "kind",                                                         \
         .type = ST_QUERY_TEXT,                                                  \
         .about = "events of this kind (start, end, node, budget); repeatable",  \
         .many = true},                                                          \
        {.name = "account",                                                      \
         .type = ST_QUERY_TEXT,                                                  \
         .about = "events of this account and those below it"},                  \
    {                                                                            \
        .name = "node", .type = ST_QUERY_TEXT, .about = "events about this node" \
    }
static const st_query_row events_query[] = {EVENTS_OF, {0}};
static const st_query_row past_events_query[] = {
    EVENTS_OF,
    {.name = "since",
     .type = ST_QUERY_TEXT,
     .about = "start: 2026-11-15, 2026-11-15T08:30:00Z, or 2h for two hours ago"},
    {.name = "until", .type = ST_QUERY_TEXT, .about = "end, in the same forms"},
    {.name = "limit", .type = ST_QUERY_INT, .about = "number of events, up to 1000 (default: 100)"},
    {.name = "cursor",
     .type = ST_QUERY_TEXT,
     .about = "`next` of the previous page, which may have fewer than `limit`"},
    {0},
};

#endif
