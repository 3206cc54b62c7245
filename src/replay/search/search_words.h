/*
 * search_words - what a user typed, as an expression of FTS5 in which nothing of it is syntax.
 *
 *      web "full text" -spam arch*      ->      ("web" AND "full text" AND "arch"*) NOT ("spam")
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_WORDS_H
#define MNEMON_REPLAY_SEARCH_SEARCH_WORDS_H

#include "base/buf.h"

/* Append the expression. ERR_INVALID, ERR_LIMIT with the reason, in words for the user. */
enum err search_words_put(struct buf *out, struct bytes words, struct err_detail *detail) MUST_CHECK;

#endif
