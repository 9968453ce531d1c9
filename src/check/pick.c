/*
 * Which nodes a job allows, read from its text term by term, each against all labels of the node.
 */
#include <string.h>

#include "base/mem.h"
#include "check/room.h"
#include "model/labels.h"

/* The value is the wanted one, or goes on behind a dot. */
static bool has_label(const st_node *node, const char *name, const char *want)
{
    char have_name[ST_LABEL_MAX + 1], have[ST_LABEL_MAX + 1];
    size_t at = 0, n = strlen(want);
    while (st_labels_next(node->labels, &at, have_name, have))
        if (strcmp(have_name, name) == 0)
            return strncmp(have, want, n) == 0 && (have[n] == '\0' || have[n] == '.');
    return false;
}

static bool allows(const st_node *node, char *term)
{
    bool not = term[0] == '!';
    if (term[0] == '-')
        return strcmp(term + 1, node->name) != 0;
    char *eq = strchr(term, '=');
    *eq = '\0';
    return has_label(node, term + not, eq + 1) != not ;
}

bool st_check_picked(const st_fleet *fleet, const st_node *node, const st_job *job)
{
    const char *text = st_fleet_picked_text(fleet, job->shape.nodes);
    ST_CLEANUP(st_freep) char *copy = text ? st_xstrdup(text) : NULL;
    char *save = NULL;
    if (!text)
        return job->shape.nodes == 0;
    for (char *term = strtok_r(copy, "\n", &save); term; term = strtok_r(NULL, "\n", &save))
        if (!allows(node, term))
            return false;
    return true;
}
