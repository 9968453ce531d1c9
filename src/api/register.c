/*
 * How machines become nodes (doc/dev/agent-protocol.md): join tokens, made by owners, and what an agent
 * says of its machine when it registers.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "spec/fields.h"

#define INTERVAL_MS   5000 /* between two statuses of an agent; with a short lease a third of it */
#define DOC_MAX       16384
#define JOIN_USES     1
#define JOIN_MS       INT64_C(86400000)
#define SESSION_BYTES 16

/* ---- join tokens -------------------------------------------------------------------------------- */

typedef struct join_change {
    st_cmd_join join;
    st_api *api;
    st_call *call;
    st_doc *doc;
} join_change;

static void join_free(join_change *c)
{
    explicit_bzero(c->join.token.text, sizeof c->join.token.text);
    st_doc_free(c->doc);
    free(c->join.first);
    free(c);
}

static void join_done(st_cmd *cmd, const st_err *err)
{
    join_change *c = (join_change *)cmd;
    st_strbuf out = {0};
    char id[ST_ID_TEXT];

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_control_name(c->api->control, 't', (uint64_t)c->join.token.id, id);
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "id", id);
        st_out_text(&out, "token", c->join.token.text);
        st_out_text(&out, "pool", c->join.pool ? c->join.pool : "");
        st_out_int(&out, "uses", c->join.uses);
        st_out_raw(&out, "new_types", c->join.new_types ? "true" : "false");
        st_out_time(&out, "expires", c->join.token.expires_ms);
        st_strbuf_addc(&out, '}');
        st_call_set_header(c->call, "Cache-Control", "no-store");
        st_call_reply_buf(c->call, 201, NULL, &out);
    }
    st_strbuf_done(&out);
    join_free(c);
}

typedef struct join_fields {
    const char *pool, *label;
    int64_t uses, expires_ms;
    bool new_types;
} join_fields;

static int read_join(join_change *c, st_err *err)
{
    static const st_field rows[] = {
        {.key = "pool", .kind = ST_F_NAME, .offset = offsetof(join_fields, pool)},
        {.key = "label", .kind = ST_F_LINE, .offset = offsetof(join_fields, label)},
        {.key = "uses",
         .kind = ST_F_I64,
         .offset = offsetof(join_fields, uses),
         .lo = 1,
         .hi = ST_NODES_MAX},
        {.key = "expires_in", .kind = ST_F_DURATION, .offset = offsetof(join_fields, expires_ms)},
        {.key = "new_types", .kind = ST_F_BOOL, .offset = offsetof(join_fields, new_types)},
        {0},
    };
    join_fields f = {.label = "", .uses = JOIN_USES, .expires_ms = JOIN_MS};
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(c->doc, st_doc_root(c->doc), rows, &f, err);
    if (r < 0)
        return r;
    c->join.pool = f.pool;
    c->join.uses = f.uses;
    c->join.new_types = f.new_types;
    c->join.token.label = f.label;
    c->join.token.expires_ms = c->api->options.clock(c->api->options.ctx) + f.expires_ms;
    return 0;
}

void st_api_join_make(st_call *call, void *ctx)
{
    st_api *api = ctx;
    join_change *c;
    st_err err = {0};

    if (!st_api_need_native(api, call))
        return;
    c = st_xcalloc(1, sizeof *c);
    c->api = api;
    c->call = call;
    c->join.token.who = *st_api_who(call);
    if (read_join(c, &err) < 0) {
        st_call_fail(call, &err);
        join_free(c);
        return;
    }
    st_cmd_join_init(&c->join);
    c->join.token.cmd.done = join_done;
    st_call_defer(call);
    st_api_post(api, call, &c->join.token.cmd);
}

/* ---- registering --------------------------------------------------------------------------------- */

typedef struct registration {
    st_cmd_register reg;
    st_api *api;
    st_call *call;
    st_doc *doc;
    st_strbuf said;
    char key[ST_KEY_TEXT];
    char boot[ST_BOOT_TEXT]; /* with a key: who speaks */
} registration;

static void registration_free(registration *c)
{
    st_doc_free(c->doc);
    st_strbuf_done(&c->said);
    free(c);
}

/* What its messages are signed for from now on. */
static void open_session(const registration *c, st_strbuf *out)
{
    unsigned char bytes[SESSION_BYTES];
    char session[2 * SESSION_BYTES + 1];

    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2hex(session, sizeof session, bytes, sizeof bytes);
    st_native_open(c->api->options.native, c->reg.node.name, c->boot, session);
    st_out_text(out, "session", session);
}

