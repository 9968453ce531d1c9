/* Processes off their devices and back (gpu/cuda.h). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "gpu/cuda.h"

static const char *const states[] = {"running", "locked", "checkpointed", "failed", "gone"};

const char *st_cuda_state_name(int state)
{
    return state >= 0 && state <= CU_GONE ? states[state] : "unknown";
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Where its 36 characters end, NULL when it is none. */
static const char *read_uuid(const char *s, cu_uuid *ret)
{
    if (strncmp(s, "GPU-", 4) != 0)
        return NULL;
    s += 4;
    for (int i = 0; i < 16; i++) {
        int high, low;

        if (i == 4 || i == 6 || i == 8 || i == 10) {
            if (*s != '-')
                return NULL;
            s++;
        }
        high = hex(s[0]);
        low = high >= 0 ? hex(s[1]) : -1;
        if (low < 0)
            return NULL;
        ret->bytes[i] = (unsigned char)(high << 4 | low);
        s += 2;
    }
    return s;
}

int st_cuda_map_add(st_cuda_map *map, const char *text, st_err *err)
{
    cu_pair pair;
    const char *end = read_uuid(text, &pair.from);

    if (map->n >= (int)ST_ARRAY_LEN(map->pair))
        return st_fail(err, ST_ELIMIT, "at most %zu GPUs can be others", ST_ARRAY_LEN(map->pair));
    end = end && *end == '=' ? read_uuid(end + 1, &pair.to) : NULL;
    if (!end || *end)
        return st_fail(err, ST_EINVAL, "%s is not OLDUUID=NEWUUID", text);
    map->pair[map->n++] = pair;
    return 0;
}

static int fail(const cu_lib *lib, const char *what, int pid, int result, st_err *err)
{
    char text[80];

    snprintf(text, sizeof text, "process %d: %s", pid, what);
    return st_cuda_fail(lib, text, result, err);
}

/* One that has ended meanwhile needs nothing any more. */
static int ask(const cu_lib *lib, int pid, int *ret, st_err *err)
{
    int r = CU(lib, state, pid, ret);

    if (r != CU_OK && kill(pid, 0) != 0 && errno == ESRCH)
        *ret = CU_GONE;
    else if (r != CU_OK)
        return fail(lib, "its CUDA state cannot be told", pid, r, err);
    return 0;
}

static int state_of(const cu_lib *lib, int pid, int *ret, st_err *err)
{
    int r = ask(lib, pid, ret, err);

    if (r < 0)
        return r;
    if (*ret == CU_FAILED)
        return st_fail(err, ST_EIO, "process %d: CUDA gave it up in an earlier checkpoint", pid);
    return 0;
}

int st_cuda_states(const cu_lib *lib, const st_cuda_pids *pids, st_strbuf *out, st_err *err)
{
    for (int i = 0; i < pids->n; i++) {
        int state, r = ask(lib, pids->pid[i], &state, err);

        if (r < 0)
            return r;
        st_strbuf_addf(out, "%s{\"pid\":%d,\"state\":\"%s\"}", i ? "," : "", pids->pid[i],
                       st_cuda_state_name(state));
    }
    return 0;
}

/* ---- off ------------------------------------------------------------------------------------ */

static int lock(const cu_lib *lib, int pid, int lock_ms, st_err *err)
{
    cu_lock_args args = {.timeout_ms = (uint32_t)lock_ms};
    int state, r = state_of(lib, pid, &state, err);

    if (r < 0 || state != CU_RUNNING)
        return r;
    r = CU(lib, lock, pid, &args);
    return r == CU_OK ? 0 : fail(lib, "its CUDA calls cannot be locked", pid, r, err);
}

static int take_off(const cu_lib *lib, int pid, st_err *err)
{
    cu_none_args none = {{0}};
    int state, r = state_of(lib, pid, &state, err);

    if (r < 0 || state == CU_CHECKPOINTED || state == CU_GONE)
        return r;
    r = CU(lib, checkpoint, pid, &none);
    return r == CU_OK ? 0 : fail(lib, "its device memory cannot be saved", pid, r, err);
}

/* Whose state cannot be told was not touched either. */
static bool undo(const cu_lib *lib, const st_cuda_pids *pids)
{
    static const st_cuda_map same = {.n = 0};
    st_cuda_pids known = {.n = 0};
    int state;

    for (int i = 0; i < pids->n; i++)
        if (ask(lib, pids->pid[i], &state, NULL) == 0)
            known.pid[known.n++] = pids->pid[i];
    return st_cuda_resume(lib, &known, &same, NULL) == 0;
}

int st_cuda_pause(const cu_lib *lib, const st_cuda_pids *pids, int lock_ms, bool *ret_undone,
                  st_err *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < pids->n; i++)
        r = lock(lib, pids->pid[i], lock_ms, err);
    for (int i = 0; r == 0 && i < pids->n; i++)
        r = take_off(lib, pids->pid[i], err);
    *ret_undone = r == 0 || undo(lib, pids);
    return r;
}

/* ---- back ----------------------------------------------------------------------------------- */

static int put_back(const cu_lib *lib, int pid, const st_cuda_map *map, st_err *err)
{
    cu_pair pairs[ST_ARRAY_LEN(map->pair)];
    cu_restore_args args = {.npairs = (uint32_t)map->n};
    int state, r = state_of(lib, pid, &state, err);

    if (r < 0 || state != CU_CHECKPOINTED)
        return r;
    memcpy(pairs, map->pair, sizeof pairs);
    args.pairs = map->n > 0 ? pairs : NULL;
    r = CU(lib, restore, pid, &args);
    return r == CU_OK ? 0 : fail(lib, "its device memory cannot be restored", pid, r, err);
}

static int unlock(const cu_lib *lib, int pid, st_err *err)
{
    cu_none_args none = {{0}};
    int state, r = state_of(lib, pid, &state, err);

    if (r < 0 || state != CU_LOCKED)
        return r;
    r = CU(lib, unlock, pid, &none);
    return r == CU_OK ? 0 : fail(lib, "its CUDA calls cannot be unlocked", pid, r, err);
}

/* Goes on past a failure: one that is lost must not hold the others. */
int st_cuda_resume(const cu_lib *lib, const st_cuda_pids *pids, const st_cuda_map *map, st_err *err)
{
    int first = 0;

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < pids->n; i++) {
            st_err *to = first == 0 ? err : NULL;
            int r =
                pass == 0 ? put_back(lib, pids->pid[i], map, to) : unlock(lib, pids->pid[i], to);

            first = first == 0 ? r : first;
        }
    return first;
}
