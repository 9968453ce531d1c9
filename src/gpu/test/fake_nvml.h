/* The handle tests have on the fake libnvidia-ml.so: what it is to say. */
#ifndef ST_GPU_TEST_FAKE_NVML_H
#define ST_GPU_TEST_FAKE_NVML_H

#include <stdint.h>

typedef struct fake_nvml {
    /* From now on the symbol answers with this result; 0 ends that. */
    void (*set)(const char *symbol, int result);
    void (*reset)(void); /* as if just loaded: MIG off, nothing runs, no results set */
    void (*process)(uint32_t pid, uint64_t mib, uint32_t gi);
    void (*event)(uint64_t type, uint64_t data);
    int (*samples)(void); /* GPM samples allocated and not freed */
} fake_nvml;

const fake_nvml *fake_nvml_control(void);

#endif
