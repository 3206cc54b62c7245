/* offers: what is put is found, kept over a restart, given to a few, and damage is noticed. */
#include <fcntl.h>

#include "clock-manual.h"
#include "offers-fixture.h"

#define URL "http://example.org/page"
#define PAGE "<html><head><title>The Great Flood of 2026</title></head><body>water</body></html>"

struct fixture {
    char *root;
    struct identity signer;
    struct clock_manual clock;
    struct captures captures; /* of this node: nothing of it is asked for here */
    struct captures_session *session;
    struct offers_config config;
    struct offers *offers;
    struct offers_sample sample;
};

static void open_offers(struct fixture *fixture) {
    assert_int_equal(offers_new(&fixture->config, &fixture->offers, NULL), ERR_OK);
}

static void reopen(struct fixture *fixture) {
    offers_free(fixture->offers);
    open_offers(fixture);
    offers_load(fixture->offers);
}

static int setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (scratch_make((void **)&fixture->root) != 0 || identity_random(&fixture->signer) != ERR_OK) {
        return -1;
    }
    clock_manual_init(&fixture->clock, 0);
    clock_manual_advance(&fixture->clock, 1000 * OFFERS_SECOND_US);
    fixture->captures.config.scratch_directory = fixture->root;
    fixture->session = captures_session_new(&fixture->captures);
    fixture->config = (struct offers_config){.directory = fixture->root, .clock = &fixture->clock.clock};
    open_offers(fixture);
    sample_init(&fixture->sample, &fixture->signer, URL, 5, BYTES(PAGE));
    *state = fixture;
    return 0;
}

static int teardown(void **state) {
    struct fixture *fixture = *state;
    sample_done(&fixture->sample);
    offers_free(fixture->offers);
    captures_session_free(fixture->session);
    identity_done(&fixture->signer);
    int result = scratch_remove((void **)&fixture->root);
    free(fixture);
    return result;
}

static enum err get(struct fixture *fixture, const struct ringkey *key, struct captured *ret_captured) {
    return offers_get(fixture->offers, fixture->session, key, ret_captured, NULL);
}

static bool has(struct fixture *fixture, const struct offers_sample *sample) {
    struct captured captured;
    return get(fixture, &sample->key, &captured) == ERR_OK;
}

/* How many findings; the first one's key. */
static size_t find(struct fixture *fixture, const struct wish *wish, struct wish_finding *ret_first) {
    static uint8_t memory[CROWD_FINDING_SIZE_MAX]; /* the finding borrows it */
    uint8_t bytes[CROWD_WISH_SIZE_MAX];
    struct wish_finding findings[WISH_FINDINGS_MAX];
    size_t count = 0;
    size_t size = offers_have(fixture->offers, wish_write(wish, bytes), memory);
    if (size == 0) {
        return 0;
    }
    assert_true(wish_read_findings(bytes_of(memory, size), findings, &count));
    *ret_first = findings[0];
    return count;
}

/* ---- what is put ---- */

static void a_capture_is_kept_as_it_was(void **state) {
    struct fixture *fixture = *state;
    struct captured captured;
    struct offers_stat stat;
    assert_int_equal(get(fixture, &fixture->sample.key, &captured), ERR_NOT_FOUND);
    sample_put(fixture->offers, &fixture->sample);
    sample_put(fixture->offers, &fixture->sample);
    for (int i = 0; i < 2; i++) {
        const struct document *document = &fixture->sample.captured.document;
        assert_int_equal(get(fixture, &fixture->sample.key, &captured), ERR_OK);
        assert_bytes_equal(captured.payload, BYTES(PAGE));
        assert_bytes_equal(captured.document.body, BYTES(PAGE));
        assert_bytes_equal(captured.document.url, document->url);
        assert_bytes_equal(captured.document.head, document->head);
        assert_bytes_equal(captured.document.request, document->request);
        assert_bytes_equal(captured.document.tls, document->tls);
        assert_true(captured.is_signed);
        assert_memory_equal(captured.signer, fixture->signer.key, PEER_KEY_SIZE);
        assert_bytes_equal(captured.surt, buf_bytes(&fixture->sample.surt));
        reopen(fixture); /* and after a restart */
    }
    offers_stat(fixture->offers, &stat);
    assert_int_equal(stat.count, 1);
    assert_true(stat.size > sizeof PAGE);
}

