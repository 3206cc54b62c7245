/*
 * volume_kit - what a thread needs to work on a volume: a writer, a reader, buffers. Taken for a request or a
 * part of it and given back for the next, since which thread serves a request depends on its connection.
 */
#ifndef MNEMON_REPLAY_VOLUMES_VOLUME_KIT_H
#define MNEMON_REPLAY_VOLUMES_VOLUME_KIT_H

#include <pthread.h>

#include "store/remote/pack_payload.h"
#include "store/volume/volume.h"
#include "store/volume/volume_request.h"

struct volume_kit {
    struct volume_kit *next;
    struct volume_writer *writer;
    struct volume_reader *reader;
    struct volume_requests *requests;
    struct pack_payload pack_payload;
    struct scratch body; /* of a document, unpacked */
};

/* As many as were ever needed at once. Any thread. */
struct volume_kits {
    struct volume *volume;
    const char *scratch_directory;
    pthread_mutex_t lock;
    struct volume_kit *free_kits; /* lock */
};

void volume_kits_init(struct volume_kits *kits, struct volume *volume, const char *scratch_directory);

/* All of them must have been given back. */
void volume_kits_done(struct volume_kits *kits);

struct volume_kit *volume_kits_take(struct volume_kits *kits); /* NULL: out of memory */
void volume_kits_give_back(struct volume_kits *kits, struct volume_kit *take_kit);

#endif
