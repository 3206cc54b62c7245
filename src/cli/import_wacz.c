#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/import.h"

/* Names of files in the WACZ file come from a stranger. */
enum { NAME_SIZE_MAX = 4096 + ZIP_NAME_SIZE_MAX };

/* ---- which files there are ---- */

static struct import_file *add_file(struct import *import, const char *path) {
    struct import_file *files = reallocarray(import->files, import->files_count + 1, sizeof *files);
    if (files == NULL) {
        return NULL;
    }
    import->files = files;
    struct import_file *file = &files[import->files_count++];
    *file = (struct import_file){.path = path};
    buf_init(&file->deferred, (size_t)1 << 30);
    return file;
}

static enum err add_member(struct import *import, struct import_wacz *wacz,
                           const struct wacz_resource *resource) {
    char *name = malloc(NAME_SIZE_MAX);
    struct import_file *file = name == NULL ? NULL : add_file(import, name);
    if (file == NULL) {
        free(name);
        return ERR_MEMORY;
    }
    snprintf(name, NAME_SIZE_MAX, "%s/%.*s", wacz->path, BYTES_ARG(resource->entry->name));
    file->wacz = wacz;
    file->member = resource;
    return ERR_OK;
}

/* By its first bytes, whatever it is called; by its name, if they cannot be read now, which is told later. */
static bool is_wacz(const char *path) {
    struct source_file file;
    struct stat status;
    uint8_t first[4];
    size_t size = 0;
    bool is_named = bytes_ends_with(bytes_of_string(path), BYTES(".wacz"));
    if (strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode))) {
        return false; /* a pipe can be opened only once */
    }
    if (source_file_open(&file, path, NULL) != ERR_OK) {
        return is_named;
    }
    bool is_zip = source_read(&file.source, first, sizeof first, &size, NULL) == ERR_OK &&
                  zip_is_start(bytes_of(first, size));
    source_file_done(&file);
    return is_zip || is_named;
}

static enum err open_wacz(struct import_wacz *wacz, struct err_detail *detail) {
    struct source_file file;
    uint64_t size;
    enum err err = source_file_open(&file, wacz->path, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = source_file_size(&file, &size, detail);
    err = err == ERR_OK ? wacz_reader_open(&wacz->reader, &file.source, size, detail) : err;
    source_file_done(&file);
    return err;
}

static enum err add_members(struct import *import, struct import_wacz *wacz) {
    size_t warcs_count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < wacz->reader.resources_count && err == ERR_OK; i++) {
        const struct wacz_resource *resource = &wacz->reader.resources[i];
        warcs_count += resource->is_warc ? 1 : 0;
        if (resource->is_warc || resource->has_digest) {
            err = add_member(import, wacz, resource);
        }
    }
    if (err == ERR_OK && warcs_count == 0) {
        import->tally.files_failed_count++;
        import_say(import, NULL, IMPORT_OFFSET_NONE, "%s: there is no WARC file in its archive/", wacz->path);
    }
    return err;
}

static enum err add_wacz(struct import *import, const char *path) {
    struct err_detail detail = {0};
    struct import_wacz *wacz = calloc(1, sizeof *wacz);
    if (wacz == NULL) {
        return ERR_MEMORY;
    }
    *wacz = (struct import_wacz){.path = path, .next = import->waczs};
    import->waczs = wacz;
    enum err err = open_wacz(wacz, &detail);
    if (err == ERR_OK) {
        return add_members(import, wacz);
    }
    import->tally.files_failed_count++;
    import_say(import, path, detail.offset, "%s", err_detail_text(&detail, err));
    return err == ERR_MEMORY ? err : ERR_OK;
}

enum err import_list_files(struct import *import) {
    enum err err = ERR_OK;
    for (size_t i = 0; i < import->cli->arguments_count && err == ERR_OK; i++) {
        const char *path = import->cli->arguments[i];
        if (is_wacz(path)) {
            err = add_wacz(import, path);
        } else {
            err = add_file(import, path) == NULL ? ERR_MEMORY : ERR_OK;
        }
    }
    return err;
}

void import_free_files(struct import *import) {
    for (size_t i = 0; i < import->files_count; i++) {
        struct import_file *file = &import->files[i];
        buf_done(&file->deferred);
        if (file->wacz != NULL) {
            free((char *)(uintptr_t)file->path);
        }
    }
    free(import->files);
    for (struct import_wacz *wacz = import->waczs; wacz != NULL;) {
        struct import_wacz *next = wacz->next;
        wacz_reader_done(&wacz->reader);
        free(wacz);
        wacz = next;
    }
}

/* ---- one of them ---- */

static bool wacz_fail(struct import_job *job, const char *path, enum err err,
                      const struct err_detail *detail) {
    import_count(job, &job->import->tally.files_failed_count);
    import_say(job->import, path, detail->offset, "%s", err_detail_text(detail, err));
    return false;
}

static bool open_file(struct import_job *job, struct import_source *source) {
    struct err_detail detail = {0};
    enum err err = ERR_OK;
    if (strcmp(job->file->path, "-") == 0) {
        source_file_init(&source->file, fileno(job->import->cli->in));
    } else {
        err = source_file_open(&source->file, job->file->path, &detail);
    }
    source->records = &source->file.source;
    return err == ERR_OK || wacz_fail(job, NULL, err, &detail);
}

/* Nothing is taken from a member before all of it is known to be what package and directory say. */
static enum err check_member(const struct import_job *job, struct source *source, struct err_detail *detail) {
    struct wacz_resource resource = *job->file->member;
    resource.has_digest = resource.has_digest && !job->import->ignores_digests;
    enum err err = wacz_reader_check(&resource, source, detail);
    if (err == ERR_MISMATCH) {
        size_t size = strlen(detail->text);
        snprintf(detail->text + size, sizeof detail->text - size, "; --ignore-digests imports it anyway");
    }
    return err;
}

static bool open_member(struct import_job *job, struct import_source *source) {
    const struct import_file *file = job->file;
    struct err_detail detail = {0};
    enum err err = source_file_open(&source->file, file->wacz->path, &detail);
    if (err != ERR_OK) {
        return wacz_fail(job, NULL, err, &detail);
    }
    if (!job->is_second_pass) {
        err = check_member(job, &source->file.source, &detail);
    }
    if (err == ERR_OK && file->member->is_warc) {
        err = zip_source_init(&source->member, &source->file.source, file->member->entry);
        source->records = &source->member.source;
    }
    if (err != ERR_OK) {
        wacz_fail(job, file->wacz->path, err, &detail);
        source_file_done(&source->file);
    }
    return err == ERR_OK;
}

bool import_source_open(struct import_job *job, struct import_source *source) {
    *source = (struct import_source){0};
    return job->file->wacz != NULL ? open_member(job, source) : open_file(job, source);
}

void import_source_close(struct import_source *source) {
    zip_source_done(&source->member);
    source_file_done(&source->file);
}
