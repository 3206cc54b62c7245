/* What the origin gave becomes a capture: signed by this node, offered, stored where that is wanted. */
#include "crawl/engine/attest.h"
#include "node/proxy/proxy_worker.h"

/* The body without its chunks, in one piece. */
static enum err read_payload(struct proxy_worker *worker, const struct document *document,
                             struct bytes *ret_payload) {
    struct payload *payload = &worker->hasher.payload;
    struct bytes inputs[] = {document->head, document->body};
    struct bytes part;
    scratch_clear(&worker->payload);
    payload_start(payload, true);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        while (payload_next(payload, &inputs[i], &part)) {
            scratch_put(&worker->payload, part);
        }
    }
    if (payload_finish(payload, &part)) {
        scratch_put(&worker->payload, part);
    }
    enum err err = worker->payload.err;
    return err == ERR_OK ? scratch_bytes(&worker->payload, ret_payload) : err;
}

static void sign(struct proxy_worker *worker, struct captured *captured, char attest[ATTEST_TEXT_SIZE]) {
    const struct identity *identity = transport_identity(worker->config->transport);
    if (attest_sign(identity, &worker->hasher.sha256, &worker->text, &captured->document, attest) == ERR_OK) {
        captured->is_signed = true;
        memcpy(captured->signer, identity->key, sizeof captured->signer);
    }
}

static void offer(struct proxy_worker *worker, struct captured *captured) {
    struct offers *offers = worker->config->crowd->offers;
    struct ring_id place;
    uint8_t place_bytes[RING_ID_SIZE];
    struct bytes surt;
    if (offers == NULL || !captured->is_signed ||
        transport_key(worker->config->transport, captured->document.url, &place, NULL) != ERR_OK ||
        proxy_worker_key(worker, captured->document.url, &surt) != ERR_OK ||
        read_payload(worker, &captured->document, &captured->payload) != ERR_OK) {
        return;
    }
    captured->surt = surt;
    ring_id_write(place, place_bytes);
    struct ringkey key = ringkey_make(place_bytes, captured->document.time_us, captured->sum.digest);
    offers_put(offers, &key, captured, surt, bytes_of(NULL, 0));
}

/* "192.0.2.1" of "192.0.2.1:80", "2001:db8::1" of "[2001:db8::1]:80". */
static struct bytes ip_of(const struct address *address, char text[ADDRESS_TEXT_SIZE_MAX]) {
    struct bytes whole = bytes_of_string(address_format(address, text));
    size_t end = whole.size;
    while (whole.data[--end] != ':') {
    }
    return whole.data[0] == '[' ? bytes_slice(whole, 1, end - 1) : bytes_slice(whole, 0, end);
}

/* What cannot be stored now is not: the page was shown all the same. */
static void store(struct proxy_worker *worker, const struct document *document) {
    struct stored stored;
    if (worker->session == NULL) {
        worker->session = instance_session_new(archive_instance(worker->config->archive));
    }
    if (worker->session != NULL) {
        enum err err =
            instance_put(worker->session, document, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL);
        (void)err;
    }
}

/* What the rules hide is neither shown to others nor stored. */
static bool is_allowed(struct proxy_worker *worker, const struct proxy_job *job) {
    struct bytes surt;
    return proxy_worker_key(worker, buf_bytes(&job->url), &surt) == ERR_OK &&
           access_check(worker->config->access, surt, job->time_us) == ACCESS_ALLOW;
}

/* The request is not kept: it says who reads, in which language and from where. */
void proxy_worker_keep(struct proxy_worker *worker, struct proxy_job *job) {
    char ip[ADDRESS_TEXT_SIZE_MAX];
    char attest[ATTEST_TEXT_SIZE];
    struct bytes body;
    if (!is_allowed(worker, job) || scratch_bytes(&job->body, &body) != ERR_OK) {
        return;
    }
    struct captured captured = {
        .document =
            {
                .url = buf_bytes(&job->url),
                .time_us = job->time_us,
                .head = buf_bytes(&job->head),
                .body = body,
                .ip_address = ip_of(&job->address, ip),
                .tls = job->is_secure ? BYTES("verified") : bytes_of(NULL, 0),
            },
    };
    document_hasher_run(&worker->hasher, &captured.document, &captured.sum);
    captured.document.sum = &captured.sum;
    sign(worker, &captured, attest);
    offer(worker, &captured);
    if (worker->config->archives) {
        store(worker, &captured.document);
    }
}
