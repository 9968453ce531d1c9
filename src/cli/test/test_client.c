/*
 * What the client makes of what comes over the wire: problem documents, event streams, addresses;
 * and what it sends: a job's document.
 */
#include "base/mem.h"
#include "base/testing.h"
#include "cli/admin_doc.h"
#include "cli/client.h"
#include "cli/job_doc.h"
#include "cli/top.h"
#include "cli/view.h"

static int problem(long status, const char *body, st_err *err)
{
    st_response r = {.status = status};
    int code;

    st_strbuf_add(&r.body, body);
    code = st_client_problem(&r, "http://x", err);
    st_response_done(&r);
    return code;
}

static void test_problems(void **state)
{
    st_err err = {0};

    (void)state;
    assert_fails(problem(403, "{\"code\":\"quota\",\"detail\":\"too much\"}", &err), ST_EQUOTA,
                 "too much");
    assert_fails(problem(401, "{\"code\":\"unauthenticated\",\"detail\":\"no\"}", &err), ST_EAUTH,
                 "no (`stint login` saves another)");
    /* A code nobody knows: the status decides. */
    assert_fails(problem(404, "{\"code\":\"new\",\"detail\":\"gone\"}", &err), ST_ENOENT, "gone");
    assert_fails(problem(412, "{\"detail\":\"old\"}", &err), ST_EVERSION, "old");
    assert_fails(problem(428, "{\"detail\":\"old\"}", &err), ST_EVERSION, "old");
    assert_fails(problem(409, "{\"detail\":\"x\"}", &err), ST_ESTATE, "x");
    assert_fails(problem(429, "{\"detail\":\"slow\"}", &err), ST_EDOWN, "try again");
    assert_fails(problem(400, "{\"detail\":\"body.json:1: bad\"}", &err), ST_EINVAL, "bad");
    assert_string_equal(err.msg, "bad");
    assert_fails(problem(400, "{\"detail\":\"body.json:2: bad\"}", &err), ST_EINVAL, "json:2");
    assert_fails(problem(502, "<html>", &err), ST_EDOWN, "status 502 and no explanation");
    assert_fails(problem(500, "", &err), ST_EDOWN, "http://x answered");
    assert_fails(problem(400, "[]", &err), ST_EINVAL, "no explanation");
}

static void feed(st_sse *sse, const char *text, size_t step)
{
    st_err err = {0};
    size_t n = strlen(text);

    for (size_t i = 0; i < n; i += step)
        assert_ok(st_sse_feed(sse, text + i, ST_MIN(step, n - i), &err));
}

/* However it is cut into pieces, the same events come out. */
static void test_events(void **state)
{
    static const char text[] =
        ": hello\n\nid: 1\nevent: start\ndata: a\ndata:  b\n\n"
        "data:c\r\ndata:d\r\n\r\nid: 2\r\revent: none\n\ndata\n\nretry: 5\ndata: half";

    (void)state;
    for (size_t step = 1; step < sizeof text; step++) {
        ST_CLEANUP(st_sse_done) st_sse sse = {0};
        st_sse_event ev;

        feed(&sse, text, step);
        assert_true(st_sse_take(&sse, &ev));
        assert_string_equal(ev.id, "1");
        assert_string_equal(ev.kind, "start");
        assert_string_equal(ev.data, "a\n b");
        st_sse_event_done(&ev);
        assert_true(st_sse_take(&sse, &ev));
        assert_string_equal(ev.id, "1");
        assert_string_equal(ev.kind, "");
        assert_string_equal(ev.data, "c\nd");
        st_sse_event_done(&ev);
        assert_true(st_sse_take(&sse, &ev));
        assert_string_equal(ev.id, "2");
        assert_string_equal(ev.data, "");
        st_sse_event_done(&ev);
        assert_false(st_sse_take(&sse, &ev));
    }
}

static void test_event_bound(void **state)
{
    ST_CLEANUP(st_sse_done) st_sse sse = {0};
    char block[4096];
    st_err err = {0};
    int r = 0;

    (void)state;
    memset(block, 'x', sizeof block);
    for (int i = 0; r == 0 && i < 1000; i++)
        r = st_sse_feed(&sse, block, sizeof block, &err);
    assert_int_equal(r, -ST_ERANGE);
}

