#include "warc/zip_reader.h"

#include <stdlib.h>

enum {
    TAIL_SIZE_MAX = ZIP_END_SIZE + ZIP_COMMENT_SIZE_MAX,
    ONES16 = UINT16_MAX,
    DEFLATE_RATIO_MAX = 1032, /* a deflate stream cannot grow by more */
    DEFLATE_GRACE = 1024,
    EXTRA_HEAD_SIZE = 4,
    LOCAL_TAIL_SIZE_MAX = 2 * UINT16_MAX, /* name and extra field */
    FLAGS_REFUSED = ZIP_FLAG_ENCRYPTED | ZIP_FLAG_STRONG | ZIP_FLAG_MASKED | ZIP_FLAG_PATCH,
};

static const uint32_t ONES32 = UINT32_MAX;

/* What zip_reader_open() knows on its way. */
struct opening {
    struct zip_reader *reader;
    struct source *source;
    uint64_t file_size;
    uint64_t end_offset; /* of the end record */
    uint64_t directory_offset;
    uint64_t directory_size;
    uint64_t directory_end; /* where it must end: the first of the end records */
    uint64_t entries_count;
    uint8_t *scratch; /* TAIL_SIZE_MAX or LOCAL_TAIL_SIZE_MAX, whichever is more */
    struct err_detail *detail;
};

static enum err zip_read_at(struct opening *opening, uint64_t offset, void *out, size_t size) {
    enum err err = source_seek(opening->source, offset, opening->detail);
    for (size_t done = 0; err == ERR_OK && done < size;) {
        size_t got = 0;
        err = source_read(opening->source, (uint8_t *)out + done, size - done, &got, opening->detail);
        if (err == ERR_OK && got == 0) {
            err =
                err_set_at(opening->detail, ERR_TRUNCATED, (size_t)(offset + done), "the ZIP file ends here");
        }
        done += got;
    }
    return err;
}

static enum err zip_refuse(struct opening *opening, uint64_t offset, const char *reason) {
    return err_set_at(opening->detail, ERR_INVALID, (size_t)offset, "ZIP: %s", reason);
}

/* ---- the end of the file ---- */

static enum err find_end(struct opening *opening) {
    size_t size = opening->file_size < TAIL_SIZE_MAX ? (size_t)opening->file_size : TAIL_SIZE_MAX;
    uint64_t start = opening->file_size - size;
    const uint8_t *tail = opening->scratch;
    enum err err = zip_read_at(opening, start, opening->scratch, size);
    size_t found_count = 0;
    for (size_t i = 0; err == ERR_OK && i + ZIP_END_SIZE <= size; i++) {
        bool is_end =
            zip_get32(tail + i) == ZIP_END_SIGNATURE && i + ZIP_END_SIZE + zip_get16(tail + i + 20) == size;
        if (is_end) {
            found_count++;
            opening->end_offset = start + i;
        }
    }
    if (err != ERR_OK) {
        return err;
    }
    if (found_count == 0) {
        return err_set_at(opening->detail, ERR_TRUNCATED, (size_t)opening->file_size,
                          "ZIP: no end of the directory: the file is cut off, or is no ZIP file");
    }
    /* A second one hides in the comment: which one is meant depends on the reader. */
    return found_count == 1 ? ERR_OK : zip_refuse(opening, opening->end_offset, "two ends of the directory");
}

/* The field of the end record, or the larger one if it is all ones. Both must not contradict. */
static bool agree(uint64_t small, uint64_t ones, uint64_t large) {
    return small == ones || small == large;
}

static enum err read_end64(struct opening *opening, const uint8_t *end) {
    uint8_t locator[ZIP_LOCATOR_SIZE];
    uint8_t large[ZIP_END64_SIZE];
    if (opening->end_offset < ZIP_LOCATOR_SIZE + ZIP_END64_SIZE) {
        return zip_refuse(opening, opening->end_offset, "no room for the zip64 end that is needed");
    }
    uint64_t locator_offset = opening->end_offset - ZIP_LOCATOR_SIZE;
    enum err err = zip_read_at(opening, locator_offset, locator, sizeof locator);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t offset = zip_get64(locator + 8);
    if (zip_get32(locator) != ZIP_LOCATOR_SIGNATURE || zip_get32(locator + 4) != 0 ||
        zip_get32(locator + 16) > 1 || offset != locator_offset - ZIP_END64_SIZE) {
        return zip_refuse(opening, locator_offset, "the zip64 locator is missing or leads elsewhere");
    }
    if ((err = zip_read_at(opening, offset, large, sizeof large)) != ERR_OK) {
        return err;
    }
    opening->entries_count = zip_get64(large + 32);
    opening->directory_size = zip_get64(large + 40);
    opening->directory_offset = zip_get64(large + 48);
    opening->directory_end = offset;
    bool is_sound = zip_get32(large) == ZIP_END64_SIGNATURE && zip_get64(large + 4) == ZIP_END64_SIZE - 12 &&
                    zip_get32(large + 16) == 0 && zip_get32(large + 20) == 0 &&
                    zip_get64(large + 24) == opening->entries_count &&
                    agree(zip_get16(end + 10), ONES16, opening->entries_count) &&
                    agree(zip_get32(end + 12), ONES32, opening->directory_size) &&
                    agree(zip_get32(end + 16), ONES32, opening->directory_offset);
    return is_sound ? ERR_OK : zip_refuse(opening, offset, "the zip64 end contradicts the end, or itself");
}

