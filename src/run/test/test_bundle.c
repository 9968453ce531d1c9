/*
 * What is written for the runtime, without running it: the spec's checks, config.json, the
 * environment, CDI, the table of cgroup mounts. Needs no root.
 */
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/testing.h"
#include "run/below.h"
#include "run/bundle.h"
#include "run/os.h"

static const char *const words[] = {"/bin/true", NULL};

static st_run_spec good_spec(void)
{
    return (st_run_spec){.id = "j1/2/0",
                         .tenant = "red",
                         .uid = 200000,
                         .gid = 200000,
                         .command = words,
                         .image = {.kind = ST_IMAGE_HOST}};
}

static void wrong_specs_are_refused(void **state)
{
    static const char *const bad_env[] = {"no-equals", NULL};
    static const char *const bad_name[] = {"A-B=c", NULL};
    static const char *const bad_utf8[] = {"A=\xff", NULL};
    const st_run_device outside = {.path = "/tmp/x"};
    const st_run_device climbs = {.path = "/dev/../etc/passwd"};
    const st_run_device access = {.path = "/dev/x", .access = "rx"};
    const st_run_mount over_proc = {.source = "/tmp", .target = "/proc/sys"};
    const st_run_mount over_ours = {.source = "/tmp", .target = "/run/stint"};
    const st_run_mount over_root = {.source = "/tmp", .target = "/"};
    st_err err = {0};
    st_run_spec s;

    (void)state;
    s = good_spec();
    assert_ok(st_run_check(&s, &err));
#define REFUSED(change, code, text)                       \
    do {                                                  \
        s = good_spec();                                  \
        change;                                           \
        assert_fails(st_run_check(&s, &err), code, text); \
    } while (0)
    REFUSED(s.id = "", ST_EINVAL, "needs an id");
    REFUSED(s.id = "a/../b", ST_EINVAL, "only letters");
    REFUSED(s.id = "a//b", ST_EINVAL, "one to three");
    REFUSED(s.id = "/a", ST_EINVAL, "one to three");
    REFUSED(s.id = "a/b/c/d", ST_EINVAL, "one to three");
    REFUSED(s.id = "a.b", ST_EINVAL, "only letters");
    REFUSED(s.tenant = "../x", ST_EINVAL, "tenant");
    REFUSED(s.tenant = NULL, ST_EINVAL, "tenant");
    REFUSED(s.uid = 0, ST_ERANGE, "user id is 0");
    REFUSED(s.gid = 999, ST_ERANGE, "group id is 999");
    REFUSED(s.command = NULL, ST_EINVAL, "command or a script");
    REFUSED(s.script = "true", ST_EINVAL, "one of the two");
    REFUSED(s.env = bad_env, ST_EINVAL, "NAME=value");
    REFUSED(s.env = bad_name, ST_EINVAL, "A-B");
    REFUSED(s.env = bad_utf8, ST_EINVAL, "UTF-8");
    REFUSED(s.image.kind = ST_IMAGE_FOLDER, ST_EINVAL, "image");
    REFUSED((s.image = (st_run_image){.kind = ST_IMAGE_FOLDER, .root = "relative"}), ST_EINVAL,
            "absolute");
    REFUSED((s.image = (st_run_image){.kind = ST_IMAGE_FOLDER, .root = "/a:/b"}), ST_EINVAL,
            "must not contain");
    REFUSED((s.image = (st_run_image){.kind = ST_IMAGE_OCI, .root = "/a", .path = "/b"}), ST_EINVAL,
            "without / in front");
    REFUSED((s.image = (st_run_image){.kind = ST_IMAGE_OCI, .root = "/a", .digest = "sha256:1"}),
            ST_EINVAL, "64 hex digits");
    REFUSED(s.data = "/x/../y", ST_EINVAL, "/../");
    REFUSED(s.workdir = "here", ST_EINVAL, "absolute");
    REFUSED(s.ram_mib = 1, ST_ERANGE, "too small");
    REFUSED(s.ram_mib = -1, ST_ERANGE, "RAM");
    REFUSED(s.cpu_m = 1, ST_ERANGE, "CPU");
    REFUSED(s.cpus = "", ST_EINVAL, "list of CPUs");
    REFUSED(s.cpus = "0-3\n", ST_EINVAL, "list of CPUs");
    REFUSED(s.signal = 1000, ST_ERANGE, "signal");
    REFUSED(s.log_bytes = 10, ST_ERANGE, "log limit");
    REFUSED((s.devices = &outside, s.ndevice = 1), ST_EINVAL, "under /dev/");
    REFUSED((s.devices = &climbs, s.ndevice = 1), ST_EINVAL, "/../");
    REFUSED((s.devices = &access, s.ndevice = 1), ST_EINVAL, "r, w and m");
    REFUSED((s.mounts = &over_proc, s.nmount = 1), ST_EINVAL, "not allowed");
    REFUSED((s.mounts = &over_ours, s.nmount = 1), ST_EINVAL, "not allowed");
    REFUSED((s.mounts = &over_root, s.nmount = 1), ST_EINVAL, "hide");
    REFUSED(s.gang.world_size = 2, ST_EINVAL, "first task");
    REFUSED(
        (s.gang = (st_run_gang){.master_addr = "a", .master_port = 1, .world_size = 2, .rank = 2}),
        ST_ERANGE, "rank is 2");
}

