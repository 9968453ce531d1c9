/*
 * Documents: the tree that comes out of YAML and JSON, and the accessors. What
 * is refused is in test_doc_bad.c.
 */
#include <unistd.h>

#include "base/doc.h"
#include "base/testing.h"

static st_doc *parse(const char *name, const char *text)
{
    st_err err = {0};
    st_doc *doc = NULL;

    assert_ok(st_doc_parse(name, text, strlen(text), &doc, &err));
    return doc;
}

static void test_yaml_tree(void **state)
{
    ST_CLEANUP(st_doc_freep)
    st_doc *doc = parse("fleet.yaml", "# a comment\n"
                                      "name: west\n"
                                      "nodes:\n"
                                      "  - n1\n"
                                      "  - \"n2\"\n"
                                      "empty:\n"
                                      "text: |\n"
                                      "  null\n"
                                      "flow: {a: 1, b: [2, ~]}\n");
    const st_doc_node *root = st_doc_root(doc), *n;

    (void)state;
    assert_string_equal(st_doc_name(doc), "fleet.yaml");
    assert_int_equal(root->kind, ST_DOC_MAP);
    assert_int_equal(root->nchild, 5);
    assert_null(root->key);

    n = st_doc_get(root, "name");
    assert_non_null(n);
    assert_true(n->seen);
    assert_string_equal(n->value, "west");
    assert_int_equal(n->line, 2);
    assert_false(n->quoted);

    n = st_doc_get(root, "nodes");
    assert_int_equal(n->kind, ST_DOC_SEQ);
    assert_int_equal(n->key_line, 3);
    assert_int_equal(n->line, 4);
    assert_int_equal(n->nchild, 2);
    assert_null(n->child->key);
    assert_true(n->child->next->quoted);
    assert_int_equal(n->child->next->line, 5);
    assert_null(n->child->next->next);

    assert_int_equal(st_doc_get(root, "empty")->kind, ST_DOC_NULL);
    n = st_doc_get(root, "text");
    assert_int_equal(n->kind, ST_DOC_SCALAR);
    assert_string_equal(n->value, "null\n");
    n = st_doc_get(st_doc_get(root, "flow"), "b");
    assert_int_equal(n->child->next->kind, ST_DOC_NULL);
    assert_null(st_doc_get(root, "absent"));
    assert_null(st_doc_get(n, "not a map"));
}

static void test_json_tree(void **state)
{
    ST_CLEANUP(st_doc_freep)
    st_doc *doc = parse("job.json",
                        "\t{\"a\" :\t[1, -2.5e+3, true , null, \"\\ud83d\\uDE00\\/\\n\\t\\\"\"],\n"
                        "\"b\"\n:\t{}, \"c\":[], \"d\": \"null\", \"\\u00e9\": \"tab\"}\r\n");
    const st_doc_node *root = st_doc_root(doc), *n;

    (void)state;
    assert_int_equal(root->nchild, 5);
    n = st_doc_get(root, "a");
    assert_int_equal(n->nchild, 5);
    n = n->child;
    assert_string_equal(n->value, "1");
    n = n->next;
    assert_string_equal(n->value, "-2.5e+3");
    n = n->next;
    assert_string_equal(n->value, "true");
    n = n->next;
    assert_int_equal(n->kind, ST_DOC_NULL);
    n = n->next;
    assert_string_equal(n->value, "\xF0\x9F\x98\x80/\n\t\"");
    assert_true(n->quoted);
    n = st_doc_get(root, "b");
    assert_int_equal(n->kind, ST_DOC_MAP);
    assert_int_equal(n->key_line, 2);
    assert_int_equal(n->line, 3);
    assert_int_equal(st_doc_get(root, "c")->nchild, 0);
    assert_int_equal(st_doc_get(root, "d")->kind, ST_DOC_SCALAR);
    assert_non_null(st_doc_get(root, "\xC3\xA9"));
}

static void test_scalar_roots(void **state)
{
    ST_CLEANUP(st_doc_freep) st_doc *a = parse("a.json", "\xEF\xBB\xBF 0 ");
    ST_CLEANUP(st_doc_freep) st_doc *b = parse("b.yaml", "\xEF\xBB\xBFx: 1");

    (void)state;
    assert_string_equal(st_doc_root(a)->value, "0");
    assert_non_null(st_doc_get(st_doc_root(b), "x"));
}

