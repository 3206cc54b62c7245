#include <stdlib.h>

#include "store/remote/backend_code.h"
#include "store/remote/backend_remote_state.h"

enum { PAGE_COUNT = 1000 }; /* entries that are fetched at once */

/* A walk over captures or blocks, page by page. */
struct cursor_remote {
    struct backend_cursor cursor; /* first */
    const char *path;             /* "captures", "blocks" */
    struct buf from;
    struct buf to;
    bool in_reverse;
    bool has_page;
    bool is_last; /* there is no page behind this one */
    struct scratch page;
    struct wire_reader reader;
    enum err err; /* stays */
};

void cursor_remote_close(struct backend_cursor *generic) {
    struct cursor_remote *cursor = (struct cursor_remote *)generic;
    buf_done(&cursor->from);
    buf_done(&cursor->to);
    scratch_done(&cursor->page);
    free(cursor);
}

static enum err open_walk(struct backend_session *session, const char *path, struct bytes from,
                          struct bytes to, bool in_reverse, struct backend_cursor **ret_cursor) {
    struct cursor_remote *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    *cursor = (struct cursor_remote){.cursor = {.session = session}, .path = path, .in_reverse = in_reverse};
    buf_init(&cursor->from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&cursor->to, BACKEND_CODE_KEY_SIZE_MAX);
    scratch_init(&cursor->page, session_remote(session)->backend->scratch_directory, SCRATCH_MEMORY_MAX,
                 BACKEND_CODE_PAGE_SIZE_MAX);
    enum err err = buf_put(&cursor->from, from);
    if (err == ERR_OK) {
        err = buf_put(&cursor->to, to);
    }
    if (err != ERR_OK) {
        cursor_remote_close(&cursor->cursor);
        return err;
    }
    *ret_cursor = &cursor->cursor;
    return ERR_OK;
}

enum err cursor_remote_open_captures(struct backend_session *session, struct bytes from, struct bytes to,
                                     bool in_reverse, struct backend_cursor **ret_cursor,
                                     struct err_detail *detail) {
    (void)detail;
    return open_walk(session, "captures", from, to, in_reverse, ret_cursor);
}

enum err cursor_remote_open_blocks(struct backend_session *session, struct bytes from,
                                   struct backend_cursor **ret_cursor, struct err_detail *detail) {
    (void)detail;
    return open_walk(session, "blocks", from, bytes_of(NULL, 0), false, ret_cursor);
}

/* The session's answer becomes the cursor's page: others may use the session meanwhile. */
static enum err fetch_page(struct cursor_remote *cursor, struct err_detail *detail) {
    struct session_remote *session = session_remote(cursor->cursor.session);
    struct remote_call *call = &session->call;
    struct bytes page;
    struct backend_code_walk walk = {
        .from = buf_bytes(&cursor->from),
        .to = buf_bytes(&cursor->to),
        .in_reverse = cursor->in_reverse,
        .count_max = PAGE_COUNT,
    };
    remote_call_clear(call);
    enum err err = backend_code_put_walk(&call->head, &walk);
    if (err == ERR_OK) {
        err =
            session_remote_exchange(session, "POST", cursor->path, BACKEND_CODE_PAGE_SIZE_MAX, &page, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct scratch swapped = cursor->page;
    cursor->page = call->answer;
    call->answer = swapped;
    err = scratch_bytes(&cursor->page, &page);
    wire_reader_init(&cursor->reader, page);
    cursor->has_page = true;
    return err;
}

/* Behind the last entry of a page. A server that does not come further would keep us for ever. */
static enum err end_page(struct cursor_remote *cursor, const struct backend_code_page_end *end,
                         struct err_detail *detail) {
    cursor->has_page = false;
    cursor->is_last = end->is_end;
    if (end->is_end) {
        return ERR_OK;
    }
    struct buf *bound = cursor->in_reverse ? &cursor->to : &cursor->from;
    int order = bytes_compare(end->next, buf_bytes(bound));
    bool comes_further = bound->size == 0 || (cursor->in_reverse ? order < 0 : order > 0);
    if (!comes_further) {
        struct err_detail reason = {0};
        err_set(&reason, ERR_MISMATCH, "the walk does not come further");
        return remote_call_mismatch(&session_remote(cursor->cursor.session)->call, &reason, detail);
    }
    buf_clear(bound);
    return buf_put(bound, end->next);
}

/* One entry: the next of the page, else the first of the page behind it. */
static enum err next_entry(struct cursor_remote *cursor, struct capture *ret_capture, struct key *ret_key,
                           struct block *ret_block, struct err_detail *detail) {
    for (;;) {
        if (cursor->is_last && !cursor->has_page) {
            return ERR_NOT_FOUND;
        }
        enum err err = cursor->has_page ? ERR_OK : fetch_page(cursor, detail);
        if (err != ERR_OK) {
            return err;
        }
        struct backend_code_page_end end;
        struct err_detail reason = {0};
        err = ret_capture != NULL
                  ? backend_code_next_capture(&cursor->reader, ret_capture, &end, &reason)
                  : backend_code_next_block(&cursor->reader, ret_key, ret_block, &end, &reason);
        if (err != ERR_NOT_FOUND) {
            return session_remote_check(session_remote(cursor->cursor.session), err, &reason, detail);
        }
        err = end_page(cursor, &end, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
}

enum err cursor_remote_next_capture(struct backend_cursor *generic, struct capture *ret_capture,
                                    struct err_detail *detail) {
    struct cursor_remote *cursor = (struct cursor_remote *)generic;
    if (cursor->err == ERR_OK) {
        cursor->err = next_entry(cursor, ret_capture, NULL, NULL, detail);
    }
    return cursor->err;
}

enum err cursor_remote_next_block(struct backend_cursor *generic, struct key *ret_key,
                                  struct block *ret_block, struct err_detail *detail) {
    struct cursor_remote *cursor = (struct cursor_remote *)generic;
    struct key key;
    if (cursor->err == ERR_OK) {
        cursor->err = next_entry(cursor, NULL, &key, ret_block, detail);
    }
    if (cursor->err == ERR_OK) {
        key.volume = generic->session->backend->number;
        *ret_key = key;
    }
    return cursor->err;
}
