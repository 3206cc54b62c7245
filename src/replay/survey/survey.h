/*
 * survey - what the archive holds in numbers: hosts, types, statuses, months, the newest pages; counted in
 * the background.
 *
 *      captures of the index ──slices──> survey_tally.h ──> snapshot <── survey_get(), any thread
 *      blocks, for sizes ──────slices──>
 *
 * One thread of the lowest priority walks over all captures and makes a snapshot, which never changes. It
 * starts again when the archive has changed, but rests long enough to take a twentieth of a processor at
 * most; an archive of some thousand captures is counted at once. The first pass over a large archive takes a
 * fifth, and there are snapshots of what it has seen so far.
 *
 * What the access rules exclude is not counted; a page that shows names asks again, since rules may have
 * changed.
 */
#ifndef MNEMON_REPLAY_SURVEY_SURVEY_H
#define MNEMON_REPLAY_SURVEY_SURVEY_H

#include "base/clock.h"
#include "replay/archive/archive.h"
#include "replay/survey/survey_snapshot.h"

struct survey;

struct survey_config {
    struct archive *archive;   /* outlives the survey */
    const struct clock *clock; /* likewise */
    uint32_t interval_ms;      /* between two looks whether it has changed; 0: 10,000 */
};

enum err survey_start(const struct survey_config *config, struct survey **ret_survey,
                      struct err_detail *detail) MUST_CHECK;
void survey_stop(struct survey *survey);

/* The newest snapshot, until survey_release(); NULL if there is none yet. survey may be NULL. */
const struct survey_snapshot *survey_get(struct survey *survey);

#endif
