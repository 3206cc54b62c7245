#include "store/shelf/shelf_read_only.h"

enum err shelf_read_only_ask(struct shelf_session *session, const struct document_sum *sum) {
    (void)session;
    (void)sum;
    return ERR_OK;
}

enum err shelf_read_only_answer(struct shelf_session *session, bool *ret_holds, struct err_detail *detail) {
    (void)session;
    (void)detail;
    *ret_holds = false;
    return ERR_OK;
}

static enum err refuse(struct err_detail *detail) {
    return err_set(detail, ERR_UNSUPPORTED, "what others keep is only read from here");
}

enum err shelf_read_only_put(struct shelf_session *session, const struct document *document,
                             enum store_mode mode, struct stored *ret_stored, struct err_detail *detail) {
    (void)session;
    (void)document;
    (void)mode;
    (void)ret_stored;
    return refuse(detail);
}

enum err shelf_read_only_submit(struct shelf_session *session, const struct document *document,
                                enum store_mode mode, shelf_done *done, void *context,
                                struct err_detail *detail) {
    (void)session;
    (void)document;
    (void)mode;
    (void)done;
    (void)context;
    return refuse(detail);
}

enum err shelf_read_only_remove(struct shelf_session *session, const struct key *key,
                                struct err_detail *detail) {
    (void)session;
    (void)key;
    return refuse(detail);
}

void shelf_read_only_drain(struct shelf *shelf) {
    (void)shelf;
}
