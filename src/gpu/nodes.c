/*
 * Reading /proc and /sys. sysfs knows the NUMA node and the CPUs near a PCI device without any
 * library, for every driver version, and inside containers: that is all the agent needs of a
 * topology library, so there is none.
 */
#include "gpu/nodes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"

#define FILE_MAX (1u << 20)

/* A number at *p, which moves behind it; -1 when there is none. */
static int take_number(const char **p)
{
    int value = 0;

    if (!isdigit((unsigned char)**p))
        return -1;
    for (; isdigit((unsigned char)**p); (*p)++) {
        if (value > 100000000)
            return -1;
        value = value * 10 + (**p - '0');
    }
    return value;
}

static bool take_word(const char **p, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*p, word, n) != 0)
        return false;
    *p += n;
    return true;
}

/* A line is gpuN/giN/access M or gpuN/giN/ciN/access M. */
static int minor_of_line(const char *p, int minor, int gi, int ci)
{
    int found;

    if (!take_word(&p, "gpu") || take_number(&p) != minor || !take_word(&p, "/gi") ||
        take_number(&p) != gi)
        return ST_GPU_UNKNOWN;
    if (ci != ST_GPU_UNKNOWN && (!take_word(&p, "/ci") || take_number(&p) != ci))
        return ST_GPU_UNKNOWN;
    if (!take_word(&p, "/access "))
        return ST_GPU_UNKNOWN;
    found = take_number(&p);
    return *p == '\n' || *p == '\0' ? found : ST_GPU_UNKNOWN;
}

int st_gpu_cap_minor(const char *text, int minor, int gi, int ci)
{
    while (text && *text) {
        int found = minor_of_line(text, minor, gi, ci);
        if (found != ST_GPU_UNKNOWN)
            return found;
        text = strchr(text, '\n');
        if (text)
            text++;
    }
    return ST_GPU_UNKNOWN;
}

static void name_node(char node[ST_GPU_PATH_MAX], int minor)
{
    node[0] = '\0';
    if (minor >= 0)
        snprintf(node, ST_GPU_PATH_MAX, "/dev/nvidia-caps/nvidia-cap%d", minor);
}

char *st_gpu_cap_minors(const char *proc)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_strbuf_addf(&path, "%s/driver/nvidia-caps/mig-minors", proc);
    if (st_file_read(path.s, FILE_MAX, &text, NULL) < 0)
        st_strbuf_clear(&text);
    st_strbuf_add(&text, "");
    return st_strbuf_take(&text);
}

void st_gpu_cap_nodes(const char *text, int minor, st_gpu_instance *instance)
{
    instance->gi_minor = st_gpu_cap_minor(text, minor, instance->gi, ST_GPU_UNKNOWN);
    instance->ci_minor = instance->ci >= 0
                             ? st_gpu_cap_minor(text, minor, instance->gi, instance->ci)
                             : ST_GPU_UNKNOWN;
    name_node(instance->node[0], instance->gi_minor);
    name_node(instance->node[1], instance->ci_minor);
}

/* The first line of SYS/bus/pci/devices/BUS/NAME, or false. */
static bool read_attribute(const char *sys, const char *bus, const char *name, char *ret,
                           size_t size)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};

    st_strbuf_addf(&path, "%s/bus/pci/devices/%s/%s", sys, bus, name);
    if (st_file_read(path.s, FILE_MAX, &text, NULL) < 0)
        return false;
    size_t n = strcspn(st_strbuf_str(&text), "\n");
    if (n >= size)
        return false;
    memcpy(ret, st_strbuf_str(&text), n);
    ret[n] = '\0';
    return true;
}

void st_gpu_sysfs_place(const char *sys, st_gpu_info *info)
{
    char bus[sizeof(info->bus_id)], number[32];
    int64_t node;

    /* NVML writes the domain with eight digits, sysfs with four, both in their own case. */
    size_t skip = strlen(info->bus_id) == 16 && strncmp(info->bus_id, "0000", 4) == 0 ? 4 : 0;
    snprintf(bus, sizeof(bus), "%s", info->bus_id + skip);
    for (char *p = bus; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    info->numa = ST_GPU_UNKNOWN;
    info->cpus[0] = '\0';
    if (read_attribute(sys, bus, "numa_node", number, sizeof(number)) &&
        st_parse_i64(number, 0, 4096, &node, NULL) == 0)
        info->numa = (int)node;
    if (!read_attribute(sys, bus, "local_cpulist", info->cpus, sizeof(info->cpus)))
        info->cpus[0] = '\0';
}
