/*
 * What a job has used of what it asked for, and what that cost so far: GET /v1/jobs/{id}/use. Answered by a thread for lists: the
 * control loop has no part in it. What nobody measured is null, never 0.
 *
 * While the job is on devices it is what its agents have said of this stay; afterwards what its row has of all of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "billing/money.h"
#include "health/stragglers.h"
#include "rules/advice.h"

typedef struct use {
    st_api *api;
    const st_job_row *row;
    char id[ST_ID_TEXT];
    json_t *spec, *result;
    st_used used;
    int64_t gpus;                /* of one task */
    int64_t asked_mib, type_mib; /* memory of one task, and of one whole GPU; 0: not known */
    int64_t share_m;             /* of a GPU; 1000: a whole one */
    bool slice;
    int64_t cost; /* micro-dollars */
} use;

/* ---- asked ------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text ? text : "";
}

/* A number in a document may be a text or a number; in thousandths. */
static int64_t milli_of(const json_t *doc, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(doc, key);
    int64_t milli;

    if (json_is_number(v))
        return (int64_t)(json_number_value(v) * 1000 + 0.5);
    if (json_is_string(v) &&
        st_parse_milli(json_string_value(v), 0, INT64_MAX / 2, &milli, NULL) == 0)
        return milli;
    return otherwise;
}

static int64_t vram_of(const json_t *spec)
{
    const json_t *v = json_object_get(spec, "vram");
    int64_t mib;

    if (json_is_number(v))
        return (int64_t)(json_number_value(v) * 1024);
    return json_is_string(v) && st_parse_mib(json_string_value(v), &mib, NULL) == 0 ? mib : 0;
}

static void find_asked(use *u)
{
    st_directory_gpu types[ST_TYPES_MAX];
    size_t n = st_directory_types(u->api->dir, types);
    const char *type = text_of(u->result, "type"), *profile = text_of(u->spec, "profile");
    int64_t each = vram_of(u->spec);

    u->gpus = milli_of(u->spec, "gpus", 1000) / 1000;
    u->share_m = milli_of(u->spec, "share", ST_WHOLE_M);
    u->slice = profile[0] != '\0';
    for (size_t i = 0; i < n; i++) {
        int mig;

        if (strcmp(types[i].name, type) != 0)
            continue;
        u->type_mib = types[i].vram_mib;
        mig = u->slice ? st_mig_parse(types[i].board, profile) : -1;
        if (mig >= 0)
            each = st_mig_vram_mib(types[i].board, (st_mig)mig);
    }
    if (each == 0 && !u->slice)
        each = u->type_mib * u->share_m / ST_WHOLE_M;
    u->asked_mib = each * u->gpus;
}

/* ---- used --------------------------------------------------------------------------------------- */

static void find_used(use *u, uint64_t job)
{
    st_engine *engine = st_control_engine(u->api->control);
    const json_t *kept = json_object_get(u->result, "usage");

    if (u->row->end_ms == ST_STORE_NEVER) {
        if (engine && engine->ops->used)
            engine->ops->used(engine, job, &u->used);
        return;
    }
    for (int k = 0; k < ST_USED_COUNT; k++) {
        const json_t *v = json_object_get(kept, st_used_key((st_used_kind)k));

        if (!json_is_integer(v))
            continue;
        u->used.has |= UINT32_C(1) << k;
        u->used.v[k] = json_integer_value(v);
    }
}

static bool has(const use *u, st_used_kind kind)
{
    return u->used.has >> kind & 1;
}

/* A sum over what was seen, in thousandths. */
static bool mean(const use *u, st_used_kind kind, int64_t times, int64_t *ret_m)
{
    int64_t seen = has(u, ST_USED_SEEN) ? u->used.v[ST_USED_SEEN] : 0;

    if (!has(u, kind) || seen <= 0)
        return false;
    *ret_m = (int64_t)((st_i128)u->used.v[kind] * times / seen);
    return true;
}

static void out_mean(const use *u, const char *key, st_used_kind kind, int64_t times,
                     st_strbuf *out)
{
    int64_t milli;

    if (mean(u, kind, times, &milli))
        st_out_milli(out, key, milli);
    else
        st_out_raw(out, key, "null");
}

