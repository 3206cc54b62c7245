/* Two sets compared as two nodes do it, against a model; the vectors of docs/protocol/copies.md. */
#include "protocol/copies/reconcile.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/hex.h"
#include "ringkey-fixture.h"
#include "unit.h"

enum {
    DOCUMENT_SIZE_MAX = 1 << 17,
    LARGE_COUNT = UNIT_IS_SANITIZED ? 100000 : 1000000,
    ROUNDS_MAX = 100000,
    FOUND_SIZE_MAX = 1 << 28,
};

static struct sha256 sha256;

static int start(void **state) {
    (void)state;
    return sha256_init(&sha256) == ERR_OK ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    sha256_done(&sha256);
    return 0;
}

/* ---- a conversation ---- */

struct talk {
    struct buf need;
    struct buf have;
    size_t questions_size;
    size_t answers_size;
    size_t rounds_count;
    size_t message_size_max;
    const struct ringkey *begin; /* NULL: the start of the arc */
};

static void note_need(void *context, const struct ringkey *key) {
    buf_put(&((struct talk *)context)->need, bytes_of(key, sizeof *key));
}

static void note_have(void *context, const struct ringkey *key) {
    buf_put(&((struct talk *)context)->have, bytes_of(key, sizeof *key));
}

static void talk_init(struct talk *talk) {
    *talk = (struct talk){0};
    buf_init(&talk->need, FOUND_SIZE_MAX);
    buf_init(&talk->have, FOUND_SIZE_MAX);
}

static void talk_done(struct talk *talk) {
    buf_done(&talk->need);
    buf_done(&talk->have);
}

static void talk_run(struct talk *talk, const struct reconcile_arc *arc, struct memory_set *asker,
                     struct memory_set *answerer, size_t size_max) {
    static uint8_t question_memory[RECONCILE_MESSAGE_SIZE_MAX];
    static uint8_t answer_memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct reconcile_report report = {note_need, note_have, talk};
    struct ringkey_set asker_set = memory_set(asker);
    struct ringkey_set answerer_set = memory_set(answerer);
    struct reconcile reconcile;
    struct bytes question;
    struct err_detail detail = {0};
    reconcile_init(&reconcile, arc, &asker_set, &report);
    if (talk->begin != NULL) {
        reconcile_skip_to(&reconcile, talk->begin);
    }
    assert_int_equal(reconcile_ask(&reconcile, question_memory, size_max, &question, &detail), ERR_OK);
    while (question.size > 0) {
        struct bytes answer;
        assert_true(question.size <= size_max);
        assert_true(talk->rounds_count++ < ROUNDS_MAX);
        assert_int_equal(
            reconcile_answer(arc, &answerer_set, question, answer_memory, size_max, &answer, &detail),
            ERR_OK);
        assert_true(answer.size <= size_max);
        talk->questions_size += question.size;
        talk->answers_size += answer.size;
        talk->message_size_max = answer.size > talk->message_size_max ? answer.size : talk->message_size_max;
        assert_int_equal(reconcile_take(&reconcile, answer, question_memory, size_max, &question, &detail),
                         ERR_OK);
    }
}

/* ---- the model ---- */

static bool is_in_arc(const struct reconcile_arc *arc, const struct ringkey *key) {
    bool is_above = memcmp(key->bytes, arc->from, RINGKEY_POSITION_SIZE) > 0;
    bool is_below = memcmp(key->bytes, arc->to, RINGKEY_POSITION_SIZE) <= 0;
    bool is_wrapped = memcmp(arc->to, arc->from, RINGKEY_POSITION_SIZE) <= 0;
    return is_wrapped ? is_above || is_below : is_above && is_below;
}

/* Of a, what b has not, in the arc. */
static size_t put_missing(const struct reconcile_arc *arc, const struct memory_set *a,
                          const struct memory_set *b, struct ringkey *out) {
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) {
        bool is_missing = bsearch(&a->keys[i], b->keys, b->count, sizeof *b->keys, compare_keys) == NULL;
        if (is_missing && is_in_arc(arc, &a->keys[i])) {
            out[count++] = a->keys[i];
        }
    }
    return count;
}

