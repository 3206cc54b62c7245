/* stream, handshake, frame: real connections on loopback, and peers that stall, flood, forge or go away. */
#include "net/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "net-vectors.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "net/socket_address.h"

enum { TURNS_MAX = 2000000, CHUNK_SIZE = 100000, PEER_RPC_SIZE = UNIT_IS_SANITIZED ? 10000000 : 100000000 };

struct end {
    struct stream *stream;
    bool is_open;
    bool has_finish;
    bool is_closed;
    enum err err;
    uint64_t received_bytes;
    crypto_hash_sha256_state received;
    size_t data_calls;
    /* The bulk that it sends. */
    uint64_t to_send;
    uint64_t sent_bytes;
    crypto_hash_sha256_state sent;
    struct prng prng;
    bool finishes; /* when all is sent, and when the other side has finished */
    bool pauses;   /* after each piece */
};

struct world {
    uv_loop_t loop;
    struct identity client;
    struct identity server_identity;
    struct stream_server *server;
    struct peer peer; /* the server */
    struct end a;     /* who connects */
    struct end b;
    struct stream_config config;
    struct tls_context *tls; /* the client's; NULL: in the way of programs up to 0.2 */
    struct tls_context *server_tls;
};

static void pump(struct end *end) {
    static uint8_t chunk[CHUNK_SIZE];
    while (end->sent_bytes < end->to_send) {
        uint64_t left = end->to_send - end->sent_bytes;
        size_t size = left < sizeof chunk ? (size_t)left : sizeof chunk;
        struct prng before = end->prng;
        prng_fill(&end->prng, chunk, size);
        enum err err = stream_write(end->stream, bytes_of(chunk, size));
        if (err == ERR_BUSY) {
            end->prng = before;
            return;
        }
        assert_int_equal(err, ERR_OK);
        crypto_hash_sha256_update(&end->sent, chunk, size);
        end->sent_bytes += size;
    }
    if (end->finishes) {
        stream_finish(end->stream);
    }
}

static void on_open(void *context, struct stream *stream) {
    struct end *end = context;
    end->stream = stream;
    end->is_open = true;
    pump(end);
}

static void on_data(void *context, struct stream *stream, struct bytes bytes) {
    struct end *end = context;
    end->received_bytes += bytes.size;
    end->data_calls++;
    crypto_hash_sha256_update(&end->received, bytes.data, bytes.size);
    if (end->pauses) {
        stream_pause(stream, true);
    }
}

static void on_room(void *context, struct stream *stream) {
    (void)stream;
    pump(context);
}

static void on_finish(void *context, struct stream *stream) {
    struct end *end = context;
    end->has_finish = true;
    if (end->finishes && end->sent_bytes == end->to_send) {
        stream_finish(stream);
    }
}

static void on_closed(void *context, struct stream *stream, enum err err) {
    struct end *end = context;
    (void)stream;
    assert_false(end->is_closed);
    end->is_closed = true;
    end->err = err;
    end->stream = NULL;
}

static const struct stream_events events = {.on_open = on_open,
                                            .on_data = on_data,
                                            .on_room = on_room,
                                            .on_finish = on_finish,
                                            .on_closed = on_closed};

static void on_stream(void *context, struct stream *stream) {
    struct world *world = context;
    if (world->b.stream != NULL) { /* tests look at one */
        stream_free(stream);
        return;
    }
    stream_own(stream, &events, &world->b);
    on_open(&world->b, stream);
}

static void end_init(struct end *end, uint64_t seed) {
    prng_init(&end->prng, seed);
    crypto_hash_sha256_init(&end->received);
    crypto_hash_sha256_init(&end->sent);
}

static void listen_at_rate(struct world *world, uint8_t host, struct bucket_rate rate) {
    struct err_detail detail;
    struct stream_server_config config = {
        .stream = world->config,
        .address = address_ipv4(127, 0, 0, host, 0),
        .address_rate = rate,
        .on_stream = on_stream,
        .context = world,
    };
    config.stream.identity = &world->server_identity;
    config.stream.tls = world->server_tls;
    if (stream_server_new(&config, &world->server, &detail) != ERR_OK) {
        fail_msg("%s", detail.text);
    }
    world->peer.address = stream_server_address(world->server);
    memcpy(world->peer.key, world->server_identity.key, PEER_KEY_SIZE);
}

