/*
 * Images that bookings want on their nodes before they begin (control/bookings.h).
 *
 * From half an hour before its start a booking's image is on the lists of the agents of its nodes, which unpack and keep it
 * until the booking is over. What they say is in the booking's record: "prepared": {NODE: {"state", "reason"}}.
 *
 * 1 What is to be on a node follows from bookings and the catalogue alone, and is found anew every few seconds: nothing is
 *   lost by a restart, and a booking that moves takes its image along.
 * 2 Where an engine prepares nothing there is nothing to wait for.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/bookings.h"
#include "control/state.h"

#define EVERY_MS INT64_C(5000)

typedef struct wanted {
    int32_t node;
    st_strbuf list; /* JSON, without its end */
} wanted;

typedef struct cmd_prepare {
    st_cmd cmd;
    ST_VEC(wanted) nodes;
} cmd_prepare;

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

/* What the image of a record means on nodes; the caller's. */
static json_t *resolve(const st_tx *tx, const json_t *record, char **ret_text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0}, out = {0};

    st_strbuf_add(&doc, "{\"image\":");
    st_quote_json(&doc, text(record, "image"));
    st_strbuf_addc(&doc, '}');
    st_images_order(tx->ctl->images, text(record, "account"), st_strbuf_str(&doc), false, &out);
    if (ret_text)
        *ret_text = st_xstrdup(st_strbuf_str(&out));
    return json_loads(st_strbuf_str(&out), 0, NULL);
}

/* How agents name it. */
static const char *key_of(const json_t *image)
{
    const char *digest = text(image, "digest");

    return digest[0] ? digest : text(image, "path");
}

static bool prepares(const st_tx *tx, int32_t id)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    const st_node *node = fleet->nodes.v[id];
    const st_engine *engine =
        tx->ctl->options.engine ? st_engine_of(tx->ctl->options.engine,
                                               fleet->pools.v[node->pool].rules.engine, node->agent)
                                : NULL;

    return engine && engine->ops->images;
}

/* Whether that is new. */
static bool note(json_t *record, const char *node, const char *state, const char *reason)
{
    json_t *all = json_object_get(record, "prepared");
    const json_t *was = json_object_get(all, node);

    if (was && strcmp(text(was, "state"), state) == 0 && strcmp(text(was, "reason"), reason) == 0)
        return false;
    if (!all)
        json_object_set_new(record, "prepared", all = json_object());
    json_object_set_new(all, node, json_pack("{s:s,s:s}", "state", state, "reason", reason));
    return true;
}

static bool in_plan(const st_fleet *fleet, const st_booking *b, const char *name)
{
    for (int t = 0; t < b->tasks; t++)
        if (b->plan[t].node >= 0 && strcmp(fleet->nodes.v[b->plan[t].node]->name, name) == 0)
            return true;
    return false;
}

/* What was said of nodes that it has left. */
static bool forget(const st_fleet *fleet, const st_booking *b, json_t *record)
{
    json_t *all = json_object_get(record, "prepared"), *value;
    const char *name;
    void *next;
    bool any = false;

    json_object_foreach_safe(all, next, name, value)
    {
        if (in_plan(fleet, b, name))
            continue;
        json_object_del(all, name);
        any = true;
    }
    return any;
}

static void want(cmd_prepare *c, int32_t node, const char *image)
{
    size_t i = 0;

    while (i < c->nodes.n && c->nodes.v[i].node != node)
        i++;
    if (i == c->nodes.n)
        st_vec_push(&c->nodes, (wanted){.node = node});
    st_strbuf *list = &c->nodes.v[i].list;
    if (list->n > 0 && strstr(st_strbuf_str(list), image))
        return;
    st_strbuf_add(list, list->n > 0 ? "," : "[");
    st_strbuf_add(list, image);
}

static int keep(st_tx *tx, uint64_t id, json_t *record, st_err *err)
{
    int r = st_tx_open(tx, err);

    if (r == 0)
        r = st_booking_put(tx, id, record, err);
    if (r == 0)
        st_vec_push(&tx->ctl->image_news, id);
    return r;
}

static int prepare(st_tx *tx, cmd_prepare *c, const st_booking *b, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    ST_CLEANUP(st_freep) char *image_text = NULL;
    bool changed;
    int r = 0;
    json_t *record = st_booking_record(tx, b->id, &r, err), *image;

    if (!record)
        return st_tx_fault(tx, r, err);
    image = resolve(tx, record, &image_text);
    changed = forget(fleet, b, record);
    for (int t = 0; t < b->tasks; t++) {
        int32_t id = b->plan[t].node;

        if (id < 0)
            continue;
        if (strcmp(text(image, "kind"), "refused") == 0)
            changed |= note(record, fleet->nodes.v[id]->name, "failed", text(image, "reason"));
        else if (prepares(tx, id))
            want(c, id, image_text);
        else
            changed |= note(record, fleet->nodes.v[id]->name, "ready", "");
    }
    if (changed)
        r = keep(tx, b->id, record, err);
    json_decref(image);
    json_decref(record);
    return r;
}

static int run_prepare(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_control *ctl = tx->ctl;
    size_t kept = 0;
    int r = 0;

    for (size_t i = 0; i < ctl->imaged.n; i++) {
        const st_booking *b = st_core_booking(ctl->core, ctl->imaged.v[i]);

        if (!b || b->over)
            continue;
        ctl->imaged.v[kept++] = ctl->imaged.v[i];
        if (r == 0 && b->state != ST_BOOKING_QUOTED && tx->now >= b->from_ms - ST_PREPARE_MS)
            r = prepare(tx, (cmd_prepare *)cmd, b, err);
    }
    ctl->imaged.n = kept;
    return r;
}

