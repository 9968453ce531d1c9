/*
 * A document as JSON text (spec/spec.h): whatever it was written in, it is kept in one form.
 */
#include <string.h>

#include "base/quote.h"
#include "spec/spec.h"

/* Whether a plain scalar means itself in JSON: a number without leading zeros, true, false. */
static bool is_literal(const char *s)
{
    const char *digits = "0123456789";
    size_t n;

    if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0)
        return true;
    if (*s == '-')
        s++;
    n = strspn(s, digits);
    if (n == 0 || n > 15 || (s[0] == '0' && n > 1))
        return false;
    s += n;
    if (*s == '.') {
        n = strspn(s + 1, digits);
        if (n == 0 || n > 9)
            return false;
        s += n + 1;
    }
    return *s == '\0';
}

/* As deep as the document is, which is bounded. */
void st_spec_json(const st_doc_node *node, st_strbuf *out)
{
    const char *sep = "";

    switch (node->kind) {
    case ST_DOC_NULL:
        st_strbuf_add(out, "null");
        return;
    case ST_DOC_SCALAR:
        if (!node->quoted && is_literal(node->value))
            st_strbuf_add(out, node->value);
        else
            st_quote_json(out, node->value);
        return;
    case ST_DOC_SEQ:
    case ST_DOC_MAP:
        st_strbuf_addc(out, node->kind == ST_DOC_MAP ? '{' : '[');
        for (const st_doc_node *n = node->child; n; n = n->next) {
            st_strbuf_add(out, sep);
            sep = ",";
            if (n->key) {
                st_quote_json(out, n->key);
                st_strbuf_addc(out, ':');
            }
            st_spec_json(n, out);
        }
        st_strbuf_addc(out, node->kind == ST_DOC_MAP ? '}' : ']');
        return;
    }
}