static enum err read_end(struct opening *opening) {
    uint8_t end[ZIP_END_SIZE];
    enum err err = zip_read_at(opening, opening->end_offset, end, sizeof end);
    if (err != ERR_OK) {
        return err;
    }
    opening->entries_count = zip_get16(end + 10);
    opening->directory_size = zip_get32(end + 12);
    opening->directory_offset = zip_get32(end + 16);
    opening->directory_end = opening->end_offset;
    if (zip_get16(end + 4) != 0 || zip_get16(end + 6) != 0 || zip_get16(end + 8) != zip_get16(end + 10)) {
        return err_set_at(opening->detail, ERR_UNSUPPORTED, (size_t)opening->end_offset,
                          "ZIP: a file on several disks");
    }
    if (opening->entries_count == ONES16 || opening->directory_size == ONES32 ||
        opening->directory_offset == ONES32) {
        return read_end64(opening, end);
    }
    return ERR_OK;
}

static enum err check_end(struct opening *opening) {
    uint64_t end = opening->directory_end;
    if (opening->directory_offset > end || opening->directory_size != end - opening->directory_offset) {
        return zip_refuse(
            opening, opening->end_offset,
            "the directory is not where the end says: something stands before the file, or the end lies");
    }
    if (opening->directory_size > ZIP_DIRECTORY_SIZE_MAX) {
        return err_set_at(opening->detail, ERR_LIMIT, (size_t)opening->directory_offset,
                          "ZIP: a directory of more than %d bytes", ZIP_DIRECTORY_SIZE_MAX);
    }
    if (opening->entries_count > opening->directory_size / ZIP_CENTRAL_SIZE) {
        return zip_refuse(opening, opening->end_offset, "more entries than the directory has room for");
    }
    return ERR_OK;
}

/* ---- entries ---- */

/* No name leaves the place where somebody may unpack it. */
static bool is_safe_name(struct bytes name) {
    struct bytes rest = name;
    struct bytes part;
    bool is_first = true;
    if (name.size == 0 || name.size > ZIP_NAME_SIZE_MAX || (name.size > 1 && name.data[1] == ':')) {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] < ' ' || name.data[i] == 0x7f || name.data[i] == '\\') {
            return false;
        }
    }
    while (bytes_split(&rest, '/', &part)) {
        bool is_last = rest.data == NULL;
        if ((part.size == 0 && (is_first || !is_last)) || bytes_equal(part, BYTES(".")) ||
            bytes_equal(part, BYTES(".."))) {
            return false;
        }
        is_first = false;
    }
    return true;
}

/* Replace what is all ones by what the extra field says; offset may be NULL. False if that lies. */
static bool read_extra(struct bytes extra, uint64_t *size, uint64_t *stored_size, uint64_t *offset) {
    uint64_t *values[] = {size, stored_size, offset};
    bool is_found = false;
    while (extra.size >= EXTRA_HEAD_SIZE) {
        uint16_t id = zip_get16(extra.data);
        uint16_t length = zip_get16(extra.data + 2);
        extra = bytes_skip(extra, EXTRA_HEAD_SIZE);
        if (length > extra.size || (id == ZIP_EXTRA_64 && is_found)) {
            return false;
        }
        struct bytes value = bytes_slice(extra, 0, length);
        extra = bytes_skip(extra, length);
        if (id != ZIP_EXTRA_64) {
            continue;
        }
        is_found = true;
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            if (values[i] == NULL || *values[i] != ONES32) {
                continue;
            }
            if (value.size < 8) {
                return false;
            }
            *values[i] = zip_get64(value.data);
            value = bytes_skip(value, 8);
        }
    }
    /* Old writers pad with up to three zero bytes. Ones without a field mean that very size, just below 4
     * GiB. */
    return true;
}