static void test_accessors(void **state)
{
    ST_CLEANUP(st_doc_freep)
    st_doc *doc = parse("q.yaml", "s: text\n"
                                  "yes: true\n"
                                  "no: false\n"
                                  "i: -5\n"
                                  "g: 0.25\n"
                                  "d: 1h30m\n"
                                  "m: 64\n"
                                  "quoted: \"7\"\n");
    const st_doc_node *root = st_doc_root(doc), *n = NULL;
    const char *s = NULL;
    st_err err = {0};
    int64_t i = 0;
    bool b = false;

    (void)state;
    assert_ok(st_doc_need(doc, root, "s", &n, &err));
    assert_ok(st_doc_str(doc, n, &s, &err));
    assert_string_equal(s, "text");
    assert_ok(st_doc_bool(doc, st_doc_get(root, "yes"), &b, &err));
    assert_true(b);
    assert_ok(st_doc_bool(doc, st_doc_get(root, "no"), &b, &err));
    assert_false(b);
    assert_ok(st_doc_i64(doc, st_doc_get(root, "i"), -5, 5, &i, &err));
    assert_int_equal(i, -5);
    assert_ok(st_doc_milli(doc, st_doc_get(root, "g"), 0, 1000, &i, &err));
    assert_int_equal(i, 250);
    assert_ok(st_doc_duration_ms(doc, st_doc_get(root, "d"), &i, &err));
    assert_int_equal(i, 5400000);
    assert_ok(st_doc_mib(doc, st_doc_get(root, "m"), &i, &err));
    assert_int_equal(i, 65536);
    assert_fails(st_doc_check_unknown(doc, root, &err), ST_EINVAL,
                 "q.yaml:8: unknown key \"quoted\"");
    assert_ok(st_doc_i64(doc, st_doc_get(root, "quoted"), 0, 10, &i, &err));
    assert_int_equal(i, 7);
    assert_ok(st_doc_check_unknown(doc, root, &err));
}

static void test_accessor_failures(void **state)
{
    static const char *const allowed[] = {"weight", "list", "flag", "num", "none", "gpu", NULL};
    ST_CLEANUP(st_doc_freep)
    st_doc *doc = parse("t.yaml", "list: [1]\n"
                                  "flag: \"true\"\n"
                                  "num: 12x\n"
                                  "none:\n"
                                  "gpu: 1.0001\n"
                                  "wieght: 3\n");
    const st_doc_node *root = st_doc_root(doc), *n = NULL;
    const char *s = "untouched";
    st_err err = {0};
    int64_t i = 77;
    bool b = true;

    (void)state;
    assert_fails(st_doc_check_keys(doc, root, allowed, &err), ST_EINVAL,
                 "t.yaml:6: unknown key \"wieght\" (did you mean \"weight\"?)");
    assert_fails(st_doc_need(doc, root, "name", &n, &err), ST_EINVAL,
                 "t.yaml:1: key \"name\" is missing");
    assert_null(n);
    assert_fails(st_doc_str(doc, st_doc_get(root, "list"), &s, &err), ST_EINVAL,
                 "t.yaml:1: key \"list\": expected a single value, found a list");
    assert_string_equal(s, "untouched");
    assert_fails(st_doc_str(doc, st_doc_get(root, "none"), &s, &err), ST_EINVAL,
                 "t.yaml:4: key \"none\": expected a single value, found nothing");
    assert_fails(st_doc_bool(doc, st_doc_get(root, "flag"), &b, &err), ST_EPARSE,
                 "t.yaml:2: key \"flag\": expected true or false");
    assert_fails(st_doc_i64(doc, st_doc_get(root, "num"), 0, 99, &i, &err), ST_EPARSE,
                 "t.yaml:3: key \"num\": \"12x\" is not a whole number");
    assert_fails(st_doc_duration_ms(doc, st_doc_get(root, "num"), &i, &err), ST_EPARSE,
                 "t.yaml:3: key \"num\"");
    assert_fails(st_doc_mib(doc, st_doc_get(root, "num"), &i, &err), ST_EPARSE,
                 "t.yaml:3: key \"num\"");
    assert_fails(st_doc_milli(doc, st_doc_get(root, "gpu"), 0, 8000, &i, &err), ST_EPARSE,
                 "t.yaml:5: key \"gpu\": \"1.0001\" has more than three decimals");
    assert_int_equal(i, 77);
    n = st_doc_get(root, "list");
    assert_fails(st_doc_expect(doc, n, ST_DOC_MAP, &err), ST_EINVAL, "expected a map");
    assert_fails(st_doc_check_keys(doc, n, allowed, &err), ST_EINVAL, "expected a map");
    assert_fails(st_doc_need(doc, n->child, "x", &n, &err), ST_EINVAL, "t.yaml:1: expected a map");
    assert_fails(st_doc_fail(doc, NULL, &err, ST_ESTATE, "no %d", 1), ST_ESTATE, "t.yaml: no 1");
    assert_int_equal(st_doc_fail(doc, root, NULL, ST_ESTATE, "x"), -ST_ESTATE);
}

static void test_load(void **state)
{
    char path[] = "/tmp/stint-test-doc-XXXXXX";
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_err err = {0};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: 1\n", 5), 5);
    close(fd);
    assert_ok(st_doc_load(path, &doc, &err));
    assert_string_equal(st_doc_get(st_doc_root(doc), "a")->value, "1");
    assert_string_equal(st_doc_name(doc), path);
    unlink(path);

    st_doc_freep(&doc);
    assert_fails(st_doc_load(path, &doc, &err), ST_ENOENT, "cannot open the file");
    assert_fails(st_doc_load("/tmp", &doc, &err), ST_EIO, "/tmp: cannot read the file");
    assert_fails(st_doc_load("/dev/zero", &doc, &err), ST_ELIMIT, "too large");
    assert_null(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_tree),         cmocka_unit_test(test_json_tree),
        cmocka_unit_test(test_scalar_roots),      cmocka_unit_test(test_accessors),
        cmocka_unit_test(test_accessor_failures), cmocka_unit_test(test_load),
    };

    return cmocka_run_group_tests_name("doc", tests, NULL, NULL);
}
