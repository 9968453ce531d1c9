/* A task's folder and its records; see the header. */
#include "run/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "run/os.h"

#define RESERVE_BYTES 16384 /* more than exit.json, and more than one block of most file systems */

void st_state_name(const char *id, char ret[ST_RUN_ID_MAX])
{
    snprintf(ret, ST_RUN_ID_MAX, "%s", id);
    for (char *p = ret; *p; p++)
        if (*p == '/')
            *p = '.';
}

int st_state_dir(const st_run *run, const char *id, char ret[PATH_MAX], st_err *err)
{
    char name[ST_RUN_ID_MAX];

    if (!id || !*id || strlen(id) >= sizeof(name) || strchr(id, '.'))
        return st_fail(err, ST_EINVAL, "\"%s\" is not the id of a task", id ? id : "");
    st_state_name(id, name);
    return st_os_path(ret, err, "%s/tasks/%s", run->state_dir, name);
}

/* ---- JSON <-> fields -------------------------------------------------------------------- */

static void get_text(const json_t *from, const char *key, char *to, size_t cap)
{
    const char *text = json_string_value(json_object_get(from, key));

    snprintf(to, cap, "%s", text ? text : "");
}

static int64_t get_int(const json_t *from, const char *key)
{
    return json_integer_value(json_object_get(from, key));
}

static int write_record(const char *dir, const char *name, json_t *value, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *owned = value;
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/%s", dir, name);

    if (!r && !owned)
        r = st_fail(err, ST_EINVAL, "%s would not be valid UTF-8", path);
    return r ? r : st_os_write_json(path, owned, err);
}

static int read_record(const char *dir, const char *name, json_t **ret, st_err *err)
{
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/%s", dir, name);

    return r ? r : st_os_read_json(path, ret, err);
}

int st_plan_write(const char *dir, const st_plan *p, st_err *err)
{
    json_t *value = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b, s:s, s:b, "
        "s:b}",
        "id", p->id, "name", p->name, "tenant", p->tenant, "runtime", p->runtime, "runtime_root",
        p->runtime_root, "cgroup", p->cgroup, "lower", p->lower, "root_uid",
        (json_int_t)p->root_uid, "cpu_m", (json_int_t)p->cpu_m, "asked_ms", (json_int_t)p->asked_ms,
        "time_limit_ms", (json_int_t)p->time_limit_ms, "grace_ms", (json_int_t)p->grace_ms,
        "log_bytes", (json_int_t)p->log_bytes, "signal", p->signal, "merge_output", p->merge_output,
        "lease", p->lease, "terminal", p->terminal, "input", p->input);

    if (value && p->image.root[0])
        json_object_set_new(value, "image",
                            json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "root", p->image.root,
                                      "path", p->image.path, "digest", p->image.digest, "tenant",
                                      p->image.tenant, "images", p->image.images, "max_bytes",
                                      (json_int_t)p->image.max_bytes, "timeout_ms",
                                      (json_int_t)p->image.timeout_ms));
    return write_record(dir, "task.json", value, err);
}

static void read_image(const json_t *from, st_plan_image *ret)
{
    get_text(from, "root", ret->root, sizeof(ret->root));
    get_text(from, "path", ret->path, sizeof(ret->path));
    get_text(from, "digest", ret->digest, sizeof(ret->digest));
    get_text(from, "tenant", ret->tenant, sizeof(ret->tenant));
    get_text(from, "images", ret->images, sizeof(ret->images));
    ret->max_bytes = get_int(from, "max_bytes");
    ret->timeout_ms = get_int(from, "timeout_ms");
}

int st_plan_read(const char *dir, st_plan *ret, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *from = NULL;
    int r = read_record(dir, "task.json", &from, err);

    if (r)
        return r;
    *ret = (st_plan){
        .root_uid = get_int(from, "root_uid"),
        .cpu_m = get_int(from, "cpu_m"),
        .asked_ms = get_int(from, "asked_ms"),
        .time_limit_ms = get_int(from, "time_limit_ms"),
        .grace_ms = get_int(from, "grace_ms"),
        .log_bytes = get_int(from, "log_bytes"),
        .signal = (int)get_int(from, "signal"),
        .merge_output = json_is_true(json_object_get(from, "merge_output")),
        .terminal = json_is_true(json_object_get(from, "terminal")),
        .input = json_is_true(json_object_get(from, "input")),
    };
    get_text(from, "id", ret->id, sizeof(ret->id));
    get_text(from, "name", ret->name, sizeof(ret->name));
    get_text(from, "tenant", ret->tenant, sizeof(ret->tenant));
    get_text(from, "runtime", ret->runtime, sizeof(ret->runtime));
    get_text(from, "runtime_root", ret->runtime_root, sizeof(ret->runtime_root));
    get_text(from, "cgroup", ret->cgroup, sizeof(ret->cgroup));
    get_text(from, "lease", ret->lease, sizeof(ret->lease));
    get_text(from, "lower", ret->lower, sizeof(ret->lower));
    read_image(json_object_get(from, "image"), &ret->image);
    if (!ret->id[0] || !ret->name[0] || !ret->cgroup[0])
        return st_fail(err, ST_ECORRUPT, "%s/task.json lacks an id, a name or a cgroup", dir);
    return 0;
}

