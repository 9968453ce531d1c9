/*
 * What a task's spec must fulfil before anything is done with it. Everything that ends up in a
 * path, a mount or an environment is checked here, once.
 */
#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "base/names.h"
#include "base/utf8.h"
#include "run/bundle.h"
#include "run/layout.h"
#include "run/segment.h"

#define STRINGS_MAX 4096
#define ENV_BYTES   (128 * 1024)

static bool plain_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static int check_id(const char *id, st_err *err)
{
    size_t parts = 1, len = 0;

    if (!id || !*id)
        return st_fail(err, ST_EINVAL, "a task needs an id");
    if (strlen(id) >= ST_RUN_ID_MAX)
        return st_fail(err, ST_ERANGE, "task id of %zu bytes, at most %d", strlen(id),
                       ST_RUN_ID_MAX - 1);
    for (const char *p = id; *p; p++) {
        if (*p == '/') {
            if (len == 0)
                break;
            parts++;
            len = 0;
        } else if (!plain_char(*p)) {
            return st_fail(err, ST_EINVAL,
                           "task id \"%s\": only letters, digits, - and _, in parts joined by /",
                           id);
        } else {
            len++;
        }
    }
    if (len == 0 || parts > 3)
        return st_fail(err, ST_EINVAL, "task id \"%s\": one to three parts joined by /", id);
    return 0;
}

static int check_tenant(const char *tenant, st_err *err)
{
    if (!tenant || !*tenant || strlen(tenant) >= ST_RUN_NAME_MAX)
        return st_fail(err, ST_EINVAL, "a tenant's name has 1 to %d bytes", ST_RUN_NAME_MAX - 1);
    for (const char *p = tenant; *p; p++)
        if (!plain_char(*p) && (*p != '.' || p == tenant))
            return st_fail(err, ST_EINVAL,
                           "tenant \"%s\": only letters, digits, - and _, and . behind the first",
                           tenant);
    return 0;
}

static int check_text(const char *what, const char *text, st_err *err)
{
    size_t n = strlen(text);

    if (st_utf8_valid(text, n) != n)
        return st_fail(err, ST_EINVAL, "%s is not valid UTF-8", what);
    return 0;
}

/* Absolute, without "..", "//" and control characters. */
static int check_path(const char *what, const char *path, st_err *err)
{
    if (!path || path[0] != '/')
        return st_fail(err, ST_EINVAL, "%s \"%s\" must be an absolute path", what,
                       path ? path : "");
    if (strlen(path) >= PATH_MAX)
        return st_fail(err, ST_ERANGE, "%s has %zu bytes, at most %d", what, strlen(path),
                       PATH_MAX - 1);
    int r = check_text(what, path, err);

    if (r)
        return r;
    for (const char *p = path; *p; p++) {
        if ((unsigned char)*p < 0x20)
            return st_fail(err, ST_EINVAL, "%s has a control character", what);
        if (*p == '/' && (p[1] == '/' || (p[1] == '.' && (p[2] == '/' || !p[2])) ||
                          (p[1] == '.' && p[2] == '.' && (p[3] == '/' || !p[3]))))
            return st_fail(err, ST_EINVAL, "%s \"%s\" must not contain //, /./ or /../", what,
                           path);
    }
    return 0;
}

static int check_range(const char *what, int64_t value, int64_t lo, int64_t hi, st_err *err)
{
    if (value < lo || value > hi)
        return st_fail(err, ST_ERANGE, "%s is %lld, must be %lld to %lld", what, (long long)value,
                       (long long)lo, (long long)hi);
    return 0;
}

static int check_env(const char *const *env, st_err *err)
{
    size_t n = 0, bytes = 0;

    for (; env && *env; env++, n++) {
        const char *eq = strchr(*env, '=');

        if (!eq || eq == *env)
            return st_fail(err, ST_EINVAL, "variable %zu is not NAME=value", n + 1);
        for (const char *p = *env; p < eq; p++)
            if (!plain_char(*p) || *p == '-')
                return st_fail(err, ST_EINVAL, "variable name \"%.*s\": letters, digits and _",
                               (int)(eq - *env), *env);
        int r = check_text("a variable", *env, err);

        if (r)
            return r;
        bytes += strlen(*env) + 1;
    }
    if (n > STRINGS_MAX || bytes > ENV_BYTES)
        return st_fail(err, ST_ELIMIT, "%zu variables with %zu bytes, at most %d with %d", n, bytes,
                       STRINGS_MAX, ENV_BYTES);
    return 0;
}

