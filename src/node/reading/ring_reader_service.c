/* PEER_RPC_WALK: a page of the captures of this node. How sure it is (ring_reader_state.h), then a page of
 * store/remote/backend_code.h.
 */
#include <stdlib.h>

#include "node/reading/ring_reader.h"
#include "node/reading/ring_reader_scope.h"
#include "node/reading/ring_reader_state.h"
#include "node/versions/dialects.h"
#include "store/instance/merge.h"
#include "store/remote/backend_page.h"

struct ring_reader_service {
    struct ring_reader_service_config config;
    struct instance_session *session; /* of the thread of peer_rpc; NULL: not used yet */
    struct sha256 sha256;
};

static enum err service_next(void *source, struct capture *ret_capture, struct err_detail *detail) {
    return merge_next(source, ret_capture, detail);
}

/* Does this node answer for all holders of what is asked for? */
static bool is_sure(struct ring_reader_service *service, const struct backend_code_walk *walk) {
    uint8_t position[RINGKEY_POSITION_SIZE];
    const struct ring_reader_service_config *config = &service->config;
    return ring_reader_scope(&service->sha256, walk->from, walk->to, config->mapping, position) &&
           config->is_current(config->context, position);
}

static enum err service_answer(void *context, const struct peer *from, struct bytes question, struct buf *out,
                               struct err_detail *detail) {
    struct ring_reader_service *service = context;
    struct backend_code_walk walk;
    struct merge *merge;
    enum err err = peer_rpc_begin_read(service->config.peer_rpc, from, PEER_RPC_READ_LIST, detail);
    if (err == ERR_OK) {
        err = backend_code_read_walk(question, &walk, detail);
    }
    if (err == ERR_OK && walk.to.size > 0 && bytes_compare(walk.from, walk.to) >= 0) {
        err = err_set(detail, ERR_INVALID, "a walk that ends before it begins");
    }
    if (err == ERR_OK && service->session == NULL) {
        service->session = instance_session_new(service->config.instance);
        err = service->session == NULL ? ERR_MEMORY : ERR_OK;
    }
    struct dialects *dialects = service->config.dialects;
    bool knows_witnesses = dialects != NULL && dialects_has(dialects, from, DIALECT_WITNESSES);
    bool knows_vouched = dialects != NULL && dialects_has(dialects, from, DIALECT_PROVENANCE);
    walk.flags = (uint8_t)((knows_witnesses ? BACKEND_CODE_FLAGS_WITNESS : 0) |
                           (knows_vouched ? BACKEND_CODE_FLAGS_VOUCHED : 0));
    bool sure = err == ERR_OK && is_sure(service, &walk);
    if (err == ERR_OK) {
        err = merge_open(service->session, walk.from, walk.to, walk.in_reverse, &merge, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    size_t start = out->size;
    buf_put_byte(out, sure ? RING_READER_SURE : RING_READER_UNSURE);
    err = out->err == ERR_OK ? backend_page_put(out, &walk, service_next, merge, detail) : out->err;
    if (err == ERR_OK && merge_is_partial(merge)) {
        out->data[start] = RING_READER_LACKS; /* a volume is down */
    }
    merge_close(merge);
    return err;
}

struct ring_reader_service *ring_reader_service_new(const struct ring_reader_service_config *config) {
    struct ring_reader_service *service = calloc(1, sizeof *service);
    if (service == NULL || sha256_init(&service->sha256) != ERR_OK) {
        free(service);
        return NULL;
    }
    service->config = *config;
    peer_rpc_serve(config->peer_rpc, PEER_RPC_WALK, service_answer, service);
    return service;
}

void ring_reader_service_free(struct ring_reader_service *service) {
    instance_session_free(service->session);
    sha256_done(&service->sha256);
    free(service);
}
