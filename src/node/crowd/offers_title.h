/*
 * offers_title - the title of a capture that is an HTML page, and the words that it is found by.
 *
 * One thread at a time; used for capture after capture.
 */
#ifndef MNEMON_NODE_CROWD_OFFERS_TITLE_H
#define MNEMON_NODE_CROWD_OFFERS_TITLE_H

#include "protocol/crowd/wish.h"
#include "store/document/document.h"
#include "warc/content.h"
#include "web/html/text.h"

struct offers_title {
    struct content content;
    struct text *text;
    struct sink sink;
};

/* To be ended by offers_title_done() also if it fails. */
enum err offers_title_init(struct offers_title *title) MUST_CHECK;
void offers_title_done(struct offers_title *title);

/*
 * UTF-8 of at most WISH_TITLE_SIZE_MAX, until the next call; empty if there is none. payload: the body
 * without its transfer encoding.
 */
struct bytes offers_title_find(struct offers_title *title, const struct document *document,
                               struct bytes payload);

/* The text, as much of it as fits, cut between characters. */
struct bytes offers_title_cut(struct bytes text, size_t size_max);

/*
 * Append the words of a title or of a wish: in lower case as far as ASCII goes, a single space before and
 * after each. Whatever is ASCII and neither letter nor digit separates words.
 */
void offers_title_put_words(struct buf *out, struct bytes text);

/* A set of words as 64 bits: that of a part has no bit that the whole lacks. */
uint64_t offers_title_mask(struct bytes words);

/* Are all words of the one among those of the other? Both as offers_title_put_words() writes them. */
bool offers_title_has_words(struct bytes title_words, struct bytes words);

#endif
