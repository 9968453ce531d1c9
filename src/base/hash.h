/*
 * 64-bit hashes for tables and state digests. The same bytes give the same
 * value on every machine, whatever its byte order, so digests may be written
 * to files and compared. Not for secrets: an attacker can find collisions.
 */
#ifndef ST_BASE_HASH_H
#define ST_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t st_hash_bytes(const void *data, size_t len, uint64_t seed);

/* Fold one more word, or one more string with its length, into a running hash h. */
uint64_t st_hash_u64(uint64_t h, uint64_t v);
uint64_t st_hash_str(uint64_t h, const char *s);

#endif
