/*
 * The node around tasks: what the probe finds, a full disk, floods of output, OCI images, and
 * killing without cgroup.kill. Skipped where containers cannot run.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing.h"
#include "run/cgroup.h"
#include "run/os.h"
#include "run/runtime.h"
#include "run/test/help.h"

static bench_node *node_of(void **state)
{
    bench_node *node = *state;

    if (!node->run)
        skip();
    return node;
}

static void the_probe_says_what_it_found(void **state)
{
    bench_node *node = node_of(state);
    st_run_finding found[ST_RUN_FINDINGS_MAX];
    size_t n = st_run_probe(&node->conf, found);

    assert_true(n >= 8);
    assert_null(st_run_probe_bad(found, n));
    for (size_t i = 0; i < n; i++) {
        assert_true(found[i].text[0] != '\0');
        /* Whoever reads a complaint is told what to do. */
        assert_true((found[i].verdict == ST_CHECK_OK) == (found[i].fix[0] == '\0'));
    }
    st_run_conf wrong = node->conf;

    wrong.libexec = "/no/such/folder";
    n = st_run_probe(&wrong, found);
    assert_non_null(st_run_probe_bad(found, n));
    assert_string_equal(st_run_probe_bad(found, n)->name, "programs");
}

static void without_a_working_runtime_nothing_starts(void **state)
{
    bench_node *node = node_of(state);
    st_run_conf conf = node->conf;
    st_run *other = NULL;
    st_err err = {0};
    st_run_task task;
    char id[ST_RUN_ID_MAX];
    st_run_spec spec = node_spec(node, "true", id);

    conf.runtime = "/bin/false";
    assert_ok(st_run_new(&conf, &other, &err));
    assert_ok(st_run_start(other, &spec, &err));
    assert_ok(st_run_wait(other, id, 30000, &task, &err));
    assert_int_equal(task.why, ST_RUN_WHY_START);
    st_run_free(other);
    conf.libexec = "/no/such/folder";
    assert_fails(st_run_new(&conf, &other, &err), ST_ENOENT, "stint-shim");
}

/* A start that fails for the node's reasons is not the job's failure: only what the runtime says of the task itself is. */
static void whose_fault_a_failed_start_is(void **state)
{
    static const struct {
        const char *what, *text;
        bool node;
    } rows[] = {
        {"kill -9 $$", "killed by signal 9", true},
        {"exit 1", "gave no reason", true},
        {"echo '{\"msg\": \"mkdir: No space left on device\"}' >\"$4\"; exit 1", "No space left",
         true},
        {"echo '{\"msg\": \"fork: Cannot allocate memory\"}' >\"$4\"; exit 1", "Cannot allocate",
         true},
        {"echo '{\"msg\": \"exec: x: not found in $PATH\"}' >\"$4\"; exit 1", "not found", false},
        {"echo '{\"level\": \"warning\"}' >\"$4\"; exit 1", "gave no reason", true},
    };
    bench_node *node = node_of(state);
    st_run_conf conf = node->conf;
    char path[PATH_MAX], text[1024], id[ST_RUN_ID_MAX];

    snprintf(path, sizeof path, "%s/whose", node->dir);
    conf.runtime = path;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_run_spec spec = node_spec(node, "true", id);
        st_run *run = NULL;
        st_err err = {0};
        st_run_task task;

        snprintf(text, sizeof text, "#!/bin/sh\n[ \"$7\" = run ] || exit 0\n%s\n", rows[i].what);
        assert_ok(st_os_write(path, text, strlen(text), 0755, &err));
        assert_ok(st_run_new(&conf, &run, &err));
        assert_ok(st_run_start(run, &spec, &err));
        assert_ok(st_run_wait(run, id, 30000, &task, &err));
        assert_int_equal(task.why, ST_RUN_WHY_START);
        if (task.node_fault != rows[i].node || !strstr(task.text, rows[i].text))
            print_error("row %zu: %d, %s\n", i, task.node_fault, task.text);
        assert_int_equal(task.node_fault, rows[i].node);
        assert_non_null(strstr(task.text, rows[i].text));
        assert_ok(st_run_remove(run, id, &err));
        st_run_free(run);
    }
}

