/*
 * What an agent says of its machine when it registers (doc/dev/agent-protocol.md). Whoever says it is not known yet, or
 * not to be believed: every text and number has its bounds here.
 */
#include <stddef.h>
#include <string.h>

#include "model/labels.h"
#include "model/said.h"
#include "spec/fields.h"
#include "spec/spec.h"

#define MACHINE_MAX 128
#define LABELS_MAX  64
#define WORD_MAX    128

#define ROW(k, what, S, f)                               \
    {                                                    \
        .key = k, .kind = what, .offset = offsetof(S, f) \
    }

/* What goes on to other nodes and to people. */
static int check_words(const st_machine_doc *f, st_err *err)
{
    const struct {
        const char *key, *text;
    } words[] = {{"address", f->address}, {"version", f->version}, {"driver", f->driver}};

    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        if (words[i].text && words[i].text[0] && !st_said_word(words[i].text, WORD_MAX))
            return st_fail(err, ST_EINVAL,
                           "%s has at most %d letters, digits or . _ : - / + %% [ ]", words[i].key,
                           WORD_MAX);
    return 0;
}

static int read_node(const st_doc *doc, const st_doc_node *map, st_machine_doc *f, st_err *err)
{
    static const st_field rows[] = {
        {.key = "name",
         .kind = ST_F_NAME,
         .offset = offsetof(st_machine_doc, name),
         .required = true},
        {.key = "machine_id",
         .kind = ST_F_TEXT,
         .offset = offsetof(st_machine_doc, machine),
         .required = true},
        ROW("address", ST_F_LINE, st_machine_doc, address),
        ROW("version", ST_F_LINE, st_machine_doc, version),
        ROW("driver", ST_F_LINE, st_machine_doc, driver),
        ROW("key", ST_F_TEXT, st_machine_doc, key),
        ROW("gpu", ST_F_NODE, st_machine_doc, gpu),
        ROW("topology", ST_F_NODE, st_machine_doc, topology),
        ROW("labels", ST_F_NODE, st_machine_doc, labels),
        {.key = "cpu",
         .kind = ST_F_MILLI,
         .offset = offsetof(st_machine_doc, cpu_m),
         .lo = 0,
         .hi = ST_NODE_CPU_M_MAX,
         .required = true},
        {.key = "ram",
         .kind = ST_F_MIB,
         .offset = offsetof(st_machine_doc, ram_mib),
         .required = true},
        {0},
    };
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r == 0)
        r = st_fields_read(doc, map, rows, f, err);
    if (r == 0 && !st_said_word(f->machine, MACHINE_MAX))
        r = st_fail(err, ST_EINVAL, "machine_id has 1 to %d letters, digits or . _ : - /",
                    MACHINE_MAX);
    if (r == 0 && f->ram_mib > ST_NODE_RAM_MIB_MAX)
        r = st_fail(err, ST_ERANGE, "a node has at most %d TiB of RAM",
                    (int)(ST_NODE_RAM_MIB_MAX >> 20));
    if (r == 0)
        r = check_words(f, err);
    if (r == 0 && f->labels)
        r = st_spec_labels(doc, f->labels, err);
    if (r == 0 && f->labels && f->labels->nchild > LABELS_MAX)
        r = st_doc_fail(doc, f->labels, err, ST_ELIMIT, "at most %d labels", LABELS_MAX);
    return r;
}

static int read_gpu(const st_doc *doc, const st_doc_node *map, st_machine_doc *f, st_err *err)
{
    const char *boards[ST_BOARD_COUNT + 1] = {NULL};
    const st_field rows[] = {
        {.key = "type",
         .kind = ST_F_NAME,
         .offset = offsetof(st_machine_doc, type),
         .required = true},
        {.key = "count",
         .kind = ST_F_INT,
         .offset = offsetof(st_machine_doc, count),
         .lo = 0,
         .hi = ST_DEVS_MAX,
         .required = true},
        {.key = "vram", .kind = ST_F_MIB, .offset = offsetof(st_machine_doc, vram_mib)},
        {.key = "mig",
         .kind = ST_F_WORD,
         .offset = offsetof(st_machine_doc, board),
         .words = boards},
        {.key = "uuids", .kind = ST_F_NODE, .offset = offsetof(st_machine_doc, uuids)},
        {0},
    };
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    for (int b = 0; b < ST_BOARD_COUNT; b++)
        boards[b] = st_board_name((st_board)b);
    if (r == 0)
        r = st_fields_read(doc, map, rows, f, err);
    if (r == 0 && f->uuids)
        r = st_doc_expect(doc, f->uuids, ST_DOC_SEQ, err);
    if (r == 0 && f->vram_mib > ST_TYPE_VRAM_MAX)
        r = st_doc_fail(doc, map, err, ST_ERANGE, "a GPU has at most %d TiB of memory",
                        (int)(ST_TYPE_VRAM_MAX >> 20));
    for (const st_doc_node *u = r == 0 && f->uuids ? f->uuids->child : NULL; u && r == 0;
         u = u->next) {
        const char *text;

        r = st_doc_str(doc, u, &text, err);
        if (r == 0 && !st_said_word(text, WORD_MAX))
            r = st_doc_fail(doc, u, err, ST_EINVAL, "a UUID has letters, digits and -");
    }
    if (r == 0 && f->uuids && f->uuids->nchild != f->count)
        r = st_doc_fail(doc, f->uuids, err, ST_EINVAL, "%d GPUs and %d UUIDs", f->count,
                        f->uuids->nchild);
    return r;
}

static int read_topology(const st_doc *doc, const st_doc_node *map, st_machine_doc *f, st_err *err)
{
    static const st_field rows[] = {
        ROW("rack", ST_F_NAME, st_machine_doc, rack),
        ROW("block", ST_F_NAME, st_machine_doc, block),
        ROW("zone", ST_F_NAME, st_machine_doc, zone),
        ROW("nvlink_domain", ST_F_NAME, st_machine_doc, nvlink_domain),
        {.key = "nvlink",
         .kind = ST_F_INT,
         .offset = offsetof(st_machine_doc, nvlink),
         .lo = 1,
         .hi = ST_DEVS_MAX},
        {0},
    };
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    return r == 0 ? st_fields_read(doc, map, rows, f, err) : r;
}

int st_spec_node_labels(const st_doc *doc, const st_doc_node *map, st_strbuf *ret, st_err *err)
{
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        st_err why = {0};

        r = st_doc_expect(doc, n, ST_DOC_SCALAR, err);
        if (r == 0 && st_labels_set(ret, n->key, n->value, &why) < 0)
            r = st_doc_fail(doc, n, err, why.code, "%s", why.msg);
    }
    return r;
}

int st_spec_machine(const st_doc *doc, const st_doc_node *map, st_machine_doc *ret, st_err *err)
{
    st_machine_doc f = {.board = ST_BOARD_NONE};
    int r = read_node(doc, map, &f, err);

    if (r == 0 && f.gpu)
        r = read_gpu(doc, f.gpu, &f, err);
    if (r == 0 && f.topology)
        r = read_topology(doc, f.topology, &f, err);
    if (r == 0)
        *ret = f;
    return r;
}
