/*
 * ring-shelf-fixture - four nodes in one process: their own archives, their own streams on loopback. The
 * first holds nothing; the others are the holders of every place. Each can be told to lie. With a crowd, the
 * last node is none, and searches find what it offers.
 */
#ifndef MNEMON_TESTS_RING_READER_FIXTURE_H
#define MNEMON_TESTS_RING_READER_FIXTURE_H

#include <signal.h>
#include <stdatomic.h>

#include "attest-fixture.h"
#include "await.h"
#include "crawl/engine/attest.h"
#include "node/captures/captures_state.h"
#include "node/crowd/crowd_reader.h"
#include "node/reading/ring_reader.h"
#include "node/rpc/peer_rpc_state.h"
#include "scratch.h"
#include "store/remote/backend_code.h"
#include "unit.h"
#include "web/url/surt.h"

enum { NODES_COUNT = 4, READER = 0, OFFERER = 3, TIMEOUT_MS = 20000, WAITERS_MAX = 2, SECOND_US = 1000000 };

enum lie {
    HONEST,
    LIE_PAYLOAD,
    LIE_HEAD,
    LIE_REQUEST,
    LIE_SIGNATURE,
    LIE_URL,
    LIE_SIZE,
    LIE_NOISE,
    LIE_STRIP,
    LIE_ABSENT,
    LIE_FAIL,
    LIE_INVENT
};

struct fixture;

struct node {
    struct fixture *fixture;
    struct identity identity;
    struct peer_rpc *peer_rpc; /* NULL: it is dead */
    struct peer peer;
    struct instance *instance;
    struct instance_session *session;
    struct captures *captures;
    struct ring_reader_service *service;
    struct offers *offers; /* NULL: there is no crowd */
    atomic_bool is_current;
    atomic_bool has_nothing;       /* at any place, it says of itself */
    const struct document *coming; /* NULL, or what is stored here when it is asked what it has */
    _Atomic(enum lie) lie;
    atomic_bool lies_later;      /* only about what follows the first piece */
    atomic_uint lies_count;      /* of captures that it invents */
    atomic_uint questions_count; /* about captures */
    atomic_ullong first_offset;  /* of the first piece that it was asked for alone */
    atomic_uint stop_after;      /* so many questions: 0 never */
    atomic_bool wants_stop;
};

struct fixture {
    char *root;
    struct node nodes[NODES_COUNT];
    struct captures_session *fetch; /* of the reader */
    struct backend *backend;        /* likewise */
    atomic_bool has_no_holders;     /* they cannot be found now */
    bool has_crowd;
    struct crowd_reader *crowd_reader; /* of the reader */
    atomic_bool is_over;               /* who answers late need not wait any more */
    pthread_mutex_t lock;
    unsigned blames_count;
    struct peer blamed;
    char sentence[128];
    struct buf known_surt; /* lock: what the holders' lists of keys say, if anything */
    enum position_mapping mapping;
};

/* ---- what the modules ask the node for ---- */

static inline bool fixture_admits(void *context, const struct peer *peer) {
    (void)context;
    (void)peer;
    return true;
}

static inline void fixture_blame(void *context, const struct peer *peer, const char *sentence) {
    struct fixture *fixture = ((struct node *)context)->fixture;
    pthread_mutex_lock(&fixture->lock);
    fixture->blames_count++;
    fixture->blamed = *peer;
    snprintf(fixture->sentence, sizeof fixture->sentence, "%s", sentence);
    pthread_mutex_unlock(&fixture->lock);
}

static inline enum err fixture_find_surt(void *context, const struct ringkey *key, struct buf *out) {
    struct fixture *fixture = ((struct node *)context)->fixture;
    (void)key;
    pthread_mutex_lock(&fixture->lock);
    bool is_known = fixture->known_surt.size > 0;
    enum err err = is_known ? buf_put(out, buf_bytes(&fixture->known_surt)) : ERR_NOT_FOUND;
    pthread_mutex_unlock(&fixture->lock);
    return err;
}

static inline enum err fixture_find_holders(void *context, const uint8_t place[RINGKEY_POSITION_SIZE],
                                            struct peer out[RING_READER_HOLDERS_MAX], size_t *ret_count) {
    const struct fixture *fixture = ((struct node *)context)->fixture;
    (void)place;
    for (size_t i = 1; i < NODES_COUNT; i++) {
        out[i - 1] = fixture->nodes[i].peer;
    }
    *ret_count = fixture->has_crowd ? OFFERER - 1 : NODES_COUNT - 1;
    return fixture->has_no_holders ? ERR_TIMEOUT : ERR_OK;
}

