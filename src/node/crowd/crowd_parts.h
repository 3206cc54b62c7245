/*
 * crowd_parts - what others use of the crowd: what this node offers to it, and what can be read from it.
 *
 * Handed to the proxy and to lookups when they are made, and filled in once, by whoever begins the crowd,
 * when all of it is there: after the node is in a ring, which may be long after it has started. NULL before
 * that, and if the crowd is switched off. Any thread.
 */
#ifndef MNEMON_NODE_CROWD_CROWD_PARTS_H
#define MNEMON_NODE_CROWD_CROWD_PARTS_H

struct crowd_reader;
struct offers;

struct crowd_parts {
    struct offers *_Atomic offers;
    struct crowd_reader *_Atomic reader;
};

#endif
