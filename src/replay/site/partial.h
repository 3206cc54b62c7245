/*
 * partial - answers while somebody that could hold more does not answer. One rule for every interface:
 *
 *      it is found                                        the answer
 *      it is not found, and all have answered             404
 *      it is not found, and somebody has not answered     503
 *
 * Whatever may lack something says so: X-Mnemon-Partial names those that did not answer, JSON has
 * "partial": true and "unanswered", pages have a notice.
 */
#ifndef MNEMON_REPLAY_SITE_PARTIAL_H
#define MNEMON_REPLAY_SITE_PARTIAL_H

#include "http/server/http_request.h"
#include "replay/site/sheet.h"
#include "store/instance/absent.h"

/* The header, before the answer; nothing if all have answered. */
void partial_add_header(struct http_request *request, const struct absent *absent);

/* Nothing was found: ERR_NOT_FOUND with this sentence, or ERR_UNREACHABLE with who did not answer. */
enum err partial_missing(const struct absent *absent, const char *sentence, struct err_detail *detail);

/* 503 for what cannot be had now, else http_status(). */
unsigned partial_status(enum err err);

/* A notice on a page; nothing if all have answered. */
void partial_put_notice(struct sheet *sheet, const struct absent *absent);

#endif
