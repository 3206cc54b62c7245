/*
 * wacz - arbitrary bytes as a WACZ file: directory, package, every entry, and the WARC files in it.
 *
 * Whatever the bytes are, opening ends, entries lie apart and before the directory, none gives more than its
 * size, and reading twice gives the same. The bytes are also taken for an HTML page, whose title must be
 * short UTF-8.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "warc/wacz_reader.h"
#include "warc/warc_reader.h"
#include "warc/zip_source.h"

enum { READ_SIZE_MAX = 4 << 20, PIECE_SIZE = 4096 };

static const struct unpack_options options = {.unpacked_size_max = 1 << 20, .ratio_max = 900};

/* Ends after READ_SIZE_MAX: a megabyte of input may claim a gigabyte of output. */
static enum err read_entry(const struct zip_entry *entry, struct source *file, uint64_t *ret_size) {
    struct zip_source zip;
    uint8_t piece[PIECE_SIZE];
    uint64_t sum = 0;
    size_t got = 0;
    enum err err = zip_source_init(&zip, file, entry);
    ASSERT(err == ERR_OK);
    if (source_can_seek(&zip.source)) { /* there and back again */
        ASSERT(source_seek(&zip.source, entry->size / 2, NULL) == ERR_OK);
        (void)!source_read(&zip.source, piece, sizeof piece, &got, NULL);
        ASSERT(source_seek(&zip.source, 0, NULL) == ERR_OK);
        got = 0;
    }
    do {
        err = source_read(&zip.source, piece, sizeof piece, &got, NULL);
        sum += err == ERR_OK ? got : 0;
        ASSERT(sum <= entry->size);
    } while (err == ERR_OK && got > 0 && sum < READ_SIZE_MAX);
    ASSERT(err == ERR_OK || err == ERR_CORRUPT);
    ASSERT(err != ERR_OK || got > 0 || sum == entry->size);
    zip_source_done(&zip);
    *ret_size = sum;
    return err;
}

static void read_records(struct warc_reader *reader, const struct zip_entry *entry, struct source *file) {
    struct zip_source zip;
    bool found = true;
    enum err err = zip_source_init(&zip, file, entry);
    ASSERT(err == ERR_OK);
    warc_reader_open(reader, &zip.source);
    for (size_t i = 0; i < 100 && found; i++) {
        err = warc_reader_next(reader, &found, NULL);
        if (err != ERR_OK && warc_reader_recover(reader, &found, NULL) != ERR_OK) {
            break; /* the ZIP file itself is damaged here */
        }
    }
    zip_source_done(&zip);
}

static void read_wacz(struct warc_reader *reader, struct bytes bytes) {
    struct source_memory memory;
    struct wacz_reader wacz;
    struct err_detail detail = {0};
    source_memory_init(&memory, bytes);
    enum err err = wacz_reader_open(&wacz, &memory.source, bytes.size, &detail);
    ASSERT(err != ERR_IO && err != ERR_MEMORY);
    if (err != ERR_OK) {
        ASSERT(detail.offset <= bytes.size && detail.text[0] != '\0');
        return;
    }
    for (size_t i = 0; i < wacz.resources_count; i++) {
        const struct zip_entry *entry = wacz.resources[i].entry;
        uint64_t first = 0;
        uint64_t second = 0;
        ASSERT(entry->data_offset <= bytes.size && entry->stored_size <= bytes.size - entry->data_offset);
        ASSERT(zip_reader_find(&wacz.zip, entry->name) == entry);
        err = read_entry(entry, &memory.source, &first);
        enum err again = read_entry(entry, &memory.source, &second);
        ASSERT(err == again && first == second);
        if (first < READ_SIZE_MAX) {
            again = wacz_reader_check(&wacz.resources[i], &memory.source, &detail);
            ASSERT(again == err || again == ERR_MISMATCH);
        }
        if (wacz.resources[i].is_warc) {
            read_records(reader, entry, &memory.source);
        }
    }
    wacz_reader_done(&wacz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct warc_reader reader;
    if (reader.unpack.in.data == NULL) {
        enum err err = warc_reader_init(&reader, &options);
        ASSERT(err == ERR_OK);
    }
    read_wacz(&reader, bytes_of(data, size));
    return 0;
}
