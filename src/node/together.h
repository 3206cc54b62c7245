/*
 * together - what makes the nodes of a ring one archive: the parts of decision 0011, made, started and ended
 * in their order.
 *
 *      ringing ── news of the ring ──> holders      who holds what
 *              ── charter ──────────>  decrees      jobs and rules of the ring
 *                                      bulk         questions between nodes, on a thread of its own
 *      crawl ── whose is this URL? ──> routing      of the holders of its place
 *            ── may I ask this host? > lending      of its home
 *            ── links for others ───>  walking      round the ring
 *      store ── what is new ────────>  keeping      copies on all holders
 *      readers ─────────────────────>  ring_reader   what the others have, checked by captures
 *              ─────────────────────>  obtaining    what the crowd has: crowding, offers (decision 0012)
 *                                      grouping     groups, which need no ring
 *                                      mirroring    collections, in groups or rings (decision 0013)
 *
 * It begins when there is a charter and an address, which may be long after the node has started: a node that
 * joins learns both from others. Until then, and in no ring at all, it does nothing; but for the groups,
 * which begin as soon as there is one.
 */
#ifndef MNEMON_NODE_TOGETHER_H
#define MNEMON_NODE_TOGETHER_H

#include "base/buf.h"
#include "base/clock.h"
#include "node/ring/decrees.h"
#include "node/ring/holders.h"
#include "node/rpc/peer_rpc.h"
#include "store/instance/instance.h"

struct crowd_driver;
struct group_driver;
struct mirror_limit;
struct crowd_reader;
struct offers;
struct transport;
struct together;

/* Of keeping, node/copies/copies.h. 0 stands for the default there. */
struct together_copies {
    bool keeps_everything;
    uint64_t grace_us;
    uint64_t compare_us;
    uint64_t scrub_us;
};

/* Of the crowd. 0 stands for the default in parentheses. */
struct together_crowd {
    bool is_off;
    uint8_t overlay;   /* (CROWD_CYCLON) enum crowd_kind */
    uint8_t part;      /* (CROWD_FULL) enum crowd_part */
    uint8_t view_size; /* (node/crowd/crowd_driver.h), as the next */
    uint8_t fanout;
    bool offers_kept;    /* also what the store keeps for the ring */
    uint64_t shuffle_us; /* (10 s) */
    uint64_t cache_size; /* (node/crowd/offers.h) */
};

/* Of the groups, likewise: node/group/group_driver.h. */
struct together_groups {
    uint64_t period_us;
    uint64_t silence_us;
    uint32_t probe_size;
};

/* Of the collections, likewise: node/mirror/mirror_driver.h. */
struct together_mirrors {
    uint64_t gather_us;
    uint64_t ask_us;
    const struct mirror_limit *limit; /* (none) outlives it, as the next */
    const struct mirror_limit *upload_limit;
};

/* 0 or NULL stands for the default in parentheses. Texts outlive it. */
struct together_config {
    const char *directory; /* of the data */
    struct instance *instance;
    uint64_t upload_rate;   /* (any) bytes a second */
    uint64_t download_rate; /* (any) */
    uint32_t reads_rate;    /* (any) node/rpc/peer_rpc.h */
    struct together_copies copies;
    const char *public_origin; /* (none) where browsers find this node: node/reading/public_urls.h */
    struct together_crowd crowd;
    struct together_groups groups;
    struct together_mirrors mirrors;
    const struct clock *clock;
    void (*note)(void *context, const char *sentence); /* any thread */
    void (*jobs_changed)(void *context);               /* those on the disk; any thread */
    void *context;
};

struct together *together_new(const struct together_config *config); /* NULL: out of memory */

/* Its callbacks for transport_config, with the struct itself as `shared`. */
struct transport_config;
void together_listen(struct together *together, struct transport_config *config);

/* Then, before the ring starts. */
enum err together_set_transport(struct together *together, struct transport *transport) MUST_CHECK;

/* When the ring has its socket: what the crawl needs of it. ERR_BUSY where the port is taken. */
enum err together_prepare(struct together *together, struct err_detail *detail) MUST_CHECK;

/* Then, for the crawl; and when it runs. */
struct crawl_loop;
struct crawl_loop_config;
void together_share_crawl(struct together *together, struct crawl_loop_config *config);
void together_set_crawl_loop(struct together *together, struct crawl_loop *crawl_loop);

/* What may not be shown is not handed on to others either. It is closed after together_stop(). */
struct access;
void together_set_access(struct together *together, struct access *access);

/* Every second or so, one thread that may wait for the disk. */
void together_beat(struct together *together);

/* Before the ring stops. */
void together_stop(struct together *together);

/* After the ring is freed, and all sessions of the instance that readers had. */
void together_free(struct together *together);

/* Any thread: append what /api/v1/ring/together says (docs/api.md). */
void together_put(struct together *together, struct buf *out);

/* Any thread that may wait: append the origin of the pages of a node that is responsible for a SURT. False:
 * this node is it, or nobody says where he is. context: the struct together. */
bool together_lead(void *context, struct bytes surt, struct buf *out);

/* ---- the crowd. Any thread; NULL in no ring, before there is a charter, and where it is switched off ----
 */

struct crowd_driver *together_crowd_driver(struct together *together);
struct offers *together_offers(struct together *together);
struct crowd_reader *together_crowd_reader(struct together *together);

/* Append what /api/v1/crowd says (docs/api.md). */
void together_put_crowd(struct together *together, struct buf *out);

/* ---- the groups. Any thread; there, whether the node is in any or not ---- */

struct group_driver *together_group_driver(const struct together *together);

/* ---- the collections. Any thread: append what /api/v1/mirrors says (docs/api.md) ---- */

void together_put_mirrors(struct together *together, struct buf *out);

#endif
