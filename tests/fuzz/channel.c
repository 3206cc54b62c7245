/*
 * channel - what a stranger sends on a new connection, before it has proved anything.
 *
 *      byte 0   bit 0: we have connected, else it has; bit 1: in the way of programs up to 0.2; bit 2: below
 *      byte 1   the size of the pieces in which the rest comes, less one
 *      rest     the bytes
 *
 * Nobody gets in without a key, however the pieces are cut, and what we answer is bounded. With bit 2 two of
 * ours talk, and somebody between them changes a byte:
 *
 *      bytes 2, 3   which one of what goes from the one that connects to the other
 *      byte 4       how, by exclusive or; 0: not at all
 *      rest         contents, which arrive whole, in part from their beginning, or not at all
 *
 * Bit 3: the two have no version of the protocol in common. Bit 4: the one that connects wants another node.
 */
#include "net/channel.h"

#include "fuzz.h"

enum { OUTPUT_SIZE_MAX = 1 << 16 };

static struct identity own;
static struct tls_context *tls;

static void channel_set_up(void) {
    static const uint8_t seed[IDENTITY_SEED_SIZE] = {1};
    if (tls == NULL) {
        struct tls_config config = {.identity = &own, .highest = 2};
        enum err err = identity_from_seed(&own, seed);
        ASSERT(err == ERR_OK);
        err = tls_context_new(&config, &tls, NULL);
        ASSERT(err == ERR_OK);
    }
}

static struct channel *channel_make(uint8_t choice, struct buf *output) {
    static const uint8_t anybody[PEER_KEY_SIZE];
    struct channel_config config = {.identity = &own, .tls = tls};
    struct channel *channel;
    enum channel_kind kind = (choice & 2) != 0 ? CHANNEL_FIRST : CHANNEL_TLS;
    enum err err = (choice & 1) != 0 ? channel_connect(&config, kind, anybody, output, &channel)
                                     : channel_accept(&config, output, &channel);
    ASSERT(err == ERR_OK);
    return channel;
}

/* ---- two of ours ---- */

enum { TURNS_MAX = 20, MIDDLE_HEAD_SIZE = 5 };

struct side {
    struct channel *channel;
    struct buf output;
    struct buf input;
    struct buf received;
    bool is_open;
    bool has_end;
    bool is_bad;
};

static void side_take(struct side *side) {
    static uint8_t out[CHANNEL_CONTENTS_SIZE_MAX];
    enum channel_verdict verdict = CHANNEL_PART;
    size_t used;
    do {
        struct bytes contents;
        verdict = channel_take(side->channel, buf_bytes(&side->input), out, &used, &contents);
        buf_consume(&side->input, used);
        buf_put(&side->received, contents);
        side->is_open |= verdict == CHANNEL_OPEN;
        side->has_end |= verdict == CHANNEL_END;
        side->is_bad |= verdict == CHANNEL_BAD;
    } while (verdict != CHANNEL_BAD && (verdict != CHANNEL_PART || (used > 0 && side->input.size > 0)));
}

static void side_say(struct side *side, struct bytes contents) {
    if (side->is_open && !side->is_bad) {
        enum err err = channel_put(side->channel, contents, true);
        ASSERT(err == ERR_OK);
    }
}

struct middle {
    size_t place;
    uint8_t change;
    size_t passed_size;
    bool has_changed;
};

static void middle_pass(struct middle *middle, struct side *from, struct side *to) {
    bool is_here = middle != NULL && middle->place >= middle->passed_size &&
                   middle->place - middle->passed_size < from->output.size;
    if (is_here) {
        from->output.data[middle->place - middle->passed_size] ^= middle->change;
        middle->has_changed = middle->change != 0;
    }
    if (middle != NULL) {
        middle->passed_size += from->output.size;
    }
    buf_put(&to->input, buf_bytes(&from->output));
    buf_clear(&from->output);
    side_take(to);
}

static void middle_talk(struct middle *middle, struct side *a, struct side *b) {
    for (size_t i = 0; i < TURNS_MAX && a->output.size + b->output.size > 0; i++) {
        middle_pass(middle, a, b);
        middle_pass(NULL, b, a);
    }
}