static void listen_at(struct world *world, uint8_t host) {
    listen_at_rate(world, host, (struct bucket_rate){0});
}

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    assert_int_equal(identity_random(&world->client), ERR_OK);
    assert_int_equal(identity_random(&world->server_identity), ERR_OK);
    world->config = (struct stream_config){.loop = &world->loop, .identity = &world->client};
    end_init(&world->a, 1);
    end_init(&world->b, 2);
    *state = world;
    return 0;
}

static int set_up_tls(void **state) {
    (void)set_up(state);
    struct world *world = *state;
    struct tls_config client = {.identity = &world->client, .highest = 2};
    struct tls_config server = {.identity = &world->server_identity, .highest = 2};
    assert_int_equal(tls_context_new(&client, &world->tls, NULL), ERR_OK);
    assert_int_equal(tls_context_new(&server, &world->server_tls, NULL), ERR_OK);
    world->config.tls = world->tls;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    stream_free(world->a.stream);
    stream_free(world->b.stream);
    stream_server_free(world->server);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    tls_context_free(world->tls);
    tls_context_free(world->server_tls);
    free(world);
    return 0;
}

static void connect_to(struct world *world, const struct peer *peer) {
    assert_int_equal(stream_connect(&world->config, peer, &events, &world->a, &world->a.stream), ERR_OK);
}

static void run_until(struct world *world, const bool *condition) {
    for (size_t i = 0; i < TURNS_MAX && !*condition; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_true(*condition);
}

/* A connection with none of our code behind it. */
static int raw_connect(const struct world *world) {
    struct sockaddr_storage name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, socket_address_put(&world->peer.address, &name), sizeof(struct sockaddr_in)),
                     0);
    return fd;
}

/* A client that speaks the handshake by hand, so that it can misbehave behind it. */
struct raw_client {
    int fd;
    struct frame_writer writer;
};

static void raw_read(struct world *world, int fd, uint8_t *out, size_t size) {
    size_t got = 0;
    for (size_t i = 0; i < TURNS_MAX && got < size; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
        ssize_t part = recv(fd, out + got, size - got, MSG_DONTWAIT);
        got += part > 0 ? (size_t)part : 0;
    }
    assert_int_equal(got, size);
}

static void raw_open(struct world *world, struct raw_client *client) {
    struct handshake handshake;
    struct handshake_result result;
    uint8_t secret[32];
    uint8_t answer[HANDSHAKE_ANSWER_SIZE];
    uint8_t header[FRAME_HEADER_SIZE];
    struct bytes confirm;
    client->fd = raw_connect(world);
    randombytes_buf(secret, sizeof secret);
    struct bytes hello = handshake_hello(&handshake, secret);
    assert_int_equal(send(client->fd, hello.data, hello.size, 0), hello.size);
    raw_read(world, client->fd, answer, sizeof answer);
    assert_int_equal(handshake_confirm(&handshake, &world->client, world->peer.key,
                                       bytes_of(answer, sizeof answer), &result, &confirm),
                     ERR_OK);
    frame_writer_init(&client->writer, result.sending, header);
    assert_int_equal(send(client->fd, confirm.data, confirm.size, 0), confirm.size);
    assert_int_equal(send(client->fd, header, sizeof header, 0), sizeof header);
    run_until(world, &world->b.is_open);
    raw_read(world, client->fd, header, sizeof header); /* unread bytes would make close() a reset */
}

static void raw_frame(struct raw_client *client, struct bytes contents, bool is_last) {
    uint8_t out[256];
    size_t size = frame_write(&client->writer, contents, is_last, out);
    assert_int_equal(send(client->fd, out, size, 0), size);
}

