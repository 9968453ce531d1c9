/* The sim driver's faults: by function, by line, and from a control file or FIFO. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "gpu/sim_state.h"

#define LINE_MAX_BYTES 4096
#define INTRUDER       UINT64_MAX /* no job has it */
#define INTRUDER_MIB   512

typedef struct fault_row {
    const char *name;
    int64_t least, most;
} fault_row;

static const fault_row fault_rows[ST_GPU_FAULT_COUNT] = {
#define X(id, name, least, most) [id] = {name, least, most},
    ST_GPU_FAULT_TABLE(X)
#undef X
};

static void tell(st_gpu_sim *s, int gpu, st_gpu_event_kind kind, int64_t value)
{
    if (kind == ST_GPU_EVENT_XID)
        s->gpu[gpu].xid = value;
    st_sim_push(s, (st_gpu_event){.kind = kind, .gpu = gpu, .gi = ST_GPU_WHOLE, .value = value});
}

static void heal(sim_gpu *gpu)
{
    /* A reset replaces the rows that waited for it, clears memory, and ends MIG instances and whatever ran. */
    gpu->remapped += gpu->remap_pending;
    gpu->lost = gpu->thermal = gpu->remap_pending = false;
    gpu->xid = gpu->recovery = gpu->lanes = gpu->replays = gpu->links_down = 0;
    gpu->sbe_before = gpu->sbe;
    gpu->dbe_before = gpu->dbe;
    gpu->n = 0;
    st_vec_clear(&gpu->loads);
    st_vec_clear(&gpu->residue);
    gpu->stuck = gpu->hangs = false;
    gpu->slow_pcie = gpu->slow_memory = gpu->slow_peer = gpu->slow_compute = 0;
    gpu->bad_words = gpu->bad_products = gpu->broken = gpu->busy_m = gpu->waits_m = 0;
}

/* Somebody's process without a job, with all it does. */
static void intrude(sim_gpu *gpu, int64_t pid)
{
    for (size_t i = gpu->loads.n; i-- > 0;)
        if (gpu->loads.v[i].job == INTRUDER)
            st_vec_remove(&gpu->loads, i);
    if (pid > 0)
        st_vec_push(&gpu->loads,
                    (sim_load){.job = INTRUDER,
                               .gi = ST_GPU_WHOLE,
                               .what = {.pid = pid, .mem_mib = INTRUDER_MIB, .busy_m = 100}});
}

/* What only tests find. */
static void in_tests(sim_gpu *gpu, st_gpu_fault fault, int64_t value)
{
    switch (fault) {
    case ST_GPU_FAULT_BUSY:
        gpu->busy_m = value;
        break;
    case ST_GPU_FAULT_WAITS:
        gpu->waits_m = value;
        break;
    case ST_GPU_FAULT_SLOW_PCIE:
        gpu->slow_pcie = value;
        break;
    case ST_GPU_FAULT_SLOW_MEMORY:
        gpu->slow_memory = value;
        break;
    case ST_GPU_FAULT_SLOW_PEER:
        gpu->slow_peer = value;
        break;
    case ST_GPU_FAULT_SLOW_COMPUTE:
        gpu->slow_compute = value;
        break;
    case ST_GPU_FAULT_BAD_WORDS:
        gpu->bad_words = value;
        break;
    case ST_GPU_FAULT_BAD_PRODUCTS:
        gpu->bad_products = value;
        break;
    case ST_GPU_FAULT_TEST_HANGS:
        gpu->hangs = value != 0;
        break;
    case ST_GPU_FAULT_TEST_BREAKS:
        gpu->broken = value;
        break;
    default:
        ST_ASSERT(false);
    }
}

static void inflict(st_gpu_sim *s, int at, st_gpu_fault fault, int64_t value)
{
    sim_gpu *gpu = &s->gpu[at];

    if (s->now_ms != ST_UNSET)
        st_sim_catch_up(gpu, s->now_ms);
    switch (fault) {
    case ST_GPU_FAULT_XID:
        tell(s, at, ST_GPU_EVENT_XID, value);
        break;
    case ST_GPU_FAULT_ECC_CORRECTED:
        gpu->sbe += value;
        break;
    case ST_GPU_FAULT_ECC_UNCORRECTED:
        gpu->dbe += value;
        tell(s, at, ST_GPU_EVENT_ECC, 0);
        tell(s, at, ST_GPU_EVENT_XID, 48);
        break;
    case ST_GPU_FAULT_REMAP_PENDING:
        gpu->remap_pending = true;
        tell(s, at, ST_GPU_EVENT_REMAP, 0);
        break;
    case ST_GPU_FAULT_REMAP_FAILED:
        gpu->remap_failed = true;
        tell(s, at, ST_GPU_EVENT_REMAP_FAILED, 0);
        break;
    case ST_GPU_FAULT_RECOVERY:
        gpu->recovery = value;
        tell(s, at, ST_GPU_EVENT_RECOVERY, value);
        break;
    case ST_GPU_FAULT_THERMAL:
        gpu->thermal = value != 0;
        break;
    case ST_GPU_FAULT_PCIE_WIDTH:
        gpu->lanes = value;
        break;
    case ST_GPU_FAULT_PCIE_REPLAY:
        gpu->replays += value;
        break;
    case ST_GPU_FAULT_LINKS_DOWN:
        gpu->links_down = value;
        break;
    case ST_GPU_FAULT_STUCK:
        gpu->stuck = value != 0;
        break;
    case ST_GPU_FAULT_MEMORY:
        if (gpu->loads.n > 0)
            gpu->loads.v[gpu->loads.n - 1].what.mem_mib = ST_MIN(value, gpu->product->vram_mib);
        break;
    case ST_GPU_FAULT_PROCESS:
        intrude(gpu, value);
        break;
    case ST_GPU_FAULT_LOST:
        gpu->lost = true;
        tell(s, at, ST_GPU_EVENT_XID, 79);
        tell(s, at, ST_GPU_EVENT_LOST, 0);
        break;
    case ST_GPU_FAULT_HEAL:
        heal(gpu);
        break;
    default:
        in_tests(gpu, fault, value);
        break;
    }
}

