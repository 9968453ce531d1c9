/*
 * Fuzzes what strangers send to become nodes: proofs, and what an agent says of its machine; and the gate for what
 * nodes say later. What is taken is within its bounds.
 */
#include <sodium.h>
#include <string.h>

#include "base/doc.h"
#include "base/mem.h"
#include "fuzz.h"
#include "model/proof.h"
#include "model/said.h"
#include "spec/spec.h"

static void fuzz_proof(const char *text)
{
    static const unsigned char key[ST_KEY_BYTES] = {1};
    unsigned char got[ST_KEY_BYTES];
    st_proof p;

    if (st_proof_parse(text, &p)) {
        ST_ASSERT(st_proof_is(text) && strlen(p.boot) == ST_BOOT_TEXT - 1 && p.node[0]);
        ST_ASSERT(strlen(p.session) < ST_SESSION_TEXT && strlen(p.node) <= ST_NAME_MAX);
    }
    ST_ASSERT(!st_proof_good(text, key));
    st_key_parse(text, got);
}

static void fuzz_machine(const char *text, size_t size)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_machine_doc m;
    st_err err = {0};

    if (st_doc_parse("body", text, size, &doc, &err) < 0)
        return;
    if (st_spec_machine(doc, st_doc_root(doc), &m, &err) < 0) {
        ST_ASSERT(err.code != 0 && err.msg[0]);
        return;
    }
    ST_ASSERT(m.name && m.name[0] && strlen(m.name) <= ST_NAME_MAX && m.machine && m.machine[0]);
    ST_ASSERT(m.cpu_m >= 0 && m.cpu_m <= ST_NODE_CPU_M_MAX && m.ram_mib >= 0 &&
              m.ram_mib <= ST_NODE_RAM_MIB_MAX);
    ST_ASSERT(m.count >= 0 && m.count <= ST_DEVS_MAX && m.vram_mib <= ST_TYPE_VRAM_MAX);
    ST_ASSERT(!m.address || !m.address[0] || st_said_word(m.address, 128));
}

/* The bytes as bounds and figures. */
static void fuzz_said(const uint8_t *data, size_t size)
{
    st_bounds b = {0};
    st_used u = {0}, twice;
    char line[64];

    if (size < sizeof b + sizeof u)
        return;
    memcpy(&b, data, sizeof b);
    memcpy(&u, data + sizeof b, sizeof u);
    b.devs = (int)((unsigned)b.devs % (ST_DEVS_MAX + 1));
    u.has &= (1u << ST_USED_COUNT) - 1;
    st_said_used(&b, NULL, &u);
    for (int k = 0; k < ST_USED_COUNT; k++)
        ST_ASSERT(!(u.has >> k & 1) || u.v[k] >= 0);
    twice = u;
    ST_ASSERT(st_said_used(&b, NULL, &twice) == 0 && st_used_same(&u, &twice));
    memcpy(line, data, sizeof line - 1);
    line[sizeof line - 1] = '\0';
    st_said_text(line, line, sizeof line);
    for (const char *c = line; *c; c++)
        ST_ASSERT((unsigned char)*c >= 0x20 && *c != '"');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_freep) char *text = st_xstrndup((const char *)data, size);

    fuzz_proof(text);
    fuzz_machine((const char *)data, size);
    fuzz_said(data, size);
    return 0;
}
