/* PEER_RPC_WALK: a page of the captures of this node. is_sure:bool, then a page of
 * store/remote/backend_code.h.
 */
#include <stdlib.h>

#include "node/reading/ring_reader.h"
#include "node/reading/ring_reader_scope.h"
#include "store/instance/merge.h"
#include "store/remote/backend_code.h"

/* Captures of one SURT and time stay on one page, up to here; more of them nobody has. */
enum { PAGE_SIZE_MAX = 768 << 10 };

struct ring_reader_service {
    struct ring_reader_service_config config;
    struct instance_session *session; /* of the thread of peer_rpc; NULL: not used yet */
    struct sha256 sha256;
    struct buf surt; /* of the capture before */
    struct buf next;
};

/* Where the next page begins, so that this capture is its first. */
static enum err set_next(struct ring_reader_service *service, const struct capture *capture,
                         bool in_reverse) {
    buf_clear(&service->next);
    index_put_capture_prefix(&service->next, capture->surt, capture->time_us + in_reverse);
    return service->next.err;
}

static enum err fill_page(struct ring_reader_service *service, const struct backend_code_walk *walk,
                          struct merge *merge, struct buf *page, struct err_detail *detail) {
    struct capture capture;
    int64_t time_us = 0;
    size_t start = page->size;
    uint32_t count = 0;
    enum err err;
    struct backend_code_page_end end = {.is_end = true};
    while ((err = merge_next(merge, &capture, detail)) == ERR_OK) {
        bool is_neighbour =
            count > 0 && capture.time_us == time_us && bytes_equal(capture.surt, buf_bytes(&service->surt));
        if (!is_neighbour && (count >= walk->count_max || page->size - start >= BACKEND_CODE_PAGE_SIZE)) {
            err = set_next(service, &capture, walk->in_reverse);
            end = (struct backend_code_page_end){.next = buf_bytes(&service->next)};
            break;
        }
        buf_clear(&service->surt);
        buf_put(&service->surt, capture.surt);
        time_us = capture.time_us;
        if (page->size - start < PAGE_SIZE_MAX) {
            backend_code_put_capture(page, &capture);
        }
        count++;
    }
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        return err;
    }
    backend_code_put_page_end(page, &end);
    return page->err != ERR_OK ? page->err : service->surt.err;
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
    bool sure = err == ERR_OK && is_sure(service, &walk);
    if (err == ERR_OK) {
        err = merge_open(service->session, walk.from, walk.to, walk.in_reverse, &merge, detail);
    }
    if (err != ERR_OK) {
        return err;
    }
    size_t start = out->size;
    buf_put_byte(out, sure);
    err = out->err == ERR_OK ? fill_page(service, &walk, merge, out, detail) : out->err;
    if (err == ERR_OK && merge_is_partial(merge)) {
        out->data[start] = false; /* a volume is down */
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
    buf_init(&service->surt, INDEX_SURT_SIZE_MAX);
    buf_init(&service->next, BACKEND_CODE_KEY_SIZE_MAX);
    peer_rpc_serve(config->peer_rpc, PEER_RPC_WALK, service_answer, service);
    return service;
}

void ring_reader_service_free(struct ring_reader_service *service) {
    instance_session_free(service->session);
    sha256_done(&service->sha256);
    buf_done(&service->surt);
    buf_done(&service->next);
    free(service);
}
