/*
 * place - where a URL lies on the ring, and the ring's key of a capture.
 *
 * The place is the start of the SHA-256 of the SURT, or of its host part up to and with the ")", by the
 * charter. A SURT without a host (urn:, dns:) counts as a whole.
 */
#ifndef MNEMON_STORE_PLACE_H
#define MNEMON_STORE_PLACE_H

#include "base/ringkey.h"
#include "store/index.h"

/* As in the charter (ring/charter.h), in the same order. */
enum place_mapping { PLACE_BY_URL, PLACE_BY_HOST };

void place_of_surt(struct sha256 *sha256, struct bytes surt, enum place_mapping mapping,
                   uint8_t out[RINGKEY_PLACE_SIZE]);

/* Of the capture, SURT, time and signature count. */
struct ringkey place_capture_key(struct sha256 *sha256, const struct capture *capture,
                                 enum place_mapping mapping);

#endif
