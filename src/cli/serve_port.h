/* serve_port - the port of a node at its router, if that is wanted ("mnemon serve --map-port"). */
#ifndef MNEMON_CLI_SERVE_PORT_H
#define MNEMON_CLI_SERVE_PORT_H

#include "cli/cli.h"
#include "net/port_mapper.h"
#include "node/settings.h"

/* Over all runs of the node. Zeros before serve_port_begin(). */
struct serve_port {
    struct port_mapper *mapper; /* NULL: not wanted */
    struct address told;        /* what the running node tells others; port 0: its own address */
    uint64_t moved_us;          /* monotonic: when the node last began again; 0: never */
};

/*
 * address: at which the node will listen for others, with its port. Takes a few seconds if the router is
 * silent: other nodes are told the address outside, so nothing can begin before. After the process is
 * confined.
 */
int serve_port_begin(struct serve_port *port, struct cli *cli, const char *directory,
                     const struct settings *settings, const struct address *address);
void serve_port_end(struct serve_port *port);

/* What the node that starts now tells others; port 0: its own address. */
struct address serve_port_tell(struct serve_port *port);

/* Is it another address by now? Then the node is to begin again, but not all the time: see serve_port.c. */
bool serve_port_has_moved(struct serve_port *port);

#endif
