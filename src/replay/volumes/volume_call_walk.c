#include "replay/volumes/volume_call.h"
#include "store/index/index_code.h"
#include "store/index/index_cursor.h"
#include "store/remote/backend_code.h"

static enum err read_walk(const struct volume_call *call, struct backend_code_walk *ret_walk,
                          struct err_detail *detail) {
    struct bytes body;
    enum err err = http_request_body(call->request, &body);
    return err == ERR_OK ? backend_code_read_walk(body, ret_walk, detail) : err;
}

/* Where the next page begins: right behind the key, or (in reverse) up to it and without it. */
static void set_next(struct buf *next, bool in_reverse) {
    if (!in_reverse) {
        buf_put_byte(next, 0x00);
    }
}

static enum err fill_captures(struct index_cursor *cursor, const struct backend_code_walk *walk,
                              struct buf *page, struct buf *next) {
    struct capture capture;
    enum err err = ERR_OK;
    for (uint32_t i = 0; i < walk->count_max && page->size < BACKEND_CODE_PAGE_SIZE; i++) {
        err = index_cursor_next(cursor, &capture);
        if (err != ERR_OK) {
            buf_clear(next);
            return err == ERR_NOT_FOUND ? page->err : err;
        }
        backend_code_put_capture(page, &capture);
        buf_clear(next);
        index_code_put_capture_key(next, &capture);
    }
    set_next(next, walk->in_reverse);
    return page->err != ERR_OK ? page->err : next->err;
}

static enum err fill_blocks(struct index_cursor *cursor, const struct backend_code_walk *walk,
                            struct buf *page, struct buf *next) {
    struct key key = {0};
    struct block block;
    uint8_t memory[INDEX_CODE_BLOCK_KEY_SIZE_MAX];
    for (uint32_t i = 0; i < walk->count_max && page->size < BACKEND_CODE_PAGE_SIZE; i++) {
        enum err err = index_blocks_next(cursor, key.digest, &key.number, &block);
        if (err != ERR_OK) {
            buf_clear(next);
            return err == ERR_NOT_FOUND ? page->err : err;
        }
        if (block.references > 0) {
            backend_code_put_key_block(page, &key, &block);
        }
        buf_clear(next);
        buf_put(next, index_code_block_key(memory, key.digest, key.number));
    }
    set_next(next, false);
    return page->err != ERR_OK ? page->err : next->err;
}

static enum err
answer_page(struct volume_call *call, struct index_cursor *take_cursor, const struct backend_code_walk *walk,
            enum err (*fill)(struct index_cursor *cursor, const struct backend_code_walk *walk,
                             struct buf *page, struct buf *next)) {
    struct buf page;
    struct buf next; /* empty at the end of the walk */
    buf_init(&page, BACKEND_CODE_PAGE_SIZE_MAX);
    buf_init(&next, BACKEND_CODE_KEY_SIZE_MAX);
    enum err err = fill(take_cursor, walk, &page, &next);
    if (err == ERR_OK) {
        struct backend_code_page_end end = {.is_end = next.size == 0, .next = buf_bytes(&next)};
        backend_code_put_page_end(&page, &end);
        err = volume_call_answer(call, &page);
    }
    index_cursor_close(take_cursor);
    buf_done(&page);
    buf_done(&next);
    return err;
}

enum err volume_call_captures(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    struct backend_code_walk walk;
    struct index_cursor *cursor;
    enum err err = read_walk(call, &walk, detail);
    if (err == ERR_OK) {
        err = index_cursor_open(volume_index(call->volume), walk.from, walk.to, walk.in_reverse, &cursor);
    }
    return err == ERR_OK ? answer_page(call, cursor, &walk, fill_captures) : err;
}

enum err volume_call_blocks(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    struct backend_code_walk walk;
    struct index_cursor *cursor;
    enum err err = read_walk(call, &walk, detail);
    if (err == ERR_OK && (walk.in_reverse || walk.to.size > 0)) {
        err = err_set(detail, ERR_UNSUPPORTED, "blocks are walked forward only, and to their end");
    }
    if (err == ERR_OK) {
        err = index_blocks_open_at(volume_index(call->volume), walk.from, &cursor);
    }
    return err == ERR_OK ? answer_page(call, cursor, &walk, fill_blocks) : err;
}
