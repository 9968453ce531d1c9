/*
 * Addresses, as far as it matters whether words leave the machine.
 */
#ifndef ST_BASE_NET_H
#define ST_BASE_NET_H

#include <stdbool.h>

/* Whether HOST, HOST:PORT or what follows the scheme of a URL is this machine and nobody else: a number of
 * 127.0.0.0/8, [::1], or localhost. Names that only look like it are not. */
bool st_net_loopback(const char *authority);

#endif
