/*
 * obtaining: nodes in one process with their own offers and streams on loopback. Only the search is played:
 * it finds what a test says.
 */
#include <signal.h>
#include <stdatomic.h>

#include "await.h"
#include "base/prng.h"
#include "node/crowd/crowd_reader.h"
#include "node/rpc/peer_rpc_state.h"
#include "offers-fixture.h"

enum { NODES_COUNT = 14, READER = 0, LARGE_SIZE = 5 << 20, TIMEOUT_MS = 20000 };
#define URL "http://example.org/page"
#define PAGE "<html><head><title>The Great Flood of 2026</title></head><body>water</body></html>"

enum lie { HONEST, LIE_PAYLOAD, LIE_OTHER, LIE_SIGNATURE, LIE_SIZE, LIE_NOISE, LIE_ABSENT, LIE_FAIL };

struct fixture;

struct node {
    struct fixture *fixture;
    char *root;
    struct identity identity;
    struct peer_rpc *peer_rpc;
    struct peer peer;
    struct captures *captures;
    struct offers *offers;
    struct crowd_reader *crowd_reader;
    struct crowd_reader_session *session;
    _Atomic(enum lie) lie;
    atomic_uint pieces_count; /* of the payload, given */
    atomic_uint stop_after;   /* so many pieces; 0: never */
    atomic_bool wants_stop;
    atomic_uint blames_count; /* of this node, by whomever */
    atomic_bool is_distrusted;
};

struct fixture {
    char *root;
    struct node nodes[NODES_COUNT];
    struct identity signer;
    struct identity stranger;
    struct offers_sample sample;
    struct offers_sample other; /* what LIE_OTHER gives */
    bool takes_any;
    uint8_t gives_max;
    struct crowd_driver_hit hits[CROWD_DRIVER_HITS_MAX];
    size_t hits_count;
    atomic_uint searches_count;
    atomic_uint puts_late; /* node that gets the sample with the second search; 0: none */
};

/* ---- what the modules ask the node for ---- */

static bool admits(void *context, const struct peer *peer) {
    (void)context;
    (void)peer;
    return true;
}

static struct node *find_node(struct fixture *fixture, const struct peer *peer) {
    for (size_t i = 0; i < NODES_COUNT; i++) {
        if (memcmp(fixture->nodes[i].peer.key, peer->key, PEER_KEY_SIZE) == 0) {
            return &fixture->nodes[i];
        }
    }
    return NULL;
}

static bool trusts(void *context, const uint8_t signer[PEER_KEY_SIZE]) {
    return memcmp(((struct node *)context)->fixture->signer.key, signer, PEER_KEY_SIZE) == 0;
}

static void blame(void *context, const struct peer *peer, const char *sentence) {
    (void)sentence;
    find_node(((struct node *)context)->fixture, peer)->blames_count++;
}

/* The fixture stands for the crowd. */
static enum err find(struct crowd_driver *crowd_driver, const struct wish *wish, uint32_t timeout_ms,
                     size_t hits_wanted, struct crowd_driver_hit *out, size_t *ret_count) {
    struct fixture *fixture = (struct fixture *)crowd_driver;
    (void)wish;
    (void)timeout_ms;
    assert_true(hits_wanted >= 1 && hits_wanted <= CROWD_DRIVER_HITS_MAX);
    unsigned late = fixture->puts_late;
    if (++fixture->searches_count == 2 && late > 0) {
        sample_put(fixture->nodes[late].offers, &fixture->sample);
    }
    size_t count = 0;
    for (size_t i = 0; i < fixture->hits_count; i++) {
        if (!find_node(fixture, &fixture->hits[i].holder)->is_distrusted) {
            out[count++] = fixture->hits[i];
        }
    }
    *ret_count = count;
    return count > 0 ? ERR_OK : ERR_NOT_FOUND;
}

static void distrust(struct crowd_driver *crowd_driver, const struct peer *peer) {
    find_node((struct fixture *)crowd_driver, peer)->is_distrusted = true;
}

