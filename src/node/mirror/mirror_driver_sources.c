/* Of mirroring: who may have a collection: neighbours, those that people named, and who asked us. */
#include "node/mirror/mirror_driver_state.h"

static const uint64_t FOLLOWER_SLACK_US = 60000000;

static void add_source(const struct mirror_driver *mirror_driver, const struct peer *peer,
                       struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX], size_t *count) {
    bool is_new = memcmp(peer->key, mirror_driver->config.self.key, PEER_KEY_SIZE) != 0;
    for (size_t i = 0; i < *count && is_new; i++) {
        is_new = memcmp(sources[i].peer.key, peer->key, PEER_KEY_SIZE) != 0;
    }
    if (is_new && *count < MIRROR_DRIVER_SOURCES_MAX) {
        sources[(*count)++] = (struct mirror_source){
            .peer = *peer, .delay_us = peer_rpc_round_trip_us(mirror_driver->config.peer_rpc, peer)};
    }
}

static size_t list_sources(struct mirror_driver_mirror *mirror,
                           struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX]) {
    struct mirror_driver *mirror_driver = mirror->mirror_driver;
    const struct mirror_driver_config *config = &mirror_driver->config;
    uint64_t now_us = mirror_driver_now_us(mirror_driver);
    size_t count = config->neighbours != NULL ? config->neighbours(config->context, sources) : 0;
    size_t kept = 0;
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        if (mirror->named[i].is_known) {
            add_source(mirror_driver, &mirror->named[i].peer, sources, &count);
        }
    }
    for (size_t i = 0; i < mirror->followers_count; i++) {
        if (now_us < mirror->followers[i].heard_us + 3 * config->ask_us + FOLLOWER_SLACK_US) {
            mirror->followers[kept++] = mirror->followers[i];
            add_source(mirror_driver, &mirror->followers[i].peer, sources, &count);
        }
    }
    mirror->followers_count = kept;
    return count;
}

void mirror_driver_set_sources(struct mirror_driver_mirror *mirror) {
    struct mirror_source sources[MIRROR_DRIVER_SOURCES_MAX];
    size_t count = list_sources(mirror, sources);
    mirror_set_sources(mirror->mirror, sources, count, mirror_driver_now_us(mirror->mirror_driver));
}

void mirror_driver_note_follower(struct mirror_driver_mirror *mirror, const struct peer *peer) {
    size_t oldest = 0;
    uint64_t now_us = mirror_driver_now_us(mirror->mirror_driver);
    for (size_t i = 0; i < mirror->followers_count; i++) {
        if (memcmp(mirror->followers[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            mirror->followers[i] = (struct mirror_driver_follower){.peer = *peer, .heard_us = now_us};
            return;
        }
        oldest = mirror->followers[i].heard_us < mirror->followers[oldest].heard_us ? i : oldest;
    }
    if (mirror->followers_count < MIRROR_DRIVER_FOLLOWERS_MAX) {
        oldest = mirror->followers_count++;
    }
    mirror->followers[oldest] = (struct mirror_driver_follower){.peer = *peer, .heard_us = now_us};
}

uint64_t mirror_driver_known_number(const struct mirror_driver_mirror *mirror,
                                    const uint8_t key[PEER_KEY_SIZE]) {
    struct mirror_source_status status;
    size_t count = mirror->mirror != NULL ? mirror_sources_count(mirror->mirror) : 0;
    for (size_t i = 0; i < count; i++) {
        mirror_source_at(mirror->mirror, i, mirror_driver_now_us(mirror->mirror_driver), &status);
        if (memcmp(status.source.peer.key, key, PEER_KEY_SIZE) == 0) {
            return status.number;
        }
    }
    return 0;
}
