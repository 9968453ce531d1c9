/*
 * `stint submit` and `stint run`: sends a job, or many, and stays with it if asked to. A job is what the options say, a file of them,
 * or a script of this machine with its options in it (cli/script.h).
 */
#include <string.h>

#include "base/mem.h"
#include "cli/job_doc.h"
#include "cli/jobs.h"
#include "cli/script.h"
#include "cli/volume.h"
#include "cli/with.h"

#define DUMP       (JSON_REAL_PRECISION(6) | JSON_PRESERVE_ORDER)
#define DUMP_LINES (DUMP | JSON_INDENT(1))

static void print_doc(st_cli *cli, const json_t *doc)
{
    ST_CLEANUP(st_freep) char *text = json_dumps(doc, DUMP | JSON_INDENT(2));

    fprintf(cli->out, "%s\n", text);
}

/* A document on its way: one value a line, so that complaints can be traced to flags and files. */
typedef struct letter {
    const st_job_flags *flags;
    char *body;
} letter;

static void letter_done(letter *l)
{
    free(l->body);
}

static int send(st_client *client, const char *path, const letter *l, json_t **ret,
                st_response *response, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf told = {0};
    char key[ST_KEY_MAX];
    int r;

    st_client_key(key);
    r = st_client_json(client,
                       &(st_request){.method = "POST", .path = path, .body = l->body, .key = key},
                       ret, response, err);
    if (r < 0) {
        st_job_place(l->flags, l->body, err->msg, &told);
        st_fail(err, -r, "%s", st_strbuf_str(&told));
    }
    return r;
}

/* Each job was taken or refused by itself; the first refusal decides the status. */
static int tell_batch(st_cli *cli, const letter *l, const json_t *answer)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf told = {0};
    int status = 0;
    json_t *item;
    size_t i, refused = 0;

    json_array_foreach(st_view_at(answer, "jobs"), i, item)
    {
        if (st_view_at(item, "id")) {
            fprintf(cli->out, "%s\n", st_view_text(item, "id"));
            continue;
        }
        refused++;
        told.n = 0;
        st_job_place(l->flags, l->body, st_view_text(item, "detail"), &told);
        fprintf(cli->errors, "stint: job %zu: %s\n", i, st_strbuf_str(&told));
        if (status == 0) {
            st_response as = {.status = 400};
            char *text = json_dumps(item, 0);

            st_strbuf_add(&as.body, text);
            status = st_err_exit(st_client_problem(&as, "", NULL));
            st_response_done(&as);
            free(text);
        }
    }
    fprintf(cli->errors, "%zu jobs submitted, %zu refused\n", i - refused, refused);
    return status;
}

static int submit_batch(st_cli *cli, st_client *client, const letter *l, st_err *err)
{
    const st_job_flags *f = l->flags;
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *answer;
    int r;

    if (f->wait)
        return st_fail(err, ST_EINVAL, "--wait is for one job, not for many at once");
    r = send(client, "/v1/jobs/batch", l, &answer, &response, err);
    if (r < 0)
        return r;
    if (f->format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        r = tell_batch(cli, l, answer);
    json_decref(answer);
    return r;
}

/* On standard output only the id, for scripts. */
static void tell_job(st_cli *cli, const json_t *job)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf where = {0};
    const char *id = st_view_text(job, "id"), *state = st_view_text(job, "state");

    st_job_where(job, &where);
    fprintf(cli->out, "%s\n", id);
    fflush(cli->out);
    if (strcmp(state, "pending") == 0)
        fprintf(cli->errors, "job %s is pending (`stint why %s` says why)\n", id, id);
    else
        fprintf(cli->errors, "job %s is %s%s%s\n", id, state, where.n ? " on " : "",
                st_strbuf_str(&where));
}

/* A document that became an array: the pieces' ids, and the array's own for whoever watches. */
static int tell_array(st_cli *cli, const letter *l, const json_t *answer)
{
    const char *id = st_view_text(answer, "array");
    int status = tell_batch(cli, l, answer);

    fprintf(cli->errors, "they are array %s (`stint array %s` says how far it is)\n", id, id);
    return status;
}

