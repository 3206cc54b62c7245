/*
 * warc - arbitrary bytes as a WARC or ARC file, plain, gzip or zstd: read, checked, recovered and indexed.
 *
 * Whatever the bytes are, reading ends, records lie in order inside the file, and no block is longer than its
 * header says.
 */
#include <stdlib.h>

#include "../unit/cdxj-indexer.h"
#include "base/assert.h"
#include "fuzz.h"
#include "warc/warc_check.h"
#include "warc/zdict.h"

enum { UNPACKED_SIZE_MAX = 2 << 20, LINE_SIZE_MAX = 1 << 20 };

static const struct unpack_options options = {.unpacked_size_max = UNPACKED_SIZE_MAX, .ratio_max = 900};

/* Hides seek: the way of a pipe. */
struct forward {
    struct source source;
    struct source_memory memory;
};

static enum err read_forward(struct source *source, void *out, size_t size, size_t *ret_size,
                             struct err_detail *detail) {
    struct forward *forward = (struct forward *)source;
    return source_read(&forward->memory.source, out, size < 7 ? size : 7, ret_size, detail);
}

static enum err read_block(struct warc_reader *reader, struct warc_check *check) {
    uint64_t sum = 0;
    struct bytes piece = {NULL, 0};
    enum err err;
    warc_check_start(check, &reader->record);
    do {
        err = warc_reader_read(reader, &piece, NULL);
        if (err == ERR_OK) {
            sum += piece.size;
            warc_check_feed(check, piece);
        }
    } while (err == ERR_OK && piece.size > 0);
    warc_check_finish(check);
    ASSERT(err != ERR_OK || sum == reader->record.content_length);
    return err;
}

static void read_all(struct warc_reader *reader, struct warc_check *check, struct source *source,
                     size_t size) {
    uint64_t end = 0;
    uint64_t count = 0;
    struct err_detail detail;
    warc_reader_open(reader, source);
    for (bool found = true; found; count++) {
        enum err err = warc_reader_next(reader, &found, &detail);
        if (err == ERR_OK && found) {
            const struct warc_record *record = &reader->record;
            ASSERT(record->offset >= end && record->offset < size);
            err = count % 3 == 0 ? ERR_OK : read_block(reader, check);
            err = err == ERR_OK ? warc_reader_finish(reader, &detail) : err;
            ASSERT(err != ERR_OK || record->offset + record->length <= size);
            end = record->offset + record->length;
        }
        if (err != ERR_OK) {
            ASSERT(err != ERR_IO && err != ERR_MEMORY);
            end = 0; /* recovery may go back */
            err = warc_reader_recover(reader, &found, &detail);
            ASSERT(err == ERR_OK);
        }
    }
    ASSERT(count <= size + 1);
}

static void index_all(struct cdxj_indexer *indexer, struct source *source, struct buf *line) {
    cdxj_indexer_open(indexer, source, BYTES("fuzz.warc"));
    for (bool found = true; found;) {
        enum err err = cdxj_indexer_next(indexer, &found, NULL);
        if (err == ERR_UNSUPPORTED) {
            continue;
        }
        if (err != ERR_OK) {
            err = warc_reader_recover(&indexer->reader, &found, NULL);
            ASSERT(err == ERR_OK);
            continue;
        }
        if (!found) {
            break;
        }
        buf_clear(line);
        err = cdxj_put_json(line, &indexer->entry);
        ASSERT(err != ERR_OK || line->data[0] == '{');
        buf_clear(line);
        err = cdxj_put(line, &indexer->entry);
        ASSERT(err != ERR_OK || bytes_find_byte(buf_bytes(line), '\n') == line->size - 1);
    }
}

/* The first record by itself: checked as a whole, and read from memory. */
static void read_one(struct warc_reader *reader, struct warc_check *check, struct bytes bytes) {
    struct source_memory memory;
    struct warc_record record = {0};
    struct bytes block;
    struct buf text;
    bool found = false;
    source_memory_init(&memory, bytes);
    warc_reader_open(reader, &memory.source);
    if (warc_reader_next(reader, &found, NULL) == ERR_OK && found) {
        ASSERT(warc_type_name(reader->record.type) != NULL);
        (void)!warc_check_read(check, reader, NULL);
    }
    if (warc_reader_seek(reader, bytes.size, NULL) == ERR_OK && warc_reader_seek(reader, 0, NULL) == ERR_OK) {
        (void)!warc_reader_next(reader, &found, NULL);
    }
    buf_init(&text, LINE_SIZE_MAX);
    if (warc_record_split(&record, bytes, &text, &block)) {
        ASSERT(block.size == record.content_length);
    }
    buf_done(&text);
}

/* The bytes as a dictionary, which begins a .warc.zst as a frame of its own, and as such a frame. */
static void check_dictionary(struct bytes bytes) {
    enum { DICTIONARY_SIZE_MAX = 4096, LEVEL = 3 };
    struct buf frame;
    struct buf again;
    struct zdict zdict;
    buf_init(&frame, LINE_SIZE_MAX);
    buf_init(&again, LINE_SIZE_MAX);
    (void)!zdict_unpack(bytes, &again, NULL);
    if (bytes.size > 0 && bytes.size <= DICTIONARY_SIZE_MAX) {
        enum err err = zdict_put_frame(&frame, bytes);
        ASSERT(err == ERR_OK);
        if (zdict_init_content(&zdict, bytes_skip(buf_bytes(&frame), 8), NULL) == ERR_OK) {
            zdict_done(&zdict);
        }
        if (zdict_init(&zdict, bytes, LEVEL, NULL) == ERR_OK) {
            zdict_done(&zdict);
        }
    }
    buf_done(&frame);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* Kept from run to run: state that survives in them would show as a failure that cannot be repeated. */
    static struct warc_reader reader;
    static struct warc_check check;
    static struct cdxj_indexer indexer;
    static struct buf line;
    if (reader.unpack.in.data == NULL) {
        bool is_ready = warc_reader_init(&reader, &options) == ERR_OK && warc_check_init(&check) == ERR_OK &&
                        cdxj_indexer_init(&indexer, &options) == ERR_OK;
        ASSERT(is_ready);
        buf_init(&line, LINE_SIZE_MAX);
    }
    struct forward forward = {.source = {.read = read_forward}};
    source_memory_init(&forward.memory, bytes_of(data, size));
    read_all(&reader, &check, &forward.memory.source, size);
    source_memory_init(&forward.memory, bytes_of(data, size));
    read_all(&reader, &check, &forward.source, size);
    source_memory_init(&forward.memory, bytes_of(data, size));
    index_all(&indexer, &forward.memory.source, &line);
    read_one(&reader, &check, bytes_of(data, size));
    check_dictionary(bytes_of(data, size));
    return 0;
}
