#include "store/volume/quota.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE_MAX = 4096 + 256, DEPTH_MAX = 4 };

void quota_count(struct quota *quota, uint64_t *part, uint64_t size) {
    atomic_fetch_add_explicit(&quota->used_size, size - *part, memory_order_relaxed);
    *part = size;
}

bool quota_admits(const struct quota *quota, uint64_t size, bool makes_room) {
    uint64_t size_max = makes_room ? quota->size_max + quota->size_max / QUOTA_OVER
                                   : quota->size_max - quota->size_max / QUOTA_RESERVE;
    uint64_t used = quota_used(quota);
    return used <= size_max && size <= size_max - used;
}

/* Sizes, not blocks: databases reserve some that they give back. Files come and go meanwhile: what cannot be
 * looked at counts nothing. */
static uint64_t quota_measure_to(const char *directory, unsigned depth) {
    DIR *stream = opendir(directory);
    uint64_t size = 0;
    const struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[PATH_SIZE_MAX];
        struct stat status;
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        bool is_self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (is_self || length >= (int)sizeof path || lstat(path, &status) != 0) {
            continue;
        }
        if (S_ISREG(status.st_mode)) {
            size += (uint64_t)status.st_size;
        } else if (S_ISDIR(status.st_mode) && depth > 0) {
            size += quota_measure_to(path, depth - 1);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
    return size;
}

uint64_t quota_measure(const char *directory) {
    return quota_measure_to(directory, DEPTH_MAX);
}
