/*
 * What agents ask and say (doc/dev/agent-protocol.md): desired state, status, logs. A node's token is
 * bound to its name, so there is nothing in these calls with which it could name another.
 */
#include <stdlib.h>
#include <string.h>

#include "api/park.h"
#include "api/state.h"
#include "api/tunnels.h"
#include "base/mem.h"
#include "base/quote.h"

/* Whatever its pool allows; that is looked at when it is known which it is (engine/native.h). */
#define TASKS_MAX (2 * ST_TASKS_MAX)
#define CODE_MAX  9999
#define TEST_MAX  65536 /* bytes */

/* False: answered. */
bool st_api_need_native(const st_api *api, st_call *call)
{
    st_err err;

    if (api->options.native)
        return true;
    st_fail(&err, ST_ESTATE, "this stintd runs no agents: its engine is sim");
    st_call_fail(call, &err);
    return false;
}

void st_api_agent_terms(const st_agent_answer *a, st_strbuf *out)
{
    st_out_int(out, "epoch", a->epoch);
    if (a->revision > 0)
        st_out_int(out, "revision", (int64_t)a->revision);
    st_out_int(out, "now_ms", a->now_ms);
    st_out_int(out, "lease_ms", a->lease_ms);
    st_out_text(out, "at_lease_end", a->keep ? "keep" : "kill");
    st_out_raw(out, "tunnels", "true");
    st_out_raw(out, "gpus_alone", "true");
}

/* An agent that has proved who it is speaks about its own node, and about this request; false: answered. */
static bool may_speak(st_api *api, st_call *call)
{
    const st_caller *caller = st_api_caller(call);
    st_err err;

    if (!st_api_need_native(api, call) || !st_api_proved(api, call))
        return false;
    if (!caller->signed_by || caller->proof.n > 0)
        return true;
    st_fail(&err, ST_EAUTH, "a challenge is answered by registering");
    st_call_fail(call, &err);
    return false;
}

static const char *boot_of(const st_call *call)
{
    const st_caller *caller = st_api_caller(call);

    return caller->signed_by ? caller->proof.boot : NULL;
}

/* ---- desired state -------------------------------------------------------------------------------- */

typedef struct desired {
    st_parked parked; /* first */
    st_api *api;
    st_call *call;
    int32_t node;
    const char *boot; /* the call's; NULL: a node without a key */
    uint64_t have;
    bool tunnels; /* it takes them */
} desired;

static bool look_desired(st_parked *p, bool late)
{
    desired *d = (desired *)p;
    st_strbuf out = {0};
    bool differs = st_native_desired(d->api->options.native, d->node, d->boot, d->have, &out);

    if (!differs && d->tunnels) {
        st_strbuf_add(&out, "{\"tunnels\":");
        differs = st_tunnels_orders(d->api->tunnels, d->node, &out);
        st_strbuf_addc(&out, '}');
    }
    if (differs)
        st_call_reply_buf(d->call, 200, NULL, &out);
    else if (late)
        st_call_reply_empty(d->call, 204);
    st_strbuf_done(&out);
    return differs || late;
}

void st_api_agent_desired(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *name = st_api_who(call)->user;
    int64_t wait_s = st_call_query_int(call, "wait", 0);
    int32_t node;
    desired *d;

    if (!may_speak(api, call))
        return;
    node = st_native_node(api->options.native, name);
    if (node < 0) {
        st_api_no_such(call, "registered node", name);
        return;
    }
    d = st_xcalloc(1, sizeof *d);
    *d = (desired){.parked = {.key = ST_PARK_NODE(node),
                              .wait_ms = ST_MAX(0, ST_MIN(wait_s, ST_AGENT_WAIT_S)) * 1000,
                              .look = look_desired},
                   .api = api,
                   .call = call,
                   .node = node,
                   .boot = boot_of(call),
                   .have = (uint64_t)st_call_query_int(call, "revision", 0),
                   .tunnels =
                       st_call_query_bool(call, "tunnels", false) && !st_api_caller(call)->waiting};
    d->parked.late = d->parked.wait_ms == 0;
    st_call_defer(call);
    st_park_add(api->agent_park, &d->parked);
}