/* ---- what it cost -------------------------------------------------------------------------------- */

static int add_entry(void *ctx, const st_book_row *row, st_err *err)
{
    use *u = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_entry e;
    int r = st_entry_read(row->data, strlen(row->data), arena, &e, err);

    for (int i = 0; r == 0 && i < e.nlines; i++)
        u->cost += e.lines[i].amount;
    return r;
}

static void add_open(void *ctx, const st_entry *e)
{
    use *u = ctx;

    if (!e->job || strcmp(e->job, u->id) != 0)
        return;
    for (int i = 0; i < e->nlines; i++)
        u->cost += e->lines[i].amount;
}

static int read_open(void *ctx, st_tx *tx, st_err *err)
{
    use *u = ctx;

    return st_tx_open_own(tx, u->row->account, add_open, u, err);
}

/* What is posted, and what runs as if it ended now: the store is read behind the state, so an interval that ends in between is in
 * neither, and not in both. */
static int find_cost(use *u, st_err *err)
{
    st_store *reader = st_api_reader(u->api, err);
    int64_t position;
    int r = reader ? st_store_book_of_job(reader, u->id, add_entry, u, err) : -err->code;

    st_api_reader_back(u->api, reader);
    if (r == 0 && u->row->end_ms == ST_STORE_NEVER)
        r = st_control_read(u->api->control, ST_READ_SHARED, 0, read_open, u, &position, err);
    return r;
}

/* ---- for the next submit ------------------------------------------------------------------------- */

typedef struct sentences {
    st_strbuf *out;
    int n;
} sentences;

static void add_sentence(void *ctx, const char *sentence)
{
    sentences *s = ctx;

    st_strbuf_add(s->out, s->n++ > 0 ? "," : "");
    st_quote_json(s->out, sentence);
}

static int64_t sum_or(const use *u, st_used_kind kind, int64_t otherwise)
{
    return has(u, kind) ? u->used.v[kind] : otherwise;
}

static void suggestions(const use *u, st_strbuf *out)
{
    const st_advice_use of = {.gpus = u->gpus,
                              .asked_mib = u->asked_mib,
                              .whole_mib = u->type_mib,
                              .peak_mib = sum_or(u, ST_USED_MEM_PEAK, -1),
                              .seen_ms = sum_or(u, ST_USED_SEEN, 0),
                              .busy_ms = sum_or(u, ST_USED_BUSY, -1)};
    sentences s = {out, 0};

    st_out_raw(out, "suggestions", "[");
    st_advice(&of, add_sentence, &s);
    st_strbuf_addc(out, ']');
}

/* ---- who is late ---------------------------------------------------------------------------------- */

typedef struct ranks {
    int n;
    st_rank_use v[ST_TASKS_MAX];
    int32_t node[ST_TASKS_MAX];
} ranks;

static int64_t lately_of(const st_used *used, st_used_kind kind)
{
    return used->has >> kind & 1 ? used->v[kind] : -1;
}

static void add_rank(void *ctx, int task, int32_t node, const st_used *lately)
{
    ranks *r = ctx;

    if (task != r->n || r->n >= ST_TASKS_MAX)
        return;
    r->v[r->n] = (st_rank_use){.seen = lately_of(lately, ST_USED_SEEN),
                               .busy = lately_of(lately, ST_USED_BUSY),
                               .sm = lately_of(lately, ST_USED_SM)};
    r->node[r->n++] = node;
}

typedef struct place {
    int32_t id;
    char name[ST_NAME_MAX + 1];
} place;

static int name_node(void *ctx, st_tx *tx, st_err *err)
{
    place *p = ctx;
    const st_fleet *fleet = st_core_fleet(st_tx_core(tx));

    (void)err;
    if (p->id >= 0 && (size_t)p->id < fleet->nodes.n)
        snprintf(p->name, sizeof p->name, "%s", fleet->nodes.v[p->id]->name);
    return 0;
}

