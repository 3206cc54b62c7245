/*
 * peers_file - lists of peers as bytes: the other members that a node comes back by (DIR/ring/peers,
 * DIR/crowd-contacts). Layout: docs/formats/charter.md.
 */
#ifndef MNEMON_NODE_TRANSPORT_PEERS_FILE_H
#define MNEMON_NODE_TRANSPORT_PEERS_FILE_H

#include "base/peer.h"
#include "base/wire.h"

enum { PEERS_FILE_MARK_SIZE = 4, PEERS_FILE_COUNT_MAX = 100 };
enum { PEERS_FILE_SIZE_MAX = 16 + PEERS_FILE_COUNT_MAX * (16 + 2 + PEER_KEY_SIZE) };

/* Into memory of PEERS_FILE_SIZE_MAX. mark: of the list, PEERS_FILE_MARK_SIZE letters. */
struct bytes peers_file_write(const char *mark, const struct peer *peers, size_t count, void *memory);

/* How many there are; 0: it is no such list, or damaged, and contacts have to be found otherwise. */
size_t peers_file_read(const char *mark, struct bytes bytes, struct peer *out, size_t peers_max);

#endif
