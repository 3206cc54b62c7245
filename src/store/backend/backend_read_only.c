#include "store/backend/backend_read_only.h"

enum err backend_read_only_ask(struct backend_session *session, const struct document_sum *sum) {
    (void)session;
    (void)sum;
    return ERR_OK;
}

enum err backend_read_only_answer(struct backend_session *session, bool *ret_holds,
                                  struct err_detail *detail) {
    (void)session;
    (void)detail;
    *ret_holds = false;
    return ERR_OK;
}

static enum err only_refuse(struct err_detail *detail) {
    return err_set(detail, ERR_UNSUPPORTED, "what others keep is only read from here");
}

enum err backend_read_only_put(struct backend_session *session, const struct document *document,
                               enum store_mode mode, struct stored *ret_stored, struct err_detail *detail) {
    (void)session;
    (void)document;
    (void)mode;
    (void)ret_stored;
    return only_refuse(detail);
}

enum err backend_read_only_submit(struct backend_session *session, const struct document *document,
                                  enum store_mode mode, backend_done *done, void *context,
                                  struct err_detail *detail) {
    (void)session;
    (void)document;
    (void)mode;
    (void)done;
    (void)context;
    return only_refuse(detail);
}

enum err backend_read_only_remove(struct backend_session *session, const struct key *key,
                                  struct err_detail *detail) {
    (void)session;
    (void)key;
    return only_refuse(detail);
}

void backend_read_only_drain(struct backend *backend) {
    (void)backend;
}
