#include "store/document/document_hasher.h"

enum err document_hasher_init(struct document_hasher *hasher) {
    *hasher = (struct document_hasher){0};
    enum err err = payload_init(&hasher->payload);
    return err == ERR_OK ? sha256_init(&hasher->sha256) : err;
}

void document_hasher_done(struct document_hasher *hasher) {
    payload_done(&hasher->payload);
    sha256_done(&hasher->sha256);
}

/* Told every piece of the payload, in order. */
typedef void take_part(void *context, struct bytes part);

static void take_payload(struct document_hasher *hasher, const struct document *document, take_part *take,
                         void *context) {
    struct bytes pieces[2] = {document->head, document->body};
    struct bytes part;
    payload_start(&hasher->payload, document->head.size > 0);
    for (size_t i = 0; i < 2; i++) {
        while (payload_next(&hasher->payload, &pieces[i], &part)) {
            take(context, part);
        }
    }
    if (payload_finish(&hasher->payload, &part)) {
        take(context, part);
    }
}

struct hashing {
    struct sha256 *sha256;
    uint64_t size;
};

static void hash_part(void *context, struct bytes part) {
    struct hashing *hashing = context;
    sha256_update(hashing->sha256, part);
    hashing->size += part.size;
}

void document_hasher_run(struct document_hasher *hasher, const struct document *document,
                         struct document_sum *ret_sum) {
    struct hashing hashing = {.sha256 = &hasher->sha256};
    sha256_start(&hasher->sha256);
    take_payload(hasher, document, hash_part, &hashing);
    sha256_finish(&hasher->sha256, ret_sum->digest);
    ret_sum->size = hashing.size;
}

struct comparing {
    struct bytes rest;
    bool is_equal;
};

static void compare_part(void *context, struct bytes part) {
    struct comparing *comparing = context;
    comparing->is_equal = comparing->is_equal && bytes_starts_with(comparing->rest, part);
    comparing->rest = comparing->is_equal ? bytes_skip(comparing->rest, part.size) : comparing->rest;
}

bool document_hasher_equals(struct document_hasher *hasher, const struct document *document,
                            struct bytes payload) {
    struct comparing comparing = {.rest = payload, .is_equal = true};
    take_payload(hasher, document, compare_part, &comparing);
    return comparing.is_equal && comparing.rest.size == 0;
}
