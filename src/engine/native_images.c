/*
 * Images that nodes are to have ready (st_engine_ops.images): on their lists, and what agents say of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "engine/native_state.h"

#define AGAIN_MS INT64_C(60000) /* until what was told is told again */

void st_native_images(st_engine *engine, int32_t id, const char *list)
{
    native *e = (native *)engine;
    native_node *node;
    const char *want = strcmp(list, "[]") == 0 ? "" : list;

    st_native_lock(e);
    node = st_native_node_of(e, id);
    if (node && strcmp(node->images ? node->images : "", want) != 0) {
        free(node->images);
        node->images = want[0] ? st_xstrdup(want) : NULL;
        st_vec_clear(&node->image_said);
        st_native_touch(e, node);
    }
    st_native_unlock(e);
}

/* Whether it is on the node's list: nothing else is anybody's business. */
static bool is_wanted(const native_node *node, const char *key)
{
    const char *at = node->images ? strstr(node->images, key) : NULL;

    return at && at[-1] == '"' && at[strlen(key)] == '"';
}

void st_native_take_images(native *e, native_node *node, const st_agent_status *status, int64_t now)
{
    if (now >= node->image_ms) {
        st_vec_clear(&node->image_said);
        node->image_ms = now + AGAIN_MS;
    }
    for (size_t i = 0; i < status->nimages; i++) {
        const st_agent_image *said = &status->images[i];
        st_report r = {
            .kind = ST_REPORT_IMAGE, .node = node->id, .done = said->ready, .doc = said->key};
        uint64_t hash = st_hash_u64(st_hash_str(1, said->key), said->ready);
        bool known = false;

        if (said->reason)
            st_said_text(said->reason, r.reason, sizeof r.reason);
        hash = st_hash_str(hash, r.reason);
        for (size_t k = 0; k < node->image_said.n; k++)
            known |= node->image_said.v[k] == hash;
        if (known || !said->key[0] || !is_wanted(node, said->key))
            continue;
        st_vec_push(&node->image_said, hash);
        st_vec_push(&e->reports, r);
    }
}