static bool is_distrusted(struct crowd_driver *crowd_driver, const struct peer *peer) {
    const struct node *node = find_node((struct fixture *)crowd_driver, peer);
    return node != NULL && node->is_distrusted;
}

/* ---- lies ---- */

static enum err lie_about(struct node *node, struct bytes question, struct buf *answer,
                          struct err_detail *detail) {
    struct captures_answer given;
    struct captures_question asked;
    assert_int_equal(captures_code_read_question(question, &asked, NULL), ERR_OK);
    assert_int_equal(captures_code_read_answer(buf_bytes(answer), &given, NULL), ERR_OK);
    switch ((enum lie)node->lie) {
    case LIE_PAYLOAD:
        answer->data[answer->size - 1] ^= given.piece.size > 0;
        break;
    case LIE_SIGNATURE: {
        struct bytes digits = bytes_of_string(node->fixture->sample.signature);
        size_t at = bytes_find(buf_bytes(answer), digits) + digits.size - 1;
        if (at < answer->size) {
            answer->data[at] = answer->data[at] == '0' ? '1' : '0';
        }
        break;
    }
    case LIE_SIZE:
        given.size = UINT32_MAX;
        given.description = bytes_of(NULL, 0);
        buf_clear(answer);
        return captures_code_put_answer(answer, &given);
    case LIE_NOISE:
        memset(answer->data, 0xee, answer->size);
        break;
    case LIE_ABSENT:
        buf_truncate(answer, 1);
        answer->data[0] = 0;
        break;
    case LIE_FAIL:
        return err_set(detail, ERR_IO, "the disk is broken");
    default:
        break;
    }
    return ERR_OK;
}

/* The other capture in place of the one that was asked for. */
static void exchange(const struct node *node, struct bytes question, struct buf *out) {
    struct captures_question asked;
    assert_int_equal(captures_code_read_question(question, &asked, NULL), ERR_OK);
    asked.key = node->fixture->other.key;
    buf_clear(out);
    assert_int_equal(captures_code_put_question(out, &asked), ERR_OK);
}

static enum err give(void *context, const struct peer *from, struct bytes question, struct buf *answer,
                     struct err_detail *detail) {
    struct node *node = context;
    struct captures_answer given;
    struct buf exchanged;
    buf_init(&exchanged, PEER_RPC_QUESTION_SIZE_MAX);
    if (node->lie == LIE_OTHER) {
        exchange(node, question, &exchanged);
        question = buf_bytes(&exchanged);
    }
    enum err err = offers_give(node->offers, from, question, answer, detail);
    assert_int_equal(err, ERR_OK);
    assert_int_equal(captures_code_read_answer(buf_bytes(answer), &given, NULL), ERR_OK);
    node->pieces_count += given.piece.size > 0;
    if (node->stop_after > 0 && node->pieces_count > node->stop_after) {
        node->wants_stop = true;
        usleep(100000); /* the thread that ends this node has the time to say so */
    }
    if (given.is_there) {
        err = lie_about(node, question, answer, detail);
    }
    buf_done(&exchanged);
    return err;
}

/* ---- life ---- */

static void start_peer_rpc(struct node *node, unsigned host) {
    struct peer_rpc_config config = {.identity = &node->identity,
                                     .address = address_ipv4(127, 0, 0, (uint8_t)host, 0),
                                     .admits = admits,
                                     .blame = blame,
                                     .context = node};
    assert_int_equal(identity_random(&node->identity), ERR_OK);
    assert_int_equal(peer_rpc_new(&config, &node->peer_rpc, NULL), ERR_OK);
    node->peer.address = peer_rpc_address(node->peer_rpc);
    memcpy(node->peer.key, node->identity.key, PEER_KEY_SIZE);
}

