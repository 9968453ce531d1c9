/*
 * Reading and writing profiles (cli/profile.h).
 */
#include "cli/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/doc.h"
#include "base/mem.h"
#include "base/net.h"
#include "base/quote.h"

void st_profile_done(st_cli_profile *p)
{
    if (p->token)
        explicit_bzero(p->token, strlen(p->token));
    free(p->name);
    free(p->url);
    free(p->token);
    free(p->ca);
    *p = (st_cli_profile){0};
}

void st_profiles_done(st_profiles *p)
{
    for (size_t i = 0; i < p->all.n; i++)
        st_profile_done(&p->all.v[i]);
    st_vec_free(&p->all);
    free(p->current);
    *p = (st_profiles){0};
}

int st_profiles_path(st_strbuf *ret, st_err *err)
{
    const char *path = getenv("STINT_CONFIG"), *home;

    if (path && *path) {
        st_strbuf_add(ret, path);
    } else if ((home = getenv("XDG_CONFIG_HOME")) && *home) {
        st_strbuf_addf(ret, "%s/stint/config", home);
    } else if ((home = getenv("HOME")) && *home) {
        st_strbuf_addf(ret, "%s/.config/stint/config", home);
    } else {
        return st_fail(err, ST_EINVAL,
                       "there is no home directory to keep logins in: set STINT_CONFIG to a file");
    }
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int read_text(const st_doc *doc, const st_doc_node *map, const char *key, char **ret,
                     st_err *err)
{
    const st_doc_node *node = st_doc_get(map, key);
    const char *text;
    int r;

    if (!node)
        return 0;
    r = st_doc_str(doc, node, &text, err);
    if (r == 0)
        *ret = st_xstrdup(text);
    return r;
}

static int read_profile(const st_doc *doc, const st_doc_node *map, st_cli_profile *ret, st_err *err)
{
    static const char *const keys[] = {"url", "token", "ca", NULL};
    int r = st_doc_expect(doc, map, ST_DOC_MAP, err);

    if (r == 0)
        r = st_doc_check_keys(doc, map, keys, err);
    if (r == 0)
        r = read_text(doc, map, "url", &ret->url, err);
    if (r == 0)
        r = read_text(doc, map, "token", &ret->token, err);
    if (r == 0)
        r = read_text(doc, map, "ca", &ret->ca, err);
    if (r == 0 && !ret->url)
        r = st_doc_fail(doc, map, err, ST_EINVAL, "profile %s has no url", map->key);
    if (r == 0)
        ret->name = st_xstrdup(map->key);
    return r;
}

static int read_profiles(const st_doc *doc, st_profiles *ret, st_err *err)
{
    static const char *const keys[] = {"current", "profiles", NULL};
    const st_doc_node *root = st_doc_root(doc), *list;
    int r = st_doc_expect(doc, root, ST_DOC_MAP, err);

    if (r == 0)
        r = st_doc_check_keys(doc, root, keys, err);
    if (r == 0)
        r = read_text(doc, root, "current", &ret->current, err);
    list = r == 0 ? st_doc_get(root, "profiles") : NULL;
    if (list && list->kind != ST_DOC_NULL)
        r = st_doc_expect(doc, list, ST_DOC_MAP, err);
    for (const st_doc_node *n = r == 0 && list ? list->child : NULL; r == 0 && n; n = n->next) {
        st_cli_profile p = {0};

        r = read_profile(doc, n, &p, err);
        if (r == 0)
            st_vec_push(&ret->all, p);
        else
            st_profile_done(&p);
    }
    return r;
}

int st_profiles_load(const char *path, st_profiles *ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_profiles p = {0};
    struct stat st;
    int r;

    if (stat(path, &st) < 0) {
        if (errno != ENOENT)
            return st_fail(err, ST_EIO, "%s: cannot be read: %s", path, strerror(errno));
        *ret = p;
        return 0;
    }
    if (st.st_mode & 077)
        return st_fail(err, ST_EPERM,
                       "%s: others can read it (mode %04o), and it holds tokens: run `chmod 600 "
                       "%s`",
                       path, (unsigned)st.st_mode & 07777u, path);
    r = st_doc_load(path, &doc, err);
    if (r == 0)
        r = read_profiles(doc, &p, err);
    if (r < 0) {
        st_profiles_done(&p);
        return r;
    }
    *ret = p;
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int make_parent(const char *path, st_err *err)
{
    ST_CLEANUP(st_freep) char *dir = st_xstrdup(path);

    for (char *at = dir + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        if (mkdir(dir, 0700) < 0 && errno != EEXIST)
            return st_fail(err, ST_EIO, "%s: cannot be made: %s", dir, strerror(errno));
        *at = '/';
    }
    return 0;
}

static void add_pair(st_strbuf *out, const char *sep, const char *key, const char *value)
{
    if (!value)
        return;
    st_strbuf_addf(out, "%s%s: ", sep, key);
    st_quote_json(out, value);
}

static void write_text(const st_profiles *p, st_strbuf *out)
{
    if (p->current)
        add_pair(out, "", "current", p->current);
    st_strbuf_add(out, p->current ? "\nprofiles:\n" : "profiles:\n");
    for (size_t i = 0; i < p->all.n; i++) {
        const st_cli_profile *one = &p->all.v[i];

        st_strbuf_add(out, "  ");
        st_quote_json(out, one->name);
        add_pair(out, ": {", "url", one->url);
        add_pair(out, ", ", "token", one->token);
        add_pair(out, ", ", "ca", one->ca);
        st_strbuf_add(out, "}\n");
    }
}

static int write_file(const char *path, const st_strbuf *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool bad;

    if (fd < 0)
        return -1;
    bad = fchmod(fd, 0600) < 0 || write(fd, st_strbuf_str(text), text->n) != (ssize_t)text->n ||
          fsync(fd) < 0;
    return close(fd) < 0 || bad ? -1 : 0;
}

/* Beside it first, then over it: whoever reads at that moment sees one or the other. */
int st_profiles_save(const char *path, const st_profiles *profiles, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0}, beside = {0};
    int r = make_parent(path, err);

    if (r < 0)
        return r;
    write_text(profiles, &text);
    st_strbuf_addf(&beside, "%s.new", path);
    r = write_file(st_strbuf_str(&beside), &text);
    explicit_bzero(text.s, text.n);
    if (r == 0 && rename(st_strbuf_str(&beside), path) == 0)
        return 0;
    r = st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    unlink(st_strbuf_str(&beside));
    return r;
}

/* ---- choosing ----------------------------------------------------------------------------- */

st_cli_profile *st_profiles_find(const st_profiles *profiles, const char *name)
{
    for (size_t i = 0; i < profiles->all.n; i++)
        if (strcmp(profiles->all.v[i].name, name) == 0)
            return &profiles->all.v[i];
    return NULL;
}

void st_profiles_put(st_profiles *profiles, st_cli_profile *p)
{
    st_cli_profile *old = st_profiles_find(profiles, p->name);

    if (old) {
        st_profile_done(old);
        *old = *p;
    } else {
        st_vec_push(&profiles->all, *p);
    }
    *p = (st_cli_profile){0};
}

bool st_profiles_remove(st_profiles *profiles, const char *name)
{
    st_cli_profile *p = st_profiles_find(profiles, name);

    if (!p)
        return false;
    st_profile_done(p);
    st_vec_remove(&profiles->all, p - profiles->all.v);
    return true;
}

int st_profile_check_url(const char *url, st_err *err)
{
    const char *insecure = getenv("STINT_INSECURE");
    char q[ST_QUOTE_MAX];

    if (strncmp(url, "unix:", 5) == 0 && url[5])
        return 0;
    if (strncmp(url, "https://", 8) == 0 && url[8])
        return 0;
    if (strncmp(url, "http://", 7) != 0 || !url[7])
        return st_fail(err, ST_EINVAL,
                       "%s is no address of stintd: it is https://HOST:PORT, http://HOST:PORT or "
                       "unix:PATH",
                       st_quote(q, url));
    if (st_net_loopback(url + 7) || (insecure && strcmp(insecure, "1") == 0))
        return 0;
    return st_fail(err, ST_EINVAL,
                   "%s would carry your token in the clear: use https://, or set STINT_INSECURE=1 "
                   "if the network is yours alone",
                   st_quote(q, url));
}

static const char *env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static char *copy(const char *text)
{
    return text ? st_xstrdup(text) : NULL;
}

/* Lays the environment over the profile p, which may be NULL. */
static int lay(const st_cli_profile *p, st_cli_profile *ret, st_err *err)
{
    const char *url = env("STINT_URL"), *token = env("STINT_TOKEN"), *ca = env("STINT_CA");
    int r;

    if (p && url && strcmp(p->url, url) != 0)
        p = NULL; /* its token is for another server */
    if (p) {
        url = p->url;
        token = token ? token : p->token;
        ca = ca ? ca : p->ca;
    }
    if (!url)
        return st_fail(err, ST_EINVAL,
                       "where is stintd? Run `stint login --url URL`, or set STINT_URL");
    r = st_profile_check_url(url, err);
    if (r == 0)
        *ret = (st_cli_profile){copy(p ? p->name : NULL), copy(url), copy(token), copy(ca)};
    return r;
}

int st_profile_now(st_cli_profile *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_profiles_done) st_profiles all = {0};
    const char *name = env("STINT_PROFILE");
    const st_cli_profile *p;
    char q[ST_QUOTE_MAX];
    int r = 0;

    if (!name && env("STINT_URL") && env("STINT_TOKEN"))
        return lay(NULL, ret, err);
    r = st_profiles_path(&path, err);
    if (r == 0)
        r = st_profiles_load(st_strbuf_str(&path), &all, err);
    if (r < 0)
        return r;
    p = st_profiles_find(&all, name ? name : all.current ? all.current : ST_PROFILE_DEFAULT);
    if (name && !p)
        return st_fail(err, ST_ENOENT,
                       "there is no login %s in %s (STINT_PROFILE names it): run `stint login "
                       "--as %s`",
                       st_quote(q, name), st_strbuf_str(&path), name);
    return lay(p, ret, err);
}
