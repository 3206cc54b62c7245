#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"

void files_make_directories(const char *name) {
    char path[PATH_SIZE_MAX];
    place_path(path, name);
    if (mkdir(path, 0700) != 0) {
        must(errno == EEXIST, "mkdir");
        return;
    }
    size_t size = strlen(path);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(path + size, sizeof path - size, "/%02x", i);
        must(mkdir(path, 0700) == 0, "mkdir");
        for (unsigned j = 0; j < 256; j++) {
            snprintf(path + size + 3, sizeof path - size - 3, "/%02x", j);
            must(mkdir(path, 0700) == 0, "mkdir");
        }
    }
}

/* The name is a mixed number; a real archive would have to hash the document for it. */
size_t files_path(const struct job *job, size_t i, char path[PATH_SIZE_MAX]) {
    char directory[PATH_SIZE_MAX];
    uint64_t name = prng_mix(i + 1);
    place_path(directory, job->files);
    int size = snprintf(path, PATH_SIZE_MAX, "%s/%02x/%02x", directory, (unsigned)(name & 255),
                        (unsigned)(name >> 8 & 255));
    snprintf(path + size, PATH_SIZE_MAX - (size_t)size, "/%012jx", (uintmax_t)(name >> 16));
    return (size_t)size;
}

void work_file_put(struct job *job, unsigned thread) {
    (void)thread;
    job_meet(job);
    size_t done = 0;
    for (size_t i; job_next(job, &i); done++) {
        char path[PATH_SIZE_MAX];
        size_t directory_size = files_path(job, i, path);
        struct bytes body = job->set->bodies[i];
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        must(fd >= 0 && write(fd, body.data, body.size) == (ssize_t)body.size, "writing a file");
        must(!job->syncs || fdatasync(fd) == 0, "fdatasync");
        close(fd);
        if (job->syncs_directory) {
            path[directory_size] = '\0';
            fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            must(fd >= 0 && fsync(fd) == 0, "fsync of a directory");
            close(fd);
        }
    }
    job->done += done;
    job_meet(job);
}

void work_file_get(struct job *job, unsigned thread) {
    uint8_t *body = malloc(CORPUS_DOCUMENT_SIZE_MAX);
    must(body != NULL, "malloc");
    struct prng prng;
    prng_init_stream(&prng, SEED, thread);
    job_meet(job);
    size_t done = 0;
    for (size_t i; job_next(job, &i); done++) {
        size_t wanted = prng_below(&prng, job->set->count);
        char path[PATH_SIZE_MAX];
        files_path(job, wanted, path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        must(fd >= 0 && read(fd, body, CORPUS_DOCUMENT_SIZE_MAX) == (ssize_t)job->set->bodies[wanted].size,
             "reading a file");
        close(fd);
    }
    job->done += done;
    job_meet(job);
    free(body);
}

void work_file_remove(struct job *job, unsigned thread) {
    (void)thread;
    job_meet(job);
    size_t done = 0;
    for (size_t i; job_next(job, &i); done++) {
        char path[PATH_SIZE_MAX];
        size_t directory_size = files_path(job, i, path);
        must(unlink(path) == 0, "unlink");
        path[directory_size] = '\0';
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(fd >= 0 && fsync(fd) == 0, "fsync of a directory");
        close(fd);
    }
    job->done += done;
    job_meet(job);
}
