/*
 * grouping_code - whose is the group of that name? The messages of grouping_ask.c as bytes.
 *
 *      ASK     0:u8  1:u8  name:string
 *      TELL    0:u8  2:u8  name:string  founder:32  admission:u8  generator:u8  k:u8
 *      NONE    0:u8  3:u8  name:string
 *
 * All go as DATAGRAM_GROUP, where the first byte of a message of a group is its version, which is not 0.
 * docs/protocol/group.md.
 */
#ifndef MNEMON_NODE_GROUP_GROUPING_CODE_H
#define MNEMON_NODE_GROUP_GROUPING_CODE_H

#include "node/group/group_files.h"

enum { GROUPING_CODE_SIZE_MAX = 3 + 1 + GROUP_FILES_NAME_SIZE_MAX + PEER_KEY_SIZE + 3 };

enum grouping_code_kind { GROUPING_ASK = 1, GROUPING_TELL, GROUPING_NONE };

struct grouping_message {
    enum grouping_code_kind kind;
    struct bytes name;        /* valid */
    struct group_rules rules; /* of GROUPING_TELL; somebody is the founder */
};

struct bytes grouping_code_write(const struct grouping_message *message, uint8_t out[GROUPING_CODE_SIZE_MAX]);

/* The name borrows the input. */
enum err grouping_code_read(struct bytes input, struct grouping_message *ret_message) MUST_CHECK;

#endif
