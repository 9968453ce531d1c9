/* A tar stream; see the header. */
#include "run/tar.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"

/* Where the fields of a header are. */
#define AT_NAME   0
#define AT_MODE   100
#define AT_SIZE   124
#define AT_MTIME  136
#define AT_SUM    148
#define AT_KIND   156
#define AT_LINK   157
#define AT_MAGIC  257
#define AT_PREFIX 345

void st_tar_init(st_tar *tar, st_tar_pull pull, void *ctx)
{
    *tar = (st_tar){.pull = pull, .ctx = ctx, .size = -1, .mtime_s = -1};
}

int st_tar_name(const char *said, char ret[PATH_MAX], int *ret_depth, st_err *err)
{
    char q[ST_QUOTE_MAX];
    size_t n = 0;
    int depth = 0;

    while (*said) {
        size_t len = strcspn(said, "/");

        if (len == 2 && said[0] == '.' && said[1] == '.')
            return st_fail(err, ST_EINVAL, "a name in the image leads upwards by \"..\"");
        if (len > ST_TAR_PART_MAX)
            return st_fail(err, ST_ELIMIT,
                           "a name in the image has %zu bytes between two slashes, at most %d", len,
                           ST_TAR_PART_MAX);
        if (len > 0 && !(len == 1 && said[0] == '.')) {
            if (n + len + 2 > PATH_MAX)
                return st_fail(err, ST_ELIMIT, "a name in the image is too long: %s",
                               st_quote(q, ret));
            if (n > 0)
                ret[n++] = '/';
            memcpy(ret + n, said, len);
            n += len;
            depth++;
        }
        said += len + (said[len] == '/');
    }
    ret[n] = '\0';
    *ret_depth = depth;
    return 0;
}

/* Octal text, or the number itself with the top bit set. -1: neither, negative, or too large. */
static int64_t number(const unsigned char *field, size_t n)
{
    int64_t value = 0;
    size_t i = 0;

    if (field[0] & 0x80) {
        if (field[0] != 0x80)
            return -1;
        for (i = 1; i < n; i++) {
            if (value > INT64_MAX >> 8)
                return -1;
            value = value << 8 | field[i];
        }
        return value;
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value > INT64_MAX >> 3)
            return -1;
        value = value << 3 | (field[i] - '0');
    }
    return i == n || field[i] == '\0' || field[i] == ' ' ? value : -1;
}

