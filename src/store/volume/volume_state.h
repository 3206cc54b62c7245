/*
 * volume_state - what a volume is made of. Private to its files.
 *
 * One machine in several files:
 *      volume.c             opening, closing, figures
 *      volume_segments.c    its files, held while somebody reads them
 *      volume_recover.c     what the index missed, when it is opened
 *      volume_mirrored.c    archives of others that are extended here
 *      volume_commit.c      the queue of records and the thread that writes them
 *      volume_reader.c, volume_writer.h    one of each for every thread that reads or writes
 *      compact.c, damage.c, follow.c, verify.c    work on all of it
 *
 * One lock guards what is marked with it. The committer alone appends to segments and uses the ledger; it
 * holds the lock only to take and to hand back items, never during I/O.
 *
 *      item:  free ── take ──> filled by a writer ── queue ──> committed ──> free
 *
 * A writer takes an item before it compresses, and with it the segment that it compresses for (its
 * dictionary). A new segment becomes the one to compress for at once, but the committer appends to it only
 * when all items of the old one are through. So segments are filled strictly one after the other, and one
 * position tells how far the index has come.
 */
#ifndef MNEMON_STORE_VOLUME_VOLUME_STATE_H
#define MNEMON_STORE_VOLUME_VOLUME_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/scratch.h"
#include "run/bell.h"
#include "store/index/block_cache.h"
#include "store/index/changes.h"
#include "store/index/ledger.h"
#include "store/index/recent.h"
#include "store/volume/decoders.h"
#include "store/volume/dictionary.h"
#include "store/volume/origins.h"
#include "store/volume/segment_reader.h"
#include "store/volume/volume.h"
#include "warc/warc_writer.h"

enum {
    VOLUME_ITEM_ENTRIES_MAX = 2,
    VOLUME_SEGMENTS_MAX = 1 << 20,
    VOLUME_ITEMS_KEPT_MAX = 1024,        /* with their memory, while nobody needs them */
    VOLUME_FRAMES_MEMORY_MAX = 16 << 20, /* larger frames wait for the committer in a file */
};

/*
 * The compressors of a volume, shared by all writers.
 *
 * A compressor's tables take hundreds of kilobytes. With one for each of 64 writers they push each other out
 * of the processor's cache: storing a page of 12 KB then cost 220 us of processor time instead of 120. So
 * they are a stack: the one that was used last is given out first, and only as many are in use as there are
 * writers compressing at the same time.
 */
struct encoder {
    struct encoder *next;
    struct scratch_sink sink;
    struct warc_writer warc;
    uint32_t segment; /* number of the one that it is set up for; 0: none */
};

struct encoders {
    pthread_mutex_t lock;
    struct encoder *free; /* lock: last used first */
    int level;
    struct warc_random random;
};

/* What a writer saw of a block, and when: unless it has changed since, the committer need not look again. */
struct volume_look {
    uint64_t generation; /* changes_now() before the look */
    bool is_there;
    struct block block; /* all zero if it is not */
};

struct volume_item {
    struct volume_item *next;
    struct segment *segment; /* compressed for this one */
    struct scratch frames;
    struct ledger_entry entries[VOLUME_ITEM_ENTRIES_MAX]; /* offsets count from the start of the frames */
    size_t entries_count;
    struct buf text;         /* what the slices of the entries borrow */
    struct volume_look look; /* no such block: it is new; else it was live: a duplicate or a deletion. Of one
                                that was entered: the block as it is then, where it has changed */
    bool accepts_twin; /* a new one: should there be one by now, of the same size, it is the same document */
    struct bell *bell; /* that rings when it is done */
    atomic_bool is_done; /* it has an outcome; from then on it is its writer's again */
    enum err err;
    struct stored stored;
    volume_done *done; /* NULL: somebody waits at the bell */
    void *context;
};

struct volume {
    struct volume_config config;
    char mirrored_directory[SEGMENT_PATH_SIZE_MAX]; /* of a mirrored volume that was extended:
                                                       config.directory */
    enum err refuses; /* not ERR_OK: it is only read, and has neither committer nor active segment */
    struct index *index;
    pthread_mutex_t ledger_lock; /* held for a whole group, by the committer or by a compaction */
    struct ledger ledger;        /* ledger_lock */
    struct changes changes;      /* ledger_lock, but for changes_now() */
    struct block_cache *blocks;  /* as block_cache.h has it; none of a mirrored volume */
    struct recent recent;        /* for followers */
    struct origins *origins;     /* for duplicates of other URLs; none of a mirrored volume */
    struct vfs_file lock_file;
    struct encoders encoders;
    struct decoders decoders;
    bool has_dictionary;          /* the next is set up */
    struct dictionary dictionary; /* in the making */
    struct buf dictionary_raw;    /* the committer's: for new segments; empty while there is none */
    bool is_dictionary_new;       /* the committer's: no segment has it yet */

    pthread_rwlock_t segments_lock;
    struct segment **segments; /* by number, ascending */
    size_t segments_count;
    size_t segments_max;

