/*
 * Who a tenant is on this node: a name for folders, namespaces and daemons, and a user id.
 *
 * Both follow from the number that stintd gave the account when it was made and gives to no other, whatever
 * accounts are called. So an account that takes over a name takes over nothing else, and no two share a user id.
 *
 * Before there were numbers an account was known here by its name, with a line in DATA/tenants whose place was its
 * user id, and a folder DATA/storage/NAME. What such an account has is adopted with its first task: DATA/adopted gets a
 * line "NUMBER UID NAME", then the folder is renamed. The line decides: a crash in between leaves a folder that is
 * renamed the next time, and a name that was adopted once is nobody else's.
 */
#ifndef ST_AGENT_TENANT_H
#define ST_AGENT_TENANT_H

#include "run/run.h"

#define ST_TENANT_MAX INT64_C(2000000000)

/* "t.17": no account could be called that here before. */
void st_tenant_name(int64_t id, char ret[ST_RUN_NAME_MAX]);

/* The user id of a tenant, by its name here: that it was adopted with, or one of its own. Of an old name, for a task
 * that has outlived the change, the one it had. */
int st_tenant_uid(const char *dir, const char *tenant, int64_t *ret, st_err *err);

/* Takes over what the account had here when it was known as `was`, once. */
int st_tenant_adopt(const char *dir, int64_t id, const char *was, st_err *err);

#endif
