#include "warc/zip_writer.h"

#include <zlib.h>

#include "base/utc.h"

enum {
    VERSION_PLAIN = 20, /* 2.0: directories, deflate */
    VERSION_64 = 45,
    MADE_BY_UNIX = 3 << 8,
    EXTRA_LOCAL_SIZE = 4 + 16,
    EXTRA_CENTRAL_SIZE = 4 + 24,
    DIRECTORY_SIZE_MAX = 1 << 30,
    NAME_SIZE_MAX = 1024,
    YEAR_MIN = 1980, /* all that the seven bits for it can say */
    YEAR_MAX = 2107,
};

static const uint64_t LARGE_SIZE = UINT32_MAX; /* from here on a field of 32 bits is too small */
static const uint32_t FILE_ATTRIBUTES = UINT32_C(0100644) << 16;

static void set_time(struct zip_writer *writer, int64_t time_us) {
    struct utc utc;
    utc_split(time_us, &utc);
    int32_t year = utc.year < YEAR_MIN ? YEAR_MIN : utc.year > YEAR_MAX ? YEAR_MAX : utc.year;
    writer->date = (uint16_t)((year - YEAR_MIN) << 9 | utc.month << 5 | utc.day);
    writer->time = (uint16_t)(utc.hour << 11 | utc.minute << 5 | utc.second / 2);
}

void zip_writer_init(struct zip_writer *writer, struct sink *sink, int64_t time_us) {
    ASSERT(sink_can_rewrite(sink));
    *writer = (struct zip_writer){.sink = sink};
    buf_init(&writer->directory, DIRECTORY_SIZE_MAX);
    buf_init(&writer->name, NAME_SIZE_MAX);
    set_time(writer, time_us);
}

void zip_writer_done(struct zip_writer *writer) {
    buf_done(&writer->directory);
    buf_done(&writer->name);
}

static enum err zip_append(struct zip_writer *writer, struct bytes bytes, struct err_detail *detail) {
    if (writer->is_torn) {
        return err_set(detail, ERR_IO, "an earlier write of this file failed");
    }
    enum err err = sink_append(writer->sink, bytes, detail);
    writer->is_torn = err != ERR_OK;
    writer->offset += bytes.size;
    return err;
}

/* With what is known of the entry by now. Returns the size, with the extra field but without the name. */
static size_t make_local(const struct zip_writer *writer, uint8_t head[ZIP_LOCAL_SIZE],
                         uint8_t extra[EXTRA_LOCAL_SIZE]) {
    bool is_large = writer->is_large;
    uint32_t size = is_large ? UINT32_MAX : (uint32_t)writer->size;
    zip_set32(head, ZIP_LOCAL_SIGNATURE);
    zip_set16(head + 4, is_large ? VERSION_64 : VERSION_PLAIN);
    zip_set16(head + 6, ZIP_FLAG_UTF8);
    zip_set16(head + 8, ZIP_STORED);
    zip_set16(head + 10, writer->time);
    zip_set16(head + 12, writer->date);
    zip_set32(head + 14, writer->crc32);
    zip_set32(head + 18, size);
    zip_set32(head + 22, size);
    zip_set16(head + 26, (uint16_t)writer->name.size);
    zip_set16(head + 28, is_large ? EXTRA_LOCAL_SIZE : 0);
    zip_set16(extra, ZIP_EXTRA_64);
    zip_set16(extra + 2, EXTRA_LOCAL_SIZE - 4);
    zip_set64(extra + 4, writer->size);
    zip_set64(extra + 12, writer->size);
    return is_large ? EXTRA_LOCAL_SIZE : 0;
}

enum err zip_writer_start(struct zip_writer *writer, struct bytes name, uint64_t size_max,
                          struct err_detail *detail) {
    ASSERT(!writer->is_in_entry && name.size > 0);
    uint8_t head[ZIP_LOCAL_SIZE];
    uint8_t extra[EXTRA_LOCAL_SIZE];
    writer->is_in_entry = true;
    writer->is_large = size_max >= LARGE_SIZE;
    writer->size_max = size_max;
    writer->header_offset = writer->offset;
    writer->size = 0;
    writer->crc32 = 0;
    buf_clear(&writer->name);
    enum err err = buf_put(&writer->name, name);
    if (err != ERR_OK) {
        writer->is_torn = true;
        return err_set(detail, err, "the name of an entry: %s", err_text(err));
    }
    size_t extra_size = make_local(writer, head, extra);
    err = zip_append(writer, bytes_of(head, sizeof head), detail);
    err = err == ERR_OK ? zip_append(writer, name, detail) : err;
    return err == ERR_OK ? zip_append(writer, bytes_of(extra, extra_size), detail) : err;
}

enum err zip_writer_write(struct zip_writer *writer, struct bytes bytes, struct err_detail *detail) {
    ASSERT(writer->is_in_entry && bytes.size <= writer->size_max - writer->size);
    enum err err = zip_append(writer, bytes, detail);
    if (err == ERR_OK) {
        writer->crc32 = (uint32_t)crc32_z(writer->crc32, bytes.data, bytes.size);
        writer->size += bytes.size;
    }
    return err;
}

