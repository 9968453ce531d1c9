/*
 * Answers in fewer bytes. Private to src/http.
 */
#ifndef ST_HTTP_GZIP_H
#define ST_HTTP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

/* Shorter answers go as they are. */
#define ST_GZIP_MIN 1024

/* Whether an Accept-Encoding names gzip, and not with a weight of 0. */
bool st_gzip_taken(const char *header);
/* From malloc; NULL: it would not be shorter. */
char *st_gzip(const char *text, size_t len, size_t *ret_len);

#endif