static enum err check_entry(struct opening *opening, const struct zip_entry *entry, uint64_t at) {
    if (!is_safe_name(entry->name)) {
        return zip_refuse(opening, at, "an entry whose name is empty, absolute, climbs or has odd bytes");
    }
    if ((entry->flags & FLAGS_REFUSED) != 0) {
        return err_set_at(opening->detail, ERR_UNSUPPORTED, (size_t)at, "ZIP: %.*s is encrypted",
                          BYTES_ARG(entry->name));
    }
    if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED) {
        return err_set_at(opening->detail, ERR_UNSUPPORTED, (size_t)at,
                          "ZIP: %.*s is compressed by method %u; only stored and deflate are read",
                          BYTES_ARG(entry->name), entry->method);
    }
    bool is_possible = entry->method == ZIP_STORED
                           ? entry->size == entry->stored_size
                           : entry->size / DEFLATE_RATIO_MAX <= entry->stored_size + DEFLATE_GRACE;
    bool is_directory = entry->name.data[entry->name.size - 1] == '/';
    if (!is_possible || (is_directory && entry->size != 0)) {
        return zip_refuse(opening, at, "an entry whose sizes cannot be true");
    }
    if (entry->header_offset > opening->directory_offset ||
        entry->stored_size > opening->directory_offset - entry->header_offset) {
        return zip_refuse(opening, at, "an entry that does not lie before the directory");
    }
    return ERR_OK;
}

/* Take one entry off the directory. */
static enum err zip_read_entry(struct opening *opening, struct bytes *rest, struct zip_entry *entry) {
    uint64_t at = opening->directory_end - rest->size;
    if (rest->size < ZIP_CENTRAL_SIZE || zip_get32(rest->data) != ZIP_CENTRAL_SIGNATURE) {
        return zip_refuse(opening, at, "no entry of the directory begins here");
    }
    const uint8_t *head = rest->data;
    size_t name_size = zip_get16(head + 28);
    size_t extra_size = zip_get16(head + 30);
    size_t tail_size = name_size + extra_size + zip_get16(head + 32);
    uint16_t disk = zip_get16(head + 34);
    struct bytes tail = bytes_skip(*rest, ZIP_CENTRAL_SIZE);
    if (tail.size < tail_size || disk != 0) {
        return zip_refuse(opening, at, "an entry that is longer than the directory, or on another disk");
    }
    *entry = (struct zip_entry){
        .name = bytes_slice(tail, 0, name_size),
        .flags = zip_get16(head + 8),
        .method = zip_get16(head + 10),
        .crc32 = zip_get32(head + 16),
        .stored_size = zip_get32(head + 20),
        .size = zip_get32(head + 24),
        .header_offset = zip_get32(head + 42),
    };
    if (!read_extra(bytes_slice(tail, name_size, name_size + extra_size), &entry->size, &entry->stored_size,
                    &entry->header_offset)) {
        return zip_refuse(opening, at, "an extra field that is longer than its entry, or twice there");
    }
    *rest = bytes_skip(tail, tail_size);
    return check_entry(opening, entry, at);
}

/* The local header must say the same, so that whoever reads from the front sees what we see. */
static enum err read_local(struct opening *opening, struct zip_entry *entry) {
    uint8_t head[ZIP_LOCAL_SIZE];
    uint64_t at = entry->header_offset;
    enum err err = zip_read_at(opening, at, head, sizeof head);
    if (err != ERR_OK) {
        return err;
    }
    size_t name_size = zip_get16(head + 26);
    size_t extra_size = zip_get16(head + 28);
    if (zip_get32(head) != ZIP_LOCAL_SIGNATURE || name_size != entry->name.size) {
        return zip_refuse(opening, at, "no header of the entry that the directory says is here");
    }
    if ((err = zip_read_at(opening, at + sizeof head, opening->scratch, name_size + extra_size)) != ERR_OK) {
        return err;
    }
    uint64_t stored_size = zip_get32(head + 18);
    uint64_t size = zip_get32(head + 22);
    struct bytes name = bytes_of(opening->scratch, name_size);
    uint16_t flags = zip_get16(head + 6);
    bool has_sizes = (flags & ZIP_FLAG_DESCRIPTOR) == 0;
    bool is_readable =
        read_extra(bytes_of(opening->scratch + name_size, extra_size), &size, &stored_size, NULL);
    bool is_same = is_readable && bytes_equal(name, entry->name) && (flags & FLAGS_REFUSED) == 0 &&
                   zip_get16(head + 8) == entry->method &&
                   (!has_sizes || (zip_get32(head + 14) == entry->crc32 && size == entry->size &&
                                   stored_size == entry->stored_size));
    entry->data_offset = at + sizeof head + name_size + extra_size;
    if (!is_same) {
        return zip_refuse(opening, at, "the header of an entry contradicts the directory");
    }
    if (entry->data_offset > opening->directory_offset ||
        entry->stored_size > opening->directory_offset - entry->data_offset) {
        return zip_refuse(opening, at, "an entry that does not lie before the directory");
    }
    return ERR_OK;
}

