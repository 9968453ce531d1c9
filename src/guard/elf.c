/*
 * A function of libc by name, without asking the dynamic linker: the guard stands before dlsym, so dlsym cannot be
 * asked for itself. Reads the hash table of the library as it is mapped.
 */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "guard/guard.h"

typedef struct search {
    const char *name;
    void *found;
} search;

typedef struct symbols {
    const Elf64_Sym *symtab;
    const char *strtab;
    const uint32_t *hash; /* DT_GNU_HASH */
} symbols;

static uint32_t gnu_hash(const char *s)
{
    uint32_t h = 5381;

    for (; *s; s++)
        h = h * 33 + (unsigned char)*s;
    return h;
}

static void *find(const symbols *t, Elf64_Addr base, const char *name)
{
    uint32_t nbucket = t->hash[0], first = t->hash[1], nbloom = t->hash[2];
    const uint32_t *bucket = t->hash + 4 + nbloom * (sizeof(Elf64_Addr) / sizeof(uint32_t));
    const uint32_t *chain = bucket + nbucket;
    uint32_t h = gnu_hash(name), i;

    if (nbucket == 0 || (i = bucket[h % nbucket]) < first)
        return NULL;
    for (;; i++) {
        const Elf64_Sym *s = &t->symtab[i];

        if ((chain[i - first] | 1) == (h | 1) && s->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(s->st_info) == STT_FUNC && strcmp(t->strtab + s->st_name, name) == 0)
            return (void *)(base + s->st_value); // NOLINT(performance-no-int-to-ptr)
        if (chain[i - first] & 1)
            return NULL;
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *ctx)
{
    search *want = ctx;
    const char *base = strrchr(info->dlpi_name ? info->dlpi_name : "", '/');
    const char *file = base ? base + 1 : info->dlpi_name;
    symbols t = {0};

    (void)size;
    if (!file || (strncmp(file, "libc.so", 7) != 0 && strncmp(file, "libc-", 5) != 0 &&
                  strncmp(file, "libdl.so", 8) != 0 && strncmp(file, "libdl-", 6) != 0))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        for (const Elf64_Dyn *d = (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
             d->d_tag != DT_NULL; d++) {
            Elf64_Addr at =
                d->d_un.d_ptr < info->dlpi_addr ? d->d_un.d_ptr + info->dlpi_addr : d->d_un.d_ptr;

            if (d->d_tag == DT_SYMTAB)
                t.symtab = (const Elf64_Sym *)at;
            else if (d->d_tag == DT_STRTAB)
                t.strtab = (const char *)at;
            else if (d->d_tag == DT_GNU_HASH)
                t.hash = (const uint32_t *)at;
        }
    }
    if (t.symtab && t.strtab && t.hash)
        want->found = find(&t, info->dlpi_addr, want->name);
    return want->found != NULL;
}

void *guard_libc_symbol(const char *name)
{
    search want = {.name = name};

    dl_iterate_phdr(look, &want);
    return want.found;
}