static void check_found(const struct reconcile_arc *arc, struct buf *found, const struct memory_set *a,
                        const struct memory_set *b) {
    struct ringkey *expected = calloc(a->count + 1, sizeof *expected);
    assert_non_null(expected);
    size_t count = put_missing(arc, a, b, expected);
    assert_int_equal(found->size, count * sizeof *expected);
    if (count > 0) {
        qsort(found->data, count, sizeof *expected, compare_keys);
        assert_memory_equal(found->data, expected, found->size);
    }
    free(expected);
}

static void check_talk(const struct reconcile_arc *arc, struct memory_set *a, struct memory_set *b,
                       size_t size_max) {
    struct talk talk;
    talk_init(&talk);
    talk_run(&talk, arc, a, b, size_max);
    check_found(arc, &talk.have, a, b);
    check_found(arc, &talk.need, b, a);
    talk_done(&talk);
}

/* Skewed on purpose: few places, so that many keys differ only in time or digest. */
static struct ringkey random_key(struct prng *prng, unsigned skew) {
    struct ringkey key;
    prng_fill(prng, key.bytes, sizeof key.bytes);
    if (skew > 0) {
        static const uint8_t ends[] = {0x00, 0x7f, 0xff};
        memset(key.bytes, ends[prng_below(prng, sizeof ends)], skew);
    }
    return key;
}

static void random_arc(struct prng *prng, const struct ringkey *keys, size_t count,
                       struct reconcile_arc *arc) {
    prng_fill(prng, arc->from, sizeof arc->from);
    prng_fill(prng, arc->to, sizeof arc->to);
    if (prng_below(prng, 4) == 0) {
        memset(arc->from, (int)(prng_below(prng, 2) * 255), sizeof arc->from);
    }
    if (prng_below(prng, 4) == 0) {
        memset(arc->to, (int)(prng_below(prng, 2) * 255), sizeof arc->to);
    }
    if (count > 0 && prng_below(prng, 3) == 0) {
        memcpy(arc->from, keys[prng_below(prng, count)].bytes, sizeof arc->from);
    }
    if (prng_below(prng, 4) == 0) {
        memcpy(arc->to, arc->from, sizeof arc->to); /* the whole ring */
    }
}

static void run_model(uint64_t seed) {
    struct prng prng;
    struct reconcile_arc arc;
    struct memory_set a;
    struct memory_set b;
    prng_init(&prng, seed);
    size_t count = prng_below(&prng, UINT64_C(1) << prng_below(&prng, 14));
    unsigned skew = (unsigned)prng_below(&prng, 3) * 12;
    uint32_t lost_ppm = (uint32_t)(prng_below(&prng, 2) * prng_below(&prng, 1000000));
    uint32_t few_ppm = (uint32_t)prng_below(&prng, 2000);
    struct ringkey *keys_a = calloc(count + 1, sizeof *keys_a);
    struct ringkey *keys_b = calloc(count + 1, sizeof *keys_b);
    assert_true(keys_a != NULL && keys_b != NULL);
    size_t count_a = 0;
    size_t count_b = 0;
    for (size_t i = 0; i < count; i++) {
        struct ringkey key = random_key(&prng, skew);
        if (!prng_chance_ppm(&prng, lost_ppm)) {
            keys_a[count_a++] = key;
        }
        if (!prng_chance_ppm(&prng, few_ppm)) {
            keys_b[count_b++] = key;
        }
    }
    random_arc(&prng, keys_a, count_a, &arc);
    memory_set_init(&a, &sha256, keys_a, count_a);
    memory_set_init(&b, &sha256, keys_b, count_b);
    size_t size_max = prng_between(&prng, RECONCILE_MESSAGE_SIZE_MIN, RECONCILE_MESSAGE_SIZE_MAX);
    check_talk(&arc, &a, &b, size_max);
    check_talk(&arc, &b, &a, size_max);
    memory_set_done(&a);
    memory_set_done(&b);
    free(keys_a);
    free(keys_b);
}

static void finds_exactly_the_difference(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= (UNIT_IS_SANITIZED ? 100 : 400); seed++) {
        run_model(seed);
    }
}

