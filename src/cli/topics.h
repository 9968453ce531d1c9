/*
 * `stint help TOPIC`, and everything that help knows as JSON (`stint help --reference`).
 */
#ifndef ST_CLI_TOPICS_H
#define ST_CLI_TOPICS_H

#include "cli/cli.h"

/* Prints the topic; false: there is none of that name. */
bool st_cli_topic(FILE *out, const char *name);
void st_cli_topic_list(FILE *out);

void st_cli_reference(FILE *out, const st_cli_verb *verbs);

#endif
