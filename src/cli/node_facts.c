/*
 * What `stint node show` says of a node.
 */
#include "cli/node_facts.h"

/* What is wrong with what the node says, for owners. */
static void add_flags(const json_t *row, st_strbuf *out)
{
    const json_t *flags = json_object_get(row, "flags"), *flag;
    size_t i;

    json_array_foreach(flags, i, flag)
        st_strbuf_addf(out, "%s%s since %s: %s", i ? "; " : "", st_view_text(flag, "flag"),
                       st_view_text(flag, "since"), st_view_text(flag, "reason"));
    if (out->n == 0)
        st_strbuf_addc(out, '-');
}

/* GPUs that are out of service alone. */
static void add_gpus_out(const json_t *row, st_strbuf *out)
{
    const json_t *list = json_object_get(row, "gpus_out"), *gpu;
    const char *why;
    size_t i;

    json_array_foreach(list, i, gpu)
    {
        why = json_string_value(json_object_get(gpu, "reason"));
        st_strbuf_addf(out, "%s%d %s since %s", i ? "; " : "",
                       (int)json_integer_value(json_object_get(gpu, "gpu")),
                       st_view_text(gpu, "state"), st_view_text(gpu, "since"));
        if (why)
            st_strbuf_addf(out, " (%s)", why);
        st_strbuf_addf(out, ": %s", st_view_text(gpu, "next"));
    }
    if (out->n == 0)
        st_strbuf_addc(out, '-');
}

const st_view_column st_cli_node_facts[] = {
    {"Node", "name", ST_VIEW_TEXT, NULL},
    {"State", "state", ST_VIEW_TEXT, NULL},
    {"Pool", "pool", ST_VIEW_TEXT, NULL},
    {"Type", "type", ST_VIEW_TEXT, NULL},
    {"GPUs", "gpus", ST_VIEW_NUM, NULL},
    {"Free", "gpus_free", ST_VIEW_NUM, NULL},
    {"CPU", "cpu", ST_VIEW_NUM, NULL},
    {"RAM", "ram_mib", ST_VIEW_MIB, NULL},
    {"Rack", "rack", ST_VIEW_TEXT, NULL},
    {"Block", "block", ST_VIEW_TEXT, NULL},
    {"Zone", "zone", ST_VIEW_TEXT, NULL},
    {"Labels", "labels", ST_VIEW_WORDS, NULL},
    {"Your jobs", "jobs", ST_VIEW_WORDS, NULL},
    {"Empty by", "drain_by", ST_VIEW_TIME, NULL},
    {"Then", "drain_then", ST_VIEW_TEXT, NULL},
    {"Reason", "reason", ST_VIEW_TEXT, NULL},
    {"Since", "since", ST_VIEW_TIME, NULL},
    {"By", "by", ST_VIEW_TEXT, NULL},
    {"Next", "next", ST_VIEW_TEXT, NULL},
    {"GPUs out", NULL, ST_VIEW_FN, add_gpus_out},
    {"Passed", "passed", ST_VIEW_TIME, NULL},
    {"Next test", "test_at", ST_VIEW_TIME, NULL},
    {"Key", "key", ST_VIEW_TEXT, NULL},
    {"Flags", NULL, ST_VIEW_FN, add_flags},
    {0},
};