/* Keys of an arc that wraps, every third only in the one set; from each of some keys on. */
static void begins_where_it_is_told(void **state) {
    enum { COUNT = 3000, STEP = 271 };
    static struct ringkey keys[COUNT];
    static struct ringkey some[COUNT];
    struct reconcile_arc arc = {.from = {0x60}, .to = {0x40}};
    struct memory_set all;
    struct memory_set fewer;
    struct prng prng;
    size_t some_count = 0;
    (void)state;
    prng_init(&prng, 11);
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = random_key(&prng, 0);
        if (i % 3 > 0) {
            some[some_count++] = keys[i];
        }
    }
    memory_set_init(&all, &sha256, keys, COUNT);
    memory_set_init(&fewer, &sha256, some, some_count);
    static struct ringkey missing[COUNT];
    size_t missing_count = put_missing(&arc, &all, &fewer, missing);
    for (size_t i = 0; i < COUNT; i += STEP) {
        struct talk talk;
        struct reconcile_position begin = reconcile_arc_position(&arc, &keys[i]);
        size_t expected = 0;
        for (size_t j = 0; j < missing_count; j++) {
            struct reconcile_position position = reconcile_arc_position(&arc, &missing[j]);
            expected += !is_in_arc(&arc, &keys[i]) || reconcile_position_compare(&position, &begin) >= 0;
        }
        talk_init(&talk);
        talk.begin = &keys[i];
        talk_run(&talk, &arc, &fewer, &all, RECONCILE_MESSAGE_SIZE_MAX);
        assert_int_equal(talk.need.size, expected * sizeof(struct ringkey));
        assert_int_equal(talk.have.size, 0);
        talk_done(&talk);
    }
    memory_set_done(&all);
    memory_set_done(&fewer);
}

/* ---- figures ---- */

static const struct reconcile_arc whole_ring;

/* In order already: sorting a million keys would be most of the test. */
static struct ringkey *make_large(size_t count) {
    struct ringkey *keys = calloc(count, sizeof *keys);
    assert_non_null(keys);
    struct prng prng;
    prng_init(&prng, 7);
    uint64_t step = UINT64_MAX / count;
    for (size_t i = 0; i < count; i++) {
        prng_fill(&prng, keys[i].bytes, sizeof keys[i].bytes);
        uint64_t place = i * step + prng_below(&prng, step);
        for (unsigned j = 0; j < 8; j++) {
            keys[i].bytes[j] = (uint8_t)(place >> (56 - 8 * j));
        }
    }
    return keys;
}

/* Leave out lost_count keys, spread at random. */
static void init_without(struct memory_set *set, const struct ringkey *keys, size_t count,
                         size_t lost_count) {
    struct ringkey *copy = calloc(count, sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, keys, count * sizeof *copy);
    struct prng prng;
    prng_init(&prng, lost_count);
    for (size_t i = 0; i < lost_count; i++) {
        copy[prng_below(&prng, count)] = copy[count - 1];
        count--;
    }
    memory_set_init(set, &sha256, copy, count);
    free(copy);
}

