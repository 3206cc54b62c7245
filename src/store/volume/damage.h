/*
 * damage - which captures a damaged place of a segment concerns, and a list of captures that are damaged.
 *
 * The index leads from captures to places, not back: finding those of a place walks all of it, so places are
 * gathered first. The list is a file that `mnemon store verify` leaves for a node, which has the captures of
 * it repaired from others:
 *
 *      DIR/ring/damaged     volume number digest time URL, one line each; "- -" where only a document is
 *
 * A capture without URL, here and in the list, stands for a document that is not readable and of whose
 * captures nothing is known but that they have its digest and block number.
 */
#ifndef MNEMON_STORE_VOLUME_DAMAGE_H
#define MNEMON_STORE_VOLUME_DAMAGE_H

#include "base/map.h"
#include "store/volume/volume.h"

enum { DAMAGE_LIST_SIZE_MAX = 16 << 20 };

/* Bytes of a segment that are no good records. */
struct damage_place {
    uint32_t segment;
    uint64_t from;
    uint64_t end;
};

/* The capture is borrowed for the call. */
typedef void damage_visit(void *context, const struct capture *capture);

/*
 * The live captures and documents whose records begin in one of the places, which are in order. A document is
 * told only if its record's own capture is not.
 */
enum err damage_find(struct volume *volume, const struct damage_place *places, size_t places_count,
                     damage_visit *visit, void *context, struct err_detail *detail) MUST_CHECK;

/* A set of records, known by segment and offset; ended by map_done(). */
void damage_set_init(struct map *set, size_t count_max);
enum err damage_set_add(struct map *set, const struct location *location) MUST_CHECK;
bool damage_set_has(const struct map *set, const struct location *location);

/* Append the line of a capture, with its volume. What does not fit in the buffer is left out. */
void damage_put_line(struct buf *list, const struct capture *capture);

/*
 * Each capture of the list in a file, with its SURT; lines that are none are passed over. The file is removed
 * then. ERR_OK if there is none.
 */
enum err damage_take(const char *path, damage_visit *visit, void *context,
                     struct err_detail *detail) MUST_CHECK;

#endif
