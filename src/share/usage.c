/* Decayed usage of users: GPU time that counts half as much after every half-life.
 *
 * Integers throughout, so that two machines agree: decay goes by sixteenths of a half-life,
 * each a factor of 2^(-1/16) held as a 32-bit fraction. */
#include "base/macros.h"
#include "share/order.h"

/* 2^(-i/16) x 2^32 */
static const uint64_t factor[ST_USAGE_STEPS] = {
    4294967296, 4112874773, 3938502376, 3771522796, 3611622603, 3458501653, 3311872529, 3171459999,
    3037000500, 2908241642, 2784941738, 2666869345, 2553802834, 2445529972, 2341847524, 2242560872,
};

static int64_t decay(int64_t used, int64_t steps)
{
    if (steps / ST_USAGE_STEPS >= 62)
        return 0;
    used >>= steps / ST_USAGE_STEPS;
    return (int64_t)((st_i128)used * (int64_t)factor[steps % ST_USAGE_STEPS] >> 32);
}

static int64_t advance(const st_usage *u, int64_t now, int64_t half_life_ms)
{
    if (now <= u->at_ms)
        return u->used;
    int64_t step = ST_MAX(half_life_ms / ST_USAGE_STEPS, 1);
    int64_t used = decay(u->used, now / step - u->at_ms / step);
    st_i128 more = (st_i128)u->rate_m * (now - u->at_ms);
    return more > INT64_MAX - used ? INT64_MAX : used + (int64_t)more;
}

static uint64_t key(int32_t account, int32_t user)
{
    return (uint64_t)(uint32_t)account << 32 | (uint32_t)user;
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
    if (!st_idmap_get(tree->usage_slots, key(account, user), &slot))
        return 0;
    return advance(&tree->usage.v[slot], st_usage_epoch(now, half_life_ms), half_life_ms);
}

void st_usage_note(st_tree *tree, int32_t account, int32_t user, int64_t now, int64_t half_life_ms,
                   int64_t delta_m)
{
    int64_t slot;
    if (!st_idmap_get(tree->usage_slots, key(account, user), &slot)) {
        slot = (int64_t)tree->usage.n;
        st_vec_push(&tree->usage, (st_usage){.account = account, .user = user, .at_ms = now});
        st_idmap_put(tree->usage_slots, key(account, user), slot);
    }
    st_usage *u = &tree->usage.v[slot];
    u->used = advance(u, now, half_life_ms);
    u->at_ms = ST_MAX(now, u->at_ms);
    u->rate_m += delta_m;
    ST_ASSERT(u->rate_m >= 0);
}