static void costs_what_it_should(void **state) {
    (void)state;
    struct ringkey *keys = make_large(LARGE_COUNT);
    struct memory_set full;
    memory_set_init(&full, &sha256, keys, LARGE_COUNT);
    static const struct {
        size_t lost_count;
        size_t size_max;
        size_t rounds_max;
    } cases[] = {{0, 100, 1}, {1, 2600, 4}, {100, 300000, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct memory_set less;
        init_without(&less, keys, LARGE_COUNT, cases[i].lost_count);
        for (int direction = 0; direction < 2; direction++) {
            struct memory_set *asker = direction == 0 ? &full : &less;
            struct memory_set *answerer = direction == 0 ? &less : &full;
            struct talk talk;
            talk_init(&talk);
            asker->listed_count = answerer->listed_count = 0;
            talk_run(&talk, &whole_ring, asker, answerer, RECONCILE_MESSAGE_SIZE_MAX);
            size_t size = talk.questions_size + talk.answers_size;
            print_message("# %zu of %d keys missing: %zu bytes, %zu round trips, %zu keys read\n",
                          cases[i].lost_count, LARGE_COUNT, size, talk.rounds_count,
                          asker->listed_count + answerer->listed_count);
            assert_int_equal((talk.need.size + talk.have.size) / RINGKEY_SIZE, cases[i].lost_count);
            assert_true(size <= cases[i].size_max);
            assert_true(talk.rounds_count <= cases[i].rounds_max);
            assert_true(asker->listed_count + answerer->listed_count <= 100 * cases[i].lost_count);
            talk_done(&talk);
        }
        memory_set_done(&less);
    }
    memory_set_done(&full);
    free(keys);
}

/* A new node: nothing on one side. What is listed is little more than the keys themselves. */
static void fills_an_empty_node(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    struct ringkey *keys = make_large(COUNT);
    struct memory_set full;
    struct memory_set empty;
    memory_set_init(&full, &sha256, keys, COUNT);
    memory_set_init(&empty, &sha256, keys, 0);
    struct talk talk;
    talk_init(&talk);
    talk_run(&talk, &whole_ring, &empty, &full, RECONCILE_MESSAGE_SIZE_MAX);
    assert_int_equal(talk.need.size, COUNT * RINGKEY_SIZE);
    assert_true(talk.questions_size + talk.answers_size <= COUNT * RINGKEY_SIZE * 11 / 10);
    talk_done(&talk);
    talk_init(&talk);
    talk_run(&talk, &whole_ring, &full, &empty, RECONCILE_MESSAGE_SIZE_MAX);
    assert_int_equal(talk.have.size, COUNT * RINGKEY_SIZE);
    assert_true(talk.questions_size + talk.answers_size <= 1000); /* "nothing" is said quickly */
    talk_done(&talk);
    memory_set_done(&full);
    memory_set_done(&empty);
    free(keys);
}

/* ---- a hostile other side ---- */

static void ignore(void *context, const struct ringkey *key) {
    (void)context;
    (void)key;
}

static void an_asker_gives_up_without_progress(void **state) {
    (void)state;
    struct ringkey *keys = make_large(1000);
    struct memory_set set;
    memory_set_init(&set, &sha256, keys, 1000);
    struct ringkey_set view = memory_set(&set);
    struct reconcile_report report = {ignore, ignore, NULL};
    struct reconcile reconcile;
    static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct bytes question;
    struct err_detail detail = {0};
    reconcile_init(&reconcile, &whole_ring, &view, &report);
    assert_int_equal(reconcile_ask(&reconcile, memory, sizeof memory, &question, &detail), ERR_OK);
    static const uint8_t lie[] = {1 << 6 | 41, 5, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8};
    enum err err = ERR_OK;
    unsigned rounds = 0;
    while (err == ERR_OK && rounds++ < 1000) {
        err =
            reconcile_take(&reconcile, bytes_of(lie, sizeof lie), memory, sizeof memory, &question, &detail);
    }
    assert_int_equal(err, ERR_LIMIT);
    assert_int_equal(rounds, RECONCILE_IDLE_ROUNDS_MAX + 1);
    memory_set_done(&set);
    free(keys);
}

/* Many ranges for which there is little to say, when the message is nearly full. */
static void a_full_answer_stays_within_its_bound(void **state) {
    (void)state;
    enum { RANGES_COUNT = 3000, KEYS_MAX = 1640, KEYS_MIN = 1500 };
    static uint8_t question[RECONCILE_MESSAGE_SIZE_MAX];
    static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct ringkey keys[KEYS_MAX];
    struct wire_writer writer;
    wire_writer_init(&writer, question, sizeof question);
    for (unsigned i = 1; i <= RANGES_COUNT; i++) {
        unsigned bound = 2 * i + 1; /* never ends in a zero byte */
        bool is_last = i == RANGES_COUNT;
        wire_write_u8(&writer, (uint8_t)(RECONCILE_SUM << 6 | (is_last ? 41 : 2)));
        wire_write_bytes(&writer,
                         bytes_of((uint8_t[]){(uint8_t)(bound >> 8), (uint8_t)bound}, is_last ? 0 : 2));
        wire_write_varint(&writer, 1);
        wire_write_u64(&writer, i);
        wire_write_u64(&writer, i);
    }
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        unsigned place = 2 * (i / (RECONCILE_LIST_BELOW - 1)); /* just listed, not split */
        keys[i] = (struct ringkey){.bytes = {(uint8_t)(place >> 8), (uint8_t)place, (uint8_t)(i + 1)}};
        keys[i].bytes[RINGKEY_SIZE - 1] = (uint8_t)(i >> 8);
    }
    struct bytes message;
    assert_int_equal(wire_writer_finish(&writer, &message), ERR_OK);
    struct reconcile_arc arc;
    memset(&arc, 0xff, sizeof arc);
    for (unsigned count = KEYS_MIN; count <= KEYS_MAX; count++) {
        struct memory_set set;
        struct bytes answer;
        memory_set_init(&set, &sha256, keys, count);
        struct ringkey_set view = memory_set(&set);
        assert_int_equal(reconcile_answer(&arc, &view, message, memory, sizeof memory, &answer, NULL),
                         ERR_OK);
        assert_in_range(answer.size, RECONCILE_MESSAGE_SIZE_MAX - 1000, RECONCILE_MESSAGE_SIZE_MAX);
        memory_set_done(&set);
    }
}