static void it_is_found_by_url_digest_and_words(void **state) {
    struct fixture *fixture = *state;
    struct wish_finding first;
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    assert_int_equal(find(fixture, &wish, &first), 0);
    sample_put(fixture->offers, &fixture->sample);
    for (int i = 0; i < 2; i++) {
        wish = sample_wish(&fixture->sample, WISH_URL);
        assert_int_equal(find(fixture, &wish, &first), 1);
        assert_memory_equal(first.key.bytes, fixture->sample.key.bytes, RINGKEY_SIZE);
        assert_int_equal(first.size, sizeof PAGE - 1);
        assert_int_equal(first.url.size, 0); /* who asks knows it */
        wish.kind = WISH_DIGEST;
        assert_int_equal(find(fixture, &wish, &first), 1);
        assert_bytes_equal(first.url, BYTES(URL));
        wish.kind = WISH_WORDS;
        wish.words = BYTES("flood 2026");
        assert_int_equal(find(fixture, &wish, &first), 1);
        assert_bytes_equal(first.title, BYTES("The Great Flood of 2026"));
        wish.words = BYTES("flo");
        assert_int_equal(find(fixture, &wish, &first), 0);
        wish.words = BYTES("flood water"); /* of the text, not of the title */
        assert_int_equal(find(fixture, &wish, &first), 0);
        reopen(fixture);
    }
    fixture->config.is_closed = true;
    reopen(fixture);
    struct ringkey keys[WISH_FINDINGS_MAX];
    wish = sample_wish(&fixture->sample, WISH_URL);
    assert_int_equal(find(fixture, &wish, &first), 0);
    assert_int_equal(offers_have_own(fixture->offers, &wish, keys), 1);
}

static void the_best_by_time_comes_first(void **state) {
    struct fixture *fixture = *state;
    static const char *const bodies[] = {"a", "b", "c", "d", "e", "f"};
    struct offers_sample samples[6];
    struct wish_finding first;
    for (int i = 0; i < 6; i++) {
        sample_init(&samples[i], NULL, URL, 10 * (i + 1), bytes_of_string(bodies[i]));
        sample_put(fixture->offers, &samples[i]);
    }
    struct wish wish = sample_wish(&samples[0], WISH_URL);
    assert_int_equal(find(fixture, &wish, &first), WISH_FINDINGS_MAX);
    assert_int_equal(ringkey_time_us(&first.key), 60 * OFFERS_SECOND_US);
    wish.time = WISH_NEAREST;
    wish.from_us = 31 * OFFERS_SECOND_US;
    assert_int_equal(find(fixture, &wish, &first), WISH_FINDINGS_MAX);
    assert_int_equal(ringkey_time_us(&first.key), 30 * OFFERS_SECOND_US);
    wish.time = WISH_BETWEEN;
    wish.from_us = 15 * OFFERS_SECOND_US;
    wish.to_us = 25 * OFFERS_SECOND_US;
    assert_int_equal(find(fixture, &wish, &first), 1);
    assert_int_equal(ringkey_time_us(&first.key), 20 * OFFERS_SECOND_US);
    for (int i = 0; i < 6; i++) {
        sample_done(&samples[i]);
    }
}

static void noise_is_no_wish(void **state) {
    struct fixture *fixture = *state;
    uint8_t memory[CROWD_FINDING_SIZE_MAX];
    sample_put(fixture->offers, &fixture->sample);
    assert_int_equal(offers_have(fixture->offers, BYTES(""), memory), 0);
    assert_int_equal(offers_have(fixture->offers, BYTES("\1 nothing of that"), memory), 0);
}

