/*
 * Conditions on edits: If-Match and If-None-Match against the version of what is to be changed. They are looked at in the
 * loop, in the transaction of the change, so that nothing comes between.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/state.h"

int st_api_condition(const st_call *call, const char *version, bool there, const char *what,
                     const char *name, st_err *err)
{
    const char *must = st_call_if_match(call), *must_not = st_call_if_none_match(call);

    if (must && ((!there && strchr(must, '*')) || !st_etag_listed(must, version, ST_ETAG_VERSION)))
        return st_fail(err, ST_EVERSION,
                       "%s %s has changed since you read it; read it again and repeat the change",
                       what, name);
    if (must_not && there && st_etag_listed(must_not, version, ST_ETAG_VERSION))
        return st_fail(err, ST_EVERSION, "there is a %s %s already, at version %s", what, name,
                       version);
    return 0;
}

int st_api_condition_of(st_tx *tx, const st_call *call, const char *kind, const char *kept,
                        const char *name, st_err *err)
{
    const int64_t version = st_tx_version(tx, kind, kept);
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, version);
    return st_api_condition(call, text, version > 0, kind, name, err);
}

void st_api_set_version(st_call *call, int64_t version)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, version);
    st_call_set_version(call, text);
}
