/*
 * Events of the past in files (api/events_log.h). A line is
 *
 *     SEQ RUN AT_MS SERIAL ADMINS JOB KIND ACCOUNT NODE TEXT
 *
 * with a tab between two fields: names have none, and in JSON it is written \t. A position is a segment's number and how many of its
 * bytes stand before it.
 */
#include "api/events_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define BAD_CURSOR  "invalid cursor; list again without it"
#define FIELDS      10
#define OFFSET      23 /* bits of a position that are the place in a segment */
#define NAME_DIGIT  12
#define LINE_HEAD   128                          /* bytes of a line beside its text, about */
#define SEGMENT_MAX ((INT64_C(1) << OFFSET) - 1) /* a line may stand over the end */

#define DAY_MS (INT64_C(86400) * 1000)

/* What an organisation may still add. */
typedef struct purse {
    int64_t left, at_ms; /* at_ms 0: it has added nothing yet */
} purse;

struct st_events_log {
    char *dir;
    int64_t keep_ms, run;
    /* The writer's. */
    int fd;
    int64_t number, bytes; /* of the segment that is written to */
    bool broken;           /* the last line may be cut off */
    st_strbuf line;
    ST_VEC(purse) purses; /* by org */
};

st_events_log *st_events_log_new(const char *dir, int64_t keep_ms, int64_t run)
{
    st_events_log *log = st_xcalloc(1, sizeof *log);

    log->dir = st_xstrdup(dir);
    log->keep_ms = keep_ms;
    log->run = run;
    log->fd = -1;
    return log;
}

void st_events_log_free(st_events_log *log)
{
    if (!log)
        return;
    if (log->fd >= 0)
        close(log->fd);
    st_strbuf_done(&log->line);
    st_vec_free(&log->purses);
    free(log->dir);
    free(log);
}

int64_t st_events_log_run(const st_events_log *log)
{
    return log->run;
}

/* ---- segments ---------------------------------------------------------------------------------- */

typedef ST_VEC(int64_t) numbers;

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void list_segments(const char *dir, numbers *ret)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        int64_t n = 0;
        int digits = 0;

        while (e->d_name[digits] >= '0' && e->d_name[digits] <= '9' && digits < NAME_DIGIT)
            n = n * 10 + (e->d_name[digits++] - '0');
        if (digits == NAME_DIGIT && strcmp(e->d_name + digits, ".events") == 0)
            st_vec_push(ret, n);
    }
    if (d)
        closedir(d);
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_number);
}

static void path_of(const st_events_log *log, int64_t number, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%0*" PRId64 ".events", log->dir, NAME_DIGIT, number);
}