/* ---- bounds ---- */

static void what_was_used_longest_ago_goes_first(void **state) {
    struct fixture *fixture = *state;
    static const char *const bodies[] = {"a", "b", "c", "d"};
    struct offers_sample samples[4];
    struct offers_stat stat;
    fixture->config.count_max = 3;
    reopen(fixture);
    for (int i = 0; i < 4; i++) {
        sample_init(&samples[i], NULL, URL, i, bytes_of_string(bodies[i]));
    }
    for (int i = 0; i < 3; i++) {
        sample_put(fixture->offers, &samples[i]);
    }
    assert_true(has(fixture, &samples[0]));
    sample_put(fixture->offers, &samples[3]);
    assert_true(has(fixture, &samples[0]) && has(fixture, &samples[2]) && has(fixture, &samples[3]));
    assert_false(has(fixture, &samples[1]));
    char path[SCRATCH_PATH_SIZE];
    assert_int_not_equal(access(sample_path(fixture->root, &samples[1].key, path), F_OK), 0);
    offers_stat(fixture->offers, &stat);
    assert_int_equal(stat.count, 3);
    /* By size: there is room for two of them. */
    fixture->config.size_max = stat.size * 2 / 3;
    reopen(fixture);
    offers_stat(fixture->offers, &stat);
    assert_int_equal(stat.count, 2);
    assert_true(stat.size <= fixture->config.size_max);
    for (int i = 0; i < 4; i++) {
        sample_done(&samples[i]);
    }
}

static void what_is_too_large_or_false_is_not_kept(void **state) {
    struct fixture *fixture = *state;
    struct offers_sample *sample = &fixture->sample;
    fixture->config.object_size_max = sizeof PAGE - 2;
    reopen(fixture);
    sample_put(fixture->offers, sample);
    assert_false(has(fixture, sample));
    fixture->config.object_size_max = 0;
    reopen(fixture);
    sample->key.bytes[0] ^= 1; /* another place */
    sample_put(fixture->offers, sample);
    assert_false(has(fixture, sample));
    sample->key.bytes[0] ^= 1;
    sample->captured.payload.size--; /* not the whole payload */
    sample_put(fixture->offers, sample);
    assert_false(has(fixture, sample));
    sample->captured.payload.size++;
    sample_put(fixture->offers, sample);
    assert_true(has(fixture, sample));
}

/* ---- files of any kind ---- */

static void spoil(struct fixture *fixture, off_t offset_from_end) {
    char path[SCRATCH_PATH_SIZE];
    uint8_t byte;
    int fd = open(sample_path(fixture->root, &fixture->sample.key, path), O_RDWR);
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END);
    off_t offset = offset_from_end > 0 ? size - offset_from_end : -offset_from_end;
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static unsigned count_files(const struct fixture *fixture) {
    char path[SCRATCH_PATH_SIZE];
    char command[SCRATCH_PATH_SIZE + 64];
    unsigned count = 0;
    snprintf(command, sizeof command, "ls -A %s | wc -l", scratch_path(fixture->root, "crowd", path));
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%u", &count), 1);
    pclose(pipe);
    return count;
}

static void a_damaged_payload_is_noticed_when_it_is_read(void **state) {
    struct fixture *fixture = *state;
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    struct wish_finding first;
    sample_put(fixture->offers, &fixture->sample);
    spoil(fixture, 1);
    reopen(fixture);
    assert_int_equal(find(fixture, &wish, &first), 1);
    assert_false(has(fixture, &fixture->sample));
    assert_int_equal(find(fixture, &wish, &first), 0);
    assert_int_equal(count_files(fixture), 0);
}

