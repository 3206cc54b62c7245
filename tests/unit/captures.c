/* captures: three holders and one who holds nothing; lies, cuts, absences. */
#include "await.h"
#include "base/prng.h"
#include "ring-reader-fixture.h"

enum { LARGE_SIZE = 8 << 20 };
#define URL "http://example.org/page"

static enum err fetch(struct fixture *fixture, const struct ringkey *key, bool with_payload,
                      struct captured *ret_captured) {
    struct peer peers[RING_READER_HOLDERS_MAX];
    size_t count;
    assert_int_equal(fixture_find_holders(&fixture->nodes[READER], key->bytes, peers, &count), ERR_OK);
    return captures_fetch(fixture->fetch, peers, count, key, with_payload, ret_captured, NULL);
}

static void a_capture_comes_as_it_is(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    document.tls = BYTES("verified");
    document.truncated = BYTES("length");
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_bytes_equal(captured.document.url, document.url);
    assert_bytes_equal(captured.document.head, document.head);
    assert_bytes_equal(captured.document.body, document.body);
    assert_bytes_equal(captured.payload, document.body);
    assert_bytes_equal(captured.document.request, document.request);
    assert_bytes_equal(captured.document.ip_address, document.ip_address);
    assert_bytes_equal(captured.document.tls, document.tls);
    assert_bytes_equal(captured.document.truncated, document.truncated);
    assert_bytes_equal(captured.document.signature, document.signature);
    assert_true(captured.is_signed);
    assert_memory_equal(captured.signer, fixture->nodes[1].identity.key, PEER_KEY_SIZE);
    assert_int_equal(captured.document.time_us, 5 * SECOND_US);
    assert_ptr_equal(captured.document.sum, &captured.sum);
    fixture_put_at(fixture, READER, &captured.document); /* it can be stored as it came */
    assert_int_equal(fetch(fixture, &key, false, &captured), ERR_OK);
    assert_true(captured.document.is_body_left_out);
    assert_int_equal(captured.sum.size, 5);
    fixture_put_at(fixture, READER, &captured.document);
    assert_int_equal(fixture->blames_count, 0);
}

static void without_the_surt_the_holder_looks_it_up(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_false(captured.is_signed);
    pthread_mutex_lock(&fixture->lock);
    buf_clear(&fixture->known_surt);
    pthread_mutex_unlock(&fixture->lock);
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_NOT_FOUND);
    assert_int_equal(captures_fetch_at(fixture->fetch, &fixture->nodes[2].peer, 1, &key,
                                       BYTES("org,example)/page"), true, &captured, NULL),
                     ERR_OK);
    assert_int_equal(captures_fetch_at(fixture->fetch, &fixture->nodes[2].peer, 1, &key,
                                       BYTES("org,example)/other"), true, &captured, NULL),
                     ERR_NOT_FOUND);
    assert_int_equal(fixture->blames_count, 0);
}

