/* Streams: opened as a node opens them, and then spoken, or broken, as none does. */
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/frame.h"
#include "net/handshake.h"
#include "net/socket_address.h"
#include "node/mirror/mirror_driver_code.h"
#include "node/rpc/peer_rpc_state.h"
#include "peerfuzz.h"
#include "store/keyset/position.h"
#include "store/remote/backend_code.h"

enum {
    WAIT_MS = 30000, /* for an answer of a node with sanitizers on a busy machine */
    INPUT_SIZE_MAX = 4 << 20,
    OUTPUT_SIZE_MAX = 4 << 20,
    QUESTION_SIZE_MAX = 64 << 10,
    SERVICES_COUNT = PEER_RPC_SERVICES_COUNT + 1, /* and one that is none */
    FLOOD_COUNT = 3000,
};

struct line {
    int fd;
    bool is_over;
    struct frame_writer writer;
    struct frame_reader reader;
    struct buf sealed; /* came, and is not opened */
    struct buf opened; /* messages */
    struct buf output; /* not yet gone */
    size_t asked;
    size_t answered;
};

/* ---- opening ---- */

static int connect_socket(struct peerfuzz *fuzz) {
    struct sockaddr_storage name;
    struct address self = fuzz->self.address;
    struct timeval patience = {.tv_sec = WAIT_MS / 1000};
    self.port = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    peerfuzz_must(bind(fd, socket_address_put(&self, &name), sizeof(struct sockaddr_in)) == 0,
                  "bind a stream");
    peerfuzz_must(connect(fd, socket_address_put(&fuzz->node.address, &name), sizeof(struct sockaddr_in)) ==
                      0,
                  "the node takes no connection");
    return fd;
}

static bool send_all(int fd, struct bytes bytes) {
    while (bytes.size > 0) {
        ssize_t size = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (size <= 0) {
            return false;
        }
        bytes = bytes_skip(bytes, (size_t)size);
    }
    return true;
}

static bool receive_all(int fd, uint8_t *out, size_t size) {
    return recv(fd, out, size, MSG_WAITALL) == (ssize_t)size;
}

/* False: the node has not let it in, as it may be where there are many streams. */
static bool shake_hands(struct peerfuzz *fuzz, int fd, struct handshake_result *ret_result) {
    uint8_t secret[32];
    uint8_t answer[HANDSHAKE_ANSWER_SIZE];
    struct handshake handshake;
    struct bytes confirm;
    randombytes_buf(secret, sizeof secret);
    bool is_well = send_all(fd, handshake_hello(&handshake, secret)) &&
                   receive_all(fd, answer, sizeof answer) &&
                   handshake_confirm(&handshake, &fuzz->identity, fuzz->node.key,
                                     bytes_of(answer, sizeof answer), ret_result, &confirm) == ERR_OK;
    return is_well && send_all(fd, confirm);
}

static bool line_open(struct peerfuzz *fuzz, struct line *line) {
    struct handshake_result result;
    uint8_t header[FRAME_HEADER_SIZE];
    *line = (struct line){.fd = connect_socket(fuzz)};
    buf_init(&line->sealed, INPUT_SIZE_MAX);
    buf_init(&line->opened, INPUT_SIZE_MAX);
    buf_init(&line->output, OUTPUT_SIZE_MAX);
    fuzz->streams.sent++;
    if (!shake_hands(fuzz, line->fd, &result)) {
        fuzz->streams.refused++;
        line->is_over = true;
        return false;
    }
    fuzz->streams.taken++;
    frame_writer_init(&line->writer, result.sending, header);
    frame_reader_init(&line->reader, result.receiving);
    buf_put(&line->output, bytes_of(header, sizeof header));
    return true;
}

static void line_close(struct line *line) {
    close(line->fd);
    buf_done(&line->sealed);
    buf_done(&line->opened);
    buf_done(&line->output);
}

/* ---- messages ---- */

