/*
 * References to images, the catalogue's documents, and what agents are told.
 */
#include <string.h>

#include "base/testing.h"
#include "state/images.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA "sha256:" HEX
#define ALL "\"accounts\":\"all\""

static void references_are_read(void **state)
{
    static const struct {
        const char *text;
        st_image_ref_kind kind;
        const char *means, *digest;
    } good[] = {
        {"host", ST_IMAGE_REF_HOST, "", ""},
        {"torch", ST_IMAGE_REF_NAME, "torch", ""},
        {"torch:2.4", ST_IMAGE_REF_NAME, "torch:2.4", ""},
        {"torch@" SHA, ST_IMAGE_REF_NAME, "torch", SHA},
        {"data:a/b.oci", ST_IMAGE_REF_DATA, "a/b.oci", ""},
        {"/data/a//./b.oci/", ST_IMAGE_REF_DATA, "a/b.oci", ""},
        {"data:", ST_IMAGE_REF_DATA, ".", ""},
        {"/data", ST_IMAGE_REF_DATA, ".", ""},
        {"data:a b/c@" SHA, ST_IMAGE_REF_DATA, "a b/c", SHA},
        {"data:/etc", ST_IMAGE_REF_DATA, "etc", ""}, /* of the storage */
    };
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "no image"},
        {"/", "no image"},
        {"/etc", "no image"},
        {"/database", "no image"},
        {"../x", "no image"},
        {"a/b", "no image"},
        {"-x", "no image"},
        {"data:..", "no \"..\""},
        {"data:a/../../b", "no \"..\""},
        {"/data/../x", "no \"..\""},
        {"data:a\nb", "control"},
        {"torch@", "digest"},
        {"torch@sha256:12", "digest"},
        {"host@" SHA, "no image"},
    };
    st_image_ref ref;
    st_err err = {0};
    (void)state;

    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++) {
        assert_ok(st_spec_image(good[i].text, &ref, &err));
        assert_int_equal(ref.kind, good[i].kind);
        assert_string_equal(ref.kind == ST_IMAGE_REF_DATA ? ref.path : ref.name, good[i].means);
        assert_string_equal(ref.digest, good[i].digest);
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_spec_image(bad[i].text, &ref, &err), ST_EINVAL, bad[i].says);
}

static void documents_are_checked(void **state)
{
    static const struct {
        const char *doc, *says;
    } bad[] = {
        {"[]", "an object"},
        {"{" ALL "}", "one of the two"},
        {"{\"folder\":\"/a\",\"layout\":\"/b\"," ALL "}", "one of the two"},
        {"{\"folder\":\"a\"," ALL "}", "whole path"},
        {"{\"folder\":\"/\"," ALL "}", "whole path"},
        {"{\"folder\":\"/a/../b\"," ALL "}", "whole path"},
        {"{\"folder\":\"/a:b\"," ALL "}", "must not contain"},
        {"{\"folder\":\"/a\",\"digest\":\"" SHA "\"," ALL "}", "no digest"},
        {"{\"layout\":\"/a\"," ALL "}", "needs the digest"},
        {"{\"layout\":\"/a\",\"digest\":\"md5:1\"," ALL "}", "needs the digest"},
        {"{\"folder\":\"/a\"}", "who may use"},
        {"{\"folder\":\"/a\",\"accounts\":[]}", "who may use"},
        {"{\"folder\":\"/a\",\"accounts\":[5]}", "not a name"},
        {"{\"folder\":\"/a\",\"trust\":\"maybe\"," ALL "}", "trusted or untrusted"},
        {"{\"folder\":\"/a\",\"mode\":\"x\"," ALL "}", "no key"},
        {"{\"folder\":5," ALL "}", "a text"},
    };
    st_err err = {0};
    (void)state;

    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        json_t *doc = json_loads(bad[i].doc, 0, NULL);

        assert_fails(st_images_read("x", doc, &err), ST_EINVAL, bad[i].says);
        json_decref(doc);
    }
    json_t *doc = json_loads("{\"folder\":\"/a\"," ALL "}", 0, NULL);

    assert_ok(st_images_read("x:1.0", doc, &err));
    assert_fails(st_images_read("host", doc, &err), ST_EINVAL, "name");
    assert_fails(st_images_read("data:x", doc, &err), ST_EINVAL, "name");
    assert_fails(st_images_read("a/b", doc, &err), ST_EINVAL, "name");
    json_decref(doc);
}

