#include <stdio.h>
#include <zlib.h>

#include "base/utc.h"
#include "unit.h"
#include "warc/zip_reader.h"
#include "warc/zip_source.h"
#include "warc/zip_writer.h"

enum { FILE_SIZE_MAX = 8 << 20, LINE_LENGTH = 64, LARGE_COUNT = 70000 };

/* ---- files made by hand, so that they can lie ---- */

/* What one entry says, in the header and in the directory, unless a lie replaces it. */
struct part {
    const char *name;
    const char *text;
    uint16_t method;
    bool has_descriptor;
    uint32_t size_lie;   /* added in both places, as those below */
    uint32_t stored_lie; /* to the stored size */
    uint32_t crc_lie;
    uint16_t flags;
    const char *local_name; /* NULL: the same */
    uint32_t local_crc_lie; /* there only, as the next */
    uint32_t local_size_lie;
    uint32_t offset_lie; /* of the header, in the directory */
};

static void put16(struct buf *out, uint16_t value) {
    uint8_t bytes[2];
    zip_set16(bytes, value);
    buf_put(out, bytes_of(bytes, sizeof bytes));
}

static void put32(struct buf *out, uint32_t value) {
    uint8_t bytes[4];
    zip_set32(bytes, value);
    buf_put(out, bytes_of(bytes, sizeof bytes));
}

static void put64(struct buf *out, uint64_t value) {
    uint8_t bytes[8];
    zip_set64(bytes, value);
    buf_put(out, bytes_of(bytes, sizeof bytes));
}

static size_t deflate_raw(const char *text, uint8_t *out, size_t size) {
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (uint8_t *)(uintptr_t)text;
    stream.avail_in = (uInt)strlen(text);
    stream.next_out = out;
    stream.avail_out = (uInt)size;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return size - stream.avail_out;
}

static void put_part(struct buf *out, struct buf *directory, const struct part *part) {
    uint8_t packed[4096];
    struct bytes text = bytes_of_string(part->text);
    struct bytes stored = text;
    uint32_t offset = (uint32_t)out->size + part->offset_lie;
    uint16_t flags = (uint16_t)(part->flags | (part->has_descriptor ? ZIP_FLAG_DESCRIPTOR : 0));
    if (part->method == ZIP_DEFLATED) {
        stored = bytes_of(packed, deflate_raw(part->text, packed, sizeof packed));
    }
    uint32_t crc = (uint32_t)crc32(0, text.data, (uInt)text.size) + part->crc_lie;
    uint32_t size = (uint32_t)text.size + part->size_lie;
    uint32_t stored_size = (uint32_t)stored.size + part->stored_lie;
    const char *local_name = part->local_name != NULL ? part->local_name : part->name;
    put32(out, ZIP_LOCAL_SIGNATURE);
    put16(out, 20);
    put16(out, flags);
    put16(out, part->method);
    put32(out, 0);
    put32(out, part->has_descriptor ? 0 : crc + part->local_crc_lie);
    put32(out, part->has_descriptor ? 0 : stored_size);
    put32(out, part->has_descriptor ? 0 : size + part->local_size_lie);
    put16(out, (uint16_t)strlen(local_name));
    put16(out, 0);
    buf_put_string(out, local_name);
    buf_put(out, stored);
    if (part->has_descriptor) {
        put32(out, 0x08074b50);
        put32(out, crc);
        put32(out, stored_size);
        put32(out, size);
    }
    put32(directory, ZIP_CENTRAL_SIGNATURE);
    put16(directory, 20);
    put16(directory, 20);
    put16(directory, flags);
    put16(directory, part->method);
    put32(directory, 0);
    put32(directory, crc);
    put32(directory, stored_size);
    put32(directory, size);
    put16(directory, (uint16_t)strlen(part->name));
    for (size_t i = 0; i < 4; i++) {
        put16(directory, 0);
    }
    put32(directory, 0);
    put32(directory, offset);
    buf_put_string(directory, part->name);
}

static void put_end(struct buf *out, size_t count, size_t directory_size, uint32_t directory_offset) {
    put32(out, ZIP_END_SIGNATURE);
    put32(out, 0);
    put16(out, (uint16_t)count);
    put16(out, (uint16_t)count);
    put32(out, (uint32_t)directory_size);
    put32(out, directory_offset);
    put16(out, 0);
}