static enum err read_entries(struct opening *opening) {
    struct zip_reader *reader = opening->reader;
    size_t size = (size_t)opening->directory_size;
    buf_init(&reader->directory, ZIP_DIRECTORY_SIZE_MAX);
    enum err err = buf_reserve(&reader->directory, size);
    if (err == ERR_OK && opening->entries_count > 0) {
        reader->entries = calloc((size_t)opening->entries_count, sizeof *reader->entries);
        err = reader->entries == NULL ? ERR_MEMORY : ERR_OK;
    }
    if (err != ERR_OK) {
        return err_set(opening->detail, err, "%s", err_text(err));
    }
    err = zip_read_at(opening, opening->directory_offset, reader->directory.data, size);
    reader->directory.size = size;
    struct bytes rest = buf_bytes(&reader->directory);
    while (err == ERR_OK && reader->entries_count < opening->entries_count) {
        struct zip_entry *entry = &reader->entries[reader->entries_count++];
        err = zip_read_entry(opening, &rest, entry);
    }
    if (err == ERR_OK && rest.size > 0) {
        err = zip_refuse(opening, opening->directory_end - rest.size,
                         "bytes behind the last entry of the directory");
    }
    return err;
}

/* ---- all of them together ---- */

static int by_offset(const void *a, const void *b) {
    const struct zip_entry *left = a;
    const struct zip_entry *right = b;
    return (left->header_offset > right->header_offset) - (left->header_offset < right->header_offset);
}

static int zip_by_name(const void *a, const void *b) {
    const struct zip_entry *left = a;
    const struct zip_entry *right = b;
    return bytes_compare(left->name, right->name);
}

/* In the order of the file and never twice the same bytes: a thousand entries on one header cost one look. */
static enum err check_places(struct opening *opening) {
    struct zip_reader *reader = opening->reader;
    uint64_t end = 0;
    if (reader->entries_count == 0) {
        return opening->directory_offset == 0 ? ERR_OK
                                              : zip_refuse(opening, 0, "bytes that no entry accounts for");
    }
    qsort(reader->entries, reader->entries_count, sizeof *reader->entries, by_offset);
    if (reader->entries[0].header_offset != 0) {
        return zip_refuse(opening, 0, "something stands before the first entry");
    }
    for (size_t i = 0; i < reader->entries_count; i++) {
        struct zip_entry *entry = &reader->entries[i];
        if (entry->header_offset < end) {
            return zip_refuse(opening, entry->header_offset, "two entries overlap");
        }
        enum err err = read_local(opening, entry);
        if (err != ERR_OK) {
            return err;
        }
        end = entry->data_offset + entry->stored_size;
    }
    return ERR_OK;
}

static enum err check_names(struct opening *opening) {
    struct zip_reader *reader = opening->reader;
    if (reader->entries_count == 0) {
        return ERR_OK;
    }
    qsort(reader->entries, reader->entries_count, sizeof *reader->entries, zip_by_name);
    for (size_t i = 1; i < reader->entries_count; i++) {
        const struct zip_entry *entry = &reader->entries[i];
        if (bytes_equal(reader->entries[i - 1].name, entry->name)) {
            return zip_refuse(opening, entry->header_offset, "two entries of one name");
        }
    }
    return ERR_OK;
}

enum err zip_reader_open(struct zip_reader *reader, struct source *source, uint64_t file_size,
                         struct err_detail *detail) {
    *reader = (struct zip_reader){0};
    struct opening opening = {.reader = reader, .source = source, .file_size = file_size, .detail = detail};
    if (!source_can_seek(source)) {
        return err_set(detail, ERR_UNSUPPORTED, "a ZIP file is read from its end: it must be a file");
    }
    if ((opening.scratch = malloc(LOCAL_TAIL_SIZE_MAX)) == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    enum err err = find_end(&opening);
    err = err == ERR_OK ? read_end(&opening) : err;
    err = err == ERR_OK ? check_end(&opening) : err;
    err = err == ERR_OK ? read_entries(&opening) : err;
    err = err == ERR_OK ? check_places(&opening) : err;
    err = err == ERR_OK ? check_names(&opening) : err;
    free(opening.scratch);
    if (err != ERR_OK) {
        zip_reader_done(reader);
    }
    return err;
}

void zip_reader_done(struct zip_reader *reader) {
    free(reader->entries);
    buf_done(&reader->directory);
    *reader = (struct zip_reader){0};
}

const struct zip_entry *zip_reader_find(const struct zip_reader *reader, struct bytes name) {
    struct zip_entry wanted = {.name = name};
    return reader->entries_count == 0 ? NULL
                                      : bsearch(&wanted, reader->entries, reader->entries_count,
                                                sizeof *reader->entries, zip_by_name);
}
