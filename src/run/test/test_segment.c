/*
 * Segments of tenants: what is refused, and the rules around them. That packets go where they should and nowhere else is
 * seen by tests/agent_across.sh, with real nodes.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/testing.h"
#include "run/filter.h"
#include "run/segment.h"

static const st_run_peer others[] = {{"10.0.0.2", "192.0.2.2"}, {"10.0.0.3", "192.0.2.3"}};

static st_run_segment good(void)
{
    return (st_run_segment){.number = 17,
                            .port = ST_RUN_SEGMENT_PORT,
                            .here = {"10.0.0.1", "192.0.2.1"},
                            .peers = others,
                            .npeer = 2};
}

static void what_cannot_be_a_segment(void **state)
{
    st_run_peer bad[] = {{"10.0.0.2", "192.0.2.2"}, {"10.0.0.3", "192.0.2.3"}};
    st_run_segment s = good();
    st_err err = {0};

    (void)state;
    assert_ok(st_segment_check(&s, &err));
    assert_ok(st_segment_check(&(st_run_segment){0}, &err)); /* none */
    s.number = ST_RUN_SEGMENT_MAX + 1;                       /* ours: it keeps the port */
    assert_fails(st_segment_check(&s, &err), ST_ERANGE, "not from 1 to");
    s = good();
    s.number = -1;
    assert_fails(st_segment_check(&s, &err), ST_ERANGE, "not from 1 to");
    s = good();
    s.port = 0;
    assert_fails(st_segment_check(&s, &err), ST_ERANGE, "port");
    s = good();
    s.here.inside = NULL;
    assert_fails(st_segment_check(&s, &err), ST_EINVAL, "no address");
    s = good();
    s.peers = bad;
    bad[1].outside = "h18.example.org";
    assert_fails(st_segment_check(&s, &err), ST_EREFUSED, "no IPv4 address; start its agent with");
    bad[1].outside = "2001:db8::1";
    assert_fails(st_segment_check(&s, &err), ST_EREFUSED, "no IPv4 address");
    bad[1].outside = "192.0.2.3 . 18, 192.0.2.4"; /* it would be an element of the rules */
    assert_fails(st_segment_check(&s, &err), ST_EREFUSED, "no IPv4 address");
    bad[1].outside = s.here.outside;
    assert_fails(st_segment_check(&s, &err), ST_EREFUSED, "two nodes of the gang");
}

static st_filter_row row(const char *outside, uint32_t number)
{
    st_filter_row r = {.number = number, .port = 14789};

    assert_int_equal(inet_pton(AF_INET, outside, &r.outside), 1);
    return r;
}

static void rules_name_each_node_once(void **state)
{
    const st_filter_row rows[] = {row("192.0.2.9", 4), row("192.0.2.1", 17), row("192.0.2.9", 4),
                                  row("10.1.1.1", 17)};
    ST_CLEANUP(st_strbuf_done) st_strbuf some = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf none = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf other = {0};

    (void)state;
    /* Tasks from before the port was changed are guarded as well. */
    st_filter_text(rows, 4, 15000, &other);
    assert_non_null(
        strstr(st_strbuf_str(&other), "udp dport { 15000, 14789 } counter name strangers drop\n"));
    st_filter_text(rows, 4, 14789, &some);
    assert_non_null(
        strstr(st_strbuf_str(&some), "nodes { 192.0.2.9 . 4, 10.1.1.1 . 17, 192.0.2.1 . 17 }\n"));
    assert_non_null(strstr(st_strbuf_str(&some), "@nodes accept\n"));
    assert_non_null(
        strstr(st_strbuf_str(&some), "arriving udp dport { 14789 } counter name strangers drop\n"));
    assert_non_null(strstr(st_strbuf_str(&some), "leaving udp dport { 14789 } meta skuid 0-"));
    st_filter_text(NULL, 0, 14789, &none);
    assert_null(strstr(st_strbuf_str(&none), "add element"));
    assert_non_null(strstr(st_strbuf_str(&none), "counter name strangers drop\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_a_segment),
        cmocka_unit_test(rules_name_each_node_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
