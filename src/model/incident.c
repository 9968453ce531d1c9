/* Names of faults and causes, and an incident's nodes. */
#include "model/incident.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

const char *st_cause_name(st_cause cause)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_CAUSE_TABLE(X)
#undef X
    };
    ST_ASSERT(cause < ST_CAUSE_COUNT);
    return names[cause];
}

static const struct {
    const char *name, *about;
    st_cause cause;
    st_fault_weight weight;
} faults[] = {
#define X(id, name, cause, weight, about) [id] = {name, about, cause, ST_FAULT_##weight},
    ST_FAULT_TABLE(X)
#undef X
};

const char *st_fault_name(st_fault fault)
{
    ST_ASSERT(fault < ST_FAULT_COUNT);
    return faults[fault].name;
}

const char *st_fault_about(st_fault fault)
{
    ST_ASSERT(fault < ST_FAULT_COUNT);
    return faults[fault].about;
}

st_cause st_fault_cause(st_fault fault)
{
    ST_ASSERT(fault < ST_FAULT_COUNT);
    return faults[fault].cause;
}

st_fault_weight st_fault_weighs(st_fault fault)
{
    ST_ASSERT(fault < ST_FAULT_COUNT);
    return faults[fault].weight;
}

st_fault st_fault_parse(const char *name)
{
    for (int f = ST_FAULT_NONE + 1; name && f < ST_FAULT_COUNT; f++)
        if (strcmp(faults[f].name, name) == 0)
            return (st_fault)f;
    return ST_FAULT_NONE;
}

const char *st_scope_name(st_scope scope)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_SCOPE_TABLE(X)
#undef X
    };
    ST_ASSERT(scope < ST_SCOPE_COUNT);
    return names[scope];
}

const char *st_incident_name(st_incident_news news)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_INCIDENT_TABLE(X)
#undef X
    };
    ST_ASSERT(news < ST_INCIDENT_COUNT);
    return names[news];
}

st_incident_node *st_incident_find(const st_incident *incident, int32_t node)
{
    for (size_t i = 0; i < incident->nodes.n; i++)
        if (incident->nodes.v[i].node == node)
            return &incident->nodes.v[i];
    return NULL;
}

size_t st_incident_out(const st_incident *incident)
{
    size_t n = 0;
    for (size_t i = 0; i < incident->nodes.n; i++)
        n += incident->nodes.v[i].out;
    return n;
}

void st_incident_free(st_incident *incident)
{
    if (!incident)
        return;
    free(incident->words);
    st_vec_free(&incident->nodes);
    st_vec_free(&incident->jobs);
    free(incident);
}
