/*
 * survey_tally - the numbers of a survey while they are being counted, and the snapshot that is made of them.
 *
 * Memory is bounded by the maxima of survey.h: some 30 MB with 100,000 hosts. Private to survey*.c.
 */
#ifndef MNEMON_REPLAY_SURVEY_TALLY_H
#define MNEMON_REPLAY_SURVEY_TALLY_H

#include "base/arena.h"
#include "base/map.h"
#include "replay/survey.h"

struct survey_tally {
    struct arena arena; /* of the names */
    struct map hosts;   /* SURT of the host -> struct survey_host */
    struct map types;   /* name -> struct survey_type */
    struct map months;  /* int32_t -> struct survey_month */
    struct survey_total total;
    struct survey_total others;
    int64_t first_us;
    int64_t last_us;
    uint64_t statuses[SURVEY_STATUSES_MAX];
    struct survey_host *host; /* of the last capture: neighbours in the index mostly share it */
    struct survey_page newest[SURVEY_NEWEST_MAX]; /* in no order; slices of newest_texts */
    size_t newest_count;
    size_t page_index; /* of the one that was put last: the next capture may be a newer version of it */
    uint8_t newest_texts[SURVEY_NEWEST_MAX][2][SURVEY_URL_SIZE_MAX];
};

void survey_tally_init(struct survey_tally *tally, uint64_t seed);
void survey_tally_done(struct survey_tally *tally);

/* size: of the capture's document. In the order of the index. What there is no room for is left out. */
void survey_tally_add(struct survey_tally *tally, const struct capture *capture, uint64_t size);

/* A snapshot of it, with one reference; NULL: out of memory. Time, volumes and flags are the caller's. */
struct survey_snapshot *survey_tally_snapshot(const struct survey_tally *tally,
                                              const struct survey_volume *volumes, size_t volumes_count);

/* One more reference; survey_release() drops it. */
void survey_keep(const struct survey_snapshot *snapshot);

#endif