static inline size_t fixture_find_all(void *context, struct peer *out, size_t peers_max) {
    const struct fixture *fixture = ((struct node *)context)->fixture;
    for (size_t i = 0; i < NODES_COUNT && i < peers_max; i++) {
        out[i] = fixture->nodes[i].peer;
    }
    return NODES_COUNT;
}

static inline bool fixture_is_current(void *context, const uint8_t place[RINGKEY_POSITION_SIZE]) {
    (void)place;
    return ((struct node *)context)->is_current;
}

static inline bool fixture_has_any(void *context, const uint8_t place[RINGKEY_POSITION_SIZE]) {
    struct node *node = context;
    (void)place;
    if (node->coming != NULL) {
        struct instance_session *session = instance_session_new(node->instance);
        struct stored stored;
        assert_int_equal(
            instance_put(session, node->coming, STORE_REGULAR, INSTANCE_VOLUME_ANY, &stored, NULL), ERR_OK);
        instance_session_free(session);
        node->coming = NULL;
    }
    return !node->has_nothing;
}

/* ---- the crowd ---- */

static inline enum err fixture_search(struct crowd_driver *crowd_driver, const struct wish *wish,
                                      uint32_t timeout_ms, size_t hits_wanted, struct crowd_driver_hit *out,
                                      size_t *ret_count) {
    const struct node *offerer = &((struct fixture *)crowd_driver)->nodes[OFFERER];
    uint8_t memory[CROWD_WISH_SIZE_MAX];
    size_t count;
    (void)timeout_ms;
    (void)hits_wanted;
    *out = (struct crowd_driver_hit){.holder = offerer->peer, .hops_count = 1};
    out->contents_size = offers_have(offerer->offers, wish_write(wish, memory), out->contents);
    if (out->contents_size == 0) {
        return ERR_NOT_FOUND;
    }
    assert_true(wish_read_findings(bytes_of(out->contents, out->contents_size), out->findings, &count));
    out->findings_count = (uint8_t)count;
    *ret_count = 1;
    return ERR_OK;
}

static inline void fixture_distrust(struct crowd_driver *crowd_driver, const struct peer *peer) {
    (void)crowd_driver;
    (void)peer;
}

static inline bool fixture_is_distrusted(struct crowd_driver *crowd_driver, const struct peer *peer) {
    (void)crowd_driver;
    (void)peer;
    return false;
}

static inline bool fixture_trusts(void *context, const uint8_t signer[PEER_KEY_SIZE]) {
    const struct fixture *fixture = ((struct node *)context)->fixture;
    return memcmp(signer, fixture->nodes[1].identity.key, PEER_KEY_SIZE) == 0;
}

static inline void fixture_start_crowd(struct node *node, const char *directory) {
    struct fixture *fixture = node->fixture;
    struct offers_config offers = {.directory = directory, .peer_rpc = node->peer_rpc};
    assert_int_equal(offers_new(&offers, &node->offers, NULL), ERR_OK);
    struct crowd_reader_config config = {
        .crowd_driver = (struct crowd_driver *)fixture,
        .offers = node->offers,
        .captures = node->captures,
        .peer_rpc = node->peer_rpc,
        .find = fixture_search,
        .distrust = fixture_distrust,
        .is_distrusted = fixture_is_distrusted,
        .trusts = fixture_trusts,
        .blame = fixture_blame,
        .context = node,
    };
    if (node == &fixture->nodes[READER]) {
        fixture->crowd_reader = crowd_reader_new(&config);
        assert_non_null(fixture->crowd_reader);
    }
}

/* ---- lies ---- */

static inline void fixture_spoil(struct buf *answer, const char *text, size_t offset) {
    size_t at = bytes_find(buf_bytes(answer), bytes_of_string(text));
    assert_true(at + offset < answer->size);
    answer->data[at + offset] ^= 1;
}

/* One hexadecimal digit of it becomes another. */
static inline void fixture_spoil_signature(const struct fixture *fixture, struct buf *answer) {
    char key[IDENTITY_TEXT_SIZE];
    identity_key_format(fixture->nodes[1].identity.key, key);
    size_t at = bytes_find(buf_bytes(answer), bytes_of_string(key)) + IDENTITY_TEXT_SIZE;
    assert_true(at < answer->size);
    answer->data[at] = answer->data[at] == '0' ? '1' : '0';
}

