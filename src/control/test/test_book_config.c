/*
 * What is kept of bookings beside the core: the index by organisation, labels of nodes, images on nodes.
 */
#include <jansson.h>
#include <string.h>

#include "base/testing.h"
#include "control/bookings.h"
#include "control/state.h"
#include "control/test/world.h"

#define H INT64_C(3600000)

static uint64_t book(world *w, const char *account, int64_t from, const char *require,
                     const char *image, bool confirm)
{
    st_window window = {from, from + H};
    st_cmd_book cmd = {.who = owner,
                       .spec = {.name = "launch",
                                .account = account,
                                .user = "ann",
                                .pool = -1,
                                .tasks = 1,
                                .gpus = 1,
                                .require = require,
                                .no_show_ms = ST_TIME_NEVER},
                       .windows = &window,
                       .n = 1,
                       .confirm = confirm,
                       .image = image,
                       .zone = "UTC",
                       .tzdata = "test"};
    st_err err = {0};

    st_cmd_book_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    return cmd.id;
}

typedef struct found {
    char names[400];
} found;

static int find(void *ctx, const st_document_row *row, st_err *err)
{
    found *f = ctx;
    size_t n = strlen(f->names);

    (void)err;
    if (strncmp(row->kind, "booking-of ", 11) == 0)
        snprintf(f->names + n, sizeof f->names - n, "%s/%s ", row->kind + 11, row->name);
    return 0;
}

static void read_index(world *w, found *ret)
{
    st_err err = {0};

    *ret = (found){""};
    assert_ok(st_store_documents(st_control_store(w->ctl), NULL, find, ret, &err));
}

static int drop(world *w, const char *kind, const char *name, st_err *err)
{
    st_store *store = st_control_store(w->ctl);
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_document_row row;
    int r = st_store_document_get(store, kind, name, arena, &row, err);

    return r < 0 ? r : st_store_document_delete(store, kind, name, row.version, err);
}

/* A store of before there was an index has it after a start, and what lapses leaves it. */
static void an_index_by_organisation(void **state)
{
    world *w = *state;
    char names[2][ST_ID_TEXT], kind[ST_BOOKING_OF_MAX];
    found before, now;
    st_err err = {0};

    make_fleet(w);
    make_account(w, "sub", "team", "{name: sub, parent: team}");
    st_control_name(w->ctl, ST_BOOKING_ID, book(w, "team", w->now + 5 * H, NULL, NULL, true),
                    names[0]);
    st_control_name(w->ctl, ST_BOOKING_ID, book(w, "sub", w->now + 7 * H, NULL, NULL, true),
                    names[1]);
    st_control_stop(w->ctl);
    read_index(w, &before);
    assert_non_null(strstr(before.names, names[0]));
    assert_non_null(strstr(before.names, names[1]));
    snprintf(kind, sizeof kind, ST_BOOKING_OF, (int)strtol(before.names, NULL, 10));
    for (int i = 0; i < 2; i++)
        assert_kept(st_control_store(w->ctl), drop(w, kind, names[i], &err));
    read_index(w, &now);
    assert_string_equal(now.names, "");
    restart(w); /* it is said to be whole: nobody looks */
    st_control_stop(w->ctl);
    read_index(w, &now);
    assert_string_equal(now.names, "");
    assert_kept(st_control_store(w->ctl),
                st_store_meta_put(st_control_store(w->ctl), ST_BOOKINGS_INDEXED, "0", &err));
    restart(w);
    book(w, "team", w->now + 9 * H, NULL, NULL, false);
    let_pass(w, H); /* nobody confirms it */
    make_account(w, "later", "", "{name: later}");
    st_control_stop(w->ctl);
    read_index(w, &now);
    assert_string_equal(now.names, before.names);
}

static int label(world *w, const char *node, const char *set, const char *drop_name, bool force,
                 st_err *err)
{
    json_t *map = set ? json_loads(set, 0, NULL) : NULL;
    json_t *gone = drop_name ? json_pack("[s]", drop_name) : NULL;
    st_cmd_labels cmd = {.who = owner, .node = node, .set = map, .remove = gone, .force = force};
    int r;

    st_cmd_labels_init(&cmd);
    r = do_cmd(w, &cmd.cmd, err);
    json_decref(map);
    json_decref(gone);
    return r;
}

static const char *labels_of(world *w, int32_t node)
{
    const char *s = st_core_fleet(w->ctl->core)->nodes.v[node]->labels;

    return s ? s : "";
}

/* What a machine says holds; what an owner added is there after a restart, and goes with the node. */
static void labels_have_two_hands(void **state)
{
    world *w = *state;
    const char *name;
    st_err err = {0};

    make_fleet(w);
    name = st_core_fleet(w->ctl->core)->nodes.v[0]->name;
    assert_ok(label(w, name, "{\"net\": \"ib\", \"driver\": \"535\"}", NULL, false, &err));
    assert_int_equal(label(w, name, "{\"a b\": \"1\"}", NULL, false, &err), -ST_EINVAL);
    assert_int_equal(label(w, name, "{\"x\": \"1\\n\"}", NULL, false, &err), -ST_EINVAL);
    assert_int_equal(label(w, name, NULL, "nothing", false, &err), -ST_ENOENT);
    assert_int_equal(label(w, "nobody", "{\"a\": \"1\"}", NULL, false, &err), -ST_ENOENT);
    assert_string_equal(labels_of(w, 0), "driver=535\nnet=ib\n");
    book(w, "team", w->now + 5 * H, "net=ib\n", NULL, true);
    assert_int_equal(label(w, name, NULL, "net", false, &err), -ST_ESTATE);
    st_control_stop(w->ctl);
    const st_document_row row = {.kind = "node",
                                 .name = name,
                                 .doc = "{\"machine\":\"m\",\"agent\":{\"driver\":\"550.54\","
                                        "\"labels\":{\"executor\":\"oci\",\"a b\":\"c\"}}}"};
    assert_kept(st_control_store(w->ctl),
                st_store_document_put(st_control_store(w->ctl), &row, &err));
    restart(w);
    make_account(w, "later", "", "{name: later}"); /* behind what a start does */
    assert_string_equal(labels_of(w, 0), "driver=550.54\nexecutor=oci\nnet=ib\n");
    name = st_core_fleet(w->ctl->core)->nodes.v[0]->name;
    assert_int_equal(label(w, name, "{\"driver\": \"999\"}", NULL, false, &err), -ST_ESTATE);
    assert_non_null(strstr(err.msg, "says itself"));
    assert_ok(label(w, name, NULL, "net", true, &err));
    assert_string_equal(labels_of(w, 0), "driver=550.54\nexecutor=oci\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_by_organisation, begin, end),
        cmocka_unit_test_setup_teardown(labels_have_two_hands, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
