#include "replay/volumes/volume_kit.h"

#include <stdlib.h>

static void free_kit(struct volume_kit *kit) {
    if (kit->writer != NULL) {
        volume_writer_free(kit->writer);
    }
    if (kit->reader != NULL) {
        volume_reader_free(kit->reader);
    }
    if (kit->requests != NULL) {
        volume_requests_free(kit->requests);
    }
    scratch_done(&kit->body);
    pack_payload_done(&kit->pack_payload);
    free(kit);
}

static struct volume_kit *make_kit(const struct volume_kits *kits) {
    struct volume_kit *kit = calloc(1, sizeof *kit);
    if (kit == NULL) {
        return NULL;
    }
    if (pack_payload_init(&kit->pack_payload) != ERR_OK) {
        free(kit);
        return NULL;
    }
    scratch_init(&kit->body, kits->scratch_directory, SCRATCH_MEMORY_MAX, VOLUME_DOCUMENT_SIZE_MAX);
    kit->writer = volume_writer_new(kits->volume);
    kit->reader = volume_reader_new(kits->volume);
    kit->requests = volume_requests_new(kits->volume);
    if (kit->writer == NULL || kit->reader == NULL || kit->requests == NULL) {
        free_kit(kit);
        return NULL;
    }
    return kit;
}

void volume_kits_init(struct volume_kits *kits, struct volume *volume, const char *scratch_directory) {
    *kits = (struct volume_kits){.volume = volume, .scratch_directory = scratch_directory};
    pthread_mutex_init(&kits->lock, NULL);
}

void volume_kits_done(struct volume_kits *kits) {
    while (kits->free_kits != NULL) {
        struct volume_kit *kit = kits->free_kits;
        kits->free_kits = kit->next;
        free_kit(kit);
    }
    pthread_mutex_destroy(&kits->lock);
}

struct volume_kit *volume_kits_take(struct volume_kits *kits) {
    pthread_mutex_lock(&kits->lock);
    struct volume_kit *kit = kits->free_kits;
    kits->free_kits = kit == NULL ? NULL : kit->next;
    pthread_mutex_unlock(&kits->lock);
    return kit == NULL ? make_kit(kits) : kit;
}

void volume_kits_give_back(struct volume_kits *kits, struct volume_kit *kit) {
    scratch_clear(&kit->body);
    pthread_mutex_lock(&kits->lock);
    kit->next = kits->free_kits;
    kits->free_kits = kit;
    pthread_mutex_unlock(&kits->lock);
}
