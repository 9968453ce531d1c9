/*
 * A terminal that the runtime makes inside a container, and whose other end it sends here. Private to run.
 */
#ifndef ST_RUN_CONSOLE_H
#define ST_RUN_CONSOLE_H

#include "base/err.h"

/* Where the runtime is to send it: a socket with this name in the folder `dir`, whose path may be long. */
#define ST_CONSOLE "console"

/* Listens there; the descriptor does not block. */
int st_console_open(const char *dir, st_err *err);
/* What the runtime has sent, which does not block; -1: nothing. */
int st_console_take(int listener);
void st_console_size(int fd, int rows, int cols);

/* Listens on a socket with this name in a folder whose path may be long; nobody but its owner may connect. It does not block;
 * -1: errno says why. */
int st_socket_listen(const char *dir, const char *name, int most);
/* A path to a name in a folder that fits into the address of a socket, as long as the descriptor of the folder is open. */
#define ST_SOCKET_PATH 64
void st_socket_path(int dir, const char *name, char ret[ST_SOCKET_PATH]);

#endif