static void start(struct fixture *fixture, unsigned index) {
    struct node *node = &fixture->nodes[index];
    char name[16];
    node->fixture = fixture;
    node->root = malloc(SCRATCH_PATH_SIZE);
    snprintf(name, sizeof name, "%u", index);
    assert_int_equal(mkdir(scratch_path(fixture->root, name, node->root), 0700), 0);
    start_peer_rpc(node, index + 2);
    struct captures_config captures = {.peer_rpc = node->peer_rpc, .scratch_directory = node->root};
    struct offers_config offers = {
        .directory = node->root, .peer_rpc = node->peer_rpc, .gives_max = fixture->gives_max};
    node->captures = captures_new(&captures);
    assert_non_null(node->captures);
    assert_int_equal(offers_new(&offers, &node->offers, NULL), ERR_OK);
    peer_rpc_serve(node->peer_rpc, PEER_RPC_HAND, give, node);
    struct crowd_reader_config crowd_reader = {
        .crowd_driver = (struct crowd_driver *)fixture,
        .offers = node->offers,
        .captures = node->captures,
        .peer_rpc = node->peer_rpc,
        .takes_any = fixture->takes_any,
        .find = find,
        .distrust = distrust,
        .is_distrusted = is_distrusted,
        .trusts = trusts,
        .blame = blame,
        .context = node,
    };
    node->crowd_reader = crowd_reader_new(&crowd_reader);
    node->session = crowd_reader_session_new(node->crowd_reader);
    assert_non_null(node->session);
    assert_int_equal(peer_rpc_start(node->peer_rpc, NULL), ERR_OK);
}

static int setup_with(void **state, uint8_t gives_max, bool takes_any) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->gives_max = gives_max;
    fixture->takes_any = takes_any;
    if (scratch_make((void **)&fixture->root) != 0 || identity_random(&fixture->signer) != ERR_OK ||
        identity_random(&fixture->stranger) != ERR_OK) {
        return -1;
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        start(fixture, i);
    }
    sample_init(&fixture->sample, &fixture->signer, URL, 5, BYTES(PAGE));
    sample_init(&fixture->other, &fixture->signer, URL, 6, BYTES("something else"));
    *state = fixture;
    return 0;
}

static int setup(void **state) {
    return setup_with(state, 0, false);
}

static int setup_one_gives_once(void **state) {
    return setup_with(state, 1, false);
}

static int setup_takes_any(void **state) {
    return setup_with(state, 0, true);
}

static void stop_peer_rpc(struct node *node) {
    if (node->peer_rpc->is_running) {
        peer_rpc_stop(node->peer_rpc);
    }
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        stop_peer_rpc(&fixture->nodes[i]);
    }
    for (unsigned i = 0; i < NODES_COUNT; i++) {
        struct node *node = &fixture->nodes[i];
        crowd_reader_session_free(node->session);
        crowd_reader_free(node->crowd_reader);
        captures_free(node->captures);
        peer_rpc_free(node->peer_rpc);
        offers_free(node->offers);
        identity_done(&node->identity);
        free(node->root);
    }
    sample_done(&fixture->sample);
    sample_done(&fixture->other);
    identity_done(&fixture->signer);
    identity_done(&fixture->stranger);
    int result = scratch_remove((void **)&fixture->root);
    free(fixture);
    return result;
}

/* ---- what tests do ---- */

/* The node is found to have the capture. */
static void add_hit(struct fixture *fixture, unsigned index, const struct offers_sample *sample) {
    struct crowd_driver_hit *hit = &fixture->hits[fixture->hits_count++];
    *hit = (struct crowd_driver_hit){
        .holder = fixture->nodes[index].peer, .hops_count = (uint8_t)(index + 1), .findings_count = 1};
    hit->findings[0] = (struct wish_finding){.key = sample->key, .size = sample->captured.sum.size};
}

/* It has it, and is found. */
static void add_holder(struct fixture *fixture, unsigned index, const struct offers_sample *sample) {
    sample_put(fixture->nodes[index].offers, sample);
    add_hit(fixture, index, sample);
}

static enum err obtain_at(struct fixture *fixture, unsigned index, const struct wish *wish,
                          struct obtained *ret_obtained) {
    return crowd_reader_get(fixture->nodes[index].session, wish, bytes_of(NULL, 0), TIMEOUT_MS, ret_obtained,
                            NULL);
}

