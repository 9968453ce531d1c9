/*
 * The bar of cli/progress.h.
 */
#include "cli/progress.h"

#include <time.h>
#include <unistd.h>

#include "base/macros.h"

#define PATIENCE_MS 2000
#define REDRAW_MS   200
#define WIDTH       40

static int64_t clock_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void st_progress_begin(st_progress *bar, FILE *out, const char *what)
{
    int fd = fileno(out);

    *bar = (st_progress){.out = out, .what = what};
    bar->terminal = fd >= 0 && isatty(fd);
    if (bar->terminal)
        bar->begin_ms = clock_ms();
}

void st_progress_show(void *ctx, int done_m)
{
    st_progress *bar = ctx;
    int done = ST_MAX(ST_MIN(done_m, 1000), 0), full = done * WIDTH / 1000;
    int64_t now;

    if (!bar->terminal)
        return;
    now = clock_ms();
    if (now - bar->begin_ms < PATIENCE_MS || now - bar->last_ms < REDRAW_MS)
        return;
    bar->last_ms = now;
    bar->shown = true;
    fprintf(bar->out, "\r%s [", bar->what);
    for (int i = 0; i < WIDTH; i++)
        fputc(i < full ? '#' : '.', bar->out);
    fprintf(bar->out, "] %3d %%", done / 10);
    fflush(bar->out);
}

void st_progress_done(st_progress *bar)
{
    if (!bar->shown)
        return;
    fputs("\r\033[K", bar->out);
    fflush(bar->out);
    bar->shown = false;
}
