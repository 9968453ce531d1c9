/* Files beneath a root, as a tenant who wants out lays them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/testing.h"
#include "beneath/beneath.h"

typedef struct box {
    char dir[64];
    int root;
} box;

static int set_up(void **state)
{
    static box b;
    st_err err;

    strcpy(b.dir, "/tmp/st-beneath-XXXXXX");
    assert_non_null(mkdtemp(b.dir));
    assert_ok(st_beneath_root(b.dir, &b.root, &err));
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    box *b = *state;
    int up = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    st_err err;

    close(b->root);
    assert_ok(st_beneath_remove(up, b->dir + 5, &err));
    assert_int_equal(access(b->dir, F_OK), -1);
    close(up);
    return 0;
}

static void put(int root, const char *path, const char *text)
{
    struct stat s;
    st_err err;
    int fd;

    assert_ok(st_beneath_create(root, path, &fd, &s, &err));
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void paths(void **state)
{
    static const char *const bad[] = {"..", "a/../b", "a/..", "../x", "a\nb", "a\x7f", "\xff"};
    char path[ST_BENEATH_PATH_MAX] = "kept", longest[2000];
    st_err err;

    (void)state;
    assert_ok(st_beneath_path("/a//b/./c/", path, &err));
    assert_string_equal(path, "a/b/c");
    assert_ok(st_beneath_path("", path, &err));
    assert_string_equal(path, ".");
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_beneath_path(bad[i], path, &err), ST_EINVAL, "");
    memset(longest, 'a', sizeof longest);
    longest[300] = '\0';
    assert_fails(st_beneath_path(longest, path, &err), ST_ELIMIT, "too long");
    for (size_t i = 0; i < sizeof longest - 1; i++)
        longest[i] = i % 2 ? '/' : 'b';
    longest[sizeof longest - 1] = '\0';
    assert_fails(st_beneath_path(longest, path, &err), ST_ELIMIT, "too long");
    assert_string_equal(path, ".");
}

static void links_and_pipes(void **state)
{
    box *b = *state;
    struct stat s;
    st_err err;
    int fd = -1;

    put(b->root, "a/b/file", "text");
    assert_int_equal(symlinkat("/etc/passwd", b->root, "out"), 0);
    assert_int_equal(symlinkat("a/b", b->root, "in"), 0);
    assert_int_equal(symlinkat("..", b->root, "up"), 0);
    assert_int_equal(mkfifoat(b->root, "pipe", 0666), 0);
    assert_ok(st_beneath_open(b->root, "a/b/file", &fd, &s, &err));
    assert_int_equal(s.st_size, 4);
    close(fd);
    assert_fails(st_beneath_open(b->root, "out", &fd, &s, &err), ST_EPERM, "link");
    assert_fails(st_beneath_open(b->root, "in/file", &fd, &s, &err), ST_EPERM, "link");
    assert_fails(st_beneath_open(b->root, "up/etc", &fd, &s, &err), ST_EPERM, "link");
    assert_fails(st_beneath_open(b->root, "pipe", &fd, &s, &err), ST_EPERM, "neither");
    assert_fails(st_beneath_open(b->root, "none", &fd, &s, &err), ST_ENOENT, "no file");
    assert_fails(st_beneath_open(b->root, "a/b/file/x", &fd, &s, &err), ST_ESTATE, "folder");
    assert_fails(st_beneath_create(b->root, "out", &fd, &s, &err), ST_EPERM, "link");
    assert_fails(st_beneath_create(b->root, "in/new", &fd, &s, &err), ST_ESTATE, "no folder");
    assert_fails(st_beneath_create(b->root, "pipe", &fd, &s, &err), ST_EPERM, "neither");
    assert_fails(st_beneath_create(b->root, "a/b", &fd, &s, &err), ST_ESTATE, "folder");
    assert_fails(st_beneath_rename(b->root, "a/b/file", "in/file2", &err), ST_ESTATE, "no folder");
    assert_ok(st_beneath_rename(b->root, "a/b/file", "moved", &err));
    assert_fails(st_beneath_unlink(b->root, ".", &err), ST_EINVAL, "whole");
    assert_fails(st_beneath_unlink(b->root, "a", &err), ST_ESTATE, "not empty");
    assert_ok(st_beneath_unlink(b->root, "out", &err)); /* the link, not what it names */
    assert_int_equal(access("/etc/passwd", F_OK), 0);
}