static void side_init(struct side *side) {
    *side = (struct side){.channel = NULL};
    buf_init(&side->output, OUTPUT_SIZE_MAX);
    buf_init(&side->input, OUTPUT_SIZE_MAX);
    buf_init(&side->received, OUTPUT_SIZE_MAX);
}

static void side_done(struct side *side) {
    channel_free(side->channel);
    buf_done(&side->output);
    buf_done(&side->input);
    buf_done(&side->received);
}

static void channel_talk(const uint8_t *data, size_t size) {
    struct identity other;
    struct tls_context *other_tls;
    struct middle middle = {.place = (size_t)data[2] << 8 | data[3], .change = data[4]};
    struct bytes contents = bytes_of(data + MIDDLE_HEAD_SIZE, size - MIDDLE_HEAD_SIZE);
    uint8_t wanted[PEER_KEY_SIZE];
    bool has_common = (data[0] & 8) == 0;
    bool is_wanted = (data[0] & 16) == 0;
    enum err err = identity_random(&other);
    ASSERT(err == ERR_OK);
    struct tls_config tls_config = {
        .identity = &other, .lowest = has_common ? 1 : 3, .highest = 3, .rekey_size = 64};
    err = tls_context_new(&tls_config, &other_tls, NULL);
    ASSERT(err == ERR_OK);
    struct channel_config config = {.identity = &other, .tls = other_tls};
    memcpy(wanted, is_wanted ? own.key : other.key, PEER_KEY_SIZE);
    struct side a;
    struct side b;
    side_init(&a);
    side_init(&b);
    b.channel = channel_make(0, &b.output);
    err = channel_connect(&config, (data[0] & 2) != 0 ? CHANNEL_FIRST : CHANNEL_TLS, wanted, &a.output,
                          &a.channel);
    ASSERT(err == ERR_OK);
    middle_talk(&middle, &a, &b);
    side_say(&a, contents);
    side_say(&b, contents);
    middle_talk(&middle, &a, &b);
    ASSERT(middle.has_changed || (a.has_end && b.has_end) == is_wanted);
    ASSERT(is_wanted || !a.is_open);
    ASSERT(b.received.size <= contents.size);
    ASSERT(bytes_equal(buf_bytes(&b.received), bytes_slice(contents, 0, b.received.size)));
    ASSERT(!b.has_end || b.received.size == contents.size);
    if (b.is_open) {
        ASSERT(memcmp(channel_peer(b.channel), other.key, PEER_KEY_SIZE) == 0);
        ASSERT(channel_version(b.channel) == (channel_kind(b.channel) == CHANNEL_TLS && has_common ? 2 : 0));
    }
    side_done(&a);
    side_done(&b);
    tls_context_free(other_tls);
}

static void channel_hear(const uint8_t *data, size_t size) {
    static uint8_t out[CHANNEL_CONTENTS_SIZE_MAX];
    static uint8_t input[CHANNEL_INPUT_SIZE_MIN];
    size_t input_size = 0;
    struct buf output;
    enum channel_verdict verdict = CHANNEL_PART;
    buf_init(&output, OUTPUT_SIZE_MAX);
    struct channel *channel = channel_make(data[0], &output);
    size_t piece = (size_t)data[1] + 1;
    for (size_t i = 2; i < size && verdict != CHANNEL_BAD; i += piece) {
        size_t part = size - i < piece ? size - i : piece;
        memcpy(input + input_size, data + i, part);
        input_size += part;
        size_t used;
        do {
            struct bytes contents;
            verdict = channel_take(channel, bytes_of(input, input_size), out, &used, &contents);
            ASSERT(used <= input_size);
            ASSERT(verdict == CHANNEL_PART || verdict == CHANNEL_BAD);
            input_size -= used;
            memmove(input, input + used, input_size);
        } while (verdict == CHANNEL_PART && used > 0 && input_size > 0);
        ASSERT(verdict == CHANNEL_BAD || input_size < 256);
    }
    ASSERT((verdict == CHANNEL_BAD) == (channel_err(channel) != ERR_OK));
    channel_free(channel);
    buf_done(&output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < MIDDLE_HEAD_SIZE || size > OUTPUT_SIZE_MAX / 2) {
        return 0;
    }
    channel_set_up();
    if ((data[0] & 4) != 0) {
        channel_talk(data, size);
    } else {
        channel_hear(data, size);
    }
    return 0;
}
