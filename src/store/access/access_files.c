#include "store/access/access_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/whole_file.h"

enum { PATH_SIZE_MAX = 8192 };

static const size_t FILE_SIZE_MAX = (size_t)512 << 20;

/* ---- which there are ---- */

struct listing {
    char *names[ACCESS_FILES_MAX];
    size_t count;
};

static void access_files_listing_done(struct listing *listing) {
    for (size_t i = 0; i < listing->count; i++) {
        free(listing->names[i]);
    }
}

static bool access_files_is_rules_name(const char *name) {
    struct bytes text = bytes_of_string(name);
    return name[0] != '.' && text.size <= ACCESS_NAME_SIZE_MAX && bytes_ends_with(text, BYTES(".aclj"));
}

static int access_files_compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum err access_files_read_names(DIR *stream, const char *path, struct listing *listing,
                                        struct err_detail *detail) {
    const struct dirent *entry;
    while ((errno = 0, entry = readdir(stream)) != NULL) {
        if (!access_files_is_rules_name(entry->d_name)) {
            continue;
        }
        if (listing->count == ACCESS_FILES_MAX) {
            return err_set(detail, ERR_LIMIT, "%s has more than %d files", path, ACCESS_FILES_MAX);
        }
        listing->names[listing->count] = strdup(entry->d_name);
        if (listing->names[listing->count] == NULL) {
            return ERR_MEMORY;
        }
        listing->count++;
    }
    return errno == 0
               ? ERR_OK
               : err_set(detail, err_from_errno(errno), "%s cannot be read: %s", path, strerror(errno));
}

/* The files of DIR/access, sorted; none if there is no such directory. */
static enum err access_files_list(const char *directory, struct listing *listing, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/access", directory);
    listing->count = 0;
    DIR *stream = opendir(path);
    if (stream == NULL) {
        return errno == ENOENT || errno == ENOTDIR
                   ? ERR_OK
                   : err_set(detail, err_from_errno(errno), "%s cannot be read: %s", path, strerror(errno));
    }
    enum err err = access_files_read_names(stream, path, listing, detail);
    closedir(stream);
    if (err != ERR_OK) {
        access_files_listing_done(listing);
        return err;
    }
    qsort(listing->names, listing->count, sizeof listing->names[0], access_files_compare_names);
    return ERR_OK;
}

/* ---- all of them, one after the other ---- */

typedef enum err visit_file(void *context, const char *path, struct err_detail *detail);

static enum err access_files_visit_files(const char *directory, visit_file *visit, void *context,
                                         struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct listing *listing = malloc(sizeof *listing);
    if (listing == NULL) {
        return ERR_MEMORY;
    }
    enum err err = access_files_list(directory, listing, detail);
    if (err != ERR_OK) {
        free(listing);
        return err;
    }
    snprintf(path, sizeof path, "%s/access.aclj", directory);
    err = visit(context, path, detail);
    for (size_t i = 0; i < listing->count && err == ERR_OK; i++) {
        snprintf(path, sizeof path, "%s/access/%s", directory, listing->names[i]);
        err = visit(context, path, detail);
    }
    access_files_listing_done(listing);
    free(listing);
    return err;
}

struct look {
    struct buf *out;
    int64_t newest_us;
};

static enum err access_files_look_at(void *context, const char *path, struct err_detail *detail) {
    struct look *look = context;
    struct stat status;
    if (stat(path, &status) != 0) {
        return errno == ENOENT ? ERR_OK
                               : err_set(detail, err_from_errno(errno), "%s cannot be looked at", path);
    }
    int64_t changed_us = (int64_t)status.st_mtim.tv_sec * 1000000 + status.st_mtim.tv_nsec / 1000;
    look->newest_us = changed_us > look->newest_us ? changed_us : look->newest_us;
    return buf_put_format(look->out, "%s %ju %jd %jd.%09ld %jd.%09ld\n", path, (uintmax_t)status.st_ino,
                          (intmax_t)status.st_size, (intmax_t)status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                          (intmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

enum err access_files_look(const char *directory, struct buf *out, int64_t *ret_newest_us,
                           struct err_detail *detail) {
    struct look look = {.out = out, .newest_us = INT64_MIN};
    enum err err = access_files_visit_files(directory, access_files_look_at, &look, detail);
    *ret_newest_us = look.newest_us;
    return err;
}

/* ---- what is in them ---- */

static enum err access_files_load_one(void *context, const char *path, struct err_detail *detail) {
    struct access_rules *rules = context;
    struct err_detail inner = {0};
    struct buf text;
    buf_init(&text, FILE_SIZE_MAX);
    enum err err = whole_file_read(path, &text, NULL);
    if (err == ERR_LIMIT || err == ERR_MEMORY) {
        err_set(detail, err, "%s is too large: %s", path, err_text(err));
    } else if (err != ERR_OK && err != ERR_NOT_FOUND) {
        err_set(detail, err, "%s cannot be read: %s", path, err_text(err));
    }
    if (err == ERR_OK) {
        err = access_rules_add(rules, buf_bytes(&text), &inner);
        if (err != ERR_OK) {
            err_set(detail, err, "%s:%u: %s", path, inner.line, err_detail_text(&inner, err));
        }
    }
    buf_done(&text);
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

enum err access_files_load(const char *directory, struct access_rules **ret_rules,
                           struct err_detail *detail) {
    struct access_rules *rules = access_rules_new();
    if (rules == NULL) {
        return ERR_MEMORY;
    }
    enum err err = access_files_visit_files(directory, access_files_load_one, rules, detail);
    if (err == ERR_OK) {
        err = access_rules_seal(rules);
    }
    if (err != ERR_OK) {
        access_rules_free(rules);
        return err;
    }
    *ret_rules = rules;
    return ERR_OK;
}
