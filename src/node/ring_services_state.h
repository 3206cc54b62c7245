/*
 * ring_services_state - one machine in several files: ring_services.c makes, starts and ends all services and
 * wires copies, readers and the crawl; ring_services_links.c wires the links between crawls,
 * ring_services_decrees.c the decrees, ring_services_crowd.c the crowd, ring_services_groups.c what needs no
 * ring. Private to them.
 */
#ifndef MNEMON_NODE_RING_SERVICES_STATE_H
#define MNEMON_NODE_RING_SERVICES_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "node/captures/captures.h"
#include "node/copies/copies.h"
#include "node/crawl/crawl_loop.h"
#include "node/crowd/crowd_parts.h"
#include "node/crowd/crowd_reader.h"
#include "node/crowd/relay.h"
#include "node/crowd/relayed.h"
#include "node/crowd/stored_offers.h"
#include "node/group/group_driver.h"
#include "node/leases/host_leases.h"
#include "node/links/link_sender.h"
#include "node/mirror/mirror_driver.h"
#include "node/reading/public_urls.h"
#include "node/reading/ring_reader.h"
#include "node/ring/acts.h"
#include "node/ring/deletions.h"
#include "node/ring/members.h"
#include "node/ring/reports.h"
#include "node/ring/routing.h"
#include "node/ring/sites.h"
#include "node/ring_services.h"
#include "node/search/ring_search_service.h"
#include "node/transport/transport.h"

struct mirrored_archives;

/* A job that the ring shares, as links on their way name it. */
struct ring_services_job {
    char name[LINK_SENDER_JOB_NAME_SIZE_MAX];
    uint8_t id[LINKS_CODE_JOB_SIZE];
};

struct ring_services {
    struct ring_services_config config;
    struct transport *transport;
    struct crawl_loop *crawl_loop;
    struct access *_Atomic access; /* NULL: not opened yet */
    struct holders *holders;
    struct sites *sites; /* NULL: none */
    struct decrees *decrees;
    struct acts *acts;
    struct deletions *deletions;
    struct members *members;
    _Atomic bool has_heard; /* a node has said which decrees there are */
    _Atomic bool may_offer; /* what is deleted is known: copies may be offered */
    struct peer self;
    bool is_light;          /* it uses the ring and is no part of it (decision 0026) */
    uint64_t updated_at_us; /* the ring's loop: of the holders */

    /* From the start in a ring; else from when there is a group, or a collection that needs none. */
    struct peer_rpc *_Atomic peer_rpc; /* NULL: in none */
    bool is_peer_rpc_started;          /* the starting thread's, then the beat's, as the next three */
    bool is_grouped;                   /* the groups have begun */
    bool is_group_told;                /* that they cannot */
    bool is_mirror_told;               /* that collections cannot */
    struct group_driver *group_driver;
    struct mirror_driver *_Atomic mirror_driver;         /* NULL: peer_rpc does not run yet */
    struct mirrored_archives *_Atomic mirrored_archives; /* NULL: before the first beat */
    bool is_mirrored_told;                               /* that archives of others cannot be served */

    /* From the start, in a ring. */
    bool has_ring;
    struct routing *routing;
    struct route route;
    struct host_leases *host_leases;
    struct backend *guest;       /* the instance's */
    bool expects_others;         /* it was in a ring with others before it started */
    _Atomic bool has_met_others; /* since it started */
    struct public_urls *public_urls;
    struct search *search;   /* NULL: full text is switched off */
    struct archive *archive; /* whose rules count for it */

    /* From when there is a charter. */
    _Atomic bool is_begun; /* set by the beat's thread when all of it is there */
    struct copies *copies;
    struct captures *captures;
    struct ring_reader_service *service;
    struct link_sender *link_sender; /* NULL: a light member, which crawls nothing for others */
    struct ring_search *ring_search; /* NULL: as search, as the next */
    struct ring_search_service *ring_search_service;
    struct reports *reports; /* NULL: a light member */
    uint64_t begun_at_us;
    struct offers *offers; /* NULL: without the crowd, as the next two */
    struct crowd_driver *crowd_driver;
    struct crowd_reader *crowd_reader;
    struct crowd_parts crowd;            /* of them, for others: from when is_begun */
    struct stored_offers *stored_offers; /* NULL: only what was read is offered */
    struct relay *relay;                 /* NULL: of no light member */
    struct relayed *relayed;             /* NULL: this is no light member */

    /* The beat's. */
    bool is_told;             /* that it cannot begin */
    unsigned waited_beats;    /* for decrees, before anything is offered */
    uint64_t heard_at_us;     /* when DIR/ring/heard was written last; 0: not yet */
    uint64_t generation;      /* of the holders, when the crawl last looked through its URLs */
    unsigned settling_count;  /* beats since the ring last changed */
    uint64_t seen_generation; /* of the last beat */
    uint64_t verdicts;        /* of members.h, at the last beat */

    pthread_mutex_t lock;
    bool has_charter;                                    /* lock */
    struct charter charter;                              /* lock */
    uint8_t ring_id[RING_CHARTER_SIZE];                  /* lock */
    struct ring_services_job jobs[LINK_SENDER_JOBS_MAX]; /* lock */
    size_t jobs_count;                                   /* lock */
};

