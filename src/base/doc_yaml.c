/*
 * YAML by way of libyaml's event parser, which keeps its own stack on the heap
 * and so never recurses on the input; the builder stops it at the depth limit.
 */
#include "base/doc_build.h"

#include <string.h>
#include <yaml.h>

#include "base/quote.h"

static int mark_line(yaml_mark_t mark)
{
    return (int)mark.line + 1;
}

/* libyaml's own complaint, as one sentence. */
static int fail_syntax(const st_doc_build *b, const yaml_parser_t *p, const char *text, size_t len,
                       st_err *err)
{
    const char *problem = p->problem ? p->problem : "this is not valid YAML";

    if (p->error == YAML_MEMORY_ERROR)
        return st_doc_build_fail(b, mark_line(p->mark), err, ST_EFULL, "out of memory");
    /* The reader of bytes knows an offset only. */
    if (p->error == YAML_READER_ERROR)
        return st_doc_build_fail(b, st_doc_line_at(text, ST_MIN(p->problem_offset, len)), err,
                                 ST_EPARSE, "%s", problem);
    if (p->context && p->context_mark.line != p->problem_mark.line)
        return st_doc_build_fail(b, mark_line(p->problem_mark), err, ST_EPARSE,
                                 "%s %s that began on line %d", problem, p->context,
                                 mark_line(p->context_mark));
    if (p->context)
        return st_doc_build_fail(b, mark_line(p->problem_mark), err, ST_EPARSE, "%s %s", problem,
                                 p->context);
    return st_doc_build_fail(b, mark_line(p->problem_mark), err, ST_EPARSE, "%s", problem);
}

/* Anchors and tags, on scalars, lists and maps alike. */
static int refuse_extras(const st_doc_build *b, const yaml_char_t *anchor, const yaml_char_t *tag,
                         int line, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (anchor)
        return st_doc_build_fail(b, line, err, ST_EPARSE, "anchors are not supported: %s",
                                 st_quote(q, (const char *)anchor));
    if (tag)
        return st_doc_build_fail(b, line, err, ST_EPARSE, "tags are not supported: %s",
                                 st_quote(q, (const char *)tag));
    return 0;
}

static int take_scalar(st_doc_build *b, const yaml_event_t *e, st_err *err)
{
    const char *text = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    bool quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    int line = mark_line(e->start_mark);
    int r;

    r = refuse_extras(b, e->data.scalar.anchor, e->data.scalar.tag, line, err);
    if (r < 0)
        return r;
    if (st_doc_build_key_due(b))
        return st_doc_build_key(b, text, len, line, err);
    return st_doc_build_scalar(b, text, len, quoted, line, err);
}

static int take_open(st_doc_build *b, st_doc_kind kind, const yaml_char_t *anchor,
                     const yaml_char_t *tag, int line, st_err *err)
{
    int r = refuse_extras(b, anchor, tag, line, err);

    if (r < 0)
        return r;
    if (st_doc_build_key_due(b))
        return st_doc_build_fail(b, line, err, ST_EPARSE, "a key must be text, not a list or map");
    return st_doc_build_open(b, kind, line, err);
}

static int take_event(st_doc_build *b, const yaml_event_t *e, st_err *err)
{
    int line = mark_line(e->start_mark);

    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(b, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return take_open(b, ST_DOC_SEQ, e->data.sequence_start.anchor, e->data.sequence_start.tag,
                         line, err);
    case YAML_MAPPING_START_EVENT:
        return take_open(b, ST_DOC_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag,
                         line, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        st_doc_build_close(b);
        return 0;
    case YAML_ALIAS_EVENT:
        return st_doc_build_fail(b, line, err, ST_EPARSE, "aliases (*name) are not supported");
    case YAML_DOCUMENT_START_EVENT:
        if (b->doc->root)
            return st_doc_build_fail(b, line, err, ST_EPARSE,
                                     "a second document begins here; one file holds one");
        return 0;
    default:
        return 0;
    }
}

/* libyaml compares every %TAG directive with all before it, all within one event: a megabyte of
 * them takes minutes. Tags are refused anyway, so these are too, before it sees them. */
static int refuse_tag_directives(const st_doc_build *b, const char *text, size_t len, st_err *err)
{
    /* The last bytes of what libyaml takes for a line break, and of the byte order mark. */
    static const char before[] = "\n\r\x85\xA8\xA9\xBF";
    const char *end = text + len;

    for (const char *p = text; (p = memmem(p, (size_t)(end - p), "%TAG", 4)); p += 4)
        if (p == text || (p[-1] && strchr(before, p[-1])))
            return st_doc_build_fail(b, st_doc_line_at(text, (size_t)(p - text)), err, ST_EPARSE,
                                     "tags are not supported: %%TAG");
    return 0;
}

int st_doc_read_yaml(st_doc_build *b, const char *text, size_t len, st_err *err)
{
    yaml_parser_t parser;
    bool ended = false;
    int r;

    r = refuse_tag_directives(b, text, len, err);
    if (r < 0)
        return r;
    if (!yaml_parser_initialize(&parser))
        return st_fail(err, ST_EFULL, "%s: out of memory", b->doc->name);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    while (r == 0 && !ended) {
        yaml_event_t event;

        if (!yaml_parser_parse(&parser, &event)) {
            r = fail_syntax(b, &parser, text, len, err);
            break;
        }
        r = take_event(b, &event, err);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return r;
}
