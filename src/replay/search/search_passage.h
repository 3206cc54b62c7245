/*
 * search_passage - an auxiliary function of FTS5: passage(words, column), the part of a text that shows best
 * why it was found, with SEARCH_MARK_START and _END around the words.
 *
 * In place of FTS5's own snippet(), which compares all places of the words with each other: a page that
 * repeats one word often enough keeps it busy for minutes. This one looks at each place once, at
 * SEARCH_PASSAGE_PLACES_MAX of them at most, and cuts what it gives at SEARCH_PASSAGE_SIZE_MAX.
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_PASSAGE_H
#define MNEMON_REPLAY_SEARCH_SEARCH_PASSAGE_H

#include <sqlite3.h>

enum {
    SEARCH_PASSAGE_TOKENS = 40,
    SEARCH_PASSAGE_PLACES_MAX = 2000,
    SEARCH_PASSAGE_SIZE_MAX = 1024, /* of the text in it */
};

/* Make it known to the connection; what SQLite says. */
int search_passage_register(sqlite3 *database);

#endif
