/*
 * `stint completion`: what a shell needs to know, from the table of verbs.
 */
#include "cli/complete.h"

#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"
#include "cli/cli.h"

#define PATH_MAX_BYTES 100

/* " --limit --state ..." of a verb. Where there is no table, the words of its usage and help. */
static void add_scanned(st_strbuf *out, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf word = {0};

    for (const char *at = text; at && (at = strstr(at, "--")); at += 2) {
        size_t n = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");

        st_strbuf_clear(&word);
        st_strbuf_addf(&word, " --%.*s ", (int)n, at + 2);
        if (n > 0 && (out->n == 0 || !strstr(st_strbuf_str(out), st_strbuf_str(&word))))
            st_strbuf_add(out, st_strbuf_str(&word));
    }
}

static void add_options(st_strbuf *out, const st_cli_verb *v)
{
    if (v->options) {
        for (const st_cli_row *r = v->options; r->name; r++)
            st_strbuf_addf(out, " --%s", r->name);
    } else {
        add_scanned(out, v->usage);
        add_scanned(out, v->help);
    }
    st_strbuf_add(out, " --help");
}

static void add_names(st_strbuf *out, const st_cli_verb *verbs)
{
    for (; verbs->name; verbs++)
        st_strbuf_addf(out, " %s", verbs->name);
}

/* What lists names of a kind. */
#define NAMES "stint completion --list %s 2>/dev/null"

/* Whether a usage has the word, by itself, in brackets or with dots behind it. */
static bool has_word(const char *usage, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = usage; (at = strstr(at, word)); at += n) {
        bool begins = at == usage || at[-1] == ' ' || at[-1] == '[';
        char next = at[n];

        if (begins && (next == '\0' || next == ' ' || next == ']' || next == '.'))
            return true;
    }
    return false;
}

/* What its arguments are, where that is something that is there; NULL: nothing to offer. */
static const char *names_of(const char *path, const st_cli_verb *v)
{
    static const struct {
        const char *word, *kind;
    } words[] = {
        {"NODE", "nodes"}, {"POOL", "pools"}, {"ACCOUNT", "accounts"}, {"IMAGE", "images"}};
    static const char *const other_ids[] = {"incidents", "invoice", "bill", "token", "calendar"};

    if (strcmp(v->name, "add") == 0 || strcmp(v->name, "create") == 0)
        return NULL;
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        if (has_word(v->usage, words[i].word))
            return words[i].kind;
    if (!has_word(v->usage, "ID"))
        return NULL;
    for (size_t i = 0; i < ST_ARRAY_LEN(other_ids); i++)
        if (strncmp(path + 1, other_ids[i], strlen(other_ids[i])) == 0)
            return NULL;
    return strncmp(path, " book ", strlen(" book ")) == 0 ? "bookings" : "jobs";
}

/* The words that may come behind each path, as the branches of a case in sh. */
static void print_cases(FILE *out, const char *path, const st_cli_verb *verbs)
{
    for (; verbs->name; verbs++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf words = {0};
        char full[PATH_MAX_BYTES];

        snprintf(full, sizeof full, "%s %s", path, verbs->name);
        if (verbs->sub) {
            print_cases(out, full, verbs->sub);
            add_names(&words, verbs->sub);
            if (verbs->fn) /* one that does something by itself as well */
                add_options(&words, verbs);
            else
                st_strbuf_add(&words, " --help");
            fprintf(out, "    '%s'%s%s%s) offer='%s' ;;\n", full, verbs->fn ? " | '" : "",
                    verbs->fn ? full : "", verbs->fn ? " '*" : "", st_strbuf_str(&words));
        } else {
            const char *names = names_of(full, verbs);

            add_options(&words, verbs);
            if (names)
                st_strbuf_addf(&words, " $(" NAMES ")", names);
            fprintf(out, "    '%s' | '%s '*) offer=\"%s\" ;;\n", full, full, st_strbuf_str(&words));
        }
    }
}

/* The most words that any verb has for an option of that name. */
static const char *most_words(const st_cli_verb *verbs, const char *name)
{
    const char *most = "";

    for (; verbs->name; verbs++) {
        const char *below = verbs->sub ? most_words(verbs->sub, name) : "";

        most = strlen(below) > strlen(most) ? below : most;
        for (const st_cli_row *r = verbs->options; r && r->name; r++)
            if (strcmp(r->name, name) == 0 && r->value && strlen(r->value) > strlen(most))
                most = r->value;
    }
    return most;
}

