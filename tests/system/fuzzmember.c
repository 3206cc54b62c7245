/*
 * fuzzmember - mnemon as it should not be: a whole member whose answers and datagrams are changed by lot.
 *
 * Beside peerfuzz.c, which asks, this one is asked: it is in the ring, the crowd and the groups as any node,
 * so that others compare with it, fetch from it, gossip with it. The linker puts these in the place of the
 * true functions (--wrap): of its answers over streams every second one is changed, of its datagrams every
 * fourth is followed by a changed copy. $PEER_FUZZ_SEED is the seed; what is said when depends on the others,
 * too.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "net/datagram.h"
#include "node/rpc/peer_rpc.h"

enum { ANSWER_GROWS_MAX = 1 << 12 };

enum err __real_datagram_send(struct datagram *datagram, const struct peer *to, enum datagram_kind kind,
                              struct bytes message);
enum err __wrap_datagram_send(struct datagram *datagram, const struct peer *to, enum datagram_kind kind,
                              struct bytes message);
void __real_peer_rpc_give(struct peer_rpc *peer_rpc, const struct peer_rpc_ticket *ticket, enum err err,
                          struct bytes answer, const struct err_detail *detail);
void __wrap_peer_rpc_give(struct peer_rpc *peer_rpc, const struct peer_rpc_ticket *ticket, enum err err,
                          struct bytes answer, const struct err_detail *detail);
void __real_peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service,
                           peer_rpc_handler *handler, void *context);
void __wrap_peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service,
                           peer_rpc_handler *handler, void *context);

/* Each message has a generator of its own: the two are sent by two threads. */
static struct prng next_prng(void) {
    static atomic_uint_least64_t messages_count;
    const char *seed = getenv("PEER_FUZZ_SEED");
    struct prng prng;
    prng_init_stream(&prng, seed != NULL ? strtoull(seed, NULL, 10) : 0, messages_count++);
    return prng;
}

/* ---- datagrams ---- */

enum err __wrap_datagram_send(struct datagram *datagram, const struct peer *to, enum datagram_kind kind,
                              struct bytes message) {
    uint8_t memory[DATAGRAM_PAYLOAD_SIZE_MAX];
    struct prng prng = next_prng();
    enum err err = __real_datagram_send(datagram, to, kind, message);
    if (prng_below(&prng, 4) == 0) {
        memcpy(memory, message.data, message.size);
        size_t size = mutate(&prng, memory, message.size, sizeof memory, message);
        (void)__real_datagram_send(datagram, to, kind, bytes_of(memory, size));
    }
    return err;
}

/* ---- answers ---- */

static struct {
    peer_rpc_handler *handler;
    void *context;
} true_services[PEER_RPC_SERVICES_COUNT];

static enum err answer_falsely(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    size_t service = (size_t)(uintptr_t)context;
    struct prng prng = next_prng();
    enum err err =
        true_services[service].handler(true_services[service].context, from, question, answer, detail);
    if (prng_below(&prng, 2) == 0 && buf_reserve(answer, ANSWER_GROWS_MAX) == ERR_OK) {
        size_t size_max = answer->size + ANSWER_GROWS_MAX;
        size_max = size_max < PEER_RPC_ANSWER_SIZE_MAX ? size_max : PEER_RPC_ANSWER_SIZE_MAX;
        answer->size = mutate(&prng, answer->data, answer->size, size_max, question);
        return ERR_OK; /* also where it had nothing to say */
    }
    return err;
}

/* Answers that come later. */
void __wrap_peer_rpc_give(struct peer_rpc *peer_rpc, const struct peer_rpc_ticket *ticket, enum err err,
                          struct bytes answer, const struct err_detail *detail) {
    struct prng prng = next_prng();
    struct buf changed;
    buf_init(&changed, PEER_RPC_ANSWER_SIZE_MAX);
    if (prng_below(&prng, 2) == 0 && buf_put(&changed, answer) == ERR_OK &&
        buf_reserve(&changed, ANSWER_GROWS_MAX) == ERR_OK) {
        changed.size = mutate(&prng, changed.data, changed.size, answer.size + ANSWER_GROWS_MAX, answer);
        __real_peer_rpc_give(peer_rpc, ticket, ERR_OK, buf_bytes(&changed), detail);
    } else {
        __real_peer_rpc_give(peer_rpc, ticket, err, answer, detail);
    }
    buf_done(&changed);
}

void __wrap_peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service,
                           peer_rpc_handler *handler, void *context) {
    true_services[service].context = context;
    true_services[service].handler = handler;
    __real_peer_rpc_serve(peer_rpc, service, answer_falsely, (void *)(uintptr_t)service);
}
