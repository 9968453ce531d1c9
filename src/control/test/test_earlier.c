/*
 * Stores of earlier versions: what stood in them differently has today's form after the next start.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/testing.h"
#include "billing/billing.h"
#include "control/state.h"
#include "control/test/world.h"
#include "store/test/tamper.h"
#include "vault/test/named.h"

#define PLAIN "{\"by\":[\"\",\"root\"],\"env\":{\"K\":\"s3cret\"}}"

/* A document sealed for the name of an account. */
static void named_doc(world *w, const char *account, st_strbuf *out)
{
    const st_vault_place place = {.kind = "job", .name = "ann", .version = 1};

    st_strbuf_add(out, "{\"sealed\":\"");
    seal_named(st_control_vault(w->ctl), account, &place, PLAIN, out);
    st_strbuf_add(out, "\",\"env\":{\"K\":null}}");
}

static void named_secret(world *w, const char *account, const char *value)
{
    const st_vault_place place = {.kind = "secret", .name = "hf", .version = 1};
    ST_CLEANUP(st_strbuf_done) st_strbuf sealed = {0}, doc = {0}, name = {0};
    st_err err = {0};

    seal_named(st_control_vault(w->ctl), account, &place, value, &sealed);
    const st_secret s = {.by = "ann", .by_account = account, .sealed = sealed.s};
    st_secret_write(&s, &doc);
    st_strbuf_addf(&name, "%s/hf", account);
    const st_document_row row = {.kind = "secret", .name = name.s, .doc = doc.s};
    assert_kept(st_control_store(w->ctl),
                st_store_document_put(st_control_store(w->ctl), &row, &err));
}

static int64_t serial_of(world *w, const char *account)
{
    return st_directory_serial(st_control_directory(w->ctl), account);
}

static int open_doc(world *w, uint64_t job, int64_t serial, st_strbuf *out)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const st_vault_who ann = {serial, "ann"};
    st_job_row row;
    st_err err = {0};

    assert_ok(st_store_job_get(st_control_store(w->ctl), (int64_t)job, arena, &row, &err));
    st_strbuf_clear(out);
    return st_vault_doc_open(st_control_vault(w->ctl), &ann, row.spec, ST_VIEW_ALL, out, &err);
}

static int open_secret(world *w, const char *account, st_strbuf *out)
{
    const char *const above[] = {account, NULL};
    st_err err = {0};

    st_strbuf_clear(out);
    return st_vault_secret(st_control_vault(w->ctl), above, "hf", out, &err);
}

static void remove_account(world *w, const char *name)
{
    st_cmd_account cmd = {.who = owner, .name = name};
    st_err err = {0};

    st_cmd_account_remove(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    st_vec_free(&cmd.revoked);
}

static void cancel(world *w, uint64_t job)
{
    const st_event event = {.kind = ST_EV_CANCEL, .u.id = job};

    make_event(w, event);
}

static void sealed_for_names(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0}, out = {0};
    uint64_t live, over;
    int64_t first, second;
    st_err err = {0};

    make_fleet(w);
    named_doc(w, "team", &doc);
    assert_ok(submit(w, NULL, doc.s, &over, &err));
    cancel(w, over);
    first = serial_of(w, "team");
    remove_account(w, "team");
    make_account(w, "team", "", "{name: team}");
    second = serial_of(w, "team");
    assert_ok(submit(w, NULL, doc.s, &live, &err));
    st_control_stop(w->ctl); /* the store is its thread's alone */
    named_secret(w, "team", "val");
    assert_int_equal(open_doc(w, live, second, &out), -ST_ECORRUPT);
    assert_kept(st_control_store(w->ctl),
                st_store_meta_put(st_control_store(w->ctl), "secrets_form", "names", &err));
    restart(w);
    st_control_stop(w->ctl);

    /* Each is its own account's, of the two that had the name. */
    assert_int_equal(open_doc(w, live, second, &out), 0);
    assert_string_equal(out.s, "{\"env\":{\"K\":\"s3cret\"}}");
    assert_int_equal(open_doc(w, live, first, &out), -ST_ECORRUPT);
    assert_int_equal(open_doc(w, over, first, &out), 0);
    assert_int_equal(open_doc(w, over, second, &out), -ST_ECORRUPT);
    assert_int_equal(open_secret(w, "team", &out), 0);
    assert_string_equal(out.s, "val");

    /* It is done once: a row of the earlier form that comes later opens for nobody. */
    assert_kept(st_control_store(w->ctl),
                st_store_job_put_spec(st_control_store(w->ctl), (int64_t)over, doc.s, &err));
    restart(w);
    st_control_stop(w->ctl);
    assert_int_equal(open_doc(w, over, first, &out), -ST_ECORRUPT);
    assert_int_equal(open_doc(w, live, second, &out), 0);
    assert_int_equal(open_secret(w, "team", &out), 0);
}