/* A runtime that forgets what its mounts are to be, and of whose mounts nobody sees to it, is found out from inside. */
static void a_runtime_that_forgets_flags_is_not_taken(void **state)
{
    bench_node *node = node_of(state);
    st_run_finding found[ST_RUN_FINDINGS_MAX];
    const st_run_finding *bad;
    st_run_conf conf = node->conf;
    char path[PATH_MAX], text[2 * PATH_MAX];
    st_err err = {0};

    snprintf(path, sizeof path, "%s/forgetful", node->dir);
    conf.runtime = path;
    for (int forgets = 0; forgets < 2; forgets++) {
        snprintf(text, sizeof text,
                 "#!/bin/sh\n[ \"$3\" = run ] && %s /bin/sed -i 's/\"nosuid\",* *//g; "
                 "s/createContainer/poststop/' \"$5/config.json\"\nexec %s \"$@\"\n",
                 forgets ? "" : ":", st_run_runtime(node->run));
        assert_ok(st_os_write(path, text, strlen(text), 0755, &err));
        bad = st_run_probe_bad(found, st_run_probe(&conf, found));
        assert_int_equal(bad != NULL, forgets);
    }
    assert_string_equal(bad->name, "runtime");
    if (!strstr(bad->text, "the mount of /"))
        fail_msg("it says: %s", bad->text);
}

/* A stand-in for a runtime that counts its runs in `ran` and does `what` in each but the third. */
static void write_stand_in(const char *path, const char *ran, const char *what)
{
    char text[3 * PATH_MAX];
    st_err err = {0};

    snprintf(
        text, sizeof text,
        "#!/bin/sh\n[ \"$3\" = run ] || exit 0\necho x >>%s\n[ $(/bin/grep -c x %s) -eq 3 ] && "
        "exit 0\n%s\n",
        ran, ran, what);
    assert_ok(st_os_write(path, text, strlen(text), 0755, &err));
}

/* A runtime that somebody killed was not tried; one that says what is wrong is believed at once. */
static void a_killed_trial_is_repeated(void **state)
{
    bench_node *node = node_of(state);
    char path[PATH_MAX], ran[PATH_MAX], said[64];
    st_err err = {0};

    assert_ok(st_os_path(path, &err, "%s/stand-in", node->conf.state_dir));
    assert_ok(st_os_path(ran, &err, "%s/stand-in.ran", node->conf.state_dir));
    write_stand_in(path, ran, "kill -9 $$");
    assert_ok(st_runtime_try(node->run, path, &err));
    assert_int_equal(st_os_peek(ran, said, sizeof said), 6);
    assert_int_equal(unlink(ran), 0);
    write_stand_in(path, ran, "echo no such thing; exit 1");
    assert_fails(st_runtime_try(node->run, path, &err), ST_EDOWN, "no such thing");
    assert_int_equal(st_os_peek(ran, said, sizeof said), 2);
    assert_int_equal(unlink(ran), 0);
    assert_int_equal(unlink(path), 0);
}

static void a_flood_of_output_is_bounded(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX];
    static char buf[1 << 20];
    st_run_spec spec = node_spec(node, "yes 'a line of some length' | head -c 20000000", id);
    st_run_piece piece;
    st_err err = {0};

    spec.log_bytes = 256 << 10;
    st_run_task task = node_run(node, &spec, NULL, 0);

    assert_int_equal(task.status, 0);
    assert_int_equal(task.log_lost, 0);
    assert_ok(st_run_log_read(node->run, id, ST_RUN_OUT, 0, buf, sizeof(buf), &piece, &err));
    assert_int_equal(piece.end, 20000000);
    assert_true(piece.offset > 0 && piece.n <= (256 << 10) + 4096);
    assert_int_equal(strncmp(buf, "a line of some length\n", 22), 0);
}