static void a_damaged_head_is_noticed_at_the_start(void **state) {
    struct fixture *fixture = *state;
    static const off_t offsets[] = {0, -9, -20, -OFFERS_FILE_PREFIX_SIZE, -OFFERS_FILE_PREFIX_SIZE - 60};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        sample_put(fixture->offers, &fixture->sample);
        assert_int_equal(count_files(fixture), 1);
        spoil(fixture, offsets[i]);
        reopen(fixture);
        assert_false(has(fixture, &fixture->sample));
        assert_int_equal(count_files(fixture), 0);
    }
}

static void what_is_no_offer_is_removed(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    char other[SCRATCH_PATH_SIZE];
    struct ringkey key = fixture->sample.key;
    struct offers_stat stat;
    sample_put(fixture->offers, &fixture->sample);
    fclose(fopen(scratch_path(fixture->root, "crowd/noise", path), "w"));
    assert_int_equal(symlink("/etc/passwd", scratch_path(fixture->root, "crowd/link", path)), 0);
    key.bytes[39] ^= 1; /* the same file under the name of another key; a pipe; a short one; a long one */
    assert_int_equal(
        link(sample_path(fixture->root, &fixture->sample.key, path), sample_path(fixture->root, &key, other)),
        0);
    key.bytes[39] ^= 2;
    assert_int_equal(mkfifo(sample_path(fixture->root, &key, path), 0600), 0);
    key.bytes[39] ^= 4;
    FILE *file = fopen(sample_path(fixture->root, &key, path), "w");
    fputs("MNEMONO1", file);
    fclose(file);
    key.bytes[39] ^= 8;
    file = fopen(sample_path(fixture->root, &key, path), "w");
    fputs("MNEMONO1\xff\xff\xff\xff", file);
    assert_int_equal(ftruncate(fileno(file), 1 << 30), 0);
    fclose(file);
    reopen(fixture);
    offers_stat(fixture->offers, &stat);
    assert_int_equal(stat.count, 1);
    assert_int_equal(count_files(fixture), 1);
    assert_true(has(fixture, &fixture->sample));
}

/* ---- giving, by hand ---- */

static struct peer make_peer(uint8_t number) {
    struct peer peer = {.address = address_ipv4(127, 0, 0, 1, 50000)}; /* as it comes over a stream */
    memset(peer.key, number, sizeof peer.key);
    return peer;
}

/* Node `number` asks for a part; the answer is borrowed until the next call. */
static struct captures_answer ask_from(struct fixture *fixture, const struct peer *peer,
                                       struct address claimed, uint64_t offset, uint32_t size) {
    static uint8_t memory[PEER_RPC_ANSWER_SIZE_MAX];
    struct captures_answer answer;
    struct buf in;
    struct buf out;
    struct captures_question question = {
        .key = fixture->sample.key,
        .wants_description = offset == 0,
        .offset = offset,
        .size_max = size,
        .address = claimed,
    };
    buf_init(&in, PEER_RPC_QUESTION_SIZE_MAX);
    buf_init(&out, PEER_RPC_ANSWER_SIZE_MAX);
    assert_int_equal(captures_code_put_question(&in, &question), ERR_OK);
    assert_int_equal(offers_give(fixture->offers, peer, buf_bytes(&in), &out, NULL), ERR_OK);
    memcpy(memory, out.data, out.size);
    assert_int_equal(captures_code_read_answer(bytes_of(memory, out.size), &answer, NULL), ERR_OK);
    buf_done(&in);
    buf_done(&out);
    return answer;
}

static struct captures_answer ask(struct fixture *fixture, uint8_t number, uint64_t offset, uint32_t size) {
    struct peer peer = make_peer(number);
    return ask_from(fixture, &peer, address_ipv4(127, 0, 0, number, 7070), offset, size);
}

