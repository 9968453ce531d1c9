/*
 * Fuzzes the verifier of bill files. The first byte says what comes: 's' lines without checksums, which
 * are added here so that the fuzzer gets past them; anything else is a file as it is. Whatever comes in has a verdict
 * in one line, and only what is signed is good.
 */
#include <string.h>

#include "base/strbuf.h"
#include "bill/file.h"
#include "bill/file_format.h"
#include "fuzz.h"

static void add_sums(const char *data, size_t size, st_strbuf *out)
{
    unsigned char sum[ST_BILLSUM] = {0};
    const char *end = data + size;

    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        size_t len = (size_t)((newline ? newline : end) - data);

        st_billsum(sum, data, len, sum);
        st_strbuf_addn(out, data, len);
        st_strbuf_add(out, ",\"sum\":\"");
        for (int i = 0; i < ST_BILLSUM; i++)
            st_strbuf_addf(out, "%02x", sum[i]);
        st_strbuf_add(out, "\"}\n");
        data = newline ? newline + 1 : end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *bytes = (const char *)data;
    st_verdict v;

    if (size > 0 && bytes[0] == 's')
        add_sums(bytes + 1, size - 1, &text);
    else
        st_strbuf_addn(&text, bytes, size);
    st_billfile_verify(st_strbuf_str(&text), text.n, NULL, &v);
    ST_ASSERT(v.what[0] && !strchr(v.what, '\n') && memchr(v.what, '\0', sizeof(v.what)));
    ST_ASSERT(v.good || v.line > 0 || text.n == 0 || bytes[0] == 's');
    return 0;
}
