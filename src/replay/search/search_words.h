/*
 * search_words - what a user typed, as an expression of FTS5 in which nothing of it is syntax.
 *
 *      web "full text" -spam arch*      ->      ("web" AND "full text" AND "arch"*) NOT ("spam")
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_WORDS_H
#define MNEMON_REPLAY_SEARCH_SEARCH_WORDS_H

#include "base/buf.h"

enum { SEARCH_WORDS_SIZE_MAX = 1024, SEARCH_TERMS_MAX = 32 };

/* Around the words that were found, in snippets; neither is ever part of a text. */
enum { SEARCH_MARK_START = 2, SEARCH_MARK_END = 3 };

/* Append the expression. ERR_INVALID, ERR_LIMIT with the reason, in words for the user. */
enum err search_words_put(struct buf *out, struct bytes words, struct err_detail *detail) MUST_CHECK;

#endif
