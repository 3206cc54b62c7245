/*
 * backend_read_only - how a read-only backend answers writers: it holds nothing and takes nothing. For its
 * backend_table.
 */
#ifndef MNEMON_STORE_BACKEND_BACKEND_READ_ONLY_H
#define MNEMON_STORE_BACKEND_BACKEND_READ_ONLY_H

#include "store/backend/backend.h"

enum err backend_read_only_ask(struct backend_session *session, const struct document_sum *sum);
enum err backend_read_only_answer(struct backend_session *session, bool *ret_holds,
                                  struct err_detail *detail);

/* ERR_UNSUPPORTED. */
enum err backend_read_only_put(struct backend_session *session, const struct document *document,
                               enum store_mode mode, struct stored *ret_stored, struct err_detail *detail);
enum err backend_read_only_submit(struct backend_session *session, const struct document *document,
                                  enum store_mode mode, backend_done *done, void *context,
                                  struct err_detail *detail);
enum err backend_read_only_remove(struct backend_session *session, const struct key *key,
                                  struct err_detail *detail);

void backend_read_only_drain(struct backend *backend);

#endif
