/*
 * sample - the numbers of a running node at one moment: crawl, store, HTTP, search, process.
 *
 * Counters only grow; rates come from two samples.
 */
#ifndef MNEMON_NODE_ADMIN_SAMPLE_H
#define MNEMON_NODE_ADMIN_SAMPLE_H

#include "crawl/engine/crawler.h"
#include "http/server/http_server.h"
#include "node/crawl/crawl_loop.h"
#include "parse/parsers.h"
#include "replay/admin/admin.h"
#include "replay/admin/node_status.h"
#include "replay/search/search.h"
#include "replay/wayback/rewritten.h"
#include "store/instance/connector.h"
#include "store/instance/instance.h"

struct sample {
    uint64_t at_us; /* monotonic */
    int64_t wall_us;

    struct crawler_stat crawl;
    uint64_t jobs_count; /* open */
    uint64_t urls_known_count;
    uint64_t urls_waiting_count;

    /* The sum over all volumes that could be asked; load and compactions: over the local ones. */
    struct volume_stat store;
    uint64_t index_memory_size;
    uint64_t compactions_count;
    uint64_t free_size;      /* on the fullest disk of a local volume */
    uint64_t quota_size;     /* of disk for the local volumes; 0: there is none */
    uint64_t used_size;      /* of it; without a quota: of their segments and indexes */
    uint64_t writable_count; /* volumes that take documents */
    struct volume_load load;
    uint64_t queue_percent; /* of the fullest queue */

    struct http_server_stat http;
    uint64_t delays[HTTP_DELAYS_COUNT + 1];
    uint64_t server_errors_count;
    uint64_t refused_count;

    bool has_search;
    struct search_stat search;

    uint64_t memory_size;
    uint64_t cpu_us;
    uint64_t threads_count;
    uint64_t descriptors_count;
    bool has_confined_calls;
    uint32_t confined_files;
    bool has_parsers;
    struct parsers_stat parsers;
    bool has_rewritten;
    struct rewritten_stat rewritten;
};

/* As of the last sample. */
struct sample_volumes {
    struct node_status_volume items[CONNECTOR_VOLUMES_MAX];
    size_t count;
};

/* Where the numbers come from. All of it outlives the samples. */
struct sample_sources {
    struct instance *instance;
    struct instance_session *session; /* of the thread that takes samples */
    struct crawl_loop *crawl_loop;
    struct http_server *http; /* NULL: not yet there */
    size_t routes_count;
    struct admin *admin;
    struct search *search;       /* or NULL */
    bool has_confined_calls;     /* of the process, as the next: run/confine.h */
    uint32_t confined_files;     /* enum confine_files */
    struct parsers *parsers;     /* NULL: none */
    struct rewritten *rewritten; /* NULL: none */
    const struct clock *clock;
};

/* asks_remote: volume servers are asked too; else what they said before is kept in *volumes. */
void sample_take(const struct sample_sources *sources, bool asks_remote, struct sample *ret_sample,
                 struct sample_volumes *volumes);

/* The delay in milliseconds below which so many of 1,000 answers between two samples came; 0 without any. */
double sample_delay_ms(const struct sample *now, const struct sample *before, unsigned per_mille);

/* How much a counter grew in a second between two samples. */
double sample_rate(const struct sample *now, const struct sample *before, uint64_t count,
                   uint64_t count_before);

#endif
