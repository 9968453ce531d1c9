/*
 * Who speaks for a node, as the engine keeps it (engine/voices.h), and what is said about a node that says what
 * cannot be.
 */
#include <stdio.h>
#include <string.h>

#include "engine/native_state.h"

#define SILENCE_MS    INT64_C(6000) /* more than an agent is ever silent */
#define FLAG_AGAIN_MS INT64_C(60000)

/* Where leases are short, so is what an agent may be silent. */
static int64_t silence_ms(const native *e)
{
    return ST_MIN(SILENCE_MS, e->opt.lease_ms / 3);
}

static native_node *find(const native *e, const char *name)
{
    int64_t i;

    return st_map_get(e->by_name, name, &i) ? e->nodes.v[i] : NULL;
}

void st_native_bind(native_node *node, const st_engine_node *said)
{
    unsigned char key[ST_KEY_BYTES];
    bool has = said->key && st_key_parse(said->key, key);

    if (has != node->has_key || (has && memcmp(key, node->key, sizeof key) != 0)) {
        node->has_key = has;
        memcpy(node->key, key, has ? sizeof key : 0);
        st_voices_forget(&node->voices);
    }
    if (said->frozen) {
        st_voices_freeze(&node->voices, said->frozen);
    } else if (node->voices.two && node->told_two) {
        st_voices_thaw(&node->voices);
        node->flag_ms[ST_FLAG_VOICES] = 0;
    }
    node->told_two = said->frozen != NULL;
}

bool st_native_shown(const native_node *node, const native_task *task)
{
    return !node->voices.two || task->heard_at > 0;
}

/* What a frozen node has is known once it was heard: before that, a list without it would end it. */
bool st_native_served(const native_node *node, const char *boot)
{
    if (!node->has_key)
        return boot == NULL;
    return boot && st_voices_believes(&node->voices, boot) &&
           (!node->voices.two || node->heard > 0);
}

void st_native_flag(native *e, native_node *node, st_flag flag, const char *reason, int64_t now)
{
    st_report r = {.kind = ST_REPORT_FLAG, .node = node->id, .flag = flag};

    if (node->flag_ms[flag] > 0 && now < node->flag_ms[flag] + FLAG_AGAIN_MS)
        return;
    node->flag_ms[flag] = now;
    snprintf(r.reason, sizeof r.reason, "%s", reason);
    if (flag == ST_FLAG_VOICES)
        snprintf(r.boot, sizeof r.boot, "%s", node->voices.now.boot);
    st_vec_push(&e->reports, r);
}

static void tell_two(native *e, native_node *node, int64_t now)
{
    st_native_flag(e, node, ST_FLAG_VOICES,
                   "two agents speak for it with the same key: somebody has a copy of its folder. "
                   "It gets no new work until an owner has seen to it",
                   now);
}

void st_native_listen(native *e, native_node *node, int64_t now)
{
    if (st_voices_tick(&node->voices, silence_ms(e), now))
        st_vec_push(&e->touched, node->id); /* somebody may wait for a list */
    if (node->voices.two)
        tell_two(e, node, now);
}

/* ---- asked by requests ----------------------------------------------------------------------------- */

bool st_native_key(st_engine *engine, const char *name, unsigned char ret[ST_KEY_BYTES])
{
    native *e = (native *)engine;
    const native_node *node;
    bool has;

    st_native_lock(e);
    node = find(e, name);
    has = node && node->has_key;
    if (has)
        memcpy(ret, node->key, ST_KEY_BYTES);
    st_native_unlock(e);
    return has;
}

void st_native_open(st_engine *engine, const char *name, const char *boot, const char *session)
{
    native *e = (native *)engine;
    int64_t now = e->opt.clock(e->opt.ctx);
    native_node *node;

    st_native_lock(e);
    node = find(e, name);
    if (node) {
        st_voices_open(&node->voices, boot, session, silence_ms(e), now);
        if (node->voices.two)
            tell_two(e, node, now);
    }
    st_native_unlock(e);
}

int st_native_hear(st_engine *engine, const st_proof *proof, bool *ret_waiting, st_err *err)
{
    native *e = (native *)engine;
    st_hearing how = ST_STALE;
    native_node *node;

    st_native_lock(e);
    node = find(e, proof->node);
    if (node)
        how = st_voices_hear(&node->voices, proof->boot, proof->session, proof->n, silence_ms(e),
                             e->opt.clock(e->opt.ctx));
    st_native_unlock(e);
    if (how == ST_REPLAY)
        return st_fail(err, ST_EAUTH, "this message of node %s was heard before", proof->node);
    if (how == ST_STALE)
        return st_fail(err, ST_EAUTH, "the session of node %s is over: it must prove itself again",
                       proof->node);
    *ret_waiting = how == ST_WAITING;
    return 0;
}
