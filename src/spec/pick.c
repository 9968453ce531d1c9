/*
 * Which nodes a job allows, as people write it (spec/spec.h).
 */
#include "model/pick.h"
#include "spec/spec.h"

static int read_terms(const st_doc *doc, const st_doc_node *list, bool node, st_strbuf *ret,
                      st_err *err)
{
    const st_doc_node *at = NULL;
    const char *text;
    st_err why = {0};
    int r = 0;

    while (r == 0 && list && (at = st_field_each(list, at))) {
        r = st_doc_str(doc, at, &text, err);
        if (r == 0 && st_pick_add(ret, text, node, &why) < 0)
            r = st_doc_fail(doc, at, err, why.code, "%s", why.msg);
    }
    return r;
}

int st_spec_pick(const st_doc *doc, const st_doc_node *labels, const st_doc_node *exclude,
                 st_strbuf *ret, st_err *err)
{
    int r = read_terms(doc, labels, false, ret, err);

    return r == 0 ? read_terms(doc, exclude, true, ret, err) : r;
}
