/*
 * `stint login`, `logout` and `whoami`. A token is never taken from the command line, where
 * everybody on the machine could read it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quote.h"
#include "cli/view.h"

#define TOKEN_MAX 512
#define PROMPT_MS 100

typedef struct login_flags {
    const char *url, *token_file, *ca, *as;
} login_flags;

const st_cli_row st_cli_login_options[] = {
    {"url", 'u', ST_CLI_STRING, offsetof(login_flags, url), "URL",
     "https://HOST:PORT, http://127.0.0.1:PORT or unix:PATH", 0, 0},
    {"token-file", 't', ST_CLI_STRING, offsetof(login_flags, token_file), "FILE",
     "file with the token; - is standard input", 0, 0},
    {"ca", 0, ST_CLI_STRING, offsetof(login_flags, ca), "FILE",
     "certificates to trust, PEM (default: the system's)", 0, 0},
    {"as", 0, ST_CLI_STRING, offsetof(login_flags, as), "NAME",
     "name of this login; STINT_PROFILE selects it", 0, 0},
    {0},
};

const st_cli_row st_cli_logout_options[] = {
    {"as", 0, ST_CLI_STRING, offsetof(login_flags, as), "NAME", "login to remove", 0, 0},
    {0},
};

/* What was read, without blanks around it. */
static int clean_token(const char *text, char **ret, st_err *err)
{
    size_t n;

    text += strspn(text, " \t\r\n");
    n = strcspn(text, " \t\r\n");
    if (n == 0)
        return st_fail(err, ST_EINVAL, "no token was given");
    if (text[n + strspn(text + n, " \t\r\n")] != '\0')
        return st_fail(err, ST_EINVAL, "a token is one word; there is more than one");
    *ret = st_xstrndup(text, n);
    return 0;
}

/* A line from the terminal; false when a signal came first. */
static bool read_line(char *line, int size)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

    while (poll(&in, 1, PROMPT_MS) <= 0)
        if (st_signals_wait(0))
            return false;
    if (!fgets(line, size, stdin))
        *line = '\0';
    return true;
}

/* Signals wait meanwhile, so that the terminal is never left without its echo. */
static int prompt(st_cli *cli, char **ret, st_err *err)
{
    struct termios as_it_was, silent;
    char line[TOKEN_MAX] = "";
    bool got;
    int r;

    if (tcgetattr(STDIN_FILENO, &as_it_was) < 0)
        return st_fail(err, ST_EIO, "the terminal does not answer: %s", strerror(errno));
    st_signals_block();
    silent = as_it_was;
    silent.c_lflag &= ~(tcflag_t)ECHO;
    fprintf(cli->errors, "Token: ");
    fflush(cli->errors);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    got = read_line(line, sizeof line);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &as_it_was);
    fprintf(cli->errors, "\n");
    r = got ? clean_token(line, ret, err)
            : st_fail(err, ST_EINVAL, "login: interrupted; nothing was changed");
    explicit_bzero(line, sizeof line);
    return r;
}

static int read_token(st_cli *cli, const char *file, char **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r;

    if (!file && isatty(STDIN_FILENO))
        return prompt(cli, ret, err);
    r = st_file_read(file ? file : "-", TOKEN_MAX, &text, err);
    if (r == 0)
        r = clean_token(st_strbuf_str(&text), ret, err);
    if (text.s)
        explicit_bzero(text.s, text.n);
    return r;
}

/* The address: as given, as in the environment, or as the login had it before. */
static int choose_url(const login_flags *f, const st_profiles *all, const char *name, char **ret,
                      st_err *err)
{
    const char *url = f->url ? f->url : getenv("STINT_URL");
    const st_cli_profile *old = st_profiles_find(all, name);

    if ((!url || !*url) && old)
        url = old->url;
    if (!url || !*url)
        return st_fail(err, ST_EINVAL, "login: where is stintd? Give its address with --url");
    *ret = st_xstrdup(url);
    return st_profile_check_url(url, err);
}