static void a_full_disk_neither_blocks_nor_forgets(void **state)
{
    bench_node *node = node_of(state);
    char id[ST_RUN_ID_MAX], small[PATH_MAX], out[256];
    st_run_conf conf = node->conf;
    st_run *run = NULL;
    st_run_task task;
    st_run_piece piece;
    st_err err = {0};
    st_run_spec spec = node_spec(node, "yes xxxxxxxxxxxxxxx | head -c 8000000; exit 6", id);

    node_storage(node, "small", 0, small);
    assert_int_equal(mount("tmpfs", small, "tmpfs", 0, "size=2m,mode=711"), 0);
    conf.state_dir = small;
    conf.runtime = st_run_runtime(node->run);
    assert_ok(st_run_new(&conf, &run, &err));
    assert_ok(st_run_start(run, &spec, &err));
    assert_ok(st_run_wait(run, id, 60000, &task, &err));
    assert_int_equal(task.why, ST_RUN_WHY_EXIT);
    assert_int_equal(task.status, 6);
    assert_true(task.log_lost > 4000000);
    assert_ok(st_run_log_read(run, id, ST_RUN_OUT, 0, out, sizeof(out), &piece, &err));
    assert_int_equal(piece.n, sizeof(out)); /* what came first is kept */
    assert_fails(st_run_clear(run, &err), ST_ESTATE, "still holds 1");
    assert_ok(st_run_remove(run, id, &err));
    st_run_free(run);
    assert_int_equal(umount2(small, 0), 0); /* and nothing of the task is left in there */
}

/* ---- OCI images ------------------------------------------------------------------------- */

static void run_or_fail(const char *const argv[])
{
    char said[512];

    if (st_os_run(argv, said, sizeof(said)) != 0)
        fail_msg("%s: %s", argv[0], said);
}

/* Moves a file to where its sum says; the digest, and its size. */
static long long add_blob(const char *image, const char *file, char digest[80])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    unsigned char sum[crypto_hash_sha256_BYTES];
    char hex[65], path[PATH_MAX];
    st_err err = {0};

    assert_ok(st_file_read(file, 64 << 20, &text, &err));
    crypto_hash_sha256(sum, (const unsigned char *)text.s, text.n);
    sodium_bin2hex(hex, sizeof(hex), sum, sizeof(sum));
    snprintf(path, sizeof(path), "%s/blobs/sha256/%s", image, hex);
    assert_int_equal(rename(file, path), 0);
    snprintf(digest, 80, "sha256:%s", hex);
    return (long long)text.n;
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX];
    st_err err = {0};

    assert_ok(st_os_path(path, &err, "%s/%s", dir, name));
    assert_ok(st_os_write(path, text, strlen(text), 0644, &err));
}

