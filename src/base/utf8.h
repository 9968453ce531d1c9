/*
 * UTF-8, as far as reading documents needs it.
 */
#ifndef ST_BASE_UTF8_H
#define ST_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the valid UTF-8 at the start of s: n when all of it is valid. Overlong forms,
 * surrogates and values above U+10FFFF are not valid. */
size_t st_utf8_valid(const char *s, size_t n);

/* The character at the start of s and its length; 0: there is none within n bytes. */
size_t st_utf8_get(const char *s, size_t n, uint32_t *ret);

/* Writes code (a valid scalar value) to out and returns its 1 to 4 bytes' count. */
size_t st_utf8_put(char out[4], uint32_t code);

/* Characters that make text look like other text, or like none: controls, what turns the direction of writing,
 * what has no width. */
bool st_utf8_deceives(uint32_t code);
/* Whether there is none of these in it, and all of it is UTF-8. */
bool st_text_honest(const char *s);
/* Each of these, and each byte that is not UTF-8, becomes a "?". In place; blanks between words stay. */
void st_text_tame(char *s);

#endif
