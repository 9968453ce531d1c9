/*
 * Remedies: what is to be done about nodes that are out for an incident, one after the other, and the journal of it. Who does it
 * is the caller's (stintd/remedy.c): it asks for the next one, and says what came of it.
 *
 * A remedy is immediate where the node has failed, and waits until nobody is there where it is in repair or retired. There is one
 * for each time that a node was taken out for an incident. It is written down before it begins, so it is never begun twice: one
 * that stintd did not see the end of is `lost`.
 *
 * kept as documents: node-remedies NAME  [{"at", "incident", "taken", "remedy", "fault", "state", "text"}, …], the newest last
 */
#include "control/remedies.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "control/state.h"
#include "health/health.h"

#define KEPT 20

/* Only a GPU of it is out: a reset waits for who has that, everything else until nobody is on the node. */
static bool may_mend(const st_node *node, int gpu, st_remedy remedy)
{
    st_node_state state = gpu >= 0 && gpu < node->ndevs ? st_gpu_state(node, gpu) : ST_NODE_READY;

    if (state != ST_NODE_FAILED && state != ST_NODE_RETIRED)
        return false;
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_resident *r = &node->residents.v[i];

        if (remedy != ST_REMEDY_RESET || (r->job->grants[r->task].devs >> gpu & 1))
            return false;
    }
    return true;
}

/* Whether its turn has come: nobody is there any more, or everybody there is lost anyway. */
static bool may_begin(const st_node *node, int gpu, st_remedy remedy)
{
    return may_mend(node, gpu, remedy) || node->state == ST_NODE_FAILED ||
           ((node->state == ST_NODE_REPAIR || node->state == ST_NODE_RETIRED) &&
            node->residents.n == 0);
}

static bool has(const json_t *list, const st_incident *inc, const st_incident_node *at)
{
    const json_t *row;
    size_t i;

    json_array_foreach(list, i, row) if (json_integer_value(json_object_get(row, "incident")) ==
                                             (json_int_t)inc->id &&
                                         json_integer_value(json_object_get(row, "taken")) ==
                                             at->taken_ms) return true;
    return false;
}

/* The one that began last did not come to an end that anybody saw. */
static void give_up(json_t *list)
{
    json_t *row;
    size_t i;

    json_array_foreach(
        list, i, row) if (strcmp(json_string_value(json_object_get(row, "state")), "running") == 0)
    {
        json_object_set_new(row, "state", json_string("lost"));
        json_object_set_new(row, "text", json_string("stintd ended before it did"));
    }
}

/* What the site's program is told. */
static void describe(const st_control *ctl, const st_incident *inc, const st_incident_node *at,
                     st_remedy remedy, st_remedy_turn *ret)
{
    const st_node *node = st_core_fleet(ctl->core)->nodes.v[at->node];
    char id[ST_ID_TEXT], key[ST_ID_TEXT + 24];

    st_control_name(ctl, ST_INCIDENT_ID, inc->id, id);
    snprintf(key, sizeof key, "%s-%" PRId64, id, at->taken_ms);
    json_t *doc =
        json_pack("{s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:s}", "version", 1, "key", key, "node",
                  node->name, "pool", st_core_fleet(ctl->core)->pools.v[node->pool].name, "remedy",
                  st_remedy_name(remedy), "fault", st_fault_name(inc->kind), "cause",
                  st_cause_name(st_fault_cause(inc->kind)), "incident", id, "code",
                  (json_int_t)at->code, "reason", inc->words);
    json_object_set_new(doc, "about", json_string(st_remedy_about(remedy)));
    if (at->gpu >= 0)
        json_object_set_new(doc, "gpu", json_integer(at->gpu));
    snprintf(ret->node, sizeof ret->node, "%s", node->name);
    snprintf(ret->what, sizeof ret->what, "%s", st_remedy_name(remedy));
    ret->incident = inc->id;
    ret->taken_ms = at->taken_ms;
    ret->ask = json_dumps(doc, JSON_COMPACT);
    json_decref(doc);
}

static int begin(st_tx *tx, const st_incident *inc, const st_incident_node *at, json_t *list,
                 st_remedy remedy, st_remedy_turn *ret, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[at->node];
    json_t *row =
        json_pack("{s:I,s:I,s:I,s:s,s:s,s:s}", "at", (json_int_t)tx->now, "incident",
                  (json_int_t)inc->id, "taken", (json_int_t)at->taken_ms, "remedy",
                  st_remedy_name(remedy), "fault", st_fault_name(inc->kind), "state", "running");

    give_up(list);
    if (at->gpu >= 0)
        json_object_set_new(row, "gpu", json_integer(at->gpu));
    json_array_append_new(list, row);
    while (json_array_size(list) > KEPT)
        json_array_remove(list, 0);
    describe(tx->ctl, inc, at, remedy, ret);
    return st_document_write(tx, "node-remedies", node->name, list, err);
}

/* Fills ret where the node is next. */
static int look_at(st_tx *tx, const st_incident *inc, const st_incident_node *at,
                   st_remedy_turn *ret, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[at->node];
    const st_finding finding = {.kind = inc->kind, .gpu = at->gpu, .code = at->code};
    st_remedy remedy = node->state == ST_NODE_RETIRED ? ST_REMEDY_INSPECT : st_remedy_of(&finding);
    json_t *list;
    int r;

    if (!at->out || at->held || remedy == ST_REMEDY_NONE || !may_begin(node, at->gpu, remedy))
        return 0;
    list = st_document_json(tx->ctl->store, "node-remedies", node->name, &r, err);
    if (r < 0)
        return r;
    list = json_is_array(list) ? list : json_array();
    if (!has(list, inc, at))
        return begin(tx, inc, at, list, remedy, ret, err); /* takes the list */
    json_decref(list);
    return 0;
}

int st_remedies_next(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_remedy_turn *ret = ((st_remedy_cmd *)cmd)->turn;
    const st_core *core = tx->ctl->core;
    int r = 0;

    for (size_t i = 0; r == 0 && !ret->ask && i < st_core_nincidents(core); i++) {
        const st_incident *inc = st_core_incident_at(core, i);

        for (size_t k = 0; r == 0 && !inc->over && !ret->ask && k < inc->nodes.n; k++)
            r = look_at(tx, inc, &inc->nodes.v[k], ret, err);
    }
    return r < 0 ? st_tx_fault(tx, r, err) : 0;
}

int st_remedies_done(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_remedy_turn *turn = ((st_remedy_cmd *)cmd)->turn;
    int r = st_tx_open(tx, err);
    json_t *list =
        r == 0 ? st_document_json(tx->ctl->store, "node-remedies", turn->node, &r, err) : NULL;
    json_t *row;
    size_t i;

    if (r < 0)
        return st_tx_fault(tx, r, err);
    json_array_foreach(list, i, row)
    {
        if (json_integer_value(json_object_get(row, "incident")) != (json_int_t)turn->incident ||
            json_integer_value(json_object_get(row, "taken")) != turn->taken_ms)
            continue;
        json_object_set_new(row, "state", json_string(turn->state));
        json_object_set_new(row, "text", json_string(turn->text));
        json_object_set_new(row, "took_ms", json_integer(turn->took_ms));
    }
    st_control_say(tx->ctl, "event=remedy node=%s remedy=%s state=%s text=\"%s\"", turn->node,
                   turn->what, turn->state, turn->text);
    return st_document_write(tx, "node-remedies", turn->node, list ? list : json_array(), err);
}