/* Chunks become one, the payload stays; an empty one too. */
static void chunks_are_undone_and_made_again(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    struct document document = fixture_document(URL, 6, BYTES("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
    char text[ATTEST_TEXT_SIZE];
    document.head = BYTES(HEAD_CHUNKED);
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 6, BYTES("abcde"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_bytes_equal(captured.payload, BYTES("abcde"));
    assert_bytes_equal(captured.document.body, BYTES("5\r\nabcde\r\n0\r\n\r\n"));
    document.time_us = 7 * SECOND_US;
    document.body = BYTES("0\r\n\r\n");
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    key = fixture_key(fixture, URL, 7, BYTES(""));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_int_equal(captured.payload.size, 0);
    assert_bytes_equal(captured.document.body, BYTES("0\r\n\r\n"));
    assert_true(captured.is_signed);
    assert_int_equal(fixture->blames_count, 0);
}

/* What is a revisit on a disk is a whole capture on its way. */
static void revisits_come_with_their_document(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document("http://example.org/original", 1, BYTES("the same"));
    fixture_put(fixture, &document);
    document = fixture_document(URL, 9, BYTES("the same"));
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 9, BYTES("the same"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_bytes_equal(captured.document.body, BYTES("the same"));
    assert_int_equal(captured.document.truncated.size, 0);
    assert_true(captured.is_signed);
    /* The server said that nothing changed. */
    struct document_sum sum = captured.sum;
    document.time_us = 10 * SECOND_US;
    document.head = BYTES("HTTP/1.1 304 Not Modified\r\n\r\n");
    document.body = document.signature = bytes_of(NULL, 0);
    document.sum = &sum;
    document.is_not_modified = document.is_body_left_out = true;
    fixture_put(fixture, &document);
    key = fixture_key(fixture, URL, 10, BYTES("the same"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_true(captured.document.is_not_modified && captured.document.is_body_left_out);
    assert_bytes_equal(captured.payload, BYTES("the same"));
    assert_int_equal(fixture->blames_count, 0);
}

/* Two lie, one does not: its is taken, they are blamed. All lie: nothing is. */
static void lies_are_never_believed(void **state) {
    struct fixture *fixture = *state;
    static const enum lie lies[] = {LIE_PAYLOAD, LIE_HEAD, LIE_REQUEST, LIE_SIGNATURE,
                                    LIE_URL,     LIE_SIZE, LIE_NOISE};
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct captured captured;
        fixture->blames_count = 0;
        fixture->nodes[1].lie = fixture->nodes[2].lie = lies[i];
        fixture->nodes[3].lie = HONEST;
        assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
        assert_bytes_equal(captured.document.body, BYTES("hello"));
        assert_bytes_equal(captured.document.head, BYTES(HEAD));
        assert_bytes_equal(captured.document.request, document.request);
        assert_true(fixture->blames_count <= 2);
        fixture->blames_count = 0;
        fixture->nodes[3].lie = lies[i];
        assert_int_equal(fetch(fixture, &key, true, &captured), ERR_MISMATCH);
        assert_int_equal(fixture->blames_count, 3);
    }
}

/* A signature of the first version holds; the request, which it does not cover, is left out of the copy. */
static void a_request_that_nobody_vouches_for_is_left_out(void **state) {
    struct fixture *fixture = *state;
    const struct peer *first = &fixture->nodes[1].peer;
    const struct peer *second = &fixture->nodes[2].peer;
    struct captured captured;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_sign_as(fixture, &document, true, text);
    fixture_put_at(fixture, 1, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    for (unsigned i = 0; i < 2; i++) {
        fixture->nodes[1].lie = i == 0 ? HONEST : LIE_REQUEST;
        assert_int_equal(captures_fetch(fixture->fetch, first, 1, &key, true, &captured, NULL), ERR_OK);
        assert_true(captured.is_signed);
        assert_int_equal(captured.document.request.size, 0);
        assert_bytes_equal(captured.document.head, BYTES(HEAD));
    }
    fixture_put_at(fixture, 2, &captured.document); /* who copied it gives it on as it got it */
    assert_int_equal(captures_fetch(fixture->fetch, second, 1, &key, true, &captured, NULL), ERR_OK);
    assert_true(captured.is_signed);
    assert_memory_equal(captured.signer, fixture->nodes[1].identity.key, PEER_KEY_SIZE);
    assert_int_equal(captured.document.request.size, 0);
    assert_int_equal(fixture->blames_count, 0);
}

/* Two POSTs of one second with the same answer are two captures, and neither is that of a GET. */
static void a_post_travels_under_its_own_key(void **state) {
    struct fixture *fixture = *state;
    static const char *const bodies[] = {"a=1", "a=2"};
    char request[128];
    char url[128];
    struct captured captured;
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    for (size_t i = 0; i < 2; i++) {
        snprintf(request, sizeof request,
                 "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n%s", bodies[i]);
        document.request = bytes_of_string(request);
        fixture_put(fixture, &document);
    }
    for (size_t i = 0; i < 2; i++) {
        snprintf(url, sizeof url, "%s?__wb_method=POST&%s", URL, bodies[i]);
        struct ringkey key = fixture_key(fixture, url, 5, BYTES("hello"));
        assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
        assert_bytes_equal(captured.document.url, BYTES(URL));
        assert_true(bytes_ends_with(captured.document.request, bytes_of_string(bodies[i])));
    }
    struct ringkey get = fixture_key(fixture, URL, 5, BYTES("hello"));
    assert_int_equal(fetch(fixture, &get, true, &captured), ERR_NOT_FOUND);
    assert_int_equal(fixture->blames_count, 0);
}

/* A crash tore the record of the request off: the signature does not fit any more, and that is no lie. */
static void who_lost_a_request_is_not_blamed(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_sign(fixture, &document, text);
    document.request = bytes_of(NULL, 0);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_false(captured.is_signed);
    assert_int_equal(captured.document.signature.size, 0);
    assert_bytes_equal(captured.payload, BYTES("hello"));
    document.time_us = 6 * SECOND_US; /* there was none: a signature says so, too */
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    key = fixture_key(fixture, URL, 6, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_true(captured.is_signed);
    assert_int_equal(fixture->blames_count, 0);
}

/* A copy of a copy names the node that imported it first. */
static void the_importer_travels_with_the_capture(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_sign_import(fixture, &document, text);
    fixture_put_at(fixture, 1, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        const struct peer *holder = &fixture->nodes[i].peer;
        assert_int_equal(captures_fetch(fixture->fetch, holder, 1, &key, true, &captured, NULL), ERR_OK);
        assert_false(captured.is_signed);
        assert_true(captured.is_imported);
        assert_memory_equal(captured.importer, fixture->nodes[1].identity.key, PEER_KEY_SIZE);
        assert_bytes_equal(captured.document.request, document.request);
        if (i + 1 < NODES_COUNT) {
            fixture_put_at(fixture, i + 1, &captured.document);
        }
    }
    assert_int_equal(fixture->blames_count, 0);
}

/* What its importer has signed is not changed by a holder, nor is a false statement believed. */
static void lies_about_what_was_imported(void **state) {
    struct fixture *fixture = *state;
    static const enum lie lies[] = {LIE_PAYLOAD, LIE_HEAD, LIE_REQUEST, LIE_URL, LIE_SIZE, LIE_NOISE};
    struct captured captured;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_sign_import(fixture, &document, text);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        for (unsigned j = 1; j < NODES_COUNT; j++) {
            fixture->nodes[j].lie = lies[i];
        }
        fixture->blames_count = 0;
        assert_int_equal(fetch(fixture, &key, true, &captured), ERR_MISMATCH);
        assert_int_equal(fixture->blames_count, 3);
    }
    for (unsigned j = 1; j < NODES_COUNT; j++) {
        fixture->nodes[j].lie = HONEST;
    }
    fixture->blames_count = 0;
    document.time_us = 6 * SECOND_US; /* it is that of another capture now */
    fixture_put(fixture, &document);
    key = fixture_key(fixture, URL, 6, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_MISMATCH);
    assert_int_equal(fixture->blames_count, 3);
    document.time_us = 7 * SECOND_US; /* whoever lost the request says nothing of an importer */
    fixture_sign_import(fixture, &document, text);
    document.request = bytes_of(NULL, 0);
    fixture_put(fixture, &document);
    fixture->blames_count = 0;
    key = fixture_key(fixture, URL, 7, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_false(captured.is_imported);
    assert_int_equal(fixture->blames_count, 0);
}

/* One holder leaves the signature out and changes what it covers: the others, who have it, are believed. */
static void a_signature_cannot_be_left_out(void **state) {
    struct fixture *fixture = *state;
    char text[ATTEST_TEXT_SIZE];
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_sign(fixture, &document, text);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        struct captured captured;
        fixture->nodes[i].lie = LIE_STRIP;
        assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
        assert_true(captured.is_signed);
        assert_bytes_equal(captured.document.head, BYTES(HEAD));
        fixture->nodes[i].lie = HONEST;
    }
}

/* Without a signature, the key alone tells. */
static void lies_without_a_signature(void **state) {
    struct fixture *fixture = *state;
    static const enum lie lies[] = {LIE_PAYLOAD, LIE_URL, LIE_SIZE, LIE_NOISE};
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct captured captured;
        for (unsigned j = 1; j < NODES_COUNT; j++) {
            fixture->nodes[j].lie = lies[i];
        }
        fixture->blames_count = 0;
        assert_int_equal(fetch(fixture, &key, true, &captured), ERR_MISMATCH);
        assert_int_equal(fixture->blames_count, 3);
    }
}

static void absence_is_told_from_failure(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_NOT_FOUND);
    fixture_put(fixture, &document);
    fixture->nodes[1].lie = fixture->nodes[2].lie = LIE_ABSENT;
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_true(peer_equal(&captured.from, &fixture->nodes[3].peer));
    fixture->nodes[3].lie = LIE_FAIL;
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_NOT_FOUND);
    fixture->nodes[1].lie = fixture->nodes[2].lie = LIE_FAIL;
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_REFUSED);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture_stop_peer_rpc(&fixture->nodes[i]);
    }
    assert_int_not_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_int_equal(fixture->blames_count, 0);
}

/* ---- large ones ---- */

static uint8_t *make_large(void) {
    uint8_t *large = malloc(LARGE_SIZE);
    struct prng prng;
    prng_init(&prng, 7);
    prng_fill(&prng, large, LARGE_SIZE);
    return large;
}

static void *stop_who_wants_it(void *context) {
    struct fixture *fixture = context;
    unsigned turns_count = 0;
    do {
        for (unsigned i = 1; i < NODES_COUNT; i++) {
            if (fixture->nodes[i].wants_stop) {
                fixture_stop_peer_rpc(&fixture->nodes[i]);
                return NULL;
            }
        }
    } while (await_turn(&turns_count));
    return NULL;
}

/* Whoever gives dies in the middle: another goes on from there. */
static void a_transfer_that_is_cut_goes_on(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    struct ring_view_rpc stat;
    pthread_t thread;
    unsigned stopped_count = 0;
    uint64_t offset_max = 0;
    uint8_t *large = make_large();
    struct bytes body = bytes_of(large, LARGE_SIZE);
    struct document document = fixture_document(URL, 5, body);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, body);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        fixture->nodes[i].stop_after = 4; /* of whom the first to come so far is ended */
    }
    assert_int_equal(pthread_create(&thread, NULL, stop_who_wants_it, fixture), 0);
    enum err err = fetch(fixture, &key, true, &captured);
    pthread_join(thread, NULL);
    assert_int_equal(err, ERR_OK);
    assert_bytes_equal(captured.payload, body);
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        uint64_t offset = fixture->nodes[i].first_offset;
        stopped_count += !fixture->nodes[i].peer_rpc->is_running;
        offset_max = offset > offset_max ? offset : offset_max;
    }
    assert_int_equal(stopped_count, 1);
    assert_true(offset_max > LARGE_SIZE / 16);
    peer_rpc_stat(fixture->nodes[READER].peer_rpc, &stat);
    assert_true(stat.received_size < LARGE_SIZE + LARGE_SIZE / 6); /* nothing came twice but one piece */
    assert_int_equal(fixture->blames_count, 0);
    free(large);
}