static enum err obtain(struct fixture *fixture, struct obtained *ret_obtained) {
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    return obtain_at(fixture, READER, &wish, ret_obtained);
}

/* The sample becomes large. Random: what can be packed would be small again. */
static uint8_t *make_large(struct fixture *fixture) {
    uint8_t *large = malloc(LARGE_SIZE);
    struct prng prng;
    prng_init(&prng, 7);
    prng_fill(&prng, large, LARGE_SIZE);
    sample_done(&fixture->sample);
    sample_init(&fixture->sample, &fixture->signer, URL, 5, bytes_of(large, LARGE_SIZE));
    return large;
}

/* ---- small ones ---- */

static void a_capture_comes_and_is_offered_here_too(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct crowd_reader_stat stat;
    assert_int_equal(obtain(fixture, &obtained), ERR_NOT_FOUND);
    add_holder(fixture, 3, &fixture->sample);
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_bytes_equal(obtained.captured.payload, BYTES(PAGE));
    assert_bytes_equal(obtained.captured.document.head, BYTES(OFFERS_HEAD));
    assert_memory_equal(obtained.key.bytes, fixture->sample.key.bytes, RINGKEY_SIZE);
    assert_true(peer_equal(&obtained.from, &fixture->nodes[3].peer));
    assert_true(!obtained.is_own && obtained.hops_count == 4 && obtained.holders_count == 1);
    assert_ptr_equal(obtained.captured.document.sum, &obtained.captured.sum);
    fixture->hits_count = 0;
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_true(obtained.is_own);
    assert_bytes_equal(obtained.captured.payload, BYTES(PAGE));
    /* And another gets it from here. */
    add_hit(fixture, READER, &fixture->sample);
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    assert_int_equal(obtain_at(fixture, 5, &wish, &obtained), ERR_OK);
    assert_true(peer_equal(&obtained.from, &fixture->nodes[READER].peer));
    crowd_reader_stat(fixture->nodes[READER].crowd_reader, &stat);
    assert_int_equal(stat.wanted_count, 3);
    assert_int_equal(stat.own_count, 1);
    assert_int_equal(stat.obtained_count, 1);
    assert_int_equal(stat.lost_count, 1);
    assert_int_equal(stat.obtained_size, sizeof PAGE - 1);
}

static void the_best_by_time_is_taken(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    add_holder(fixture, 1, &fixture->sample);
    add_holder(fixture, 2, &fixture->other); /* newer */
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_bytes_equal(obtained.captured.payload, BYTES("something else"));
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    wish.time = WISH_NEAREST;
    assert_int_equal(obtain_at(fixture, 4, &wish, &obtained), ERR_OK);
    assert_bytes_equal(obtained.captured.payload, BYTES(PAGE));
    wish.time = WISH_BETWEEN; /* the crowd says what was not asked for */
    wish.from_us = wish.to_us = 0;
    assert_int_equal(obtain_at(fixture, 5, &wish, &obtained), ERR_NOT_FOUND);
}

/* Who lies is blamed and not asked again; the capture comes from another. */
static void lies_are_never_believed(void **state) {
    struct fixture *fixture = *state;
    static const enum lie lies[] = {LIE_PAYLOAD, LIE_OTHER, LIE_SIGNATURE, LIE_SIZE, LIE_NOISE};
    for (unsigned i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct node *liar = &fixture->nodes[i + 1];
        struct obtained obtained;
        fixture->hits_count = 0;
        sample_put(liar->offers, &fixture->other);
        add_holder(fixture, i + 1, &fixture->sample);
        liar->lie = lies[i];
        struct wish wish = sample_wish(&fixture->sample, WISH_URL);
        assert_int_equal(obtain_at(fixture, READER, &wish, &obtained), ERR_MISMATCH);
        assert_int_equal(liar->blames_count, 1);
        assert_true(liar->is_distrusted);
        liar->is_distrusted = false;
        add_holder(fixture, 10, &fixture->sample);
        assert_int_equal(obtain_at(fixture, 6 + (i & 1), &wish, &obtained), ERR_OK);
        assert_bytes_equal(obtained.captured.payload, BYTES(PAGE));
        assert_int_equal(fixture->nodes[10].blames_count, 0);
    }
}

