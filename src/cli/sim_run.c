/*
 * `stint sim run FILE...`: plays scenarios (scenario/scenario.h) and says whether
 * what was expected came. A file that expects nothing is a question: it is
 * answered with what happens and how everybody stands at the end.
 *
 * Exit status: 0 all held, 1 something differed, 2 bad input.
 */
#include <jansson.h>

#include "base/num.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "scenario/scenario.h"

#define STATUS_DIFFERED 1

typedef struct run_options {
    st_cli_format format;
    bool verbose;
    bool reload;
} run_options;

static void print_timeline(FILE *out, const st_play *play)
{
    ST_CLEANUP(st_table_done) st_table t = {0};

    st_table_column(&t, "TIME", true);
    st_table_column(&t, "JOB", false);
    st_table_column(&t, "WHAT", false);
    st_table_column(&t, "WHERE OR WHY", false);
    for (size_t i = 0; i < play->events.n; i++) {
        const st_play_event *event = &play->events.v[i];
        ST_CLEANUP(st_strbuf_done) st_strbuf what = {0}, where = {0};
        int64_t job = event->refused ? event->action : (int64_t)event->fx.job - 1;
        char buf[ST_FMT_MAX];

        st_play_what(play, event, &what, &where);
        st_table_cell(&t, "%s", st_fmt_duration(buf, event->fx.at_ms));
        st_table_cell(&t, "%s", job >= 0 ? play->s->jobs.v[job].spec.name : "");
        st_table_cell(&t, "%s", st_strbuf_str(&what));
        st_table_cell(&t, "%s", st_strbuf_str(&where));
    }
    st_table_print(&t, out);
}

static void print_jobs(FILE *out, const st_play *play)
{
    ST_CLEANUP(st_table_done) st_table t = {0};

    st_table_column(&t, "JOB", false);
    st_table_column(&t, "ACCOUNT", false);
    st_table_column(&t, "STATE", false);
    st_table_column(&t, "CLASS", false);
    st_table_column(&t, "NODES", false);
    st_table_column(&t, "WHY", false);
    for (size_t i = 0; i < play->s->jobs.n; i++) {
        const st_play_job *j = &play->jobs[i];
        ST_CLEANUP(st_strbuf_done) st_strbuf where = {0}, why = {0};

        if (!j->submitted && !j->refused)
            continue;
        st_play_grants_text(play, j->grants.v, j->grants.n, &where);
        if (j->refused)
            st_strbuf_add(&why, j->refusal);
        else {
            st_play_why(play, (int64_t)i, &why);
            st_play_expected(play, (int64_t)i, &why);
        }
        st_table_cell(&t, "%s", play->s->jobs.v[i].spec.name);
        st_table_cell(&t, "%s", play->s->jobs.v[i].spec.account);
        st_table_cell(&t, "%s", j->refused ? "refused" : st_job_state_name(j->state));
        st_table_cell(&t, "%s", j->class == ST_CLASS_NONE ? "" : st_class_name(j->class));
        st_table_cell(&t, "%s", st_strbuf_str(&where));
        st_table_cell(&t, "%s", st_strbuf_str(&why));
    }
    st_table_print(&t, out);
}

static void print_play(st_cli *cli, const st_play *play, const run_options *o)
{
    const char *file = st_doc_name(play->s->doc);
    bool asked = !play->s->asserts;
    char buf[ST_FMT_MAX];

    if (o->verbose || asked) {
        fprintf(cli->out, "%s\n\n", play->s->name);
        print_timeline(cli->out, play);
        fprintf(cli->out, "\nAfter %s:\n\n", st_fmt_duration(buf, play->now));
        print_jobs(cli->out, play);
        fputc('\n', cli->out);
    }
    for (size_t i = 0; i < play->diffs.n; i++)
        fprintf(cli->out, "%s:%d: at %s: %s\n", file, play->diffs.v[i].line,
                st_fmt_duration(buf, play->diffs.v[i].at_ms), play->diffs.v[i].text);
    if (play->diffs.n > 0)
        fprintf(cli->out, "FAILED  %s  %zu of %d expectations\n", play->s->name, play->diffs.n,
                play->looked);
    else if (!asked)
        fprintf(cli->out, "ok  %s  %d expectations\n", play->s->name, play->looked);
}

/* Whatever is wrong inside a file is bad input: status 2. */
static int fail_input(st_err *err)
{
    return st_fail(err, ST_EINVAL, "%s", err->msg);
}

/* Plays one file; *ret_differed tells whether something was not as expected. */
static int run_file(st_cli *cli, const char *path, const run_options *o, json_t *plays,
                    bool *ret_differed, st_err *err)
{
    const st_play_options options = {.reload = o->reload};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_scenario_freep) st_scenario *s = NULL;
    ST_CLEANUP(st_play_freep) st_play *play = NULL;
    int r = st_doc_load(path, &doc, err);

    if (r == -ST_ELIMIT)
        return fail_input(err); /* of the reader, not of the caller's account */
    if (r < 0)
        return r;
    r = st_scenario_new(doc, &s, err);
    if (r == 0)
        r = st_play_run(s, &options, &play, err);
    if (r < 0)
        return r == -ST_EINTERNAL ? r : fail_input(err);
    if (o->format == ST_CLI_JSON)
        json_array_append_new(plays, st_play_json(play));
    else
        print_play(cli, play, o);
    *ret_differed |= play->diffs.n > 0;
    return 0;
}

static void json_done(json_t **root)
{
    json_decref(*root);
}

int st_cli_sim_run(st_cli *cli, int argc, char **argv, st_err *err)
{
    run_options o = {.format = ST_CLI_TABLE};
    const st_cli_opt opts[] = {
        ST_CLI_OPT_OUTPUT(&o.format),
        {"verbose", 'v', ST_CLI_FLAG, &o.verbose, 0, 0},
        {"reload", 0, ST_CLI_FLAG, &o.reload, 0, 0},
        {0},
    };
    ST_CLEANUP(json_done) json_t *root = json_object();
    json_t *plays = json_array();
    bool differed = false;
    int n, r;

    json_object_set_new(root, "scenarios", plays);
    r = st_cli_options(argc, argv, opts, 1, argc, &n, err);
    if (r < 0)
        return r;
    for (int i = 1; i <= n; i++) {
        r = run_file(cli, argv[i], &o, plays, &differed, err);
        if (r < 0)
            return r;
    }
    if (o.format == ST_CLI_JSON) {
        json_dumpf(root, cli->out, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        fputc('\n', cli->out);
    }
    return differed ? STATUS_DIFFERED : 0;
}