/* The disks of two holders fail in the middle: that is no trouble of ours. */
static void another_disk_fails(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    uint8_t *large = make_large();
    struct bytes body = bytes_of(large, LARGE_SIZE);
    struct document document = fixture_document(URL, 5, body);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, body);
    for (unsigned i = 1; i < NODES_COUNT - 1; i++) {
        fixture->nodes[i].lie = LIE_FAIL;
        fixture->nodes[i].lies_later = true;
    }
    assert_int_equal(fetch(fixture, &key, true, &captured), ERR_OK);
    assert_bytes_equal(captured.payload, body);
    assert_int_equal(fixture->blames_count, 0);
    free(large);
}

/* A piece in the middle is false: who gave it is blamed, and the capture comes from another. */
static void a_false_piece_is_found(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    uint8_t *large = make_large();
    struct bytes body = bytes_of(large, LARGE_SIZE);
    struct document document = fixture_document(URL, 5, body);
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, body);
    struct peer peers[] = {fixture->nodes[1].peer, fixture->nodes[2].peer};
    fixture->nodes[1].lie = LIE_PAYLOAD;
    fixture->nodes[1].lies_later = true;
    assert_int_equal(captures_fetch(fixture->fetch, peers, 1, &key, true, &captured, NULL), ERR_MISMATCH);
    assert_int_equal(fixture->blames_count, 1);
    assert_true(peer_equal(&fixture->blamed, &fixture->nodes[1].peer));
    assert_int_equal(captures_fetch(fixture->fetch, peers, 2, &key, true, &captured, NULL), ERR_OK);
    assert_bytes_equal(captured.payload, body);
    free(large);
}

