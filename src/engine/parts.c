/*
 * Which of several engines is meant (engine/engine.h).
 */
#include <string.h>

#include "engine/engine.h"

static const st_engine *part(const st_engine *engine, size_t i)
{
    if (engine->ops->part)
        return engine->ops->part(engine, i);
    return i == 0 ? engine : NULL;
}

const st_engine *st_engine_named(const st_engine *engine, const char *name)
{
    for (size_t i = 0; part(engine, i); i++)
        if (strcmp(part(engine, i)->ops->name, name) == 0)
            return part(engine, i);
    return NULL;
}

static const st_engine *first(const st_engine *engine, st_engine_nodes nodes)
{
    for (size_t i = 0; part(engine, i); i++)
        if (part(engine, i)->ops->nodes == nodes)
            return part(engine, i);
    return NULL;
}

const st_engine *st_engine_of(const st_engine *engine, const char *name, bool agent)
{
    const st_engine *own;

    if (name[0])
        return st_engine_named(engine, name);
    own = first(engine, agent ? ST_NODES_AGENTS : ST_NODES_ANNOUNCED);
    return own || part(engine, 1) ? own : part(engine, 0);
}

bool st_engine_has(const st_engine *engine, st_engine_nodes nodes)
{
    return first(engine, nodes) != NULL;
}
