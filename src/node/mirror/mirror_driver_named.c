/* Of mirroring: neighbours that people named, and who may read though he is in no group and no ring with us.
 */
#include "node/mirror/mirror_driver_state.h"

static const uint64_t ASK_AGAIN_US = 1000000;
static const uint64_t REFUSED_US = 3000000; /* until somebody there has changed his mind */

/* ---- asking ---- */

void mirror_driver_ask_named(struct mirror_driver_mirror *mirror) {
    uint64_t now_us = mirror_driver_now_us(mirror->mirror_driver);
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        struct mirror_driver_named *named = &mirror->named[i];
        bool is_needed = !named->is_known || mirror->mirror == NULL;
        if (is_needed && !named->is_asked && now_us >= named->ask_at_us) {
            struct peer peer = {.address = mirror->setup.sources[i]};
            named->is_asked = true;
            mirror_driver_ask_version(mirror, &peer, i, false);
        }
    }
}

static void tell_refusal(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    char place[ADDRESS_TEXT_SIZE_MAX];
    char key[IDENTITY_TEXT_SIZE];
    mirror_driver_note(
        mirror->mirror_driver,
        "collection %s: %s does not let this node read it; its owner would have to name this key "
        "as a reader: %s",
        mirror->setup.name, address_format(&peer->address, place),
        identity_key_format(mirror->mirror_driver->config.self.key, key));
}

void mirror_driver_take_named(struct mirror_driver_mirror *mirror, const struct mirror_driver_event *event,
                              enum err err, const uint8_t key[PEER_KEY_SIZE]) {
    struct mirror_driver_named *named = &mirror->named[event->named_index];
    uint64_t wait_us = err == ERR_PERMISSION ? REFUSED_US : ASK_AGAIN_US;
    if (err == ERR_PERMISSION && named->err != err) {
        tell_refusal(mirror, &event->peer);
    }
    named->is_asked = false;
    named->err = err;
    named->ask_at_us = mirror_driver_now_us(mirror->mirror_driver) + wait_us;
    if (err == ERR_OK) {
        pthread_mutex_lock(&mirror->mirror_driver->lock);
        named->is_known = true;
        named->peer = event->peer;
        memcpy(named->peer.key, key, PEER_KEY_SIZE); /* a lie is of no use: the next stream needs it */
        pthread_mutex_unlock(&mirror->mirror_driver->lock);
    }
}

/* ---- being asked ---- */

/* One whose word people here want to hear. The lock is held. */
static bool is_wanted(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    const struct collection_setup *setup = &mirror->setup;
    bool is_wanted = setup->has_publisher && memcmp(setup->publisher, peer->key, PEER_KEY_SIZE) == 0;
    for (size_t i = 0; i < setup->sources_count && !is_wanted; i++) {
        const struct mirror_driver_named *named = &mirror->named[i];
        is_wanted = named->is_known && memcmp(named->peer.key, peer->key, PEER_KEY_SIZE) == 0;
    }
    return is_wanted;
}

/* We have just called him, and he has not said yet who he is. */
static bool is_called(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    for (size_t i = 0; i < mirror->setup.sources_count; i++) {
        if (address_equal(&mirror->setup.sources[i], &peer->address)) {
            return true;
        }
    }
    return false;
}

bool mirror_driver_is_reader(const struct mirror_driver_mirror *mirror, const struct peer *peer) {
    return collection_readers_have(&mirror->setup.readers, peer->key) || is_wanted(mirror, peer);
}

void mirror_driver_set_readers(struct mirror_driver_mirror *mirror,
                               const struct collection_readers *readers) {
    if (!collection_readers_equal(readers, &mirror->setup.readers)) {
        pthread_mutex_lock(&mirror->mirror_driver->lock);
        mirror->setup.readers = *readers;
        pthread_mutex_unlock(&mirror->mirror_driver->lock);
    }
}

/* Where anything is for others, whoever asks for something else is answered, too: that it is not for him. */
bool mirror_driver_hears(struct mirror_driver *mirror_driver, const struct peer *peer) {
    bool is_heard = false;
    pthread_mutex_lock(&mirror_driver->lock);
    for (size_t i = 0; i < mirror_driver->mirrors_count && !is_heard; i++) {
        const struct mirror_driver_mirror *mirror = mirror_driver->mirrors[i];
        is_heard = collection_readers_are_any(&mirror->setup.readers) || is_wanted(mirror, peer) ||
                   is_called(mirror, peer);
    }
    pthread_mutex_unlock(&mirror_driver->lock);
    return is_heard;
}
