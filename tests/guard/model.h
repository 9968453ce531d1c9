/* The device that tests/guard/fake_driver.c has instead of a GPU: a file that all processes map. One queue, in the order
 * in which work was begun, with a switch between processes as time-slicing has it; memory that cannot be had
 * twice. Beside it, what a test needs to know: the most that was ever held, by one task and at once. */
#ifndef MODEL_H
#define MODEL_H

#include <stdatomic.h>
#include <stdint.h>

#define MODEL_MAGIC   UINT32_C(0x4c444f4d)
#define MODEL_PROCS   4096
#define MODEL_TASKS   64
#define MODEL_QUEUED  512
#define MODEL_STEP_NS 20000

typedef struct model {
    uint32_t magic;
    _Atomic int lock; /* pid */
    uint64_t total;
    uint64_t switch_ns, context_bytes;
    uint64_t busy_until_ns;
    int last_pid;
    uint64_t work_ns[MODEL_TASKS]; /* done for a task */
    uint64_t peak[MODEL_TASKS];    /* the most memory a task ever had */
    uint64_t calls;
    unsigned queued[MODEL_TASKS][MODEL_QUEUED]; /* launches by what was before them, in 20 us */
    struct {
        int pid, task;
        uint64_t bytes;
    } proc[MODEL_PROCS];
} model;

#endif
