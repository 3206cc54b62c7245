/*
 * member - how a member of a group is named on the wire. Layouts: docs/protocol/group.md.
 *
 * Addresses that nobody can be at, and keys of zeros, fail the reader.
 */
#ifndef MNEMON_PROTOCOL_GROUP_MEMBER_H
#define MNEMON_PROTOCOL_GROUP_MEMBER_H

#include "base/peer.h"
#include "base/wire.h"

enum {
    GROUP_MEMBERS_MAX = 256, /* estimates grow as the square: larger groups are split, with corner replicas */
    MEMBER_ADDRESS_SIZE_MAX = 19, /* IPv6 */
    MEMBER_SIZE_MAX = MEMBER_ADDRESS_SIZE_MAX + PEER_KEY_SIZE,
};

void member_write_address(struct wire_writer *writer, const struct address *address);
void member_read_address(struct wire_reader *reader, struct address *ret_address);

/* Can somebody be there, and has he a key? What is written must be so. */
bool member_is_possible(const struct peer *member);

/* Address, then key. */
void member_write(struct wire_writer *writer, const struct peer *member);
void member_read(struct wire_reader *reader, struct peer *ret_member);

#endif
