/*
 * What `stint node show` says of a node, a row each (node_facts.c).
 */
#ifndef ST_CLI_NODE_FACTS_H
#define ST_CLI_NODE_FACTS_H

#include "cli/view.h"

extern const st_view_column st_cli_node_facts[];

#endif
