/*
 * keyset - which captures this node has, as keys of the ring, in the order of the ring. RocksDB.
 *
 *      DIR/ring/keys      made from the volumes by keyset_feed.h; can be thrown away at any time
 *
 *      entry         key                                value
 *      key           'k' place[16] time[8] digest[16]   volume:varint surt
 *      by digest     'd' …                              keyset_digests.h: which go when their document goes
 *      position      'p' volume:u16, big-endian         how far the volume has been read; as in index_code.h
 *      sum           's' lower[40]                      count:varint low:u64 high:u64 of a bucket of keys
 *      format        'm' "format"                       u8 version, u8 mapping
 *
 * The sum of any range (base/ringkey.h) costs no scan of it: sums of buckets of some sixty keys are kept
 * in memory, 1 to 1.5 bytes a key (keyset_sums.h), and at most the two buckets at the ends are read. They are
 * stored with the keys, in the same batch. A set of version 1, without them, gets them by one pass over its
 * keys when it is opened. In sets of version 2 digests are found by key; if each URL has a place of its own,
 * one pass makes them version 3, where they are found by place.
 *
 * Changes are collected and written by keyset_commit(), all or nothing, with the positions; reads do not see
 * them before. What was committed survives the end of the process; a crash of the machine may take the newest
 * commits with their positions. A set that is damaged, whose sums and keys differ, or that has another format
 * or mapping is emptied when it is opened or mended.
 *
 * One thread uses a set, while any others write to the volumes. Memory: 4 MiB of cache, twice 4 MiB of newest
 * entries, the sums.
 */
#ifndef MNEMON_STORE_KEYSET_KEYSET_H
#define MNEMON_STORE_KEYSET_KEYSET_H

#include "store/keyset/position.h"

struct keyset;

/* Open or create; the parent of the directory must exist. ERR_BUSY if another process has it. */
enum err keyset_open(const char *directory, enum position_mapping mapping, struct keyset **ret_keyset,
                     struct err_detail *detail) MUST_CHECK;
void keyset_close(struct keyset *keyset); /* what was not committed is forgotten */

/* Throw everything away, positions too. */
enum err keyset_clear(struct keyset *keyset, struct err_detail *detail) MUST_CHECK;

/* After an error other than of one's own making: close the database and open it again. */
enum err keyset_mend(struct keyset *keyset, struct err_detail *detail) MUST_CHECK;

/* ---- reading: ERR_NOT_FOUND, ERR_CORRUPT, ERR_IO ---- */

struct keyset_entry {
    uint16_t volume;   /* that had it when it was entered */
    struct bytes surt; /* lasts until the next call */
};

uint64_t keyset_count(const struct keyset *keyset);
struct ringkey keyset_key(struct keyset *keyset, const struct capture *capture);
enum err keyset_find(struct keyset *keyset, const struct ringkey *key,
                     struct keyset_entry *ret_entry) MUST_CHECK;
enum err keyset_contains(struct keyset *keyset, const struct ringkey *key, bool *ret_contains) MUST_CHECK;

/* The key with this digest that follows the one given; NULL: the first. */
enum err keyset_find_digest(struct keyset *keyset, const uint8_t digest[RINGKEY_DIGEST_SIZE],
                            const struct ringkey *behind, struct ringkey *ret_key) MUST_CHECK;

/* As struct ringkey_set_table has them. */
enum err keyset_sum(struct keyset *keyset, const struct ringkey_range *range,
                    struct ringkey_sum *ret_sum) MUST_CHECK;
enum err keyset_cut(struct keyset *keyset, const struct ringkey_range *range, uint64_t rank, uint64_t slack,
                    struct ringkey *ret_bound) MUST_CHECK;
enum err keyset_list(struct keyset *keyset, const struct ringkey_range *range, struct ringkey *out,
                     size_t count_max, size_t *ret_count) MUST_CHECK;

/* For protocol/copies/reconcile.h. */
struct ringkey_set keyset_set(struct keyset *keyset);

/* All zero if nothing was read of that volume. */
enum err keyset_position(struct keyset *keyset, uint16_t volume,
                         struct index_position *ret_position) MUST_CHECK;

/* The first volume with a position whose number is at least this. */
enum err keyset_find_volume(struct keyset *keyset, uint16_t from, uint16_t *ret_volume) MUST_CHECK;

/* The memory of the sums, in bytes. */
size_t keyset_memory_size(const struct keyset *keyset);

/* ---- writing: collected until keyset_commit() ---- */

/* If there is such a key already, nothing happens. Of the capture, SURT, time, digest and volume count.
 */
enum err keyset_put(struct keyset *keyset, const struct capture *capture,
                    struct err_detail *detail) MUST_CHECK;
enum err keyset_remove(struct keyset *keyset, const struct ringkey *key,
                       struct err_detail *detail) MUST_CHECK;
void keyset_set_position(struct keyset *keyset, uint16_t volume, const struct index_position *position);

/* Puts commit by themselves when there are many; positions only go with what was put before them. */
enum err keyset_commit(struct keyset *keyset, struct err_detail *detail) MUST_CHECK;

#endif
