#include "cli/serve_port.h"

#include <stdio.h>

#include "net/identity.h"

/* A router may get another address every day, and none does every minute; each time copies move on the ring.
 */
static const uint64_t MOVE_US = UINT64_C(600) * 1000000;

static void port_note(void *context, const char *sentence) {
    const struct cli *cli = context;
    fprintf(cli->err, "%s\n", sentence);
}

int serve_port_begin(struct serve_port *port, struct cli *cli, const char *directory,
                     const struct settings *settings, const struct address *address) {
    struct err_detail detail = {0};
    struct identity identity;
    if (!settings->ring_map_port) {
        return CLI_DONE;
    }
    if (settings->node_public.size > 0) {
        return cli_fail(cli,
                        "--map-port asks the router for the address that --public names: use one of them");
    }
    if (address->port == 0) {
        return cli_fail(cli, "--map-port needs a port that stays: --port");
    }
    enum err err = identity_load(&identity, directory, &detail);
    if (err == ERR_OK) {
        struct port_mapper_config config = {
            .address = *address,
            .identity = &identity,
            .clock = cli->clock,
            .note = port_note,
            .context = cli,
        };
        err = port_mapper_start(&config, &port->mapper, &detail);
        identity_done(&identity);
    }
    return err == ERR_OK ? CLI_DONE : cli_fail(cli, "%s", err_detail_text(&detail, err));
}

void serve_port_end(struct serve_port *port) {
    port_mapper_stop(port->mapper);
    port->mapper = NULL;
}

struct address serve_port_tell(struct serve_port *port) {
    port->told = (struct address){0};
    if (port->mapper != NULL) {
        (void)port_mapper_address(port->mapper, &port->told);
    }
    return port->told;
}

bool serve_port_has_moved(struct serve_port *port) {
    struct address now;
    uint64_t now_us = clock_monotonic_us(&clock_system);
    if (port->mapper == NULL || !port_mapper_address(port->mapper, &now) ||
        address_equal(&now, &port->told)) {
        return false;
    }
    if (port->moved_us > 0 && now_us < port->moved_us + MOVE_US) {
        return false;
    }
    port->moved_us = now_us;
    return true;
}
