/*
 * Sealed text as it was written while an account was meant by its name: "v1.". For tests.
 */
#ifndef ST_VAULT_TEST_NAMED_H
#define ST_VAULT_TEST_NAMED_H

#include "vault/vault.h"

/* p->owner is not looked at. Text of at most 900 bytes. */
void seal_named(st_vault *v, const char *owner, const st_vault_place *p, const char *text,
                st_strbuf *out);

#endif