/* In as many frames as the lot wants. */
static void line_put(struct peerfuzz *fuzz, struct line *line, struct bytes bytes) {
    uint8_t *out = malloc(FRAME_WHOLE_SIZE_MAX);
    peerfuzz_must(out != NULL, "memory");
    while (bytes.size > 0) {
        size_t size = prng_below(&fuzz->prng, 4) == 0 ? 1 + prng_below(&fuzz->prng, bytes.size) : bytes.size;
        size = size < FRAME_CONTENTS_SIZE_MAX ? size : FRAME_CONTENTS_SIZE_MAX;
        buf_put(&line->output,
                bytes_of(out, frame_write(&line->writer, bytes_of(bytes.data, size), false, out)));
        bytes = bytes_skip(bytes, size);
    }
    free(out);
}

static void line_put_message(struct peerfuzz *fuzz, struct line *line, uint32_t number, uint8_t form,
                             uint8_t code, struct bytes contents, size_t size_said) {
    uint8_t head[PEER_RPC_HEAD_SIZE];
    struct wire_writer writer;
    struct buf whole;
    buf_init(&whole, OUTPUT_SIZE_MAX);
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u32(&writer, (uint32_t)size_said);
    wire_write_u32(&writer, number);
    wire_write_u8(&writer, form);
    wire_write_u8(&writer, code);
    buf_put(&whole, bytes_of(head, sizeof head));
    buf_put(&whole, contents);
    line_put(fuzz, line, buf_bytes(&whole));
    buf_done(&whole);
}

/* The number of a question names its service, so that its answer does. */
static void line_ask(struct peerfuzz *fuzz, struct line *line, unsigned service, struct bytes question) {
    uint32_t number = service << 24 | (uint32_t)(line->asked & 0xffffff);
    uint8_t code = service < PEER_RPC_SERVICES_COUNT ? (uint8_t)service : (uint8_t)(200 + line->asked % 50);
    line_put_message(fuzz, line, number, PEER_RPC_QUESTION, code, question, question.size);
    fuzz->questions[service].sent++;
    line->asked++;
}

/* Is it the decoder that said no? What is not there, or not for everybody, was understood. */
static bool is_refusal(uint8_t code) {
    return code == -ERR_INVALID || code == -ERR_TRUNCATED || code == -ERR_LIMIT || code == -ERR_UNSUPPORTED ||
           code == -ERR_MISMATCH;
}

static void take_message(struct peerfuzz *fuzz, struct line *line, uint32_t number, uint8_t form,
                         uint8_t code) {
    unsigned service = number >> 24;
    if (form == PEER_RPC_QUESTION || service >= SERVICES_COUNT) {
        return; /* the node asks, or answers what was broken on purpose; silence is an answer */
    }
    line->answered++;
    bool is_refused = form == PEER_RPC_FAILURE && is_refusal(code);
    fuzz->questions[service].refused += is_refused;
    fuzz->questions[service].taken += !is_refused;
}

static void take_messages(struct peerfuzz *fuzz, struct line *line) {
    size_t used = 0;
    while (line->opened.size - used >= PEER_RPC_HEAD_SIZE) {
        struct wire_reader reader;
        wire_reader_init(&reader, bytes_skip(buf_bytes(&line->opened), used));
        uint32_t size = wire_read_u32(&reader);
        uint32_t number = wire_read_u32(&reader);
        uint8_t form = wire_read_u8(&reader);
        uint8_t code = wire_read_u8(&reader);
        peerfuzz_must(form < PEER_RPC_FORMS_COUNT && size <= PEER_RPC_ANSWER_SIZE_MAX,
                      "the node says what is none");
        if (line->opened.size - used < PEER_RPC_HEAD_SIZE + size) {
            break;
        }
        take_message(fuzz, line, number, form, code);
        used += PEER_RPC_HEAD_SIZE + size;
    }
    buf_consume(&line->opened, used);
}

/* ---- bytes ---- */

static void line_read(struct line *line) {
    static uint8_t memory[256 << 10];
    uint8_t contents[FRAME_CONTENTS_SIZE_MAX];
    ssize_t size = recv(line->fd, memory, sizeof memory, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN)) {
        line->is_over = true;
    }
    buf_put(&line->sealed, bytes_of(memory, size > 0 ? (size_t)size : 0));
    size_t done = 0;
    for (;;) {
        size_t used = 0;
        struct bytes opened;
        struct bytes rest = bytes_skip(buf_bytes(&line->sealed), done);
        enum frame_verdict verdict = frame_read(&line->reader, rest, contents, &used, &opened);
        done += used;
        if (verdict == FRAME_WHOLE) {
            buf_put(&line->opened, opened);
        } else if (used == 0) {
            break;
        }
    }
    buf_consume(&line->sealed, done);
}

