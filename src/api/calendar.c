/*
 * When windows and series are. Zones are expanded here; the core sees instants.
 */
#include "api/state.h"
#include "calendar/calendar.h"
#include "spec/windows.h"
#include "zones/zones.h"

typedef struct windows_doc {
    st_window_fields when;
} windows_doc;

static const st_field windows_rows[] = {ST_WINDOW_ROWS(windows_doc, when), {0}};

static void windows_json(const st_api *api, const st_tz *tz, const st_occurrences *windows,
                         st_strbuf *out)
{
    char version[ST_ZONES_VERSION_MAX], at[ST_WHEN_MAX];

    st_zones_version(api->zones, version);
    st_strbuf_addc(out, '{');
    st_out_text(out, "zone", st_tz_name(tz));
    st_out_text(out, "tzdata", version);
    st_strbuf_add(out, ",\"windows\":[");
    for (size_t i = 0; i < windows->n; i++) {
        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "from", st_when_rfc3339(at, tz, windows->v[i].from_ms));
        st_out_text(out, "to", st_when_rfc3339(at, tz, windows->v[i].to_ms));
        st_out_raw(out, "shifted", windows->v[i].shifted ? "true" : "false");
        st_strbuf_addc(out, '}');
    }
    st_strbuf_add(out, "]}");
}

void st_api_calendar_windows(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    windows_doc d = {.when = ST_WINDOW_FIELDS_INIT};
    st_occurrences windows = {0};
    const st_tz *tz = NULL;
    st_err err = {0};
    int r = st_call_doc(call, &doc, &err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, &err);
    if (r == 0)
        r = st_fields_read(doc, st_doc_root(doc), windows_rows, &d, &err);
    if (r == 0)
        r = st_zones_get(api->zones, d.when.zone, &tz, &err);
    if (r == 0)
        r = st_spec_windows(doc, &d.when, tz, api->options.clock(api->options.ctx), &windows, &err);
    if (r < 0) {
        st_call_fail(call, &err);
    } else {
        windows_json(api, tz, &windows, &out);
        st_call_reply_buf(call, 200, NULL, &out);
    }
    st_vec_free(&windows);
}
