/*
 * The manual, stint.1, from the table of verbs: `stint help --man`.
 */
#include <string.h>

#include "cli/cli.h"

#define PATH_MAX_BYTES 100

/* Text as troff takes it: a dash is a dash, a line never begins with a request. */
static void put(FILE *out, const char *text)
{
    bool begins = true;

    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else
            fputc(*text, out);
        begins = *text == '\n';
    }
}

static void put_options(FILE *out, const st_cli_row *rows)
{
    for (const st_cli_row *r = rows; r && r->name; r++) {
        fprintf(out, ".TP\n");
        if (r->letter)
            fprintf(out, "\\fB\\-%c\\fR, ", r->letter);
        fprintf(out, "\\fB\\-\\-");
        put(out, r->name);
        fprintf(out, "\\fR");
        if (r->value) {
            fprintf(out, " \\fI");
            put(out, r->value);
            fprintf(out, "\\fR");
        }
        fprintf(out, "\n");
        put(out, r->about);
        fprintf(out, "\n");
    }
}

static void put_verb(FILE *out, const char *path, const st_cli_verb *v)
{
    fprintf(out, ".SS \"");
    put(out, path);
    fprintf(out, " ");
    put(out, v->usage);
    fprintf(out, "\"\n");
    put(out, v->summary);
    fprintf(out, ".\n");
    if (v->help) {
        fprintf(out, ".PP\n.nf\n");
        put(out, v->help);
        fprintf(out, ".fi\n");
    }
    put_options(out, v->options);
    if (v->example) {
        fprintf(out, ".PP\nExample:\n.PP\n.nf\n");
        put(out, v->example);
        fprintf(out, ".fi\n");
    }
}

static void put_verbs(FILE *out, const char *path, const st_cli_verb *verbs)
{
    for (; verbs->name; verbs++) {
        char full[PATH_MAX_BYTES];

        snprintf(full, sizeof full, "%s %s", path, verbs->name);
        if (verbs->fn || !verbs->sub)
            put_verb(out, full, verbs);
        if (verbs->sub)
            put_verbs(out, full, verbs->sub);
    }
}

static void put_statuses(FILE *out)
{
    fprintf(out, ".SH EXIT STATUS\n.TP\n0\nall is well\n");
#define X(id, string, http, cli, remedy) fprintf(out, ".TP\n%d\n%s\n", cli, string);
    ST_ERR_TABLE(X)
#undef X
    fprintf(
        out,
        ".PP\n\\fBrun\\fR and \\fBsubmit \\-\\-wait\\fR end with the job's own status; 124 when "
        "its time was up, 130 when it was cancelled.\n");
}

void st_cli_man(FILE *out, const st_cli_verb *verbs)
{
    fprintf(
        out,
        ".TH STINT 1 \"\" \"stint " ST_VERSION "\" \"\"\n"
        ".SH NAME\nstint \\- shares one GPU fleet among teams\n"
        ".SH SYNOPSIS\n\\fBstint\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
        ".SH COMMANDS\n");
    put_verbs(out, "stint", verbs);
    fprintf(out,
            ".SH ENVIRONMENT\n"
            ".TP\n\\fBSTINT_URL\\fR\nwhere stintd is: https://HOST:PORT, http://127.0.0.1:PORT or "
            "unix:PATH\n"
            ".TP\n\\fBSTINT_TOKEN\\fR\nwho one is; wins over the saved login\n"
            ".TP\n\\fBSTINT_CA\\fR\ncertificates of the authorities to trust\n"
            ".TP\n\\fBSTINT_PROFILE\\fR\nwhich of the saved logins to use\n"
            ".TP\n\\fBSTINT_CONFIG\\fR\nwhere logins are kept, ~/.config/stint/config unless set\n"
            ".TP\n\\fBSTINT_INSECURE\\fR\n1 allows http:// to other machines\n");
    put_statuses(out);
}
