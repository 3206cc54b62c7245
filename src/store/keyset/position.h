/*
 * position - where a URL lies on the ring, and the ring's key of a capture.
 *
 * The place is the start of the SHA-256 of a part of the SURT, by the charter:
 *
 *      url        org,example)/news/2021?a=1       all of it: what a host has is everywhere
 *      host       org,example)                     one node has all of a host, however large
 *      section    org,example)/news                and here, what is below one directory of it
 *
 * A SURT without a host (urn:, dns:) counts as a whole.
 */
#ifndef MNEMON_STORE_KEYSET_POSITION_H
#define MNEMON_STORE_KEYSET_POSITION_H

#include "base/ringkey.h"
#include "store/index/index.h"

/* As in the charter (protocol/ring/charter.h), in the same order. */
enum position_mapping { POSITION_BY_URL, POSITION_BY_HOST, POSITION_BY_SECTION };

void position_of_surt(struct sha256 *sha256, struct bytes surt, enum position_mapping mapping,
                      uint8_t out[RINGKEY_POSITION_SIZE]);

/* Do all SURTs that begin so lie at one place? */
bool position_of_prefix(struct sha256 *sha256, struct bytes prefix, enum position_mapping mapping,
                        uint8_t ret_position[RINGKEY_POSITION_SIZE]);

/* Only SURT, time and digest of the capture matter. */
struct ringkey position_capture_key(struct sha256 *sha256, const struct capture *capture,
                                    enum position_mapping mapping);

#endif
