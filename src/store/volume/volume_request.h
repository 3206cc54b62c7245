/*
 * volume_request - the HTTP request that a capture was stored with: the record behind it in its segment.
 *
 * No index leads to requests: hardly anybody asks for them, but an export does. One thread.
 */
#ifndef MNEMON_STORE_VOLUME_VOLUME_REQUEST_H
#define MNEMON_STORE_VOLUME_VOLUME_REQUEST_H

#include "store/volume/volume.h"

enum { VOLUME_REQUEST_SIZE_MAX = 64 << 20 };

struct volume_requests;

struct volume_requests *volume_requests_new(struct volume *volume); /* NULL: out of memory */
void volume_requests_free(struct volume_requests *requests);        /* may be NULL */

/* The block of the request that names the record at the location; empty if there is none. Lives until the
 * next call. */
enum err volume_requests_find(struct volume_requests *requests, const struct location *location,
                              struct bytes *ret_request, struct err_detail *detail) MUST_CHECK;

#endif