static void registered(st_cmd *cmd, const st_err *err)
{
    registration *c = (registration *)cmd;
    st_agent_answer terms;
    st_strbuf out = {0};
    st_err refused;

    if (!err && c->reg.refusal[0]) {
        st_fail(&refused, ST_ESTATE, "%s", c->reg.refusal);
        err = &refused;
    }
    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_native_terms(c->api->options.native, &terms);
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "node", c->reg.node.name);
        st_out_text(&out, "pool", c->reg.pool);
        if (c->key[0])
            open_session(c, &out);
        st_api_agent_terms(&terms, &out);
        st_out_int(&out, "interval_ms", ST_MIN(INTERVAL_MS, terms.lease_ms / 3));
        st_out_int(&out, "wait_ms", ST_AGENT_WAIT_S * 1000);
        st_out_int(&out, "log_chunk_bytes", (int64_t)ST_LOG_CHUNK_MAX);
        st_strbuf_addc(&out, '}');
        st_call_set_header(c->call, "Cache-Control", "no-store");
        st_call_reply_buf(c->call, c->reg.created ? 201 : 200, NULL, &out);
    }
    st_strbuf_done(&out);
    registration_free(c);
}

/* What is kept of what it said, besides what becomes the core's node. */
static int keep_said(registration *c, const st_machine_doc *f, st_err *err)
{
    const st_peer *peer = st_call_peer(c->call);
    const char *address = f->address ? f->address : peer->is_unix ? f->name : peer->address;
    st_strbuf *out = &c->said;

    st_strbuf_addc(out, '{');
    st_out_text(out, "address", address);
    st_out_text(out, "version", f->version ? f->version : "");
    if (f->driver)
        st_out_text(out, "driver", f->driver);
    if (f->labels) {
        st_out_raw(out, "labels", "");
        st_spec_json(f->labels, out);
    }
    st_out_raw(out, "gpu", "{");
    if (f->uuids) {
        st_out_raw(out, "uuids", "");
        st_spec_json(f->uuids, out);
    }
    st_strbuf_add(out, "}}");
    if (out->n > DOC_MAX)
        return st_fail(err, ST_ELIMIT, "a node may say %d bytes about itself, this one says %zu",
                       DOC_MAX, out->n);
    return 0;
}

/* With a key comes a proof that it is the sender's, over a challenge that was not used before. */
static int check_key(registration *c, const st_machine_doc *f, st_err *err)
{
    const st_caller *caller = st_api_caller(c->call);
    const char *text = st_call_header(c->call, "Stint-Proof");
    unsigned char key[ST_KEY_BYTES];
    st_proof proof;

    if (!f->key)
        return caller->signed_by ? st_fail(err, ST_EINVAL, "key \"key\" is missing") : 0;
    if (!st_key_parse(f->key, key))
        return st_fail(err, ST_EINVAL, "key has %d hexadecimal digits", 2 * ST_KEY_BYTES);
    if (caller->signed_by && caller->proof.n > 0)
        return st_fail(err, ST_EAUTH, "a registration is signed over a challenge");
    if (caller->signed_by) {
        proof = caller->proof;
    } else if (!text || !st_proof_parse(text, &proof) || !st_proof_good(text, key) ||
               proof.n != 0 || strcmp(proof.node, f->name) != 0 ||
               !st_api_digest_is(c->call, &proof) ||
               !st_challenges_take(c->api->challenges, proof.session,
                                   c->api->options.clock(c->api->options.ctx))) {
        return st_fail(err, ST_EAUTH,
                       "the key was not proved: the header Stint-Proof signs this request over a "
                       "fresh challenge");
    }
    snprintf(c->key, sizeof c->key, "%s", f->key);
    snprintf(c->boot, sizeof c->boot, "%s", proof.boot);
    c->reg.key = c->key;
    return 0;
}

static int read_registration(registration *c, st_err *err)
{
    st_machine_doc f;
    const st_type_doc *known;
    st_cmd_register *reg = &c->reg;
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_spec_machine(c->doc, st_doc_root(c->doc), &f, err);
    if (r == 0)
        r = keep_said(c, &f, err);
    if (r == 0)
        r = check_key(c, &f, err);
    if (r < 0)
        return r;
    known = f.type ? st_spec_known_type(f.type) : NULL;
    reg->machine = f.machine;
    reg->doc = st_strbuf_str(&c->said);
    reg->type = f.count > 0 ? f.type : NULL;
    reg->vram_mib = known ? known->vram_mib : f.vram_mib;
    reg->board = known ? known->board : (st_board)f.board;
    reg->node = (st_node_spec){.name = f.name,
                               .ndevs = f.count,
                               .nvlink_size = f.nvlink,
                               .nvlink_domain = f.nvlink_domain,
                               .cpu_m = f.cpu_m,
                               .ram_mib = f.ram_mib,
                               .zone = f.zone,
                               .block = f.block,
                               .rack = f.rack};
    return 0;
}

void st_api_agent_register(st_call *call, void *ctx)
{
    st_api *api = ctx;
    registration *c;
    st_err err = {0};

    if (!st_api_need_native(api, call) || !st_api_proved(api, call))
        return;
    c = st_xcalloc(1, sizeof *c);
    c->api = api;
    c->call = call;
    c->reg.who = *st_api_who(call);
    if (read_registration(c, &err) < 0) {
        st_call_fail(call, &err);
        registration_free(c);
        return;
    }
    st_cmd_register_init(&c->reg);
    c->reg.cmd.done = registered;
    st_call_defer(call);
    st_api_post(api, call, &c->reg.cmd);
}
