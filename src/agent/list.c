/*
 * Reading a node's list (agent/plan.h). What stintd sends is checked as what comes from outside is.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/plan.h"
#include "agent/tenant.h"
#include "base/quote.h"

static const char *const do_words[] = {
#define X(id, word) word,
    ST_DO_TABLE(X)
#undef X
};
static const char *const level_words[] = {
#define X(id, name) name,
    ST_LEVEL_TABLE(X)
#undef X
};

static int word_of(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; word && i < n; i++)
        if (strcmp(words[i], word) == 0)
            return (int)i;
    return -1;
}

static const char *text(const json_t *map, const char *key)
{
    return json_string_value(json_object_get(map, key));
}

static int64_t number(const json_t *map, const char *key)
{
    return json_integer_value(json_object_get(map, key));
}

int st_signal_parse(const char *word)
{
    char *end;
    long n = strtol(word, &end, 10);

    if (end != word)
        return *end == '\0' && n >= 1 && n <= 64 ? (int)n : -1;
    if (strncmp(word, "SIG", 3) == 0)
        word += 3;
    for (int s = 1; s < NSIG; s++) {
        const char *name = sigabbrev_np(s);

        if (name && strcmp(name, word) == 0)
            return s;
    }
    return -1;
}

/* A job's word for a signal; what is none is the usual one, for the job is admitted already. */
static int signal_of(const char *word, int otherwise)
{
    int s = word ? st_signal_parse(word) : -1;

    return s > 0 ? s : otherwise;
}

static int64_t our_time(int64_t theirs, int64_t skew_ms)
{
    return theirs > 0 ? ST_MAX(theirs - skew_ms, 1) : 0;
}

/* Whom we know an account as: by its number, never by what it is called. */
static int read_tenant(const json_t *job, const char *key, char ret[64], st_err *err)
{
    int64_t id = number(json_object_get(job, key), "id");

    if (id <= 0 || id > ST_TENANT_MAX)
        return st_fail(err, ST_EINVAL,
                       "the list has a job without a %s: stintd is too old for this "
                       "agent",
                       key);
    st_tenant_name(id, ret);
    return 0;
}

static int read_place(const json_t *job, const json_t *task, const st_board boards[ST_DEVS_MAX],
                      st_task_place *ret, st_err *err)
{
    const json_t *devices = json_object_get(task, "devices"), *mig = json_object_get(task, "mig");
    int level = word_of(level_words, ST_ARRAY_LEN(level_words), text(job, "level"));
    st_task_place p = {.level = (st_level)ST_MAX(level, 0), .mig_profile = -1};
    double share = json_number_value(json_object_get(job, "share"));
    const json_t *row;
    size_t i;
    int first = -1;

    if (read_tenant(job, "domain_tenant", p.domain, err) < 0)
        return -err->code;
    json_array_foreach(devices, i, row)
    {
        int64_t d = number(row, "index");

        if (d < 0 || d >= ST_DEVS_MAX)
            return st_fail(err, ST_ERANGE, "the list names GPU %lld", (long long)d);
        p.devs |= (uint16_t)(1u << d);
        if (first < 0)
            first = (int)d;
    }
    p.vram_mib = number(job, "vram_mib");
    if (!(share >= 0 && share <= 1) || p.vram_mib < 0)
        return st_fail(err, ST_ERANGE, "the list has a share or memory of a GPU that none has");
    p.share_m = (int64_t)(share * ST_WHOLE_M + 0.5);
    if (level < 0)
        return st_fail(err, ST_EINVAL, "the list has a job without a level of isolation");
    if (mig) {
        const char *profile = text(mig, "profile");

        if (first < 0 || !profile)
            return st_fail(err, ST_EINVAL, "the list has a slice without a GPU or a profile");
        p.mig_profile = st_mig_parse(boards[first], profile);
        p.mig_start = (int)number(mig, "start");
        if (p.mig_profile < 0 || p.mig_start < 0 || p.mig_start >= ST_MIG_MEMORY ||
            !st_mig_start_legal((st_mig)p.mig_profile, p.mig_start))
            return st_fail(err, ST_EINVAL, "the list has a slice %s at %d, which GPU %d has not",
                           profile, p.mig_start, first);
    }
    *ret = p;
    return 0;
}

