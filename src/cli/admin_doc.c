/*
 * Documents from flags (cli/admin_doc.h).
 */
#include "cli/admin_doc.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "cli/view.h"

#define NEAR_MAX 1000 /* things looked through for one that might be meant */

void st_body_done(st_body *b)
{
    st_strbuf_done(&b->text);
}

static void add_value(st_strbuf *out, const char *value)
{
    int64_t n;
    char buf[ST_FMT_MAX];

    /* Only what is written as we write numbers is one: the name 007 stays as it is. */
    if (st_parse_milli(value, -INT64_C(1000000000000), INT64_C(1000000000000), &n, NULL) == 0 &&
        strcmp(st_fmt_milli(buf, n), value) == 0)
        st_strbuf_add(out, buf);
    else
        st_quote_json(out, value);
}

static void add_key(st_body *b, const char *key)
{
    st_strbuf_add(&b->text, b->text.n ? "," : "{");
    st_quote_json(&b->text, key);
    st_strbuf_addc(&b->text, ':');
}

void st_body_put(st_body *b, const char *key, const char *value)
{
    if (!value)
        return;
    add_key(b, key);
    add_value(&b->text, value);
}

void st_body_raw(st_body *b, const char *key, const char *json)
{
    add_key(b, key);
    st_strbuf_add(&b->text, json);
}

int st_body_pairs(st_body *b, const char *option, const char *key, const char *pairs, st_err *err)
{
    ST_CLEANUP(st_freep) char *copy = pairs ? st_xstrdup(pairs) : NULL;
    const char *sep = "{";
    char *save = NULL, q[ST_QUOTE_MAX];

    if (!pairs)
        return 0;
    add_key(b, key);
    if (strcmp(pairs, "none") == 0) {
        st_quote_json(&b->text, pairs);
        return 0;
    }
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *value = strchr(word, '=');

        if (!value || value == word || !value[1])
            return st_fail(err, ST_EINVAL, "option --%s is NAME=AMOUNT,NAME=AMOUNT..., not %s",
                           option, st_quote(q, word));
        *value++ = '\0';
        st_strbuf_add(&b->text, sep);
        st_quote_json(&b->text, word);
        st_strbuf_addc(&b->text, ':');
        add_value(&b->text, value);
        sep = ",";
    }
    st_strbuf_add(&b->text, *sep == '{' ? "{}" : "}");
    return 0;
}

void st_body_list(st_body *b, const char *key, const char *words)
{
    ST_CLEANUP(st_freep) char *copy = words ? st_xstrdup(words) : NULL;
    const char *sep = "[";
    char *save = NULL;

    if (!words)
        return;
    add_key(b, key);
    for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        st_strbuf_add(&b->text, sep);
        st_quote_json(&b->text, word);
        sep = ",";
    }
    st_strbuf_add(&b->text, *sep == '[' ? "[]" : "]");
}

const char *st_body_end(st_body *b)
{
    st_strbuf_add(&b->text, b->text.n ? "}" : "{}");
    return st_strbuf_str(&b->text);
}

bool st_body_empty(const st_body *b)
{
    return b->text.n == 0;
}

/* What was done and may not be what was meant. */
static void warn(st_cli *cli, const st_response *response)
{
    json_t *doc = json_loadb(st_strbuf_str(&response->body), response->body.n, 0, NULL);
    const char *warning = json_string_value(json_object_get(doc, "warning"));

    if (warning)
        fprintf(cli->errors, "stint: warning: %s\n", warning);
    json_decref(doc);
}

int st_admin_send(st_cli *cli, st_client *client, const st_request *request, st_cli_format format,
                  const char *said, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    int r = st_client_call(client, request, &response, err);

    if (r < 0)
        return r;
    warn(cli, &response);
    if (format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        fprintf(cli->out, "%s\n", said);
    return 0;
}

void st_admin_path(st_strbuf *out, const char *folder, const char *name)
{
    st_strbuf_addf(out, "/v1/%s/", folder);
    st_url_add(out, name);
}

int st_admin_near(st_client *client, const char *folder, const char *name, int r, st_err *err)
{
    const char *names[NEAR_MAX + 1] = {NULL}, *nearest;
    char path[64], said[sizeof err->msg];
    json_t *doc, *one;
    st_err quiet;
    size_t i;

    snprintf(path, sizeof path, "/v1/%s", folder);
    if (r != -ST_ENOENT || st_client_get(client, path, &doc, &quiet) < 0)
        return r;
    json_array_foreach(json_object_get(doc, folder), i, one)
    {
        if (i == NEAR_MAX)
            break;
        names[i] = st_view_text(one, st_view_at(one, "name") ? "name" : "id");
    }
    nearest = st_suggest(name, names);
    if (nearest && strcmp(nearest, name) != 0) {
        snprintf(said, sizeof said, "%s", err->msg);
        st_fail(err, ST_ENOENT, "%s (did you mean %s?)", said, nearest);
    }
    json_decref(doc);
    return r;
}

int st_admin_tag(st_client *client, const char *path, char ret[80], st_err *err)
{
    st_response response = {0};
    int r = st_client_call(client, &(st_request){.path = path}, &response, err);

    if (r == 0)
        memcpy(ret, response.etag, sizeof response.etag);
    st_response_done(&response);
    return r;
}