/* What would become of it; nothing is submitted. Of an array the first piece stands for all. */
static int try_out(st_cli *cli, st_client *client, const letter *l, const char *what, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *answer;
    int r = send(client, "/v1/jobs?dry_run=true", l, &answer, &response, err);

    if (r < 0)
        return r;
    if (l->flags->format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        st_job_outlook(cli, what, answer);
    json_decref(answer);
    return 0;
}

/* Each job of a file by itself; the first refusal decides the status. */
static int try_batch(st_cli *cli, st_client *client, const st_job_flags *f, const json_t *doc,
                     st_err *err)
{
    json_t *job;
    int status = 0;
    size_t i;

    json_array_foreach(json_object_get(doc, "jobs"), i, job)
    {
        ST_CLEANUP(letter_done) letter l = {.flags = f, .body = json_dumps(job, DUMP_LINES)};
        char what[32];
        int r;

        snprintf(what, sizeof what, "job %zu", i);
        r = try_out(cli, client, &l, what, err);
        if (r < 0) {
            fprintf(cli->errors, "stint: %s: %s\n", what, err->msg);
            status = status ? status : st_err_exit(r);
        }
    }
    return status;
}

static bool takes_input(const json_t *doc)
{
    return json_is_true(json_object_get(doc, "terminal")) ||
           json_is_true(json_object_get(doc, "stdin"));
}

static int submit_one(st_cli *cli, st_client *client, const letter *l, const json_t *doc,
                      bool follow, st_err *err)
{
    const st_job_flags *f = l->flags;
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_freep) char *id = NULL;
    json_t *job;
    bool alone = json_object_get(doc, "array") == NULL, array;
    int r;

    if (!alone && (follow || f->wait))
        return st_fail(err, ST_EINVAL,
                       "one job can be waited for, not an array; `stint array` and "
                       "`stint events` watch it");
    r = send(client, "/v1/jobs", l, &job, &response, err);
    if (r < 0)
        return r;
    array = st_view_at(job, "jobs") != NULL; /* frames make one too */
    if (array && f->format != ST_CLI_JSON) {
        r = tell_array(cli, l, job);
        json_decref(job);
        return r;
    }
    id = st_xstrdup(st_view_text(job, "id"));
    if (f->format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else if (!follow)
        tell_job(cli, job);
    json_decref(job);
    if (array)
        return r;
    if (follow && takes_input(doc))
        r = st_job_follow_joined(cli, client, id, err);
    else if (follow || f->wait)
        r = st_job_follow(cli, client, id, follow, err);
    return r;
}

/* Whether there is something to run. What a site makes of sizes and workloads is for the server to say. */
static bool has_work(const json_t *doc)
{
    static const char *const keys[] = {"command", "script", "sim", "workload", "size"};

    for (size_t i = 0; i < ST_ARRAY_LEN(keys); i++)
        if (json_object_get(doc, keys[i]))
            return true;
    return false;
}

/* For the account that the job is for; what a dry run asks for need not be there. */
static int bring(st_cli *cli, st_client *client, const st_job_flags *f, json_t *doc, st_err *err)
{
    const char *account = json_string_value(json_object_get(doc, "account"));
    ST_CLEANUP(st_freep) char *whose = NULL;
    char digest[65];
    int r;

    if (json_object_get(doc, "jobs"))
        return st_fail(err, ST_EINVAL, "--with is for one job or an array, not for a file of jobs");
    r = st_volume_account(client, account, &whose, err);
    if (r == 0)
        r = st_with_bring(cli, client, whose, f->folder, digest, err);
    if (r == 0)
        json_object_set_new(doc, "with", json_string(digest));
    return r;
}

/* The script's options, then those before its name; what stands behind its name is for the script. */
static int read_script(st_cli *cli, int argc, char **argv, int at, const st_cli_row *options,
                       st_job_flags *f, st_script *script, json_t **ret, st_err *err)
{
    const char *path = argv[at];
    int r = st_script_read(path, argv[0], argc - at - 1, argv + at + 1, cli->errors, script, err);

    if (r == 0)
        r = st_script_options(script, path, options, f, err);
    if (r == 0)
        r = st_cli_read(at, argv, options, f, 0, 0, NULL, err);
    if (r == 0 && f->file)
        r = st_fail(err, ST_EINVAL, "give a script or a file of the job (-f), not both");
    if (r == 0 && !f->name)
        f->name = script->name;
    if (r == 0)
        r = st_job_doc(f, 0, NULL, ret, err);
    if (r == 0)
        json_object_set_new(*ret, "script", json_string(script->text));
    return r;
}

static int read_job(st_cli *cli, int argc, char **argv, const st_cli_row *options, st_job_flags *f,
                    st_script *script, json_t **ret, st_err *err)
{
    int n, r, at = st_cli_operand(argc, argv, options);

    if (at > 0 && st_script_is(argv[at]))
        return read_script(cli, argc, argv, at, options, f, script, ret, err);
    r = st_cli_read(argc, argv, options, f, 0, INT32_MAX, &n, err);
    return r < 0 ? r : st_job_doc(f, n, argv + 1, ret, err);
}

static int submit(st_cli *cli, int argc, char **argv, const st_cli_row *options, bool follow,
                  st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_script_done) st_script script = {0};
    st_job_flags f = {0};
    ST_CLEANUP(letter_done) letter l = {.flags = &f};
    json_t *doc = NULL;
    bool many;
    int r = read_job(cli, argc, argv, options, &f, &script, &doc, err);

    if (r < 0)
        return r;
    many = json_object_get(doc, "jobs") != NULL;
    if (f.print)
        print_doc(cli, doc);
    else if (!f.file && !has_work(doc))
        r = st_fail(
            err, ST_EINVAL,
            "%s: what shall run? Give a script, a command behind --, or a file with -f (see "
            "`stint %s --help`)",
            argv[0], argv[0]);
    else
        r = st_client_open(cli->errors, &client, err);
    if (r == 0 && f.folder && client)
        r = bring(cli, client, &f, doc, err);
    l.body = json_dumps(doc, DUMP_LINES);
    if (r < 0 || f.print)
        ;
    else if (many && follow)
        r = st_fail(err, ST_EINVAL, "run follows one job; `stint submit` takes several");
    else if (f.dry_run)
        r = many ? try_batch(cli, client, &f, doc, err) : try_out(cli, client, &l, "the job", err);
    else
        r = many ? submit_batch(cli, client, &l, err)
                 : submit_one(cli, client, &l, doc, follow, err);
    json_decref(doc);
    return r;
}

int st_cli_submit(st_cli *cli, int argc, char **argv, st_err *err)
{
    return submit(cli, argc, argv, st_cli_submit_options, false, err);
}

int st_cli_run(st_cli *cli, int argc, char **argv, st_err *err)
{
    return submit(cli, argc, argv, st_cli_run_options, true, err);
}