void st_api_node_changed(st_api *api, int32_t node)
{
    st_park_wake(api->agent_park, ST_PARK_NODE(node), false);
}

/* ---- tunnels ------------------------------------------------------------------------------------- */

void st_api_agent_tunnel(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *name = st_api_who(call)->user;
    int32_t node;

    if (!may_speak(api, call))
        return;
    node = st_api_caller(call)->waiting ? -1 : st_native_node(api->options.native, name);
    if (node < 0)
        st_api_no_such(call, "registered node", name);
    else
        st_tunnels_dialed(api->tunnels, call, node, st_call_param(call, "line"),
                          st_call_query(call, "refused"));
}

/* ---- status -------------------------------------------------------------------------------------- */

static int64_t number(const json_t *map, const char *key)
{
    return json_integer_value(json_object_get(map, key));
}

/* A number of a stay or a task; what is none is that of nobody. */
static int small(int64_t n)
{
    return n >= 0 && n <= ST_STAY_MAX + 1 ? (int)n : -1;
}

/* What is no number was not measured. */
static void read_used(const json_t *map, st_agent_task *ret)
{
    const json_t *usage = json_object_get(map, "usage"), *scrub = json_object_get(map, "scrub");
    const char *result = json_string_value(json_object_get(scrub, "result"));
    int word = result ? st_scrub_parse(result) : -1;

    for (int k = 0; k < ST_USED_COUNT; k++) {
        const json_t *v = json_object_get(usage, st_used_key((st_used_kind)k));

        if (!json_is_integer(v))
            continue;
        ret->used.has |= 1u << k;
        ret->used.v[k] = json_integer_value(v);
    }
    if (word >= 0)
        ret->scrub = (st_scrub){.result = (st_scrub_result)word,
                                .bytes = ST_MAX(number(scrub, "bytes"), 0),
                                .found = ST_MAX(number(scrub, "found"), 0),
                                .ms = ST_MAX(number(scrub, "ms"), 0)};
}

static int read_task(const st_api *api, const json_t *map, bool past, st_agent_task *ret,
                     st_err *err)
{
    const char *job = json_string_value(json_object_get(map, "job"));
    const char *state = json_string_value(json_object_get(map, "state"));
    const char *fault = json_string_value(json_object_get(map, "fault"));
    const char *cause = json_string_value(json_object_get(map, "cause"));
    int word = past ? ST_TASK_EXITED : state ? st_task_state_parse(state) : -1;
    char q[ST_QUOTE_MAX];

    if (!job || !json_is_integer(json_object_get(map, "stay")) ||
        !json_is_integer(json_object_get(map, "task")))
        return st_fail(err, ST_EINVAL, "a task has a job, a stay, a task and a state");
    if (word < 0)
        return st_fail(err, ST_EINVAL, "%s is no state of a task",
                       st_quote(q, state ? state : "nothing"));
    *ret = (st_agent_task){.stay = small(number(map, "stay")),
                           .task = small(number(map, "task")),
                           .state = (st_task_state)word,
                           .started_ms = number(map, "started_ms"),
                           .ended_ms = number(map, "ended_ms"),
                           .reason = json_string_value(json_object_get(map, "reason"))};
    ret->odd = !st_said_exit(number(map, "exit_code"), number(map, "signal"), &ret->exit_code,
                             &ret->signal);
    ret->node_fault = fault && strcmp(fault, "node") == 0;
    ret->data_full = cause && strcmp(cause, "data-full") == 0;
    ret->stopped = json_is_true(json_object_get(map, "stopped"));
    /* A name that is none of ours stays job 0, which nobody has: told back as unknown. */
    if (!st_control_id_parse(api->control, job, &ret->job))
        ret->job = 0;
    read_used(map, ret);
    return 0;
}

