/* Small helpers over system calls. */
#include "run/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define RECORD_MAX (1u << 20)

void st_os_closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void st_os_jsonp(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}

static int64_t clock_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t st_os_now_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

int64_t st_os_now_ms(void)
{
    return st_os_now_us() / 1000;
}

int64_t st_os_mono_ms(void)
{
    return clock_us(CLOCK_BOOTTIME) / 1000;
}

void st_os_sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

const char *st_os_boot_id(char ret[ST_OS_BOOT_MAX])
{
    if (st_os_peek("/proc/sys/kernel/random/boot_id", ret, ST_OS_BOOT_MAX) <= 0)
        ret[0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return ret;
}

int st_os_path(char ret[PATH_MAX], st_err *err, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(ret, PATH_MAX, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= PATH_MAX)
        return st_fail(err, ST_ERANGE, "a path of %d bytes is too long", n);
    return 0;
}

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, text, n);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -1;
        text += w;
        n -= (size_t)w;
    }
    return 0;
}

int st_os_write(const char *path, const char *text, size_t n, mode_t mode, st_err *err)
{
    char part[PATH_MAX];
    int r = st_os_path(part, err, "%s.new", path);

    if (r)
        return r;
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return st_fail(err, ST_EIO, "cannot create %s: %s", part, strerror(errno));
    bool ok = write_all(fd, text, n) == 0 && fchmod(fd, mode) == 0;
    int saved = errno;

    if (close(fd) != 0 && ok) {
        ok = false;
        saved = errno;
    }
    if (ok && rename(part, path) != 0) {
        ok = false;
        saved = errno;
    }
    if (ok)
        return 0;
    unlink(part);
    return st_fail(err, saved == ENOSPC ? ST_EFULL : ST_EIO, "cannot write %s: %s", path,
                   strerror(saved));
}

int st_os_write_json(const char *path, const json_t *value, st_err *err)
{
    ST_CLEANUP(st_freep) char *text = json_dumps(value, JSON_INDENT(1));

    if (!text)
        return st_fail(err, ST_EINVAL, "cannot write %s: not valid UTF-8", path);
    return st_os_write(path, text, strlen(text), 0600, err);
}

int st_os_sync(const char *path, st_err *err)
{
    ST_CLEANUP(st_os_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0)
        return st_fail(err, ST_EIO, "cannot sync %s: %s", path, strerror(errno));
    return 0;
}

int st_os_read_json(const char *path, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    json_error_t why;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return st_fail(err, ST_ENOENT, "there is no %s", path);
    int r = st_file_read(path, RECORD_MAX, &text, err);

    if (r)
        return r;
    json_t *value = json_loadb(st_strbuf_str(&text), text.n, 0, &why);

    if (!json_is_object(value)) {
        json_decref(value);
        return st_fail(err, ST_ECORRUPT, "%s is not a JSON object", path);
    }
    *ret = value;
    return 0;
}

ssize_t st_os_peek(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0)
        return -1;
    while (n + 1 < cap) {
        ssize_t r = read(fd, buf + n, cap - 1 - n);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        n += (size_t)r;
    }
    close(fd);
    buf[n] = '\0';
    return (ssize_t)n;
}

int st_os_poke(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    int r = write_all(fd, text, strlen(text));
    int saved = errno;

    close(fd);
    errno = saved;
    return r;
}

int st_os_mkdirs(const char *path, mode_t mode, st_err *err)
{
    char part[PATH_MAX];
    int r = st_os_path(part, err, "%s", path);

    if (r)
        return r;
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;

        *p = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST)
            return st_fail(err, ST_EIO, "cannot make the folder %s: %s", part, strerror(errno));
        *p = kept;
        if (kept == '\0')
            return 0;
    }
}

/* Empties the folder behind fd, which it takes over. Depth is bounded by the descriptors a
 * process may have; our own trees are shallow. */
static int empty_dir(int fd, dev_t device)
{
    DIR *dir = fdopendir(fd);
    int r = 0;

    if (!dir) {
        close(fd);
        return -1;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            r = errno == ENOENT ? 0 : -1;
            continue;
        }
        if (!S_ISDIR(st.st_mode)) {
            r = unlinkat(dirfd(dir), e->d_name, 0);
            continue;
        }
        if (st.st_dev != device) {
            errno = EXDEV;
            r = -1;
            continue;
        }
        int sub = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        r = sub < 0 ? -1 : empty_dir(sub, device);
        if (r == 0)
            r = unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    }
    int saved = errno;

    closedir(dir);
    errno = saved;
    return r;
}

