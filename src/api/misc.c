/*
 * What belongs to no noun: health, the OpenAPI document, who one is.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"

void st_api_healthz(st_call *call, void *ctx)
{
    (void)ctx;
    st_call_reply_static(call, 200, "text/plain", "ok\n", 3);
}

void st_api_readyz(st_call *call, void *ctx)
{
    st_api *api = ctx;
    st_err why = {0};

    if (st_control_ready(api->control, &why)) {
        st_call_reply_static(call, 200, "text/plain", "ready\n", 6);
        return;
    }
    why.code = ST_EDOWN;
    st_call_fail(call, &why);
}

void st_api_openapi_doc(st_call *call, void *ctx)
{
    st_strbuf out = {0};
    st_err err = {0};

    (void)ctx;
    if (st_api_openapi(&out, &err) < 0)
        st_call_fail(call, &err);
    else
        st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

void st_api_whoami(st_call *call, void *ctx)
{
    const st_identity *who = st_api_who(call);
    st_strbuf out = {0};

    (void)ctx;
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "user", who->user);
    st_out_text(&out, "account", who->account);
    st_out_text(&out, "role", st_role_words[who->role]);
    st_out_text(&out, "version", ST_VERSION);
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}

void st_api_roles(st_call *call, void *ctx)
{
    st_strbuf out = {0};

    (void)ctx;
    st_strbuf_add(&out, "{\"roles\":[");
    for (int r = 0; r < ST_ROLE_COUNT; r++) {
        st_strbuf_add(&out, r ? ",{" : "{");
        st_out_text(&out, "role", st_role_words[r]);
        st_out_text(&out, "may", st_role_about((st_role)r));
        st_strbuf_addc(&out, '}');
    }
    st_strbuf_add(&out, "]}");
    st_call_reply_buf(call, 200, NULL, &out);
    st_strbuf_done(&out);
}
