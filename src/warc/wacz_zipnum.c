#include "warc/wacz_zipnum.h"

#include "warc/cdxj.h"

enum {
    BLOCK_SIZE_MAX = 1 << 20, /* fewer lines where they are long */
    IDX_LINE_SIZE_MAX = CDXJ_LINE_SIZE_MAX,
};

enum err wacz_zipnum_init(struct wacz_zipnum *zipnum, struct sink *blocks, struct sink *idx,
                          const char *filename) {
    struct pack_options options = {.framing = PACK_GZIP};
    *zipnum = (struct wacz_zipnum){.idx = idx, .filename = filename};
    buf_init(&zipnum->block, BLOCK_SIZE_MAX + CDXJ_LINE_SIZE_MAX);
    buf_init(&zipnum->line, IDX_LINE_SIZE_MAX);
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
static struct bytes place_of(struct bytes line) {
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
    buf_put(&zipnum->line, place_of(block));
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
