/*
 * port_map - one port of this machine that its router passes on, for datagrams and for streams alike.
 *
 * Asked for by PCP, by NAT-PMP and by UPnP, in this order, and later by the way that worked. Other nodes know
 * one port of a node, so UDP and TCP must have the same one outside: if the router gives two different ones,
 * both are taken back and another number is tried.
 *
 * Every call blocks, for at most the time that it is given: not for event loops. One thread.
 */
#ifndef MNEMON_NET_PORT_MAP_H
#define MNEMON_NET_PORT_MAP_H

#include "net/pcp.h"
#include "net/upnp.h"

enum port_map_way { PORT_MAP_NO_WAY, PORT_MAP_PCP, PORT_MAP_NATPMP, PORT_MAP_UPNP, PORT_MAP_WAYS_COUNT };

struct port_map_config {
    struct address address;           /* at which the node listens; the wildcard: everywhere */
    uint8_t nonce[PCP_NONCE_SIZE];    /* the same after a restart, and nobody else's */
    bool (*is_ending)(void *context); /* asked several times a second; may be NULL */
    void *context;
};

/* What follows counts while there is a way. */
struct port_map {
    struct port_map_config config;
    struct address gateway; /* the router, port 0; also if it did not map anything */
    bool has_gateway;
    enum port_map_way way;
    struct address own;          /* this machine, as the router knows it */
    struct address outer;        /* where others reach it */
    uint32_t lifetime_s;         /* from now on; 0: until it is taken back */
    struct upnp_service service; /* PORT_MAP_UPNP */
};

void port_map_init(struct port_map *map, const struct port_map_config *config);

/*
 * Make the mapping, or have it last longer. On failure the detail says why, for people, and *map is as before
 * but for the gateway. ERR_UNSUPPORTED: it would make no sense; ERR_NOT_FOUND: no router, or it does not
 * answer; ERR_REFUSED, ERR_INVALID: it does, but has no port for us.
 */
enum err port_map_make(struct port_map *map, uint64_t time_us, struct err_detail *detail) MUST_CHECK;

/* Take it back, if there is one, as far as the router answers. */
void port_map_remove(struct port_map *map, uint64_t time_us);

/* "PCP", "NAT-PMP", "UPnP". */
const char *port_map_way_name(enum port_map_way way);

#endif
