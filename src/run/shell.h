/*
 * A command in a task that runs, beside the job's own: the program `stint-shim enter FOLDER`. Private to run.
 *
 * Who starts it (st_run_enter) hands over a socket on which frames go both ways (tunnel/frame.h), and what is to be run. It
 * has the runtime that made the container start the command in there: the same namespaces, control group, user, calls and
 * limits, by the very config.json of the task, whose process is taken over but for command and terminal. It is the command's
 * parent, and ends with it; where the socket ends first, the command is hung up on, and killed two seconds later.
 *
 * Invariants:
 *  1 Nothing of the node is open in the command but its three streams, which are made for it.
 *  2 Of what goes in and of what comes out 64 KiB are held at most.
 *  3 Once the command runs, this process may send signals and nothing else.
 */
#ifndef ST_RUN_SHELL_H
#define ST_RUN_SHELL_H

enum { ST_SHELL_SOCKET_FD = 3, ST_SHELL_SPEC_FD = 4 };

int st_shell_main(const char *dir);

#endif
