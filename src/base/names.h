/*
 * What may be a name, where letters matter: names of files and variables that people choose.
 */
#ifndef ST_BASE_NAMES_H
#define ST_BASE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* 1 to `max` of letters, digits, ., - and _, not beginning with . or -: a file's name and never a path. */
bool st_plain_name(const char *s, size_t max);
/* 1 to `max` of letters, digits and _, not beginning with a digit: a variable's name. */
bool st_variable_name(const char *s, size_t max);

#endif
