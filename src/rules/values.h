/*
 * Scalars of a JSON job document, read as the rest of the house reads them: 8, "8" and 8.0 are
 * the same number, a complaint begins with the key it is about. A key that is absent or null
 * leaves *ret alone.
 */
#ifndef ST_RULES_VALUES_H
#define ST_RULES_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

static inline void st_json_drop(json_t **p)
{
    json_decref(*p);
    *p = NULL;
}

/* Whether the key is there and not null. */
bool st_value_has(const json_t *job, const char *key);

#define ST_VALUE_TEXT 64

/* A scalar as text: a string itself, a number or a boolean in buf; NULL for lists, maps, null. */
const char *st_value_text(const json_t *value, char buf[ST_VALUE_TEXT]);

int st_value_word(const json_t *job, const char *key, const char *const *words, int *ret,
                  st_err *err);
int st_value_i64(const json_t *job, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                 st_err *err);
/* A number of things: 8192, or 8k and 1m in powers of 1024. */
int st_value_count(const json_t *job, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                   st_err *err);
int st_value_milli(const json_t *job, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                   st_err *err);
int st_value_duration_ms(const json_t *job, const char *key, int64_t *ret, st_err *err);

/* Adds key: value unless the job has one; takes the value over. */
void st_value_default(json_t *job, const char *key, json_t *value);
/* Sets key: value; takes the value over. */
void st_value_set(json_t *job, const char *key, json_t *value);

#endif