static int check_image(const st_run_image *i, st_err *err)
{
    int r;

    if (i->kind == ST_IMAGE_HOST)
        return 0;
    if ((r = check_path("the image", i->root, err)) != 0)
        return r;
    if (i->kind == ST_IMAGE_FOLDER && strpbrk(i->root, ":,\\")) /* overlay mounts read them */
        return st_fail(err, ST_EINVAL, "the image \"%s\" must not contain : , or \\", i->root);
    if (i->path && (!i->path[0] || i->path[0] == '/' || strlen(i->path) >= PATH_MAX))
        return st_fail(err, ST_EINVAL,
                       "the image's place in the storage is a path without / in front");
    if (i->digest && !st_digest_ok(i->digest))
        return st_fail(err, ST_EINVAL, "the image's digest is sha256: and 64 hex digits");
    return 0;
}

static int check_secrets(const st_run_spec *s, st_err *err)
{
    if (s->nsecret > ST_RUN_SECRETS_MAX)
        return st_fail(err, ST_ELIMIT, "%zu secrets, at most %d", s->nsecret, ST_RUN_SECRETS_MAX);
    for (size_t i = 0; i < s->nsecret; i++) {
        const st_run_secret *x = &s->secrets[i];

        if (!st_plain_name(x->name, ST_RUN_NAME_MAX))
            return st_fail(err, ST_EINVAL, "secret %zu has no usable name", i + 1);
        if (x->n > ST_RUN_SECRET_BYTES_MAX)
            return st_fail(err, ST_ELIMIT, "secret %s has %zu bytes, at most %d", x->name, x->n,
                           ST_RUN_SECRET_BYTES_MAX);
        if (x->env && (!st_variable_name(x->name, ST_RUN_NAME_MAX) || memchr(x->bytes, '\0', x->n)))
            return st_fail(err, ST_EINVAL, "secret %s cannot be a variable", x->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->secrets[k].name, x->name) == 0)
                return st_fail(err, ST_EINVAL, "secret %s is there twice", x->name);
    }
    return 0;
}

static int check_what(const st_run_spec *s, st_err *err)
{
    size_t n = 0;
    int r;

    if ((s->command && s->command[0]) == (s->script != NULL))
        return st_fail(err, ST_EINVAL, "a task has a command or a script, one of the two");
    for (; s->command && s->command[n]; n++) {
        if (n >= STRINGS_MAX)
            return st_fail(err, ST_ELIMIT, "a command has at most %d words", STRINGS_MAX);
        if ((r = check_text("the command", s->command[n], err)) != 0)
            return r;
    }
    if ((r = check_env(s->env, err)) != 0 || (r = check_secrets(s, err)) != 0)
        return r;
    if (s->workdir && (r = check_path("the working directory", s->workdir, err)) != 0)
        return r;
    if ((r = check_image(&s->image, err)) != 0)
        return r;
    return s->data ? check_path("the storage", s->data, err) : 0;
}

static int check_device(const st_run_device *d, st_err *err)
{
    int r = check_path("a device", d->path, err);

    if (!r && strncmp(d->path, "/dev/", 5) != 0)
        r = st_fail(err, ST_EINVAL, "device %s must be under /dev/", d->path);
    if (!r && d->host_path)
        r = check_path("a device of the node", d->host_path, err);
    if (!r && d->access && (!*d->access || strspn(d->access, "rwm") != strlen(d->access)))
        r = st_fail(err, ST_EINVAL, "device %s: access \"%s\" is not made of r, w and m", d->path,
                    d->access);
    if (!r && d->major >= 0)
        r = check_range("a device's minor number", d->minor, 0, 0xfffff, err);
    return r;
}

static int check_mount(const st_run_mount *m, st_err *err)
{
    static const char *const ours[] = {"/proc", "/sys", "/dev", "/run/stint"};
    int r = check_path("a mount's source", m->source, err);

    if (!r)
        r = check_path("a mount's target", m->target, err);
    if (!r && strcmp(m->target, "/") == 0)
        r = st_fail(err, ST_EINVAL, "a mount on / would hide the image");
    for (size_t i = 0; !r && i < ST_ARRAY_LEN(ours); i++) {
        size_t n = strlen(ours[i]);

        if (strncmp(m->target, ours[i], n) == 0 && (m->target[n] == '/' || !m->target[n]))
            r = st_fail(err, ST_EINVAL, "a mount on %s is not allowed", m->target);
    }
    return r;
}

static int check_gang(const st_run_gang *g, st_err *err)
{
    int r;

    if (g->world_size == 0)
        return 0;
    if (!g->master_addr || !*g->master_addr)
        return st_fail(err, ST_EINVAL, "a gang needs the address of its first task");
    if ((r = check_range("the gang's size", g->world_size, 1, 1 << 20, err)) != 0 ||
        (r = check_range("the rank", g->rank, 0, g->world_size - 1, err)) != 0 ||
        (r = check_range("the local rank", g->local_rank, 0, g->world_size - 1, err)) != 0 ||
        (r = check_range("the local size", g->local_world_size, 0, g->world_size, err)) != 0 ||
        (r = check_range("the node's rank", g->node_rank, 0, g->world_size - 1, err)) != 0)
        return r;
    return check_range("the gang's port", g->master_port, 1, 65535, err);
}