static void a_key_that_we_lack_is_not_offered(void **state) {
    (void)state;
    struct memory_set set;
    memory_set_init(&set, &sha256, NULL, 0);
    struct ringkey_set view = memory_set(&set);
    struct talk talk;
    talk_init(&talk);
    struct reconcile_report report = {note_need, note_have, &talk};
    struct reconcile reconcile;
    static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    uint8_t lie[3 + RINGKEY_SIZE] = {3 << 6 | 41, 1, RECONCILE_SENDER_LACKS, 9};
    struct bytes question;
    reconcile_init(&reconcile, &whole_ring, &view, &report);
    assert_int_equal(
        reconcile_take(&reconcile, bytes_of(lie, sizeof lie), memory, sizeof memory, &question, NULL),
        ERR_OK);
    assert_int_equal(talk.have.size, 0);
    assert_int_equal(question.size, 0);
    talk_done(&talk);
    memory_set_done(&set);
}

/* ---- vectors ---- */

struct script {
    struct reconcile_arc arc;
    struct memory_set asker;
    struct memory_set answerer;
    struct reconcile reconcile;
    struct talk talk;
    uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct bytes message; /* said last */
    unsigned lines_count;
};

/* All bytes of the place and of the digest are n; n seconds. */
static struct ringkey vector_key(uint8_t n) {
    uint8_t fill[RINGKEY_DIGEST_SIZE];
    memset(fill, n, sizeof fill);
    return ringkey_make(fill, (int64_t)n * 1000000, fill);
}

/* "00-3f, 50": key numbers. */
static void read_set(struct memory_set *set, struct bytes text) {
    struct ringkey keys[256];
    size_t count = 0;
    struct bytes part;
    memory_set_done(set);
    while (text.size > 0 && bytes_split(&text, ',', &part)) {
        uint8_t first;
        uint8_t last;
        part = bytes_trim(part);
        assert_true(hex_decode(bytes_slice(part, 0, 2), &first, 1));
        assert_true(hex_decode(bytes_slice(part, part.size - 2, part.size), &last, 1));
        for (unsigned n = first; n <= last; n++) {
            keys[count++] = vector_key((uint8_t)n);
        }
    }
    memory_set_init(set, &sha256, keys, count);
}

static void check_said(struct script *script, struct bytes hex) {
    struct buf text;
    buf_init(&text, FOUND_SIZE_MAX);
    assert_int_equal(buf_reserve(&text, 2 * script->message.size + 1), ERR_OK);
    hex_encode(script->message, (char *)text.data);
    assert_bytes_equal(bytes_of(text.data, 2 * script->message.size), hex);
    buf_done(&text);
    /* Every shorter message is refused. */
    struct ringkey_set set = memory_set(&script->answerer);
    for (size_t size = 0; size < script->message.size; size++) {
        static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
        struct bytes answer;
        uint8_t *exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, script->message.data, size);
        enum err err =
            reconcile_answer(&script->arc, &set, bytes_of(exact, size), memory, sizeof memory, &answer, NULL);
        assert_true(err != ERR_OK);
        free(exact);
    }
}

static void check_keys(struct buf *found, struct bytes text) {
    struct memory_set expected = {0};
    read_set(&expected, text);
    assert_int_equal(found->size, expected.count * RINGKEY_SIZE);
    if (found->size > 0) {
        assert_memory_equal(found->data, expected.keys, found->size);
    }
    memory_set_done(&expected);
}

