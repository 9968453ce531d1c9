/*
 * Fuzzes `sim shares` from the text to the answer. The first byte says which
 * reader: 'j' JSON, anything else YAML. Whatever is not refused with one
 * sentence has an answer that adds up.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "share/shares.h"

/* Enough for any bug of the reading; the laws of large trees are tested in src/share/test. */
#define ACCOUNTS_CHECKED 2000

static void check_resource(const st_shares *s, const st_shares_resource *res)
{
    double given = 0, slack = 1e-9 * fmax(1, res->capacity);
    int64_t wholes = 0;

    for (int i = 0; i < s->naccounts; i++) {
        const st_divide_out *out = &res->out[i];

        ST_ASSERT(out->share >= 0 && out->share <= res->in[i].max);
        ST_ASSERT(fabs((double)out->whole - out->share) < 1 + slack);
        if (s->accounts[i].parent >= 0)
            continue;
        given += out->share;
        wholes += out->whole;
    }
    ST_ASSERT(res->left >= 0 && res->left_whole >= 0);
    ST_ASSERT(fabs(given + res->left - res->capacity) <= slack);
    ST_ASSERT(fabs((double)(wholes + res->left_whole) - res->capacity) < 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_shares_freep) st_shares *s = NULL;
    const char *name = size > 0 && data[0] == 'j' ? "in.json" : "in.yaml";
    st_err err = {0};

    if (size == 0 || st_doc_parse(name, (const char *)data + 1, size - 1, &doc, &err) < 0)
        return 0;
    if (st_shares_new(doc, &s, &err) < 0) {
        ST_ASSERT(s == NULL && st_err_exit(err.code) == 2);
        ST_ASSERT(strncmp(err.msg, name, strlen(name)) == 0);
        ST_ASSERT(strchr(err.msg, '\n') == NULL);
        return 0;
    }
    for (int k = 0; s->naccounts <= ACCOUNTS_CHECKED && k < s->nresources; k++)
        check_resource(s, &s->resources[k]);
    return 0;
}
