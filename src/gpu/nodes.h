/*
 * Device files of NVIDIA GPUs and of MIG instances, and what sysfs says about where a GPU sits.
 * The roots of /proc and /sys are arguments, so that tests bring their own.
 */
#ifndef ST_GPU_NODES_H
#define ST_GPU_NODES_H

#include "base/err.h"
#include "gpu/gpu.h"

/* The minor number of an instance's capability, looked up in the text of
 * /proc/driver/nvidia-caps/mig-minors; ci ST_GPU_UNKNOWN asks for the GPU instance itself.
 * ST_GPU_UNKNOWN when it is not there. */
int st_gpu_cap_minor(const char *text, int minor, int gi, int ci);

/* That text, which stays the same while the driver is loaded; "" when it cannot be read. */
char *st_gpu_cap_minors(const char *proc);

/* Fills the capability minors and files of an instance from it, or unknown. */
void st_gpu_cap_nodes(const char *text, int minor, st_gpu_instance *instance);

/* NUMA node and nearby CPUs of a PCI device from sysfs, into info. */
void st_gpu_sysfs_place(const char *sys, st_gpu_info *info);

#endif