/* Four get it; the others are told who these are, until their time is over. */
static void a_few_are_served_and_named_to_the_others(void **state) {
    struct fixture *fixture = *state;
    struct offers_stat stat;
    assert_false(ask(fixture, 1, 0, 4096).is_there);
    sample_put(fixture->offers, &fixture->sample);
    for (uint8_t i = 1; i <= 4; i++) {
        assert_true(ask(fixture, 9, 0, 0).is_there); /* the description alone costs nobody its turn */
        struct captures_answer answer = ask(fixture, i, 0, 4096);
        assert_true(answer.is_there);
        assert_int_equal(answer.size, sizeof PAGE - 1);
    }
    for (int i = 0; i < 10; i++) {
        struct captures_answer answer = ask(fixture, 9, 0, 4096);
        bool is_named[5] = {false};
        assert_true(answer.is_referral && !answer.is_there);
        assert_int_equal(answer.peers_count, 4);
        for (size_t j = 0; j < 4; j++) {
            uint8_t number = answer.peers[j].key[0];
            assert_true(number >= 1 && number <= 4 && !is_named[number]);
            is_named[number] = true;
            struct address address = address_ipv4(127, 0, 0, number, 7070);
            assert_true(address_equal(&answer.peers[j].address, &address));
        }
    }
    assert_int_equal(ask(fixture, 2, 0, 4096).is_referral, false); /* it may begin again */
    offers_stat(fixture->offers, &stat);
    assert_int_equal(stat.given_count, 4);
    assert_int_equal(stat.given_size, 5 * (sizeof PAGE - 1));
    assert_int_equal(stat.referred_count, 10);
    clock_manual_advance(&fixture->clock, 10 * OFFERS_SECOND_US);
    assert_true(ask(fixture, 9, 0, 4096).is_there);
}

/* Who got the first piece gets the rest; who took a part counts as that part. */
static void who_is_taking_goes_on(void **state) {
    struct fixture *fixture = *state;
    uint32_t half = sizeof PAGE / 2;
    fixture->config.gives_us = 8 * OFFERS_SECOND_US;
    reopen(fixture);
    sample_put(fixture->offers, &fixture->sample);
    for (uint8_t i = 1; i <= 4; i++) {
        assert_true(ask(fixture, i, 0, half).is_there);
    }
    assert_true(ask(fixture, 5, 0, half).is_referral);
    clock_manual_advance(&fixture->clock, OFFERS_SECOND_US);
    assert_true(ask(fixture, 1, half, 4096).is_there);
    /* 1 took all, 2 to 4 a half: one more, who is taking a whole, and no second. */
    assert_true(ask(fixture, 5, 0, half).is_there);
    assert_true(ask(fixture, 6, 0, half).is_referral);
    clock_manual_advance(&fixture->clock, 60 * OFFERS_SECOND_US);
    for (uint8_t i = 7; i <= 10; i++) {
        assert_true(ask(fixture, i, 0, half).is_there);
    }
    assert_true(ask(fixture, 11, 0, half).is_referral);
    assert_true(ask(fixture, 7, half, 4096).is_there);
}

static void nobody_takes_without_end(void **state) {
    struct fixture *fixture = *state;
    sample_put(fixture->offers, &fixture->sample);
    unsigned given_count = 0;
    for (int i = 0; i < 100; i++) {
        given_count += ask(fixture, 1, 0, 4096).is_there;
    }
    assert_int_equal(given_count, 3);
}

/* An address of somebody else is not passed on. */
static void a_claimed_address_must_be_his(void **state) {
    struct fixture *fixture = *state;
    struct peer near = {.address = address_ipv4(192, 0, 2, 5, 50000), .key = {1}};
    struct peer far = {.address = address_ipv4(192, 0, 2, 6, 50000), .key = {2}};
    fixture->config.gives_max = 2;
    reopen(fixture);
    sample_put(fixture->offers, &fixture->sample);
    assert_true(ask_from(fixture, &near, address_ipv4(192, 0, 2, 5, 7070), 0, 4096).is_there);
    assert_true(ask_from(fixture, &far, address_ipv4(198, 51, 100, 1, 25), 0, 4096).is_there);
    struct captures_answer answer = ask(fixture, 9, 0, 4096);
    assert_true(answer.is_referral);
    assert_int_equal(answer.peers_count, 1);
    assert_int_equal(answer.peers[0].key[0], 1);
    assert_int_equal(answer.peers[0].address.port, 7070);
}