static enum err put_central(struct zip_writer *writer) {
    uint8_t head[ZIP_CENTRAL_SIZE] = {0};
    uint8_t extra[EXTRA_CENTRAL_SIZE];
    bool is_far = writer->header_offset >= LARGE_SIZE;
    bool has_extra = writer->is_large || is_far;
    uint32_t size = writer->is_large ? UINT32_MAX : (uint32_t)writer->size;
    size_t extra_size = 4;
    if (writer->is_large) {
        zip_set64(extra + 4, writer->size);
        zip_set64(extra + 12, writer->size);
        extra_size += 16;
    }
    if (is_far) {
        zip_set64(extra + extra_size, writer->header_offset);
        extra_size += 8;
    }
    zip_set16(extra, ZIP_EXTRA_64);
    zip_set16(extra + 2, (uint16_t)(extra_size - 4));
    zip_set32(head, ZIP_CENTRAL_SIGNATURE);
    zip_set16(head + 4, MADE_BY_UNIX | VERSION_64);
    zip_set16(head + 6, has_extra ? VERSION_64 : VERSION_PLAIN);
    zip_set16(head + 8, ZIP_FLAG_UTF8);
    zip_set16(head + 10, ZIP_STORED);
    zip_set16(head + 12, writer->time);
    zip_set16(head + 14, writer->date);
    zip_set32(head + 16, writer->crc32);
    zip_set32(head + 20, size);
    zip_set32(head + 24, size);
    zip_set16(head + 28, (uint16_t)writer->name.size);
    zip_set16(head + 30, has_extra ? (uint16_t)extra_size : 0);
    zip_set32(head + 38, FILE_ATTRIBUTES);
    zip_set32(head + 42, is_far ? UINT32_MAX : (uint32_t)writer->header_offset);
    buf_put(&writer->directory, bytes_of(head, sizeof head));
    buf_put(&writer->directory, buf_bytes(&writer->name));
    return buf_put(&writer->directory, bytes_of(extra, has_extra ? extra_size : 0));
}

enum err zip_writer_end(struct zip_writer *writer, struct err_detail *detail) {
    ASSERT(writer->is_in_entry);
    uint8_t head[ZIP_LOCAL_SIZE];
    uint8_t extra[EXTRA_LOCAL_SIZE];
    writer->is_in_entry = false;
    if (writer->is_torn) {
        return err_set(detail, ERR_IO, "an earlier write of this file failed");
    }
    size_t extra_size = make_local(writer, head, extra);
    enum err err = sink_rewrite(writer->sink, writer->header_offset, bytes_of(head, sizeof head), detail);
    if (err == ERR_OK && extra_size > 0) {
        uint64_t extra_offset = writer->header_offset + sizeof head + writer->name.size;
        err = sink_rewrite(writer->sink, extra_offset, bytes_of(extra, extra_size), detail);
    }
    if (err == ERR_OK && (err = put_central(writer)) != ERR_OK) {
        err_set(detail, err, "the directory of the ZIP file: %s", err_text(err));
    }
    writer->is_torn = err != ERR_OK;
    writer->entries_count++;
    return err;
}

static enum err write_end64(struct zip_writer *writer, uint64_t directory_offset, struct err_detail *detail) {
    uint8_t end[ZIP_END64_SIZE] = {0};
    uint8_t locator[ZIP_LOCATOR_SIZE] = {0};
    uint64_t offset = writer->offset;
    zip_set32(end, ZIP_END64_SIGNATURE);
    zip_set64(end + 4, ZIP_END64_SIZE - 12);
    zip_set16(end + 12, MADE_BY_UNIX | VERSION_64);
    zip_set16(end + 14, VERSION_64);
    zip_set64(end + 24, writer->entries_count);
    zip_set64(end + 32, writer->entries_count);
    zip_set64(end + 40, writer->directory.size);
    zip_set64(end + 48, directory_offset);
    zip_set32(locator, ZIP_LOCATOR_SIGNATURE);
    zip_set64(locator + 8, offset);
    zip_set32(locator + 16, 1);
    enum err err = zip_append(writer, bytes_of(end, sizeof end), detail);
    return err == ERR_OK ? zip_append(writer, bytes_of(locator, sizeof locator), detail) : err;
}

enum err zip_writer_finish(struct zip_writer *writer, struct err_detail *detail) {
    ASSERT(!writer->is_in_entry);
    uint8_t end[ZIP_END_SIZE] = {0};
    uint64_t offset = writer->offset;
    bool is_far = offset >= LARGE_SIZE;
    bool is_many = writer->entries_count >= UINT16_MAX;
    enum err err = zip_append(writer, buf_bytes(&writer->directory), detail);
    if (err == ERR_OK && (is_far || is_many)) {
        err = write_end64(writer, offset, detail);
    }
    uint16_t count = is_many ? UINT16_MAX : (uint16_t)writer->entries_count;
    zip_set32(end, ZIP_END_SIGNATURE);
    zip_set16(end + 8, count);
    zip_set16(end + 10, count);
    zip_set32(end + 12, (uint32_t)writer->directory.size);
    zip_set32(end + 16, is_far ? UINT32_MAX : (uint32_t)offset);
    return err == ERR_OK ? zip_append(writer, bytes_of(end, sizeof end), detail) : err;
}
