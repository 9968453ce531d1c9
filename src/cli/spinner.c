/*
 * The sign of life of cli/spinner.h.
 */
#include "cli/spinner.h"

#include <time.h>
#include <unistd.h>

#include "base/num.h"

#define PATIENCE_MS 2000
#define REDRAW_MS   200

static int64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t st_cli_clock_ms(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t st_cli_wall_ms(void)
{
    return read_clock(CLOCK_REALTIME);
}

void st_spinner_begin(st_spinner *s, FILE *out, const char *what)
{
    int fd = fileno(out);

    *s = (st_spinner){.out = out, .begin_ms = st_cli_clock_ms()};
    s->terminal = fd >= 0 && isatty(fd);
    snprintf(s->what, sizeof s->what, "%s", what);
}

void st_spinner_turn(st_spinner *s, const char *what)
{
    static const char signs[] = "-\\|/";
    int64_t now;
    char took[ST_FMT_MAX];

    if (what)
        snprintf(s->what, sizeof s->what, "%s", what);
    if (!s->terminal)
        return;
    now = st_cli_clock_ms();
    if (now - s->begin_ms < PATIENCE_MS || now - s->last_ms < REDRAW_MS)
        return;
    s->last_ms = now;
    s->shown = true;
    st_fmt_duration(took, (now - s->begin_ms) / 1000 * 1000);
    fprintf(s->out, "\r%c %s (%s)\033[K", signs[s->turn++ % 4], s->what, took);
    fflush(s->out);
}

void st_spinner_done(st_spinner *s)
{
    if (!s->shown)
        return;
    fputs("\r\033[K", s->out);
    fflush(s->out);
    s->shown = false;
}