/* ring_services_search.c: full text over the ring. Before peer_rpc starts; then as their names say. */
enum err ring_services_begin_search(struct ring_services *ring_services) MUST_CHECK;
void ring_services_beat_search(struct ring_services *ring_services);
void ring_services_stop_search(struct ring_services *ring_services);
void ring_services_free_search(struct ring_services *ring_services);

/* In the files of their names: they become tenants of the transport. */
void ring_services_add_links(struct ring_services *ring_services);
void ring_services_add_crowd(struct ring_services *ring_services);
void ring_services_add_groups(struct ring_services *ring_services);

/* ring_services_crowd.c. The beat's thread, before peer_rpc starts; after a failure the node is without a
 * crowd.
 */
void ring_services_make_crowd(struct ring_services *ring_services, uint8_t mapping);
void ring_services_share_crowd(struct ring_services *ring_services); /* if it has begun */
void ring_services_beat_crowd(struct ring_services *ring_services);
void ring_services_put_crowd_metrics(struct ring_services *ring_services, struct buf *out); /* any thread */
void ring_services_stop_crowd(struct ring_services *ring_services);  /* before peer_rpc */
void ring_services_stop_relays(struct ring_services *ring_services); /* after it */
enum err ring_services_start_relayed(struct ring_services *ring_services,
                                     struct err_detail *detail) MUST_CHECK; /* when peer_rpc runs */
void ring_services_view_relays(struct ring_services *ring_services, struct arena *arena,
                               struct ring_view *view);
void ring_services_free_crowd(struct ring_services *ring_services);

/* Any thread; NULL in no ring, before there is a charter, and if the crowd is switched off. */
struct crowd_driver *ring_services_crowd_driver(struct ring_services *ring_services);

/* The ring's loop; more than once does no harm. context: the struct ring_services. */
void ring_services_begin_crowd(void *context);

/*
 * ring_services_groups.c. As ring_services_prepare(): the groups, if there is one; the collections, if one
 * comes from or is for a node that is in no group and no ring with us. Then the beats: they look at the
 * files, and begin what can begin. Archives of others begin with the first beat and stop after the
 * collections, which ask for them.
 */
enum err ring_services_prepare_groups(struct ring_services *ring_services,
                                      struct err_detail *detail) MUST_CHECK;
enum err ring_services_prepare_mirrors(struct ring_services *ring_services,
                                       struct err_detail *detail) MUST_CHECK;
void ring_services_beat_groups(struct ring_services *ring_services);
void ring_services_beat_mirrors(struct ring_services *ring_services);
void ring_services_beat_mirrored(struct ring_services *ring_services);
void ring_services_stop_mirrored(struct ring_services *ring_services);

/* Any thread: node/mirror/mirror_driver.h. */
bool ring_services_hears(struct ring_services *ring_services, const struct peer *peer);

/* ring_services_decrees.c: they travel, and are confirmed. By the beat, when the ring has begun. */
void ring_services_beat_decrees(struct ring_services *ring_services);

/* Was it away for long, so that much may have been deleted? Before the copies start; says so. */
void ring_services_look_at_absence(struct ring_services *ring_services);

/* ring_services_reports.c: what all nodes say of themselves. Before peer_rpc starts; by the beat, when the
 * ring has begun; any thread after that. */
enum err ring_services_make_reports(struct ring_services *ring_services) MUST_CHECK;
void ring_services_beat_reports(struct ring_services *ring_services);
void ring_services_put_reports(const struct ring_view *view, struct json *json);
void ring_services_view_reports(struct ring_services *ring_services, struct arena *arena,
                                struct ring_view *view);

/* Is it a job that the ring shares? Any thread. */
bool ring_services_find_job(struct ring_services *ring_services, const char *name,
                            uint8_t ret_id[LINKS_CODE_JOB_SIZE]);

/* By the beat. was_heard: before decrees were obeyed last. */
void ring_services_beat_absence(struct ring_services *ring_services, bool was_heard);

/* ring_services.c. Any thread; context: the struct ring_services. */
void ring_services_note(void *context, const char *sentence);
void ring_services_blame(void *context, const struct peer *peer, const char *sentence);
enum err ring_services_find_surt(void *context, const struct ringkey *key, struct buf *out);

/* The connections between nodes are made, or started, unless they were. */
enum err ring_services_make_peer_rpc(struct ring_services *ring_services,
                                     struct err_detail *detail) MUST_CHECK;
enum err ring_services_start_peer_rpc(struct ring_services *ring_services,
                                      struct err_detail *detail) MUST_CHECK;

/* ring_services_links.c: what link_sender asks for; context: the struct ring_services. */
extern const struct link_sender_table ring_services_links;

/* The jobs that are shared, as the disk has them now; links of new ones are sent. By the beat. */
void ring_services_look_at_jobs(struct ring_services *ring_services);

/* The route's: there are outgoing links. */
void ring_services_on_outgoing(void *context, const char *job);

#endif
