/*
 * The kernel's name of the machine that this is built for, as filters of system calls ask for it. Private to run.
 */
#ifndef ST_RUN_ARCH_H
#define ST_RUN_ARCH_H

#include <linux/audit.h>

#if defined(__x86_64__)
#define ST_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ST_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#error "add this machine's audit architecture"
#endif

#endif
