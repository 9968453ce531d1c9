/*
 * Scalars of a JSON job document (rules/values.h).
 */
#include "rules/values.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "base/strbuf.h"
#include "base/suggest.h"

bool st_value_has(const json_t *job, const char *key)
{
    const json_t *v = json_object_get(job, key);

    return v && !json_is_null(v);
}

const char *st_value_text(const json_t *value, char buf[ST_VALUE_TEXT])
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_STRING:
        return json_string_value(value);
    case JSON_INTEGER:
        snprintf(buf, ST_VALUE_TEXT, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return buf;
    case JSON_REAL:
        snprintf(buf, ST_VALUE_TEXT, "%.15g", json_real_value(value));
        return buf;
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return NULL;
    }
}

/* 1: *ret is the text of the key; 0: it is absent; negative: it is no scalar. */
static int scalar(const json_t *job, const char *key, char buf[ST_VALUE_TEXT], const char **ret,
                  st_err *err)
{
    const char *text;

    if (!st_value_has(job, key))
        return 0;
    text = st_value_text(json_object_get(job, key), buf);
    if (!text)
        return st_fail(err, ST_EINVAL, "%s: one value is wanted here, not a list or a map", key);
    *ret = text;
    return 1;
}

int st_value_word(const json_t *job, const char *key, const char *const *words, int *ret,
                  st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf list = {0};
    char buf[ST_VALUE_TEXT], q[ST_QUOTE_MAX];
    const char *text, *near;
    int r = scalar(job, key, buf, &text, err);

    if (r <= 0)
        return r;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0) {
            *ret = i;
            return 0;
        }
        st_strbuf_addf(&list, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    }
    near = st_suggest(text, words);
    return st_fail(err, ST_EINVAL, "%s: %s is none of %s%s%s%s", key, st_quote(q, text),
                   st_strbuf_str(&list), near ? " (did you mean \"" : "", near ? near : "",
                   near ? "\"?)" : "");
}

int st_value_i64(const json_t *job, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                 st_err *err)
{
    char buf[ST_VALUE_TEXT];
    const char *text;
    int r = scalar(job, key, buf, &text, err);

    if (r <= 0)
        return r;
    if (st_parse_i64(text, lo, hi, ret, err) < 0)
        return st_fail_prefix(err, "%s: ", key);
    return 0;
}

int st_value_count(const json_t *job, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                   st_err *err)
{
    char buf[ST_VALUE_TEXT], digits[ST_VALUE_TEXT];
    const char *text;
    int64_t n, unit = 1;
    size_t len;
    int r = scalar(job, key, buf, &text, err);

    if (r <= 0)
        return r;
    len = strlen(text);
    if (len > 1 && len < sizeof digits && strchr("kKmM", text[len - 1])) {
        unit = strchr("kK", text[len - 1]) ? 1024 : 1024 * 1024;
        memcpy(digits, text, len - 1);
        digits[len - 1] = '\0';
        text = digits;
    }
    if (st_parse_i64(text, (lo + unit - 1) / unit, hi / unit, &n, err) < 0)
        return st_fail_prefix(err, "%s: ", key);
    *ret = n * unit;
    return 0;
}

int st_value_milli(const json_t *job, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                   st_err *err)
{
    char buf[ST_VALUE_TEXT];
    const char *text;
    int r = scalar(job, key, buf, &text, err);

    if (r <= 0)
        return r;
    if (st_parse_milli(text, lo, hi, ret, err) < 0)
        return st_fail_prefix(err, "%s: ", key);
    return 0;
}

int st_value_duration_ms(const json_t *job, const char *key, int64_t *ret, st_err *err)
{
    char buf[ST_VALUE_TEXT];
    const char *text;
    int r = scalar(job, key, buf, &text, err);

    if (r <= 0)
        return r;
    if (st_parse_duration_ms(text, ret, err) < 0)
        return st_fail_prefix(err, "%s: ", key);
    return 0;
}

void st_value_set(json_t *job, const char *key, json_t *value)
{
    /* jansson reports out of memory; nothing of ours goes on after that. */
    if (json_object_set_new(job, key, value) != 0)
        abort();
}

void st_value_default(json_t *job, const char *key, json_t *value)
{
    if (st_value_has(job, key))
        json_decref(value);
    else
        st_value_set(job, key, value);
}