/* The oldest that nobody needs any more. The newest always stays. */
static void prune(const st_events_log *log, int64_t now_ms)
{
    numbers list = {0};
    int64_t total = 0;

    list_segments(log->dir, &list);
    for (size_t i = list.n; i > 0; i--) {
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
        struct stat st;

        path_of(log, list.v[i - 1], &path);
        if (stat(path.s, &st) < 0)
            continue;
        total += st.st_size;
        if (i < list.n && (total > ST_EVENTS_BYTES ||
                           (log->keep_ms > 0 && now_ms - st.st_mtime * 1000 > log->keep_ms)))
            unlink(path.s);
    }
    st_vec_free(&list);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static bool open_segment(st_events_log *log, int64_t number)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    struct stat st;

    if (log->fd >= 0)
        close(log->fd);
    path_of(log, number, &path);
    log->fd = open(path.s, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (log->fd < 0 || fstat(log->fd, &st) < 0)
        return false;
    log->number = number;
    log->bytes = st.st_size;
    return true;
}

static bool ready(st_events_log *log, int64_t now_ms)
{
    if (log->fd >= 0 && log->bytes < ST_EVENTS_SEGMENT)
        return true;
    if (log->fd < 0) {
        numbers list = {0};
        int64_t last;

        (void)mkdir(log->dir, 0700);
        list_segments(log->dir, &list);
        last = list.n > 0 ? list.v[list.n - 1] : 1;
        st_vec_free(&list);
        log->broken = true; /* who wrote before may have been killed in a line */
        if (!open_segment(log, last))
            return false;
    }
    if (log->bytes < ST_EVENTS_SEGMENT)
        return true;
    if (!open_segment(log, log->number + 1))
        return false;
    log->broken = false;
    prune(log, now_ms);
    return true;
}

static bool may_add(st_events_log *log, const st_logged_event *e)
{
    int64_t bytes = (int64_t)strlen(e->text) + LINE_HEAD, since, more;
    purse *p;

    if (e->org <= 0)
        return true;
    while (log->purses.n <= (size_t)e->org)
        st_vec_push(&log->purses, ((purse){.left = ST_EVENTS_BURST}));
    p = &log->purses.v[e->org];
    since = p->at_ms > 0 ? ST_MIN(ST_MAX(e->at_ms - p->at_ms, 0), DAY_MS) : 0;
    more = since * (ST_EVENTS_BURST / 1024) / (DAY_MS / 1024);
    p->left = ST_MIN(p->left + more, ST_EVENTS_BURST);
    if (more > 0 || p->at_ms == 0) /* less than a byte's time is kept for the next one */
        p->at_ms = e->at_ms;
    if (p->left < bytes)
        return false;
    p->left -= bytes;
    return true;
}

void st_events_log_add(st_events_log *log, const st_logged_event *e)
{
    ssize_t n;

    if (!may_add(log, e) || !ready(log, e->at_ms))
        return;
    st_strbuf_clear(&log->line);
    if (log->broken && log->bytes > 0)
        st_strbuf_add(&log->line, "!\n"); /* what was cut off there is no line */
    st_strbuf_addf(&log->line,
                   "%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%d\t%" PRIu64
                   "\t%s\t%s\t%s\t%s\n",
                   e->seq, log->run, e->at_ms, e->serial, e->admins, e->job, e->kind, e->account,
                   e->node ? e->node : "", e->text);
    n = write(log->fd, log->line.s, log->line.n);
    log->broken = n != (ssize_t)log->line.n;
    log->bytes += n > 0 ? n : 0;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static void cut(st_strbuf *text, size_t n)
{
    text->n = n;
    text->s[n] = '\0';
}

typedef struct reading {
    st_strbuf text;       /* of one segment, up to where is read */
    int64_t number, left; /* bytes that may still be looked at */
} reading;

static bool read_segment(const st_events_log *log, int64_t number, int64_t upto, reading *r)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    char buf[65536];
    ssize_t n = 0;
    int fd;

    path_of(log, number, &path);
    st_strbuf_clear(&r->text);
    r->number = number;
    fd = open(path.s, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && (int64_t)r->text.n < ST_MIN(upto, SEGMENT_MAX) &&
           (n = read(fd, buf, sizeof buf)) > 0)
        st_strbuf_addn(&r->text, buf, (size_t)n);
    if (fd >= 0)
        close(fd);
    if ((int64_t)r->text.n > upto)
        cut(&r->text, (size_t)upto);
    /* What is being written now is no line yet. */
    while (r->text.n > 0 && r->text.s[r->text.n - 1] != '\n')
        cut(&r->text, r->text.n - 1);
    return fd >= 0;
}

/* The line's fields, in place. False: it is none, as where a crash has cut one off. */
static bool read_line(char *line, st_logged_event *ret)
{
    char *field[FIELDS];

    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line = i < FIELDS - 1 ? strchr(line, '\t') : NULL;
        if (i < FIELDS - 1) {
            if (!line)
                return false;
            *line++ = '\0';
        }
    }
    *ret = (st_logged_event){.seq = strtoull(field[0], NULL, 10),
                             .run = strtoll(field[1], NULL, 10),
                             .at_ms = strtoll(field[2], NULL, 10),
                             .serial = strtoll(field[3], NULL, 10),
                             .admins = field[4][0] == '1',
                             .job = strtoull(field[5], NULL, 10),
                             .kind = field[6],
                             .account = field[7],
                             .node = field[8],
                             .text = field[9]};
    return ret->text[0] == '{' && ret->text[strlen(ret->text) - 1] == '}';
}

/* The lines of a segment, the last one first. 1: it is enough. */
static int tell_lines(reading *r, int64_t since_ms, int64_t *position, st_logged_fn *fn, void *ctx)
{
    while (r->text.n > 0) {
        size_t end = r->text.n - 1, begin = end;
        st_logged_event e;

        *position = (r->number << OFFSET) + (int64_t)r->text.n;
        if (r->left < 0)
            return 1;
        r->text.s[end] = '\0';
        while (begin > 0 && r->text.s[begin - 1] != '\n')
            begin--;
        r->left -= (int64_t)(end - begin + 1);
        *position = (r->number << OFFSET) + (int64_t)begin;
        if (read_line(r->text.s + begin, &e)) {
            if (e.at_ms < since_ms) {
                *position = 0;
                return 1;
            }
            if (fn(ctx, &e, *position) != 0)
                return 1;
        }
        r->text.n = begin;
    }
    return 0;
}

int st_events_log_read(const st_events_log *log, int64_t since_ms, int64_t *position,
                       st_logged_fn *fn, void *ctx, st_err *err)
{
    int64_t number = *position >> OFFSET, offset = *position & ((INT64_C(1) << OFFSET) - 1);
    bool from = *position != 0;
    reading r = {.left = ST_EVENTS_SCAN};
    numbers list = {0};
    int done = 0;

    *position = 0;
    list_segments(log->dir, &list);
    if (from && (list.n == 0 || number > list.v[list.n - 1]))
        done = st_fail(err, ST_EINVAL, BAD_CURSOR);
    for (size_t i = list.n; done == 0 && i > 0; i--) {
        bool first = from && list.v[i - 1] == number;

        if (from && list.v[i - 1] > number)
            continue;
        if (!read_segment(log, list.v[i - 1], first ? offset : SEGMENT_MAX, &r))
            continue;
        if (first && (int64_t)r.text.n != offset) /* no line begins there */
            done = st_fail(err, ST_EINVAL, BAD_CURSOR);
        else
            done = tell_lines(&r, since_ms, position, fn, ctx);
        if (done == 0)
            *position = 0;
    }
    st_strbuf_done(&r.text);
    st_vec_free(&list);
    return done < 0 ? done : 0;
}
