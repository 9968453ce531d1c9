/* What a courier lets through, what it signs and writes (courier/courier.h). Attempts are made in tests/service/test_notices.py. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "courier/courier.h"

static bool is_public(const char *text)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return st_address_public((const struct sockaddr *)&four);
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return st_address_public((const struct sockaddr *)&six);
}

static void test_addresses(void **state)
{
    static const char *const good[] = {"1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111",
                                       "::ffff:8.8.8.8"};
    static const char *const bad[] = {
        "0.0.0.0",
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001::1",
        "::7f00:1",
        "fec0::1",
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++)
        assert_true(is_public(good[i]));
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_false(is_public(bad[i]));
}

static void test_networks(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET}, out = {.sin_family = AF_INET};
    static const char *const wrong[] = {"",     "10.0.0.0/33", "10.0.0.0/",  "10.0.0/8",
                                        "host", "::/129",      "1.2.3.4/-1", "1.2.3.4/1x"};
    st_network net;

    (void)state;
    inet_pton(AF_INET, "10.2.255.1", &in.sin_addr);
    inet_pton(AF_INET, "10.3.0.1", &out.sin_addr);
    assert_true(st_network_read("10.2.0.0/15", &net));
    assert_true(st_network_has(&net, (const struct sockaddr *)&out));
    assert_true(st_network_read("10.2.0.0/16", &net));
    assert_true(st_network_has(&net, (const struct sockaddr *)&in));
    assert_false(st_network_has(&net, (const struct sockaddr *)&out));
    assert_true(st_network_read("10.2.255.1", &net));
    assert_true(st_network_has(&net, (const struct sockaddr *)&in));
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_false(st_network_read(wrong[i], &net));
}

static st_courier *site(void)
{
    const st_courier_options o = {.hosts = "hooks.example.com, *.chat.example\n"
                                           "other.example:8443 http://inside.example:8080",
                                  .networks = "10.2.0.0/16",
                                  .smtp = "smtp://127.0.0.1:25",
                                  .from = "stint@example.com",
                                  .domains = "example.com, Team.example"};
    st_courier *c = NULL;
    st_err err;

    assert_ok(st_courier_new(&o, &c, &err));
    return c;
}

static void test_urls(void **state)
{
    static const char *const good[] = {
        "https://hooks.example.com/a?b=c", "https://HOOKS.example.com:443/",
        "https://a.chat.example/x",        "https://a.b.chat.example/",
        "https://other.example:8443/",     "http://inside.example:8080/x",
    };
    static const char *const bad[] = {
        "",
        "hooks.example.com",
        "ftp://hooks.example.com/",
        "file:///etc/passwd",
        "gopher://hooks.example.com/",
        "http://hooks.example.com/",
        "https://hooks.example.com:8443/",
        "https://hooks.example.com.evil.example/",
        "https://evilhooks.example.com/",
        "https://chat.example/",
        "https://other.example/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://[::1]/",
        "https://user:word@hooks.example.com/",
        "https://hooks.example.com@evil.example/",
        "https://evil.example\\@hooks.example.com/",
        "https://hooks.example.com#@evil.example/",
        "https://hooks.example.com/\r\nHost: evil.example",
        "https://hooks.example.com/ x",
        "https://hooks%2eexample.com.evil.example/",
        ("https://hooks.example.com\xe3\x80\x82"
         "evil.example/"),
    };
    ST_CLEANUP(st_courier_freep) st_courier *c = site();
    char host[ST_COURIER_HOST_MAX];
    st_err err;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++)
        assert_ok(st_courier_url(c, good[i], host, &err));
    assert_string_equal(host, "inside.example");
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_true(st_courier_url(c, bad[i], host, &err) < 0);
}

static void test_nothing_allowed(void **state)
{
    const st_courier_options o = {0};
    ST_CLEANUP(st_courier_freep) st_courier *c = NULL;
    char host[ST_COURIER_HOST_MAX];
    st_err err;

    (void)state;
    assert_ok(st_courier_new(&o, &c, &err));
    assert_fails(st_courier_url(c, "https://hooks.example.com/", host, &err), ST_EPERM,
                 "may not go to");
    assert_fails(st_courier_mail(c, "ada@example.com", &err), ST_EPERM, "sends no mail");
}

static void test_options(void **state)
{
    static const st_courier_options wrong[] = {
        {.hosts = "https://"},
        {.hosts = "a/b"},
        {.hosts = "*"},
        {.hosts = "a.*.example"},
        {.hosts = "a:0"},
        {.hosts = "a:x"},
        {.networks = "10.0.0.0/99"},
        {.smtp = "mail.example.com", .from = "a@example.com"},
        {.smtp = "smtp://u:p@mail.example.com", .from = "a@example.com"},
        {.smtp = "smtp://mail.example.com"},
        {.smtp = "smtp://mail.example.com", .from = "a b@example.com"},
        {.smtp_login = "/does/not/exist"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++) {
        st_courier *c = NULL;
        st_err err;

        assert_true(st_courier_new(&wrong[i], &c, &err) < 0);
        assert_null(c);
    }
}

static void test_mails(void **state)
{
    static const char *const good[] = {"ada@example.com", "a.b+c@EXAMPLE.com", "x@team.example"};
    static const char *const bad[] = {
        "",
        "ada",
        "@example.com",
        "ada@",
        "ada@other.example",
        "ada@example.com.evil.example",
        "ada@example.com\r\nBcc: all@example.com",
        "ada@example.com,bob@example.com",
        "ada bob@example.com",
        "-oQ/tmp@example.com",
        "a@b@example.com",
        "\"a b\"@example.com",
        "<ada@example.com>",
        "ada@example.com>\nRCPT TO:<b@evil.example",
    };
    ST_CLEANUP(st_courier_freep) st_courier *c = site();
    st_err err;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++)
        assert_ok(st_courier_mail(c, good[i], &err));
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_true(st_courier_mail(c, bad[i], &err) < 0);
}

/* The example of the specification. */
static void test_signature(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0}, again = {0};
    char key[ST_COURIER_KEY_TEXT];

    (void)state;
    assert_true(st_courier_sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
                                "{\"test\": 2432232314}", &out));
    assert_string_equal(out.s, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    st_courier_key(key);
    assert_true(st_courier_sign(key, "a", 1, "b", &again));
    assert_false(st_courier_sign("whsec_c2hvcnQ=", "a", 1, "b", &again));
    assert_false(st_courier_sign("secret", "a", 1, "b", &again));
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void test_message(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0}, text = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        st_strbuf_add(&text, "line\r\n.\r\nQUIT\r\n");
    st_courier_message("stint@example.com", "ada@example.com",
                       "job evil\r\nBcc: all@example.com\r\n\r\nhello \xc3\xa4\xc3\xa4\xc3\xa4 and "
                       "much more that does not fit into one word of a header",
                       st_strbuf_str(&text), "n1", 0, &out);
    assert_null(strstr(out.s, "Bcc"));
    assert_null(strstr(out.s, "QUIT"));
    assert_int_equal(count(out.s, "\r\n\r\n"), 1);
    assert_int_equal(count(out.s, "\n"), count(out.s, "\r\n"));
    assert_non_null(strstr(out.s, "Date: Thu, 01 Jan 1970 00:00:00 +0000\r\n"));
    assert_non_null(strstr(out.s, "Message-ID: <n1@example.com>\r\n"));
    for (const char *line = out.s; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 78);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_networks),
        cmocka_unit_test(test_urls),      cmocka_unit_test(test_nothing_allowed),
        cmocka_unit_test(test_options),   cmocka_unit_test(test_mails),
        cmocka_unit_test(test_signature), cmocka_unit_test(test_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
