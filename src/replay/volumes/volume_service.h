/*
 * volume_service - the volumes of this machine for others, over HTTP: docs/protocol/volumes.md.
 *
 *      GET    /api/v1/volumes                    what there is, as JSON
 *      POST   /api/v1/volumes/N/ask              are these held?
 *      POST   /api/v1/volumes/N/documents        store one; answered when it is durable
 *      GET    /api/v1/volumes/N/documents/KEY    DIGEST or DIGEST.NUMBER
 *      DELETE /api/v1/volumes/N/documents/KEY
 *      GET    /api/v1/volumes/N/records/SEGMENT-OFFSET-LENGTH
 *      GET    /api/v1/volumes/N/requests/SEGMENT-OFFSET-LENGTH
 *      GET    /api/v1/volumes/N/blocks/KEY
 *      POST   /api/v1/volumes/N/blocks           a page of a walk over all of them
 *      POST   /api/v1/volumes/N/captures         likewise
 *      GET    /api/v1/volumes/N/stat
 *
 * The other nodes of the ring are offered likewise, to read from: volume_guest.h.
 *
 * All of it needs the token. What clients send is taken for hostile: the digest of a body is computed here,
 * whatever the client says; a digest without a body can only name what is here already.
 *
 * Storing and deleting suspend their request until the committer of the volume has synced it, so that a few
 * threads serve any number of writers and one sync serves them all. What is to be stored is taken in by a
 * pool of its own, which gives way to those that serve readers: to take in a document is a hundred times the
 * work of finding one, and waits while the disk is slow.
 */
#ifndef MNEMON_REPLAY_VOLUMES_VOLUME_SERVICE_H
#define MNEMON_REPLAY_VOLUMES_VOLUME_SERVICE_H

#include "http/server/http_server.h"
#include "store/instance/instance.h"
#include "store/volume/volume.h"

enum { VOLUME_SERVICE_ROUTES_COUNT = 4, VOLUME_SERVICE_TOKEN_SIZE_MAX = 256 };

struct volume_service;

struct volume_service_volume {
    uint16_t number;
    struct volume *volume; /* outlives the service */
};

struct volume_service_config {
    const struct volume_service_volume *volumes; /* copied */
    size_t volumes_count;
    const char *token;             /* copied */
    const char *scratch_directory; /* outlives the service */
    struct instance *instance;     /* likewise: its guest is offered as the volume INSTANCE_GUEST_NUMBER */
};

/* NULL: out of memory. */
struct volume_service *volume_service_new(const struct volume_service_config *config);

/* When the server that has its routes has been stopped. */
void volume_service_free(struct volume_service *service);

void volume_service_routes(struct volume_service *service,
                           struct http_route out[VOLUME_SERVICE_ROUTES_COUNT]);

#endif
