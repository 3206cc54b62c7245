/*
 * archive_state - what the files of archive.h share; private to them. One machine in several files: archive.c
 * has readers and opens records, archive_find.c finds a capture by its time, archive_walk.c walks over many.
 */
#ifndef MNEMON_REPLAY_ARCHIVE_ARCHIVE_STATE_H
#define MNEMON_REPLAY_ARCHIVE_ARCHIVE_STATE_H

#include <pthread.h>

#include "base/scratch.h"
#include "http/message/http_head.h"
#include "replay/archive/archive.h"
#include "run/turnstile.h"
#include "web/url/canon.h"
#include "web/url/likeness.h"
#include "web/url/url.h"

enum { ARCHIVE_LARGE_COUNT = 4 };

/* As node/captures/captures.h has it: clocks of nodes differ by up to 15 minutes. */
static const int64_t ARCHIVE_AHEAD_US = INT64_C(900000000);

struct archive_part;

struct archive {
    struct instance *instance;
    struct access *access;
    const char *scratch_directory;
    const struct clock *clock;
    struct parsers *parsers;
    bool parses_short;
    bool trusts_fetched_only;
    enum archive_membership (*judge)(void *context, uint64_t voucher, int64_t time_us);
    bool (*admits)(void *context, const struct capture *capture);
    void *judge_context;
    pthread_mutex_t lock;
    struct archive_reader *free_readers; /* lock */
    size_t free_count;                   /* lock: of them */
    size_t held_count;                   /* lock: readers that clients keep */
    struct archive_part
        *large[ARCHIVE_LARGE_COUNT]; /* lock: large records that were read last; may be NULL */
    size_t large_next;               /* lock: the oldest of them */
    struct scratch_budget budget;
    struct turnstile work;
};

enum { ARCHIVE_TIMELINE_MAX = 32 };

/*
 * The captures of one SURT, read at once: what is found, and its neighbours, then cost a single look at the
 * index. SURTs with more captures than fit are looked up one by one.
 */
struct archive_timeline {
    struct buf surt; /* whose it is; also a copy that does not move while others do */
    bool is_known;   /* what follows is of this SURT */
    bool is_whole;   /* it has no more captures than these */
    bool is_partial; /* there were volumes that could not be asked */
    size_t count;
    struct capture captures[ARCHIVE_TIMELINE_MAX]; /* in order; those to be seen */
    struct buf text;                               /* their slices */
};

void archive_timeline_init(struct archive_timeline *timeline);
void archive_timeline_done(struct archive_timeline *timeline);

/* How the last reading went, and of what. */
struct archive_lost {
    bool is_lost; /* it can never be had */
    int64_t time_us;
    uint8_t digest[KEY_DIGEST_SIZE];
};

struct archive_reader {
    struct archive_reader *next; /* in the pool */
    bool is_held;
    bool is_brief;
    bool trusts_fetched_only;
    struct record
        *unmarked;         /* of a capture whose entry says nothing of its origin; NULL: none was read yet */
    size_t unmarked_count; /* since the reader began */
    struct archive *archive;
    struct instance_session *session; /* of walks and lookups */
    struct canon canon;
    struct buf surt;
    struct likeness likeness; /* to the URL that was asked for */
    struct buf found;         /* the slices of the capture that was found */
    struct buf beside;        /* those of a neighbour of it */
    struct buf near;          /* the URLs of all neighbours */
    struct archive_timeline timeline;
    struct archive_lost lost;
    struct archive_part *own;      /* NULL until something is read */
    struct archive_part *original; /* of a revisit; likewise */
    char type[HTTP_TYPE_SIZE_MAX]; /* of the record that was opened, if it has several */
    void *extra;
    void (*free_extra)(void *extra);
};

enum { ARCHIVE_KEY_SIZE_MAX = 2 * URL_SIZE_MAX + 64 };

/* Is it to be seen: its document is there, and no rule excludes it? ERR_NOT_FOUND if not. */
enum err archive_see(struct archive_reader *reader, const struct capture *capture) MUST_CHECK;

/* The same capture as the index has it now; for this, slices are not looked at. */
enum err archive_find_again(struct archive_reader *reader, const struct capture *capture,
                            struct capture *ret_capture) MUST_CHECK;

#endif