static int check_limits(const st_run_spec *s, st_err *err)
{
    const struct {
        const char *what;
        int64_t value, lo, hi;
    } rows[] = {
        {"the user id", s->uid, ST_RUN_UID_MIN, INT32_MAX},
        {"the group id", s->gid, ST_RUN_UID_MIN, INT32_MAX},
        {"the size of the id range", s->userns_ids, 0, 1 << 20},
        {"the CPU limit in thousandths of a CPU", s->cpu_m, 0, 1000 * 4096},
        {"the RAM limit in MiB", s->ram_mib, 0, INT64_C(1) << 30},
        {"the process limit", s->pids, 0, 1 << 22},
        {"the size of /dev/shm in MiB", s->shm_mib, 0, INT64_C(1) << 30},
        {"the size of /tmp in MiB", s->tmp_mib, 0, INT64_C(1) << 30},
        {"the time limit in ms", s->time_limit_ms, 0, INT64_C(365) * 86400000 * 10},
        {"the grace in ms", s->grace_ms, 0, INT64_C(7) * 86400000},
        {"the signal", s->signal, 0, SIGRTMAX},
        {"the network", (int64_t)s->net, ST_NET_NONE, ST_NET_TENANT},
        {"the log limit in bytes", s->log_bytes, 0, INT64_C(1) << 40},
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        int r = check_range(rows[i].what, rows[i].value, rows[i].lo, rows[i].hi, err);

        if (r)
            return r;
    }
    for (size_t i = 0; i < s->ngroup; i++)
        if (check_range("a group", s->groups[i], ST_RUN_UID_MIN, INT32_MAX, err) != 0)
            return -err->code;
    if (s->ram_mib > 0 && s->ram_mib < 8)
        return st_fail(err, ST_ERANGE, "a RAM limit of %lld MiB is too small to start in",
                       (long long)s->ram_mib);
    if (s->cpu_m > 0 && s->cpu_m < 10)
        return st_fail(err, ST_ERANGE, "a CPU limit below 0.01 CPUs cannot be enforced");
    if (s->cpus && (!s->cpus[0] || s->cpus[strspn(s->cpus, "0123456789,-")]))
        return st_fail(err, ST_EINVAL, "\"%.40s\" is not a list of CPUs like 0-3,8", s->cpus);
    if (s->log_bytes > 0 && s->log_bytes < ST_RUN_LOG_MIN)
        return st_fail(err, ST_ERANGE, "a log limit of %lld bytes, at least %lld",
                       (long long)s->log_bytes, (long long)ST_RUN_LOG_MIN);
    return 0;
}

int st_run_check(const st_run_spec *s, st_err *err)
{
    int r;

    if ((r = check_id(s->id, err)) != 0 || (r = check_tenant(s->tenant, err)) != 0 ||
        (r = check_limits(s, err)) != 0 || (r = check_what(s, err)) != 0 ||
        (r = check_gang(&s->gang, err)) != 0 || (r = st_segment_check(&s->segment, err)) != 0)
        return st_fail_prefix(err, "task %s: ", s->id ? s->id : "?");
    for (size_t i = 0; i < s->ndevice; i++)
        if ((r = check_device(&s->devices[i], err)) != 0)
            return st_fail_prefix(err, "task %s: ", s->id);
    for (size_t i = 0; i < s->nmount; i++)
        if ((r = check_mount(&s->mounts[i], err)) != 0)
            return st_fail_prefix(err, "task %s: ", s->id);
    if (s->shm && (r = check_path("the folder for /dev/shm", s->shm, err)) != 0)
        return st_fail_prefix(err, "task %s: ", s->id);
    if (s->cdi_file && (r = check_path("the CDI file", s->cdi_file, err)) != 0)
        return st_fail_prefix(err, "task %s: ", s->id);
    return 0;
}

int st_cdi_check(const st_cdi_edits *cdi, st_err *err)
{
    int r = 0;

    for (size_t i = 0; !r && i < cdi->ndevice; i++)
        r = check_device(&cdi->devices[i], err);
    for (size_t i = 0; !r && i < cdi->nmount; i++)
        r = check_mount(&cdi->mounts[i], err);
    return r ? st_fail_prefix(err, "the CDI spec: ") : 0;
}

static const char *const state_names[] = {
#define STATE_NAME(name, string) string,
    ST_RUN_STATE_TABLE(STATE_NAME)};

static const char *const why_names[] = {
#define WHY_NAME(name, string) string,
    ST_RUN_WHY_TABLE(WHY_NAME)};

const char *st_run_state_name(st_run_state state)
{
    ST_ASSERT((size_t)state < ST_ARRAY_LEN(state_names));
    return state_names[state];
}

const char *st_run_why_name(st_run_why why)
{
    ST_ASSERT((size_t)why < ST_ARRAY_LEN(why_names));
    return why_names[why];
}
