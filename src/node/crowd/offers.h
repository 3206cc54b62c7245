/*
 * offers - what this node hands on: captures that its user asked for, kept for a while, given to nodes that
 * ask.
 *
 * Only what a person at this node wanted is here: read from the ring, located in the crowd, or fetched by the
 * proxy. Captures are checked before they are put here. Bounded by size and count; the least recently used go
 * first. It is not the archive: nothing here is promised to last, and none of it is in the store. One file of
 * DIRECTORY/crowd/ holds one capture (description and payload, offers_file.h), so that a restarted node still
 * offers it; a file that is damaged is dropped when it is read.
 *
 *      PEER_RPC_HAND   question as in captures_code.h; answer too, or: this capture was given often enough
 *                  lately, and the answer names other nodes that took it
 *
 * The last is what keeps a single holder from sending to everybody: gives_max different nodes are served with
 * one capture (one that took a part counts as that part, one that is taking as a whole), then one more as
 * often as gives_us / gives_max passes; a node that comes meanwhile is sent to these. So a copy spreads like
 * a tree however many ask at once.
 */
#ifndef MNEMON_NODE_CROWD_OFFERS_H
#define MNEMON_NODE_CROWD_OFFERS_H

#include "base/clock.h"
#include "node/captures/captures.h"
#include "protocol/crowd/wish.h"

struct offers;

/* A capture that others ask for. */
struct offers_wanted {
    struct bytes url;
    struct bytes title;
    int64_t time_us;
    uint64_t size;
    uint64_t asked_count;
    uint64_t given_count;
};

/* What this node hands on. */
struct offers_stat {
    uint32_t count;
    uint64_t size;
    uint64_t given_count; /* captures given whole */
    uint64_t given_size;
    uint64_t referred_count;
};

/* 0 or NULL stands for the default in parentheses. */
struct offers_config {
    const char *directory;     /* of the data */
    struct peer_rpc *peer_rpc; /* NULL: nothing is given */
    uint64_t size_max;         /* (256 MiB) */
    uint32_t count_max;        /* (4,096) captures */
    uint64_t object_size_max;  /* (64 MiB) */
    uint8_t gives_max;         /* (4) */
    uint64_t gives_us;         /* (4 s) a give counts less and less in this time */
    /* May it not be shown here (access rules)? Then it is not handed on either. Any thread that may wait;
     * NULL: all may. */
    bool (*is_hidden)(void *context, struct bytes surt, int64_t time_us);
    void *context;
    bool is_closed; /* gives nothing: participation "query-only" and "mute" */
    const struct clock *clock;
};

/* What was kept is read from the disk by offers_load(), not here. ERR_SYSTEM: the directory. */
enum err offers_new(const struct offers_config *config, struct offers **ret_offers,
                    struct err_detail *detail) MUST_CHECK;
void offers_free(struct offers *offers);

/* Once, by a thread that may wait: what lies in the directory; what is no capture is removed. */
void offers_load(struct offers *offers);

/* ---- any thread; these may wait for the disk ---- */

/*
 * A capture that was checked, with its payload. surt: of its URL, or empty. title: UTF-8, or empty: then it
 * is looked for if the capture is an HTML page. What does not fit is not kept.
 */
void offers_put(struct offers *offers, const struct ringkey *key, const struct captured *captured,
                struct bytes surt, struct bytes title);

/* The capture by its key, as it was put; ERR_NOT_FOUND. Into the session, as captures_fetch() does. */
enum err offers_get(struct offers *offers, struct captures_session *session, const struct ringkey *key,
                    struct captured *ret_captured, struct err_detail *detail) MUST_CHECK;

/* Look through some of the captures, others each time: those that are hidden by now are removed. */
void offers_review(struct offers *offers);

/* ---- any thread; never waits for the disk ---- */

/* What of ours answers the wish, as crowd_driver_config.have says it. */
size_t offers_have(void *offers, struct bytes wish, uint8_t *memory);

/* The same for this node itself: also where nothing is given, and not counted as asked for. */
size_t offers_have_own(struct offers *offers, const struct wish *wish, struct ringkey out[WISH_FINDINGS_MAX]);

void offers_stat(struct offers *offers, struct offers_stat *ret_stat);

/* What others ask for most, the most wanted first, in the arena: how many. */
size_t offers_hot(struct offers *offers, size_t count_max, struct arena *arena,
                  struct offers_wanted **ret_hot);

#endif