static bool sum_fits(const unsigned char head[ST_TAR_BLOCK])
{
    int64_t sum = 0;

    for (int i = 0; i < ST_TAR_BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + 8 ? ' ' : head[i];
    return number(head + AT_SUM, 8) == sum;
}

static bool all_zero(const unsigned char *buf, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (buf[i])
            return false;
    return true;
}

static int cut_short(st_err *err)
{
    return st_fail(err, ST_ECORRUPT, "a layer of the image ends in the middle of a file");
}

static int pull_all(st_tar *tar, unsigned char *buf, size_t n, st_err *err)
{
    size_t got = 0;
    int r = tar->pull(tar->ctx, buf, n, &got, err);

    return r < 0 ? r : got < n ? cut_short(err) : 0;
}

int st_tar_body(st_tar *tar, unsigned char *buf, size_t n, size_t *ret, st_err *err)
{
    size_t want = (size_t)ST_MIN((int64_t)n, tar->left);
    int r = want > 0 ? pull_all(tar, buf, want, err) : 0;

    if (r < 0)
        return r;
    tar->left -= (int64_t)want;
    *ret = want;
    return 0;
}

static int pass_over(st_tar *tar, st_err *err)
{
    unsigned char waste[8192];
    size_t n = 1;
    int r = 0;

    while (r == 0 && tar->left > 0)
        r = st_tar_body(tar, waste, sizeof(waste), &n, err);
    if (r == 0 && tar->pad > 0)
        r = pull_all(tar, waste, (size_t)tar->pad, err);
    tar->pad = 0;
    return r;
}

static void begin_body(st_tar *tar, int64_t size)
{
    tar->left = size;
    tar->pad = (int)(-size & (ST_TAR_BLOCK - 1));
}

/* The body of an extended header, NUL-terminated, malloc'ed. */
static int take_text(st_tar *tar, int64_t size, size_t max, char **ret, st_err *err)
{
    ST_CLEANUP(st_freep) char *text = NULL;
    int r;

    if (size < 0 || (uint64_t)size > max)
        return st_fail(err, ST_ELIMIT,
                       "an extended header in the image has %lld bytes, at most %zu",
                       (long long)size, max);
    text = st_xmalloc((size_t)size + 1);
    begin_body(tar, size);
    r = size > 0 ? pull_all(tar, (unsigned char *)text, (size_t)size, err) : 0;
    if (r < 0)
        return r;
    text[size] = '\0';
    tar->left = 0;
    *ret = ST_TAKE(text);
    return pass_over(tar, err);
}

static int take_long(st_tar *tar, int64_t size, char to[PATH_MAX], st_err *err)
{
    ST_CLEANUP(st_freep) char *text = NULL;
    int r = take_text(tar, size, PATH_MAX - 1, &text, err);

    if (r == 0)
        memcpy(to, text, strlen(text) + 1);
    return r;
}

static int bad_pax(st_err *err)
{
    return st_fail(err, ST_ECORRUPT, "an extended header in the image is damaged");
}

static int pax_text(const char *value, size_t n, char to[PATH_MAX], st_err *err)
{
    if (n >= PATH_MAX || memchr(value, '\0', n))
        return bad_pax(err);
    memcpy(to, value, n);
    to[n] = '\0';
    return 0;
}

static int pax_number(const char *value, size_t n, int64_t *ret, st_err *err)
{
    int64_t x = 0;
    size_t i = 0;

    for (; i < n && value[i] >= '0' && value[i] <= '9'; i++) {
        if (x > (INT64_MAX - 9) / 10)
            return bad_pax(err);
        x = x * 10 + (value[i] - '0');
    }
    if (i == 0 || (i < n && value[i] != '.')) /* a time may have a fraction */
        return bad_pax(err);
    *ret = x;
    return 0;
}

static bool key_is(const char *at, size_t n, const char *key)
{
    return strlen(key) == n && memcmp(at, key, n) == 0;
}

static int pax_record(st_tar *tar, const char *key, size_t nkey, const char *value, size_t n,
                      st_err *err)
{
    if (nkey >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
        return st_fail(err, ST_EINVAL,
                       "the image has a sparse file; pack it again without --sparse");
    if (key_is(key, nkey, "path"))
        return pax_text(value, n, tar->name, err);
    if (key_is(key, nkey, "linkpath"))
        return pax_text(value, n, tar->link, err);
    if (key_is(key, nkey, "size"))
        return pax_number(value, n, &tar->size, err);
    if (key_is(key, nkey, "mtime") && n > 0 && value[0] != '-')
        return pax_number(value, n, &tar->mtime_s, err);
    return 0; /* owners, attributes, capabilities: none of them is kept */
}

/* "LENGTH KEY=VALUE\n", over and over; the length counts itself and the line end. */
static int take_pax(st_tar *tar, int64_t size, bool for_all, st_err *err)
{
    ST_CLEANUP(st_freep) char *text = NULL;
    int r = take_text(tar, size, ST_TAR_PAX_MAX, &text, err);

    for (char *at = text; r == 0 && !for_all && at < text + size;) {
        size_t room = (size_t)(text + size - at), len = 0;
        size_t digits = strspn(at, "0123456789");

        for (size_t i = 0; i < digits && len <= ST_TAR_PAX_MAX; i++)
            len = len * 10 + (size_t)(at[i] - '0');
        if (digits == 0 || at[digits] != ' ' || len > room || len < digits + 3 ||
            at[len - 1] != '\n')
            return bad_pax(err);
        const char *key = at + digits + 1, *end = at + len - 1;
        const char *equals = memchr(key, '=', (size_t)(end - key));

        if (!equals)
            return bad_pax(err);
        r = pax_record(tar, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1),
                       err);
        at += len;
    }
    return r;
}

static void join_name(const unsigned char *head, char ret[PATH_MAX])
{
    size_t n = 0;

    if (memcmp(head + AT_MAGIC, "ustar", 6) == 0 && head[AT_PREFIX]) {
        n = strnlen((const char *)head + AT_PREFIX, 155);
        memcpy(ret, head + AT_PREFIX, n);
        ret[n++] = '/';
    }
    size_t len = strnlen((const char *)head + AT_NAME, 100);

    memcpy(ret + n, head + AT_NAME, len);
    ret[n + len] = '\0';
}

static st_tar_kind kind_of(char type, const char *name)
{
    size_t n = strlen(name);

    switch (type) {
    case '\0':
    case '0':
    case '7':
        return n > 0 && name[n - 1] == '/' ? ST_TAR_FOLDER : ST_TAR_FILE;
    case '1':
        return ST_TAR_HARDLINK;
    case '2':
        return ST_TAR_SYMLINK;
    case '5':
        return ST_TAR_FOLDER;
    default:
        return ST_TAR_OTHER;
    }
}

static int finish(st_tar *tar, const unsigned char *head, int64_t size, st_tar_entry *e,
                  st_err *err)
{
    char name[PATH_MAX], link[PATH_MAX] = "";
    int ignored, r;

    if (tar->name[0])
        memcpy(name, tar->name, sizeof(name));
    else
        join_name(head, name);
    if (tar->link[0])
        memcpy(link, tar->link, sizeof(link));
    else
        memcpy(link, head + AT_LINK, strnlen((const char *)head + AT_LINK, 100));
    e->kind = kind_of((char)head[AT_KIND], name);
    e->mode = (unsigned)(number(head + AT_MODE, 8) & 07777);
    e->size = tar->size >= 0 ? tar->size : size;
    e->mtime_s = tar->mtime_s >= 0 ? tar->mtime_s : ST_MAX(number(head + AT_MTIME, 12), 0);
    e->link[0] = '\0';
    tar->name[0] = tar->link[0] = '\0';
    tar->size = tar->mtime_s = -1;
    if ((r = st_tar_name(name, e->name, &e->depth, err)) != 0)
        return r;
    if (e->kind == ST_TAR_HARDLINK && (r = st_tar_name(link, e->link, &ignored, err)) != 0)
        return r;
    if (e->kind == ST_TAR_SYMLINK)
        memcpy(e->link, link, sizeof(link));
    /* Links have no body, whatever the header says of the size of what they point to. */
    if (e->kind == ST_TAR_HARDLINK || e->kind == ST_TAR_SYMLINK || e->kind == ST_TAR_FOLDER)
        e->size = 0;
    begin_body(tar, e->size);
    return 1;
}

int st_tar_next(st_tar *tar, st_tar_entry *ret, st_err *err)
{
    unsigned char head[ST_TAR_BLOCK];
    size_t got = 0;
    int r = pass_over(tar, err);

    for (; r == 0;) {
        if ((r = tar->pull(tar->ctx, head, sizeof(head), &got, err)) < 0)
            return r;
        if (got == 0 || (got == sizeof(head) && all_zero(head, sizeof(head))))
            return 0;
        if (got < sizeof(head))
            return cut_short(err);
        if (!sum_fits(head))
            return st_fail(err, ST_ECORRUPT, "a layer of the image is not a tar stream");
        int64_t size = number(head + AT_SIZE, 12);

        if (size < 0)
            return st_fail(err, ST_ECORRUPT, "a file in the image has no size that could be");
        switch (head[AT_KIND]) {
        case 'L':
            r = take_long(tar, size, tar->name, err);
            break;
        case 'K':
            r = take_long(tar, size, tar->link, err);
            break;
        case 'x':
        case 'g':
            r = take_pax(tar, size, head[AT_KIND] == 'g', err);
            break;
        case 'S':
            return st_fail(err, ST_EINVAL,
                           "the image has a sparse file; pack it again without --sparse");
        default:
            return finish(tar, head, size, ret, err);
        }
    }
    return r;
}
