/* Decayed usage of users: GPU time that counts half as much after every half-life.
 *
 * Integers throughout, so that two machines agree: decay goes by sixteenths of a half-life,
 * each a factor of 2^(-1/16) held as a 32-bit fraction. */
#include "base/macros.h"
#include "share/share.h"

/* 2^(-1/16) x 2^32: what is left after one step. */
#define STEP_LEFT INT64_C(4112874773)
/* After this many steps nothing that fits an int64_t is left. */
#define STEPS_MAX (62 * ST_USAGE_STEPS)

static int64_t add(int64_t used, int64_t rate_m, int64_t ms)
{
    st_i128 sum = used + (st_i128)rate_m * ms;
    return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

/* Decay happens at the steps' boundaries only, so it does not matter how often or when the
 * usage is noted in between. */
static int64_t advance(const st_usage *u, int64_t now, int64_t half_life_ms)
{
    if (now <= u->at_ms)
        return u->used;
    int64_t step = ST_MAX(half_life_ms / ST_USAGE_STEPS, 1);
    int64_t used = u->used, from = u->at_ms, n = now / step - from / step;
    if (n > STEPS_MAX) {
        used = 0;
        from = (now / step - STEPS_MAX) * step;
        n = STEPS_MAX;
    }
    for (; n > 0; n--) {
        int64_t boundary = (from / step + 1) * step;
        used = add(used, u->rate_m, boundary - from);
        used = (int64_t)((st_i128)used * STEP_LEFT >> 32);
        from = boundary;
    }
    return add(used, u->rate_m, now - from);
}

int64_t st_usage_epoch(int64_t now, int64_t half_life_ms)
{
    int64_t step = ST_MAX(half_life_ms / ST_USAGE_STEPS, 1);
    return now - now % step;
}

int64_t st_usage_read(const st_tree *tree, int32_t account, int32_t user, int64_t now,
                      int64_t half_life_ms)
{
    int64_t slot;
    if (!st_idmap_get(tree->usage_slots, st_user_key(account, user), &slot))
        return 0;
    return advance(&tree->usage.v[slot], st_usage_epoch(now, half_life_ms), half_life_ms);
}

void st_usage_note(st_tree *tree, int32_t account, int32_t user, int64_t now, int64_t half_life_ms,
                   int64_t delta_m)
{
    int64_t slot;
    if (!st_idmap_get(tree->usage_slots, st_user_key(account, user), &slot)) {
        slot = (int64_t)tree->usage.n;
        st_vec_push(&tree->usage, (st_usage){.account = account, .user = user, .at_ms = now});
        st_idmap_put(tree->usage_slots, st_user_key(account, user), slot);
    }
    st_usage *u = &tree->usage.v[slot];
    st_tree_account(tree, account)->noted++;
    u->used = advance(u, now, half_life_ms);
    u->at_ms = ST_MAX(now, u->at_ms);
    u->rate_m += delta_m;
    ST_ASSERT(u->rate_m >= 0);
}