static void check_handshake(const struct vector *vector) {
    struct identity initiator;
    struct identity responder;
    struct handshake i;
    struct handshake r;
    struct handshake_result i_result;
    struct handshake_result r_result;
    uint8_t value[VECTOR_SIZE_MAX];
    struct bytes answer;
    struct bytes confirm;
    struct bytes rest = vector_expected(vector);
    assert_int_equal(identity_from_seed(&initiator, vector_bytes(vector, "initiator", value).data), ERR_OK);
    assert_int_equal(identity_from_seed(&responder, vector_bytes(vector, "responder", value).data), ERR_OK);
    struct bytes hello = handshake_hello(&i, vector_bytes(vector, "ephemeral-initiator", value).data);
    assert_bytes_equal(hello, bytes_slice(rest, 0, HANDSHAKE_HELLO_SIZE));
    rest = bytes_skip(rest, HANDSHAKE_HELLO_SIZE);
    assert_int_equal(handshake_answer(&r, &responder, vector_bytes(vector, "ephemeral-responder", value).data,
                                      hello, &answer),
                     ERR_OK);
    assert_bytes_equal(answer, bytes_slice(rest, 0, HANDSHAKE_ANSWER_SIZE));
    rest = bytes_skip(rest, HANDSHAKE_ANSWER_SIZE);
    assert_int_equal(handshake_confirm(&i, &initiator, responder.key, answer, &i_result, &confirm), ERR_OK);
    assert_bytes_equal(confirm, bytes_slice(rest, 0, HANDSHAKE_CONFIRM_SIZE));
    rest = bytes_skip(rest, HANDSHAKE_CONFIRM_SIZE);
    assert_int_equal(handshake_accept(&r, &responder, confirm, &r_result), ERR_OK);
    assert_bytes_equal(bytes_of(i_result.sending, 32), bytes_slice(rest, 0, 32));
    assert_bytes_equal(bytes_of(i_result.receiving, 32), bytes_skip(rest, 32));
    assert_bytes_equal(bytes_of(r_result.receiving, 32), bytes_slice(rest, 0, 32));
    assert_bytes_equal(bytes_of(r_result.sending, 32), bytes_skip(rest, 32));
    assert_memory_equal(r_result.peer, initiator.key, PEER_KEY_SIZE);
    assert_memory_equal(i_result.peer, responder.key, PEER_KEY_SIZE);
}

static void check_frames(const struct vector *vector) {
    static uint8_t out[FRAME_CONTENTS_SIZE_MAX];
    struct frame_reader reader;
    uint8_t key[VECTOR_SIZE_MAX];
    uint8_t contents[VECTOR_SIZE_MAX];
    struct bytes rest = vector_expected(vector);
    struct bytes found;
    size_t used;
    frame_reader_init(&reader, vector_bytes(vector, "key", key).data);
    assert_int_equal(frame_read(&reader, rest, out, &used, &found), FRAME_WHOLE);
    assert_bytes_equal(found, vector_bytes(vector, "contents", contents));
    assert_false(reader.is_finished);
    rest = bytes_skip(rest, used);
    assert_int_equal(frame_read(&reader, rest, out, &used, &found), FRAME_WHOLE);
    assert_int_equal(found.size, 0);
    assert_true(reader.is_finished);
    assert_int_equal(used, rest.size);
}

static void agrees_with_the_golden_vectors(void **state) {
    (void)state;
    vectors_check("handshake", 1, check_handshake);
    vectors_check("frames", 1, check_frames);
}

/* Every bit of every message counts: the handshake then ends without keys on the side that reads it. */
static void every_flipped_bit_of_a_handshake_is_refused(void **state) {
    struct world *world = *state;
    uint8_t secret[32] = {1};
    uint8_t other_secret[32] = {2};
    for (size_t bit = 0; bit < HANDSHAKE_SIZE * 8; bit++) {
        struct handshake i;
        struct handshake r;
        struct handshake_result result;
        uint8_t message[HANDSHAKE_ANSWER_SIZE];
        uint8_t flip = (uint8_t)(1 << bit % 8);
        size_t place = bit / 8;
        struct bytes hello = handshake_hello(&i, secret);
        struct bytes answer;
        struct bytes confirm;
        memcpy(message, hello.data, hello.size);
        message[place < 40 ? place : 0] ^= place < 40 ? flip : 0;
        enum err err = handshake_answer(&r, &world->server_identity, other_secret,
                                        bytes_of(message, HANDSHAKE_HELLO_SIZE), &answer);
        if (err != ERR_OK) {
            assert_true(place < 8);
            continue;
        }
        memcpy(message, answer.data, answer.size);
        message[place >= 40 && place < 184 ? place - 40 : 0] ^= place >= 40 && place < 184 ? flip : 0;
        err = handshake_confirm(&i, &world->client, world->server_identity.key,
                                bytes_of(message, HANDSHAKE_ANSWER_SIZE), &result, &confirm);
        assert_int_equal(err, place < 184 ? ERR_INVALID : ERR_OK);
        if (err == ERR_OK) {
            memcpy(message, confirm.data, confirm.size);
            message[place - 184] ^= flip;
            err = handshake_accept(&r, &world->server_identity, bytes_of(message, HANDSHAKE_CONFIRM_SIZE),
                                   &result);
            assert_int_equal(err, ERR_INVALID);
        }
    }
}

