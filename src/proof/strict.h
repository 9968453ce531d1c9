/* Reading what we wrote ourselves, and nothing else: literal text, whole numbers as %lld writes them,
 * strings as st_quote_json writes them, lower-case hex. The first thing that does not fit makes the whole
 * reading bad and leaves the place where it was, so that callers look once, at the end. */
#ifndef ST_PROOF_STRICT_H
#define ST_PROOF_STRICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

typedef struct st_strict {
    const char *at, *end;
    bool bad;
} st_strict;

bool st_strict_is(st_strict *s, const char *text); /* takes it if it is there; never bad */
void st_strict_text(st_strict *s, const char *text);
int64_t st_strict_i64(st_strict *s);
int64_t st_strict_count(st_strict *s); /* not negative */
bool st_strict_bool(st_strict *s);
/* Room for `cap` bytes with the final NUL; a text with a NUL in it is bad. */
void st_strict_str(st_strict *s, char *ret, size_t cap);
void st_strict_hex(st_strict *s, unsigned char *ret, size_t n);
bool st_strict_done(const st_strict *s); /* all of it fitted, and nothing is left */

void st_hex_write(const unsigned char *bytes, size_t n, st_strbuf *out);

#endif
