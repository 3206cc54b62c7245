/* serve - runs a node until it is told to stop: for the commands that do so, "serve" and "proxy". */
#ifndef MNEMON_CLI_SERVE_H
#define MNEMON_CLI_SERVE_H

#include "cli/cli.h"

/* As configured. */
enum {
    SERVE_PORT_NOT_GIVEN = UINT16_MAX + 1,
    SERVE_KEEP_NOT_GIVEN = 255,
    SERVE_CAPACITY_NOT_GIVEN = 255,
};

/* 0 or NULL: as configured. */
struct serve_options {
    const char *data;
    const char *address;
    const char *public;
    uint64_t http; /* SERVE_PORT_NOT_GIVEN */
    const char *config;
    bool allow_private;
    bool allow_private_ring;
    const char *join;
    const char *token;
    const char *token_file; /* instead of it */
    const char *user;
    uint64_t port; /* SERVE_PORT_NOT_GIVEN */
    bool map_port;
    uint64_t capacity; /* SERVE_CAPACITY_NOT_GIVEN; 0: a light member */
    bool light;
    uint64_t disk;
    uint64_t upload_limit;
    uint64_t download_limit;
    const char *site;
    uint32_t keep;  /* enum settings_keep, or SERVE_KEEP_NOT_GIVEN */
    bool has_proxy; /* whatever the settings say */
    const char *proxy_listen;
    uint64_t proxy_timeout_us;
    bool proxy_intercept;
    bool proxy_archive;
};

int serve_node(struct cli *cli, const struct serve_options *options);

#endif
