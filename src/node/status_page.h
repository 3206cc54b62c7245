/*
 * status_page - "/" of a node: what the archive holds and how far its jobs are, for people.
 *
 * Made anew for each request, from the volumes' own counts and from the state.json of each job.
 */
#ifndef MNEMON_NODE_STATUS_PAGE_H
#define MNEMON_NODE_STATUS_PAGE_H

#include "replay/http_server.h"
#include "store/instance.h"

struct status_page;

/* The directory, of the data, and the instance outlive it. NULL: out of memory. */
struct status_page *status_page_new(struct instance *instance, const char *directory);
void status_page_free(struct status_page *page);

struct http_route status_page_route(struct status_page *page);

#endif
