/*
 * ringliar - mnemon as it should not be: a member of a ring that lies about captures, for the tests.
 *
 * The linker puts these in the place of the true functions (--wrap). $RING_LIE says what it does to others,
 * several with commas between them:
 *
 *      content    the payloads that it gives have a byte changed; where it gives none, as the next
 *      forged     the heads of what it gives are changed, so that the signatures are wrong
 *      request    likewise the requests, which say then that somebody else asked
 *      claims     it says that it has whatever anybody has, stores nothing of it, and proves it by lot
 *      ranges     its comparisons and offers make no sense: counts and bounds beyond all limits
 *      links      it has found links without end: out of scope, private, no URLs at all
 *      invents    of every URL it lists one capture, of this minute, that never was, and none that is; asked
 *                 for it, it gives nonsense
 *      decrees    whoever asks for decrees gets thousands of empty ones, a job that ignores robots.txt, and a
 * deletion, all signed with keys that nobody has invited
 *
 * $RING_LIE_URL begins some of the links, and is the seed of that job.
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../copies-put.h"
#include "base/clock.h"
#include "node/captures/captures_code.h"
#include "node/crawl/crawl_loop.h"
#include "node/reading/ring_reader_scope.h"
#include "node/ring/decrees_state.h"
#include "node/ring/deletion_text.h"
#include "protocol/copies/reconcile.h"
#include "store/remote/backend_code.h"

static bool lies(const char *lie) {
    const char *wanted = getenv("RING_LIE");
    return wanted != NULL && strstr(wanted, lie) != NULL;
}

/* ---- what it gives ---- */

/* What the program itself serves, by service. */
static peer_rpc_handler *true_handlers[UINT8_MAX + 1];

static enum err give(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    static const char status[] = "HTTP/1.1 200 OK";
    enum err err = true_handlers[PEER_RPC_CAPTURE](context, from, question, answer, detail);
    if (lies("invents") && err == ERR_OK && answer->size < sizeof status) { /* it has none */
        return buf_put(answer, BYTES("take my word for it"));
    }
    if (err != ERR_OK || answer->size < sizeof status) {
        return err;
    }
    static unsigned turn;
    bool is_second = turn++ % 2 == 1; /* with both lies, the one and then the other */
    bool is_forged = lies("forged") && (!is_second || !lies("content"));
    if (lies("content") && (is_second || !lies("forged"))) {
        struct captures_answer given;
        is_forged = captures_code_read_answer(buf_bytes(answer), &given, NULL) == ERR_OK &&
                    given.piece.size == 0;            /* who has the payload asks for the rest alone */
        answer->data[answer->size - 1] ^= !is_forged; /* of the payload, or of what it was packed to */
    }
    uint8_t *head = is_forged ? memmem(answer->data, answer->size, status, sizeof status - 1) : NULL;
    if (head != NULL) {
        memcpy(head, "HTTP/1.1 200 No", sizeof status - 1);
    }
    static const char agent[] = "User-Agent: ";
    uint8_t *request = lies("request") ? memmem(answer->data, answer->size, agent, sizeof agent - 1) : NULL;
    if (request != NULL) {
        request[sizeof agent - 1] ^= 1;
    }
    return ERR_OK;
}

/* ---- what it lists ---- */

void __real_peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service,
                           peer_rpc_handler *handler, void *context);
void __wrap_peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service,
                           peer_rpc_handler *handler, void *context);

