#include "store/kv/kv_room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bytes.h"

static const off_t LOG_ROOM_SIZE = 256 << 10; /* it gets errors only: some lines in a bad year */
static const off_t ROOM_SIZE = 8 << 20;       /* for what an opening writes */
static const uint64_t OPENING_SIZE = 2 << 20; /* the same of an index, whose log is counted by itself */

enum { FILE_MODE = 0644 };

/* Of its log; 0 if there is no such directory. */
static uint64_t room_log_size(const char *directory) {
    uint64_t size = 0;
    DIR *listing = opendir(directory);
    if (listing == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        struct stat status;
        if (bytes_ends_with(bytes_of_string(entry->d_name), BYTES(".log")) &&
            fstatat(dirfd(listing), entry->d_name, &status, 0) == 0) {
            size += (uint64_t)status.st_size;
        }
    }
    closedir(listing);
    return size;
}

enum err kv_room_look(const char *directory, struct err_detail *detail) {
    return kv_room_for(directory, 0, detail);
}

enum err kv_room_for(const char *directory, uint64_t size, struct err_detail *detail) {
    struct statvfs status;
    if (statvfs(directory, &status) != 0) {
        return ERR_OK; /* whoever opens it will see */
    }
    uint64_t free_size = (uint64_t)status.f_bavail * status.f_frsize;
    if (free_size >= OPENING_SIZE + room_log_size(directory) + size) {
        return ERR_OK;
    }
    return err_set(detail, ERR_NO_SPACE, "%s: %s", directory, err_text(ERR_NO_SPACE));
}

enum err kv_room_ask(const char *directory, struct err_detail *detail) {
    char *path = NULL;
    if (asprintf(&path, "%s/room.tmp", directory) < 0) {
        return err_set(detail, ERR_MEMORY, "%s: %s", directory, err_text(ERR_MEMORY));
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    int number = fd < 0 ? errno : posix_fallocate(fd, 0, ROOM_SIZE);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    free(path);
    return number == 0 ? ERR_OK
                       : err_set(detail, err_from_errno(number), "%s: %s", directory, strerror(number));
}

void kv_room_reserve_log(const char *directory) {
    char *path = NULL;
    int fd = asprintf(&path, "%s/LOG", directory) < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_ROOM_SIZE);
        close(fd);
    }
    free(path);
}