/* Another head, and no signature that would tell. */
static inline void fixture_strip(struct buf *answer) {
    struct captures_answer given;
    struct backend_code_document received;
    struct buf out;
    struct buf description;
    buf_init(&out, PEER_RPC_ANSWER_SIZE_MAX);
    buf_init(&description, BACKEND_CODE_META_SIZE_MAX);
    assert_int_equal(captures_code_read_answer(buf_bytes(answer), &given, NULL), ERR_OK);
    assert_int_equal(backend_code_read_document(given.description, &received, NULL), ERR_OK);
    struct document document = received.document;
    document.head = BYTES("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    document.signature = bytes_of(NULL, 0);
    document.sum = &received.sum;
    assert_int_equal(backend_code_put_meta(&description, &document, STORE_REGULAR, BACKEND_CODE_LEFT_OUT),
                     ERR_OK);
    given.description = buf_bytes(&description);
    assert_int_equal(captures_code_put_answer(&out, &given), ERR_OK);
    buf_clear(answer);
    assert_int_equal(buf_put(answer, buf_bytes(&out)), ERR_OK);
    buf_done(&out);
    buf_done(&description);
}

static inline enum err fixture_give(void *context, const struct peer *from, struct bytes question,
                                    struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    struct captures_question asked;
    assert_int_equal(captures_code_read_question(question, &asked, NULL), ERR_OK);
    unsigned count = ++node->questions_count;
    if (!asked.wants_description && node->first_offset == 0) {
        node->first_offset = asked.offset;
    }
    if (node->stop_after > 0 && count >= node->stop_after) {
        node->wants_stop = true;
        usleep(100000); /* the thread that ends this node has the time to say so */
    }
    enum err err = captures_give(node->captures, from, question, answer, detail);
    if (err != ERR_OK || (node->lies_later && asked.wants_description)) {
        return err;
    }
    switch ((enum lie)node->lie) {
    case HONEST:
        break;
    case LIE_PAYLOAD:
        answer->data[answer->size - 1] ^= 1;
        break;
    case LIE_HEAD:
        fixture_spoil(answer, "HTTP/1.1 200 OK", 14);
        break;
    case LIE_REQUEST:
        fixture_spoil(answer, "GET / HTTP/1.1", 4);
        break;
    case LIE_SIGNATURE:
        fixture_spoil_signature(node->fixture, answer);
        break;
    case LIE_URL:
        fixture_spoil(answer, "http://", 7);
        break;
    case LIE_SIZE:
        buf_truncate(answer, answer->size - 1);
        break;
    case LIE_NOISE:
        memset(answer->data, 0xee, answer->size);
        break;
    case LIE_STRIP:
        fixture_strip(answer);
        break;
    case LIE_ABSENT:
        buf_truncate(answer, 1);
        answer->data[0] = 0;
        break;
    case LIE_INVENT: /* has everything */
        buf_clear(answer);
        buf_put(answer, BYTES("as you wish"));
        break;
    case LIE_FAIL:
        return err_set(detail, ERR_IO, "the disk is broken");
    }
    return ERR_OK;
}

/* Of example.org/a it answers for all, with captures that nobody ever made: one a second from the 10th on, as
 * many as lies_count says. It gives them, too. */
static inline enum err fixture_invent(void *context, const struct peer *from, struct bytes question,
                                      struct buf *answer, struct err_detail *detail) {
    const struct node *node = context;
    struct backend_code_page_end end = {.is_end = true};
    (void)from;
    (void)question;
    (void)detail;
    buf_put_byte(answer, 1);
    for (unsigned i = 0; i < node->lies_count; i++) {
        struct capture capture = {
            .surt = BYTES("org,example)/a"),
            .time_us = (10 + i) * (int64_t)SECOND_US,
            .location = {.segment = 1, .length = 1},
            .url = BYTES("http://example.org/a"),
            .status = 200,
            .digest = {(uint8_t)i},
        };
        backend_code_put_capture(answer, &capture, BACKEND_CODE_FLAGS_ALL);
    }
    backend_code_put_page_end(answer, &end);
    return answer->err;
}

static inline void fixture_make_inventor(struct node *node, unsigned count) {
    node->lies_count = count;
    node->peer_rpc->services[PEER_RPC_WALK].handler = fixture_invent; /* nobody has asked it yet */
    node->peer_rpc->services[PEER_RPC_WALK].context = node;
}

/* ---- life ---- */

static inline void fixture_start_peer_rpc(struct node *node, unsigned host) {
    struct fixture *fixture = node->fixture;
    struct peer_rpc_config config = {
        .identity = &node->identity, .admits = fixture_admits, .blame = fixture_blame, .context = node};
    char text[32];
    snprintf(text, sizeof text, "127.0.0.%u", host);
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    assert_true(address_parse(bytes_of_string(text), 0, &config.address));
    assert_int_equal(peer_rpc_new(&config, &node->peer_rpc, NULL), ERR_OK);
    struct captures_config captures = {
        .instance = node->instance,
        .peer_rpc = node->peer_rpc,
        .scratch_directory = fixture->root,
        .mapping = (uint8_t)fixture->mapping,
        .timeout_ms = TIMEOUT_MS,
        .find_surt = fixture_find_surt,
        .blame = fixture_blame,
        .context = node,
    };
    struct ring_reader_service_config service = {
        .instance = node->instance,
        .peer_rpc = node->peer_rpc,
        .mapping = (uint8_t)fixture->mapping,
        .is_current = fixture_is_current,
        .context = node,
    };
    node->captures = captures_new(&captures);
    node->service = ring_reader_service_new(&service);
    assert_non_null(node->captures);
    assert_non_null(node->service);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_CAPTURE, fixture_give, node);
    node->peer.address = stream_server_address(node->peer_rpc->server);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
}

