/*
 * group_driver_code - whose group is it that has this name? These messages of group_driver_loop.c as bytes.
 *
 *      ASK     0:u8  1:u8  name:string
 *      TELL    0:u8  2:u8  name:string  founder:32  admission:u8  generator:u8  k:u8
 *      NONE    0:u8  3:u8  name:string
 *
 * All go as DATAGRAM_GROUP, where the first byte of a message of a group is its version, which is not 0.
 * docs/protocol/group.md.
 */
#ifndef MNEMON_NODE_GROUP_GROUP_DRIVER_CODE_H
#define MNEMON_NODE_GROUP_GROUP_DRIVER_CODE_H

#include "node/group/group_files.h"

enum { GROUP_DRIVER_CODE_SIZE_MAX = 3 + 1 + GROUP_FILES_NAME_SIZE_MAX + PEER_KEY_SIZE + 3 };

enum group_driver_code_kind { GROUP_DRIVER_ASK = 1, GROUP_DRIVER_TELL, GROUP_DRIVER_NONE };

struct group_driver_message {
    enum group_driver_code_kind kind;
    struct bytes name;        /* valid */
    struct group_rules rules; /* of GROUP_DRIVER_TELL; somebody is the founder */
};

struct bytes group_driver_code_write(const struct group_driver_message *message,
                                     uint8_t out[GROUP_DRIVER_CODE_SIZE_MAX]);

/* The name borrows the input. */
enum err group_driver_code_read(struct bytes input, struct group_driver_message *ret_message) MUST_CHECK;

#endif