static void test_addresses(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    char a[ST_KEY_MAX], b[ST_KEY_MAX];

    (void)state;
    st_url_add(&out, "a/b?c=d e-_.~\xc3\xa9");
    assert_string_equal(st_strbuf_str(&out), "a%2Fb%3Fc%3Dd%20e-_.~%C3%A9");
    st_client_key(a);
    st_client_key(b);
    assert_int_equal(strlen(a), 32);
    assert_string_not_equal(a, b);
}

static char *doc_of(const st_job_flags *f, int n, char **command)
{
    json_t *doc;
    st_err err = {0};
    char *text;

    assert_ok(st_job_doc(f, n, command, &doc, &err));
    text = json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(doc);
    return text;
}

static void test_job_doc(void **state)
{
    char python[] = "python", script[] = "-c", *command[] = {python, script};
    st_job_flags f = {.name = "007",
                      .gpus = "2",
                      .share = "0.1",
                      .ram = "64Gi",
                      .type = "h100",
                      .topology = "prefer:rack",
                      .sim_run = "90s",
                      .env = {1, {"A=b=c"}}};
    ST_CLEANUP(st_freep) char *one = doc_of(&f, 2, command);
    st_err err = {0};
    json_t *doc;

    (void)state;
    assert_string_equal(one, "{\"name\":\"007\",\"gpus\":2,\"ram\":\"64Gi\",\"share\":0.1,"
                             "\"type\":\"h100\",\"topology\":{\"prefer\":\"rack\"},"
                             "\"env\":{\"A\":\"b=c\"},\"sim\":{\"run\":\"90s\"},"
                             "\"command\":[\"python\",\"-c\"]}");
    f = (st_job_flags){.array = "2", .gpus = "1"};
    ST_CLEANUP(st_freep) char *two = doc_of(&f, 0, NULL);
    assert_string_equal(two, "{\"gpus\":1,\"array\":{\"count\":2}}");
    f = (st_job_flags){.topology = "rack"};
    assert_fails(st_job_doc(&f, 0, NULL, &doc, &err), ST_EINVAL, "require:LEVEL");
    f = (st_job_flags){.name = "\xff"};
    assert_fails(st_job_doc(&f, 0, NULL, &doc, &err), ST_EINVAL, "is not UTF-8");
    f = (st_job_flags){.labels = {1, {"x"}}};
    assert_fails(st_job_doc(&f, 0, NULL, &doc, &err), ST_EINVAL, "is not NAME=VALUE");
}

static void test_bodies(void **state)
{
    ST_CLEANUP(st_body_done) st_body b = {0}, none = {0}, bad = {0};
    st_err err = {0};

    (void)state;
    assert_true(st_body_empty(&b));
    st_body_put(&b, "name", "a\"b");
    st_body_put(&b, "left", NULL);
    st_body_put(&b, "weight", "1.5");
    st_body_list(&b, "levels", "whole,mig");
    assert_ok(st_body_pairs(&b, "max", "max", "gpu=8,ram=64Gi", &err));
    assert_string_equal(st_body_end(&b),
                        "{\"name\":\"a\\\"b\",\"weight\":1.5,\"levels\":"
                        "[\"whole\",\"mig\"],\"max\":{\"gpu\":8,\"ram\":\"64Gi\"}}");
    assert_string_equal(st_body_end(&none), "{}");
    assert_fails(st_body_pairs(&bad, "max", "max", "gpu", &err), ST_EINVAL, "--max is NAME=AMOUNT");
    assert_fails(st_body_pairs(&bad, "max", "max", "=1", &err), ST_EINVAL, "NAME=AMOUNT");
}

static void test_metrics(void **state)
{
    json_t *rows = st_top_accounts("# HELP x y\nstint_account_gpus_held{account=\"a\"} 2.5\n"
                                   "stint_account_gpus_held{account=\"b\"} nonsense\n"
                                   "stint_account_gpus_held{account=\"d\",parent=\"a\"} 1\n"
                                   "stint_account_gpus_held{account=\"e\"\n"
                                   "other{account=\"c\"} 1\n"
                                   "stint_account_gpus_floor{account=\"a\"} 4");
    ST_CLEANUP(st_freep) char *text = json_dumps(rows, JSON_COMPACT);

    (void)state;
    assert_string_equal(
        text, "[{\"account\":\"a\",\"held\":2.5,\"floor\":4},{\"account\":\"d\",\"held\":1}]");
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problems),    cmocka_unit_test(test_events),
        cmocka_unit_test(test_event_bound), cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_job_doc),     cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_metrics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
