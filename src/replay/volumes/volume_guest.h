/*
 * volume_guest - what the guest of the archive has (the other nodes of a ring), as one more volume that is
 * only read from: for commands on this node's data directory, which see the ring through the node.
 *
 *      GET    /api/v1/volumes/1024/documents/KEY
 *      GET    /api/v1/volumes/1024/records/SEGMENT-OFFSET-LENGTH
 *      GET    /api/v1/volumes/1024/requests/SEGMENT-OFFSET-LENGTH
 *      GET    /api/v1/volumes/1024/blocks/KEY
 *      POST   /api/v1/volumes/1024/captures
 *
 * Private to volume_service.c. The text of an error of a walk is the names of those that did not answer.
 * Each call may wait for other nodes: on a worker of the server only.
 */
#ifndef MNEMON_REPLAY_VOLUMES_VOLUME_GUEST_H
#define MNEMON_REPLAY_VOLUMES_VOLUME_GUEST_H

#include "replay/volumes/volume_call.h"
#include "store/backend/backend.h"

/* ERR_OK if it has answered; otherwise the error is the answer. */
enum err volume_guest_answer(struct volume_call *call, struct backend *guest,
                             struct err_detail *detail) MUST_CHECK;

/* Is it a page that a guest has? */
bool volume_guest_has(const struct volume_page *page);

#endif
