/*
 * What must hold between the accounts of a shares question, once each has been
 * read by itself. Private to src/share.
 */
#ifndef ST_SHARE_SHARES_CHECK_H
#define ST_SHARE_SHARES_CHECK_H

#include "share/shares.h"

/* Resolves parent names into parent, depth and inner; fails on names given twice or not at all,
 * on cycles and on trees that are too deep. */
int st_shares_link(st_shares *s, st_err *err);

/* Guarantees within max and within the parent's, demand on leaves only. */
int st_shares_check_quotas(const st_shares *s, st_err *err);

#endif
