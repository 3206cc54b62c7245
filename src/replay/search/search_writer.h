/*
 * search_writer - what the feeder does to the database of search.h. All but open and close needs a
 * transaction.
 */
#ifndef MNEMON_REPLAY_SEARCH_SEARCH_WRITER_H
#define MNEMON_REPLAY_SEARCH_SEARCH_WRITER_H

#include "replay/search/search_database.h"
#include "store/instance/instance.h"

enum { SEARCH_DROP_MAX = 256, SEARCH_STATEMENTS_MAX = 15 };

struct search_writer {
    sqlite3 *database;
    sqlite3_stmt *statements[SEARCH_STATEMENTS_MAX];
};

struct search_page {
    const struct capture *capture;
    struct bytes host;
    struct bytes language;
    struct bytes title;
    struct bytes description;
    struct bytes body;
    struct bytes packed; /* the body */
};

enum err search_writer_open(struct search_writer *writer, const char *path,
                            struct err_detail *detail) MUST_CHECK;
void search_writer_close(struct search_writer *writer);

/* The page was seen once more; *ret_is_known: there is a row of it. */
enum err search_writer_see(struct search_writer *writer, const struct capture *capture, bool *ret_is_known,
                           struct err_detail *detail) MUST_CHECK;
enum err search_writer_add(struct search_writer *writer, const struct search_page *page,
                           struct err_detail *detail) MUST_CHECK;

/* All rows of captures on key->volume of that document; how many there were. */
enum err search_writer_drop(struct search_writer *writer, const struct key *key, uint64_t *ret_count,
                            struct err_detail *detail) MUST_CHECK;

/* The position is all zero if there is none. */
enum err search_writer_position(struct search_writer *writer, uint16_t volume,
                                struct index_position *ret_position, struct err_detail *detail) MUST_CHECK;
enum err search_writer_move(struct search_writer *writer, uint16_t volume,
                            const struct index_position *position, struct err_detail *detail) MUST_CHECK;
enum err search_writer_count(struct search_writer *writer, uint64_t *ret_count,
                             struct err_detail *detail) MUST_CHECK;

/* Some rows of captures on that volume, SEARCH_DROP_MAX at most; how many there were. */
enum err search_writer_drop_volume(struct search_writer *writer, uint16_t volume, uint64_t *ret_count,
                                   struct err_detail *detail) MUST_CHECK;

/* What the rows of a mirrored archive were made from; 0: there are none. */
enum err search_writer_mark(struct search_writer *writer, uint16_t volume, uint64_t *ret_mark,
                            struct err_detail *detail) MUST_CHECK;
enum err search_writer_set_mark(struct search_writer *writer, uint16_t volume, uint64_t mark,
                                struct err_detail *detail) MUST_CHECK;

#endif
