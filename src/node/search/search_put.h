/*
 * search_put - writes what protocol/search/search_code.h reads: the question of a search over the ring, and
 * the parts of its answer. All functions append, and return the errors of the buffer.
 */
#ifndef MNEMON_NODE_SEARCH_SEARCH_PUT_H
#define MNEMON_NODE_SEARCH_SEARCH_PUT_H

#include "base/buf.h"
#include "protocol/search/search_code.h"

enum err search_put_question(struct buf *out, const struct search_code_question *question) MUST_CHECK;

/* The head, with these arcs; then so many results as its results_count says. */
enum err search_put_head(struct buf *out, const struct search_code_head *head,
                         const struct search_code_arc *arcs) MUST_CHECK;
enum err search_put_result(struct buf *out, const struct search_code_result *result) MUST_CHECK;

/* Append a text as an answer may carry it: cut between characters, control characters as spaces, what is not
 * UTF-8 left out. keeps_marks: but for marks in pairs. */
void search_put_text(struct buf *out, struct bytes text, size_t size_max, bool keeps_marks);

#endif