/* What is asked of it is of another page of the host: in this mapping all have one place, and so one key. */
static enum err give_other_page(void *context, const struct peer *from, struct bytes question,
                                struct buf *answer, struct err_detail *detail) {
    struct node *node = context;
    struct captures_question asked;
    struct buf changed;
    buf_init(&changed, PEER_RPC_QUESTION_SIZE_MAX);
    assert_int_equal(captures_code_read_question(question, &asked, NULL), ERR_OK);
    asked.surt = BYTES("org,example)/page");
    assert_int_equal(captures_code_put_question(&changed, &asked), ERR_OK);
    enum err err = captures_give(node->captures, from, buf_bytes(&changed), answer, detail);
    buf_done(&changed);
    return err;
}

static int setup_by_host(void **state) {
    return fixture_setup_as(state, POSITION_BY_HOST, false);
}

static void another_page_of_the_host_is_not_taken_for_this_one(void **state) {
    struct fixture *fixture = *state;
    struct node *liar = &fixture->nodes[2];
    struct captured captured;
    struct document document = fixture_document(URL, 5, BYTES("hello"));
    liar->peer_rpc->services[PEER_RPC_CAPTURE].handler = give_other_page; /* nobody has asked it yet */
    fixture_put(fixture, &document);
    struct ringkey key = fixture_key(fixture, URL, 5, BYTES("hello"));
    assert_int_equal(captures_fetch_at(fixture->fetch, &liar->peer, 1, &key, BYTES("org,example)/page"), true,
                                       &captured, NULL),
                     ERR_OK);
    assert_int_equal(captures_fetch_at(fixture->fetch, &liar->peer, 1, &key, BYTES("org,example)/other"),
                                       true, &captured, NULL),
                     ERR_MISMATCH);
    assert_int_equal(fixture->blames_count, 1);
    assert_true(peer_equal(&fixture->blamed, &liar->peer));
}

