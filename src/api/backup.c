/*
 * A copy of the store, in the one folder that the site has for them: the caller chooses a name there and nothing else.
 * The row in the audit log comes first, so that no copy is made without one. It is answered where all commands are, in the
 * loop's thread: there an Idempotency-Key keeps its answer (api/keyed.c).
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/quote.h"

#define NAME_LEN 128

typedef struct backup {
    st_cmd_note note; /* first */
    st_api *api;
    st_call *call;
    char name[NAME_LEN + 1];
    char *path;
    st_err err;
} backup;

static void backup_free(backup *b)
{
    free(b->path);
    free(b);
}

/* The answer comes last: with it the call, and whoever made it, may be gone. */
static void answer(st_cmd *cmd, const st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    backup *b = (backup *)cmd;

    (void)err; /* whatever became of the row: the copy is there or is not */
    if (b->err.code) {
        st_call_fail(b->call, &b->err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "file", b->path);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(b->call, 201, NULL, &out);
    }
    backup_free(b);
}

static int run_nothing(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)tx, (void)cmd, (void)err;
    return 0;
}

/* The folder is made when it is first needed; whatever is in its place instead is refused. */
static int find_place(backup *b, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    const char *dir = b->api->options.backup_dir;
    struct stat st;

    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return st_fail(err, ST_ESTATE, "the folder for backups, %s, cannot be made: %s", dir,
                       strerror(errno));
    st_strbuf_addf(&path, "%s/%s", dir, b->name);
    if (lstat(path.s, &st) == 0)
        return st_fail(err, ST_EEXIST, "%s is there already, and no backup replaces another",
                       path.s);
    b->path = st_strbuf_take(&path);
    return 0;
}

/* It takes a while and must not hold up a server's thread: it has one of its own. */
static void *run(void *arg)
{
    backup *b = arg;
    int r = find_place(b, &b->err);

    if (r == 0)
        r = st_store_backup(st_control_store(b->api->control), b->path, &b->err);
    if (r < 0)
        b->note.verb = "store.backup_failed";
    else
        b->note.cmd.run = run_nothing;
    b->note.cmd.done = answer;
    b->note.cmd.key = NULL;
    b->note.cmd.keys_itself = true;
    st_api_post(b->api, b->call, &b->note.cmd);
    return NULL;
}

static void noted(st_cmd *cmd, const st_err *err)
{
    backup *b = (backup *)cmd;
    pthread_t thread;

    if (!err && pthread_create(&thread, NULL, run, b) == 0) {
        pthread_detach(thread);
        return;
    }
    if (!err)
        st_fail(&b->err, ST_EDOWN, "no thread could be started for the backup");
    st_call_fail(b->call, err ? err : &b->err);
    backup_free(b);
}

static int read_name(backup *b, st_err *err)
{
    static const char *const keys[] = {"file", NULL};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    time_t now = (time_t)(b->api->options.clock(b->api->options.ctx) / 1000);
    const st_doc_node *node;
    const char *name = NULL;
    char q[ST_QUOTE_MAX];
    struct tm tm;
    int r = st_call_doc(b->call, &doc, err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_doc_check_keys(doc, st_doc_root(doc), keys, err);
    if (r < 0)
        return r;
    node = st_doc_get(st_doc_root(doc), "file");
    if (node)
        r = st_doc_str(doc, node, &name, err);
    if (r == 0 && name && !st_plain_name(name, NAME_LEN))
        r = st_fail(err, ST_EINVAL,
                    "%s cannot be a backup's name: letters, digits, ., - and _, without a folder; "
                    "backups are written into %s",
                    st_quote(q, name), b->api->options.backup_dir);
    if (r == 0 && name)
        memcpy(b->name, name, strlen(name) + 1);
    if (r == 0 && !name && gmtime_r(&now, &tm))
        strftime(b->name, sizeof b->name, "stint-%Y%m%dT%H%M%SZ.db", &tm);
    return r;
}

void st_api_backup(st_call *call, void *ctx)
{
    backup *b = st_xcalloc(1, sizeof *b);
    st_err err = {0};
    int r;

    b->api = ctx;
    b->call = call;
    b->note = (st_cmd_note){.who = *st_api_who(call), .verb = "store.backup", .account = ""};
    r = read_name(b, &err);
    if (r < 0) {
        st_call_fail(call, &err);
        backup_free(b);
        return;
    }
    b->note.target = b->name;
    st_cmd_note_init(&b->note);
    b->note.cmd.done = noted;
    st_call_defer(call);
    st_api_post(b->api, b->call, &b->note.cmd);
}