static int fill(st_cli *cli, const login_flags *f, const st_profiles *all, st_cli_profile *p,
                st_err *err)
{
    const char *ca = f->ca ? f->ca : getenv("STINT_CA");
    const char *name = f->as ? f->as : all->current ? all->current : ST_PROFILE_DEFAULT;
    int r = choose_url(f, all, name, &p->url, err);

    if (r < 0)
        return r;
    p->name = st_xstrdup(name);
    if (ca && *ca) {
        /* It is used from other directories later. */
        p->ca = realpath(ca, NULL);
        if (!p->ca)
            return st_fail(err, ST_ENOENT, "%s: cannot be read: %s", ca, strerror(errno));
    }
    /* On the socket it is the user who counts. */
    if (strncmp(p->url, "unix:", 5) == 0 && !f->token_file)
        return 0;
    return read_token(cli, f->token_file, &p->token, err);
}

/* Whether the server takes it; the profile stays the caller's. */
static int try_login(st_cli *cli, const st_cli_profile *p, json_t **ret, st_err *err)
{
    st_cli_profile same = {st_xstrdup(p->name), st_xstrdup(p->url),
                           p->token ? st_xstrdup(p->token) : NULL,
                           p->ca ? st_xstrdup(p->ca) : NULL};
    ST_CLEANUP(st_client_freep) st_client *client = st_client_new(&same, cli->errors);

    return st_client_get(client, "/v1/whoami", ret, err);
}

static void greet(st_cli *cli, const json_t *who, const st_cli_profile *p)
{
    const char *account = st_view_text(who, "account");

    fprintf(cli->out, "%s, %s of %s, at %s\n", st_view_text(who, "user"), st_view_text(who, "role"),
            *account ? account : "the cluster", p->url);
}

int st_cli_login(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_profiles_done) st_profiles all = {0};
    ST_CLEANUP(st_profile_done) st_cli_profile p = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    login_flags f = {0};
    json_t *who = NULL;
    int r = st_cli_read(argc, argv, st_cli_login_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_profiles_path(&path, err);
    if (r == 0)
        r = st_profiles_load(st_strbuf_str(&path), &all, err);
    if (r == 0)
        r = fill(cli, &f, &all, &p, err);
    if (r == 0)
        r = try_login(cli, &p, &who, err);
    if (r == 0) {
        greet(cli, who, &p);
        free(all.current);
        all.current = st_xstrdup(p.name);
        st_profiles_put(&all, &p);
        r = st_profiles_save(st_strbuf_str(&path), &all, err);
    }
    json_decref(who);
    return r;
}

int st_cli_logout(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_profiles_done) st_profiles all = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    login_flags f = {0};
    char q[ST_QUOTE_MAX];
    const char *name;
    int r = st_cli_read(argc, argv, st_cli_logout_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_profiles_path(&path, err);
    if (r == 0)
        r = st_profiles_load(st_strbuf_str(&path), &all, err);
    if (r < 0)
        return r;
    name = f.as ? f.as : all.current ? all.current : ST_PROFILE_DEFAULT;
    if (!st_profiles_remove(&all, name))
        return st_fail(err, ST_ENOENT, "there is no login %s in %s", st_quote(q, name),
                       st_strbuf_str(&path));
    fprintf(cli->out, "forgot the login %s; its token stays valid until it is revoked\n", name);
    if (all.current && strcmp(all.current, name) == 0) {
        free(all.current);
        all.current = all.all.n > 0 ? st_xstrdup(all.all.v[0].name) : NULL;
    }
    return st_profiles_save(st_strbuf_str(&path), &all, err);
}

/* ---- whoami ------------------------------------------------------------------------------------ */

typedef struct whoami_flags {
    st_cli_format format;
} whoami_flags;

const st_cli_row st_cli_whoami_options[] = {
    {"output", 'o', ST_CLI_OUTPUT, offsetof(whoami_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

int st_cli_whoami(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"User", "user", ST_VIEW_TEXT, NULL},
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"Role", "role", ST_VIEW_TEXT, NULL},
        {"Version", "version", ST_VIEW_TEXT, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    whoami_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_whoami_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_view_one(cli, client, f.format, "/v1/whoami", columns, err);
    if (r == 0 && f.format == ST_CLI_TABLE) {
        const st_cli_profile *p = st_client_profile(client);

        fprintf(cli->out, "Server   %s%s%s\n", p->url, p->name ? ", login " : "",
                p->name ? p->name : "");
    }
    return r;
}