int st_os_remove_tree(const char *path, st_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0
                               : st_fail(err, ST_EIO, "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || empty_dir(fd, st.st_dev) != 0 || rmdir(path) != 0)
        return st_fail(err, ST_EIO, "cannot remove %s: %s", path, strerror(errno));
    return 0;
}

static _Noreturn void become(const char *const argv[], int out)
{
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *const bare[] = {path, NULL};
    int null = open("/dev/null", O_RDWR);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    close_range(3, ~0U, 0);
    execve(argv[0], (char *const *)(uintptr_t)argv, bare);
    _exit(127);
}

int st_os_run(const char *const argv[], char *said, size_t cap)
{
    int pipes[2];
    size_t n = 0;
    char waste[512];
    int status;

    if (cap > 0)
        said[0] = '\0';
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();

    if (pid == 0)
        become(argv, pipes[1]);
    close(pipes[1]);
    while (pid > 0) {
        bool room = n + 1 < cap;
        ssize_t r = read(pipes[0], room ? said + n : waste, room ? cap - 1 - n : sizeof(waste));

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        if (room) {
            n += (size_t)r;
            said[n] = '\0';
        }
    }
    close(pipes[0]);
    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static _Noreturn void be_asked(const st_os_call *call, int in, int out)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    close_range(3, ~0U, 0);
    int r = call->before ? call->before(call->ctx) : 0;

    if (r == 0)
        execve(call->argv[0], (char *const *)(uintptr_t)call->argv,
               (char *const *)(uintptr_t)call->env);
    _exit(r == 0 ? 127 : r);
}

/* Reads what is there without waiting; false: there will be no more. */
static bool take(int fd, char *said, size_t cap, size_t *n)
{
    char waste[512];

    for (;;) {
        bool room = *n + 1 < cap;
        ssize_t r = read(fd, room ? said + *n : waste, room ? cap - 1 - *n : sizeof(waste));

        if (r <= 0)
            return r < 0 && (errno == EAGAIN || errno == EINTR);
        if (room) {
            *n += (size_t)r;
            said[*n] = '\0';
        }
    }
}

/* A pipe with the text in it and nobody at its other end; the text must fit. */
static int input_fd(const char *text)
{
    size_t n = text ? strlen(text) : 0;
    int pipes[2];

    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    fcntl(pipes[1], F_SETFL, O_NONBLOCK);
    if (n > 0 && write(pipes[1], text, n) != (ssize_t)n)
        st_os_closep(&pipes[0]);
    close(pipes[1]);
    return pipes[0];
}

int st_os_ask(const st_os_call *call, char *said, size_t cap)
{
    ST_CLEANUP(st_os_closep) int in = input_fd(call->input);
    ST_CLEANUP(st_os_closep) int out = -1;
    int64_t until = st_os_mono_ms() + call->timeout_ms;
    int pipes[2], status = 0;
    size_t n = 0;
    pid_t gone = 0;

    if (cap > 0)
        said[0] = '\0';
    if (in < 0 || pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    out = pipes[0];
    pid_t pid = fork();

    if (pid == 0)
        be_asked(call, in, pipes[1]);
    close(pipes[1]);
    if (pid < 0)
        return -1;
    fcntl(out, F_SETFL, O_NONBLOCK);
    while (gone == 0) {
        struct pollfd ready = {.fd = out, .events = POLLIN};
        bool late = st_os_mono_ms() >= until;

        if (late)
            kill(pid, SIGKILL);
        else
            poll(&ready, 1, 5);
        if (!take(out, said, cap, &n))
            st_os_sleep_ms(1);
        gone = waitpid(pid, &status, late ? 0 : WNOHANG);
        if (gone < 0 && errno == EINTR)
            gone = 0;
        if (gone > 0 && late) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    take(out, said, cap, &n);
    if (gone < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool st_os_which(const char *name, char ret[PATH_MAX])
{
    static const char *const folders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                          "/usr/bin",        "/sbin",          "/bin"};

    if (name[0] == '/')
        return st_os_path(ret, NULL, "%s", name) == 0 && access(ret, X_OK) == 0;
    for (size_t i = 0; i < ST_ARRAY_LEN(folders); i++)
        if (st_os_path(ret, NULL, "%s/%s", folders[i], name) == 0 && access(ret, X_OK) == 0)
            return true;
    return false;
}

uint64_t st_os_birth(pid_t pid)
{
    char path[64], text[1024];
    uint64_t birth = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (st_os_peek(path, text, sizeof(text)) <= 0)
        return 0;
    /* The second field is the name in brackets and may contain anything; the 22nd is ours. */
    const char *p = strrchr(text, ')');

    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (p)
        birth = strtoull(p + 1, NULL, 10);
    return birth;
}