static void make_zip(struct buf *out, const struct part *parts, size_t count) {
    struct buf directory;
    buf_init(&directory, FILE_SIZE_MAX);
    buf_init(out, FILE_SIZE_MAX);
    for (size_t i = 0; i < count; i++) {
        put_part(out, &directory, &parts[i]);
    }
    uint32_t offset = (uint32_t)out->size;
    buf_put(out, buf_bytes(&directory));
    put_end(out, count, directory.size, offset);
    buf_done(&directory);
    assert_int_equal(out->err, ERR_OK);
}

/* ---- reading ---- */

static enum err open_bytes(struct zip_reader *reader, struct source_memory *memory, struct bytes bytes,
                           struct err_detail *detail) {
    source_memory_init(memory, bytes);
    return zip_reader_open(reader, &memory->source, bytes.size, detail);
}

static enum err read_all(struct source *file, const struct zip_entry *entry, struct buf *out,
                         struct err_detail *detail) {
    struct zip_source zip;
    uint8_t piece[LINE_LENGTH];
    size_t got = 0;
    enum err err = zip_source_init(&zip, file, entry);
    assert_int_equal(err, ERR_OK);
    buf_clear(out);
    do {
        err = source_read(&zip.source, piece, sizeof piece, &got, detail);
        if (err == ERR_OK) {
            buf_put(out, bytes_of(piece, got));
        }
    } while (err == ERR_OK && got > 0);
    zip_source_done(&zip);
    return err;
}

static void expect_refused(struct bytes bytes, enum err wanted, size_t offset, const char *reason) {
    struct zip_reader reader;
    struct source_memory memory;
    struct err_detail detail = {0};
    enum err err = open_bytes(&reader, &memory, bytes, &detail);
    assert_string_equal(err_name(err), err_name(wanted));
    if (strstr(detail.text, reason) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", detail.text, reason);
    }
    assert_int_equal(detail.offset, offset);
}

static void reads_stored_and_deflated_entries(void **state) {
    (void)state;
    static const struct part parts[] = {
        {.name = "b/deflated", .text = "hello hello hello hello", .method = ZIP_DEFLATED},
        {.name = "a/stored", .text = "as it is"},
        {.name = "b/", .text = ""},
        {.name = "c/stream",
         .text = "sizes follow, sizes follow",
         .method = ZIP_DEFLATED,
         .has_descriptor = true},
        {.name = "empty", .text = ""},
    };
    struct buf file;
    struct buf out;
    struct zip_reader reader;
    struct source_memory memory;
    struct err_detail detail = {0};
    make_zip(&file, parts, 5);
    buf_init(&out, FILE_SIZE_MAX);
    assert_int_equal(open_bytes(&reader, &memory, buf_bytes(&file), &detail), ERR_OK);
    assert_int_equal(reader.entries_count, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct zip_entry *entry = zip_reader_find(&reader, bytes_of_string(parts[i].name));
        assert_non_null(entry);
        assert_int_equal(read_all(&memory.source, entry, &out, &detail), ERR_OK);
        assert_bytes_equal(buf_bytes(&out), bytes_of_string(parts[i].text));
    }
    assert_null(zip_reader_find(&reader, BYTES("a")));
    zip_reader_done(&reader);
    buf_done(&out);
    buf_done(&file);
}

