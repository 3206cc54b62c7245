#include "warc/wacz_reader.h"

#include <jansson.h>
#include <stdlib.h>

#include "warc/zip_source.h"

enum { PIECE_SIZE = 128 << 10 };

/* ---- one file ---- */

/* Read all of an entry; each piece goes to the hash and to out, either of which may be NULL. */
static enum err wacz_read_entry(const struct zip_entry *entry, struct source *source, struct warc_hash *hash,
                                struct buf *out, struct err_detail *detail) {
    struct zip_source zip;
    uint8_t *piece = malloc(PIECE_SIZE);
    enum err err = piece == NULL ? ERR_MEMORY : zip_source_init(&zip, source, entry);
    if (err != ERR_OK) {
        free(piece);
        return err_set(detail, err, "%s", err_text(err));
    }
    size_t got = 0;
    do {
        err = source_read(&zip.source, piece, PIECE_SIZE, &got, detail);
        if (err == ERR_OK && hash != NULL) {
            warc_hash_update(hash, bytes_of(piece, got));
        }
        if (err == ERR_OK && out != NULL && (err = buf_put(out, bytes_of(piece, got))) != ERR_OK) {
            err_set(detail, err, "%.*s: %s", BYTES_ARG(entry->name), err_text(err));
        }
    } while (err == ERR_OK && got > 0);
    zip_source_done(&zip);
    free(piece);
    return err;
}

static enum err mismatch(const struct zip_entry *entry, const char *reason, struct err_detail *detail) {
    return err_set_at(detail, ERR_MISMATCH, (size_t)entry->data_offset, "%.*s: %s", BYTES_ARG(entry->name),
                      reason);
}

enum err wacz_reader_check(const struct wacz_resource *resource, struct source *source,
                           struct err_detail *detail) {
    struct warc_hash hash;
    struct warc_digest digest = {0};
    if (!resource->has_digest) {
        return wacz_read_entry(resource->entry, source, NULL, NULL, detail);
    }
    enum err err = warc_hash_init(&hash);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    warc_hash_start(&hash, resource->digest.algorithm);
    err = wacz_read_entry(resource->entry, source, &hash, NULL, detail);
    warc_hash_finish(&hash, &digest);
    warc_hash_done(&hash);
    if (err == ERR_OK && !warc_digest_equal(&digest, &resource->digest)) {
        err =
            mismatch(resource->entry, "its bytes do not have the digest that datapackage.json says", detail);
    }
    return err;
}

/* ---- the package ---- */

static struct bytes wacz_text_of(const json_t *value) {
    return json_is_string(value) ? bytes_of(json_string_value(value), json_string_length(value))
                                 : bytes_of(NULL, 0);
}

/* A JSON file of the WACZ, and its bytes. */
static enum err load_json(const struct zip_entry *entry, struct source *source, struct buf *text,
                          json_t **ret_json, struct err_detail *detail) {
    json_error_t problem;
    buf_init(text, WACZ_PACKAGE_SIZE_MAX);
    enum err err = wacz_read_entry(entry, source, NULL, text, detail);
    if (err != ERR_OK) {
        return err;
    }
    json_t *json = json_loadb((const char *)text->data, text->size, JSON_REJECT_DUPLICATES, &problem);
    if (!json_is_object(json)) {
        bool is_json = json != NULL;
        size_t position = !is_json && problem.position > 0 ? (size_t)problem.position : 0;
        json_decref(json);
        if (!is_json && problem.text[0] == '\0') { /* jansson has words for everything else */
            return err_set_at(detail, ERR_MEMORY, (size_t)entry->data_offset, "%s", err_text(ERR_MEMORY));
        }
        return err_set_at(detail, ERR_INVALID, (size_t)entry->data_offset + position,
                          "%.*s: no JSON object: %s", BYTES_ARG(entry->name),
                          is_json ? "it is another value" : problem.text);
    }
    *ret_json = json;
    return ERR_OK;
}

/* Does datapackage-digest.json name the package that is there? */
static enum err check_package(const struct wacz_reader *wacz, struct source *source, struct bytes package,
                              struct err_detail *detail) {
    const struct zip_entry *entry = zip_reader_find(&wacz->zip, BYTES("datapackage-digest.json"));
    struct buf text;
    json_t *json = NULL;
    struct warc_hash hash;
    struct warc_digest stated = {0};
    struct warc_digest computed = {0};
    if (entry == NULL) {
        return ERR_OK;
    }
    enum err err = load_json(entry, source, &text, &json, detail);
    if (err == ERR_OK) {
        err = warc_digest_parse(&stated, wacz_text_of(json_object_get(json, "hash")), detail);
        json_decref(json);
    }
    buf_done(&text);
    if (err == ERR_OK) {
        err = warc_hash_init(&hash);
    }
    if (err != ERR_OK) {
        return err;
    }
    warc_hash_start(&hash, stated.algorithm);
    warc_hash_update(&hash, package);
    warc_hash_finish(&hash, &computed);
    warc_hash_done(&hash);
    return warc_digest_equal(&stated, &computed)
               ? ERR_OK
               : mismatch(entry, "the digest is not that of datapackage.json", detail);
}