/* The document's key, or the variable a job may have in its environment anyway. */
static const char *notify_word(const json_t *doc)
{
    const char *word = text(doc, "notify_signal");

    return word ? word : text(json_object_get(doc, "env"), "STINT_NOTIFY_SIGNAL");
}

static int read_job(const json_t *job, const st_board boards[ST_DEVS_MAX], int64_t skew_ms,
                    st_agent_list *list, st_err *err)
{
    const json_t *doc = json_object_get(job, "document"), *task;
    const char *name = text(job, "job");
    int want = word_of(do_words, ST_ARRAY_LEN(do_words), text(job, "want"));
    st_order o = {.want = (st_do)ST_MAX(want, 0),
                  .until_ms = our_time(number(job, "until_ms"), skew_ms),
                  .deadline_ms = our_time(number(job, "deadline_ms"), skew_ms),
                  .signal = signal_of(text(doc, "signal"), SIGTERM),
                  .notify_signal = signal_of(notify_word(doc), 0),
                  .allow = list->allow,
                  .job = job};
    char q[ST_QUOTE_MAX];
    size_t i;

    if (!name || !name[0] || strlen(name) >= sizeof o.key.job ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
            strlen(name))
        return st_fail(err, ST_EINVAL, "the list has a job called %s",
                       st_quote(q, name ? name : ""));
    if (want < 0)
        return st_fail(err, ST_EINVAL, "the list wants something unknown of job %s", name);
    memcpy(o.key.job, name, strlen(name) + 1);
    if (read_tenant(job, "tenant", o.tenant, err) < 0)
        return -err->code;
    o.key.stay = (int)number(job, "stay");
    json_array_foreach(json_object_get(job, "tasks"), i, task)
    {
        int r = read_place(job, task, boards, &o.place, err);

        if (r < 0)
            return r;
        o.key.task = (int)number(task, "task");
        o.over = json_is_true(json_object_get(task, "over"));
        o.local_rank = (int)number(task, "local_rank");
        if (o.key.stay < 0 || o.key.task < 0 || o.key.task >= ST_TASKS_MAX)
            return st_fail(err, ST_ERANGE, "the list has task %d of job %s", o.key.task, name);
        st_vec_push(&list->orders, o);
    }
    return 0;
}

/* A word we do not know permits nothing. */
static uint32_t read_allow(const json_t *list)
{
    uint32_t allow = 0;
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        for (int p = 0; p < ST_ALLOW_COUNT; p++)
            if (json_is_string(row) &&
                strcmp(json_string_value(row), st_allow_name((st_allow)p)) == 0)
                allow |= 1u << p;
    }
    return allow;
}

int st_list_read(json_t *root, const st_board boards[ST_DEVS_MAX], int64_t skew_ms,
                 st_agent_list *ret, st_err *err)
{
    st_agent_list list = {.epoch = number(root, "epoch"),
                          .at = {number(root, "branch"), number(root, "position")},
                          .revision = (uint64_t)number(root, "revision")};
    const json_t *jobs = json_object_get(root, "jobs"), *job;
    size_t i;

    list.allow = read_allow(json_object_get(root, "allow"));
    list.node_tasks = number(root, "tasks_per_node");
    if (!json_is_array(jobs) || list.epoch <= 0)
        return st_fail(err, ST_EINVAL, "stintd sent an invalid job list");
    json_array_foreach(jobs, i, job)
    {
        int r = read_job(job, boards, skew_ms, &list, err);

        if (r < 0) {
            st_vec_free(&list.orders);
            return r;
        }
    }
    list.root = json_incref(root);
    *ret = list;
    return 0;
}

void st_agent_list_done(st_agent_list *list)
{
    st_vec_free(&list->orders);
    json_decref(list->root);
    *list = (st_agent_list){0};
}