static void damage_is_not_given(void **state) {
    struct fixture *fixture = *state;
    sample_put(fixture->offers, &fixture->sample);
    spoil(fixture, 1);
    assert_false(ask(fixture, 1, 0, 4096).is_there);
    assert_int_equal(count_files(fixture), 0);
    /* Later, too: the file has changed since it was checked. */
    sample_put(fixture->offers, &fixture->sample);
    assert_true(ask(fixture, 1, 0, 4096).is_there);
    usleep(20000); /* the file system's clock is coarse */
    spoil(fixture, 1);
    assert_false(ask(fixture, 2, 0, 4096).is_there);
}

static void who_gives_nothing_gives_nothing(void **state) {
    struct fixture *fixture = *state;
    fixture->config.is_closed = true;
    reopen(fixture);
    sample_put(fixture->offers, &fixture->sample);
    assert_false(ask(fixture, 1, 0, 4096).is_there);
    assert_true(has(fixture, &fixture->sample));
}

/* ---- for people ---- */

static void hot_ones_are_listed(void **state) {
    struct fixture *fixture = *state;
    struct offers_sample other;
    struct wish_finding first;
    sample_init(&other, NULL, "http://example.org/other", 7, BYTES("other"));
    sample_put(fixture->offers, &fixture->sample);
    sample_put(fixture->offers, &other);
    struct wish wish = sample_wish(&fixture->sample, WISH_URL);
    struct wish rare = sample_wish(&other, WISH_URL);
    struct arena arena;
    struct offers_wanted *hot;
    arena_init(&arena, 1 << 16);
    for (int i = 0; i < 8; i++) {
        find(fixture, &wish, &first);
    }
    find(fixture, &rare, &first);
    assert_int_equal(offers_hot(fixture->offers, 10, &arena, &hot), 2);
    assert_bytes_equal(hot[0].url, BYTES("http://example.org/page"));
    assert_bytes_equal(hot[0].title, BYTES("The Great Flood of 2026"));
    assert_int_equal(hot[0].time_us, 5 * OFFERS_SECOND_US);
    assert_int_equal(hot[0].size, 82);
    assert_int_equal(hot[0].asked_count, 8);
    assert_int_equal(hot[0].given_count, 0);
    assert_bytes_equal(hot[1].url, BYTES("http://example.org/other"));
    assert_int_equal(hot[1].asked_count, 1);
    clock_manual_advance(&fixture->clock, 120 * OFFERS_SECOND_US);
    assert_int_equal(offers_hot(fixture->offers, 1, &arena, &hot), 1);
    assert_bytes_equal(hot[0].url, BYTES("http://example.org/page"));
    assert_int_equal(hot[0].asked_count, 2);
    arena_done(&arena);
    sample_done(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_capture_is_kept_as_it_was),
        TEST(it_is_found_by_url_digest_and_words),
        TEST(the_best_by_time_comes_first),
        TEST(noise_is_no_wish),
        TEST(what_was_used_longest_ago_goes_first),
        TEST(what_is_too_large_or_false_is_not_kept),
        TEST(a_damaged_payload_is_noticed_when_it_is_read),
        TEST(a_damaged_head_is_noticed_at_the_start),
        TEST(what_is_no_offer_is_removed),
        TEST(a_few_are_served_and_named_to_the_others),
        TEST(who_is_taking_goes_on),
        TEST(nobody_takes_without_end),
        TEST(a_claimed_address_must_be_his),
        TEST(damage_is_not_given),
        TEST(who_gives_nothing_gives_nothing),
        TEST(hot_ones_are_listed),
    };
    return cmocka_run_group_tests_name("node-offers", tests, NULL, NULL);
}
