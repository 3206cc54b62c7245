/*
 * shelf_read_only - what a shelf that is only read from answers to who would write: it holds nothing, and
 * takes nothing. For its shelf_table.
 */
#ifndef MNEMON_STORE_SHELF_SHELF_READ_ONLY_H
#define MNEMON_STORE_SHELF_SHELF_READ_ONLY_H

#include "store/shelf/shelf.h"

enum err shelf_read_only_ask(struct shelf_session *session, const struct document_sum *sum);
enum err shelf_read_only_answer(struct shelf_session *session, bool *ret_holds, struct err_detail *detail);

/* ERR_UNSUPPORTED. */
enum err shelf_read_only_put(struct shelf_session *session, const struct document *document,
                             enum store_mode mode, struct stored *ret_stored, struct err_detail *detail);
enum err shelf_read_only_submit(struct shelf_session *session, const struct document *document,
                                enum store_mode mode, shelf_done *done, void *context,
                                struct err_detail *detail);
enum err shelf_read_only_remove(struct shelf_session *session, const struct key *key,
                                struct err_detail *detail);

void shelf_read_only_drain(struct shelf *shelf);

#endif
