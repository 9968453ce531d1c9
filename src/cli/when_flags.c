/*
 * When, from the command line (cli/when_flags.h). The server reads it; here only the form is looked at.
 */
#include "cli/when_flags.h"

#include <string.h>
#include <unistd.h>

#include "base/quote.h"
#include "calendar/tz.h"

/* This machine's zone: TZ, or where /etc/localtime leads; UTC where neither is a name. */
static const char *own_zone(char buf[ST_CLI_ZONE_MAX])
{
    const char *env = getenv("TZ"), *name = NULL;
    char link[256];
    ssize_t n;

    if (env && *env) {
        name = env[0] == ':' ? env + 1 : env;
    } else if ((n = readlink("/etc/localtime", link, sizeof link - 1)) > 0) {
        link[n] = '\0';
        name = strstr(link, "zoneinfo/");
        name = name ? name + strlen("zoneinfo/") : NULL;
    }
    if (!name || !st_tz_name_is_sane(name))
        name = "UTC";
    memcpy(buf, name, strlen(name) + 1);
    return buf;
}

const char *st_when_flags_zone(const st_when_flags *f, char buf[ST_CLI_ZONE_MAX])
{
    return f->zone ? f->zone : own_zone(buf);
}

/* Always text: "2026" is no time, but the server says so. */
static void put_text(st_body *body, const char *key, const char *value)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf json = {0};

    if (!value)
        return;
    st_quote_json(&json, value);
    st_body_raw(body, key, st_strbuf_str(&json));
}

void st_when_flags_ends(const st_when_flags *f, st_body *body)
{
    char zone[ST_CLI_ZONE_MAX];

    put_text(body, "from", f->from);
    put_text(body, "to", f->to);
    if (f->from || f->to)
        put_text(body, "zone", st_when_flags_zone(f, zone));
}

int st_when_flags_put(const st_when_flags *f, const char *verb, st_body *body, st_err *err)
{
    ST_CLEANUP(st_body_done) st_body repeat = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf except = {0};
    char zone[ST_CLI_ZONE_MAX];

    if (!f->from)
        return st_fail(err, ST_EINVAL, "%s: say when it begins: --from \"2026-12-01 09:00\"", verb);
    put_text(body, "from", f->from);
    put_text(body, "to", f->to);
    put_text(body, "for", f->length);
    put_text(body, "zone", st_when_flags_zone(f, zone));
    put_text(&repeat, "every", f->every);
    st_body_put(&repeat, "interval", f->interval);
    put_text(&repeat, "on", f->on);
    put_text(&repeat, "until", f->until);
    st_body_put(&repeat, "count", f->count);
    put_text(&repeat, "gap", f->gap);
    put_text(&repeat, "length", f->wall);
    for (int i = 0; i < f->except.n; i++) {
        st_strbuf_add(&except, i > 0 ? "," : "[");
        st_quote_json(&except, f->except.v[i]);
    }
    if (f->except.n > 0) {
        st_strbuf_addc(&except, ']');
        st_body_raw(&repeat, "except", st_strbuf_str(&except));
    }
    if (st_body_empty(&repeat))
        return 0;
    if (!f->every)
        return st_fail(err, ST_EINVAL, "%s: a series needs --every day, week or month", verb);
    st_body_raw(body, "repeat", st_body_end(&repeat));
    return 0;
}
