#include "net/channel.h"

#include <sodium.h>
#include <stdlib.h>

#include "net/frame.h"
#include "net/handshake.h"

enum channel_step {
    CHANNEL_WAITS_FOR_HELLO,
    CHANNEL_WAITS_FOR_ANSWER,
    CHANNEL_WAITS_FOR_CONFIRM,
    CHANNEL_IS_OPEN
};

struct channel {
    struct channel_config config;
    enum channel_kind kind;
    struct buf *output;
    struct tls *tls; /* of CHANNEL_TLS */
    /* Of CHANNEL_FIRST. */
    enum channel_step step;
    struct handshake handshake;
    struct frame_writer writer;
    struct frame_reader reader;
    uint8_t peer[PEER_KEY_SIZE];
    enum err err;
};

static enum err channel_new(const struct channel_config *config, enum channel_kind kind, struct buf *output,
                            struct channel **ret_channel) {
    struct channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        return ERR_MEMORY;
    }
    channel->config = *config;
    channel->kind = kind;
    channel->output = output;
    *ret_channel = channel;
    return ERR_OK;
}

void channel_free(struct channel *channel) {
    if (channel == NULL) {
        return;
    }
    tls_free(channel->tls);
    handshake_done(&channel->handshake);
    sodium_memzero(channel, sizeof *channel);
    free(channel);
}

static enum err channel_begin(struct channel *channel, const uint8_t *expected) {
    uint8_t secret[32];
    if (channel->kind == CHANNEL_TLS) {
        enum err err = tls_new(channel->config.tls, expected, channel->output, &channel->tls);
        return err != ERR_OK ? err : tls_begin(channel->tls) == TLS_PART ? ERR_OK : tls_err(channel->tls);
    }
    memcpy(channel->peer, expected, PEER_KEY_SIZE);
    channel->step = CHANNEL_WAITS_FOR_ANSWER;
    randombytes_buf(secret, sizeof secret);
    enum err err = buf_put(channel->output, handshake_hello(&channel->handshake, secret));
    sodium_memzero(secret, sizeof secret);
    return err;
}

enum err channel_connect(const struct channel_config *config, enum channel_kind kind,
                         const uint8_t expected[PEER_KEY_SIZE], struct buf *output,
                         struct channel **ret_channel) {
    struct channel *channel;
    ASSERT(kind == CHANNEL_FIRST || (kind == CHANNEL_TLS && config->tls != NULL));
    enum err err = channel_new(config, kind, output, &channel);
    if (err != ERR_OK) {
        return err;
    }
    err = channel_begin(channel, expected);
    if (err != ERR_OK) {
        channel_free(channel);
        return err;
    }
    *ret_channel = channel;
    return ERR_OK;
}

enum err channel_accept(const struct channel_config *config, struct buf *output,
                        struct channel **ret_channel) {
    return channel_new(config, CHANNEL_UNKNOWN, output, ret_channel);
}

static enum channel_verdict channel_fail(struct channel *channel, enum err err) {
    channel->err = err;
    return CHANNEL_BAD;
}

/* ---- of programs up to 0.2 ---- */

static enum channel_verdict channel_take_hello(struct channel *channel, struct bytes hello) {
    uint8_t secret[32];
    struct bytes answer;
    randombytes_buf(secret, sizeof secret);
    enum err err = handshake_answer(&channel->handshake, channel->config.identity, secret, hello, &answer);
    sodium_memzero(secret, sizeof secret);
    if (err == ERR_OK) {
        err = buf_put(channel->output, answer);
    }
    channel->step = CHANNEL_WAITS_FOR_CONFIRM;
    return err == ERR_OK ? CHANNEL_PART : channel_fail(channel, err);
}

/* The last message of the handshake, ours or the other's, and the beginning of our frames. */
static enum channel_verdict channel_open_frames(struct channel *channel, struct handshake_result *result,
                                                struct bytes confirm) {
    uint8_t header[FRAME_HEADER_SIZE];
    memcpy(channel->peer, result->peer, PEER_KEY_SIZE);
    frame_writer_init(&channel->writer, result->sending, header);
    frame_reader_init(&channel->reader, result->receiving);
    sodium_memzero(result, sizeof *result);
    (void)buf_put(channel->output, confirm);
    enum err err = buf_put(channel->output, bytes_of(header, sizeof header));
    channel->step = CHANNEL_IS_OPEN;
    return err == ERR_OK ? CHANNEL_OPEN : channel_fail(channel, err);
}

static enum channel_verdict channel_take_answer(struct channel *channel, struct bytes answer) {
    struct handshake_result result;
    struct bytes confirm;
    enum err err = handshake_confirm(&channel->handshake, channel->config.identity, channel->peer, answer,
                                     &result, &confirm);
    return err == ERR_OK ? channel_open_frames(channel, &result, confirm) : channel_fail(channel, err);
}

static enum channel_verdict channel_take_confirm(struct channel *channel, struct bytes confirm) {
    struct handshake_result result;
    enum err err = handshake_accept(&channel->handshake, channel->config.identity, confirm, &result);
    return err == ERR_OK ? channel_open_frames(channel, &result, bytes_of(NULL, 0))
                         : channel_fail(channel, err);
}