static void a_stored_entry_seeks_and_a_deflated_one_does_not(void **state) {
    (void)state;
    static const struct part parts[] = {{.name = "s", .text = "0123456789"},
                                        {.name = "d", .text = "0123456789", .method = ZIP_DEFLATED}};
    struct buf file;
    struct zip_reader reader;
    struct source_memory memory;
    struct zip_source zip;
    char piece[8];
    size_t got;
    make_zip(&file, parts, 2);
    assert_int_equal(open_bytes(&reader, &memory, buf_bytes(&file), NULL), ERR_OK);
    assert_int_equal(zip_source_init(&zip, &memory.source, zip_reader_find(&reader, BYTES("d"))), ERR_OK);
    assert_false(source_can_seek(&zip.source));
    zip_source_done(&zip);
    assert_int_equal(zip_source_init(&zip, &memory.source, zip_reader_find(&reader, BYTES("s"))), ERR_OK);
    assert_int_equal(source_seek(&zip.source, 7, NULL), ERR_OK);
    assert_int_equal(source_read(&zip.source, piece, sizeof piece, &got, NULL), ERR_OK);
    assert_bytes_equal(bytes_of(piece, got), BYTES("789"));
    assert_int_equal(source_read(&zip.source, piece, sizeof piece, &got, NULL), ERR_OK);
    assert_int_equal(got, 0); /* the CRC-32 of what was passed over is nobody's business */
    assert_int_equal(source_seek(&zip.source, 99, NULL), ERR_OK);
    assert_int_equal(source_read(&zip.source, piece, sizeof piece, &got, NULL), ERR_OK);
    assert_int_equal(got, 0);
    zip_source_done(&zip);
    zip_reader_done(&reader);
    buf_done(&file);
}

/* ---- lies about entries ---- */

