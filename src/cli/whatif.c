/*
 * `stint whatif`: variants of a job, or other quotas, tried out without submitting or changing anything.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/job_doc.h"
#include "cli/jobs.h"
#include "cli/spinner.h"
#include "spec/spec.h"

/* A file that is a list, or has one under "accounts". */
static int read_accounts(const char *path, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const st_doc_node *list;
    int r = st_doc_load(path, &doc, err);

    if (r < 0)
        return r;
    list = st_doc_root(doc);
    if (list->kind == ST_DOC_MAP && st_doc_get(list, "accounts"))
        list = st_doc_get(list, "accounts");
    r = st_doc_expect(doc, list, ST_DOC_SEQ, err);
    if (r < 0)
        return r;
    st_spec_json(list, &text);
    *ret = json_loads(st_strbuf_str(&text), 0, NULL);
    return *ret ? 0 : st_fail(err, ST_EPARSE, "%s cannot be written as JSON", path);
}

static int make_request(const st_job_flags *f, int n, char **command, json_t *body, st_err *err)
{
    json_t *job = NULL, *variants = NULL, *accounts = NULL;
    int r = st_job_doc(f, n, command, &job, err);

    if (r == 0 && json_object_get(job, "jobs"))
        r = st_fail(err, ST_EINVAL, "whatif is about one job; the file has several");
    if (r == 0 && f->accounts)
        r = read_accounts(f->accounts, &accounts, err);
    if (r == 0 && accounts)
        json_object_set_new(body, "accounts", accounts);
    if (r == 0 && json_object_size(job) == 0 && f->with.n == 0 && accounts) {
        json_decref(job);
        return 0;
    }
    if (r == 0 && json_object_size(job) == 0 && f->with.n == 0)
        r = st_fail(err, ST_EINVAL,
                    "whatif: what shall be tried? Say a job with options, as in --gpus 8, or "
                    "--accounts FILE");
    if (r == 0 && f->with.n > 0)
        variants = json_array();
    for (int i = 0; r == 0 && i < (int)f->with.n; i++) {
        json_t *fields;

        r = st_job_fields_doc(f->with.v[i], &fields, err);
        if (r == 0)
            json_array_append_new(variants, fields);
    }
    if (r < 0) {
        json_decref(job);
        json_decref(variants);
        return r;
    }
    json_object_set_new(body, "job", job);
    if (variants)
        json_object_set_new(body, "variants", variants);
    return 0;
}

/* {"gpus":4,"limit":"2h"} as gpus=4 limit=2h. */
static void print_fields(st_cli *cli, const json_t *variant)
{
    const char *key, *sep = "";
    json_t *value;

    if (json_object_size(variant) == 0)
        fprintf(cli->out, "As it is");
    json_object_foreach((json_t *)(uintptr_t)variant, key, value)
    {
        ST_CLEANUP(st_freep)
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

        fprintf(cli->out, "%s%s=%s", sep, key,
                json_is_string(value) ? json_string_value(value) : text);
        sep = " ";
    }
}

static void print_jobs(st_cli *cli, const char *what, const json_t *list)
{
    json_t *job;
    size_t i;

    json_array_foreach(list, i, job)
    {
        fprintf(cli->out, "  %s %s (%s, account %s)\n", what, st_view_text(job, "job"),
                st_view_text(job, "name"), st_view_text(job, "account"));
    }
}

void st_job_outlook(st_cli *cli, const char *what, const json_t *answer)
{
    const char *state = st_view_text(answer, "state");
    int64_t start = st_view_time(answer, "start_estimate");
    char in[ST_FMT_MAX];
    json_t *reason;
    size_t i;

    fprintf(cli->out, "%s", what);
    if (strcmp(state, "refused") == 0) {
        fprintf(cli->out, ": refused: %s\n", st_view_text(answer, "detail"));
        return;
    }
    if (strcmp(state, "pending") != 0) {
        fprintf(cli->out, ": starts at once\n");
    } else if (start >= 0) {
        st_fmt_age(in, start - st_cli_wall_ms());
        fprintf(cli->out, ": should start in %s\n", in);
    } else {
        fprintf(cli->out, ": waits; no start can be foreseen\n");
    }
    json_array_foreach(st_view_at(answer, "reasons"), i, reason)
    {
        fprintf(cli->out, "  %c %s\n", json_is_true(st_view_at(reason, "blocks")) ? '*' : ' ',
                st_view_text(reason, "text"));
    }
    if (st_view_text(answer, "estimate")[0])
        fprintf(cli->out, "    %s\n", st_view_text(answer, "estimate"));
    if (st_view_text(answer, "rate.gpu_hour")[0])
        fprintf(cli->out, "    %s%s: %s per GPU-hour (%s)\n",
                strcmp(state, "pending") == 0 ? "if it borrows, " : "",
                st_view_text(answer, "rate.basis"), st_view_text(answer, "rate.gpu_hour"),
                st_view_text(answer, "rate.type"));
    if (st_view_text(answer, "cost_most")[0])
        fprintf(cli->out, "    costs at most %s for its whole limit\n",
                st_view_text(answer, "cost_most"));
    print_jobs(cli, "would preempt", st_view_at(answer, "displaces"));
}

static void print_all(st_cli *cli, const json_t *doc)
{
    const json_t *accounts = st_view_at(doc, "accounts");
    json_t *answer;
    size_t i;

    if (accounts) {
        size_t starts = json_array_size(st_view_at(accounts, "starts"));
        size_t yields = json_array_size(st_view_at(accounts, "displaces"));

        fprintf(
            cli->out,
            "With these quotas %zu of your jobs would start at once, %zu would have to yield.\n",
            starts, yields);
        print_jobs(cli, "would start", st_view_at(accounts, "starts"));
        print_jobs(cli, "would yield", st_view_at(accounts, "displaces"));
    }
    json_array_foreach(st_view_at(doc, "answers"), i, answer)
    {
        print_fields(cli, st_view_at(answer, "variant"));
        st_job_outlook(cli, "", answer);
    }
}

int st_cli_whatif(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_freep) char *text = NULL;
    json_t *body = json_object(), *doc = NULL;
    st_job_flags f = {0};
    int n, r = st_cli_read(argc, argv, st_cli_whatif_options, &f, 0, INT32_MAX, &n, err);

    if (r == 0)
        r = make_request(&f, n, argv + 1, body, err);
    if (r == 0) {
        text = json_dumps(body, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
        if (f.print)
            fprintf(cli->out, "%s\n", text);
    }
    if (r == 0 && !f.print)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0 && !f.print)
        r = st_client_json(client,
                           &(st_request){.method = "POST", .path = "/v1/whatif", .body = text},
                           &doc, &response, err);
    json_decref(body);
    if (r < 0 || f.print)
        return r;
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        print_all(cli, doc);
    json_decref(doc);
    return 0;
}
