/*
 * follow - the records of a volume one after the other as they became durable, from a position on.
 *
 * For modules that keep something of their own beside the archive, such as full text, and want to see each
 * new record once: they store follow_position() together with what they made of the records, and continue
 * from there after a restart. Nothing slows the writers down; only records that are durable and in the index
 * are given. A follower close behind the writers is given what they remember (recent.h), and nothing is read
 * or decompressed for it.
 *
 *      position    segment 3, offset 700: everything before it was given
 *
 * After a compaction the records of a segment lie in its next generation. Whoever had read all of the old one
 * may be given them once more; whoever was in its middle is given the new one from its start. So a record may
 * come twice, but none is missed, and what one does with them must bear it.
 *
 * A segment is held while it is being read, and a compaction waits for that: call follow_pause() before doing
 * anything else for long. One thread.
 */
#ifndef MNEMON_STORE_VOLUME_FOLLOW_H
#define MNEMON_STORE_VOLUME_FOLLOW_H

#include "store/index/ledger.h"
#include "store/volume/volume.h"

struct follow;
struct segment;

struct follow *follow_new(struct volume *volume); /* NULL: out of memory */
void follow_free(struct follow *follow);

/* Go on from here; all zero is the start. */
void follow_seek(struct follow *follow, const struct index_position *position);

/*
 * The next record, of any kind; its slices last until the next call. ERR_NOT_FOUND: there is none yet.
 * ERR_MISMATCH: the position is behind the end, so it is not one of this archive as it is now. Places that
 * are damaged are passed over.
 */
enum err follow_next(struct follow *follow, struct ledger_entry *ret_entry,
                     struct err_detail *detail) MUST_CHECK;

/* Behind the record that was given last. */
struct index_position follow_position(const struct follow *follow);

/* Would follow_next() find something? Costs one look into the index. */
bool follow_is_behind(const struct follow *follow);

/* Let the segment go until the next call. */
void follow_pause(struct follow *follow);

/* How much of the segment is durable and in the index, when the volume ends there. */
enum err follow_readable_size(const struct segment *segment, const struct index_position *end,
                              uint64_t *ret_size) MUST_CHECK;

/* Bytes of segments behind a position, and of all of them. */
enum err follow_left(struct volume *volume, const struct index_position *position, uint64_t *ret_left_size,
                     uint64_t *ret_all_size) MUST_CHECK;

#endif