    pthread_mutex_t lock;
    pthread_cond_t has_work;         /* for the committer */
    pthread_cond_t has_room;         /* for writers that want an item */
    pthread_cond_t has_done;         /* for drain: all items are free; for roll: the segment is another */
    struct volume_item *free_items;  /* lock */
    size_t items_count;              /* lock: made so far */
    size_t items_taken_count;        /* lock: not free */
    size_t active_taken_count;       /* lock: compressed for the active segment and not yet committed */
    size_t next_taken_count;         /* lock: the same for the one that follows it */
    struct volume_item *queue_first; /* lock */
    struct volume_item *queue_last;  /* lock */
    struct bell bells[2];            /* in turn: of the group that is committed, and of the next */
    unsigned bell_index;             /* lock: of what is queued now */
    uint64_t queue_size;             /* lock: bytes of frames */
    size_t queue_awaited_count;      /* lock: of the items there, whose writer waits */
    struct segment *active;          /* lock: the committer appends to it */
    struct segment *encoding;   /* lock: writers compress for it; another one than active while rolling */
    uint64_t quota_part;        /* ledger_lock: what it counts for of the quota */
    uint64_t quota_grown_size;  /* ledger_lock: of that, since it was measured */
    uint64_t quota_measured_us; /* ledger_lock */
    uint64_t free_budget;       /* the committer's: so much fits on the disk for sure, or nearly */
    struct volume_load load;    /* lock: its sums, and the outcome of the last commit */
    uint64_t sync_us;           /* the committer's: of the commit that runs */
    bool is_stopping;           /* lock */
    bool is_roll_asked;         /* lock */
    pthread_t committer;
    bool has_committer;
};

/* volume_segments.c */

/* Held until volume_release(); ERR_NOT_FOUND. */
enum err volume_hold(struct volume *volume, uint32_t number, struct segment **ret_segment) MUST_CHECK;
void volume_release(struct segment *segment);

/* The first segment whose number is not below this one, held; NULL if there is none. */
struct segment *volume_hold_from(struct volume *volume, uint32_t number);

/* Those of a mirrored volume that cannot be opened are left out, and counted. */
enum err volume_open_segments(struct volume *volume, struct volume_recovery *recovery,
                              struct err_detail *detail) MUST_CHECK;
void volume_close_segments(struct volume *volume);

/* A new segment with its warcinfo, not yet known to anybody. Then publish it or drop it. */
enum err volume_start_segment(struct volume *volume, uint32_t number, enum pack_framing framing,
                              struct bytes dictionary, struct segment **ret_segment,
                              struct err_detail *detail) MUST_CHECK;
enum err volume_publish_segment(struct volume *volume, struct segment *take_segment,
                                struct err_detail *detail) MUST_CHECK;
void volume_drop_segment(struct volume *volume, struct segment *take_segment);

/* Both at once, behind all others. The dictionary may be empty. */
enum err volume_add_segment(struct volume *volume, struct bytes dictionary, struct segment **ret_segment,
                            struct err_detail *detail) MUST_CHECK;

/* For a mirrored volume: open the file of that name in config.directory, in the place of an older one of its
 * number.
 */
enum err volume_renew_segment(struct volume *volume, const char *name, struct err_detail *detail) MUST_CHECK;

/* Take it out of the volume and remove its file (but a mirrored volume's), when its last reader is done. */
void volume_remove_segment(struct volume *volume, struct segment *take_segment);

/* volume_recover.c: enter what the index missed, cut what is torn. ERR_MISMATCH: the index must be rebuilt.
 */
enum err volume_recover(struct volume *volume, struct volume_recovery *recovery,
                        struct err_detail *detail) MUST_CHECK;

/* The same for a volume that is open for reading only: what the index missed, of this size, is as if it were
 * not there, so that nobody takes a record that is torn for a damaged one. No file changes. */
enum err volume_leave_missed(struct volume *volume, uint64_t *ret_size) MUST_CHECK;

/* Something in a mirrored volume is refused, for this reason. */
void volume_note_damage(struct volume_recovery *recovery, enum err err, const struct err_detail *detail);

/* Go on behind damage. A record of a mirrored volume that was only refused is passed over as any other. */
enum err volume_pass_damage(struct warc_reader *reader, bool *ret_goes_on,
                            struct err_detail *detail) MUST_CHECK;

/* volume_encode.c */
void encoders_init(struct encoders *encoders, int level, struct warc_random random);
void encoders_done(struct encoders *encoders); /* all have been returned */

/* volume_commit.c */
enum err volume_start_committer(struct volume *volume) MUST_CHECK;
void volume_stop_committer(struct volume *volume);

/* Begin a new segment, so that the one before it can be compacted; if that fails, all is as before. */
void volume_roll(struct volume *volume);

/* ---- its queue ---- */

/* The error with which a volume that is open for reading only refuses all writers; else ERR_OK. */
enum err volume_refuses(const struct volume *volume, struct err_detail *detail) MUST_CHECK;

/* Wait for a free item; it is taken for volume->encoding. ERR_MEMORY. */
enum err volume_take_item(struct volume *volume, struct volume_item **ret_item,
                          struct err_detail *detail) MUST_CHECK;
void volume_queue_item(struct volume *volume, struct volume_item *item);

/* Back without having been queued, or after its outcome was read. */
void volume_free_item(struct volume *volume, struct volume_item *item);

/* Queue it, wait until it is committed or failed, and free it. ret_stored may be NULL. */
enum err volume_run_item(struct volume *volume, struct volume_item *item,
                         struct stored *ret_stored) MUST_CHECK;

/* The digest of a payload's key: all bits of its SHA-256, or fewer in tests. */
void volume_shorten(const struct volume *volume, const uint8_t sha256[KEY_DIGEST_SIZE],
                    uint8_t digest[KEY_DIGEST_SIZE]);

#endif