static void check_refusal(struct script *script, struct bytes hex, struct bytes reason) {
    static uint8_t memory[RECONCILE_MESSAGE_SIZE_MAX];
    uint8_t message[256];
    struct err_detail detail = {0};
    struct bytes answer;
    assert_true(hex_decode(hex, message, hex.size / 2));
    struct ringkey_set set = memory_set(&script->answerer);
    enum err err = reconcile_answer(&script->arc, &set, bytes_of(message, hex.size / 2), memory,
                                    sizeof memory, &answer, &detail);
    assert_true(err == ERR_INVALID || err == ERR_TRUNCATED || err == ERR_LIMIT);
    if (!bytes_ends_with(bytes_of_string(detail.text), reason)) { /* behind "byte 7: " */
        fail_msg("%s, not %.*s", detail.text, BYTES_ARG(reason));
    }
}

static void say(struct script *script, struct bytes name) {
    static uint8_t answer_memory[RECONCILE_MESSAGE_SIZE_MAX];
    struct ringkey_set asker = memory_set(&script->asker);
    struct ringkey_set answerer = memory_set(&script->answerer);
    struct reconcile_report report = {note_need, note_have, &script->talk};
    enum err err;
    if (bytes_equal(name, BYTES("ask"))) {
        talk_done(&script->talk);
        talk_init(&script->talk);
        reconcile_init(&script->reconcile, &script->arc, &asker, &report);
        err =
            reconcile_ask(&script->reconcile, script->memory, sizeof script->memory, &script->message, NULL);
    } else if (bytes_equal(name, BYTES("answer"))) {
        err = reconcile_answer(&script->arc, &answerer, script->message, answer_memory, sizeof answer_memory,
                               &script->message, NULL);
    } else {
        assert_bytes_equal(name, BYTES("go on"));
        err = reconcile_take(&script->reconcile, script->message, script->memory, sizeof script->memory,
                             &script->message, NULL);
    }
    assert_int_equal(err, ERR_OK);
}

static void run_line(struct script *script, struct bytes name, struct bytes value) {
    script->lines_count++;
    if (bytes_equal(name, BYTES("arc"))) {
        size_t space = bytes_find_byte(value, ' ');
        assert_true(hex_decode(bytes_slice(value, 0, space), script->arc.from, sizeof script->arc.from));
        assert_true(hex_decode(bytes_skip(value, space + 1), script->arc.to, sizeof script->arc.to));
    } else if (bytes_equal(name, BYTES("asker"))) {
        read_set(&script->asker, value);
    } else if (bytes_equal(name, BYTES("answerer"))) {
        read_set(&script->answerer, value);
    } else if (bytes_equal(name, BYTES("need"))) {
        check_keys(&script->talk.need, value);
    } else if (bytes_equal(name, BYTES("have"))) {
        check_keys(&script->talk.have, value);
    } else if (bytes_starts_with(name, BYTES("refused "))) {
        check_refusal(script, bytes_skip(name, 8), value);
    } else {
        say(script, name);
        check_said(script, value);
    }
}

static void keeps_every_vector_of_the_specification(void **state) {
    (void)state;
    static char memory[DOCUMENT_SIZE_MAX];
    static struct script script;
    FILE *file = fopen(MNEMON_SOURCE_ROOT "/docs/protocol/copies.md", "rb");
    assert_non_null(file);
    struct bytes document = bytes_of(memory, fread(memory, 1, sizeof memory, file));
    fclose(file);
    talk_init(&script.talk);
    bool is_inside = false;
    struct bytes line;
    while (bytes_split(&document, '\n', &line)) {
        if (bytes_starts_with(line, BYTES("```"))) {
            is_inside = bytes_equal(line, BYTES("```comparison"));
        } else if (is_inside && line.size > 0 && line.data[0] != '#') {
            size_t equals = bytes_find(line, BYTES(" ="));
            assert_true(equals < line.size);
            run_line(&script, bytes_slice(line, 0, equals), bytes_trim(bytes_skip(line, equals + 2)));
        }
    }
    assert_true(script.lines_count > 20);
    talk_done(&script.talk);
    memory_set_done(&script.asker);
    memory_set_done(&script.answerer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_exactly_the_difference),
        cmocka_unit_test(begins_where_it_is_told),
        cmocka_unit_test(costs_what_it_should),
        cmocka_unit_test(fills_an_empty_node),
        cmocka_unit_test(an_asker_gives_up_without_progress),
        cmocka_unit_test(a_full_answer_stays_within_its_bound),
        cmocka_unit_test(a_key_that_we_lack_is_not_offered),
        cmocka_unit_test(keeps_every_vector_of_the_specification),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