static int wacz_by_name(const void *a, const void *b) {
    const struct wacz_resource *left = a;
    const struct wacz_resource *right = b;
    return bytes_compare(left->entry->name, right->entry->name);
}

static struct wacz_resource *wacz_find(const struct wacz_reader *wacz, struct bytes path) {
    struct zip_entry entry = {.name = path};
    struct wacz_resource wanted = {.entry = &entry};
    return wacz->resources_count == 0 ? NULL
                                      : bsearch(&wanted, wacz->resources, wacz->resources_count,
                                                sizeof *wacz->resources, wacz_by_name);
}

/* What the package says of one file. */
static enum err take_resource(const struct wacz_reader *wacz, const json_t *json, struct err_detail *detail) {
    struct bytes path = wacz_text_of(json_object_get(json, "path"));
    struct bytes hash = wacz_text_of(json_object_get(json, "hash"));
    const json_t *size = json_object_get(json, "bytes");
    struct wacz_resource *resource = wacz_find(wacz, path);
    if (resource == NULL) {
        return err_set(detail, ERR_MISMATCH, "datapackage.json names \"%.*s\", which is not there",
                       BYTES_ARG(path));
    }
    if (resource->has_digest) {
        return err_set(detail, ERR_INVALID, "datapackage.json names %.*s twice", BYTES_ARG(path));
    }
    if (json_is_integer(size) && (uint64_t)json_integer_value(size) != resource->entry->size) {
        return mismatch(resource->entry, "its size is not what datapackage.json says", detail);
    }
    if (hash.size == 0) {
        return ERR_OK;
    }
    enum err err = warc_digest_parse(&resource->digest, hash, NULL);
    /* A digest that we cannot compute is as good as none. */
    resource->has_digest = err == ERR_OK;
    return err == ERR_OK || err == ERR_UNSUPPORTED
               ? ERR_OK
               : mismatch(resource->entry, "its hash in datapackage.json is no digest", detail);
}

static enum err take_package(const struct wacz_reader *wacz, const json_t *json, struct err_detail *detail) {
    if (bytes_equal(wacz_text_of(json_object_get(json, "profile")), BYTES("multi-wacz-package"))) {
        return err_set(detail, ERR_UNSUPPORTED, "a collection of WACZ files; they are read one by one");
    }
    const json_t *list = json_object_get(json, "resources");
    enum err err = ERR_OK;
    for (size_t i = 0; i < json_array_size(list) && err == ERR_OK; i++) {
        err = take_resource(wacz, json_array_get(list, i), detail);
    }
    return err;
}

static enum err read_package(struct wacz_reader *wacz, struct source *source, struct err_detail *detail) {
    const struct zip_entry *entry = zip_reader_find(&wacz->zip, BYTES("datapackage.json"));
    struct buf text;
    json_t *json = NULL;
    if (entry == NULL) {
        return ERR_OK;
    }
    enum err err = load_json(entry, source, &text, &json, detail);
    if (err == ERR_OK) {
        err = check_package(wacz, source, buf_bytes(&text), detail);
        err = err == ERR_OK ? take_package(wacz, json, detail) : err;
        json_decref(json);
    }
    buf_done(&text);
    wacz->has_package = true;
    return err;
}

/* ---- all of it ---- */

static bool is_warc_name(struct bytes name) {
    static const char *const ends[] = {".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"};
    bool is_named = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        is_named = is_named || bytes_ends_with(name, bytes_of_string(ends[i]));
    }
    return is_named && bytes_starts_with(name, BYTES("archive/"));
}

static enum err list_resources(struct wacz_reader *wacz) {
    if (wacz->zip.entries_count == 0) {
        return ERR_OK;
    }
    wacz->resources = calloc(wacz->zip.entries_count, sizeof *wacz->resources);
    if (wacz->resources == NULL) {
        return ERR_MEMORY;
    }
    for (size_t i = 0; i < wacz->zip.entries_count; i++) {
        const struct zip_entry *entry = &wacz->zip.entries[i];
        if (entry->name.data[entry->name.size - 1] != '/') {
            wacz->resources[wacz->resources_count++] =
                (struct wacz_resource){.entry = entry, .is_warc = is_warc_name(entry->name)};
        }
    }
    return ERR_OK;
}

enum err wacz_reader_open(struct wacz_reader *wacz, struct source *source, uint64_t file_size,
                          struct err_detail *detail) {
    *wacz = (struct wacz_reader){0};
    enum err err = zip_reader_open(&wacz->zip, source, file_size, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = list_resources(wacz);
    err = err == ERR_OK ? read_package(wacz, source, detail) : err_set(detail, err, "%s", err_text(err));
    if (err != ERR_OK) {
        wacz_reader_done(wacz);
    }
    return err;
}

void wacz_reader_done(struct wacz_reader *wacz) {
    free(wacz->resources);
    zip_reader_done(&wacz->zip);
    *wacz = (struct wacz_reader){0};
}