static void who_does_not_have_it_is_passed_over(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    add_hit(fixture, 1, &fixture->sample);
    add_holder(fixture, 2, &fixture->sample);
    fixture->nodes[2].lie = LIE_FAIL;
    stop_peer_rpc(&fixture->nodes[3]);
    add_holder(fixture, 3, &fixture->sample);
    assert_int_equal(obtain(fixture, &obtained), ERR_NOT_FOUND);
    add_holder(fixture, 4, &fixture->sample);
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    for (unsigned i = 1; i < 5; i++) {
        assert_int_equal(fixture->nodes[i].blames_count, 0);
    }
}

/* ---- who vouches for it ---- */

static void strangers_are_not_believed(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct offers_sample unsigned_one;
    struct offers_sample strange;
    sample_init(&unsigned_one, NULL, URL, 8, BYTES(PAGE));
    sample_init(&strange, &fixture->stranger, URL, 9, BYTES(PAGE));
    add_holder(fixture, 1, &unsigned_one);
    add_holder(fixture, 2, &strange);
    assert_int_equal(obtain(fixture, &obtained), ERR_PERMISSION);
    assert_int_equal(fixture->nodes[1].blames_count + fixture->nodes[2].blames_count, 0);
    add_holder(fixture, 3, &fixture->sample); /* older, but known */
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_true(obtained.is_fetch_vouched_for && !obtained.captured.is_imported);
    assert_true(peer_equal(&obtained.from, &fixture->nodes[3].peer));
    /* The digest was asked for: then it does not matter who says so. */
    fixture->hits_count = 0;
    add_hit(fixture, 1, &unsigned_one);
    struct wish wish = sample_wish(&unsigned_one, WISH_DIGEST);
    assert_int_equal(obtain_at(fixture, 5, &wish, &obtained), ERR_OK);
    wish.digest[31] ^= 1; /* which the key does not show */
    assert_int_equal(obtain_at(fixture, 6, &wish, &obtained), ERR_PERMISSION);
    sample_done(&unsigned_one);
    sample_done(&strange);
}

/* A member's word that it has imported it is enough to show it, but no word of what the server's certificate
 * was. */
static void what_a_member_imported_is_taken(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct offers_sample own;
    struct offers_sample strange;
    sample_init(&own, NULL, URL, 8, BYTES(PAGE));
    sample_sign_import(&own, &fixture->signer);
    sample_init(&strange, NULL, URL, 9, BYTES(PAGE));
    sample_sign_import(&strange, &fixture->stranger);
    add_holder(fixture, 2, &strange); /* newer, but a stranger's */
    assert_int_equal(obtain(fixture, &obtained), ERR_PERMISSION);
    add_holder(fixture, 1, &own);
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_true(peer_equal(&obtained.from, &fixture->nodes[1].peer));
    assert_true(obtained.captured.is_imported && !obtained.captured.is_signed);
    assert_memory_equal(obtained.captured.importer, fixture->signer.key, PEER_KEY_SIZE);
    assert_false(obtained.is_fetch_vouched_for);
    assert_int_equal(obtain(fixture, &obtained), ERR_OK); /* and so from its own offers */
    assert_true(obtained.is_own && obtained.captured.is_imported && !obtained.is_fetch_vouched_for);
    assert_int_equal(fixture->nodes[1].blames_count + fixture->nodes[2].blames_count, 0);
    sample_done(&own);
    sample_done(&strange);
}

static void any_is_taken_where_one_says_so(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct offers_sample strange;
    sample_init(&strange, NULL, URL, 9, BYTES(PAGE));
    add_holder(fixture, 2, &strange);
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    sample_done(&strange);
}

