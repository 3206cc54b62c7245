/* Of mirroring: who may have a collection: neighbours, those that people named, and who asked us. */
#include "node/mirror/mirroring_state.h"

static const uint64_t FOLLOWER_SLACK_US = 60000000;

static void add_source(const struct mirroring *mirroring, const struct peer *peer,
                       struct mirror_source sources[MIRRORING_SOURCES_MAX], size_t *count) {
    bool is_new = memcmp(peer->key, mirroring->config.self.key, PEER_KEY_SIZE) != 0;
    for (size_t i = 0; i < *count && is_new; i++) {
        is_new = memcmp(sources[i].peer.key, peer->key, PEER_KEY_SIZE) != 0;
    }
    if (is_new && *count < MIRRORING_SOURCES_MAX) {
        sources[(*count)++] = (struct mirror_source){
            .peer = *peer, .delay_us = bulk_round_trip_us(mirroring->config.bulk, peer)};
    }
}

static size_t list_sources(struct mirroring_mirror *mirror,
                           struct mirror_source sources[MIRRORING_SOURCES_MAX]) {
    struct mirroring *mirroring = mirror->mirroring;
    const struct mirroring_config *config = &mirroring->config;
    uint64_t now_us = mirroring_now_us(mirroring);
    size_t count = config->neighbours != NULL ? config->neighbours(config->context, sources) : 0;
    size_t kept = 0;
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        if (mirror->named[i].is_known) {
            add_source(mirroring, &mirror->named[i].peer, sources, &count);
        }
    }
    for (size_t i = 0; i < mirror->followers_count; i++) {
        if (now_us < mirror->followers[i].heard_us + 3 * config->ask_us + FOLLOWER_SLACK_US) {
            mirror->followers[kept++] = mirror->followers[i];
            add_source(mirroring, &mirror->followers[i].peer, sources, &count);
        }
    }
    mirror->followers_count = kept;
    return count;
}

void mirroring_set_sources(struct mirroring_mirror *mirror) {
    struct mirror_source sources[MIRRORING_SOURCES_MAX];
    size_t count = list_sources(mirror, sources);
    mirror_set_sources(mirror->mirror, sources, count, mirroring_now_us(mirror->mirroring));
}

void mirroring_note_follower(struct mirroring_mirror *mirror, const struct peer *peer) {
    size_t oldest = 0;
    uint64_t now_us = mirroring_now_us(mirror->mirroring);
    for (size_t i = 0; i < mirror->followers_count; i++) {
        if (memcmp(mirror->followers[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            mirror->followers[i] = (struct mirroring_follower){.peer = *peer, .heard_us = now_us};
            return;
        }
        oldest = mirror->followers[i].heard_us < mirror->followers[oldest].heard_us ? i : oldest;
    }
    if (mirror->followers_count < MIRRORING_FOLLOWERS_MAX) {
        oldest = mirror->followers_count++;
    }
    mirror->followers[oldest] = (struct mirroring_follower){.peer = *peer, .heard_us = now_us};
}

uint64_t mirroring_known_number(const struct mirroring_mirror *mirror, const uint8_t key[PEER_KEY_SIZE]) {
    struct mirror_source_status status;
    size_t count = mirror->mirror != NULL ? mirror_sources_count(mirror->mirror) : 0;
    for (size_t i = 0; i < count; i++) {
        mirror_source_at(mirror->mirror, i, mirroring_now_us(mirror->mirroring), &status);
        if (memcmp(status.source.peer.key, key, PEER_KEY_SIZE) == 0) {
            return status.number;
        }
    }
    return 0;
}
