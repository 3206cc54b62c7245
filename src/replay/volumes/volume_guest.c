#include "replay/volumes/volume_guest.h"

#include <string.h>

#include "store/remote/backend_page.h"

static bool is_page(const struct volume_page *page, const char *method, const char *name) {
    return strcmp(page->method, method) == 0 && strcmp(page->name, name) == 0;
}

bool volume_guest_has(const struct volume_page *page) {
    return is_page(page, "POST", "captures") || is_page(page, "GET", "blocks") ||
           is_page(page, "GET", "documents") || is_page(page, "GET", "records") ||
           is_page(page, "GET", "requests");
}

static enum err guest_next(void *source, struct capture *ret_capture, struct err_detail *detail) {
    struct backend_cursor *cursor = source;
    return cursor->session->backend->table->captures_next(cursor, ret_capture, detail);
}

static enum err guest_captures(struct volume_call *call, struct backend_session *session,
                               struct err_detail *detail) {
    const struct backend_table *table = session->backend->table;
    struct backend_code_walk walk;
    struct backend_cursor *cursor;
    enum err err = volume_call_walk(call, &walk, detail);
    if (err == ERR_OK) {
        err = table->captures_open(session, walk.from, walk.to, walk.in_reverse, &cursor, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct buf page;
    buf_init(&page, BACKEND_CODE_PAGE_SIZE_MAX);
    err = backend_page_put(&page, &walk, guest_next, cursor, detail);
    const char *unheard = table->captures_unheard != NULL ? table->captures_unheard(cursor) : "";
    if (unheard[0] != '\0') {
        http_add_header(call->request, "X-Mnemon-Partial", unheard);
    }
    table->cursor_close(cursor);
    if (err != ERR_OK) {
        buf_done(&page);
        return err;
    }
    return volume_call_answer(call, &page);
}

static enum err guest_find_block(struct volume_call *call, struct backend_session *session,
                                 struct err_detail *detail) {
    struct key key;
    struct block block;
    enum err err = volume_call_key(call, &key, detail);
    if (err == ERR_OK) {
        err = session->backend->table->find_block(session, key.digest, key.number, &block, detail);
    }
    return err == ERR_OK ? volume_call_answer_block(call, &block) : err;
}

static enum err guest_get(struct volume_call *call, struct backend_session *session,
                          struct err_detail *detail) {
    const struct backend_table *table = session->backend->table;
    bool is_document = is_page(call->page, "GET", "documents");
    struct key key;
    struct location location;
    struct bytes found;
    enum err err =
        is_document ? volume_call_key(call, &key, detail) : volume_call_location(call, &location, detail);
    if (err == ERR_OK && is_document) {
        err = table->get(session, &key, &found, detail);
    } else if (err == ERR_OK) {
        err = is_page(call->page, "GET", "requests") ? table->get_request(session, &location, &found, detail)
                                                     : table->get_record(session, &location, &found, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct scratch out;
    scratch_init(&out, call->kits->scratch_directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    err = scratch_put(&out, found);
    if (err == ERR_OK) {
        http_answer_scratch(call->request, STATUS_OK, "application/octet-stream", &out);
    }
    scratch_done(&out);
    return err;
}

enum err volume_guest_answer(struct volume_call *call, struct backend *guest, struct err_detail *detail) {
    struct backend_session *session;
    enum err err = guest->table->session_open(guest, &session);
    if (err != ERR_OK) {
        return err;
    }
    if (is_page(call->page, "POST", "captures")) {
        err = guest_captures(call, session, detail);
    } else if (is_page(call->page, "GET", "blocks")) {
        err = guest_find_block(call, session, detail);
    } else {
        err = guest_get(call, session, detail);
    }
    guest->table->session_close(session);
    return err;
}