/* What lists the names that an option takes. */
static const struct {
    const char *option, *kind;
} lists[] = {
    {"account", "accounts"},   {"booking", "bookings"}, {"class", "classes"},
    {"exclude-node", "nodes"}, {"image", "images"},     {"node", "nodes"},
    {"parent", "accounts"},    {"pool", "pools"},       {"type", "types"},
};

/* What may come behind an option: words to choose from, or a command that lists them in $( ) or ( ). */
static void add_values(st_strbuf *out, const st_cli_verb *all, const char *name, const char *dollar)
{
    const char *words = most_words(all, name);

    if (strchr(words, '|')) {
        st_strbuf_add(out, words);
        for (char *bar = out->s; (bar = strchr(bar, '|'));)
            *bar = ' ';
        return;
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(lists); i++)
        if (strcmp(lists[i].option, name) == 0)
            st_strbuf_addf(out, "%s(" NAMES ")", dollar, lists[i].kind);
}

/* Whether an option of that name, or that letter, stands alone in some verb: what comes behind it is not its value. */
static bool stands_alone(const st_cli_verb *verbs, const char *name, char letter)
{
    for (; verbs->name; verbs++) {
        if (verbs->sub && stands_alone(verbs->sub, name, letter))
            return true;
        for (const st_cli_row *r = verbs->options; r && r->name; r++)
            if (r->kind == ST_CLI_FLAG &&
                (letter ? r->letter == letter : strcmp(r->name, name) == 0))
                return true;
    }
    return false;
}

/* --output table|json|csv: what may come behind an option that takes a value. Nothing of ours where that is anything: the
 * shell offers files. */
static void print_values(FILE *out, const st_cli_verb *all, const st_cli_verb *verbs,
                         st_strbuf *seen)
{
    for (; verbs->name; verbs++) {
        if (verbs->sub)
            print_values(out, all, verbs->sub, seen);
        for (const st_cli_row *r = verbs->options; r && r->name; r++) {
            ST_CLEANUP(st_strbuf_done) st_strbuf mark = {0}, words = {0};

            st_strbuf_addf(&mark, " %s ", r->name);
            if (r->kind == ST_CLI_FLAG || strstr(st_strbuf_str(seen), st_strbuf_str(&mark)) ||
                stands_alone(all, r->name, 0))
                continue;
            st_strbuf_add(seen, st_strbuf_str(&mark));
            add_values(&words, all, r->name, "$");
            fprintf(out, "    --%s", r->name);
            if (r->letter && !stands_alone(all, r->name, r->letter))
                fprintf(out, " | -%c", r->letter);
            fprintf(out, ") offer=\"%s\" ;;\n", st_strbuf_str(&words));
        }
    }
}

/* Bash and zsh share the shape: the verbs so far are the path, the word before decides first. */
static void print_sh(FILE *out, const st_cli_verb *verbs)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf names = {0}, seen = {0};

    add_names(&names, verbs);
    fprintf(out, "    offer=\n    case $at in\n    ' completion'*) offer='bash zsh fish' ;;\n");
    print_cases(out, "", verbs);
    fprintf(out,
            "    '' | ' help') offer='%s help --help --version' ;;\n"
            "    esac\n    case $before in\n",
            st_strbuf_str(&names));
    print_values(out, verbs, verbs, &seen);
    fprintf(out, "    esac\n");
}

static void print_bash(FILE *out, const st_cli_verb *verbs)
{
    fprintf(out, "# bash completion for stint: . <(stint completion bash)\n"
                 "_stint() {\n"
                 "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                 "    local at= offer i\n"
                 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                 "        case ${COMP_WORDS[i]} in\n"
                 "        --) return ;;\n"
                 "        -*) ;;\n"
                 "        *) at+=\" ${COMP_WORDS[i]}\" ;;\n"
                 "        esac\n"
                 "    done\n");
    print_sh(out, verbs);
    fprintf(out, "    COMPREPLY=($(compgen -W \"$offer\" -- \"$current\"))\n"
                 "}\n"
                 "complete -o default -F _stint stint\n");
}

static void print_zsh(FILE *out, const st_cli_verb *verbs)
{
    fprintf(out, "#compdef stint\n"
                 "# zsh completion for stint: . <(stint completion zsh)\n"
                 "_stint() {\n"
                 "    local before=${words[CURRENT-1]} at= i\n"
                 "    local -a given=(${words[2,CURRENT-1]})\n"
                 "    for i in $given; do\n"
                 "        case $i in\n"
                 "        --) _files; return ;;\n"
                 "        -*) ;;\n"
                 "        *) at+=\" $i\" ;;\n"
                 "        esac\n"
                 "    done\n"
                 "    local offer\n");
    print_sh(out, verbs);
    fprintf(out, "    if [[ -n $offer ]]; then compadd -- ${=offer}; else _files; fi\n"
                 "}\n"
                 "compdef _stint stint\n");
}