static int read_tasks(const st_api *api, const json_t *list, bool past, st_agent_task **ret,
                      size_t *ret_n, st_err *err)
{
    size_t n = json_array_size(list);
    ST_CLEANUP(st_freep) st_agent_task *v = NULL;

    if (n > TASKS_MAX)
        return st_fail(err, ST_ELIMIT, "a node has at most %d tasks", TASKS_MAX);
    v = n > 0 ? st_xcalloc(n, sizeof *v) : NULL;
    for (size_t i = 0; i < n; i++) {
        int r = read_task(api, json_array_get(list, i), past, &v[i], err);

        if (r < 0)
            return r;
    }
    *ret = ST_TAKE(v);
    *ret_n = n;
    return 0;
}

/* Two jobs of one GPU. What is no note of ours, of a newer agent perhaps, is passed over. */
static bool read_note(const st_api *api, const json_t *map, st_agent_note *ret)
{
    const char *what = json_string_value(json_object_get(map, "what"));
    const char *action = json_string_value(json_object_get(map, "action"));
    const char *job = json_string_value(json_object_get(map, "job"));
    const json_t *suspect = json_object_get(map, "suspect");
    const char *other = json_string_value(json_object_get(suspect, "job"));
    int kind = what ? st_nb_kind_parse(what) : -1;
    int rung = action ? st_nb_rung_parse(action) : 0;

    *ret = (st_agent_note){.no = number(map, "no"),
                           .at_ms = number(map, "at_ms"),
                           .kind = (st_nb_kind)kind,
                           .rung = (st_nb_rung)rung,
                           .gpu = small(number(map, "gpu")),
                           .ratio_pct =
                               (int)ST_MAX(ST_MIN(number(map, "p99_percent"), INT32_MAX), -1)};
    ret->victim.stay = small(number(map, "stay"));
    ret->victim.task = small(number(map, "task"));
    ret->suspect.stay = small(number(suspect, "stay"));
    ret->suspect.task = small(number(suspect, "task"));
    return kind >= 0 && rung >= 0 && job &&
           st_control_id_parse(api->control, job, &ret->victim.job) &&
           (!other || st_control_id_parse(api->control, other, &ret->suspect.job));
}

static void read_notes(const st_api *api, const json_t *list, st_agent_note *v, size_t *ret_n)
{
    *ret_n = 0;
    for (size_t i = 0; i < json_array_size(list) && *ret_n < ST_AGENT_NOTES; i++)
        *ret_n += read_note(api, json_array_get(list, i), &v[*ret_n]);
}

/* What is wrong, in words that both sides know. That an agent is silent is not for it to say; what it does not name is of
 * some kind all the same. */
static st_finding read_finding(const json_t *map)
{
    const json_t *gpu = json_object_get(map, "gpu");
    st_fault kind = st_fault_parse(json_string_value(json_object_get(map, "kind")));
    int64_t code = number(map, "code"), at = json_integer_value(gpu);

    return (st_finding){.kind = kind == ST_FAULT_NONE || kind == ST_FAULT_SILENT ? ST_FAULT_OTHER
                                                                                 : kind,
                        .gpu = json_is_integer(gpu) && at >= 0 && at < ST_DEVS_MAX ? (int)at : -1,
                        .code = code >= 0 && code <= CODE_MAX ? code : 0};
}

/* GPUs that cannot be used on a node that can. What is no GPU is passed over. */
static void read_sick(const json_t *list, st_agent_status *status)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        st_finding found = read_finding(row);

        if (found.gpu < 0)
            continue;
        if (st_fault_weighs(found.kind) == ST_FAULT_NOTED)
            found.kind = ST_FAULT_OTHER;
        status->sick_gpus |= (uint16_t)(1u << found.gpu);
        status->gpus[found.gpu] =
            (st_agent_gpu){found, json_string_value(json_object_get(row, "reason"))};
    }
}

static uint16_t read_devices(const json_t *list)
{
    uint16_t devs = 0;
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        int64_t d = json_is_integer(row) ? json_integer_value(row) : -1;

        devs |= (uint16_t)(d >= 0 && d < ST_DEVS_MAX ? 1u << d : 0);
    }
    return devs;
}

