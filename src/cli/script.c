/*
 * Scripts as jobs (cli/script.h).
 */
#include "cli/script.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "cli/sbatch.h"

static void line_done(st_script_line *line)
{
    for (size_t i = 0; i < line->words.n; i++)
        free(line->words.v[i]);
    st_vec_free(&line->words);
}

void st_script_done(st_script *script)
{
    for (size_t i = 0; i < script->lines.n; i++)
        line_done(&script->lines.v[i]);
    st_vec_free(&script->lines);
    free(script->name);
    free(script->text);
    *script = (st_script){0};
}

bool st_script_is(const char *word)
{
    char begin[2];
    struct stat about;
    int fd = open(word, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
              read(fd, begin, 2) == 2 && begin[0] == '#' && begin[1] == '!';

    if (fd >= 0)
        close(fd);
    return is;
}

/* ---- words ---------------------------------------------------------------------------------------- */

/* One word from *at, which is not a blank. */
static int split_one(const char **at, st_strbuf *word, st_err *err)
{
    const char *s = *at;

    for (; *s && *s != ' ' && *s != '\t'; s++) {
        char quote = *s;

        if (quote == '\\' && s[1]) {
            st_strbuf_addc(word, *++s);
        } else if (quote == '\'' || quote == '"') {
            while (*++s && *s != quote) {
                if (quote == '"' && *s == '\\' && s[1] && strchr("\"\\$`", s[1]))
                    s++;
                st_strbuf_addc(word, *s);
            }
            if (!*s)
                return st_fail(err, ST_EINVAL, "a %s is not closed", quote == '"' ? "\"" : "'");
        } else {
            st_strbuf_addc(word, quote);
        }
    }
    *at = s;
    return 0;
}

int st_script_split(const char *text, st_script_line *into, st_err *err)
{
    int r = 0;

    while (r == 0) {
        ST_CLEANUP(st_strbuf_done) st_strbuf word = {0};

        text += strspn(text, " \t");
        if (!*text || *text == '#')
            break;
        r = split_one(&text, &word, err);
        if (r == 0)
            st_vec_push(&into->words, st_xstrdup(st_strbuf_str(&word)));
    }
    return r;
}

/* ---- lines ---------------------------------------------------------------------------------------- */

typedef struct reader {
    const char *path, *verb;
    st_script *script;
    st_sbatch *sbatch; /* NULL: it has no such lines */
    FILE *notes;
} reader;

static bool begins(const char *line, const char *with, const char **ret_rest)
{
    size_t n = strlen(with);

    if (strncmp(line, with, n) != 0 || (line[n] && line[n] != ' ' && line[n] != '\t'))
        return false;
    *ret_rest = line + n;
    return true;
}

static int read_line(reader *rd, int number, const char *line, st_err *err)
{
    st_script_line words = {.line = number};
    const char *rest;
    bool ours = begins(line, "#STINT", &rest);
    int r;

    if (!ours && !begins(line, "#SBATCH", &rest))
        return 0;
    if (ours)
        st_vec_push(&words.words, st_xstrdup(rd->verb));
    r = st_script_split(rest, &words, err);
    if (r == 0 && !ours) {
        if (!rd->sbatch)
            rd->sbatch = st_sbatch_new(rd->path, rd->notes);
        r = st_sbatch_add(rd->sbatch, &words, err);
    }
    if (r == 0 && ours)
        st_vec_push(&rd->script->lines, words);
    else
        line_done(&words);
    return r < 0 ? st_fail_prefix(err, "%s:%d: ", rd->path, number) : 0;
}

/* Up to the first command. */
static int read_head(reader *rd, const char *text, st_err *err)
{
    int r = 0;

    for (int number = 1; r == 0 && *text; number++) {
        size_t n = strcspn(text, "\n");
        ST_CLEANUP(st_freep) char *line = st_xstrndup(text, n && text[n - 1] == '\r' ? n - 1 : n);

        if (line[0] != '#' && line[strspn(line, " \t")] != '\0')
            break;
        r = read_line(rd, number, line, err);
        text += n + (text[n] == '\n');
    }
    return r;
}

/* What #SBATCH lines ask for comes first, so that #STINT lines and the command line have the last word. */
static int put_sbatch(reader *rd, st_err *err)
{
    st_script_line words = {0};
    int r;

    if (!rd->sbatch)
        return 0;
    st_vec_push(&words.words, st_xstrdup(rd->verb));
    r = st_sbatch_words(rd->sbatch, &words, err);
    if (r < 0) {
        line_done(&words);
        return st_fail_prefix(err, "%s: ", rd->path);
    }
    fprintf(rd->notes, "stint: %s: its #SBATCH lines mean:", rd->path);
    for (size_t i = 1; i < words.words.n; i++)
        fprintf(rd->notes, " %s", words.words.v[i]);
    fprintf(rd->notes, "\n");
    st_vec_insert(&rd->script->lines, 0, words);
    return 0;
}

/* ---- text ----------------------------------------------------------------------------------------- */

/* Whether a shell reads it, going by its first line: #!/bin/bash, #!/usr/bin/env -S bash -e. */
static bool is_shell(const char *text)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ksh", "zsh", "ash"};
    ST_CLEANUP(st_freep) char *line = st_xstrndup(text + 2, strcspn(text, "\n") - 2);
    char *save = NULL;

    for (char *word = strtok_r(line, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
        const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

        if (strcmp(name, "env") == 0 || name[0] == '-')
            continue;
        for (size_t i = 0; i < ST_ARRAY_LEN(shells); i++)
            if (strcmp(name, shells[i]) == 0)
                return true;
        break;
    }
    return false;
}

static void quote_word(st_strbuf *out, const char *word)
{
    st_strbuf_add(out, " '");
    for (; *word; word++) {
        if (*word == '\'')
            st_strbuf_add(out, "'\\''");
        else
            st_strbuf_addc(out, *word);
    }
    st_strbuf_addc(out, '\'');
}

/* What a shell is to do first stands in one line behind the #!. */
static int make_text(reader *rd, const char *text, int nargs, char **args, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    size_t first = strcspn(text, "\n");
    bool shell = is_shell(text);

    if (nargs > 0 && !shell)
        return st_fail(
            err, ST_EINVAL,
            "%s is no shell script, so it cannot be given arguments this way; bring its folder: "
            "stint %s --with . -- python3 %s %s",
            rd->path, rd->verb, rd->path, args[0]);
    st_strbuf_addn(&out, text, first);
    st_strbuf_addc(&out, '\n');
    if (shell && nargs > 0) {
        st_strbuf_add(&out, "set --");
        for (int i = 0; i < nargs; i++)
            quote_word(&out, args[i]);
        st_strbuf_add(&out, rd->sbatch ? "; " : "\n");
    }
    if (shell && rd->sbatch)
        st_sbatch_prologue(rd->sbatch, &out);
    if (text[first])
        st_strbuf_add(&out, text + first + 1);
    rd->script->text = st_strbuf_take(&out);
    return 0;
}

static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    return dot && dot != name ? st_xstrndup(name, (size_t)(dot - name)) : st_xstrdup(name);
}