static enum channel_verdict channel_shake_hands(struct channel *channel, struct bytes input,
                                                size_t *ret_used) {
    static const size_t sizes[] = {
        [CHANNEL_WAITS_FOR_HELLO] = HANDSHAKE_HELLO_SIZE,
        [CHANNEL_WAITS_FOR_ANSWER] = HANDSHAKE_ANSWER_SIZE,
        [CHANNEL_WAITS_FOR_CONFIRM] = HANDSHAKE_CONFIRM_SIZE,
    };
    size_t size = sizes[channel->step];
    *ret_used = 0;
    if (input.size < size) {
        return CHANNEL_PART;
    }
    struct bytes message = bytes_slice(input, 0, size);
    *ret_used = size;
    switch (channel->step) {
    case CHANNEL_WAITS_FOR_HELLO:
        return channel_take_hello(channel, message);
    case CHANNEL_WAITS_FOR_ANSWER:
        return channel_take_answer(channel, message);
    default:
        return channel_take_confirm(channel, message);
    }
}

static enum channel_verdict channel_take_first(struct channel *channel, struct bytes input, uint8_t *out,
                                               size_t *ret_used, struct bytes *ret_contents) {
    if (channel->step != CHANNEL_IS_OPEN) {
        return channel_shake_hands(channel, input, ret_used);
    }
    switch (frame_read(&channel->reader, input, out, ret_used, ret_contents)) {
    case FRAME_WHOLE:
        return channel->reader.is_finished ? CHANNEL_END : CHANNEL_DATA;
    case FRAME_PART:
        return CHANNEL_PART;
    default:
        *ret_contents = bytes_of(NULL, 0); /* what was not authentic is nobody's business */
        return channel_fail(channel, ERR_INVALID);
    }
}

static enum err channel_put_first(struct channel *channel, struct bytes contents, bool is_last) {
    size_t frames_count = contents.size / FRAME_CONTENTS_SIZE_MAX + 1;
    struct buf *output = channel->output;
    enum err err = buf_reserve(output, contents.size + frames_count * (FRAME_SIZE_SIZE + FRAME_OVERHEAD));
    if (err != ERR_OK) {
        return err;
    }
    do {
        size_t part = contents.size < FRAME_CONTENTS_SIZE_MAX ? contents.size : FRAME_CONTENTS_SIZE_MAX;
        output->size += frame_write(&channel->writer, bytes_slice(contents, 0, part),
                                    is_last && part == contents.size, output->data + output->size);
        contents = bytes_skip(contents, part);
    } while (contents.size > 0);
    return ERR_OK;
}

/* ---- both ---- */

static enum channel_verdict channel_take_tls(struct channel *channel, struct bytes input, uint8_t *out,
                                             size_t *ret_used, struct bytes *ret_contents) {
    switch (tls_take(channel->tls, input, out, ret_used, ret_contents)) {
    case TLS_OPEN:
        return CHANNEL_OPEN;
    case TLS_DATA:
        return CHANNEL_DATA;
    case TLS_END:
        return CHANNEL_END;
    case TLS_PART:
        return CHANNEL_PART;
    default:
        return channel_fail(channel, tls_err(channel->tls));
    }
}

/* By its first byte. */
static enum err channel_recognise(struct channel *channel, uint8_t first) {
    if (first != TLS_FIRST_BYTE || channel->config.tls == NULL) {
        channel->kind = CHANNEL_FIRST;
        return ERR_OK;
    }
    channel->kind = CHANNEL_TLS;
    return tls_new(channel->config.tls, NULL, channel->output, &channel->tls);
}

enum channel_verdict channel_take(struct channel *channel, struct bytes input, uint8_t *out, size_t *ret_used,
                                  struct bytes *ret_contents) {
    *ret_used = 0;
    *ret_contents = bytes_of(NULL, 0);
    if (channel->err != ERR_OK) {
        return CHANNEL_BAD;
    }
    if (channel->kind == CHANNEL_UNKNOWN) {
        if (input.size == 0) {
            return CHANNEL_PART;
        }
        enum err err = channel_recognise(channel, input.data[0]);
        if (err != ERR_OK) {
            return channel_fail(channel, err);
        }
    }
    return channel->kind == CHANNEL_TLS ? channel_take_tls(channel, input, out, ret_used, ret_contents)
                                        : channel_take_first(channel, input, out, ret_used, ret_contents);
}

enum err channel_put(struct channel *channel, struct bytes contents, bool is_last) {
    if (channel->kind == CHANNEL_FIRST) {
        return channel_put_first(channel, contents, is_last);
    }
    enum err err = tls_put(channel->tls, contents);
    return err == ERR_OK && is_last ? tls_finish(channel->tls) : err;
}

enum channel_kind channel_kind(const struct channel *channel) {
    return channel->kind;
}

const uint8_t *channel_peer(const struct channel *channel) {
    return channel->kind == CHANNEL_TLS ? tls_peer(channel->tls) : channel->peer;
}

uint16_t channel_version(const struct channel *channel) {
    return channel->kind == CHANNEL_TLS ? tls_version(channel->tls) : 0;
}

enum err channel_err(const struct channel *channel) {
    return channel->err;
}
