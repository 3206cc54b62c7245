#include "replay/volumes/volume_call.h"

#include <stdio.h>

enum { STATUS_OK = 200, ARGUMENT_SIZE_MAX = 96 };

static const char BINARY[] = "application/octet-stream";

enum err volume_call_answer(struct volume_call *call, const struct buf *out) {
    if (out->err == ERR_OK) {
        http_answer(call->request, STATUS_OK, BINARY, buf_bytes(out));
    }
    return out->err;
}

static bool takes_zstd(const struct http_request *request) {
    struct bytes rest = http_request_header(request, "Accept-Encoding");
    struct bytes part;
    while (bytes_split(&rest, ',', &part)) {
        if (bytes_equal_ignore_case(bytes_trim(part), BYTES("zstd"))) {
            return true;
        }
    }
    return false;
}

enum err volume_call_answer_document(struct volume_call *call, struct volume_kit *kit,
                                     struct bytes document) {
    struct scratch out;
    bool is_packed = false;
    scratch_init(&out, call->scratch_directory, SCRATCH_MEMORY_MAX, UINT64_MAX);
    enum err err = takes_zstd(call->request)
                       ? pack_payload_put(&kit->pack_payload, document, &out, &is_packed)
                       : scratch_put(&out, document);
    if (err == ERR_OK) {
        http_add_header(call->request, "Vary", "Accept-Encoding");
        if (is_packed) {
            http_add_header(call->request, "Content-Encoding", "zstd");
        }
        http_answer_scratch(call->request, STATUS_OK, BINARY, &out);
    }
    scratch_done(&out);
    return err;
}

enum err volume_call_key(const struct volume_call *call, struct key *ret_key, struct err_detail *detail) {
    char text[ARGUMENT_SIZE_MAX];
    int size = snprintf(text, sizeof text, "%u:%.*s", call->number, BYTES_ARG(call->argument));
    if (size >= (int)sizeof text || !key_parse(bytes_of(text, (size_t)size), ret_key)) {
        return err_set(detail, ERR_INVALID, "no content key of a volume: SIGNATURE or SIGNATURE.NUMBER");
    }
    return ERR_OK;
}

enum err volume_call_location(const struct volume_call *call, struct location *ret_location,
                              struct err_detail *detail) {
    struct bytes rest = call->argument;
    struct bytes part;
    uint64_t values[3];
    for (size_t i = 0; i < 3; i++) {
        if (!bytes_split(&rest, '-', &part) ||
            !bytes_to_u64(part, i == 1 ? INT64_MAX : UINT32_MAX, &values[i])) {
            return err_set(detail, ERR_INVALID, "no location of a record: SEGMENT-OFFSET-LENGTH");
        }
    }
    if (rest.data != NULL) {
        return err_set(detail, ERR_INVALID, "no location of a record: SEGMENT-OFFSET-LENGTH");
    }
    *ret_location =
        (struct location){.segment = (uint32_t)values[0], .offset = values[1], .length = (uint32_t)values[2]};
    return ERR_OK;
}