/* Somebody in the middle who knows names but not the keys behind them. */
static void a_name_without_its_key_is_refused(void **state) {
    struct world *world = *state;
    struct identity thief;
    struct handshake i;
    struct handshake r;
    struct handshake_result result;
    struct bytes answer;
    struct bytes confirm;
    static const uint8_t secret[32] = {1};
    static const uint8_t other_secret[32] = {2};
    assert_int_equal(identity_random(&thief), ERR_OK);
    memcpy(thief.key, world->server_identity.key, PEER_KEY_SIZE);
    struct bytes hello = handshake_hello(&i, secret);
    assert_int_equal(handshake_answer(&r, &thief, other_secret, hello, &answer), ERR_OK);
    assert_int_equal(
        handshake_confirm(&i, &world->client, world->server_identity.key, answer, &result, &confirm),
        ERR_INVALID);
    memcpy(thief.key, world->client.key, PEER_KEY_SIZE);
    hello = handshake_hello(&i, secret);
    assert_int_equal(handshake_answer(&r, &world->server_identity, other_secret, hello, &answer), ERR_OK);
    assert_int_equal(handshake_confirm(&i, &thief, world->server_identity.key, answer, &result, &confirm),
                     ERR_OK);
    assert_int_equal(handshake_accept(&r, &world->server_identity, confirm, &result), ERR_INVALID);
}

static void a_hundred_megabytes_arrive_whole_both_ways_at_once(void **state) {
    struct world *world = *state;
    uint8_t sent[crypto_hash_sha256_BYTES];
    uint8_t received[crypto_hash_sha256_BYTES];
    listen_at(world, 2);
    world->a.to_send = PEER_RPC_SIZE;
    world->b.to_send = PEER_RPC_SIZE / 10;
    world->a.finishes = world->b.finishes = true;
    connect_to(world, &world->peer);
    run_until(world, &world->a.is_closed);
    run_until(world, &world->b.is_closed);
    assert_int_equal(world->a.err, ERR_OK);
    assert_int_equal(world->b.err, ERR_OK);
    assert_int_equal(world->b.received_bytes, PEER_RPC_SIZE);
    assert_int_equal(world->a.received_bytes, PEER_RPC_SIZE / 10);
    crypto_hash_sha256_final(&world->a.sent, sent);
    crypto_hash_sha256_final(&world->b.received, received);
    assert_memory_equal(sent, received, crypto_hash_sha256_BYTES);
    crypto_hash_sha256_final(&world->b.sent, sent);
    crypto_hash_sha256_final(&world->a.received, received);
    assert_memory_equal(sent, received, crypto_hash_sha256_BYTES);
}