/* The rank that the others of a gang wait for, on devices now; null: none, or nobody can tell. */
static void straggler(const use *u, uint64_t job, st_strbuf *out)
{
    st_engine *engine = st_control_engine(u->api->control);
    ST_CLEANUP(st_freep) ranks *r = st_xcalloc(1, sizeof *r);
    place at = {.id = -1};
    int64_t position;
    st_straggler s;
    st_err err;

    if (u->row->end_ms == ST_STORE_NEVER && engine && engine->ops->ranks)
        (void)engine->ops->ranks(engine, job, add_rank, r);
    if (!st_straggler_find(r->v, r->n, &s)) {
        st_out_raw(out, "straggler", "null");
        return;
    }
    at.id = r->node[s.rank];
    (void)st_control_read(u->api->control, ST_READ_SHARED, 0, name_node, &at, &position, &err);
    st_out_raw(out, "straggler", "{");
    st_out_int(out, "task", s.rank);
    st_out_text(out, "node", at.name);
    st_out_milli(out, "busy", s.busy_m);
    st_out_milli(out, "waits", s.waits_m);
    st_out_milli(out, "others_busy", s.others_busy_m);
    st_out_milli(out, "others_wait", s.others_waits_m);
    st_out_text(out, "reason",
                s.device ? "its GPU takes longer for the same work: have its node tested"
                         : "its GPU is busy less: its program waits for data, CPUs or the network");
    st_strbuf_addc(out, '}');
}

/* ---- answering ------------------------------------------------------------------------------------ */

static void write_use(const use *u, uint64_t job, st_strbuf *out)
{
    int64_t estimated;

    st_strbuf_addc(out, '{');
    st_out_text(out, "job", u->id);
    st_out_text(out, "state", u->row->state);
    st_out_time(out, "at", u->api->options.clock(u->api->options.ctx));
    st_out_money(out, "cost", u->cost);
    st_out_raw(out, "memory", "{");
    if (u->asked_mib > 0)
        st_out_int(out, "asked_mib", u->asked_mib);
    if (st_rules_estimate(u->api->rules, u->spec, &estimated))
        st_out_int(out, "estimated_mib", estimated);
    if (has(u, ST_USED_MEM_PEAK))
        st_out_int(out, "peak_mib", u->used.v[ST_USED_MEM_PEAK]);
    st_strbuf_addc(out, '}');
    st_out_raw(out, "gpu", "{");
    out_mean(u, "busy", ST_USED_BUSY, 1000, out);
    out_mean(u, "sm", ST_USED_SM, 1000, out);
    out_mean(u, "watts", ST_USED_ENERGY, 1000, out);
    out_mean(u, "memory_mib", ST_USED_MEM, 1000000, out);
    out_mean(u, "celsius", ST_USED_HEAT, 1000000, out);
    st_strbuf_addc(out, '}');
    st_out_raw(out, "sums", "{");
    for (int k = 0; k < ST_USED_COUNT; k++)
        if (has(u, (st_used_kind)k))
            st_out_int(out, st_used_key((st_used_kind)k), u->used.v[k]);
    st_strbuf_addc(out, '}');
    if (text_of(u->spec, "estimate")[0])
        st_out_text(out, "estimate", text_of(u->spec, "estimate"));
    straggler(u, job, out);
    suggestions(u, out);
    st_strbuf_addc(out, '}');
}

static void show(st_call *call, void *ctx)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_api *api = ctx;
    st_job_row row;
    use u = {.api = api, .row = &row};
    uint64_t id;
    st_err err;

    st_api_stamp_now(api, call);
    if (!st_api_find_job(api, call, arena, &id, &row))
        return;
    st_control_id_text(api->control, id, u.id);
    u.spec = json_loads(row.spec, 0, NULL);
    u.result = json_loads(row.result, 0, NULL);
    find_asked(&u);
    find_used(&u, id);
    if (find_cost(&u, &err) < 0) {
        st_call_fail(call, &err);
    } else {
        write_use(&u, id, &out);
        st_call_reply_buf(call, 200, NULL, &out);
    }
    json_decref(u.spec);
    json_decref(u.result);
}

void st_api_job_use(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, show);
}