int st_live_write(const char *dir, const st_run_task *t, st_err *err)
{
    char boot[ST_OS_BOOT_MAX];

    return write_record(
        dir, "live.json",
        json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:s}", "shim_pid", t->shim_pid, "init_pid",
                  t->init_pid, "init_birth", (json_int_t)st_os_birth(t->init_pid), "started_us",
                  (json_int_t)t->started_us, "started_boot_ms", (json_int_t)t->started_boot_ms,
                  "deadline_ms", (json_int_t)t->deadline_ms, "boot", st_os_boot_id(boot)),
        err);
}

int st_exit_write(const char *dir, const st_run_task *t, st_err *err)
{
    static const char *const files[] = {"task.json", "exit.json", "."};
    char boot[ST_OS_BOOT_MAX];
    int r = write_record(
        dir, "exit.json",
        json_pack("{s:s, s:i, s:i, s:b, s:b, s:b, s:I, s:I, s:I, s:I, s:s, s:I, s:s}", "why",
                  st_run_why_name(t->why), "status", t->status, "signal", t->signal, "oom", t->oom,
                  "gone", t->gone, "node_fault", t->node_fault, "started_us",
                  (json_int_t)t->started_us, "started_boot_ms", (json_int_t)t->started_boot_ms,
                  "ended_ms", (json_int_t)t->ended_ms, "ended_boot_ms",
                  (json_int_t)t->ended_boot_ms, "boot", st_os_boot_id(boot), "log_lost",
                  (json_int_t)t->log_lost, "text", t->text),
        err);

    /* Nothing else need outlive a crash of the machine: what runs does not. */
    for (size_t i = 0; !r && i < ST_ARRAY_LEN(files); i++) {
        char path[PATH_MAX];

        if (st_os_path(path, NULL, "%s/%s", dir, files[i]) == 0)
            (void)st_os_sync(path, NULL);
    }
    return r;
}

int st_reserve_take(const char *dir, st_err *err)
{
    static const char room[RESERVE_BYTES] = {0};
    char path[PATH_MAX];
    int r = st_os_path(path, err, "%s/reserve", dir);

    return r ? r : st_os_write(path, room, sizeof(room), 0600, err);
}

int st_reserve_give(const char *dir)
{
    char path[PATH_MAX];

    return st_os_path(path, NULL, "%s/reserve", dir) == 0 ? unlink(path) : -1;
}

bool st_kill_read(const char *dir, char ret[ST_RUN_TEXT_MAX])
{
    ST_CLEANUP(st_os_jsonp) json_t *from = NULL;

    if (read_record(dir, "kill.json", &from, NULL) != 0)
        return false;
    get_text(from, "reason", ret, ST_RUN_TEXT_MAX);
    return true;
}

int st_kill_write(const char *dir, const char *reason, st_err *err)
{
    return write_record(dir, "kill.json", json_pack("{s:s}", "reason", reason), err);
}

static const char *const told_names[] = {
#define X(name, string) string,
    ST_RUN_TOLD_TABLE(X)
#undef X
};

static st_run_told read_told(const char *dir)
{
    ST_CLEANUP(st_os_jsonp) json_t *from = NULL;
    char word[16];

    if (read_record(dir, "told.json", &from, NULL) != 0)
        return ST_RUN_TOLD_NOTHING;
    get_text(from, "told", word, sizeof(word));
    for (size_t i = 0; i < ST_ARRAY_LEN(told_names); i++)
        if (strcmp(word, told_names[i]) == 0)
            return (st_run_told)i;
    return ST_RUN_TOLD_NOTHING;
}

int st_told_write(const char *dir, st_run_told told, st_err *err)
{
    return write_record(dir, "told.json", json_pack("{s:s}", "told", told_names[told]), err);
}