/* A sound capture, but not of what was wished for. */
static void another_url_or_title_is_not_taken(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    add_holder(fixture, 1, &fixture->sample);
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    wish.hash[0] ^= 1;
    assert_int_equal(obtain_at(fixture, READER, &wish, &obtained), ERR_PERMISSION);
    wish.kind = WISH_WORDS;
    wish.words = BYTES("great drought");
    assert_int_equal(obtain_at(fixture, READER, &wish, &obtained), ERR_NOT_FOUND);
    wish.words = BYTES("great flood");
    assert_int_equal(obtain_at(fixture, READER, &wish, &obtained), ERR_OK);
    assert_int_equal(fixture->nodes[1].blames_count, 0);
}

/* ---- large ones ---- */

static void a_large_one_comes_from_all_at_once(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct ring_view_rpc stat;
    uint8_t *large = make_large(fixture);
    for (unsigned i = 1; i <= 4; i++) {
        add_holder(fixture, i, &fixture->sample);
    }
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_bytes_equal(obtained.captured.payload, bytes_of(large, LARGE_SIZE));
    unsigned givers_count = 0;
    for (unsigned i = 1; i <= 4; i++) {
        givers_count += fixture->nodes[i].pieces_count > 0;
    }
    assert_true(obtained.holders_count >= 2); /* the quick give more: not all need have their turn */
    assert_true(givers_count >= obtained.holders_count);
    peer_rpc_stat(fixture->nodes[READER].peer_rpc, &stat);
    assert_true(stat.received_size < LARGE_SIZE + LARGE_SIZE / 4); /* no more than some late pieces twice */
    free(large);
}

static void *stop_who_wants_it(void *context) {
    struct fixture *fixture = context;
    unsigned turns_count = 0;
    do {
        for (unsigned i = 1; i < NODES_COUNT; i++) {
            if (fixture->nodes[i].wants_stop) {
                stop_peer_rpc(&fixture->nodes[i]);
                return NULL;
            }
        }
    } while (await_turn(&turns_count));
    return NULL;
}

/* One dies, one has a broken disk: the others give what is missing. */
static void what_one_does_not_give_another_does(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    pthread_t thread;
    uint8_t *large = make_large(fixture);
    for (unsigned i = 1; i <= 4; i++) {
        add_holder(fixture, i, &fixture->sample);
    }
    fixture->nodes[2].stop_after = 2;
    fixture->nodes[3].lie = LIE_FAIL;
    assert_int_equal(pthread_create(&thread, NULL, stop_who_wants_it, fixture), 0);
    enum err err = obtain(fixture, &obtained);
    fixture->nodes[2].wants_stop = true; /* where it was not asked so often */
    pthread_join(thread, NULL);
    assert_int_equal(err, ERR_OK);
    assert_bytes_equal(obtained.captured.payload, bytes_of(large, LARGE_SIZE));
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(fixture->nodes[i].blames_count, 0);
    }
    free(large);
}

/* One of four gives false bytes, which only the whole shows: it alone is blamed, and the capture comes. */
static void whose_piece_was_false_is_found_out(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    uint8_t *large = make_large(fixture);
    for (unsigned i = 1; i <= 4; i++) {
        add_holder(fixture, i, &fixture->sample);
    }
    fixture->nodes[3].lie = LIE_PAYLOAD;
    assert_int_equal(obtain(fixture, &obtained), ERR_OK);
    assert_bytes_equal(obtained.captured.payload, bytes_of(large, LARGE_SIZE));
    assert_true(fixture->nodes[3].pieces_count > 0);
    assert_true(fixture->nodes[3].blames_count >= 1);
    assert_true(fixture->nodes[3].is_distrusted);
    for (unsigned i = 1; i <= 4; i++) {
        assert_true(i == 3 || fixture->nodes[i].blames_count == 0);
    }
    free(large);
}

/* ---- referrals ---- */

