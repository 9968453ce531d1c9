/*
 * The screen of `stint top` (cli/top.h): lines of text on a terminal, drawn again when the event
 * stream says that something happened, and every two seconds.
 */
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <termcap.h>

#include "cli/spinner.h"
#include "cli/top.h"
#include "cli/view.h"

#define FETCH_MS 2000 /* without news */
#define PAUSE_MS 500  /* with news, at most this often */
#define STEP_MS  100

typedef struct screen {
    st_client *client;
    st_top *top;
    st_events *events;
    SCREEN *terminal;
    st_err trouble; /* code 0: none */
} screen;

static void draw(screen *s)
{
    char *text = NULL, *save = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    int y = 0;

    ST_ASSERT(out);
    st_top_write(s->top, out, LINES - 1, COLS);
    fclose(out);
    erase();
    /* Blank lines part the sections, so the text is not taken apart by strtok. */
    for (char *line = text; line && y < LINES - 1; line = save, y++) {
        save = strchr(line, '\n');
        if (save)
            *save++ = '\0';
        if (y == 0)
            attron(A_BOLD);
        mvaddnstr(y, 0, line, COLS);
        attroff(A_BOLD);
    }
    if (s->trouble.code) {
        attron(A_REVERSE);
        mvaddnstr(LINES - 1, 0, s->trouble.msg, COLS - 1);
        attroff(A_REVERSE);
    } else {
        mvaddnstr(LINES - 1, 0, "q leaves, r asks again, up and down scroll", COLS - 1);
    }
    refresh();
    free(text);
}

/* Whether anything came. A stream that broke is opened again when the server answers. */
static bool news(screen *s)
{
    st_sse_event ev;
    st_err quiet;
    int r;

    if (!s->events) {
        st_signals_wait(0);
        napms(STEP_MS);
        return false;
    }
    r = st_events_next(s->events, STEP_MS, &ev, &quiet);
    if (r > 0)
        st_sse_event_done(&ev);
    if (r < 0) {
        st_events_free(s->events);
        s->events = NULL;
    }
    return r > 0;
}

static void fetch(screen *s)
{
    s->trouble.code = 0;
    if (st_top_fetch(s->client, s->top, &s->trouble) == 0 && !s->events)
        s->events = st_events_open(s->client, "/v1/events", NULL);
}

/* Whether the key was one for that. */
static bool scrolled(st_top *top, int key)
{
    int page = ST_MAX(LINES / 3, 1);
    int by = key == KEY_DOWN || key == 'j'   ? 1
             : key == KEY_UP || key == 'k'   ? -1
             : key == KEY_NPAGE              ? page
             : key == KEY_PPAGE              ? -page
             : key == KEY_HOME || key == 'g' ? -top->skip
                                             : 0;
    int most = (int)ST_MAX(json_array_size(st_view_at(top->running, "jobs")),
                           json_array_size(st_view_at(top->waiting, "jobs")));

    most = ST_MAX(most, (int)json_array_size(top->accounts));
    top->skip = ST_MAX(0, ST_MIN(top->skip + by, most));
    return by != 0;
}

static void loop(screen *s)
{
    int64_t fetched = st_cli_clock_ms();
    bool dirty = false;

    draw(s);
    for (;;) {
        int key;
        int64_t age;

        dirty = news(s) || dirty;
        key = getch();
        if (key == 'q' || key == 'Q' || st_signals_wait(0))
            return;
        age = st_cli_clock_ms() - fetched;
        if (key == 'r' || age >= FETCH_MS || (dirty && age >= PAUSE_MS)) {
            fetch(s);
            fetched = st_cli_clock_ms();
            dirty = false;
            draw(s);
        } else if (key == KEY_RESIZE || scrolled(s->top, key)) {
            draw(s);
        }
    }
}

int st_top_screen(st_client *client, st_top *top, st_err *err)
{
    screen s = {.client = client, .top = top};
    const char *term = getenv("TERM");

    /* Asked first, because newterm does not clean up when it fails. */
    if (term && tgetent(NULL, term) == 1) {
        st_signals_block();
        s.terminal = newterm(NULL, stdout, stdin);
    }
    if (!s.terminal)
        return st_fail(err, ST_EINVAL,
                       "this terminal (TERM=%s) cannot be drawn on; try `stint top "
                       "--once`",
                       term ? term : "");
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    s.events = st_events_open(client, "/v1/events", NULL);
    loop(&s);
    st_events_free(s.events);
    endwin();
    delscreen(s.terminal);
    return 0;
}
