/*
 * driver - runs a fuzz target over the files of its corpus where libFuzzer is not linked in.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum { INPUT_SIZE_MAX = 1 << 20 };

static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    uint8_t *data = malloc(INPUT_SIZE_MAX);
    size_t size = data == NULL ? 0 : fread(data, 1, INPUT_SIZE_MAX, file);
    fclose(file);
    /* A copy of the exact size lets the sanitizers see a read past the end. */
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (data == NULL || exact == NULL) {
        abort();
    }
    for (size_t i = 0; i < size; i++) {
        exact[i] = data[i];
    }
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int run_directory(const char *path, int *count) {
    DIR *directory = opendir(path);
    if (directory == NULL) {
        perror(path);
        return 1;
    }
    int failed = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        failed += run_file(file);
        *count += 1;
    }
    closedir(directory);
    return failed;
}

int main(int argc, char **argv) {
    int count = 0;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        failed += run_directory(argv[i], &count);
    }
    printf("%d inputs\n", count);
    return failed > 0 || count == 0;
}
