/*
 * group_driver - the groups of a real node: runs one protocol/group/group.h for each of them on the ring's
 * loop.
 *
 *      EVENT_MESSAGE <── group_driver_receive() <── transport.h (DATAGRAM_GROUP, not by the gate of the ring)
 *      ACTION_SEND  ──> transport_send()
 *      ACTION_SAVE  ──> a task writes DIR/groups/NAME.state ──> EVENT_SAVED
 *      GROUP_PROBE  ──> PEER_RPC_PROBE: random bytes of a peer, timed ──> group_driver_learned()
 *      DIR/groups/NAME.group ──> group_driver_beat() ──> create, join, approve, refuse, leave
 *
 * A group needs no ring: the socket and the RPC thread are there if the node is in a ring or in a group.
 * Members of a group may ask PEER_RPC_PROBE and PEER_RPC_MIRROR only, members of the ring all but the first,
 * others nothing.
 *
 * People say what they want in NAME.group ("mnemon group …" writes it, group_files.h); the node looks every
 * second. How a probe is timed: group_driver.c. docs/protocol/group.md, docs/formats/group.md.
 */
#ifndef MNEMON_NODE_GROUP_GROUP_DRIVER_H
#define MNEMON_NODE_GROUP_GROUP_DRIVER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/peer.h"
#include "node/group/group_files.h"

struct peer_rpc;
struct datagram_message;
struct group_driver;
struct transport;

enum {
    GROUP_DRIVER_GROUPS_MAX = 16,
    GROUP_DRIVER_NEIGHBOURS_MAX = 64, /* of all groups together */
};

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct group_driver_config {
    const char *directory; /* of the data */
    uint64_t period_us;    /* (15 min) echoes; probes, reports and topologies in proportion */
    uint64_t silence_us;   /* (1 h) before a member is dropped; the master's in proportion */
    const struct clock *clock;
    void (*note)(void *context, const char *sentence); /* any thread */
    void *context;
};

struct group_driver *group_driver_new(const struct group_driver_config *config); /* NULL: out of memory */

/* Nothing is received or sent any more. Before peer RPC and the ring stop. */
void group_driver_stop(struct group_driver *driver);
void group_driver_free(struct group_driver *driver);

/* ---- one thread that may wait for the disk ---- */

/* Every second or so: looks at the files. True: there is a group, so a socket is needed. */
bool group_driver_beat(struct group_driver *driver);

/* The socket is there, and peer RPC will run. Once. */
enum err group_driver_begin(struct group_driver *driver, struct transport *transport,
                            struct peer_rpc *peer_rpc, const struct peer *self) MUST_CHECK;

/* ---- the ring's loop; the context is the group driver, as struct transport_tenant has it ---- */

void group_driver_receive(void *context, const struct datagram_message *message);
void group_driver_wake(void *context); /* the time of transport_wake_at() has come */

/* ---- any thread ---- */

/* A transfer with a peer: its bytes, and the time from the first to the last. Short ones say nothing and may
 * be told all the same. */
void group_driver_learned(struct group_driver *driver, const struct peer *peer, uint64_t size,
                          uint64_t duration_us);

/* Is the owner of this key in a group with us? The address does not matter: it may be that of a stream. */
bool group_driver_is_member(struct group_driver *driver, const struct peer *peer);

struct group_driver_neighbour {
    struct peer peer;
    char group[GROUP_FILES_NAME_SIZE_MAX]; /* the first one, if it is our neighbour in several */
    uint64_t bandwidth;                    /* bytes a second; 0: not measured */
    uint64_t delay_us;                     /* a round trip; 0: not measured */
};

/* Those of all groups together, each once: a node in several groups hands updates from one to the other. */
size_t group_driver_neighbours(struct group_driver *driver,
                               struct group_driver_neighbour out[GROUP_DRIVER_NEIGHBOURS_MAX]);

/* Append what /api/v1/groups says (docs/api.md): of one group, or of all if the name is empty.
 * ERR_NOT_FOUND: no such group. */
enum err group_driver_put(struct group_driver *driver, struct bytes name, struct buf *out,
                          struct err_detail *detail) MUST_CHECK;

/* Append the numbers of all groups for /metrics. */
void group_driver_put_metrics(struct group_driver *driver, struct buf *out);

/* Write the section on groups of the dashboard; nothing if there are none. */
struct sheet;
void group_driver_show_section(struct group_driver *driver, struct sheet *sheet);

/* Append the topology of a group as SVG, or as DOT. ERR_NOT_FOUND: no such group, or no topology yet. */
enum err group_driver_put_picture(struct group_driver *driver, struct bytes name, bool is_dot,
                                  struct buf *out, struct err_detail *detail) MUST_CHECK;

#endif
