/*
 * Snapshots (log/log.h): MAGIC, the lengths of the parts, the parts, and a hash of all that. One from before there
 * was money is a saved core and nothing else.
 */
#include <sodium.h>
#include <string.h>

#include "log/log.h"

#define MAGIC     "stintsn2"
#define MAGIC_LEN 8
#define HEAD_LEN  (MAGIC_LEN + ST_SNAP_PARTS * sizeof(int64_t))
#define HASH_LEN  32

void st_snapshot_begin(st_strbuf *out)
{
    const int64_t len[ST_SNAP_PARTS] = {0};

    st_strbuf_addn(out, MAGIC, MAGIC_LEN);
    st_strbuf_addn(out, (const char *)len, sizeof len);
}

void st_snapshot_end(st_strbuf *out, const int64_t len[ST_SNAP_PARTS])
{
    unsigned char hash[HASH_LEN];

    memcpy(out->s + MAGIC_LEN, len, ST_SNAP_PARTS * sizeof *len);
    crypto_generichash(hash, sizeof hash, (const unsigned char *)out->s, out->n, NULL, 0);
    st_strbuf_addn(out, (const char *)hash, sizeof hash);
}

int st_snapshot_open(const char *data, size_t len, st_snapshot *ret, st_err *err)
{
    st_snapshot s = {.money = true};
    unsigned char hash[HASH_LEN];
    int64_t part[ST_SNAP_PARTS];
    size_t sum = HEAD_LEN + HASH_LEN;

    if (len < MAGIC_LEN || memcmp(data, MAGIC, MAGIC_LEN) != 0) {
        *ret = (st_snapshot){.data = {data}, .len = {len}};
        return 0;
    }
    if (len < sum)
        return st_fail(err, ST_ECORRUPT, "the snapshot is cut short; restore a backup");
    memcpy(part, data + MAGIC_LEN, sizeof part);
    for (int i = 0; i < ST_SNAP_PARTS; i++) {
        if (part[i] < 0 || (size_t)part[i] > len - sum)
            return st_fail(err, ST_ECORRUPT, "the snapshot's parts do not fit; restore a backup");
        s.data[i] = data + (sum - HASH_LEN);
        s.len[i] = (size_t)part[i];
        sum += s.len[i];
    }
    crypto_generichash(hash, sizeof hash, (const unsigned char *)data, len - HASH_LEN, NULL, 0);
    if (sum != len || memcmp(hash, data + len - HASH_LEN, HASH_LEN) != 0)
        return st_fail(err, ST_ECORRUPT, "the snapshot is damaged; restore a backup");
    *ret = s;
    return 0;
}