bool st_state_locked(const char *dir)
{
    char path[PATH_MAX];

    if (st_os_path(path, NULL, "%s/lock", dir) != 0)
        return false;
    /* Not for writing: who watches the folder is told when a writer closes it, which is the supervisor. */
    ST_CLEANUP(st_os_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    /* Only a lock that could be had says that nobody has it. A machine out of descriptors or memory says nothing, and
     * a healthy task would be ended for that. */
    return fd < 0 ? errno != ENOENT && errno != ENOTDIR : flock(fd, LOCK_SH | LOCK_NB) != 0;
}

/* A moment by the boot clock: as written down, if it was in this boot; otherwise from what it was for
 * people. */
static int64_t boot_time(const json_t *from, const char *key, int64_t utc_ms)
{
    char boot[ST_OS_BOOT_MAX];
    const char *written = json_string_value(json_object_get(from, "boot"));

    if (written && strcmp(written, st_os_boot_id(boot)) == 0 && get_int(from, key) != 0)
        return get_int(from, key);
    return utc_ms == 0 ? 0 : utc_ms - (st_os_now_ms() - st_os_mono_ms());
}

static int read_exit(const char *dir, st_run_task *ret, st_err *err)
{
    ST_CLEANUP(st_os_jsonp) json_t *from = NULL;
    char why[32];
    int r = read_record(dir, "exit.json", &from, err);

    if (r)
        return r;
    get_text(from, "why", why, sizeof(why));
    for (int i = 0; i <= ST_RUN_WHY_START; i++)
        if (strcmp(why, st_run_why_name((st_run_why)i)) == 0)
            ret->why = (st_run_why)i;
    ret->state = ST_RUN_ENDED;
    ret->status = (int)get_int(from, "status");
    ret->signal = (int)get_int(from, "signal");
    ret->oom = json_is_true(json_object_get(from, "oom"));
    ret->gone = json_is_true(json_object_get(from, "gone"));
    ret->node_fault = json_is_true(json_object_get(from, "node_fault"));
    ret->started_us = get_int(from, "started_us");
    ret->started_boot_ms = boot_time(from, "started_boot_ms", ret->started_us / 1000);
    ret->ended_ms = get_int(from, "ended_ms");
    ret->ended_boot_ms = boot_time(from, "ended_boot_ms", ret->ended_ms);
    ret->log_lost = get_int(from, "log_lost");
    get_text(from, "text", ret->text, sizeof(ret->text));
    return 0;
}

bool st_deadline_read(const char *dir, int64_t *ret)
{
    ST_CLEANUP(st_os_jsonp) json_t *from = NULL;

    if (read_record(dir, "deadline.json", &from, NULL) != 0)
        return false;
    *ret = get_int(from, "boot_ms");
    return true;
}

int st_deadline_write(const char *dir, int64_t deadline_ms, st_err *err)
{
    return write_record(dir, "deadline.json",
                        json_pack("{s:I}", "boot_ms", (json_int_t)deadline_ms), err);
}

static bool read_live(const char *dir, st_run_task *ret)
{
    ST_CLEANUP(st_os_jsonp) json_t *from = NULL;

    if (read_record(dir, "live.json", &from, NULL) != 0)
        return false;
    ret->shim_pid = (int)get_int(from, "shim_pid");
    ret->init_pid = (int)get_int(from, "init_pid");
    ret->started_us = get_int(from, "started_us");
    ret->started_boot_ms = boot_time(from, "started_boot_ms", ret->started_us / 1000);
    ret->deadline_ms = get_int(from, "deadline_ms");
    /* A pid that has been given to somebody else is none. */
    if (ret->init_pid > 0 && st_os_birth(ret->init_pid) != (uint64_t)get_int(from, "init_birth"))
        ret->init_pid = 0;
    return true;
}

int st_state_read(const st_run *run, const char *dir, st_run_task *ret, st_err *err)
{
    st_run_task task = {0};
    st_plan plan;
    /* Before the records: a supervisor writes its last one before it lets go. */
    bool locked = st_state_locked(dir);
    int r = st_plan_read(dir, &plan, err);

    if (r)
        return r;
    memcpy(task.id, plan.id, sizeof(task.id));
    memcpy(task.tenant, plan.tenant, sizeof(task.tenant));
    task.asked_ms = plan.asked_ms;
    task.told = read_told(dir);
    bool live = read_live(dir, &task);

    r = read_exit(dir, &task, NULL);
    if (r == -ST_ECORRUPT)
        return st_fail(err, ST_ECORRUPT, "%s/exit.json is damaged", dir);
    if (r != 0) {
        if (locked)
            task.state = live ? ST_RUN_RUNNING : ST_RUN_STARTING;
        else
            task.state = st_cg_count(&run->cg, plan.cgroup) > 0 ? ST_RUN_UNSUPERVISED : ST_RUN_LOST;
    }
    *ret = task;
    return 0;
}