/* ---- fish ----------------------------------------------------------------------------------------- */

static void print_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void print_fish_option(FILE *out, const char *path, const st_cli_row *r)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf words = {0};

    fprintf(out, "complete -c stint -n \"__stint_in '%s'\" -l %s", path, r->name);
    if (r->letter)
        fprintf(out, " -s %c", r->letter);
    if (r->kind != ST_CLI_FLAG) {
        bool file = r->value && (strstr(r->value, "FILE") || strstr(r->value, "PATH"));

        add_values(&words, st_cli_verbs, r->name, "");
        fprintf(out, file ? " -r" : " -x");
        if (words.n > 0)
            fprintf(out, " -a \"%s\"", words.s);
    }
    fprintf(out, " -d ");
    print_text(out, r->about);
    fprintf(out, "\n");
}

static void print_fish_level(FILE *out, const char *path, const st_cli_verb *verbs)
{
    for (; verbs->name; verbs++) {
        char full[PATH_MAX_BYTES];

        snprintf(full, sizeof full, "%s %s", path, verbs->name);
        fprintf(out, "complete -c stint -f -n \"__stint_at '%s'\" -a %s -d ", path, verbs->name);
        print_text(out, verbs->summary);
        fprintf(out, "\n");
        if (verbs->sub)
            print_fish_level(out, full, verbs->sub);
        else if (names_of(full, verbs))
            fprintf(out, "complete -c stint -f -n \"__stint_in '%s'\" -a \"(" NAMES ")\"\n", full,
                    names_of(full, verbs));
        for (const st_cli_row *r = verbs->options; r && r->name; r++)
            print_fish_option(out, full, r);
    }
}

static void print_fish(FILE *out, const st_cli_verb *verbs)
{
    fprintf(out, "# fish completion for stint: stint completion fish | source\n"
                 "function __stint_path\n"
                 "    set -l words (commandline -opc)\n"
                 "    string join '' ' '(string match -v -- '-*' $words[2..-1])\n"
                 "end\n"
                 "function __stint_at\n"
                 "    set -l at (__stint_path)\n"
                 "    test \"$at\" = \"$argv[1]\"\n"
                 "end\n"
                 "function __stint_in\n"
                 "    string match -q -- \"$argv[1]*\" (__stint_path)\n"
                 "end\n");
    print_fish_level(out, "", verbs);
    fprintf(out, "complete -c stint -f -n \"__stint_at ' completion'\" -a 'bash zsh fish'\n");
}

int st_cli_complete(FILE *out, const char *shell, const st_cli_verb *verbs, st_err *err)
{
    static const char *const shells[] = {"bash", "zsh", "fish", NULL};
    const char *nearest = st_suggest(shell, shells);
    char q[ST_QUOTE_MAX];

    if (strcmp(shell, "bash") == 0)
        print_bash(out, verbs);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out, verbs);
    else if (strcmp(shell, "fish") == 0)
        print_fish(out, verbs);
    else
        return st_fail(err, ST_EINVAL,
                       "there is completion for bash, zsh and fish, not for %s%s%s%s",
                       st_quote(q, shell), nearest ? " (did you mean " : "", nearest ? nearest : "",
                       nearest ? "?)" : "");
    return 0;
}

typedef struct completion_flags {
    const char *list;
} completion_flags;

const st_cli_row st_cli_completion_options[] = {
    {"list", 0, ST_CLI_STRING, offsetof(completion_flags, list),
     "accounts|bookings|classes|images|jobs|nodes|pools|types",
     "print names of this kind instead, as the shells ask for them", 0, 0},
    {0},
};

int st_cli_completion(st_cli *cli, int argc, char **argv, st_err *err)
{
    completion_flags f = {0};
    int n = 0, r = st_cli_read(argc, argv, st_cli_completion_options, &f, 0, 1, &n, err);

    if (r < 0)
        return r;
    if (f.list)
        return st_cli_complete_names(cli, f.list, err);
    if (n == 0)
        return st_fail(err, ST_EINVAL, "an argument is missing: bash, zsh or fish");
    return st_cli_complete(cli->out, argv[1], st_cli_verbs, err);
}