static json_t *config_of(const st_run_spec *spec, const st_cdi_edits *cdi, st_cg_mode mode)
{
    const st_bundle_place place = {.rootfs = "/r",
                                   .host_root = true,
                                   .inject = "/i",
                                   .init = "/x/stint-init",
                                   .cgroup = "stint/j1.2.0",
                                   .hostname = "j1-2-0",
                                   .netns = "/n/red",
                                   .cgroups = mode};
    json_t *config = NULL;
    st_err err = {0};

    assert_ok(st_bundle_config(spec, cdi, &place, &config, &err));
    return config;
}

static const json_t *at(const json_t *root, const char *path)
{
    char part[64];

    while (root && *path) {
        size_t n = strcspn(path, ".");

        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(part))
                                   : json_object_get(root, part);
        path += n + (path[n] == '.');
    }
    return root;
}

static bool has_namespace(const json_t *config, const char *type, const char **ret_path)
{
    const json_t *item;
    size_t i;

    json_array_foreach(at(config, "linux.namespaces"), i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "type")), type) == 0) {
            *ret_path = json_string_value(json_object_get(item, "path"));
            return true;
        }
    }
    return false;
}

static bool lists(const json_t *array, const char *text)
{
    const json_t *item;
    size_t i;

    json_array_foreach(array, i, item)
    {
        if (strcmp(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}

static void every_fence_is_in_the_config(void **state)
{
    static const char *const sets[] = {"bounding", "effective", "inheritable", "permitted",
                                       "ambient"};
    st_run_spec spec = good_spec();
    const char *path = NULL;
    char where[64];

    (void)state;
    spec.ram_mib = 100;
    spec.cpu_m = 1500;
    spec.cpus = "0-1";
    spec.pids = 7;
    ST_CLEANUP(st_os_jsonp) json_t *c = config_of(&spec, NULL, ST_CG_V2);

    assert_true(json_is_true(at(c, "process.noNewPrivileges")));
    /* Sealed by a hook: read-only by the runtime alone would lose nodev and nosuid. */
    assert_true(json_is_false(at(c, "root.readonly")));
    const json_t *hook = json_array_get(at(c, "hooks.createContainer"), 0);

    assert_string_equal(json_string_value(json_array_get(json_object_get(hook, "args"), 1)),
                        "--seal");
    assert_int_equal(json_integer_value(at(c, "process.user.uid")), 200000);
    for (size_t i = 0; i < ST_ARRAY_LEN(sets); i++) {
        snprintf(where, sizeof(where), "process.capabilities.%s", sets[i]);
        assert_true(json_is_array(at(c, where)));
        assert_int_equal(json_array_size(at(c, where)), 0);
    }
    assert_int_equal(json_integer_value(at(c, "linux.resources.memory.limit")), 100 << 20);
    assert_int_equal(json_integer_value(at(c, "linux.resources.memory.swap")), 100 << 20);
    assert_null(at(c, "linux.resources.cpu.quota")); /* the supervisor's, see test_allowed.c */
    assert_string_equal(json_string_value(at(c, "linux.resources.cpu.cpus")), "0-1");
    assert_int_equal(json_integer_value(at(c, "linux.resources.pids.limit")), 7);
    assert_true(json_is_false(at(c, "linux.resources.devices.0.allow")));
    assert_string_equal(json_string_value(at(c, "linux.seccomp.defaultAction")), "SCMP_ACT_ERRNO");
    assert_true(lists(at(c, "linux.maskedPaths"), "/proc/kcore"));
    assert_true(lists(at(c, "linux.maskedPaths"), "/sys/firmware"));
    assert_true(lists(at(c, "linux.readonlyPaths"), "/proc/sys"));
    assert_string_equal(json_string_value(at(c, "linux.cgroupsPath")), "/stint/j1.2.0");
    assert_true(has_namespace(c, "pid", &path) && has_namespace(c, "mount", &path) &&
                has_namespace(c, "ipc", &path) && has_namespace(c, "uts", &path) &&
                has_namespace(c, "cgroup", &path));
    assert_true(has_namespace(c, "network", &path) && path == NULL);
    assert_false(has_namespace(c, "user", &path));
    assert_string_equal(json_string_value(at(c, "process.args.0")), "/run/stint/init");
}

static void networks_and_users(void **state)
{
    st_run_spec spec = good_spec();
    const char *path = NULL;

    (void)state;
    spec.net = ST_NET_HOST;
    ST_CLEANUP(st_os_jsonp) json_t *host = config_of(&spec, NULL, ST_CG_V2);

    assert_false(has_namespace(host, "network", &path));
    spec.net = ST_NET_TENANT;
    spec.userns_ids = 1000;
    ST_CLEANUP(st_os_jsonp) json_t *tenant = config_of(&spec, NULL, ST_CG_V1);

    assert_true(has_namespace(tenant, "network", &path));
    assert_string_equal(path, "/n/red");
    assert_true(has_namespace(tenant, "user", &path));
    assert_int_equal(json_integer_value(at(tenant, "linux.uidMappings.0.hostID")), 200000);
    assert_int_equal(json_integer_value(at(tenant, "process.user.uid")), 0);
}

static void dangerous_calls_are_not_in_the_list(void **state)
{
    static const char *const never[] = {"mount",
                                        "umount2",
                                        "pivot_root",
                                        "chroot",
                                        "unshare",
                                        "setns",
                                        "clone",
                                        "ptrace",
                                        "bpf",
                                        "keyctl",
                                        "add_key",
                                        "request_key",
                                        "perf_event_open",
                                        "userfaultfd",
                                        "io_uring_setup",
                                        "kexec_load",
                                        "kexec_file_load",
                                        "init_module",
                                        "finit_module",
                                        "delete_module",
                                        "reboot",
                                        "swapon",
                                        "swapoff",
                                        "open_by_handle_at",
                                        "mknod",
                                        "mknodat",
                                        "socket",
                                        "fsopen",
                                        "open_tree",
                                        "move_mount",
                                        "mount_setattr",
                                        "syslog",
                                        "iopl",
                                        "ioperm",
                                        "settimeofday",
                                        "clock_settime",
                                        "quotactl",
                                        "acct",
                                        "sethostname",
                                        "setdomainname",
                                        "fanotify_init"};
    ST_CLEANUP(st_os_jsonp) json_t *filter = st_bundle_seccomp();
    const json_t *name;
    size_t i;

    (void)state;
    json_array_foreach(at(filter, "syscalls.0.names"), i, name)
    {
        for (size_t k = 0; k < ST_ARRAY_LEN(never); k++)
            assert_string_not_equal(json_string_value(name), never[k]);
    }
    assert_true(i > 250);
}

static const char cdi_text[] =
    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"nvidia.com/gpu\",\"containerEdits\":{"
    "\"env\":[\"NVIDIA_X=1\"],\"deviceNodes\":[{\"path\":\"/dev/nvidiactl\",\"type\":\"c\","
    "\"major\":195,\"minor\":255}],\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/x\"}],"
    "\"mounts\":[{\"hostPath\":\"/usr/lib/libcuda.so\",\"containerPath\":\"/usr/lib/libcuda.so\","
    "\"options\":[\"ro\",\"bind\"]},{\"hostPath\":\"/var/x/libcuda.so\",\"containerPath\":"
    "\"/drv/libcuda.so.1\"}]},\"devices\":[{\"name\":\"0\",\"containerEdits\":{"
    "\"deviceNodes\":[{\"path\":\"/dev/nvidia0\",\"type\":\"c\",\"major\":195,\"minor\":0}]}},"
    "{\"name\":\"1\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia1\",\"type\":"
    "\"c\",\"major\":195,\"minor\":1}]}}]}";

static void cdi_edits_are_applied(void **state)
{
    static const char *const want[] = {"1", NULL};
    st_run_spec spec = good_spec();
    st_cdi_edits cdi = {0};
    st_err err = {0};

    (void)state;
    assert_ok(st_cdi_parse("a.json", cdi_text, strlen(cdi_text), want, &cdi, &err));
    assert_int_equal(cdi.ndevice, 2);
    assert_int_equal(cdi.hooks, 1);
    ST_CLEANUP(st_os_jsonp) json_t *c = config_of(&spec, &cdi, ST_CG_V2);

    assert_string_equal(json_string_value(at(c, "linux.devices.1.path")), "/dev/nvidia1");
    assert_int_equal(json_array_size(at(c, "linux.devices")), 2);
    assert_int_equal(json_integer_value(at(c, "linux.resources.devices.2.minor")), 1);
    ST_CLEANUP(st_freep) char *all = json_dumps(c, 0);

    assert_non_null(strstr(all, "NVIDIA_X=1"));
    assert_null(strstr(all, "/usr/lib/libcuda.so")); /* image "host" has it in its /usr */
    assert_non_null(strstr(all, "/var/x/libcuda.so"));
    /* Our own hook and none of the spec's. */
    assert_int_equal(json_array_size(at(c, "hooks.createContainer")), 1);
    assert_null(strstr(all, "\"/x\""));
    st_cdi_done(&cdi);
}

static void wrong_cdi_is_refused(void **state)
{
    static const char *const want[] = {"7", NULL};
    static const struct {
        const char *text;
        int code;
        const char *says;
    } rows[] = {
        {"{", ST_EPARSE, "a.json:1"},
        {"[]", ST_EPARSE, "not a JSON object"},
        {"{}", ST_EPARSE, "cdiVersion"},
        {"{\"cdiVersion\":\"1\",\"kind\":\"k\"}", ST_ENOENT, "no device \"7\""},
        {"{\"cdiVersion\":\"1\",\"kind\":\"k\",\"containerEdits\":{\"env\":[\"x\"]}}", ST_EPARSE,
         "NAME=value"},
        {"{\"cdiVersion\":\"1\",\"kind\":\"k\",\"containerEdits\":{\"deviceNodes\":[{}]}}",
         ST_EPARSE, "no path"},
        {"{\"cdiVersion\":\"1\",\"kind\":\"k\",\"containerEdits\":{\"mounts\":[{}]}}", ST_EPARSE,
         "hostPath"},
    };
    st_cdi_edits cdi = {0};
    st_err err = {0};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_fails(st_cdi_parse("a.json", rows[i].text, strlen(rows[i].text), want, &cdi, &err),
                     rows[i].code, rows[i].says);
}

static void cdi_cannot_reach_where_a_spec_cannot(void **state)
{
    st_run_device device = {.path = "/dev/../etc/x"};
    st_run_mount mount = {.source = "/tmp", .target = "/proc/1"};
    st_cdi_edits edits = {.devices = &device, .ndevice = 1};
    st_err err = {0};

    (void)state;
    assert_fails(st_cdi_check(&edits, &err), ST_EINVAL, "the CDI spec: ");
    device.path = "/dev/nvidia0";
    assert_ok(st_cdi_check(&edits, &err));
    edits.mounts = &mount;
    edits.nmount = 1;
    assert_fails(st_cdi_check(&edits, &err), ST_EINVAL, "not allowed");
}

static void cgroup_tables_are_understood(void **state)
{
    st_cg cg;

    (void)state;
    st_cg_parse("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n", &cg);
    assert_int_equal(cg.mode, ST_CG_V2);
    assert_string_equal(cg.unified, "/sys/fs/cgroup");
    st_cg_parse("x / ext4 rw 0 0\ncgroup /cg/mem cgroup rw,memory 0 0\n"
                "cgroup /cg/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup /cg/freezer cgroup "
                "rw,freezer 0 0\n",
                &cg);
    assert_int_equal(cg.mode, ST_CG_V1);
    assert_string_equal(cg.memory, "/cg/mem");
    assert_string_equal(cg.cpu, "/cg/cpu,cpuacct");
    assert_string_equal(cg.pids, "");
    st_cg_parse("cgroup /cg/cpuset cgroup rw,cpuset 0 0\ncgroup2 /cg/u cgroup2 rw 0 0", &cg);
    assert_int_equal(cg.mode, ST_CG_HYBRID);
    assert_string_equal(cg.cpu, ""); /* cpuset is not cpu */
    assert_string_equal(cg.cpuset, "/cg/cpuset");
    assert_true(st_cg_pins(&cg));
    st_cg_parse("", &cg);
    assert_int_equal(cg.mode, ST_CG_NONE);
}

static void mounts_below_a_folder_are_found(void **state)
{
    static const char text[] = "21 1 254:0 / / rw - ext4 /dev/root rw\n"
                               "30 21 0:30 / /usr/local/nvidia/lib ro shared:3 - tmpfs tmpfs ro\n"
                               "31 21 0:31 / /usr/local/nvidia rw - tmpfs tmpfs rw\n"
                               "32 21 0:32 / /usr/local/nvidia rw - tmpfs again rw\n"
                               "33 21 0:33 / /usr/a\\040b\\134c rw master:1 - ext4 /dev/b rw\n"
                               "34 21 0:34 / /usr rw - ext4 /dev/c rw\n"
                               "35 21 0:35 / /usrlocal rw - ext4 /dev/d rw\n"
                               "36 21 0:36 / /usr/jail/proc rw - proc proc rw\n"
                               "37 21 0:37 / /usr/jail/sys rw - sysfs sysfs rw\n"
                               "no line at all\n"
                               "38 21 0:38 / /usr/last rw - xfs /dev/e rw";
    static const char *const want[] = {"/usr/a b\\c", "/usr/last", "/usr/local/nvidia",
                                       "/usr/local/nvidia/lib"};
    st_below list = {0};

    (void)state;
    st_below_parse(text, "/usr", &list);
    assert_int_equal(list.n, ST_ARRAY_LEN(want));
    for (size_t i = 0; i < list.n; i++)
        assert_string_equal(list.v[i], want[i]);
    st_below_done(&list);
    st_below_parse("", "/usr", &list);
    assert_int_equal(list.n, 0);
    st_below_find("/no/such/folder", &list);
    assert_int_equal(list.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_specs_are_refused),
        cmocka_unit_test(every_fence_is_in_the_config),
        cmocka_unit_test(networks_and_users),
        cmocka_unit_test(dangerous_calls_are_not_in_the_list),
        cmocka_unit_test(cdi_edits_are_applied),
        cmocka_unit_test(wrong_cdi_is_refused),
        cmocka_unit_test(cdi_cannot_reach_where_a_spec_cannot),
        cmocka_unit_test(cgroup_tables_are_understood),
        cmocka_unit_test(mounts_below_a_folder_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
