/*
 * survey_tally - the numbers of a survey while they are being counted, and the snapshot that is made of them.
 *
 * The index of captures does not say how large their documents are, that of blocks does, in the order of
 * digests. To look up each would be a random read. So captures are counted without sizes and noted;
 * when enough are, one walk over all blocks has the sizes of all of them:
 *
 *      add … add, sort, add_size for every block, settle; add … add, sort …
 *
 * Memory is bounded by the maxima of survey_snapshot.h: some 50 MB with 100,000 hosts and as many captures
 * without a size as there may be. Private to survey.c.
 */
#ifndef MNEMON_REPLAY_SURVEY_SURVEY_TALLY_H
#define MNEMON_REPLAY_SURVEY_SURVEY_TALLY_H

#include "base/arena.h"
#include "base/map.h"
#include "replay/survey/survey_snapshot.h"

enum { SURVEY_UNSIZED_MAX = 1 << 20 };

/* A capture whose document's size is not known yet. */
struct survey_unsized {
    uint64_t digest; /* its first eight bytes, as a number that sorts like them */
    uint32_t host;   /* index in hosts; SURVEY_HOSTS_MAX: others */
    uint16_t type;   /* index in types; SURVEY_TYPES_MAX: none */
    uint16_t month;  /* index in months; SURVEY_MONTHS_MAX: none */
    uint16_t block_number;
    bool is_revisit;
    bool is_sized;
};

struct survey_tally {
    struct arena arena;        /* of the names */
    struct survey_host *hosts; /* SURVEY_HOSTS_MAX, of which the first are in use; likewise below */
    struct map host_places;    /* SURT of the host -> uint32_t index in hosts */
    struct survey_type types[SURVEY_TYPES_MAX];
    struct map type_places; /* name -> uint32_t */
    struct survey_month months[SURVEY_MONTHS_MAX];
    struct map month_places; /* int32_t -> uint32_t */
    struct survey_unsized *unsized;
    size_t unsized_count;
    size_t unsized_next; /* behind all whose digests are below that of the last block */
    uint16_t volume;     /* of that block */
    struct survey_total total;
    struct survey_total others;
    int64_t first_us;
    int64_t last_us;
    uint64_t statuses[SURVEY_STATUSES_MAX];
    uint32_t host_index; /* of the last capture: neighbours in the index mostly share it */
    struct survey_page newest[SURVEY_NEWEST_MAX]; /* in no order; slices of newest_texts */
    size_t newest_count;
    size_t page_index; /* of the one that was put last: the next capture may be a newer version of it */
    uint8_t newest_texts[SURVEY_NEWEST_MAX][2][SURVEY_URL_SIZE_MAX];
};

/* ERR_MEMORY: there is nothing to free. */
enum err survey_tally_init(struct survey_tally *tally, uint64_t seed) MUST_CHECK;
void survey_tally_done(struct survey_tally *tally);

/*
 * In the order of the index; no more than SURVEY_UNSIZED_MAX before the sizes. What there is no room for is
 * left out.
 */
void survey_tally_add(struct survey_tally *tally, const struct capture *capture);

/* No captures from here on until survey_tally_settle(). */
void survey_tally_sort(struct survey_tally *tally);

/* A block and the size of its document; of each volume in the order of digests. */
void survey_tally_add_size(struct survey_tally *tally, const struct key *key, uint64_t size);

/* All blocks have been seen. Captures whose block was not among them have no size. */
void survey_tally_settle(struct survey_tally *tally);

/* A snapshot of it, with one reference; NULL: out of memory. Time, volumes and flags are the caller's. */
struct survey_snapshot *survey_tally_snapshot(const struct survey_tally *tally,
                                              const struct survey_volume *volumes, size_t volumes_count);

#endif
