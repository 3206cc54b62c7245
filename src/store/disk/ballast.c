#include "store/disk/ballast.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { PATH_SIZE_MAX = 4096, FILE_MODE = 0600 };

static const off_t BALLAST_SIZE = 8 << 20;
static const uint64_t PLENTY_SIZE = UINT64_C(96) << 20; /* well above the 64 MiB that a volume leaves free */

static bool ballast_path(const char *directory, char path[PATH_SIZE_MAX]) {
    int size = snprintf(path, PATH_SIZE_MAX, "%s/ballast", directory);
    return size > 0 && size < PATH_SIZE_MAX;
}

/* Also false if a crash left a shorter one. */
static bool ballast_is_whole(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && status.st_size >= BALLAST_SIZE;
}

void ballast_make(const char *directory) {
    char path[PATH_SIZE_MAX];
    struct statvfs disk;
    if (!ballast_path(directory, path) || ballast_is_whole(path) || statvfs(directory, &disk) != 0 ||
        (uint64_t)disk.f_bavail * disk.f_frsize < PLENTY_SIZE) {
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0) {
        return;
    }
    bool is_made = posix_fallocate(fd, 0, BALLAST_SIZE) == 0;
    close(fd);
    if (!is_made) {
        unlink(path);
    }
}

bool ballast_give_up(const char *directory) {
    char path[PATH_SIZE_MAX];
    return ballast_path(directory, path) && unlink(path) == 0;
}