static void tell(st_control *ctl, int32_t node, const char *list)
{
    st_engine *engine = ctl->options.engine;

    if (engine && engine->ops->images)
        engine->ops->images(engine, node, list);
}

static void publish_prepare(st_control *ctl, st_cmd *cmd)
{
    cmd_prepare *c = (cmd_prepare *)cmd;

    for (size_t k = 0; k < ctl->image_nodes.n; k++) {
        bool still = false;

        for (size_t i = 0; i < c->nodes.n; i++)
            still |= c->nodes.v[i].node == ctl->image_nodes.v[k];
        if (!still)
            tell(ctl, ctl->image_nodes.v[k], "[]");
    }
    st_vec_clear(&ctl->image_nodes);
    for (size_t i = 0; i < c->nodes.n; i++) {
        st_strbuf_addc(&c->nodes.v[i].list, ']');
        tell(ctl, c->nodes.v[i].node, st_strbuf_str(&c->nodes.v[i].list));
        st_vec_push(&ctl->image_nodes, c->nodes.v[i].node);
    }
    st_booking_image_news(ctl);
}

static void prepare_done(st_cmd *cmd, const st_err *err)
{
    cmd_prepare *c = (cmd_prepare *)cmd;

    (void)err; /* it is tried again */
    for (size_t i = 0; i < c->nodes.n; i++)
        st_strbuf_done(&c->nodes.v[i].list);
    st_vec_free(&c->nodes);
    free(c);
}

int64_t st_prepare_next(const st_control *ctl)
{
    return ctl->imaged.n + ctl->image_nodes.n > 0 ? ctl->prepare_ms : ST_TIME_NEVER;
}

void st_prepare_turn(st_control *ctl, int64_t now)
{
    cmd_prepare *c;

    if (now < st_prepare_next(ctl) && ctl->prepare_ms - now <= EVERY_MS)
        return;
    if (st_prepare_next(ctl) == ST_TIME_NEVER)
        return;
    ctl->prepare_ms = now + EVERY_MS;
    c = st_xcalloc(1, sizeof *c);
    c->cmd.lane = ST_LANE_AGENTS;
    c->cmd.run = run_prepare;
    c->cmd.publish = publish_prepare;
    c->cmd.done = prepare_done;
    if (!st_control_post(ctl, &c->cmd))
        prepare_done(&c->cmd, NULL);
}

/* ---- what agents say ---------------------------------------------------------------------- */

int st_booking_image(st_tx *tx, const st_report *rep, const char *key, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    const char *name = fleet->nodes.v[rep->node]->name;
    int r = 0;

    for (size_t i = 0; r == 0 && key && i < tx->ctl->imaged.n; i++) {
        const st_booking *b = st_core_booking(tx->ctl->core, tx->ctl->imaged.v[i]);
        json_t *record, *image;

        if (!b || b->over || !in_plan(fleet, b, name))
            continue;
        record = st_booking_record(tx, b->id, &r, err);
        image = record ? resolve(tx, record, NULL) : NULL;
        if (r < 0)
            st_tx_fault(tx, r, err);
        else if (image && strcmp(key_of(image), key) == 0 &&
                 note(record, name, rep->done ? "ready" : "failed", rep->done ? "" : rep->reason))
            r = keep(tx, b->id, record, err);
        json_decref(image);
        json_decref(record);
    }
    return r;
}

/* Whoever follows bookings hears that one is ready, or is not and why. */
void st_booking_image_news(st_control *ctl)
{
    const st_effect none = {.kind = ST_FX_BOOKING, .node = -1, .account = -1};

    for (size_t i = 0; ctl->options.listen && i < ctl->image_news.n; i++) {
        const st_booking *b = st_core_booking(ctl->core, ctl->image_news.v[i]);
        ST_CLEANUP(st_strbuf_done) st_strbuf reason = {0};
        st_err ignored;
        char id[ST_ID_TEXT];
        int r;
        const char *ready;
        json_t *record;

        if (!b)
            continue;
        st_control_name(ctl, ST_BOOKING_ID, b->id, id);
        record = st_document_json(ctl->store, ST_BOOKING_KIND, id, &r, &ignored);
        ready = st_booking_ready(ctl->core, b, record, &reason);
        if (reason.n == 0)
            st_strbuf_addf(&reason, "its nodes are %s", ready);
        const st_notice n = {.seq = ++ctl->notice_seq,
                             .at_ms = st_control_last_ms(ctl),
                             .booking = b->id,
                             .degraded = strcmp(ready, "degraded") == 0,
                             .account = text(record, "account"),
                             .kind = st_effect_name(ST_FX_BOOKING),
                             .name = text(record, "account"),
                             .state = st_booking_state_name(b->state),
                             .reason = st_strbuf_str(&reason),
                             .fx = &none};
        ctl->options.listen(ctl->options.ctx, &n);
        json_decref(record);
    }
    st_vec_clear(&ctl->image_news);
}

int st_prepare_load(st_control *ctl, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < st_core_nbookings(ctl->core); i++) {
        const st_booking *b = st_core_booking_at(ctl->core, i);
        char id[ST_ID_TEXT];
        json_t *record;

        st_control_name(ctl, ST_BOOKING_ID, b->id, id);
        record = st_document_json(ctl->store, ST_BOOKING_KIND, id, &r, err);
        if (text(record, "image")[0])
            st_vec_push(&ctl->imaged, b->id);
        json_decref(record);
    }
    return r;
}