/* Results are kept as they came, so they are held to a length. */
static int read_test(const json_t *map, st_agent_status *status, char **ret_doc, st_err *err)
{
    if (!map)
        return 0;
    if (!json_is_object(map) || number(map, "no") <= 0 ||
        !json_is_boolean(json_object_get(map, "passed")))
        return st_fail(err, ST_EINVAL, "a test has a number (no) and says whether it passed");
    *ret_doc = json_dumps(map, JSON_COMPACT);
    if (!*ret_doc || strlen(*ret_doc) > TEST_MAX)
        return st_fail(err, ST_ELIMIT, "the results of a test have at most %d bytes", TEST_MAX);
    status->test.no = number(map, "no");
    status->test.passed = json_is_true(json_object_get(map, "passed"));
    status->test.reason = json_string_value(json_object_get(map, "reason"));
    status->test.doc = *ret_doc;
    status->test.without = read_devices(json_object_get(map, "without"));
    status->test.finding = (st_finding){.kind = ST_FAULT_TEST, .gpu = -1};
    if (json_is_object(json_object_get(map, "fault")))
        status->test.finding = read_finding(json_object_get(map, "fault"));
    return 0;
}

static int read_images(const json_t *list, st_agent_image ret[ST_AGENT_IMAGES],
                       st_agent_status *status, st_err *err)
{
    const json_t *row;
    size_t i;

    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > ST_AGENT_IMAGES)
        return st_fail(err, ST_EINVAL, "images is a list of at most %d", ST_AGENT_IMAGES);
    json_array_foreach(list, i, row)
    {
        const char *key = json_string_value(json_object_get(row, "image"));

        if (!key)
            return st_fail(err, ST_EINVAL, "images: number %zu has no name (image)", i + 1);
        ret[i] = (st_agent_image){.key = key,
                                  .ready = json_is_true(json_object_get(row, "ready")),
                                  .reason = json_string_value(json_object_get(row, "reason"))};
    }
    status->images = ret;
    status->nimages = json_array_size(list);
    return 0;
}

static int take_status(const st_api *api, const st_caller *caller, const json_t *root, size_t bytes,
                       st_agent_answer *ret, st_err *err)
{
    const json_t *tasks = json_object_get(root, "tasks");
    const json_t *health = json_object_get(root, "node");
    const char *word = json_string_value(json_object_get(health, "health"));
    st_agent_status status = {.epoch = number(root, "epoch"),
                              .revision = (uint64_t)number(root, "revision"),
                              .branch = number(root, "branch"),
                              .position = number(root, "position"),
                              .now_ms = number(root, "now_ms"),
                              .bytes = bytes,
                              .waiting = caller->waiting,
                              .sick = word && strcmp(word, "ok") != 0 && strcmp(word, "hold") != 0,
                              .held = word && strcmp(word, "hold") == 0,
                              .reason = json_string_value(json_object_get(health, "reason")),
                              .finding = read_finding(json_object_get(health, "fault"))};
    st_agent_image images[ST_AGENT_IMAGES];
    ST_CLEANUP(st_freep) st_agent_task *now = NULL;
    ST_CLEANUP(st_freep) st_agent_task *past = NULL;
    st_agent_note notes[ST_AGENT_NOTES];
    ST_CLEANUP(st_freep) char *results = NULL;
    int r;

    if (st_fault_weighs(status.finding.kind) == ST_FAULT_NOTED) /* then the node could be used */
        status.finding.kind = ST_FAULT_OTHER;
    if (!json_is_object(root) || !json_is_array(tasks))
        return st_fail(err, ST_EINVAL,
                       "a status is an object with a list of all tasks that are on the node");
    read_sick(json_object_get(root, "sick_gpus"), &status);
    r = read_test(json_object_get(root, "test"), &status, &results, err);
    if (r == 0)
        r = read_images(json_object_get(root, "images"), images, &status, err);
    if (r == 0)
        r = read_tasks(api, tasks, false, &now, &status.n, err);
    if (r == 0)
        r = read_tasks(api, json_object_get(root, "past"), true, &past, &status.npast, err);
    read_notes(api, json_object_get(root, "neighbours"), notes, &status.nnotes);
    status.tasks = now;
    status.past = past;
    status.notes = notes;
    return r == 0 ? st_native_status(api->options.native, caller->who.user, &status, ret, err) : r;
}

