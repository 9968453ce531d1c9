/*
 * UTF-8, as far as reading documents needs it.
 */
#ifndef ST_BASE_UTF8_H
#define ST_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the valid UTF-8 at the start of s: n when all of it is valid. Overlong forms,
 * surrogates and values above U+10FFFF are not valid. */
size_t st_utf8_valid(const char *s, size_t n);

/* Writes code (a valid scalar value) to out and returns its 1 to 4 bytes' count. */
size_t st_utf8_put(char out[4], uint32_t code);

#endif
