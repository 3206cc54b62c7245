/* settings - mnemon.conf of a node, docs/formats/config.md: every key has a default that works. */
#ifndef MNEMON_NODE_SETTINGS_H
#define MNEMON_NODE_SETTINGS_H

#include "base/arena.h"
#include "base/config.h"
#include "base/err.h"

enum settings_reads { SETTINGS_READS_OPEN, SETTINGS_READS_TOKEN };
enum settings_offers { SETTINGS_OFFERS_READ, SETTINGS_OFFERS_KEPT };
enum settings_protocol { SETTINGS_PROTOCOL_ALL, SETTINGS_PROTOCOL_FIRST, SETTINGS_PROTOCOL_HELLO };
enum settings_confine { SETTINGS_CONFINE_NO, SETTINGS_CONFINE_YES, SETTINGS_CONFINE_STRICT };
enum { SETTINGS_PARSERS_MAX = 32 };
enum settings_trust { SETTINGS_TRUST_ANY, SETTINGS_TRUST_MEMBERS, SETTINGS_TRUSTS_COUNT };
enum settings_keep { SETTINGS_KEEP_ARC, SETTINGS_KEEP_EVERYTHING, SETTINGS_KEEP_OWN, SETTINGS_KEEPS_COUNT };

struct settings {
    struct arena arena; /* of the texts */
    struct bytes http_address;
    uint64_t http_port;
    struct bytes ring_address;
    struct bytes node_public;
    uint64_t ring_port;
    bool ring_map_port;
    uint64_t ring_capacity; /* 0: a light member */
    uint64_t ring_first_place;
    uint64_t ring_upload; /* bytes a second; 0: any */
    uint64_t ring_download;
    uint64_t ring_requests; /* a second; 0: any */
    uint32_t ring_keep;     /* enum settings_keep */
    uint64_t ring_grace_us;
    uint64_t ring_compare_us;
    uint64_t ring_scrub_us;
    uint32_t ring_protocol; /* enum settings_protocol */
    struct bytes ring_site;
    bool ring_redirect;
    bool crowd_enabled;
    uint32_t crowd_part; /* enum crowd_part */
    uint64_t crowd_shuffle_us;
    uint64_t crowd_cache;
    uint64_t crowd_relay;  /* light members that this node is the relay of, at most; 0: of none */
    uint32_t crowd_offers; /* enum settings_offers */
    uint64_t group_period_us;
    uint64_t group_silence_us;
    uint64_t mirror_gather_us;
    uint64_t mirror_period_us;
    struct bytes mirror_limit; /* as node/mirror/mirror_driver_rates.h reads them, as the next three */
    struct config_list mirror_windows;
    struct bytes mirror_upload_limit;
    struct config_list mirror_upload_windows;
    uint64_t http_connections;
    uint64_t http_timeout_us;
    struct config_list http_hosts;
    uint64_t http_rate;
    uint64_t http_cache; /* for documents as they were rewritten */
    struct bytes http_public;
    uint32_t http_reads; /* enum settings_reads */
    struct bytes proxy_address;
    uint64_t proxy_port; /* 0: none */
    uint64_t proxy_timeout_us;
    bool proxy_intercept;
    bool proxy_archive;
    bool proxy_light;      /* "mnemon proxy" is a light member, unless it was more */
    uint32_t node_confine; /* enum settings_confine */
    uint64_t node_disk;    /* quota of its local volumes; 0: none */
    uint64_t node_parsers; /* of each group: parse/parsers.h; 0: none */
    bool node_parse_short; /* short documents that readers wait for are parsed there, too */
    struct bytes archive_title;
    uint32_t archive_trust; /* enum settings_trust */
    uint64_t store_cache;
    bool search_enabled;
    struct bytes crawl_user_agent;
    uint64_t crawl_connections;
    bool crawl_allow_private;
    bool crawl_allow_private_ring;
    uint64_t crawl_frontier_memory;
    struct bytes crawl_nameservers;
    struct bytes retired; /* what is not a setting any more */
};

extern const char *const settings_keeps[]; /* the words of enum settings_keep */

/* Is it a relay for light members, if they want it? */
bool settings_make_relay(const struct settings *settings);

/* A text as C has it; NULL: it is empty. */
static inline const char *settings_text(struct bytes text) {
    return text.size > 0 ? (const char *)text.data : NULL;
}

/* The defaults if there is no such file, unless it must exist. *detail names file, line and column. */
enum err settings_read(struct settings *settings, const char *path, bool must_exist,
                       struct err_detail *detail) MUST_CHECK;
void settings_done(struct settings *settings);

#endif
