/*
 * path_rule - which names may be in a collection, and in which order. Pure.
 *
 * A path is components with "/" between them, from the root of the collection. Its bytes are kept as they
 * are: names of old file systems are often not UTF-8, and a mirror that changes or refuses them is none.
 * Forbidden is what could lead out of the collection or means something else elsewhere: an empty path or
 * component, "." and "..", a "/" in front, a zero byte, and what is longer than file systems take.
 *
 * The order is that of a walk which finishes a directory before it goes on: "/" sorts before all other bytes,
 * so "a", "a/b", "a.txt". Each entry is then checked with the one before it alone: its directory must have
 * been listed, as a directory. So neither a file nor a link is ever on the way to another entry.
 *
 * A symbolic link leads to a place inside. ".." may only stand at the start of its target: behind a name,
 * which may be a link itself, it would not lead where it seems to. The directory of a link is never reached
 * through a link, so counting is enough.
 *
 * Faults are static texts for people; NULL: there is none.
 */
#ifndef MNEMON_PROTOCOL_MIRROR_PATH_RULE_H
#define MNEMON_PROTOCOL_MIRROR_PATH_RULE_H

#include "base/bytes.h"

enum {
    PATH_RULE_SIZE_MAX = 4096,
    PATH_RULE_COMPONENT_SIZE_MAX = 255,
    PATH_RULE_DEPTH_MAX =
        256, /* components: a program that walks the tree may hold one open directory for each */
};

/* May it be in a collection? */
const char *path_rule_fault(struct bytes path);

/* May the link at this path, which is sound, have this target? */
const char *path_rule_link_fault(struct bytes path, struct bytes target);

/* <0, 0, >0 */
int path_rule_compare(struct bytes a, struct bytes b);

/* May this sound path come right after that one? An empty previous: it is the first. */
const char *path_rule_order_fault(struct bytes previous, bool previous_is_directory, struct bytes path);

#endif
