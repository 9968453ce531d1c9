/*
 * Runs a fuzz target over the files of a folder, in order of their names, so
 * that a corpus is an ordinary test. A crash is the failure.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "fuzz.h"

/* Reads a whole file into memory of exactly its size, so that the sanitizer sees any step past it. */
static uint8_t *read_file(const char *path, size_t *ret_size)
{
    FILE *f = fopen(path, "re");
    struct stat st;
    uint8_t *data;

    if (!f || fstat(fileno(f), &st) < 0 || st.st_size < 0) {
        perror(path);
        exit(1);
    }
    data = st_xmalloc((size_t)st.st_size);
    if (fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    *ret_size = (size_t)st.st_size;
    return data;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int n, ran = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    n = scandir(argv[1], &entries, NULL, alphasort);
    if (n < 0) {
        perror(argv[1]);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        uint8_t *data;
        size_t size;

        if (entries[i]->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
            printf("%s\n", path);
            fflush(stdout);
            data = read_file(path, &size);
            LLVMFuzzerTestOneInput(data, size);
            free(data);
            ran++;
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d inputs\n", ran);
    return ran > 0 ? 0 : 1;
}
