/*
 * ring_services - what makes the nodes of a ring one archive: the parts of decision 0011, made, started and
 * ended in their order.
 *
 *      transport ── news of the ring ─> holders       which node holds what
 *                ── charter ──────────> decrees       jobs and rules of the ring
 *                                       peer_rpc      questions between nodes, on a thread of its own
 *      crawl ── whose is this URL? ───> routing       asks the holders of its position
 *            ── may I ask this host? ─> host_leases   asks the host's home
 *            ── links for others ─────> link_sender   round the ring
 *      store ── what is new ──────────> copies        on all holders
 *      readers ───────────────────────> ring_reader   what other nodes have, checked by captures
 *              ───────────────────────> crowd_reader  what the crowd has: crowd_driver, offers (decision
 * 0012) group_driver  groups, which need no ring mirror_driver collections, in groups or rings (decision
 * 0013)
 *
 * It begins when there is a charter and an address, which may be long after the node has started: a node that
 * joins learns both from others. Until then, and in no ring at all, it does nothing; but for the groups,
 * which begin as soon as there is one.
 */
#ifndef MNEMON_NODE_RING_SERVICES_H
#define MNEMON_NODE_RING_SERVICES_H

#include "base/clock.h"
#include "base/json.h"
#include "node/ring/decrees.h"
#include "node/ring/holders.h"
#include "node/rpc/peer_rpc.h"
#include "node/settings.h"
#include "replay/archive/archive.h"
#include "store/instance/instance.h"

struct crowd_parts;
struct dialects;
struct group_driver;
struct mirror_limit;
struct transport;
struct ring_services;

/* NULL stands for the default in parentheses. */
struct ring_services_config {
    const char *directory; /* of the data; outlives it */
    struct instance *instance;
    const struct settings *settings;  /* likewise: those of ring, crowd, group and mirror */
    const struct mirror_limit *limit; /* (none) of collections; outlives it, as the next */
    const struct mirror_limit *upload_limit;
    struct dialects *dialects; /* (none) what other nodes speak; outlives it */
    const struct clock *clock;
    void (*note)(void *context, const char *sentence); /* any thread */
    void (*jobs_changed)(void *context);               /* those on the disk; any thread */
    void *context;
};

struct ring_services *ring_services_new(const struct ring_services_config *config); /* NULL: out of memory */

/* Before the ring starts: they become its tenants. */
enum err ring_services_set_transport(struct ring_services *ring_services,
                                     struct transport *transport) MUST_CHECK;

/* When the ring has its socket: what the crawl needs of it. ERR_BUSY: the port is taken. */
enum err ring_services_prepare(struct ring_services *ring_services, struct err_detail *detail) MUST_CHECK;

/* Then, for the crawl; and when it runs. */
struct crawl_loop;
struct crawl_loop_config;
void ring_services_share_crawl(struct ring_services *ring_services, struct crawl_loop_config *config);
void ring_services_set_crawl_loop(struct ring_services *ring_services, struct crawl_loop *crawl_loop);

/* What may not be shown is not handed on to others either. It is closed after ring_services_stop(). */
struct access;
void ring_services_set_access(struct ring_services *ring_services, struct access *access);

/* Full text; NULL: it is switched off. Both outlive ring_services_stop(), and the search is stopped before
 * ring_services_free(). */
struct search;
struct archive;
void ring_services_set_search(struct ring_services *ring_services, struct search *search,
                              struct archive *archive);

/* Every second or so, one thread that may wait for the disk. */
void ring_services_beat(struct ring_services *ring_services);

/* Before the ring stops. */
void ring_services_stop(struct ring_services *ring_services);

/* After the ring is freed, and all sessions of the instance that readers had. */
void ring_services_free(struct ring_services *ring_services);

/*
 * For the node, which hands them to other modules: what the crowd will be, and the groups, which are there
 * even if the node is in none. They last until ring_services_free().
 */
const struct crowd_parts *ring_services_crowd(const struct ring_services *ring_services);
struct group_driver *ring_services_group_driver(const struct ring_services *ring_services);

/* ---- any thread ---- */

/* context: the struct ring_services. May wait: append the origin of the pages of a node that is responsible
 * for a SURT. False: this node is responsible itself, or none of the others has a public URL. */
bool ring_services_lead(void *context, struct bytes surt, struct buf *out);

/* Likewise: how many captures the ring has, about (0: not known), if other nodes may have some that are not
 * here. False: what there is is here. */
bool ring_services_count(void *context, uint64_t *ret_count);

/* Likewise: as in struct replay. */
struct search_job;
struct search_ring_report;
enum err ring_services_search(void *context, struct search_job *job,
                              struct search_ring_report *report) MUST_CHECK;

/* Append what /api/v1/ring/together, /api/v1/crowd and /api/v1/mirrors say (docs/api.md). */
void ring_services_put(struct ring_services *ring_services, const struct ring_view *view, struct json *json);
void ring_services_put_crowd(struct ring_services *ring_services, struct buf *out);
void ring_services_put_mirrors(struct ring_services *ring_services, struct buf *out);

/* Fill what all nodes together say of jobs that the ring shares, in the arena. */
struct job_view;
void ring_services_view_jobs(struct ring_services *ring_services, struct arena *arena, struct job_view *jobs,
                             size_t count);

/* Append the numbers of crowd, groups and collections for /metrics. */
void ring_services_put_metrics(struct ring_services *ring_services, struct buf *out);

/* The part of it that pages show, in the arena. */
void ring_services_view(struct ring_services *ring_services, struct arena *arena, struct ring_view *view);

/* Write the section on the crowd, or on collections, of the dashboard; nothing if there is none. */
struct sheet;
void ring_services_show_crowd(struct ring_services *ring_services, struct arena *arena, struct sheet *sheet);
void ring_services_show_mirrors(struct ring_services *ring_services, struct sheet *sheet);

/*
 * For archive_config: whose signature counts, and which captures that other nodes list the ring takes. Any
 * thread.
 */
enum archive_membership ring_services_judge(void *context, uint64_t voucher, int64_t time_us);
bool ring_services_admits_listed(void *context, const struct capture *capture);

#endif
