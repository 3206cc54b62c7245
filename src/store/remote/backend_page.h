/*
 * backend_page - one page of a walk whose captures come from several places, so that no location says where
 * it goes on: captures of one SURT and time stay on one page, and the next begins behind them.
 */
#ifndef MNEMON_STORE_REMOTE_BACKEND_PAGE_H
#define MNEMON_STORE_REMOTE_BACKEND_PAGE_H

#include "store/remote/backend_code.h"

/* The next capture, until the next call; ERR_NOT_FOUND at the end. */
typedef enum err backend_page_next(void *source, struct capture *ret_capture, struct err_detail *detail);

/*
 * Append the page (store/remote/backend_code.h). If the source ends with ERR_UNREACHABLE, what came before is
 * a page of its own, and the error that of the next page.
 */
enum err backend_page_put(struct buf *page, const struct backend_code_walk *walk, backend_page_next *next,
                          void *source, struct err_detail *detail) MUST_CHECK;

#endif
