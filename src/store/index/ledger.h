/*
 * ledger - the books of a volume: what each record in the segments means for the index.
 *
 *      record in a segment                                   effect on block (digest, number)
 *      response, resource with a payload                     references + 1, records + 1, and it is the
 * location revisit of the identical payload                      references + 1, records + 1 one of these
 * that mends one which was counted         none; as an original it is the location bare original
 * ("Mnemon-Bare")                         records + 1, and it is the location deletion (metadata,
 * "Mnemon-Delete: digest.n")     references - 1 removal (a deletion with "Mnemon-Capture: time")
 * references - 1 for each capture that it removes warcinfo, request, others                             none
 *
 * Effects are additions. A removal takes out the captures of its URL, time and block that were stored before
 * it, and a mending record takes the place of one before it; compaction keeps records in their order. So a
 * rebuilt index is equal to the one that grew with the volume. The committer and the recovery both go through
 * here.
 *
 * The record of a capture that was removed stays in the segments until a compaction, which knows it by what
 * is missing in the index: it counts among the records of its block, but not among its references. It stays
 * longer where it holds the document of other captures.
 *
 * A block whose references have come to 0 stays in the index as long as its records are in the segments (a
 * tombstone): its number must not be used again before, or its old deletions would count against a new
 * document.
 *
 * Entries are collected until ledger_commit(); ledger_find() sees them at once. One thread.
 */
#ifndef MNEMON_STORE_INDEX_LEDGER_H
#define MNEMON_STORE_INDEX_LEDGER_H

#include "base/map.h"
#include "store/index/index.h"

enum {
    LEDGER_CHANGES_MAX = 1 << 24,  /* a compaction changes all blocks of a segment at once */
    LEDGER_CHANGES_FULL = 1 << 15, /* a walk through many records commits after so many */
};

enum ledger_kind {
    LEDGER_ORIGINAL,
    LEDGER_REVISIT,
    LEDGER_DELETION, /* of one reference */
    LEDGER_REMOVAL,  /* of the captures of this SURT, URL, time and block */
    LEDGER_OTHER,
};

/* One record. Slices are borrowed for the call. */
struct ledger_entry {
    enum ledger_kind kind;
    struct location location;
    uint8_t digest[KEY_DIGEST_SIZE];
    uint16_t number;
    uint64_t size; /* of the document; originals only */
    int64_t time_us;
    uint64_t uri_hash; /* of the record's target URI; volume_record.h */
    struct bytes surt; /* empty: not a capture of a URL */
    struct bytes url;
    struct bytes mime;
    uint16_t status;
    uint8_t flags;    /* enum capture_flag */
    uint32_t visit_s; /* of a witness, as the next */
    uint16_t signer;
    uint64_t voucher;      /* of one that a node vouches for: store/index/index_code.h */
    bool is_bare;          /* an original that holds its document for revisits only; it has no SURT */
    bool is_purge;         /* a removal after which no compaction leaves any of the bytes */
    struct location mends; /* the damaged record whose place it takes; segment 0: none */
};

/* The capture that an entry with a SURT is; it borrows from the entry. */
struct capture ledger_capture(const struct ledger_entry *entry);

struct ledger {
    struct index *index;
    struct index_batch *batch;
    struct map blocks;   /* digest and number -> struct block, changed since the last commit */
    struct map segments; /* number -> struct index_segment, likewise */
};

enum err ledger_init(struct ledger *ledger, struct index *index) MUST_CHECK;
void ledger_done(struct ledger *ledger);

/* The block as it will be after the commit; also tombstones. ERR_NOT_FOUND. */
enum err ledger_find(const struct ledger *ledger, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                     struct block *ret_block) MUST_CHECK;

/* ERR_LIMIT after LEDGER_CHANGES_MAX changes: commit first. */
enum err ledger_apply(struct ledger *ledger, const struct ledger_entry *entry) MUST_CHECK;

/* The same for a caller that knows the block as it is without the entry (all zero: there is none). */
enum err ledger_apply_to(struct ledger *ledger, const struct ledger_entry *entry,
                         const struct block *before) MUST_CHECK;

/* The block as changed since the last commit; false if nothing has changed it. */
bool ledger_find_change(const struct ledger *ledger, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                        struct block *ret_block);

/* The block shall be this; for a compaction, which also writes it into a batch of its own. */
enum err ledger_set_block(struct ledger *ledger, const uint8_t digest[KEY_DIGEST_SIZE], uint16_t number,
                          const struct block *block) MUST_CHECK;

static inline bool ledger_is_full(const struct ledger *ledger) {
    return ledger->blocks.count >= LEDGER_CHANGES_FULL;
}

/*
 * May the entry be applied? A removal and a mending record look at captures in the index, where those of
 * entries since the last commit are not yet. ERR_BUSY: commit first. A mending record also needs something to
 * mend, when it is not read again but new.
 */
enum err ledger_check(const struct ledger *ledger, const struct ledger_entry *entry,
                      const struct block *before) MUST_CHECK;

/*
 * Is the record of the entry counted among the references of its block? Not so a bare one, and that of a
 * capture which was removed or mended. The block is as it is now.
 */
enum err ledger_is_counted(const struct ledger *ledger, const struct ledger_entry *entry,
                           const struct block *block, bool *ret_is_counted) MUST_CHECK;

/* All entries since the last commit, and the position behind their records, at once. */
enum err ledger_commit(struct ledger *ledger, const struct index_position *position,
                       struct err_detail *detail) MUST_CHECK;

/* Forget the entries since the last commit. */
void ledger_abort(struct ledger *ledger);

#endif
