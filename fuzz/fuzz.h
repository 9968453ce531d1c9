/*
 * The function every fuzz target defines; libFuzzer calls it, or replay.c.
 */
#ifndef ST_FUZZ_FUZZ_H
#define ST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