/* ---- many at once ---- */

enum { ENTRIES_MAX = 8 };

struct entries {
    struct buf answer;
    size_t count;
    enum captures_many_status statuses[ENTRIES_MAX];
    struct captures_answer answers[ENTRIES_MAX];
};

static void ask_many(struct fixture *fixture, const struct captures_many *many, struct entries *entries) {
    struct buf question;
    struct wire_reader reader;
    buf_init(&question, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&entries->answer, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(captures_code_put_many(&question, many), ERR_OK);
    assert_int_equal(peer_rpc_ask(fixture->nodes[READER].peer_rpc, &fixture->nodes[1].peer, PEER_RPC_CAPTURES,
                                  buf_bytes(&question), 10000, &entries->answer, NULL),
                     ERR_OK);
    wire_reader_init(&reader, buf_bytes(&entries->answer));
    for (entries->count = 0; wire_reader_left(&reader) > 0; entries->count++) {
        assert_int_equal(captures_code_read_entry(&reader, &entries->statuses[entries->count],
                                                  &entries->answers[entries->count]),
                         ERR_OK);
    }
    assert_int_equal(entries->count, many->count);
    buf_done(&question);
}

static void many_come_in_one_answer_and_what_has_no_room_later(void **state) {
    struct fixture *fixture = *state;
    struct captures_many many = {.size_max = 1 << 20};
    struct captured captured;
    struct entries entries;
    char *large = calloc(1, LARGE_SIZE);
    uint8_t noise[6000];
    struct prng prng;
    assert_non_null(large);
    prng_init(&prng, 1);
    prng_fill(&prng, noise, sizeof noise); /* zstd makes no less of it */
    struct bytes bodies[] = {BYTES("one"), bytes_of(noise, sizeof noise), BYTES(""),
                             bytes_of(large, LARGE_SIZE), BYTES("never put")};
    for (unsigned i = 0; i < 5; i++) {
        struct document document = fixture_document(URL, 10 + i, bodies[i]);
        if (i < 4) {
            fixture_put(fixture, &document);
        }
        many.keys[many.count++] = fixture_key(fixture, URL, 10 + i, bodies[i]);
    }
    ask_many(fixture, &many, &entries);
    enum captures_many_status expected[] = {CAPTURES_THERE, CAPTURES_THERE, CAPTURES_THERE, CAPTURES_ALONE,
                                            CAPTURES_ABSENT};
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(entries.statuses[i], expected[i]);
        if (expected[i] == CAPTURES_THERE) {
            assert_int_equal(captures_take(fixture->fetch, &fixture->nodes[1].peer, &many.keys[i], false,
                                           &entries.answers[i], &captured, NULL),
                             ERR_OK);
            assert_bytes_equal(captured.payload, bodies[i]);
            /* The same for another key is false. */
            assert_int_equal(captures_take(fixture->fetch, &fixture->nodes[1].peer, &many.keys[4], false,
                                           &entries.answers[i], &captured, NULL),
                             ERR_MISMATCH);
        }
    }
    buf_done(&entries.answer);
    many.size_max = 1000; /* the first is given whatever the bound is; without its payload the second fits */
    many.is_about[1] = true;
    ask_many(fixture, &many, &entries);
    assert_int_equal(entries.statuses[0], CAPTURES_THERE);
    assert_int_equal(entries.statuses[1], CAPTURES_THERE);
    assert_int_equal(captures_take(fixture->fetch, &fixture->nodes[1].peer, &many.keys[1], true,
                                   &entries.answers[1], &captured, NULL),
                     ERR_OK);
    assert_true(captured.document.is_body_left_out);
    assert_int_equal(captured.sum.size, sizeof noise);
    buf_done(&entries.answer);
    many.is_about[1] = false;
    ask_many(fixture, &many, &entries);
    assert_int_equal(entries.statuses[1], CAPTURES_LATER);
    buf_done(&entries.answer);
    assert_int_equal(fixture->blames_count, 0);
    free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_come_in_one_answer_and_what_has_no_room_later, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_capture_comes_as_it_is, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(without_the_surt_the_holder_looks_it_up, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(chunks_are_undone_and_made_again, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(revisits_come_with_their_document, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(lies_are_never_believed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_request_that_nobody_vouches_for_is_left_out, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_post_travels_under_its_own_key, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(who_lost_a_request_is_not_blamed, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_importer_travels_with_the_capture, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(lies_about_what_was_imported, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_signature_cannot_be_left_out, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(lies_without_a_signature, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(absence_is_told_from_failure, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_transfer_that_is_cut_goes_on, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(another_disk_fails, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_false_piece_is_found, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(another_page_of_the_host_is_not_taken_for_this_one, setup_by_host,
                                        fixture_teardown),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does: nodes go away while others write to them */
    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