static void refuses_lying_entries(void **state) {
    (void)state;
    static const struct {
        struct part part;
        enum err err;
        size_t offset;
        const char *reason;
    } cases[] = {
        /* The directory of a file with one entry begins at 30 + name + text. */
        {{.name = "../x", .text = "a"}, ERR_INVALID, 35, "climbs"},
        {{.name = "a/../x", .text = "a"}, ERR_INVALID, 37, "climbs"},
        {{.name = "/x", .text = "a"}, ERR_INVALID, 33, "absolute"},
        {{.name = "C:x", .text = "a"}, ERR_INVALID, 34, "absolute"},
        {{.name = "a\\x", .text = "a"}, ERR_INVALID, 34, "odd"},
        {{.name = "a//x", .text = "a"}, ERR_INVALID, 35, "climbs"},
        {{.name = "a\nx", .text = "a"}, ERR_INVALID, 34, "odd"},
        {{.name = "d/", .text = "a"}, ERR_INVALID, 33, "sizes"},
        {{.name = "x", .text = "a", .flags = ZIP_FLAG_ENCRYPTED}, ERR_UNSUPPORTED, 32, "encrypted"},
        {{.name = "x", .text = "a", .method = 93}, ERR_UNSUPPORTED, 32, "method 93"},
        {{.name = "x", .text = "a", .size_lie = 1}, ERR_INVALID, 32, "sizes"},
        {{.name = "x", .text = "a", .size_lie = 9, .stored_lie = 9}, ERR_INVALID, 0, "before the directory"},
        {{.name = "x", .text = "a", .method = ZIP_DEFLATED, .size_lie = 1u << 30}, ERR_INVALID, 34, "sizes"},
        {{.name = "x", .text = "a", .local_name = "y"}, ERR_INVALID, 0, "contradicts"},
        {{.name = "x", .text = "a", .local_name = "long"}, ERR_INVALID, 0, "no header of the entry"},
        {{.name = "x", .text = "a", .local_crc_lie = 1}, ERR_INVALID, 0, "contradicts"},
        {{.name = "x", .text = "a", .local_size_lie = 1}, ERR_INVALID, 0, "contradicts"},
        {{.name = "x", .text = "a", .offset_lie = 1}, ERR_INVALID, 0, "before the first entry"},
        {{.name = "x", .text = "a", .offset_lie = 999}, ERR_INVALID, 32, "before the directory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf file;
        make_zip(&file, &cases[i].part, 1);
        expect_refused(buf_bytes(&file), cases[i].err, cases[i].offset, cases[i].reason);
        buf_done(&file);
    }
}

static void refuses_entries_that_contradict_each_other(void **state) {
    (void)state;
    struct buf file;
    static const struct part twins[] = {{.name = "x", .text = "a"}, {.name = "x", .text = "b"}};
    make_zip(&file, twins, 2);
    expect_refused(buf_bytes(&file), ERR_INVALID, 32, "two entries of one name");
    buf_done(&file);
    /* The second has the first one's bytes: how a small file becomes a bomb. */
    static const struct part shared[] = {{.name = "x", .text = "a"},
                                         {.name = "y", .text = "a", .offset_lie = UINT32_MAX - 31}};
    make_zip(&file, shared, 2);
    expect_refused(buf_bytes(&file), ERR_INVALID, 0, "overlap");
    buf_done(&file);
}

/* Sizes and CRC-32 that only reading can prove wrong. */
static void reading_finds_wrong_bytes(void **state) {
    (void)state;
    static const struct {
        struct part part;
        const char *reason;
    } cases[] = {
        {{.name = "x", .text = "stored", .crc_lie = 1}, "CRC-32"},
        {{.name = "x", .text = "deflated", .method = ZIP_DEFLATED, .crc_lie = 1}, "CRC-32"},
        {{.name = "x", .text = "more than it says", .method = ZIP_DEFLATED, .size_lie = UINT32_MAX}, "more"},
        {{.name = "x", .text = "less than it says", .method = ZIP_DEFLATED, .size_lie = 1}, "less"},
        {{.name = "x", .text = "cut", .method = ZIP_DEFLATED, .stored_lie = UINT32_MAX}, "no end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf file;
        struct buf out;
        struct zip_reader reader;
        struct source_memory memory;
        struct err_detail detail = {0};
        make_zip(&file, &cases[i].part, 1);
        buf_init(&out, FILE_SIZE_MAX);
        assert_int_equal(open_bytes(&reader, &memory, buf_bytes(&file), &detail), ERR_OK);
        assert_int_equal(read_all(&memory.source, &reader.entries[0], &out, &detail), ERR_CORRUPT);
        assert_non_null(strstr(detail.text, cases[i].reason));
        assert_in_range(detail.offset, 31, file.size);
        assert_true(out.size <= reader.entries[0].size);
        zip_reader_done(&reader);
        buf_done(&out);
        buf_done(&file);
    }
}

/* ---- lies about the file ---- */

static void refuses_ends_that_lie(void **state) {
    (void)state;
    static const struct part part = {.name = "x", .text = "text"};
    struct buf file;
    make_zip(&file, &part, 1);
    struct bytes whole = buf_bytes(&file);
    struct buf other;
    size_t end = whole.size - ZIP_END_SIZE;
    buf_init(&other, FILE_SIZE_MAX);

    for (size_t size = 0; size < whole.size; size++) {
        expect_refused(bytes_slice(whole, 0, size), ERR_TRUNCATED, size, "no end");
    }
    buf_put_string(&other, "MZ, a program");
    buf_put(&other, whole);
    expect_refused(buf_bytes(&other), ERR_INVALID, 13 + end, "something stands before");

    buf_clear(&other);
    buf_put(&other, whole);
    buf_put_string(&other, "behind");
    expect_refused(buf_bytes(&other), ERR_TRUNCATED, whole.size + 6, "no end");

    /* A comment that holds a second end, both with a length that fits. */
    buf_clear(&other);
    buf_put(&other, whole);
    zip_set16(other.data + end + 20, ZIP_END_SIZE);
    put_end(&other, 0, 0, 0);
    expect_refused(buf_bytes(&other), ERR_INVALID, whole.size, "two ends");

    buf_clear(&other);
    buf_put(&other, bytes_slice(whole, 0, end));
    put_end(&other, 2, zip_get32(whole.data + end + 12), zip_get32(whole.data + end + 16));
    expect_refused(buf_bytes(&other), ERR_INVALID, end, "more entries");

    buf_clear(&other);
    buf_put(&other, bytes_slice(whole, 0, end));
    put_end(&other, 0, zip_get32(whole.data + end + 12), zip_get32(whole.data + end + 16));
    expect_refused(buf_bytes(&other), ERR_INVALID, 35, "behind the last entry");

    buf_clear(&other);
    buf_put(&other, whole);
    zip_set16(other.data + end + 4, 1);
    expect_refused(buf_bytes(&other), ERR_UNSUPPORTED, end, "several disks");

    buf_clear(&other);
    buf_put_string(&other, "gap");
    put_end(&other, 0, 0, 3);
    expect_refused(buf_bytes(&other), ERR_INVALID, 0, "no entry accounts for");
    buf_done(&other);
    buf_done(&file);
}

static void refuses_zip64_ends_that_lie(void **state) {
    (void)state;
    struct buf file;
    buf_init(&file, FILE_SIZE_MAX);
    put32(&file, ZIP_END64_SIGNATURE);
    put64(&file, ZIP_END64_SIZE - 12);
    put32(&file, 0);
    put64(&file, 0);
    put64(&file, 0); /* entries */
    put64(&file, 0);
    put64(&file, 0); /* the directory */
    put64(&file, 0);
    put32(&file, ZIP_LOCATOR_SIGNATURE);
    put32(&file, 0);
    put64(&file, 0);
    put32(&file, 1);
    put_end(&file, 0, 0, UINT32_MAX);
    struct zip_reader reader;
    struct source_memory memory;
    assert_int_equal(open_bytes(&reader, &memory, buf_bytes(&file), NULL), ERR_OK);
    zip_reader_done(&reader);
    size_t locator = ZIP_END64_SIZE;
    size_t end = locator + ZIP_LOCATOR_SIZE;

    file.data[locator + 8] = 1;
    expect_refused(buf_bytes(&file), ERR_INVALID, locator, "locator");
    file.data[locator + 8] = 0;
    file.data[24] = 1;
    expect_refused(buf_bytes(&file), ERR_INVALID, 0, "contradicts");
    file.data[32] = 1; /* now both say one entry, but the end says none */
    expect_refused(buf_bytes(&file), ERR_INVALID, 0, "contradicts");
    zip_set16(file.data + end + 8, UINT16_MAX);
    zip_set16(file.data + end + 10, UINT16_MAX);
    expect_refused(buf_bytes(&file), ERR_INVALID, end, "more entries");
    zip_set64(file.data + 40, UINT64_MAX);
    zip_set32(file.data + end + 12, UINT32_MAX);
    expect_refused(buf_bytes(&file), ERR_INVALID, end, "not where the end says");
    zip_set64(file.data + 48, 1); /* their sum is right, if it were allowed to wrap */
    expect_refused(buf_bytes(&file), ERR_INVALID, end, "not where the end says");
    expect_refused(bytes_skip(buf_bytes(&file), end), ERR_INVALID, 0, "no room");
    buf_done(&file);
}

static void every_changed_byte_is_noticed_or_harmless(void **state) {
    (void)state;
    static const struct part parts[] = {
        {.name = "archive/a.warc", .text = "some text"},
        {.name = "pages/pages.jsonl", .text = "more of it, more of it", .method = ZIP_DEFLATED}};
    struct buf file;
    struct buf out;
    make_zip(&file, parts, 2);
    buf_init(&out, FILE_SIZE_MAX);
    size_t accepted = 0;
    for (size_t i = 0; i < file.size * 8; i++) {
        struct zip_reader reader;
        struct source_memory memory;
        file.data[i / 8] ^= (uint8_t)(1u << i % 8);
        if (open_bytes(&reader, &memory, buf_bytes(&file), NULL) == ERR_OK) {
            accepted++;
            for (size_t j = 0; j < reader.entries_count; j++) {
                const struct zip_entry *entry = &reader.entries[j];
                size_t k = entry->method == ZIP_DEFLATED ? 1 : 0;
                if (read_all(&memory.source, entry, &out, NULL) == ERR_OK) {
                    assert_bytes_equal(buf_bytes(&out), bytes_of_string(parts[k].text));
                }
            }
            zip_reader_done(&reader);
        }
        file.data[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    assert_in_range(accepted, 1, file.size * 6); /* versions, times, attributes, and bytes of entries */
    buf_done(&out);
    buf_done(&file);
}

/* ---- writing ---- */

static int64_t some_time(void) {
    int64_t time_us;
    bool is_time = utc_parse_rfc3339(BYTES("2026-01-02T03:04:06Z"), &time_us);
    assert_true(is_time);
    return time_us;
}

static void write_entry(struct zip_writer *writer, const char *name, const char *text, uint64_t size_max) {
    assert_int_equal(zip_writer_start(writer, bytes_of_string(name), size_max, NULL), ERR_OK);
    for (size_t i = 0; text[i] != '\0'; i++) {
        assert_int_equal(zip_writer_write(writer, bytes_of(text + i, 1), NULL), ERR_OK);
    }
    assert_int_equal(zip_writer_end(writer, NULL), ERR_OK);
}

static void reads_what_it_writes(void **state) {
    (void)state;
    struct buf file;
    struct buf out;
    struct sink_buf sink;
    struct zip_writer writer;
    struct zip_reader reader;
    struct source_memory memory;
    buf_init(&file, FILE_SIZE_MAX);
    buf_init(&out, FILE_SIZE_MAX);
    sink_buf_init(&sink, &file);
    zip_writer_init(&writer, &sink.sink, some_time());
    write_entry(&writer, "small", "plain header", 100);
    write_entry(&writer, "any", "zip64 header", UINT64_MAX);
    write_entry(&writer, "empty", "", 0);
    assert_int_equal(zip_writer_finish(&writer, NULL), ERR_OK);
    assert_int_equal(writer.offset, file.size);
    zip_writer_done(&writer);
    assert_int_equal(open_bytes(&reader, &memory, buf_bytes(&file), NULL), ERR_OK);
    assert_int_equal(reader.entries_count, 3);
    assert_int_equal(read_all(&memory.source, zip_reader_find(&reader, BYTES("small")), &out, NULL), ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES("plain header"));
    assert_int_equal(read_all(&memory.source, zip_reader_find(&reader, BYTES("any")), &out, NULL), ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES("zip64 header"));
    zip_reader_done(&reader);
    buf_done(&out);
    buf_done(&file);
}

static void writes_more_entries_than_16_bits_count(void **state) {
    (void)state;
    struct buf file;
    struct sink_buf sink;
    struct zip_writer writer;
    struct zip_reader reader;
    struct source_memory memory;
    char name[16];
    buf_init(&file, FILE_SIZE_MAX);
    sink_buf_init(&sink, &file);
    zip_writer_init(&writer, &sink.sink, some_time());
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        snprintf(name, sizeof name, "%05zu", i);
        write_entry(&writer, name, "", 0);
    }
    assert_int_equal(zip_writer_finish(&writer, NULL), ERR_OK);
    zip_writer_done(&writer);
    assert_int_equal(open_bytes(&reader, &memory, buf_bytes(&file), NULL), ERR_OK);
    assert_int_equal(reader.entries_count, LARGE_COUNT);
    assert_non_null(zip_reader_find(&reader, BYTES("69999")));
    zip_reader_done(&reader);
    buf_done(&file);
}

/* A file with a hole of any size in it, of zeros that take no room. */
struct holed {
    struct sink sink; /* first */
    struct buf bytes;
    uint64_t hole_offset;
    uint64_t hole_size;
};

struct holed_source {
    struct source source; /* first */
    const struct holed *holed;
    uint64_t offset;
};

static size_t without_hole(const struct holed *holed, uint64_t offset) {
    return (size_t)(offset < holed->hole_offset ? offset : offset - holed->hole_size);
}

static enum err holed_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    (void)detail;
    return buf_put(&((struct holed *)sink)->bytes, bytes);
}

static enum err holed_rewrite(struct sink *sink, uint64_t offset, struct bytes bytes,
                              struct err_detail *detail) {
    (void)detail;
    struct holed *holed = (struct holed *)sink;
    memcpy(holed->bytes.data + without_hole(holed, offset), bytes.data, bytes.size);
    return ERR_OK;
}

static enum err holed_read(struct source *source, void *out, size_t size, size_t *ret_size,
                           struct err_detail *detail) {
    (void)detail;
    struct holed_source *from = (struct holed_source *)source;
    uint64_t hole_end = from->holed->hole_offset + from->holed->hole_size;
    if (from->offset >= from->holed->hole_offset && from->offset < hole_end) {
        *ret_size = size < hole_end - from->offset ? size : (size_t)(hole_end - from->offset);
        memset(out, 0, *ret_size);
        from->offset += *ret_size;
        return ERR_OK;
    }
    struct bytes rest = bytes_skip(buf_bytes(&from->holed->bytes), without_hole(from->holed, from->offset));
    *ret_size = size < rest.size ? size : rest.size;
    memcpy(out, rest.data, *ret_size);
    from->offset += *ret_size;
    return ERR_OK;
}

static enum err holed_seek(struct source *source, uint64_t offset, struct err_detail *detail) {
    (void)detail;
    ((struct holed_source *)source)->offset = offset;
    return ERR_OK;
}

static void writes_entries_and_files_above_4_gib(void **state) {
    (void)state;
    struct holed holed = {.sink = {.append = holed_append, .rewrite = holed_rewrite},
                          .hole_size = UINT64_C(5) << 30};
    struct zip_writer writer;
    struct zip_reader reader;
    struct buf out;
    buf_init(&holed.bytes, FILE_SIZE_MAX);
    buf_init(&out, FILE_SIZE_MAX);
    zip_writer_init(&writer, &holed.sink, some_time());
    assert_int_equal(zip_writer_start(&writer, BYTES("large"), UINT64_MAX, NULL), ERR_OK);
    assert_int_equal(zip_writer_write(&writer, BYTES("the rest is a hole"), NULL), ERR_OK);
    holed.hole_offset = writer.offset;
    writer.offset += holed.hole_size; /* as if so much had been written */
    writer.size += holed.hole_size;
    assert_int_equal(zip_writer_end(&writer, NULL), ERR_OK);
    write_entry(&writer, "far", "behind it", 100);
    assert_int_equal(zip_writer_finish(&writer, NULL), ERR_OK);
    struct holed_source source = {.source = {.read = holed_read, .seek = holed_seek}, .holed = &holed};
    struct err_detail detail = {0};
    enum err err = zip_reader_open(&reader, &source.source, writer.offset, &detail);
    zip_writer_done(&writer);
    assert_string_equal(detail.text, "");
    assert_int_equal(err, ERR_OK);
    assert_int_equal(zip_reader_find(&reader, BYTES("large"))->size, holed.hole_size + 18);
    const struct zip_entry *far = zip_reader_find(&reader, BYTES("far"));
    assert_true(far->header_offset > UINT32_MAX);
    assert_int_equal(read_all(&source.source, far, &out, NULL), ERR_OK);
    assert_bytes_equal(buf_bytes(&out), BYTES("behind it"));
    zip_reader_done(&reader);
    buf_done(&out);
    buf_done(&holed.bytes);
}

static enum err full_append(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    struct holed *holed = (struct holed *)sink;
    if (holed->bytes.size + bytes.size > holed->hole_offset) {
        return err_set(detail, ERR_NO_SPACE, "full");
    }
    return buf_put(&holed->bytes, bytes);
}

static void a_full_disk_stops_the_writer(void **state) {
    (void)state;
    for (size_t room = 0; room < 150; room++) {
        struct holed disk = {.sink = {.append = full_append, .rewrite = holed_rewrite}, .hole_offset = room};
        struct zip_writer writer;
        buf_init(&disk.bytes, FILE_SIZE_MAX);
        zip_writer_init(&writer, &disk.sink, some_time());
        enum err err = zip_writer_start(&writer, BYTES("name"), 10, NULL);
        err = err == ERR_OK ? zip_writer_write(&writer, BYTES("text"), NULL) : err;
        err = err == ERR_OK ? zip_writer_end(&writer, NULL) : err;
        err = err == ERR_OK ? zip_writer_finish(&writer, NULL) : err;
        bool fits = room >= 30 + 4 + 4 + 46 + 4 + 22;
        assert_int_equal(err, fits ? ERR_OK : ERR_NO_SPACE);
        writer.is_in_entry = false;
        if (!fits) {
            assert_int_equal(zip_writer_finish(&writer, NULL), ERR_IO);
        }
        zip_writer_done(&writer);
        buf_done(&disk.bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stored_and_deflated_entries),
        cmocka_unit_test(a_stored_entry_seeks_and_a_deflated_one_does_not),
        cmocka_unit_test(refuses_lying_entries),
        cmocka_unit_test(refuses_entries_that_contradict_each_other),
        cmocka_unit_test(reading_finds_wrong_bytes),
        cmocka_unit_test(refuses_ends_that_lie),
        cmocka_unit_test(refuses_zip64_ends_that_lie),
        cmocka_unit_test(every_changed_byte_is_noticed_or_harmless),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(writes_more_entries_than_16_bits_count),
        cmocka_unit_test(writes_entries_and_files_above_4_gib),
        cmocka_unit_test(a_full_disk_stops_the_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