/* Two layers: busybox and two files; then one file less and one changed. */
static void make_image(const bench_node *node, char image[PATH_MAX], char layers[2][80])
{
    char dir[PATH_MAX], bin[PATH_MAX], busybox[PATH_MAX], tar[PATH_MAX], file[PATH_MAX], text[512];
    char manifest[80];
    long long sizes[2];
    st_err err = {0};

    snprintf(image, PATH_MAX, "%s/layout", node->dir);
    snprintf(bin, sizeof(bin), "%s/layout/blobs/sha256", node->dir);
    assert_ok(st_os_mkdirs(bin, 0755, &err));
    assert_true(st_os_which("tar", tar) && st_os_which("busybox", busybox));
    snprintf(file, sizeof(file), "%s/layer", node->dir);
    for (int i = 0; i < 2; i++) {
        snprintf(dir, sizeof(dir), "%s/layer-%d", node->dir, i);
        snprintf(bin, sizeof(bin), "%s/layer-%d/bin", node->dir, i);
        assert_ok(st_os_mkdirs(bin, 0755, &err));
        const char *const copy[] = {"/bin/cp", busybox, bin, NULL};

        if (i == 0)
            run_or_fail(copy);
        put(dir, "version", i == 0 ? "one\n" : "two\n");
        put(dir, i == 0 ? "gone" : ".wh.gone", "");
        const char *const pack[] = {tar, "-C", dir, "-czf", file, ".", NULL};

        run_or_fail(pack);
        sizes[i] = add_blob(image, file, layers[i]);
    }
    snprintf(text, sizeof(text),
             "{\"layers\":[{\"digest\":\"%s\",\"size\":%lld},{\"digest\":\"%s\",\"size\":%lld}]}",
             layers[0], sizes[0], layers[1], sizes[1]);
    put(node->dir, "manifest", text);
    snprintf(file, sizeof(file), "%s/manifest", node->dir);
    long long size = add_blob(image, file, manifest);

    snprintf(text, sizeof(text), "{\"manifests\":[{\"digest\":\"%s\",\"size\":%lld}]}", manifest,
             size);
    put(image, "index.json", text);
    put(image, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
}

static void an_oci_layout_as_image(void **state)
{
    bench_node *node = node_of(state);
    static const char *const command[] = {
        "/bin/busybox", "sh", "-c",
        "cd /; busybox cat version; busybox ls gone 2>&1; busybox "
        "touch /tmp/x && echo wrote",
        NULL};
    char id[ST_RUN_ID_MAX], image[PATH_MAX], layers[2][80], out[256], path[PATH_MAX];
    struct stat st;

    if (!st_os_which("busybox", path)) {
        printf("SKIP: busybox is not installed\n");
        skip();
    }
    make_image(node, image, layers);
    for (int i = 0; i < 2; i++) { /* the second time from the cache */
        st_run_spec spec = node_spec(node, NULL, id);

        spec.command = command;
        spec.image = (st_run_image){.kind = ST_IMAGE_OCI, .root = node->dir, .path = "layout"};
        st_run_task task = node_run(node, &spec, out, sizeof(out));

        if (task.why == ST_RUN_WHY_START)
            fail_msg("%s", task.text);
        assert_string_equal(out, "two\nls: gone: No such file or directory\nwrote\n");
    }
    snprintf(path, sizeof(path), "%s/images/site", node->state);
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    /* A blob that was changed is not unpacked; with another tenant's cache nothing is shared. */
    snprintf(path, sizeof(path), "%s/layout/blobs/sha256/%s", node->dir, layers[1] + 7);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    st_run_spec spec = node_spec(node, NULL, id);

    spec.command = command;
    assert_int_equal(chown(node->dir, (uid_t)spec.uid, (gid_t)spec.gid), 0);
    spec.image =
        (st_run_image){.kind = ST_IMAGE_OCI, .root = node->dir, .path = "layout", .own = true};
    st_run_task task = node_run(node, &spec, out, sizeof(out));

    assert_int_equal(task.why, ST_RUN_WHY_START);
    assert_non_null(strstr(task.text, "damaged"));
    assert_int_equal(chown(node->dir, 0, 0), 0);
}

/* ---- killing by hand -------------------------------------------------------------------- */

static void a_group_is_killed_without_cgroup_kill(void **state)
{
    bench_node *node = node_of(state);
    char group[PATH_MAX], procs[PATH_MAX], pid_text[32];
    st_cg cg;
    pid_t pids[3];

    st_cg_find(&cg);
    if (!cg.freezer[0]) {
        printf("SKIP: no freezer of cgroup version 1 on this machine\n");
        skip();
    }
    snprintf(group, sizeof(group), "%s/%s-hand", cg.freezer, node->cgroup);
    snprintf(procs, sizeof(procs), "%s/%s-hand/cgroup.procs", cg.freezer, node->cgroup);
    assert_int_equal(mkdir(group, 0755), 0);
    for (int i = 0; i < 3; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            signal(SIGTERM, SIG_IGN);
            for (;;)
                pause();
        }
        snprintf(pid_text, sizeof(pid_text), "%d", (int)pids[i]);
        assert_int_equal(st_os_poke(procs, pid_text), 0);
    }
    snprintf(group, sizeof(group), "%s-hand", node->cgroup);
    assert_int_equal(st_cg_count(&cg, group), 3);
    st_cg_kill(&cg, group, true);
    for (int i = 0; i < 3; i++) {
        int status = 0;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    assert_int_equal(st_cg_count(&cg, group), 0);
    st_cg_remove(&cg, group);
}

static int open_node(void **state)
{
    static bench_node node;

    node_open(&node);
    *state = &node;
    return sodium_init() < 0;
}

static int close_node(void **state)
{
    bench_node *node = *state;

    if (node->run)
        node_close(node);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_probe_says_what_it_found),
        cmocka_unit_test(without_a_working_runtime_nothing_starts),
        cmocka_unit_test(whose_fault_a_failed_start_is),
        cmocka_unit_test(a_runtime_that_forgets_flags_is_not_taken),
        cmocka_unit_test(a_killed_trial_is_repeated),
        cmocka_unit_test(a_flood_of_output_is_bounded),
        cmocka_unit_test(a_full_disk_neither_blocks_nor_forgets),
        cmocka_unit_test(an_oci_layout_as_image),
        cmocka_unit_test(a_group_is_killed_without_cgroup_kill),
    };

    return cmocka_run_group_tests(tests, open_node, close_node);
}
