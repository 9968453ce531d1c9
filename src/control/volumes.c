/*
 * Making, changing and removing volumes (state/volumes.h): rows of the store, and what accounts may have of them. The folders
 * are the API's: nothing is done on a file system in the loop.
 *
 * Members make volumes in their own account and change those they made; admins do so in their account and below. One that a
 * job names is not removed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

#define KIND "volume"

static void kept_name(const st_volume *v, st_strbuf *out)
{
    st_strbuf_addf(out, "%s/%s", v->account, v->name);
}

/* The core knows what went before in this transaction, and the directory does not. */
static int may_change(st_tx *tx, const st_cmd_volume *c, const st_volume *there, int64_t *ret_owner,
                      st_err *err)
{
    const st_identity *who = &c->who;
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int32_t id = c->volume.account[0] ? st_tree_find(tree, c->volume.account) : -1;

    if (id <= ST_ROOT || !st_tx_within(tx, c->volume.account, who->account))
        return st_no_account(c->volume.account, err);
    *ret_owner = st_tree_account(tree, id)->serial;
    if (who->role != ST_ROLE_MEMBER)
        return 0;
    if (strcmp(c->volume.account, who->account) != 0)
        return st_fail(err, ST_EPERM, "you keep volumes in account %s, not in %s; ask an admin",
                       who->account, c->volume.account);
    if (there &&
        (strcmp(there->by, who->user) != 0 || strcmp(there->by_account, who->account) != 0))
        return st_fail(err, ST_EPERM, "volume %s was made by somebody else: ask an admin of %s",
                       c->volume.name, c->volume.account);
    return 0;
}

/* Who has it, or is to have it, keeps it. */
static int check_unused(st_tx *tx, const st_volume *v, st_err *err)
{
    st_control *ctl = tx->ctl;
    char text[ST_ID_TEXT];
    int64_t n = 0;

    for (size_t i = 0; i < ctl->all.n; i++) {
        const st_live *live = ctl->all.v[i];

        if (!st_core_job(ctl->core, live->id) ||
            !st_volumes_has(ctl->volumes, live->account, st_live_doc(ctl, live), v->id))
            continue;
        if (n++ == 0)
            st_control_id_text(ctl, live->id, text);
    }
    if (n == 0)
        return 0;
    if (n == 1)
        return st_fail(err, ST_ESTATE,
                       "job %s has volume %s: cancel it, or wait until it has ended", text,
                       v->name);
    return st_fail(err, ST_ESTATE,
                   "%" PRId64
                   " jobs have volume %s, %s is one: cancel them, or wait until they have "
                   "ended",
                   n, v->name, text);
}

static int read_there(st_tx *tx, const char *kept, st_arena *arena, st_volume *ret, bool *ret_there,
                      st_err *err)
{
    st_document_row row;
    int r = st_store_document_get(tx->ctl->store, KIND, kept, arena, &row, err);

    *ret_there = r == 0;
    if (r == -ST_ENOENT)
        return 0;
    if (r == 0)
        r = st_volume_read(row.name, row.doc, row.version, ret, err);
    return st_tx_fault(tx, r, err);
}

/* Takes what it will have more, or gives back what it had. */
static int charge(st_tx *tx, const st_cmd_volume *c, const st_volume *before,
                  const st_volume *after, st_err *err)
{
    st_allowance *al = tx->ctl->allowance;
    const char *account = c->volume.account, *reader = c->who.account;
    int64_t more =
        ((after ? after->size_mib : 0) - (before ? before->size_mib : 0)) * (INT64_C(1) << 20);
    int r = 0;

    if (after && !before)
        r = st_allowance_charge(al, account, ST_AL_VOLUMES, 1, reader, err);
    if (r == 0 && more > 0) {
        r = st_allowance_charge(al, account, ST_AL_VOLUME_BYTES, more, reader, err);
        if (r < 0 && !before)
            st_allowance_release(al, account, ST_AL_VOLUMES, 1);
    }
    if (r == 0 && more < 0)
        st_allowance_release(al, account, ST_AL_VOLUME_BYTES, -more);
    if (r == 0 && !after)
        st_allowance_release(al, account, ST_AL_VOLUMES, 1);
    return r;
}

static void change(const st_cmd_volume *c, st_volume *v)
{
    if (c->volume.size_mib > 0)
        v->size_mib = c->volume.size_mib;
    if (c->below)
        v->below = c->volume.below;
    if (c->about)
        memcpy(v->about, c->volume.about, sizeof v->about);
}

static int write_row(st_tx *tx, const st_volume *v, const char *kept, int64_t before, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};

    st_volume_write(v, &doc);
    const st_document_row row = {.kind = KIND,
                                 .name = kept,
                                 .version = before,
                                 .at_ms = tx->now,
                                 .doc = st_strbuf_str(&doc)};
    return st_tx_fault(tx, st_store_document_put(tx->ctl->store, &row, err), err);
}

static int run_volume(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_volume *c = (st_cmd_volume *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0};
    st_volume there = {0}, next;
    char detail[80], q[ST_QUOTE_MAX];
    int64_t owner = -1;
    bool found = false;
    int r = st_tx_open(tx, err);

    kept_name(&c->volume, &kept);
    if (r == 0)
        r = read_there(tx, st_strbuf_str(&kept), arena, &there, &found, err);
    if (r == 0)
        r = may_change(tx, c, found ? &there : NULL, &owner, err);
    if (r < 0)
        return r;
    if (!found && (c->remove || !c->volume.id[0]))
        return st_fail(err, ST_ENOENT, "account %s has no volume %s", c->volume.account,
                       st_quote(q, c->volume.name));
    if (found && c->make)
        return st_fail(err, ST_EEXIST, "account %s has a volume %s already", c->volume.account,
                       c->volume.name);
    if (c->remove) {
        r = check_unused(tx, &there, err);
        if (r == 0) {
            r = st_store_document_delete(tx->ctl->store, KIND, st_strbuf_str(&kept), there.version,
                                         err);
            st_tx_fault(tx, r, err);
        }
        if (r == 0)
            r = charge(tx, c, &there, NULL, err);
        c->volume = there;
        return r < 0 ? r
                     : st_tx_audit(tx, &c->who, "volume.remove", there.account, there.name, NULL,
                                   err);
    }
    next = found ? there : c->volume;
    next.owner = owner;
    if (found) {
        change(c, &next);
    } else {
        next.made_ms = tx->now;
        memcpy(next.by, c->who.user, sizeof next.by);
        memcpy(next.by_account, c->who.account, sizeof next.by_account);
    }
    r = charge(tx, c, found ? &there : NULL, &next, err);
    if (r == 0)
        r = write_row(tx, &next, st_strbuf_str(&kept), there.version, err);
    if (r < 0)
        return r;
    next.version = there.version + 1;
    c->volume = next;
    snprintf(detail, sizeof detail, "{\"size_mib\":%" PRId64 ",\"below\":\"%s\"}", next.size_mib,
             st_volume_below_words[next.below]);
    return st_tx_audit(tx, &c->who, "volume.put", next.account, next.name, detail, err);
}

static void publish_volume(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_volume *c = (const st_cmd_volume *)cmd;

    if (c->remove)
        st_volumes_remove(ctl->volumes, c->volume.account, c->volume.name);
    else
        st_volumes_put(ctl->volumes, &c->volume);
}

void st_cmd_volume_init(st_cmd_volume *cmd)
{
    cmd->cmd.run = run_volume;
    cmd->cmd.publish = publish_volume;
}
