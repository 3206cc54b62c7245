#include "warc/wacz_writer.h"

#include "base/hex.h"
#include "base/utc.h"
#include "warc/cdxj.h"

enum { PATH_SIZE_MAX = 256, PACKAGE_SIZE_MAX = 1 << 20, HEX_SIZE = 2 * SHA256_SIZE + 1, ID_DIGITS = 16 };

enum { BLOCK_SIZE_MAX = 1 << 20 }; /* fewer lines if they are long */

static enum err append_to_file(struct sink *sink, struct bytes bytes, struct err_detail *detail) {
    struct wacz_writer *writer = (struct wacz_writer *)sink;
    sha256_update(&writer->sha256, bytes);
    return zip_writer_write(&writer->zip, bytes, detail);
}

enum err wacz_writer_init(struct wacz_writer *writer, struct sink *sink, int64_t created_us) {
    *writer = (struct wacz_writer){.sink = {.append = append_to_file}, .created_us = created_us};
    buf_init(&writer->path, PATH_SIZE_MAX);
    buf_init(&writer->resources, PACKAGE_SIZE_MAX);
    json_init_spaced(&writer->list, &writer->resources);
    json_open_list(&writer->list, NULL);
    zip_writer_init(&writer->zip, sink, created_us);
    return sha256_init(&writer->sha256);
}

void wacz_writer_done(struct wacz_writer *writer) {
    zip_writer_done(&writer->zip);
    sha256_done(&writer->sha256);
    buf_done(&writer->path);
    buf_done(&writer->resources);
}

enum err wacz_writer_start(struct wacz_writer *writer, const char *path, uint64_t size_max,
                           struct err_detail *detail) {
    buf_clear(&writer->path);
    enum err err = buf_put_string(&writer->path, path);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    sha256_start(&writer->sha256);
    return zip_writer_start(&writer->zip, buf_bytes(&writer->path), size_max, detail);
}

static char *finish_hash(struct wacz_writer *writer, char out[HEX_SIZE]) {
    uint8_t digest[SHA256_SIZE];
    sha256_finish(&writer->sha256, digest);
    return hex_encode(bytes_of(digest, sizeof digest), out);
}

enum err wacz_writer_end(struct wacz_writer *writer, struct err_detail *detail) {
    char hex[HEX_SIZE];
    struct json *list = &writer->list;
    struct bytes path = buf_bytes(&writer->path);
    struct bytes name = path;
    struct bytes rest = path;
    while (bytes_split(&rest, '/', &name)) {
    }
    json_break(list);
    json_open(list, NULL);
    json_bytes(list, "name", name);
    json_bytes(list, "path", path);
    json_format(list, "hash", "sha256:%s", finish_hash(writer, hex));
    json_count(list, "bytes", writer->zip.size);
    json_close(list);
    if (list->out->err != ERR_OK) {
        return err_set(detail, list->out->err, "%s", err_text(list->out->err));
    }
    return zip_writer_end(&writer->zip, detail);
}

/* A small file at once; its digest is left in hex. */
static enum err write_text(struct wacz_writer *writer, const char *path, const struct buf *text,
                           char hex[HEX_SIZE], struct err_detail *detail) {
    if (text->err != ERR_OK) {
        return err_set(detail, text->err, "%s", err_text(text->err));
    }
    enum err err = wacz_writer_start(writer, path, text->size, detail);
    if (err == ERR_OK) {
        err = sink_append(&writer->sink, buf_bytes(text), detail);
    }
    finish_hash(writer, hex);
    return err == ERR_OK ? zip_writer_end(&writer->zip, detail) : err;
}

enum err wacz_writer_finish(struct wacz_writer *writer, struct bytes software, struct bytes more,
                            struct err_detail *detail) {
    struct buf text;
    struct json json;
    char hex[HEX_SIZE];
    int64_t second_us = 1000000;
    buf_init(&text, 2 * PACKAGE_SIZE_MAX);
    json_init_spaced(&json, &text);
    json_close(&writer->list);
    json_open(&json, NULL);
    json_text(&json, "profile", "data-package");
    json_text(&json, "wacz_version", "1.1.1");
    json_time(&json, "created", writer->created_us - writer->created_us % second_us);
    json_bytes(&json, "software", software);
    if (more.size > 0) {
        json_members(&json, more);
    }
    json_raw(&json, "resources", buf_bytes(&writer->resources));
    json_close(&json);
    buf_put_byte(&text, '\n');
    enum err err = write_text(writer, "datapackage.json", &text, hex, detail);
    if (err == ERR_OK) {
        buf_clear(&text);
        json_open(&json, NULL);
        json_text(&json, "path", "datapackage.json");
        json_format(&json, "hash", "sha256:%s", hex);
        json_close(&json);
        buf_put_byte(&text, '\n');
        err = write_text(writer, "datapackage-digest.json", &text, hex, detail);
    }
    buf_done(&text);
    return err == ERR_OK ? zip_writer_finish(&writer->zip, detail) : err;
}