typedef struct heard {
    char text[200];
} heard;

static void hear(void *ctx, const st_beneath_entry *e)
{
    heard *h = ctx;
    size_t n = strlen(h->text);

    snprintf(h->text + n, sizeof h->text - n, "%c%s ", e->kind, e->name);
}

static void lists(void **state)
{
    box *b = *state;
    heard h = {""};
    bool more;
    st_err err;

    put(b->root, "c", "");
    put(b->root, "a", "");
    put(b->root, "b/x", "");
    assert_int_equal(symlinkat("a", b->root, "d"), 0);
    assert_ok(st_beneath_list(b->root, NULL, 3, hear, &h, &more, &err));
    assert_string_equal(h.text, "fa db fc ");
    assert_true(more);
    h.text[0] = '\0';
    assert_ok(st_beneath_list(b->root, "c", 3, hear, &h, &more, &err));
    assert_string_equal(h.text, "ld ");
    assert_false(more);
}

/* Deeper than there are descriptors: counted as far as it goes, and removed whatever it is. */
static void deep(void **state)
{
    box *b = *state;
    st_beneath_use use;
    int at = dup(b->root);
    st_err err;

    put(b->root, "file", "12345");
    assert_int_equal(linkat(b->root, "file", b->root, "again", 0), 0);
    assert_ok(st_beneath_count(b->root, 100, &use, &err));
    assert_int_equal(use.files, 2);
    assert_true(use.bytes > 0 && use.bytes <= 65536);
    for (int i = 0; i < 3000; i++) {
        int next;

        assert_int_equal(mkdirat(at, "d", 0700), 0);
        next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    close(at);
    assert_ok(st_beneath_count(b->root, 100, &use, &err));
    assert_int_equal(use.unread, 1);
    assert_fails(st_beneath_count(b->root, 10, &use, &err), ST_ELIMIT, "more than 10");
}

static void shared(void **state)
{
    box *b = *state;
    struct stat s;
    st_err err;
    char list[256];
    int fd;

    if (st_beneath_make(b->root, "v", 1048600, &err) == -ST_ESTATE)
        skip(); /* no access lists here */
    assert_fails(st_beneath_make(b->root, "v", 1048600, &err), ST_EEXIST, "there");
    put(b->root, "v/in/file", "x");
    assert_ok(st_beneath_open(b->root, "v/in/file", &fd, &s, &err));
    assert_true(fgetxattr(fd, "system.posix_acl_access", list, sizeof list) > 0);
    assert_int_equal(s.st_mode & 07, 0);
    assert_int_equal(s.st_mode & 060, 060); /* the mask: the group may */
    close(fd);
}

/* Whoever the two are, in whatever order: the kernel takes only lists that are in its own. */
static void friends(void **state)
{
    static const st_acl_friend pairs[][2] = {{{false, 70000}, {false, 5}},
                                             {{false, 5}, {false, 70000}},
                                             {{true, 70000}, {true, 5}},
                                             {{true, 5}, {false, 70000}},
                                             {{false, 9}, {true, 9}}};
    const box *b = *state;

    put(b->root, "mine", "x");
    for (size_t i = 0; i < ST_ARRAY_LEN(pairs); i++) {
        unsigned char list[ST_ACL_BYTES], again[ST_ACL_BYTES];
        ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

        st_strbuf_addf(&path, "%s/mine", b->dir);
        st_acl_write(pairs[i], list);
        if (setxattr(path.s, st_acl_names[0], list, sizeof list, 0) != 0 && errno == EOPNOTSUPP)
            skip();
        assert_int_equal(getxattr(path.s, st_acl_names[0], again, sizeof again), sizeof again);
        assert_memory_equal(list, again, sizeof again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test_setup_teardown(links_and_pipes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(friends, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