int st_script_read(const char *path, const char *verb, int nargs, char **args, FILE *notes,
                   st_script *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    ST_CLEANUP(st_script_done) st_script script = {0};
    reader rd = {.path = path, .verb = verb, .script = &script, .notes = notes};
    int r = st_file_read(path, ST_SCRIPT_BYTES_MAX, &text, err);

    if (r == 0 && (strlen(st_strbuf_str(&text)) != text.n ||
                   st_utf8_valid(st_strbuf_str(&text), text.n) != text.n))
        r = st_fail(err, ST_EINVAL, "%s: a script is text in UTF-8", path);
    if (r == 0)
        r = read_head(&rd, st_strbuf_str(&text), err);
    if (r == 0)
        r = put_sbatch(&rd, err);
    if (r == 0)
        r = make_text(&rd, st_strbuf_str(&text), nargs, args, err);
    st_sbatch_free(rd.sbatch);
    if (r < 0)
        return r;
    script.name = name_of(path);
    *ret = script;
    script = (st_script){0};
    return 0;
}

int st_script_options(const st_script *script, const char *path, const st_cli_row *rows, void *into,
                      st_err *err)
{
    for (size_t i = 0; i < script->lines.n; i++) {
        const st_script_line *line = &script->lines.v[i];
        int r = st_cli_read((int)line->words.n, line->words.v, rows, into, 0, 0, NULL, err);

        if (r < 0 && line->line > 0)
            return st_fail_prefix(err, "%s:%d: ", path, line->line);
        if (r < 0)
            return st_fail_prefix(err, "%s: #SBATCH lines: ", path);
    }
    return 0;
}