void st_api_agent_status(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_agent_answer answer;
    st_strbuf out = {0};
    json_t *root = NULL;
    st_err err = {0};
    size_t bytes = 0;
    int r;

    if (!may_speak(api, call))
        return;
    (void)st_call_body(call, &bytes);
    r = st_call_json(call, &root, &err);
    if (r == 0)
        r = take_status(api, st_api_caller(call), root, bytes, &answer, &err);
    json_decref(root);
    if (r < 0) {
        st_call_fail(call, &err);
        return;
    }
    st_strbuf_addc(&out, '{');
    st_api_agent_terms(&answer, &out);
    st_out_text(&out, "state", st_node_state_name(answer.state));
    st_out_raw(&out, "taken", answer.taken ? "true" : "false");
    if (answer.test > 0)
        st_out_int(&out, "test", answer.test);
    if (answer.trial[0])
        st_out_raw(&out, "trial", answer.trial);
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

/* ---- logs ----------------------------------------------------------------------------------------- */

static bool read_small(const char *text, int *ret)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || n > ST_STAY_MAX + 1L)
        return false;
    *ret = (int)n;
    return true;
}

/* Whose log it is; asked once for each job. */
static bool begin_log(st_api *api, uint64_t job, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf word = {0};
    st_store *reader = st_api_reader(api, err);
    st_job_row row;
    int64_t serial;
    int r = reader ? st_store_job_get(reader, (int64_t)job, arena, &row, err) : -err->code;

    st_api_reader_back(api, reader);
    if (r < 0)
        return false;
    serial = st_directory_serial(api->dir, row.account);
    /* Under the name it will have when it is gone: others may be called as it is now. */
    if (serial > 0 && !strchr(row.account, ' '))
        st_strbuf_addf(&word, ST_GONE_NAME, row.account, (long long)serial);
    else
        st_strbuf_add(&word, row.account);
    st_logs_begin(api->options.logs, job, st_strbuf_str(&word));
    return true;
}

/* Told so, an agent throws it away; a restored store that waits may not be the one that stays. */
static void unknown_log(const st_api *api, st_call *call, const char *job)
{
    st_err err;

    if (st_native_leads(api->options.native)) {
        st_api_no_such(call, "task on this node of job", job);
        return;
    }
    st_fail(&err, ST_EDOWN,
            "stintd was restored from a backup and takes no logs of jobs that it "
            "does not know; try again later");
    st_call_fail(call, &err);
}

void st_api_agent_logs(st_call *call, void *ctx)
{
    st_api *api = ctx;
    const char *name = st_call_param(call, "job");
    st_strbuf out = {0};
    st_err err = {0};
    int64_t next = 0;
    size_t n, dropped = 0;
    const char *bytes = st_call_body(call, &n);
    uint64_t job;
    int stay, task;

    if (!may_speak(api, call))
        return;
    if (st_api_caller(call)->waiting) {
        st_fail(&err, ST_EDOWN, "another agent speaks for this node; try again later");
        st_call_fail(call, &err);
        return;
    }
    if (!api->options.logs || !st_control_id_parse(api->control, name, &job) ||
        !read_small(st_call_param(call, "stay"), &stay) ||
        !read_small(st_call_param(call, "task"), &task) ||
        !st_native_had(api->options.native, st_api_who(call)->user, job, stay, task)) {
        unknown_log(api, call, name);
        return;
    }
    if (!st_logs_knows(api->options.logs, job) && !begin_log(api, job, &err)) {
        st_call_fail(call, &err);
        return;
    }
    if (st_logs_append(api->options.logs, job, stay, task, st_call_query_int(call, "offset", 0),
                       bytes, n, &next, &dropped, &err) < 0) {
        st_call_fail(call, &err);
        return;
    }
    st_park_wake(api->park, ST_PARK_JOB(job), false);
    st_strbuf_addc(&out, '{');
    st_out_int(&out, "next", next);
    st_out_int(&out, "dropped", (int64_t)dropped);
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}
