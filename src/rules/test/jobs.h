/*
 * What the rules made of a document, as the whole documents it stands for.
 */
#ifndef ST_RULES_TEST_JOBS_H
#define ST_RULES_TEST_JOBS_H

#include "base/strbuf.h"
#include "rules/rules.h"

/* As st_rules_apply_text, with a new JSON array of the documents. */
static ST_UNUSED int rules_apply(st_rules *rules, const st_rules_who *who, const char *text,
                                 size_t len, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_rules_jobs_done) st_rules_jobs jobs = {0};
    int r = st_rules_apply_text(rules, who, text, len, &jobs, err);

    if (r < 0)
        return r;
    *ret = json_array();
    for (size_t i = 0; i < jobs.pieces.n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};

        st_strbuf_add(&doc, jobs.head);
        st_strbuf_add(&doc, jobs.pieces.v[i].tail);
        json_array_append_new(*ret, json_loads(st_strbuf_str(&doc), JSON_REJECT_DUPLICATES, NULL));
    }
    return 0;
}

#endif