static void agents_are_told_what_it_means(void **state)
{
    static const struct {
        const char *doc;
        bool host;
        const char *says;
    } rows[] = {
        {"{}", true, "{\"kind\":\"host\"}"},
        {"{\"image\":\"host\"}", true, "{\"kind\":\"host\"}"},
        {"{\"image\":\"host\"}", false, "{\"kind\":\"refused\",\"reason\":\"its pool"},
        {"{}", false, "{\"kind\":\"refused\""},
        {"{\"image\":\"tools\"}", false,
         "{\"kind\":\"folder\",\"path\":\"/srv/tools\",\"trust\":\"trusted\"}"},
        {"{\"image\":\"torch\"}", false,
         "{\"kind\":\"oci\",\"path\":\"/srv/torch\",\"digest\":\"" SHA
         "\",\"trust\":\"untrusted\"}"},
        {"{\"image\":\"nothing\"}", true, "{\"kind\":\"refused\",\"reason\":\"there is no image"},
        {"{\"image\":\"/etc\"}", true, "{\"kind\":\"refused\""},
        {"{\"image\":\"data:a/b\"}", false, "{\"kind\":\"data\",\"path\":\"a/b\"}"},
        {"{\"image\":\"theirs\"}", true, "{\"kind\":\"refused\",\"reason\":\"there is no image"},
    };
    st_directory *dir = st_directory_new();
    st_images *im = st_images_new(dir);
    st_err err = {0};
    (void)state;

    assert_ok(st_images_set(im, "torch",
                            "{\"layout\":\"/srv/torch\",\"digest\":\"" SHA
                            "\",\"trust\":\"untrusted\"," ALL "}",
                            0, &err));
    assert_ok(st_images_set(im, "tools", "{\"folder\":\"/srv/tools\"," ALL "}", 0, &err));
    assert_ok(st_images_set(im, "theirs", "{\"folder\":\"/x\",\"accounts\":[\"acme\"]}", 0, &err));
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

        st_images_order(im, "rival", rows[i].doc, rows[i].host, &out);
        if (strncmp(st_strbuf_str(&out), rows[i].says, strlen(rows[i].says)) != 0)
            fail_msg("%s: %s", rows[i].doc, st_strbuf_str(&out));
    }
    assert_ok(st_images_admit(im, "rival", "torch@" SHA, ST_LEVEL_WHOLE, &err));
    assert_fails(st_images_admit(im, "rival", "torch", ST_LEVEL_MPS, &err), ST_EPERM, "untrusted");
    assert_fails(st_images_admit(im, "rival", "tools@" SHA, ST_LEVEL_WHOLE, &err), ST_ESTATE,
                 "another digest");
    assert_fails(st_images_admit(im, "rival", "theirs", ST_LEVEL_WHOLE, &err), ST_ENOENT,
                 "no image");
    assert_ok(st_images_set(im, "torch", NULL, 0, &err));
    assert_fails(st_images_admit(im, "rival", "torch", ST_LEVEL_WHOLE, &err), ST_ENOENT,
                 "no image");
    json_t *list = st_images_list(im, "rival", false);

    assert_int_equal(json_array_size(list), 1);
    assert_null(json_object_get(json_array_get(list, 0), "path"));
    json_decref(list);
    st_images_free(im);
    st_directory_free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_read),
        cmocka_unit_test(documents_are_checked),
        cmocka_unit_test(agents_are_told_what_it_means),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