int st_gpu_sim_fault(st_gpu *g, int gpu, st_gpu_fault fault, int64_t value, st_err *err)
{
    ST_ASSERT(fault < ST_GPU_FAULT_COUNT);
    const fault_row *row = &fault_rows[fault];
    st_gpu_sim *s = st_sim_of(g);

    if (gpu < 0 || gpu >= g->n)
        return st_fail(err, ST_ENOENT, "there is no GPU %d; this node has %d", gpu, g->n);
    if (value < row->least || value > row->most)
        return st_fail(err, ST_ERANGE, "%s takes %lld to %lld, not %lld", row->name,
                       (long long)row->least, (long long)row->most, (long long)value);
    pthread_mutex_lock(&s->lock);
    inflict(s, gpu, fault, value);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* ---- lines ------------------------------------------------------------------------------ */

typedef struct command {
    int first, last; /* GPUs; none when the line is for another node */
    st_gpu_fault fault;
    int64_t value;
} command;

static int find_fault(const char *word)
{
    for (int i = 0; word && i < ST_GPU_FAULT_COUNT; i++)
        if (strcmp(word, fault_rows[i].name) == 0)
            return i;
    return -1;
}

static int parse(const st_gpu_sim *s, const char *line, command *ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = st_xstrdup(line);
    char quoted[ST_QUOTE_MAX], *save = NULL;
    const char *node = strtok_r(copy, " \t\r\n", &save);
    const char *gpu = strtok_r(NULL, " \t\r\n", &save);
    const char *name = strtok_r(NULL, " \t\r\n", &save);
    const char *number = strtok_r(NULL, " \t\r\n", &save);
    int64_t at = 0, value = 0;
    int fault = find_fault(name);

    *ret = (command){.first = 0, .last = -1};
    if (!node || *node == '#' || (strcmp(node, "*") != 0 && strcmp(node, s->node) != 0))
        return 0;
    if (fault < 0)
        return st_fail(err, ST_EPARSE, "%s is no fault; write NODE GPU FAULT [VALUE]",
                       st_quote(quoted, name ? name : line));
    bool all = strcmp(gpu, "*") == 0;
    if (!all && st_parse_i64(gpu, 0, s->base.n - 1, &at, err) < 0)
        return st_fail_prefix(err, "a GPU of node %s: ", s->node);
    const fault_row *row = &fault_rows[fault];
    if (row->most == 0 ? number != NULL : number == NULL)
        return st_fail(err, ST_EPARSE, "%s takes %s", name, row->most ? "a value" : "no value");
    if (number && st_parse_i64(number, row->least, row->most, &value, err) < 0)
        return st_fail_prefix(err, "%s: ", name);
    *ret = (command){
        .first = (int)at,
        .last = all ? s->base.n - 1 : (int)at,
        .fault = (st_gpu_fault)fault,
        .value = value,
    };
    return 0;
}

static int obey(st_gpu_sim *s, const char *line, st_err *err)
{
    st_err own = {0};
    command c;

    if (parse(s, line, &c, &own) < 0)
        return st_fail(err, own.code, "%s", own.msg);
    for (int i = c.first; i <= c.last; i++)
        inflict(s, i, c.fault, c.value);
    return 0;
}

int st_gpu_sim_command(st_gpu *g, const char *line, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);

    pthread_mutex_lock(&s->lock);
    int r = obey(s, line, err);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- the control file ------------------------------------------------------------------- */

int st_sim_control_open(st_gpu_sim *s, const char *path, st_err *err)
{
    struct stat st;

    /* A FIFO opened for both has no end when its last writer goes. */
    if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
        s->fifo = true;
    s->control_fd = open(path, (s->fifo ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
    if (s->control_fd < 0)
        return st_fail(err, ST_EIO, "control file %s: %s", path, strerror(errno));
    s->control = st_xstrdup(path);
    return 0;
}

/* Takes the first whole line off what was read; NULL when there is none. */
static char *take_line(st_strbuf *from)
{
    char *end = from->n > 0 ? memchr(from->s, '\n', from->n) : NULL;

    if (!end)
        return NULL;
    size_t len = (size_t)(end - from->s) + 1;
    char *line = st_xstrndup(from->s, len);
    memmove(from->s, from->s + len, from->n - len + 1);
    from->n -= len;
    return line;
}

/* Obeys every whole line that has come; a bad one is reported once and skipped. */
int st_sim_control_read(st_gpu_sim *s, st_err *err)
{
    char buf[512];
    ssize_t n;

    if (!s->control)
        return 0;
    for (;;) {
        ST_CLEANUP(st_freep) char *line = take_line(&s->line);
        if (line) {
            int r = obey(s, line, err);
            if (r < 0)
                return r;
            continue;
        }
        if (s->line.n > LINE_MAX_BYTES) {
            st_strbuf_clear(&s->line);
            return st_fail(err, ST_EPARSE, "control file %s: a line without an end", s->control);
        }
        if ((n = read(s->control_fd, buf, sizeof(buf))) <= 0)
            return 0;
        st_strbuf_addn(&s->line, buf, (size_t)n);
    }
}
