/*
 * step - the contract of the pure protocols: events in, actions out.
 *
 * A protocol is a plain struct with one function, x_step(x, event, out). It reads the event, changes *x and
 * appends to *out; it does no I/O, reads no clock, allocates nothing. Whoever drives it (node/ with real
 * sockets, sim/ with a virtual world) drains the outbox after each step and brings the results back as
 * events. So the same object file runs in both.
 *
 *      driver                                protocol
 *        EVENT_RESTORED (once per saved slot)  -->
 *        EVENT_START ------------------------>        a life begins; time is event->now_us
 *        EVENT_MESSAGE, EVENT_WAKE, … ------->        x_step()
 *              <------ ACTION_SEND, ACTION_SAVE, ACTION_NOTICE, wake_at_us
 *        EVENT_SAVED ------------------------>        what ACTION_SAVE named is durable now
 *
 * "Durable before acknowledged" reads here: a message that promises something leaves in answer to the
 * EVENT_SAVED, not beside the ACTION_SAVE.
 */
#ifndef MNEMON_BASE_STEP_H
#define MNEMON_BASE_STEP_H

#include "base/bytes.h"
#include "base/peer.h"

enum event_kind {
    EVENT_RESTORED, /* slot .code held .bytes when the last life ended; comes before EVENT_START */
    EVENT_START,    /* a life begins */
    EVENT_WAKE,     /* the time that was asked for in wake_at_us has come */
    EVENT_MESSAGE,  /* .bytes came from .from; hostile until parsed */
    EVENT_SAVED,    /* the save of slot .code with .number is durable, and all before it */
    EVENT_COMMAND,  /* the owner wants something; .code and .bytes mean what the protocol says */
};

struct event {
    enum event_kind kind;
    uint32_t code;
    uint64_t number;
    uint64_t now_us; /* monotonic; the only time a protocol knows */
    struct address from;
    uint8_t from_key[PEER_KEY_SIZE]; /* whose the message really is; zeros if the driver has no keys */
    struct bytes bytes;              /* borrowed for the call */
};

/* Does the event come from this peer: from its address and, if both are known, with its key? */
bool event_is_from(const struct event *event, const struct peer *peer);

/* The peer that sent the message. */
struct peer event_sender(const struct event *event);

enum action_kind {
    ACTION_SEND,   /* .bytes to .to, as one datagram, may be lost */
    ACTION_SAVE,   /* slot .code shall hold .bytes after a crash; EVENT_SAVED with .number follows */
    ACTION_NOTICE, /* for the owner: .code and .bytes mean what the protocol says */
};

struct action {
    enum action_kind kind;
    uint32_t code;
    uint64_t number;
    struct address to;
    uint8_t to_key[PEER_KEY_SIZE]; /* only its owner can read the message; zeros: anybody at that address */
    struct bytes bytes;            /* in the outbox's memory */
};

/* One datagram on every path: 1,280, the least MTU of IPv6, less its header and UDP's (48) and encryption
 * (60). */
enum { STEP_MESSAGE_SIZE_MAX = 1172 };
static const uint64_t STEP_NEVER_US = UINT64_MAX;

struct outbox {
    struct action *actions;
    size_t actions_count;
    size_t actions_max;
    uint8_t *memory; /* the bytes of the actions, one after the other */
    size_t memory_used;
    size_t memory_size;
    uint64_t wake_at_us; /* absolute; STEP_NEVER_US for none. Each step states it anew. */
};

/*
 * The memory is the driver's. A protocol states how much one step can append; a step that appends more is
 * a programmer error and fails an assertion.
 */
void outbox_init(struct outbox *out, struct action *actions, size_t actions_max, void *memory,
                 size_t memory_size);

/* Before each step: empty, and asleep for ever. */
void outbox_clear(struct outbox *out);

/* The bytes are copied. */
void outbox_send(struct outbox *out, const struct address *to, struct bytes message);
void outbox_send_peer(struct outbox *out, const struct peer *to, struct bytes message);
void outbox_save(struct outbox *out, uint32_t slot, uint64_t number, struct bytes bytes);
void outbox_notice(struct outbox *out, uint32_t code, struct bytes bytes);

/* Wake at the given time, or earlier if an earlier one was asked for in this step. */
void outbox_wake_at(struct outbox *out, uint64_t at_us);

#endif
