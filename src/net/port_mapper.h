/*
 * port_mapper - keeps the port of a node open at the router for as long as the node runs.
 *
 *      port_mapper_start()   the first attempt, in the caller's thread: what others are told depends on it
 *      a thread of its own   again every minute, when the router says that it has begun anew, and, if the
 *                            mapping does not last that long, after half of its time
 *      port_mapper_stop()    takes it back
 *
 * A router that is silent for a while keeps nothing from us: what was mapped is still what others are told.
 * If a later attempt gives another address, port_mapper_address() says so; the node then has to begin again
 * there, since its places on the ring follow from its address (cli/serve.c).
 */
#ifndef MNEMON_NET_PORT_MAPPER_H
#define MNEMON_NET_PORT_MAPPER_H

#include "base/clock.h"
#include "base/json.h"
#include "net/port_map.h"

struct identity;
struct port_mapper;

struct port_mapper_config {
    struct address address;          /* at which the node listens, with its port */
    const struct identity *identity; /* the router knows the owner of a mapping by what follows from it */
    const struct clock *clock;       /* outlives it */
    void (*note)(void *context, const char *sentence); /* any thread */
    void *context;
};

/* After PORT_MAPPER_FIRST_US at most, whether a port was mapped or not. ERR_MEMORY, ERR_THREADS, ERR_FILES.
 */
static const uint64_t PORT_MAPPER_FIRST_US = 5000000;
enum err port_mapper_start(const struct port_mapper_config *config, struct port_mapper **ret_mapper,
                           struct err_detail *detail) MUST_CHECK;
void port_mapper_stop(struct port_mapper *take_mapper); /* may be NULL */

/* ---- any thread ---- */

/* Where others reach the node, by what is known now. False: nothing was mapped. */
bool port_mapper_address(struct port_mapper *mapper, struct address *ret_address);

/* What is mapped, by what and until when, or why nothing is: one sentence. Returns out. */
enum { PORT_MAPPER_TEXT_SIZE_MAX = 512 };
const char *port_mapper_text(struct port_mapper *mapper, char out[PORT_MAPPER_TEXT_SIZE_MAX]);

/* The member "port_map" of /api/v1/ring (docs/api.md). */
void port_mapper_put(struct port_mapper *mapper, struct json *json);

#endif
