/*
 * connector - the file that lists the volumes of an instance. docs/formats/connector.md
 *
 *      [volume-0]                        the number is part of content keys: it never changes
 *      path = "volumes/0"                a directory; relative ones lie beside the connector
 *      index = "index/0"                 (PATH/index)
 *
 *      [volume-7]
 *      url = "http://192.0.2.7:8080"     a node that offers its volumes
 *      volume = 0                        which one: its number there (0)
 *      token_file = "volume-7.token"     or token = "…"
 *      timeout = 30 s                    without a byte from it
 *      writable = no                     take no new documents
 *
 * Pure: reads text, opens nothing but token files.
 */
#ifndef MNEMON_STORE_INSTANCE_CONNECTOR_H
#define MNEMON_STORE_INSTANCE_CONNECTOR_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

enum {
    CONNECTOR_VOLUMES_MAX = 32,
    CONNECTOR_SIZE_MAX = 1 << 16, /* of the file */
    CONNECTOR_TOKEN_SIZE_MAX = 256,
};

/* Texts are in the connector's memory, ended by a zero byte; NULL if they do not apply. */
struct connector_volume {
    uint16_t number;
    bool is_writable;
    bool is_made; /* its directory is created if it is missing: it lies in the connector's own directory */
    const char *path; /* of a local volume; absolute, or relative to the working directory */
    const char *index;
    const char *url;        /* of a volume server */
    uint16_t remote_number; /* of the volume, there */
    const char *token;
    uint32_t timeout_ms;
};

struct connector {
    struct arena arena;
    struct connector_volume *volumes; /* by number, ascending */
    size_t volumes_count;
};

/*
 * directory: what relative paths and token files begin at. ERR_INVALID with line and column, ERR_LIMIT; the
 * errors of a token file that cannot be read. After a failure there is nothing to free.
 */
enum err connector_parse(struct connector *connector, struct bytes text, const char *directory,
                         struct err_detail *detail) MUST_CHECK;

/* The same from a file; ERR_NOT_FOUND if there is none. Relative paths begin where it lies. */
enum err connector_read(struct connector *connector, const char *path, struct err_detail *detail) MUST_CHECK;

/* The one volume of a data directory without a connector. */
enum err connector_default(struct connector *connector, const char *directory) MUST_CHECK;

void connector_done(struct connector *connector);

#endif