typedef struct tally {
    int n;
    char who[256];
} tally;

static int see_job(void *ctx, const st_job_row *row, st_err *err)
{
    (void)err, (void)row;
    ((tally *)ctx)->n++;
    return 0;
}

/* The details of what was done to accounts are told apart by who did it. */
static int see_act(void *ctx, const st_audit_row *row, st_err *err)
{
    tally *t = ctx;

    (void)err;
    t->n++;
    if (strcmp(row->verb, "secret.put") == 0)
        snprintf(t->who + strlen(t->who), sizeof t->who - strlen(t->who), "%s ", row->target);
    return 0;
}

static int jobs_of(world *w, const char *account)
{
    const st_job_filter f = {.within = st_directory_range(st_control_directory(w->ctl), account)};
    tally t = {0};
    st_err err = {0};

    assert_ok(st_store_jobs_list(st_control_store(w->ctl), &f, see_job, &t, &err));
    return t.n;
}

static void acts_of(world *w, const char *account, tally *ret)
{
    const st_audit_filter f = {.within = st_directory_range(st_control_directory(w->ctl), account)};
    st_err err = {0};

    *ret = (tally){0};
    assert_ok(st_store_audit_list(st_control_store(w->ctl), &f, see_act, ret, &err));
}

static void put_secret(world *w, const char *account, const char *name, bool remove)
{
    st_cmd_secret cmd = {.who = owner,
                         .account = account,
                         .name = name,
                         .value = remove ? NULL : "x",
                         .n = remove ? 0 : 1};
    st_err err = {0};

    st_cmd_secret_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    st_strbuf_done(&cmd.sealed);
}

static void check_ranges(world *w, const char *old)
{
    tally t;

    assert_int_equal(jobs_of(w, ""), 2);
    assert_int_equal(jobs_of(w, "team"), 1);
    assert_int_equal(jobs_of(w, "org"), 1);
    assert_int_equal(jobs_of(w, old), 1);
    assert_int_equal(jobs_of(w, "nobody"), 0);
    acts_of(w, "team", &t);
    assert_string_equal(t.who, "second ");
    acts_of(w, "org", &t);
    assert_string_equal(t.who, "second ");
    acts_of(w, old, &t);
    assert_string_equal(t.who, "first ");
    acts_of(w, "nobody", &t);
    assert_int_equal(t.n, 0);
}

/* What rows stand under is written with them, and given to those of a store from before. The second account of a name
 * sees nothing of the first, whichever way. */
static void ranges(void **state)
{
    world *w = *state;
    char old[64];
    uint64_t id;
    st_err err = {0};

    make_fleet(w);
    make_account(w, "org", "", "{name: org}");
    put_secret(w, "team", "first", false);
    put_secret(w, "team", "first", true);
    assert_ok(submit(w, NULL, "{}", &id, &err));
    cancel(w, id);
    snprintf(old, sizeof old, ST_GONE_NAME, "team", (long long)serial_of(w, "team"));
    remove_account(w, "team");
    make_account(w, "team", "org", "{name: team, parent: org}");
    put_secret(w, "team", "second", false);
    assert_ok(submit(w, NULL, "{}", &id, &err));
    st_control_stop(w->ctl);
    check_ranges(w, old);
    tamper_exec(st_control_store(w->ctl),
                "UPDATE jobs SET in1 = 0, in2 = 0; UPDATE audit SET in1 = 0, in2 = 0; "
                "DELETE FROM meta WHERE k = 'stands'");
    assert_int_equal(jobs_of(w, "team"), 0);
    restart(w);
    st_control_stop(w->ctl);
    check_ranges(w, old);
}

static int note_token(void *ctx, const st_token_row *row, st_err *err)
{
    st_strbuf *out = ctx;

    (void)err;
    st_strbuf_addf(out, "%s=%s,", row->user_name, row->account);
    return 0;
}

