#include "replay/volumes/volume_call.h"
#include "store/remote/backend_code.h"

enum err volume_call_ask(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    bool holds[BACKEND_CODE_CLAIMS_MAX];
    struct bytes body;
    struct wire_reader reader;
    struct document_sum claim;
    enum err err = http_request_body(call->request, &body);
    if (err != ERR_OK) {
        return err;
    }
    wire_reader_init(&reader, body);
    size_t count = backend_code_begin_claims(&reader);
    for (size_t i = 0; i < count && reader.err == ERR_OK && err == ERR_OK; i++) {
        backend_code_next_claim(&reader, &claim);
        if (reader.err == ERR_OK) {
            err = volume_holds(call->volume, &claim, &holds[i]);
        }
    }
    if (err == ERR_OK) {
        err = wire_reader_finish(&reader, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct buf out;
    buf_init(&out, BACKEND_CODE_CLAIMS_SIZE_MAX);
    backend_code_put_answers(&out, holds, count);
    err = volume_call_answer(call, &out);
    buf_done(&out);
    return err;
}

enum err volume_call_get(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    struct key key;
    struct bytes document;
    enum err err = volume_call_key(call, &key, detail);
    if (err == ERR_OK) {
        err = volume_get(kit->reader, &key, &document, detail);
    }
    return err == ERR_OK ? volume_call_answer_document(call, kit, document) : err;
}

enum err volume_call_get_record(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    struct location location;
    struct bytes record;
    enum err err = volume_call_location(call, &location, detail);
    if (err == ERR_OK) {
        err = volume_get_record(kit->reader, &location, &record, detail);
    }
    return err == ERR_OK ? volume_call_answer_document(call, kit, record) : err;
}

enum err volume_call_get_request(struct volume_call *call, struct volume_kit *kit,
                                 struct err_detail *detail) {
    struct location location;
    struct bytes request;
    enum err err = volume_call_location(call, &location, detail);
    if (err == ERR_OK) {
        err = volume_requests_find(kit->requests, &location, &request, detail);
    }
    return err == ERR_OK ? volume_call_answer_document(call, kit, request) : err;
}

enum err volume_call_find_block(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    struct key key;
    struct block block;
    enum err err = volume_call_key(call, &key, detail);
    if (err == ERR_OK) {
        err = index_find_block(volume_index(call->volume), key.digest, key.number, &block);
    }
    if (err == ERR_OK && block.references <= 0) {
        err = ERR_NOT_FOUND;
    }
    if (err != ERR_OK) {
        return err;
    }
    struct buf out;
    buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
    backend_code_put_block(&out, &block);
    err = volume_call_answer(call, &out);
    buf_done(&out);
    return err;
}

enum err volume_call_stat(struct volume_call *call, struct volume_kit *kit, struct err_detail *detail) {
    (void)kit;
    (void)detail;
    struct volume_stat found;
    volume_stat(call->volume, &found);
    struct backend_stat stat = {
        .segments_count = found.segments_count,
        .size = found.size,
        .dead_size = found.dead_size,
        .blocks_count = found.index.blocks_count,
        .captures_count = found.index.captures_count,
        .index_size = found.index.disk_size,
    };
    struct buf out;
    buf_init(&out, BACKEND_CODE_SMALL_SIZE_MAX);
    backend_code_put_stat(&out, &stat);
    enum err err = volume_call_answer(call, &out);
    buf_done(&out);
    return err;
}
