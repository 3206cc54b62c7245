/*
 * warc_id - the name of a record: a random UUID (RFC 4122, version 4), written `<urn:uuid:…>` in headers.
 */
#ifndef MNEMON_WARC_WARC_ID_H
#define MNEMON_WARC_WARC_ID_H

#include "base/bytes.h"

enum {
    WARC_ID_SIZE = 16,
    WARC_ID_TEXT_SIZE = 48, /* "<urn:uuid:" + 36 + ">" and a zero byte */
};

struct warc_id {
    uint8_t value[WARC_ID_SIZE];
};

/* Where random bytes come from: the system's generator, or a seeded one so that a run can be repeated. */
struct warc_random {
    void (*fill)(void *context, void *out, size_t size);
    void *context;
};

/* The system's generator: any thread may ask, and no two archives share an id. */
extern const struct warc_random warc_random_system;

struct warc_id warc_id_make(const struct warc_random *random);

/* With its zero byte. Returns out. */
const char *warc_id_format(const struct warc_id *id, char out[WARC_ID_TEXT_SIZE]);

/* "<urn:uuid:…>" with or without the <>, any case. */
bool warc_id_parse(struct bytes text, struct warc_id *ret_id);

#endif
