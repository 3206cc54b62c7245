/*
 * ring_reader_scope - where on the ring the captures of a walk lie: at one position, or anywhere.
 *
 * They lie at one position if both bounds are keys of one SURT; with the mapping `host`, if all keys between
 * them begin with the same host; with `section`, if they begin with the same part of it.
 */
#ifndef MNEMON_NODE_READING_RING_READER_SCOPE_H
#define MNEMON_NODE_READING_RING_READER_SCOPE_H

#include "store/keyset/position.h"

/* False: anywhere. */
bool ring_reader_scope(struct sha256 *sha256, struct bytes from, struct bytes to,
                       enum position_mapping mapping, uint8_t ret_position[RINGKEY_POSITION_SIZE]);

/* Are both bounds keys of one SURT? */
bool ring_reader_scope_is_url(struct bytes from, struct bytes to, struct bytes *ret_surt);

/* The time that a walk over one SURT is about: where it ends, or begins. INT64_MAX: none, it is over all. */
int64_t ring_reader_scope_time(struct bytes from, struct bytes to);

#endif
