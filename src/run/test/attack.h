/*
 * What a task must not be able to do, tried from inside it. The test program is mounted into a
 * container and calls attack_all there.
 */
#ifndef ST_RUN_TEST_ATTACK_H
#define ST_RUN_TEST_ATTACK_H

#include <stddef.h>

/* Tries everything and prints a line each: "denied NAME: why" or "THROUGH NAME". */
int attack_all(void);

/* How many lines that is. */
size_t attack_count(void);

#endif
