/*
 * Where things are mounted in a task's root. An image is its tenant's: a link in it, where something is to be mounted, would lead the
 * mount elsewhere, over what keeps the task in its walls (/run/stint/init, /etc/ld.so.preload).
 */
#ifndef ST_RUN_TARGETS_H
#define ST_RUN_TARGETS_H

#include "base/err.h"

/* Whether no link of the image is on the way to a place that the bundle mounts something at; `bundle` has rootfs, mounted, and config.json.
 * ST_EINVAL: there is one, and the image is to blame. */
int st_targets_check(const char *bundle, st_err *err);

#endif
