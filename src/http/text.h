/*
 * Text of a request's target and headers: percent-decoding, checks, lists.
 */
#ifndef ST_HTTP_TEXT_H
#define ST_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes %XX in place, and + as a blank if `plus`. False, leaving s in an undefined state, when
 * an escape is broken or when the result has control characters, NUL or bytes that are not UTF-8:
 * such a text names nothing and would only make trouble in logs and messages. */
bool st_text_decode(char *s, bool plus);

/* Whether the media type of a Content-Type or Accept row is `want`; parameters do not count. */
bool st_text_is_type(const char *value, const char *want);

/* Whether a Content-Type is JSON: application/json or something+json. */
bool st_text_is_json(const char *value);

/* Whether an Accept header takes the type; weights do not count, except that q=0 refuses. */
bool st_text_accepts(const char *accept, const char *type);

/* "Bearer TOKEN": the token, or NULL when it is something else. */
const char *st_text_bearer(const char *authorization);

#endif