static void token_for(world *w, const char *user)
{
    st_cmd_token cmd = {.who = owner,
                        .account = "team",
                        .user = user,
                        .label = "",
                        .role = ST_ROLE_MEMBER,
                        .expires_ms = ST_STORE_NEVER};
    st_err err = {0};

    let_pass(w, 1000);
    st_cmd_token_make(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
}

static void revoke_last(world *w)
{
    st_cmd_token cmd = {.who = owner, .id = w->ctl->last_token};
    st_err err = {0};

    st_cmd_token_revoke(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
}

static void check_filed(world *w, const char *first, const char *second)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf got = {0}, want = {0};
    st_err err = {0};

    st_strbuf_addf(&want, "ann=%s,bob=%s,cat=team,dan=team,", first, second);
    assert_ok(st_store_tokens(st_control_store(w->ctl), note_token, &got, &err));
    assert_string_equal(st_strbuf_str(&got), st_strbuf_str(&want));
}

/* Tokens of accounts that are gone stay with them; in a store from before they are told apart by when they were made. */
static void tokens_filed(void **state)
{
    world *w = *state;
    char first[64], second[64];

    make_fleet(w);
    snprintf(first, sizeof first, ST_GONE_NAME, "team", (long long)serial_of(w, "team"));
    token_for(w, "ann");
    let_pass(w, 1000);
    remove_account(w, "team");
    make_account(w, "team", "", "{name: team}");
    snprintf(second, sizeof second, ST_GONE_NAME, "team", (long long)serial_of(w, "team"));
    token_for(w, "bob");
    let_pass(w, 1000);
    remove_account(w, "team");
    make_account(w, "team", "", "{name: team}");
    token_for(w, "cat");
    revoke_last(w);
    token_for(w, "dan");
    st_control_stop(w->ctl);
    check_filed(w, first, second);
    tamper_exec(st_control_store(w->ctl),
                "UPDATE tokens SET account = 'team'; DELETE FROM meta WHERE k = 'tokens_filed'");
    restart(w);
    st_control_stop(w->ctl);
    check_filed(w, first, second);
}

/* Books that were shared stay so, and are named; who is made again has its own. */
static void shared_books(void **state)
{
    world *w = *state;
    char buf[ST_NAME_MAX + 1];

    make_fleet(w);
    remove_account(w, "team");
    make_account(w, "team", "", "{name: team}");
    assert_string_not_equal(st_book_of(w->ctl, "team", buf), "team");
    restart(w);
    assert_int_equal(w->shared, 0);
    st_control_stop(w->ctl);
    tamper_exec(st_control_store(w->ctl), "DELETE FROM meta WHERE k = 'books_shared_upto'");
    restart(w);
    assert_int_equal(w->shared, 1);
    assert_string_equal(st_book_of(w->ctl, "team", buf), "team");
    remove_account(w, "team");
    make_account(w, "team", "", "{name: team}");
    assert_string_not_equal(st_book_of(w->ctl, "team", buf), "team");
    restart(w);
    assert_int_equal(w->shared, 1);
}

/* ---- nodes of the time before keys ------------------------------------------------------------------- */

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int contact(world *w, const st_identity *who, const char *key, st_err *err)
{
    st_cmd_register cmd = {.who = *who,
                           .machine = "m1",
                           .key = key,
                           .doc = "{}",
                           .type = "h100",
                           .node = {.name = "n1", .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20}};

    st_cmd_register_init(&cmd);
    return do_cmd(w, &cmd.cmd, err);
}

/* The token that such a node has, and its row, as they were written then. */
static void node_with_token(world *w, char ret[ST_TOKEN_TEXT])
{
    st_cmd_token cmd = {.who = owner,
                        .account = "",
                        .user = "n1",
                        .label = "",
                        .role = ST_ROLE_NODE,
                        .expires_ms = ST_STORE_NEVER};
    char doc[96];
    st_err err = {0};

    st_cmd_token_make(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    snprintf(ret, ST_TOKEN_TEXT, "%s", cmd.text);
    snprintf(doc, sizeof doc, "{\"machine\":\"m1\",\"agent\":{},\"token\":%lld}",
             (long long)cmd.id);
    st_control_stop(w->ctl);
    const st_document_row row = {.kind = "node", .name = "n1", .doc = doc};
    assert_kept(st_control_store(w->ctl),
                st_store_document_put(st_control_store(w->ctl), &row, &err));
    restart(w);
}

static int who_has(world *w, const char *token, st_identity *ret, st_err *err)
{
    return st_directory_token(st_control_directory(w->ctl), token, w->now, ret, err);
}

typedef struct key_cmd {
    st_cmd cmd;
    char bound[ST_KEY_TEXT];
} key_cmd;

static int run_key(st_tx *tx, st_cmd *cmd, st_err *err)
{
    key_cmd *k = (key_cmd *)cmd;
    bool rejoin;

    (void)err;
    st_node_key(tx->ctl->store, "n1", k->bound, &rejoin);
    return 0;
}

/* The loop looks: it may be at work in the store still. */
static void assert_bound(world *w, const char *key)
{
    key_cmd k = {.cmd = {.lane = ST_LANE_AGENTS, .run = run_key}};
    st_err err = {0};

    assert_ok(do_cmd(w, &k.cmd, &err));
    assert_string_equal(k.bound, key);
}

/* It has a key from its next contact on, once: neither its token nor whoever was let in by it binds another. */
static void nodes_without_keys(void **state)
{
    world *w = *state;
    char token[ST_TOKEN_TEXT];
    st_identity node, later;
    st_err err = {0};

    make_fleet(w);
    node_with_token(w, token);
    assert_ok(who_has(w, token, &node, &err));
    assert_int_equal(node.role, ST_ROLE_NODE);
    assert_string_equal(node.user, "n1");
    assert_ok(contact(w, &node, NULL, &err)); /* its agent is of then as well */
    assert_ok(who_has(w, token, &later, &err));
    assert_ok(contact(w, &node, KEY_A, &err));
    assert_bound(w, KEY_A);
    assert_true(who_has(w, token, &later, &err) < 0);
    /* One that came with the token a moment before it was revoked. */
    assert_fails(contact(w, &node, KEY_B, &err), ST_EPERM, "another key is bound");
    assert_fails(contact(w, &node, NULL, &err), ST_EPERM, "another key is bound");
    restart(w);
    assert_true(who_has(w, token, &later, &err) < 0);
    assert_bound(w, KEY_A);
    assert_ok(contact(w, &node, KEY_A, &err)); /* by its key; nothing is new */
}

/* ---- what was noted of nodes beside the core ---------------------------------------------------------- */

static void put(world *w, const char *kind, const char *doc)
{
    const st_document_row row = {.kind = kind, .name = "n1", .doc = doc};
    st_err err = {0};

    assert_kept(st_control_store(w->ctl),
                st_store_document_put(st_control_store(w->ctl), &row, &err));
}

static bool kept(world *w, const char *kind)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row;
    st_err err = {0};

    return st_store_document_get(st_control_store(w->ctl), kind, "n1", arena, &row, &err) == 0;
}

/* Of a node that somebody had drained and that has failed since: the core has both, and the node is drained again once it is
 * well. */
static void notes_of_nodes(void **state)
{
    world *w = *state;
    st_event ev = {.kind = ST_EV_NODE_STATE};
    const st_node *node;
    st_err err = {0};

    make_fleet(w);
    ev.u.node_state.node = st_fleet_node(st_core_fleet(w->ctl->core), "n1");
    ev.u.node_state.state = ST_NODE_FAILED;
    make_event(w, ev);
    st_control_stop(w->ctl);
    put(w, "node-word", "{\"by\":\"ann\",\"reason\":\"new disk\",\"since\":5}");
    put(w, "node-fault", "{\"reason\":\"silent\",\"was\":\"draining\"}");
    for (int i = 0; i < 2; i++) { /* they are told once, and kept */
        st_cmd_note after = {.who = owner, .verb = "test", .account = "", .target = ""};

        restart(w);
        st_cmd_note_init(&after);
        after.cmd.lane = ST_LANE_AGENTS; /* behind what follows a start */
        assert_ok(do_cmd(w, &after.cmd, &err));
        node = st_core_fleet(w->ctl->core)->nodes.v[ev.u.node_state.node];
        assert_string_equal(node->word.by, "ann");
        assert_string_equal(node->word.reason, "new disk");
        assert_int_equal(node->word.since_ms, 5);
        assert_string_equal(node->fault.reason, "silent");
        assert_int_equal(node->was, ST_NODE_DRAINING);
        assert_int_equal(node->state, ST_NODE_FAILED);
        assert_false(kept(w, "node-word"));
        assert_false(kept(w, "node-fault"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sealed_for_names, begin, end),
        cmocka_unit_test_setup_teardown(ranges, begin, end),
        cmocka_unit_test_setup_teardown(tokens_filed, begin, end),
        cmocka_unit_test_setup_teardown(shared_books, begin, end),
        cmocka_unit_test_setup_teardown(nodes_without_keys, begin, end),
        cmocka_unit_test_setup_teardown(notes_of_nodes, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