/* Each gives once: the second is sent to the first, the third on to the second, two levels deep. */
static void who_comes_later_is_sent_on(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    add_holder(fixture, 1, &fixture->sample);
    for (unsigned i = 2; i <= 4; i++) {
        assert_int_equal(obtain_at(fixture, i, &wish, &obtained), ERR_OK);
        assert_true(peer_equal(&obtained.from, &fixture->nodes[i - 1].peer));
    }
    /* The fifth would be a third level; nobody is blamed for that. */
    assert_int_equal(
        crowd_reader_get(fixture->nodes[5].session, &wish, bytes_of(NULL, 0), 500, &obtained, NULL),
        ERR_BUSY);
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(fixture->nodes[i].pieces_count, i < 4);
        assert_int_equal(fixture->nodes[i].blames_count, 0);
    }
}

/* The one that was named has not got it yet. */
static void a_copy_on_its_way_is_waited_for(void **state) {
    struct fixture *fixture = *state;
    struct obtained obtained;
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    add_holder(fixture, 1, &fixture->sample);
    assert_int_equal(obtain_at(fixture, 2, &wish, &obtained), ERR_OK);
    offers_forget(fixture->nodes[2].offers, &fixture->sample.key);
    fixture->searches_count = 0;
    fixture->puts_late = 2;
    assert_int_equal(obtain_at(fixture, 3, &wish, &obtained), ERR_OK);
    assert_true(peer_equal(&obtained.from, &fixture->nodes[2].peer));
    assert_int_equal(fixture->nodes[2].blames_count, 0);
}

struct asker {
    struct fixture *fixture;
    unsigned index;
    enum err err;
};

static void *ask_once(void *context) {
    struct asker *asker = context;
    struct obtained obtained;
    struct wish wish = sample_wish(&asker->fixture->sample, WISH_URL);
    asker->err = obtain_at(asker->fixture, asker->index, &wish, &obtained);
    return NULL;
}

/* Everybody asks in the same moment, and knows of one holder: it gives to four, these to the others. */
static void a_crowd_is_served_by_itself(void **state) {
    struct fixture *fixture = *state;
    struct asker askers[NODES_COUNT];
    pthread_t threads[NODES_COUNT];
    struct offers_stat stat;
    add_holder(fixture, 1, &fixture->sample);
    for (unsigned i = 2; i < NODES_COUNT; i++) {
        askers[i] = (struct asker){.fixture = fixture, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_once, &askers[i]), 0);
    }
    uint64_t given_count = 0;
    for (unsigned i = 2; i < NODES_COUNT; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(askers[i].err, ERR_OK);
    }
    for (unsigned i = 1; i < NODES_COUNT; i++) {
        offers_stat(fixture->nodes[i].offers, &stat);
        assert_true(stat.given_count <= 4);
        given_count += stat.given_count;
        assert_int_equal(fixture->nodes[i].blames_count, 0);
    }
    assert_int_equal(given_count, NODES_COUNT - 2); /* nothing was given twice */
}

#define TEST_WITH(name, begin) cmocka_unit_test_setup_teardown(name, begin, teardown)
#define TEST(name) TEST_WITH(name, setup)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_capture_comes_and_is_offered_here_too),
        TEST(the_best_by_time_is_taken),
        TEST(lies_are_never_believed),
        TEST(who_does_not_have_it_is_passed_over),
        TEST(strangers_are_not_believed),
        TEST(what_a_member_imported_is_taken),
        TEST_WITH(any_is_taken_where_one_says_so, setup_takes_any),
        TEST(another_url_or_title_is_not_taken),
        TEST(a_large_one_comes_from_all_at_once),
        TEST(what_one_does_not_give_another_does),
        TEST(whose_piece_was_false_is_found_out),
        TEST_WITH(who_comes_later_is_sent_on, setup_one_gives_once),
        TEST_WITH(a_copy_on_its_way_is_waited_for, setup_one_gives_once),
        TEST(a_crowd_is_served_by_itself),
    };
    signal(SIGPIPE, SIG_IGN); /* as the program does: nodes go away while others write to them */
    return cmocka_run_group_tests_name("node-obtaining", tests, NULL, NULL);
}