static inline void fixture_start(struct fixture *fixture, unsigned index) {
    struct node *node = &fixture->nodes[index];
    char path[SCRATCH_PATH_SIZE];
    char name[8];
    node->fixture = fixture;
    snprintf(name, sizeof name, "%u", index);
    struct instance_config config = {.directory = scratch_path(fixture->root, name, path)};
    assert_int_equal(instance_open(&config, &node->instance, NULL), ERR_OK);
    fixture_start_peer_rpc(node, index + 2);
    if (fixture->has_crowd) {
        fixture_start_crowd(node, config.directory);
    }
    if (index == READER) {
        struct ring_reader_config backend = {
            .peer_rpc = node->peer_rpc,
            .captures = node->captures,
            .offers = node->offers,
            .obtain = fixture->crowd_reader,
            .mapping = (uint8_t)fixture->mapping,
            .timeout_ms = TIMEOUT_MS,
            .waiters_max = WAITERS_MAX,
            .find_holders = fixture_find_holders,
            .find_all = fixture_find_all,
            .is_current = fixture_is_current,
            .has_any = fixture_has_any,
            .blame = fixture_blame,
            .context = node,
        };
        memcpy(backend.self, node->identity.key, PEER_KEY_SIZE);
        fixture->backend = ring_reader_new(fixture->root, NULL);
        assert_non_null(fixture->backend);
        instance_set_guest(node->instance, fixture->backend);
        ring_reader_begin(fixture->backend, &backend);
        fixture->fetch = captures_session_new(node->captures);
    }
    node->session = instance_session_new(node->instance);
    instance_session_set_guest(node->session, index == READER);
    node->is_current = index != READER;
    assert_int_equal(peer_rpc_start(node->peer_rpc, NULL), ERR_OK);
}

static inline void fixture_stop_peer_rpc(struct node *node) {
    if (node->peer_rpc != NULL && node->peer_rpc->is_running) {
        peer_rpc_stop(node->peer_rpc);
    }
}

static inline int fixture_setup_as(void **state, enum position_mapping mapping, bool has_crowd) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->mapping = mapping;
    fixture->has_crowd = has_crowd;
    pthread_mutex_init(&fixture->lock, NULL);
    buf_init(&fixture->known_surt, INDEX_SURT_SIZE_MAX);
    if (scratch_make((void **)&fixture->root) != 0) {
        return -1;
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        fixture_start(fixture, i);
    }
    *state = fixture;
    return 0;
}

static inline int fixture_setup(void **state) {
    return fixture_setup_as(state, POSITION_BY_URL, false);
}

static inline int fixture_teardown(void **state) {
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        struct node *node = &fixture->nodes[i];
        fixture_stop_peer_rpc(node);
        if (i == READER) {
            ring_reader_end(fixture->backend);
            captures_session_free(fixture->fetch);
        }
        if (i == READER && fixture->has_crowd) {
            crowd_reader_free(fixture->crowd_reader);
        }
        if (node->offers != NULL) {
            offers_free(node->offers);
        }
        captures_free(node->captures);
        ring_reader_service_free(node->service);
        peer_rpc_free(node->peer_rpc);
        instance_session_free(node->session); /* sessions may outlive the ring */
        instance_close(node->instance);
        identity_done(&node->identity);
    }
    buf_done(&fixture->known_surt);
    pthread_mutex_destroy(&fixture->lock);
    int result = scratch_remove((void **)&fixture->root);
    free(fixture);
    return result;
}

/* ---- load ---- */

struct fixture_load {
    struct peer_rpc *peer_rpc;
    bool is_busy;
    atomic_bool is_set;
};

