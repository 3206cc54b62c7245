/*
 * ring_shelf_scope - where on the ring the captures of a walk lie: at one place, or anywhere.
 *
 * At one place where both bounds are keys of one SURT, and with the mapping `host` where both begin with the
 * same host.
 */
#ifndef MNEMON_NODE_RING_SHELF_SCOPE_H
#define MNEMON_NODE_RING_SHELF_SCOPE_H

#include "store/place.h"

/* False: anywhere. */
bool ring_shelf_scope(struct sha256 *sha256, struct bytes from, struct bytes to, enum place_mapping mapping,
                      uint8_t ret_place[RINGKEY_PLACE_SIZE]);

#endif