static void line_write(struct line *line) {
    ssize_t size = send(line->fd, line->output.data, line->output.size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN) {
        line->is_over = true;
    }
    buf_consume(&line->output, size > 0 ? (size_t)size : 0);
}

/* Both directions, until all has gone and every question has its answer. False: the stream is over. */
static bool line_run(struct peerfuzz *fuzz, struct line *line) {
    while (!line->is_over && (line->output.size > 0 || line->answered < line->asked)) {
        struct pollfd polled = {.fd = line->fd,
                                .events = (short)(POLLIN | (line->output.size > 0 ? POLLOUT : 0))};
        if (poll(&polled, 1, WAIT_MS) != 1) {
            fuzz->unanswered += line->asked - line->answered;
            return false;
        }
        if ((polled.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            line_read(line);
            take_messages(fuzz, line);
        }
        if ((polled.revents & POLLOUT) != 0) {
            line_write(line);
        }
    }
    return !line->is_over;
}

/* ---- what is there ---- */

/* The next message that came whole, but for the node's own questions; false: none yet. */
static bool take_answer(struct line *line, struct buf *ret_answer, bool *ret_is_answer) {
    for (;;) {
        struct wire_reader reader;
        wire_reader_init(&reader, buf_bytes(&line->opened));
        size_t size = PEER_RPC_HEAD_SIZE + (size_t)wire_read_u32(&reader);
        (void)wire_read_u32(&reader);
        uint8_t form = wire_read_u8(&reader);
        if (reader.err != ERR_OK || line->opened.size < size) {
            return false;
        }
        *ret_is_answer = form == PEER_RPC_ANSWER;
        if (*ret_is_answer) {
            buf_put(ret_answer, bytes_slice(buf_bytes(&line->opened), PEER_RPC_HEAD_SIZE, size));
        }
        buf_consume(&line->opened, size);
        if (form != PEER_RPC_QUESTION) {
            return true;
        }
    }
}

/* Ask, and take the contents of the answer; as honest nodes do. */
static bool ask_truly(struct peerfuzz *fuzz, struct line *line, unsigned service, struct bytes question,
                      struct buf *ret_answer) {
    bool is_answer = false;
    line_put_message(fuzz, line, 0, PEER_RPC_QUESTION, (uint8_t)service, question, question.size);
    buf_clear(ret_answer);
    while (!take_answer(line, ret_answer, &is_answer) && !line->is_over) {
        struct pollfd polled = {.fd = line->fd,
                                .events = (short)(POLLIN | (line->output.size > 0 ? POLLOUT : 0))};
        if (poll(&polled, 1, WAIT_MS) != 1) {
            return false;
        }
        line_write(line);
        line_read(line);
    }
    return is_answer;
}

static void learn_captures(struct peerfuzz *fuzz, struct line *line, struct buf *question,
                           struct buf *answer) {
    struct backend_code_walk walk = {.count_max = PEERFUZZ_KEYS_MAX};
    struct backend_code_page_end end;
    struct capture capture;
    struct wire_reader reader;
    buf_clear(question);
    if (backend_code_put_walk(question, &walk) != ERR_OK ||
        !ask_truly(fuzz, line, PEER_RPC_WALK, buf_bytes(question), answer)) {
        return;
    }
    wire_reader_init(&reader, bytes_skip(buf_bytes(answer), 1));
    while (fuzz->captures_count < PEERFUZZ_KEYS_MAX &&
           backend_code_next_capture(&reader, &capture, &end, NULL) == ERR_OK) {
        size_t at = fuzz->captures_count;
        if (capture.surt.size > PEERFUZZ_SURT_SIZE_MAX) {
            continue;
        }
        fuzz->ringkeys[at] =
            position_capture_key(&fuzz->sha256, &capture, (enum position_mapping)fuzz->charter.mapping);
        memcpy(fuzz->surts[at], capture.surt.data, capture.surt.size);
        fuzz->surt_sizes[at] = capture.surt.size;
        fuzz->captures_count++;
    }
}

static void learn_collection(struct peerfuzz *fuzz, struct line *line, struct buf *question,
                             struct buf *answer) {
    static const uint8_t anybody[PEER_KEY_SIZE];
    uint8_t key[PEER_KEY_SIZE];
    struct bytes statement;
    buf_clear(question);
    mirror_driver_put_version_question(question, fuzz->self.address.port, anybody,
                                       bytes_of_string(fuzz->collection_name), bytes_of(NULL, 0));
    if (ask_truly(fuzz, line, PEER_RPC_MIRROR, buf_bytes(question), answer) &&
        mirror_driver_read_version_answer(buf_bytes(answer), key, &statement) == ERR_OK &&
        version_read(statement, identity_verify, &fuzz->version, NULL) == ERR_OK) {
        memcpy(fuzz->statement, statement.data, statement.size);
        fuzz->statement_size = statement.size;
        fuzz->has_collection = true;
    }
}

void peerfuzz_learn(struct peerfuzz *fuzz) {
    enum { TRIES = 50 };
    struct buf question;
    struct buf answer;
    buf_init(&question, QUESTION_SIZE_MAX);
    buf_init(&answer, PEER_RPC_ANSWER_SIZE_MAX);
    for (unsigned i = 0; i < TRIES && !fuzz->has_collection; i++) {
        struct line line;
        usleep(i == 0
                   ? 0
                   : 100000); /* the burst before may have used up what one address may connect in a second */
        fuzz->captures_count = 0;
        if (line_open(fuzz, &line)) {
            learn_captures(fuzz, &line, &question, &answer);
            learn_collection(fuzz, &line, &question, &answer);
        }
        line_close(&line);
    }
    buf_done(&question);
    buf_done(&answer);
}

/* ---- questions ---- */

static void make_question(struct peerfuzz *fuzz, unsigned service, struct buf *question, struct buf *before) {
    buf_clear(question);
    peerfuzz_put_question(fuzz, service, question);
    if (prng_below(&fuzz->prng, 10) >= 5 && buf_reserve(question, QUESTION_SIZE_MAX / 4) == ERR_OK) {
        question->size =
            mutate(&fuzz->prng, question->data, question->size, question->capacity, buf_bytes(before));
    }
    buf_clear(before);
    buf_put(before, buf_bytes(question));
}

/* What nobody has asked for, and what is no answer: the node must ignore the one and end for the other. */
static void put_nonsense(struct peerfuzz *fuzz, struct line *line) {
    uint8_t contents[64];
    uint8_t form = (uint8_t)prng_below(&fuzz->prng, 5);
    prng_fill(&fuzz->prng, contents, sizeof contents);
    size_t size = prng_below(&fuzz->prng, sizeof contents);
    size_t said = prng_below(&fuzz->prng, 4) == 0 ? mutate_number(&fuzz->prng) : size;
    line_put_message(fuzz, line, UINT32_MAX, form, (uint8_t)prng_u64(&fuzz->prng), bytes_of(contents, size),
                     said);
}

void peerfuzz_ask(struct peerfuzz *fuzz, unsigned count) {
    peerfuzz_turn(fuzz);
    struct line line;
    struct buf question;
    struct buf before;
    buf_init(&question, QUESTION_SIZE_MAX);
    buf_init(&before, QUESTION_SIZE_MAX);
    if (line_open(fuzz, &line)) {
        for (unsigned i = 0; i < count && !line.is_over; i++) {
            unsigned service = (unsigned)prng_below(&fuzz->prng, SERVICES_COUNT);
            make_question(fuzz, service, &question, &before);
            line_ask(fuzz, &line, service, buf_bytes(&question));
            if (prng_below(&fuzz->prng, 8) == 0) {
                (void)line_run(fuzz, &line);
            }
        }
        if (line_run(fuzz, &line) && prng_below(&fuzz->prng, 4) == 0) {
            put_nonsense(fuzz, &line);
            (void)line_run(fuzz, &line);
        }
    }
    line_close(&line);
    buf_done(&question);
    buf_done(&before);
}

void peerfuzz_flood(struct peerfuzz *fuzz) {
    peerfuzz_turn(fuzz);
    struct line line;
    struct buf question;
    struct buf before;
    unsigned service = (unsigned)prng_below(&fuzz->prng, PEER_RPC_SERVICES_COUNT);
    bool is_heard = prng_below(&fuzz->prng, 4) > 0; /* else it goes without having read any answer */
    buf_init(&question, QUESTION_SIZE_MAX);
    buf_init(&before, QUESTION_SIZE_MAX);
    if (line_open(fuzz, &line)) {
        for (unsigned i = 0; i < FLOOD_COUNT && line.output.size < OUTPUT_SIZE_MAX / 2; i++) {
            if (i % 64 == 0) {
                make_question(fuzz, service, &question, &before);
            }
            line_ask(fuzz, &line, service, buf_bytes(&question));
        }
        if (is_heard) {
            (void)line_run(fuzz, &line);
        } else {
            line_write(&line);
        }
    }
    line_close(&line);
    buf_done(&question);
    buf_done(&before);
}

/* ---- broken ones ---- */

static void write_slowly(int fd, struct bytes bytes) {
    for (size_t i = 0; i < bytes.size && send_all(fd, bytes_slice(bytes, i, i + 1)); i++) {
        usleep(500);
    }
}

/* A handshake that ends early, or is none. */
static void break_handshake(struct peerfuzz *fuzz, int fd) {
    uint8_t secret[32];
    uint8_t memory[HANDSHAKE_SIZE];
    struct handshake handshake;
    prng_fill(&fuzz->prng, secret, sizeof secret);
    struct bytes hello = handshake_hello(&handshake, secret);
    memcpy(memory, hello.data, hello.size);
    switch (prng_below(&fuzz->prng, 4)) {
    case 0: /* half of it, and silence: the descriptor stays open until the burst ends */
        (void)send_all(fd, bytes_of(memory, prng_below(&fuzz->prng, hello.size)));
        return;
    case 1:
        (void)send_all(fd, bytes_of(memory, mutate(&fuzz->prng, memory, hello.size, sizeof memory, hello)));
        break;
    case 2:
        write_slowly(fd, hello);
        break;
    default: /* whoever confirms so is nobody */
        (void)send_all(fd, hello);
        (void)receive_all(fd, memory, HANDSHAKE_ANSWER_SIZE);
        prng_fill(&fuzz->prng, memory, sizeof memory);
        (void)send_all(fd, bytes_of(memory, HANDSHAKE_CONFIRM_SIZE));
    }
    close(fd);
}

/* A stream that is open, and whose frames then are none. */
static void break_frames(struct peerfuzz *fuzz) {
    struct line line;
    if (line_open(fuzz, &line)) {
        line_ask(fuzz, &line, PEER_RPC_PING, BYTES("are you there?"));
        uint8_t final[FRAME_SIZE_SIZE + FRAME_OVERHEAD];
        switch (prng_below(&fuzz->prng, 4)) {
        case 0:
            line.output.size = mutate(&fuzz->prng, line.output.data, line.output.size, line.output.capacity,
                                      bytes_of(NULL, 0));
            break;
        case 1: /* the end, and then more */
            buf_put(&line.output, bytes_of(final, frame_write(&line.writer, bytes_of(NULL, 0), true, final)));
            buf_put(&line.output, BYTES("more"));
            break;
        case 2:
            write_slowly(line.fd, buf_bytes(&line.output));
            buf_clear(&line.output);
            break;
        default:
            line.output.size -= 1 + prng_below(&fuzz->prng, line.output.size);
        }
        (void)send_all(line.fd, buf_bytes(&line.output));
    }
    line_close(&line);
}

void peerfuzz_break_stream(struct peerfuzz *fuzz) {
    peerfuzz_turn(fuzz);
    if (prng_below(&fuzz->prng, 2) == 0) {
        break_handshake(fuzz, connect_socket(fuzz));
    } else {
        break_frames(fuzz);
    }
}