enum err wacz_put_pages_head(struct buf *out) {
    struct json json;
    json_begin_spaced(&json, out);
    json_text(&json, "format", "json-pages-1.0");
    json_text(&json, "id", "pages");
    json_text(&json, "title", "All Pages");
    json_end(&json);
    return buf_put_byte(out, '\n');
}

enum err wacz_put_page(struct buf *out, struct sha256 *sha256, struct bytes url, int64_t time_us,
                       struct bytes title) {
    char time[UTC_RFC3339_SIZE];
    char hex[HEX_SIZE];
    uint8_t digest[SHA256_SIZE];
    struct json json;
    utc_format_rfc3339(time_us, time);
    sha256_start(sha256);
    sha256_update(sha256, url);
    sha256_update(sha256, bytes_of_string(time));
    sha256_finish(sha256, digest);
    hex_encode(bytes_of(digest, sizeof digest), hex);
    json_begin_spaced(&json, out);
    json_format(&json, "id", "%.*s", ID_DIGITS, hex);
    json_bytes(&json, "url", url);
    json_text(&json, "ts", time);
    if (title.size > 0) {
        json_bytes(&json, "title", title);
    }
    json_end(&json);
    return buf_put_byte(out, '\n');
}

/* ---- an index in blocks ---- */

enum err wacz_zipnum_init(struct wacz_zipnum *zipnum, struct sink *blocks, struct sink *idx,
                          const char *filename) {
    struct pack_options options = {.framing = PACK_GZIP};
    *zipnum = (struct wacz_zipnum){.idx = idx, .filename = filename};
    buf_init(&zipnum->block, BLOCK_SIZE_MAX + CDXJ_LINE_SIZE_MAX);
    buf_init(&zipnum->line, CDXJ_LINE_SIZE_MAX);
    enum err err = pack_init(&zipnum->pack, blocks, &options);
    json_init_spaced(&zipnum->json, &zipnum->line);
    buf_put_string(&zipnum->line, "!meta 0 ");
    json_open(&zipnum->json, NULL);
    json_text(&zipnum->json, "format", "cdxj-gzip-1.0");
    json_text(&zipnum->json, "filename", filename);
    json_close(&zipnum->json);
    buf_put_byte(&zipnum->line, '\n');
    return err != ERR_OK ? err : zipnum->line.err;
}

void wacz_zipnum_done(struct wacz_zipnum *zipnum) {
    pack_done(&zipnum->pack);
    buf_done(&zipnum->block);
    buf_done(&zipnum->line);
}

static enum err flush_idx(struct wacz_zipnum *zipnum, struct err_detail *detail) {
    if (zipnum->line.err != ERR_OK) {
        return err_set(detail, zipnum->line.err, "%s", err_text(zipnum->line.err));
    }
    enum err err = sink_append(zipnum->idx, buf_bytes(&zipnum->line), detail);
    buf_clear(&zipnum->line);
    return err;
}

/* "key time" of a line. */
static struct bytes wacz_place_of(struct bytes line) {
    size_t key = bytes_find_byte(line, ' ');
    size_t time = key < line.size ? bytes_find_byte(bytes_skip(line, key + 1), ' ') : 0;
    return bytes_slice(line, 0, key < line.size ? key + 1 + time : line.size);
}

static enum err flush_block(struct wacz_zipnum *zipnum, struct err_detail *detail) {
    uint64_t length = 0;
    struct bytes block = buf_bytes(&zipnum->block);
    enum err err = pack_start(&zipnum->pack, block.size, false, detail);
    err = err == ERR_OK ? pack_write(&zipnum->pack, block, detail) : err;
    err = err == ERR_OK ? pack_finish(&zipnum->pack, &length, detail) : err;
    if (err != ERR_OK) {
        return err;
    }
    buf_put(&zipnum->line, wacz_place_of(block));
    buf_put_byte(&zipnum->line, ' ');
    json_open(&zipnum->json, NULL);
    JSON_COUNTS(&zipnum->json, {"offset", zipnum->offset}, {"length", length});
    json_text(&zipnum->json, "filename", zipnum->filename);
    json_close(&zipnum->json);
    buf_put_byte(&zipnum->line, '\n');
    zipnum->offset += length;
    zipnum->lines_count = 0;
    buf_clear(&zipnum->block);
    return flush_idx(zipnum, detail);
}

enum err wacz_zipnum_put(struct wacz_zipnum *zipnum, struct bytes line, struct err_detail *detail) {
    enum err err = buf_put(&zipnum->block, line);
    if (err != ERR_OK) {
        return err_set(detail, err, "%s", err_text(err));
    }
    zipnum->lines_count++;
    bool is_full = zipnum->lines_count == WACZ_ZIPNUM_LINES || zipnum->block.size >= BLOCK_SIZE_MAX;
    return is_full ? flush_block(zipnum, detail) : ERR_OK;
}

enum err wacz_zipnum_finish(struct wacz_zipnum *zipnum, struct err_detail *detail) {
    return zipnum->lines_count > 0 ? flush_block(zipnum, detail) : flush_idx(zipnum, detail);
}