static void a_reader_that_pauses_holds_the_writer_back(void **state) {
    struct world *world = *state;
    listen_at(world, 2);
    world->a.to_send = 64 << 20;
    world->b.pauses = true;
    connect_to(world, &world->peer);
    run_until(world, &world->b.is_open);
    for (size_t i = 0; i < 2000; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(world->b.data_calls, 1);
    assert_true(world->a.sent_bytes < 32 << 20); /* what both systems' sockets and our own bound hold */
    uint64_t held = world->a.sent_bytes;
    world->b.pauses = false;
    stream_pause(world->b.stream, false);
    for (size_t i = 0; i < TURNS_MAX && world->b.received_bytes < 64 << 20; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(world->b.received_bytes, 64 << 20);
    assert_true(world->a.sent_bytes > held);
}

static void somebody_else_at_the_address_is_told_apart(void **state) {
    struct world *world = *state;
    listen_at(world, 2);
    struct peer wanted = world->peer;
    memcpy(wanted.key, world->client.key, PEER_KEY_SIZE);
    connect_to(world, &wanted);
    run_until(world, &world->a.is_closed);
    assert_int_equal(world->a.err, ERR_MISMATCH);
    assert_false(world->b.is_open);
}

static void whoever_is_there_proves_a_key(void **state) {
    struct world *world = *state;
    listen_at(world, 2);
    struct peer somebody = {.address = world->peer.address};
    connect_to(world, &somebody);
    run_until(world, &world->b.is_open);
    assert_memory_equal(stream_peer(world->a.stream)->key, world->server_identity.key, PEER_KEY_SIZE);
    assert_memory_equal(stream_peer(world->b.stream)->key, world->client.key, PEER_KEY_SIZE);
}

static void nobody_there_is_said(void **state) {
    struct world *world = *state;
    listen_at(world, 2);
    stream_server_free(world->server);
    world->server = NULL;
    uv_run(&world->loop, UV_RUN_DEFAULT);
    connect_to(world, &world->peer);
    run_until(world, &world->a.is_closed);
    assert_int_equal(world->a.err, ERR_REFUSED);
}

static void a_clean_end_and_a_cut_are_told_apart(void **state) {
    struct world *world = *state;
    struct raw_client client;
    listen_at(world, 2);
    raw_open(world, &client);
    raw_frame(&client, BYTES("hello"), false);
    close(client.fd);
    run_until(world, &world->b.is_closed);
    assert_int_equal(world->b.err, ERR_TRUNCATED);
    assert_int_equal(world->b.received_bytes, 5);
    world->b = (struct end){.finishes = true};
    end_init(&world->b, 3);
    raw_open(world, &client);
    raw_frame(&client, BYTES("hello"), true);
    run_until(world, &world->b.is_closed);
    assert_int_equal(world->b.err, ERR_OK);
    close(client.fd);
}

static void forged_frames_and_bytes_behind_the_end_are_refused(void **state) {
    struct world *world = *state;
    struct raw_client client;
    listen_at(world, 2);
    for (int i = 0; i < 3; i++) {
        static const char *const bad[] = {"\x11\x00 this is no frame!", "\x10\x00", NULL};
        world->b = (struct end){0};
        end_init(&world->b, 3);
        raw_open(world, &client);
        if (bad[i] != NULL) {
            assert_true(send(client.fd, bad[i], i == 0 ? 19 : 2, 0) > 0);
        } else {
            raw_frame(&client, BYTES("last"), true);
            raw_frame(&client, BYTES("more"), false);
        }
        run_until(world, &world->b.is_closed);
        assert_int_equal(world->b.err, ERR_INVALID);
        close(client.fd);
    }
}

static void what_is_no_handshake_is_cut_off(void **state) {
    struct world *world = *state;
    struct prng prng;
    uint8_t garbage[400];
    prng_init(&prng, 5);
    listen_at(world, 2);
    for (size_t i = 0; i < 50; i++) {
        int fd = raw_connect(world);
        prng_fill(&prng, garbage, sizeof garbage);
        memcpy(garbage, "mnemons\1", i % 3 == 0 ? 8 : i % 3 == 1 ? 7 : 0);
        size_t size = 40 + prng_below(&prng, 360);
        assert_int_equal(send(fd, garbage, size, MSG_NOSIGNAL), size);
        shutdown(fd, SHUT_WR);
        uint8_t answer[512];
        ssize_t got = -1;
        for (size_t turn = 0; turn < TURNS_MAX && got != 0; turn++) {
            uv_run(&world->loop, UV_RUN_NOWAIT);
            got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
            if (got < 0 && errno == ECONNRESET) {
                break;
            }
            assert_true(got <= HANDSHAKE_ANSWER_SIZE);
        }
        close(fd);
    }
    uv_run(&world->loop, UV_RUN_NOWAIT);
    assert_int_equal(stream_server_stats(world->server)->failed, 50);
    assert_int_equal(stream_server_stats(world->server)->opened, 0);
}

/* Slowloris: one byte at a time keeps nothing open; one address cannot take all places. */
static void a_slow_handshake_ends_and_one_address_has_few(void **state) {
    struct world *world = *state;
    int fds[20];
    world->config.handshake_ms = 100;
    listen_at(world, 2);
    const struct stream_server_stats *stats = stream_server_stats(world->server);
    for (size_t i = 0; i < 20; i++) {
        fds[i] = raw_connect(world);
    }
    for (size_t i = 0; i < TURNS_MAX && stats->accepted < 20; i++) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(stats->turned_away, 12);
    for (size_t i = 0; i < TURNS_MAX && stats->failed < 8; i++) {
        (void)send(fds[i % 8], "m", i < 80 ? 1 : 0, MSG_NOSIGNAL);
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(stats->failed, 8);
    for (size_t i = 0; i < 20; i++) {
        close(fds[i]);
    }
    connect_to(world, &world->peer);
    run_until(world, &world->b.is_open);
}

static void an_address_that_comes_too_often_is_turned_away(void **state) {
    struct world *world = *state;
    listen_at_rate(world, 2, (struct bucket_rate){.per_second = 1, .burst = 1});
    const struct stream_server_stats *stats = stream_server_stats(world->server);
    for (uint64_t i = 1; i <= 40; i++) {
        int fd = raw_connect(world);
        for (size_t turn = 0; turn < TURNS_MAX && stats->accepted < i; turn++) {
            uv_run(&world->loop, UV_RUN_NOWAIT);
        }
        close(fd);
    }
    assert_int_equal(stats->accepted, 40);
    assert_true(stats->turned_away > 0);
}

static void a_peer_that_stalls_is_cut_off(void **state) {
    struct world *world = *state;
    struct raw_client client;
    world->config.idle_ms = 100;
    listen_at(world, 2);
    world->b.to_send = 64 << 20; /* of which it takes nothing */
    raw_open(world, &client);
    run_until(world, &world->b.is_closed);
    assert_int_equal(world->b.err, ERR_TIMEOUT);
    assert_true(world->b.sent_bytes < 32 << 20);
    close(client.fd);
}

static void a_peer_that_sends_too_much_is_cut_off(void **state) {
    struct world *world = *state;
    listen_at(world, 2);
    stream_server_free(world->server);
    world->config.received_bytes_max = 1 << 20;
    listen_at(world, 3);
    world->a.to_send = 16 << 20;
    connect_to(world, &world->peer);
    run_until(world, &world->b.is_closed);
    assert_int_equal(world->b.err, ERR_LIMIT);
    assert_true(world->b.received_bytes <= 1 << 20);
    run_until(world, &world->a.is_closed);
    assert_int_equal(world->a.err, ERR_TRUNCATED);
}

/* ---- TLS ---- */

static void a_server_takes_both_kinds_and_knows_which(void **state) {
    struct world *world = *state;
    static const enum channel_kind kinds[] = {CHANNEL_TLS, CHANNEL_FIRST};
    listen_at(world, 2);
    for (size_t i = 0; i < 2; i++) {
        world->config.kind = kinds[i];
        connect_to(world, &world->peer);
        run_until(world, &world->a.is_open);
        run_until(world, &world->b.is_open);
        assert_int_equal(stream_kind(world->a.stream), kinds[i]);
        assert_int_equal(stream_kind(world->b.stream), kinds[i]);
        assert_int_equal(stream_version(world->b.stream), kinds[i] == CHANNEL_TLS ? 2 : 0);
        stream_free(world->a.stream);
        stream_free(world->b.stream);
        world->a = world->b = (struct end){0};
    }
}

/* What a program up to 0.2 does with TLS: it goes away, before it has said anything. */
static void a_server_of_the_first_kind_goes_away(void **state) {
    struct world *world = *state;
    tls_context_free(world->server_tls);
    world->server_tls = NULL;
    listen_at(world, 2);
    connect_to(world, &world->peer);
    run_until(world, &world->a.is_closed);
    assert_int_equal(world->a.err, ERR_CLOSED);
    assert_int_equal(stream_server_stats(world->server)->failed, 1);
}

static void a_connection_that_is_cut_is_told_apart_in_tls(void **state) {
    struct world *world = *state;
    listen_at(world, 2);
    connect_to(world, &world->peer);
    run_until(world, &world->b.is_open);
    assert_int_equal(stream_write(world->a.stream, BYTES("hello")), ERR_OK);
    for (size_t i = 0; i < TURNS_MAX && world->b.received_bytes < 5; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    stream_free(world->a.stream);
    world->a.stream = NULL;
    run_until(world, &world->b.is_closed);
    assert_int_equal(world->b.err, ERR_TRUNCATED);
    assert_int_equal(world->b.received_bytes, 5);
}

/* The beginning of a handshake, by hand, with something else behind it or nothing at all. */
static int raw_half_handshake(struct world *world) {
    struct tls *tls;
    struct buf output;
    int fd = raw_connect(world);
    buf_init(&output, 1 << 16);
    assert_int_equal(tls_new(world->tls, world->peer.key, &output, &tls), ERR_OK);
    assert_int_equal(tls_begin(tls), TLS_PART);
    assert_int_equal(send(fd, output.data, output.size, MSG_NOSIGNAL), output.size);
    tls_free(tls);
    buf_done(&output);
    return fd;
}

static void wait_for_failed(struct world *world, uint64_t count) {
    const struct stream_server_stats *stats = stream_server_stats(world->server);
    for (size_t i = 0; i < TURNS_MAX && stats->failed < count; i++) {
        uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_int_equal(stats->failed, count);
    assert_int_equal(stats->opened, 0);
}

static void plain_bytes_in_a_handshake_of_tls_are_refused(void **state) {
    struct world *world = *state;
    struct prng prng;
    uint8_t garbage[400];
    prng_init(&prng, 6);
    listen_at(world, 2);
    for (size_t i = 0; i < 30; i++) {
        int fd = i % 2 == 0 ? raw_half_handshake(world) : raw_connect(world);
        prng_fill(&prng, garbage, sizeof garbage);
        garbage[0] = i % 2 == 0 ? 'm' : TLS_FIRST_BYTE;
        assert_int_equal(send(fd, garbage, sizeof garbage, MSG_NOSIGNAL), sizeof garbage);
        shutdown(fd, SHUT_WR);
        wait_for_failed(world, i + 1);
        close(fd);
    }
}

static void a_half_handshake_of_tls_ends(void **state) {
    struct world *world = *state;
    int fds[8];
    world->config.handshake_ms = 100;
    listen_at(world, 2);
    for (size_t i = 0; i < 8; i++) {
        fds[i] = raw_half_handshake(world);
    }
    wait_for_failed(world, 8);
    for (size_t i = 0; i < 8; i++) {
        close(fds[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_golden_vectors),
        cmocka_unit_test_setup_teardown(every_flipped_bit_of_a_handshake_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_name_without_its_key_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hundred_megabytes_arrive_whole_both_ways_at_once, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_reader_that_pauses_holds_the_writer_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(somebody_else_at_the_address_is_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whoever_is_there_proves_a_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_there_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_clean_end_and_a_cut_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forged_frames_and_bytes_behind_the_end_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_handshake_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slow_handshake_ends_and_one_address_has_few, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_address_that_comes_too_often_is_turned_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_stalls_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_sends_too_much_is_cut_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hundred_megabytes_arrive_whole_both_ways_at_once, set_up_tls,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_reader_that_pauses_holds_the_writer_back, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(somebody_else_at_the_address_is_told_apart, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(whoever_is_there_proves_a_key, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(nobody_there_is_said, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_sends_too_much_is_cut_off, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_server_takes_both_kinds_and_knows_which, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_server_of_the_first_kind_goes_away, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_that_is_cut_is_told_apart_in_tls, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(plain_bytes_in_a_handshake_of_tls_are_refused, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_half_handshake_of_tls_ends, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_clean_end_and_a_cut_are_told_apart, set_up_tls, tear_down),
        cmocka_unit_test_setup_teardown(a_slow_handshake_ends_and_one_address_has_few, set_up_tls, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