static inline void fixture_set_load(void *context) {
    struct fixture_load *load = context;
    load->peer_rpc->reads =
        (struct peer_rpc_meter){.rate = load->is_busy, .free_us = load->is_busy ? UINT64_MAX / 2 : 0};
    load->is_set = true;
}

/* From now on it says to readers that it is busy, or does so no more. */
static inline void fixture_set_busy(struct node *node, bool is_busy) {
    struct fixture_load load = {.peer_rpc = node->peer_rpc, .is_busy = is_busy};
    assert_int_equal(peer_rpc_post(node->peer_rpc, fixture_set_load, &load), ERR_OK);
    await_that(load.is_set);
}

/* ---- captures ---- */

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
#define HEAD_CHUNKED "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"

static inline struct document fixture_document(const char *url, int64_t seconds, struct bytes body) {
    return (struct document){
        .url = bytes_of_string(url),
        .time_us = seconds * SECOND_US,
        .head = BYTES(HEAD),
        .body = body,
        .request = BYTES("GET / HTTP/1.1\r\n\r\n"),
        .ip_address = BYTES("192.0.2.1"),
    };
}

/* By the first holder, as is done now or as it was done first. */
static inline void fixture_sign_as(struct fixture *fixture, struct document *document, bool is_first_version,
                                   char text[ATTEST_TEXT_SIZE]) {
    struct document_hasher hasher;
    struct document_sum sum;
    struct buf message;
    const struct identity *identity = &fixture->nodes[1].identity;
    buf_init(&message, ATTEST_MESSAGE_SIZE_MAX);
    assert_int_equal(document_hasher_init(&hasher), ERR_OK);
    document_hasher_run(&hasher, document, &sum);
    document->sum = &sum;
    if (is_first_version) {
        attest_fixture_sign_first(identity, &hasher.sha256, document, text);
    } else {
        assert_int_equal(attest_sign(identity, &hasher.sha256, &message, document, text), ERR_OK);
    }
    document->sum = NULL;
    document_hasher_done(&hasher);
    buf_done(&message);
}

/* Imported by the first holder. */
static inline void fixture_sign_import(struct fixture *fixture, struct document *document,
                                       char text[ATTEST_TEXT_SIZE]) {
    struct document_hasher hasher;
    struct document_sum sum;
    struct buf message;
    buf_init(&message, ATTEST_MESSAGE_SIZE_MAX);
    assert_int_equal(document_hasher_init(&hasher), ERR_OK);
    document_hasher_run(&hasher, document, &sum);
    document->sum = &sum;
    assert_int_equal(
        attest_sign_import(&fixture->nodes[1].identity, &hasher.sha256, &message, document, text), ERR_OK);
    document->sum = NULL;
    document_hasher_done(&hasher);
    buf_done(&message);
}

/* Signed by the first holder. The text must live as long as the document. */
static inline void fixture_sign(struct fixture *fixture, struct document *document,
                                char text[ATTEST_TEXT_SIZE]) {
    fixture_sign_as(fixture, document, false, text);
}

static inline void fixture_put_at(struct fixture *fixture, unsigned index, const struct document *document) {
    struct stored stored;
    assert_int_equal(instance_put(fixture->nodes[index].session, document, STORE_REGULAR, INSTANCE_VOLUME_ANY,
                                  &stored, NULL),
                     ERR_OK);
}

static inline void fixture_put(struct fixture *fixture, const struct document *document) {
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture_put_at(fixture, i, document);
    }
}

static inline void fixture_surt(const char *url, struct buf *out) {
    struct canon canon;
    canon_init(&canon);
    buf_clear(out);
    assert_int_equal(canon_run(&canon, bytes_of_string(url), NULL), ERR_OK);
    assert_int_equal(surt_put(out, &canon), ERR_OK);
    canon_done(&canon);
}

/* Of a body that is its own payload. */
static inline struct ringkey fixture_key(struct fixture *fixture, const char *url, int64_t seconds,
                                         struct bytes payload) {
    uint8_t place[RINGKEY_POSITION_SIZE];
    uint8_t digest[SHA256_SIZE];
    struct sha256 sha256;
    assert_int_equal(sha256_init(&sha256), ERR_OK);
    pthread_mutex_lock(&fixture->lock); /* a holder that lost a race may still be answering */
    fixture_surt(url, &fixture->known_surt);
    position_of_surt(&sha256, buf_bytes(&fixture->known_surt), fixture->mapping, place);
    pthread_mutex_unlock(&fixture->lock);
    sha256_digest(&sha256, payload, digest);
    sha256_done(&sha256);
    return ringkey_make(place, seconds * SECOND_US, digest);
}

#endif