static enum err list_invented(void *context, const struct peer *from, struct bytes question,
                              struct buf *answer, struct err_detail *detail) {
    enum { SECOND_US = 1000000, MINUTE_US = 60 * SECOND_US };
    struct backend_code_walk walk;
    struct backend_code_page_end end = {.is_end = true};
    struct capture capture;
    struct wire_reader page;
    struct bytes surt;
    struct buf given;
    int64_t now_us = clock_wall_us(&clock_system);
    buf_init(&given, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err = true_handlers[PEER_RPC_WALK](context, from, question, &given, detail);
    wire_reader_init(&page, bytes_skip(buf_bytes(&given), 1)); /* behind "I am sure" */
    bool is_lie = err == ERR_OK && backend_code_read_walk(question, &walk, NULL) == ERR_OK &&
                  ring_reader_scope_is_url(walk.from, walk.to, &surt) &&
                  backend_code_next_capture(&page, &capture, &end, NULL) == ERR_OK;
    if (is_lie) {
        capture.time_us = now_us - now_us % MINUTE_US;
        memset(capture.digest, 0, sizeof capture.digest);
        buf_put_byte(answer, 1);
        backend_code_put_capture(answer, &capture, BACKEND_CODE_FLAGS_ALL);
        backend_code_put_page_end(answer, &(struct backend_code_page_end){.is_end = true});
    } else if (err == ERR_OK) {
        buf_put(answer, buf_bytes(&given));
    }
    buf_done(&given);
    return err == ERR_OK ? answer->err : err;
}

/* ---- what it claims ---- */

static enum err answer_compare(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    enum err err = true_handlers[PEER_RPC_COMPARE](context, from, question, answer, detail);
    if (err == ERR_OK && lies("claims")) {
        buf_clear(answer);
        buf_put_byte(answer, RECONCILE_SKIP << 6 | RECONCILE_POSITION_SIZE); /* we are equal */
    }
    return err;
}

static enum err say_yes(struct bytes question, struct buf *answer, unsigned width, uint8_t yes) {
    uint8_t values[COPIES_KEYS_MAX];
    struct copies_keys keys;
    enum err err = copies_read_keys(question, &keys, NULL);
    if (err == ERR_OK) {
        memset(values, yes, sizeof values);
        buf_put_copies_bits(answer, values, keys.count, width);
    }
    return err;
}

static enum err answer_offer(void *context, const struct peer *from, struct bytes question,
                             struct buf *answer, struct err_detail *detail) {
    return lies("claims") ? say_yes(question, answer, 2, COPIES_HAS)
                          : true_handlers[PEER_RPC_OFFER](context, from, question, answer, detail);
}

static enum err answer_confirm(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    return lies("claims") ? say_yes(question, answer, 1, 1)
                          : true_handlers[PEER_RPC_CONFIRM](context, from, question, answer, detail);
}

static enum err answer_prove(void *context, const struct peer *from, struct bytes question,
                             struct buf *answer, struct err_detail *detail) {
    uint8_t proof[COPIES_PROOF_SIZE];
    if (!lies("claims")) {
        return true_handlers[PEER_RPC_PROVE](context, from, question, answer, detail);
    }
    randombytes_buf(proof, sizeof proof);
    return buf_put(answer, bytes_of(proof, sizeof proof));
}

/* ---- what strangers decree ---- */

static void sign_as(const void *signer, const char *context, struct bytes message,
                    uint8_t out[CHARTER_SIGNATURE_SIZE]) {
    identity_sign(signer, context, message, out);
}

static void put_stranger(struct buf *out, const uint8_t ring[CHARTER_ID_SIZE], unsigned number,
                         enum decree_kind kind, struct bytes text) {
    static uint8_t encoded[DECREE_SIZE_MAX];
    char name[32];
    uint8_t seed[IDENTITY_SEED_SIZE];
    uint8_t head[WIRE_VARINT_SIZE_MAX];
    struct identity stranger;
    struct wire_writer writer;
    randombytes_buf(seed, sizeof seed);
    if (identity_from_seed(&stranger, seed) != ERR_OK) {
        abort();
    }
    snprintf(name, sizeof name, "stranger-%u", number);
    struct decree decree = {.kind = kind, .name = bytes_of_string(name), .version = 1 + number, .text = text};
    memcpy(decree.ring, ring, CHARTER_ID_SIZE);
    memcpy(decree.author, stranger.key, PEER_KEY_SIZE);
    struct bytes whole = decree_write(&decree, sign_as, &stranger, encoded);
    wire_writer_init(&writer, head, sizeof head);
    wire_write_varint(&writer, whole.size);
    buf_put(out, bytes_of(head, writer.size));
    buf_put(out, whole);
    identity_done(&stranger);
}

/* What only the founder may say. */
static void put_strangers_deletion(struct buf *out, const uint8_t ring[CHARTER_ID_SIZE], const char *url) {
    struct deletion deletions[DELETION_PARTS_MAX];
    struct buf memory;
    struct buf text;
    size_t count;
    buf_init(&memory, DECREE_TEXT_SIZE_MAX);
    buf_init(&text, DECREE_TEXT_SIZE_MAX);
    if (url != NULL && deletion_read_url(bytes_of_string(url), &memory, deletions, &count, NULL) == ERR_OK) {
        for (size_t i = 0; i < count; i++) {
            deletions[i].to_us = 1;
        }
        deletion_text_put_reason(&text, BYTES("because I can"));
        deletion_text_put_url(&text, bytes_of_string(url), deletions, count);
        put_stranger(out, ring, 1, DECREE_DELETION, buf_bytes(&text));
    }
    buf_done(&memory);
    buf_done(&text);
}

static enum err answer_decrees(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail) {
    enum { STRANGERS = 4200 };
    static struct buf flood;
    struct decrees *decrees = context;
    if (!lies("decrees")) {
        return true_handlers[PEER_RPC_DECREES](context, from, question, answer, detail);
    }
    if (flood.data == NULL) {
        const char *url = getenv("RING_LIE_URL");
        struct buf job;
        buf_init(&flood, PEER_RPC_PIECE_SIZE_MAX);
        buf_init(&job, DECREE_TEXT_SIZE_MAX);
        decrees_put_job_text(&job, BYTES("scope = host\nignore_robots = yes\ndelay = 0 s\n"),
                             bytes_of_string(url != NULL ? url : "http://elsewhere.example/"));
        put_stranger(&flood, decrees->ring, 0, DECREE_JOB, buf_bytes(&job));
        buf_done(&job);
        put_strangers_deletion(&flood, decrees->ring, url);
        for (unsigned i = 1; i < STRANGERS; i++) {
            put_stranger(&flood, decrees->ring, i, DECREE_JOB, bytes_of(NULL, 0));
        }
    }
    return buf_put(answer, buf_bytes(&flood));
}

/* Each of many as the liar would give it alone. */
static enum err give_many(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                          struct err_detail *detail) {
    struct captures_many many;
    struct buf alone;
    struct buf given;
    buf_init(&alone, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&given, PEER_RPC_ANSWER_SIZE_MAX);
    enum err err = captures_code_read_many(question, &many, detail);
    for (uint32_t i = 0; err == ERR_OK && i < many.count; i++) {
        struct captures_question one = {.key = many.keys[i],
                                        .wants_description = true,
                                        .size_max = many.is_about[i] ? 0 : PEER_RPC_PIECE_SIZE_MAX};
        buf_clear(&alone);
        buf_clear(&given);
        err = captures_code_put_question(&alone, &one);
        err = err == ERR_OK ? give(context, from, buf_bytes(&alone), &given, detail) : err;
        bool is_there = given.size > 1;
        uint8_t head[] = {is_there ? CAPTURES_THERE : CAPTURES_ABSENT, (uint8_t)given.size,
                          (uint8_t)(given.size >> 8), (uint8_t)(given.size >> 16), 0};
        if (answer->size + given.size > PEER_RPC_PIECE_SIZE_MAX) {
            uint8_t later = CAPTURES_LATER;
            err = buf_put(answer, bytes_of(&later, 1));
        } else if (err == ERR_OK) {
            buf_put(answer, bytes_of(head, is_there ? sizeof head : 1));
            err = is_there ? buf_put(answer, buf_bytes(&given)) : answer->err;
        }
    }
    buf_done(&alone);
    buf_done(&given);
    return err;
}

/* All services are registered here, so this one function decides who answers. */
void __wrap_peer_rpc_serve(struct peer_rpc *peer_rpc, enum peer_rpc_service service,
                           peer_rpc_handler *handler, void *context) {
    static peer_rpc_handler *const liars[] = {
        [PEER_RPC_CAPTURE] = give,           [PEER_RPC_COMPARE] = answer_compare,
        [PEER_RPC_OFFER] = answer_offer,     [PEER_RPC_CONFIRM] = answer_confirm,
        [PEER_RPC_PROVE] = answer_prove,     [PEER_RPC_WALK] = list_invented,
        [PEER_RPC_DECREES] = answer_decrees, [PEER_RPC_CAPTURES] = give_many,
    };
    peer_rpc_handler *liar = service < sizeof liars / sizeof *liars ? liars[service] : NULL;
    if (service == PEER_RPC_WALK && !lies("invents")) {
        liar = NULL;
    }
    true_handlers[service] = handler;
    __real_peer_rpc_serve(peer_rpc, service, liar != NULL ? liar : handler, context);
}

/* ---- messages beyond all limits ---- */

/* Each in turn; the last is 64 KiB of the same. */
static struct bytes absurd(uint8_t *memory) {
    static const struct bytes messages[] = {
        {(const uint8_t *)"\xa9\xe6\x0c", 3},                         /* a list of 1,638 keys, and none */
        {(const uint8_t *)"\x69\xff\xff\xff\xff\xff\xff\xff\x7f", 9}, /* a sum of 2^56 keys */
        {(const uint8_t *)"\x01\x05\x01\x04\x29", 5},                 /* bounds that go back */
        {(const uint8_t *)"\x2a", 1},                                 /* a bound that is too long */
        {(const uint8_t *)"\xe9\xff\x7f", 3},                         /* 16,383 differences */
    };
    static unsigned turn;
    unsigned index = turn++ % (sizeof messages / sizeof *messages + 1);
    if (index < sizeof messages / sizeof *messages) {
        memcpy(memory, messages[index].data, messages[index].size);
        return bytes_of(memory, messages[index].size);
    }
    memset(memory, 0xff, RECONCILE_MESSAGE_SIZE_MAX);
    return bytes_of(memory, RECONCILE_MESSAGE_SIZE_MAX);
}

enum err __real_reconcile_ask(struct reconcile *reconcile, void *memory, size_t size_max,
                              struct bytes *ret_question, struct err_detail *detail);
enum err __wrap_reconcile_ask(struct reconcile *reconcile, void *memory, size_t size_max,
                              struct bytes *ret_question, struct err_detail *detail);
enum err __real_reconcile_answer(const struct reconcile_arc *arc, const struct ringkey_set *set,
                                 struct bytes question, void *memory, size_t size_max,
                                 struct bytes *ret_answer, struct err_detail *detail);
enum err __wrap_reconcile_answer(const struct reconcile_arc *arc, const struct ringkey_set *set,
                                 struct bytes question, void *memory, size_t size_max,
                                 struct bytes *ret_answer, struct err_detail *detail);
void __real_copies_put_keys(struct wire_writer *out, const struct ringkey *keys, size_t count);
void __wrap_copies_put_keys(struct wire_writer *out, const struct ringkey *keys, size_t count);

enum err __wrap_reconcile_ask(struct reconcile *reconcile, void *memory, size_t size_max,
                              struct bytes *ret_question, struct err_detail *detail) {
    enum err err = __real_reconcile_ask(reconcile, memory, size_max, ret_question, detail);
    *ret_question = err == ERR_OK && lies("ranges") ? absurd(memory) : *ret_question;
    return err;
}

enum err __wrap_reconcile_answer(const struct reconcile_arc *arc, const struct ringkey_set *set,
                                 struct bytes question, void *memory, size_t size_max,
                                 struct bytes *ret_answer, struct err_detail *detail) {
    if (lies("ranges")) {
        *ret_answer = absurd(memory);
        return ERR_OK;
    }
    return __real_reconcile_answer(arc, set, question, memory, size_max, ret_answer, detail);
}

void __wrap_copies_put_keys(struct wire_writer *out, const struct ringkey *keys, size_t count) {
    static unsigned turn;
    /* An offer has room for its keys; and else nobody would fetch anything from it. */
    if (lies("ranges") && count > 0 && turn++ % 2 == 0) {
        wire_write_bytes(out, BYTES("\xff\xff\xff\xff\x7f and no keys"));
        return;
    }
    __real_copies_put_keys(out, keys, count);
}

/* ---- links without end ---- */

enum err __real_crawl_loop_read_outgoing(struct crawl_loop *crawl_loop, const char *job,
                                         const uint8_t after_position[ROUTE_POSITION_SIZE],
                                         struct bytes after_url, struct buf *work,
                                         struct frontier_outgoing *ret_links, size_t count_max,
                                         size_t *ret_count);
enum err __wrap_crawl_loop_read_outgoing(struct crawl_loop *crawl_loop, const char *job,
                                         const uint8_t after_position[ROUTE_POSITION_SIZE],
                                         struct bytes after_url, struct buf *work,
                                         struct frontier_outgoing *ret_links, size_t count_max,
                                         size_t *ret_count);

static size_t make_url(uint8_t *out, size_t size_max) {
    static const char *const begins[] = {
        "http://elsewhere.example/", "http://10.0.0.1/",         "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:22/",          "file:///etc/passwd?from=", "//////",
    };
    static const uint32_t count = sizeof begins / sizeof *begins;
    const char *own = getenv("RING_LIE_URL");
    uint32_t index = randombytes_uniform(count + (own != NULL));
    const char *begin = index < count ? begins[index] : own;
    return (size_t)snprintf((char *)out, size_max, "%s%" PRIu32, begin, randombytes_random());
}

enum err __wrap_crawl_loop_read_outgoing(struct crawl_loop *crawl_loop, const char *job,
                                         const uint8_t after_position[ROUTE_POSITION_SIZE],
                                         struct bytes after_url, struct buf *work,
                                         struct frontier_outgoing *ret_links, size_t count_max,
                                         size_t *ret_count) {
    enum { URL_SIZE = 96, ONE_PAGE = 1 << 7 };
    if (!lies("links")) {
        return __real_crawl_loop_read_outgoing(crawl_loop, job, after_position, after_url, work, ret_links,
                                               count_max, ret_count);
    }
    buf_clear(work);
    enum err err = buf_reserve(work, count_max * URL_SIZE);
    for (size_t i = 0; i < count_max && err == ERR_OK; i++) {
        uint8_t *url = work->data + i * URL_SIZE;
        ret_links[i] = (struct frontier_outgoing){
            .url = bytes_of(url, make_url(url, URL_SIZE)), .depth = ONE_PAGE, .priority = FRONTIER_PAGE};
        randombytes_buf(ret_links[i].place, ROUTE_POSITION_SIZE);
    }
    *ret_count = err == ERR_OK ? count_max : 0;
    return err;
}
