/*
 * Terminals inside containers (run/console.h).
 */
#include "run/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "run/os.h"

void st_socket_path(int dir, const char *name, char ret[ST_SOCKET_PATH])
{
    snprintf(ret, ST_SOCKET_PATH, "/proc/self/fd/%d/%s", dir, name);
}

int st_socket_listen(const char *dir, const char *name, int most)
{
    ST_CLEANUP(st_os_closep) int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(077);
    bool bound;

    st_socket_path(at, name, where.sun_path);
    bound = at >= 0 && fd >= 0 && bind(fd, (struct sockaddr *)&where, sizeof where) == 0;
    umask(before);
    if (!bound || listen(fd, most) != 0)
        st_os_closep(&fd);
    return fd;
}

int st_console_open(const char *dir, st_err *err)
{
    int fd = st_socket_listen(dir, ST_CONSOLE, 1);

    return fd >= 0 ? fd
                   : st_fail(err, ST_EIO, "the node cannot make a terminal: %s", strerror(errno));
}

int st_console_take(int listener)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char name[256];
    struct iovec piece = {.iov_base = name, .iov_len = sizeof name};
    struct msghdr msg = {.msg_iov = &piece,
                         .msg_iovlen = 1,
                         .msg_control = control.room,
                         .msg_controllen = sizeof control.room};
    int conn = accept4(listener, NULL, NULL, SOCK_CLOEXEC), fd = -1;
    const struct cmsghdr *c;

    if (conn >= 0 && recvmsg(conn, &msg, MSG_CMSG_CLOEXEC) >= 0 && (c = CMSG_FIRSTHDR(&msg)) &&
        c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    st_os_closep(&conn);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

void st_console_size(int fd, int rows, int cols)
{
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    if (fd >= 0)
        ioctl(fd, TIOCSWINSZ, &size);
}
