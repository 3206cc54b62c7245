#include <stdio.h>
#include <stdlib.h>

#include "base/wire.h"
#include "node/rpc/peer_rpc_state.h"

enum {
    CHUNK_SIZE = 64 << 10, /* given to a stream at once */
    /* Never reached: answers stop at PEER_RPC_OUTPUT_SIZE_MAX and one more, questions at PEER_RPC_CALLS_MAX.
     */
    OUTPUT_SIZE_END = 2 * PEER_RPC_OUTPUT_SIZE_MAX + PEER_RPC_MESSAGE_SIZE_MAX +
                      PEER_RPC_CALLS_MAX * (PEER_RPC_HEAD_SIZE + PEER_RPC_QUESTION_SIZE_MAX),
};
static const uint64_t BURST_US = 100000; /* the rate may be ahead by so much */

/* ---- rates ---- */

static bool meter_is_free(const struct peer_rpc_meter *meter, uint64_t now_us) {
    return meter->rate == 0 || meter->free_us < now_us + BURST_US;
}

static void meter_pass(struct peer_rpc_meter *meter, uint64_t size, uint64_t now_us) {
    if (meter->rate > 0) {
        uint64_t from_us = meter->free_us > now_us ? meter->free_us : now_us;
        meter->free_us = from_us + size * 1000000 / meter->rate;
    }
}

/* ---- output ---- */

/* One of peer_rpc->stat. */
static void line_count(struct peer_rpc *peer_rpc, uint64_t *counter, uint64_t more) {
    pthread_mutex_lock(&peer_rpc->lock);
    *counter += more;
    pthread_mutex_unlock(&peer_rpc->lock);
}

static void pump(struct peer_rpc_line *line) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    size_t end = peer_rpc_hello_is_free(line) ? line->output.size : line->hello_end;
    while (line->is_open && line->output_start < end && meter_is_free(&peer_rpc->upload, now_us)) {
        struct bytes rest = bytes_slice(buf_bytes(&line->output), line->output_start, end);
        struct bytes chunk = bytes_of(rest.data, rest.size < CHUNK_SIZE ? rest.size : CHUNK_SIZE);
        if (stream_write(line->stream, chunk) != ERR_OK) {
            break; /* line_on_room() goes on */
        }
        line->output_start += chunk.size;
        meter_pass(&peer_rpc->upload, chunk.size, now_us);
        line_count(peer_rpc, &peer_rpc->stat.sent_size, chunk.size);
    }
    if (line->output_start == line->output.size) {
        buf_clear(&line->output);
        line->output_start = line->hello_end = 0;
    }
}

/* False: no room in memory, and the line is to be ended. */
bool peer_rpc_line_queue(struct peer_rpc_line *line, uint32_t number, enum peer_rpc_form form, uint8_t code,
                         struct bytes contents) {
    uint8_t head[PEER_RPC_HEAD_SIZE];
    struct wire_writer writer;
    if (line->output_start > PEER_RPC_OUTPUT_SIZE_MAX) {
        buf_consume(&line->output, line->output_start);
        line->output_start = 0;
    }
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u32(&writer, (uint32_t)contents.size);
    wire_write_u32(&writer, number);
    wire_write_u8(&writer, (uint8_t)form);
    wire_write_u8(&writer, code);
    struct bytes bytes = wire_writer_bytes(&writer);
    buf_put(&line->output, bytes);
    buf_put(&line->output, contents);
    return line->output.err == ERR_OK;
}

/* ---- the life of a line ---- */

static void set_lines_count(struct peer_rpc *peer_rpc, uint32_t count) {
    pthread_mutex_lock(&peer_rpc->lock);
    peer_rpc->lines_count = peer_rpc->stat.streams_count = count;
    pthread_mutex_unlock(&peer_rpc->lock);
}

static void remove_line(struct peer_rpc_line *line) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    for (struct peer_rpc_line **at = &peer_rpc->lines; *at != NULL; at = &(*at)->next) {
        if (*at == line) {
            *at = line->next;
            break;
        }
    }
    set_lines_count(peer_rpc, peer_rpc->lines_count - 1);
}

void peer_rpc_line_end(struct peer_rpc_line *line, enum err err) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    line->is_over = true; /* callers that are told now may ask again, but not here */
    if (line->stream != NULL) {
        stream_free(line->stream);
        line->stream = NULL;
    }
    line_count(peer_rpc, &peer_rpc->stat.failed_count, line->calls_count);
    while (line->calls != NULL) {
        struct peer_rpc_call *call = line->calls;
        line->calls = call->next;
        line->calls_count--;
        call->done(call->context, err, bytes_of(NULL, 0));
        free(call);
    }
    remove_line(line);
    buf_done(&line->input);
    buf_done(&line->output);
    free(line);
}

void peer_rpc_line_blame(struct peer_rpc_line *line, const char *sentence) {
    const struct peer_rpc_config *config = &line->peer_rpc->config;
    if (config->blame != NULL) {
        config->blame(config->context, &line->peer, sentence);
    }
    peer_rpc_line_end(line, ERR_INVALID);
}

/* ---- input ---- */

static void line_on_answer(struct peer_rpc_line *line, uint32_t number, enum err err, struct bytes contents) {
    for (struct peer_rpc_call **at = &line->calls; *at != NULL; at = &(*at)->next) {
        struct peer_rpc_call *call = *at;
        if (call->number == number) {
            *at = call->next;
            line->calls_count--;
            peer_rpc_learn(line->peer_rpc, &line->peer, call->service, err,
                           peer_rpc_now_us(line->peer_rpc) - call->asked_at_us);
            call->done(call->context, err, err == ERR_OK ? contents : bytes_of(NULL, 0));
            free(call);
            return;
        }
    }
    /* Late, or cancelled. */
}

/* False: no room in memory. */
static bool queue_answer(struct peer_rpc_line *line, uint32_t number, uint8_t service, enum err err,
                         struct bytes answer, const struct err_detail *detail) {
    struct ring_view_rpc *stat = &line->peer_rpc->stat;
    line_count(line->peer_rpc, err == ERR_OK ? &stat->answers_count : &stat->refused_count, 1);
    if (err == ERR_OK) {
        return peer_rpc_line_queue(line, number, PEER_RPC_ANSWER, service, answer);
    }
    const char *text = err_detail_text(detail, err);
    return peer_rpc_line_queue(line, number, PEER_RPC_FAILURE, (uint8_t)-err, bytes_of_string(text));
}

static bool answer_question(struct peer_rpc_line *line, uint32_t number, uint8_t service,
                            struct bytes question) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    struct err_detail detail = {.err = ERR_OK};
    enum err err = ERR_UNSUPPORTED;
    buf_clear(&peer_rpc->answer);
    const struct peer_rpc_config *config = &peer_rpc->config;
    peer_rpc_handler *handler =
        service < PEER_RPC_SERVICES_COUNT ? peer_rpc->services[service].handler : NULL;
    if (service == PEER_RPC_HELLO && config->dialects != NULL) {
        err = peer_rpc_hello_take(line, question, &peer_rpc->answer, &detail);
    } else if (line->is_weak) {
        err = err_set(&detail, ERR_UNSUPPORTED, "both nodes have TLS, and this stream is not in it");
    } else if (line->is_refused) {
        err = err_set(&detail, ERR_UNSUPPORTED, "there is no version of the protocol that both nodes speak");
    } else if (handler != NULL && config->serves != NULL &&
               !config->serves(config->context, &line->peer, (enum peer_rpc_service)service)) {
        err = err_set(&detail, ERR_PERMISSION, "this is not for you");
    } else if (handler != NULL) {
        peer_rpc->asked = (struct peer_rpc_ticket){line->serial, number, service};
        peer_rpc->is_deferred = false;
        err = handler(peer_rpc->services[service].context, &line->peer, question, &peer_rpc->answer, &detail);
        err = err == ERR_OK ? peer_rpc->answer.err : err;
        if (peer_rpc->is_deferred) {
            peer_rpc->is_deferred = false;
            line->deferred_count++;
            return true;
        }
    }
    return queue_answer(line, number, service, err, buf_bytes(&peer_rpc->answer), &detail);
}

struct peer_rpc_ticket peer_rpc_defer(struct peer_rpc *peer_rpc) {
    ASSERT(!peer_rpc->is_deferred);
    peer_rpc->is_deferred = true;
    return peer_rpc->asked;
}

void peer_rpc_give(struct peer_rpc *peer_rpc, const struct peer_rpc_ticket *ticket, enum err err,
                   struct bytes answer, const struct err_detail *detail) {
    for (struct peer_rpc_line *line = peer_rpc->lines; line != NULL; line = line->next) {
        if (line->serial != ticket->line || line->is_over) {
            continue;
        }
        line->deferred_count--;
        line->used_at_us = peer_rpc_now_us(peer_rpc);
        if (queue_answer(line, ticket->number, ticket->service, err, answer, detail)) {
            pump(line);
        } else {
            peer_rpc_line_end(line, ERR_MEMORY);
        }
        return;
    }
}

/* False: the line is no more. */
static bool take_message(struct peer_rpc_line *line, struct wire_reader *head, struct bytes contents) {
    (void)wire_read_u32(head);
    uint32_t number = wire_read_u32(head);
    uint8_t form = wire_read_u8(head);
    uint8_t code = wire_read_u8(head);
    line->used_at_us = peer_rpc_now_us(line->peer_rpc);
    if (form == PEER_RPC_QUESTION && code != PEER_RPC_HELLO && !line->is_settled) {
        peer_rpc_hello_miss(line);
    }
    enum err said = form == PEER_RPC_ANSWER         ? ERR_OK
                    : code > 0 && code <= -ERR_LAST ? (enum err) - code
                                                    : ERR_REFUSED;
    if (form != PEER_RPC_QUESTION && number == line->hello_number && number != 0) {
        line->hello_number = 0;
        return peer_rpc_hello_settle(line, said, contents);
    }
    switch (form) {
    case PEER_RPC_QUESTION:
        if (!answer_question(line, number, code, contents)) {
            peer_rpc_line_end(line, ERR_MEMORY);
            return false;
        }
        return true;
    default:
        line_on_answer(line, number, said, contents);
        return true;
    }
}

/* Is the head of a message sound? Its contents then have *ret_size bytes. */
static bool head_is_sound(struct bytes input, size_t *ret_size) {
    struct wire_reader reader;
    wire_reader_init(&reader, input);
    uint32_t size = wire_read_u32(&reader);
    (void)wire_read_u32(&reader);
    uint8_t form = wire_read_u8(&reader);
    *ret_size = size;
    size_t size_max = form == PEER_RPC_QUESTION ? PEER_RPC_QUESTION_SIZE_MAX
                      : form == PEER_RPC_ANSWER ? PEER_RPC_ANSWER_SIZE_MAX
                                                : PEER_RPC_TEXT_SIZE_MAX;
    return reader.err == ERR_OK && form < PEER_RPC_FORMS_COUNT && size <= size_max;
}

static bool is_full(const struct peer_rpc_line *line) {
    return line->output.size - line->output_start > PEER_RPC_OUTPUT_SIZE_MAX;
}

/* The message at the start of the input has come whole; *ret_size is that of its contents. False: not yet. */
static bool has_message(const struct peer_rpc_line *line, size_t used, size_t *ret_size, bool *ret_is_sound) {
    struct bytes rest = bytes_slice(buf_bytes(&line->input), used, line->input.size);
    *ret_is_sound = true;
    if (rest.size < PEER_RPC_HEAD_SIZE) {
        return false;
    }
    *ret_is_sound = head_is_sound(rest, ret_size);
    return *ret_is_sound && rest.size >= PEER_RPC_HEAD_SIZE + *ret_size;
}

/* Whole messages at the start of the input, while the peer takes our answers. False: the line is no more. */
static bool take_input(struct peer_rpc_line *line) {
    size_t used = 0;
    size_t size;
    bool is_sound = true;
    while (!is_full(line) && has_message(line, used, &size, &is_sound)) {
        struct bytes rest = bytes_slice(buf_bytes(&line->input), used, line->input.size);
        struct wire_reader head;
        wire_reader_init(&head, rest);
        used += PEER_RPC_HEAD_SIZE + size;
        if (!take_message(line, &head, bytes_slice(rest, PEER_RPC_HEAD_SIZE, PEER_RPC_HEAD_SIZE + size))) {
            return false;
        }
        pump(line);
    }
    if (!is_sound) {
        peer_rpc_line_blame(line, "sent a message over a stream that is none");
        return false;
    }
    buf_consume(&line->input, used);
    return true;
}

static void hold_back(struct peer_rpc_line *line, uint64_t now_us) {
    bool is_held_back = is_full(line) || !meter_is_free(&line->peer_rpc->download, now_us);
    if (is_held_back != line->is_held_back) {
        line->is_held_back = is_held_back;
        stream_pause(line->stream, is_held_back);
    }
}

static void on_data(void *context, struct stream *stream, struct bytes bytes) {
    struct peer_rpc_line *line = context;
    struct peer_rpc *peer_rpc = line->peer_rpc;
    uint64_t now_us = peer_rpc_now_us(peer_rpc);
    (void)stream;
    meter_pass(&peer_rpc->download, bytes.size, now_us);
    line_count(peer_rpc, &peer_rpc->stat.received_size, bytes.size);
    if (buf_put(&line->input, bytes) != ERR_OK) {
        peer_rpc_line_end(line, ERR_MEMORY);
    } else if (take_input(line)) {
        hold_back(line, now_us);
    }
}

static void line_on_room(void *context, struct stream *stream) {
    struct peer_rpc_line *line = context;
    (void)stream;
    peer_rpc_line_go_on(line, peer_rpc_now_us(line->peer_rpc));
}

static void line_count_kind(struct peer_rpc_line *line) {
    line_count(line->peer_rpc, &line->peer_rpc->stat.first_count, stream_kind(line->stream) != CHANNEL_TLS);
}

static void on_open(void *context, struct stream *stream) {
    struct peer_rpc_line *line = context;
    line->is_open = true;
    line->peer = *stream_peer(stream);
    const struct peer_rpc_config *config = &line->peer_rpc->config;
    if (config->admits != NULL && !config->admits(config->context, &line->peer)) {
        peer_rpc_line_end(line, ERR_PERMISSION);
        return;
    }
    line_count_kind(line);
    pump(line);
}

static void on_finish(void *context, struct stream *stream) {
    (void)context;
    stream_finish(stream); /* the peer has nothing more to say, so neither have we */
}

/* Who does not know what we speak goes away without a word. */
static void line_on_closed(void *context, struct stream *stream, enum err err) {
    struct peer_rpc_line *line = context;
    line->stream = NULL;
    if (!line->is_open && err == ERR_CLOSED && line->peer_rpc->tls != NULL && line->retries_count == 0) {
        bool is_tls = stream_kind(stream) == CHANNEL_TLS;
        peer_rpc_line_retry(line, is_tls ? CHANNEL_FIRST : CHANNEL_TLS, err);
        return;
    }
    peer_rpc_line_end(line, err == ERR_OK ? ERR_CLOSED : err);
}

static const struct stream_events events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_room = line_on_room,
    .on_finish = on_finish,
    .on_closed = line_on_closed,
};

/* ---- making ---- */

static struct peer_rpc_line *add_line(struct peer_rpc *peer_rpc, const struct peer *peer) {
    struct peer_rpc_line *line = calloc(1, sizeof *line);
    if (line == NULL) {
        return NULL;
    }
    line->peer_rpc = peer_rpc;
    line->peer = *peer;
    line->serial = ++peer_rpc->serials;
    line->used_at_us = peer_rpc_now_us(peer_rpc);
    buf_init(&line->input, PEER_RPC_MESSAGE_SIZE_MAX + CHUNK_SIZE);
    buf_init(&line->output, OUTPUT_SIZE_END);
    line->next = peer_rpc->lines;
    peer_rpc->lines = line;
    set_lines_count(peer_rpc, peer_rpc->lines_count + 1);
    return line;
}

static bool is_idle(const struct peer_rpc_line *line) {
    return line->calls == NULL && line->deferred_count == 0 && line->output.size == line->output_start &&
           line->input.size == 0;
}

/* Room for one more, if need be in place of the one that was idle for longest. */
static bool line_make_room(struct peer_rpc *peer_rpc) {
    if (peer_rpc->lines_count < peer_rpc->config.streams_max) {
        return true;
    }
    struct peer_rpc_line *oldest = NULL;
    for (struct peer_rpc_line *line = peer_rpc->lines; line != NULL; line = line->next) {
        if (!line->is_over && is_idle(line) && (oldest == NULL || line->used_at_us < oldest->used_at_us)) {
            oldest = line;
        }
    }
    if (oldest != NULL) {
        peer_rpc_line_end(oldest, ERR_CLOSED);
    }
    return oldest != NULL;
}

struct peer_rpc_line *peer_rpc_line_find(struct peer_rpc *peer_rpc, const struct peer *peer) {
    for (struct peer_rpc_line *line = peer_rpc->lines; line != NULL; line = line->next) {
        bool is_his = peer_has_key(peer) ? memcmp(line->peer.key, peer->key, PEER_KEY_SIZE) == 0
                                         : address_equal(&line->peer.address, &peer->address);
        if (is_his && !line->is_over && peer_rpc_hello_is_for_us(line) &&
            line->calls_count < PEER_RPC_CALLS_MAX) {
            return line;
        }
    }
    return NULL;
}

static enum err line_connect_stream(struct peer_rpc_line *line, enum channel_kind kind) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    struct stream_config config = {.loop = &peer_rpc->loop.uv,
                                   .identity = peer_rpc->config.identity,
                                   .tls = peer_rpc->tls,
                                   .kind = kind};
    struct peer to = line->peer;
    if (peer_rpc->config.dialects != NULL) {
        to.address = dialects_route(peer_rpc->config.dialects, &line->peer);
    }
    return stream_connect(&config, &to, &events, line, &line->stream);
}

void peer_rpc_line_retry(struct peer_rpc_line *line, enum channel_kind kind, enum err err) {
    enum { RETRIES_MAX = 2 };
    if (line->stream != NULL) {
        stream_free(line->stream);
        line->stream = NULL;
    }
    if (line->retries_count >= RETRIES_MAX || line->peer_rpc->is_ending) {
        peer_rpc_line_end(line, err);
        return;
    }
    line->retries_count++;
    line->is_open = line->is_settled = line->is_weak = line->is_held_back = false;
    buf_clear(&line->input);
    struct buf before = line->output;
    struct bytes questions = bytes_skip(buf_bytes(&before), line->hello_end);
    buf_init(&line->output, OUTPUT_SIZE_END);
    line->output_start = line->hello_end = 0;
    peer_rpc_hello_begin(line);
    buf_put(&line->output, questions);
    buf_done(&before);
    err = line->output.err != ERR_OK ? line->output.err : line_connect_stream(line, kind);
    if (err != ERR_OK) {
        peer_rpc_line_end(line, err);
    }
}

enum err peer_rpc_line_connect(struct peer_rpc *peer_rpc, const struct peer *peer,
                               struct peer_rpc_line **ret_line) {
    if (!line_make_room(peer_rpc)) {
        return ERR_BUSY;
    }
    struct peer_rpc_line *line = add_line(peer_rpc, peer);
    if (line == NULL) {
        return ERR_MEMORY;
    }
    if (peer_rpc->config.meet != NULL) {
        peer_rpc->config.meet(peer_rpc->config.context, peer);
    }
    peer_rpc_hello_begin(line);
    enum err err = line_connect_stream(line, peer_rpc_hello_channel(peer_rpc, peer));
    if (err != ERR_OK) {
        peer_rpc_line_end(line, err);
        return err;
    }
    *ret_line = line;
    return ERR_OK;
}

void peer_rpc_line_accept(void *context, struct stream *stream) {
    struct peer_rpc *peer_rpc = context;
    const struct peer_rpc_config *config = &peer_rpc->config;
    bool is_admitted = config->admits == NULL || config->admits(config->context, stream_peer(stream));
    struct peer_rpc_line *line = is_admitted && !peer_rpc->is_ending && line_make_room(peer_rpc)
                                     ? add_line(peer_rpc, stream_peer(stream))
                                     : NULL;
    if (line == NULL) {
        line_count(peer_rpc, &peer_rpc->stat.refused_count, 1);
        stream_free(stream);
        return;
    }
    line->stream = stream;
    line->is_open = true;
    stream_own(stream, &events, line);
    line_count_kind(line);
}

/* ---- questions ---- */

enum err peer_rpc_line_ask(struct peer_rpc_line *line, enum peer_rpc_service service, struct bytes question,
                           uint64_t deadline_us, peer_rpc_done *done, void *context, uint32_t *ret_number) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    if (line->is_refused) {
        return ERR_UNSUPPORTED;
    }
    if (line->calls_count >= PEER_RPC_CALLS_MAX) {
        return ERR_BUSY;
    }
    struct peer_rpc_call *call = calloc(1, sizeof *call);
    if (call == NULL ||
        !peer_rpc_line_queue(line, peer_rpc->numbers + 1, PEER_RPC_QUESTION, (uint8_t)service, question)) {
        free(call);
        return ERR_MEMORY;
    }
    *call = (struct peer_rpc_call){.number = ++peer_rpc->numbers,
                                   .service = service,
                                   .asked_at_us = peer_rpc_now_us(peer_rpc),
                                   .deadline_us = deadline_us,
                                   .done = done,
                                   .context = context,
                                   .next = line->calls};
    line->calls = call;
    line->calls_count++;
    line->used_at_us = call->asked_at_us;
    *ret_number = call->number;
    pump(line);
    return ERR_OK;
}

void peer_rpc_cancel(struct peer_rpc *peer_rpc, uint32_t number) {
    for (struct peer_rpc_line *line = peer_rpc->lines; line != NULL; line = line->next) {
        for (struct peer_rpc_call **at = &line->calls; *at != NULL; at = &(*at)->next) {
            struct peer_rpc_call *call = *at;
            if (call->number == number) {
                *at = call->next;
                line->calls_count--;
                free(call);
                return;
            }
        }
    }
}

/* One call whose time is over, or NULL. */
static struct peer_rpc_call *take_late(struct peer_rpc_line *line, uint64_t now_us) {
    for (struct peer_rpc_call **at = &line->calls; *at != NULL; at = &(*at)->next) {
        struct peer_rpc_call *call = *at;
        if (now_us >= call->deadline_us) {
            *at = call->next;
            line->calls_count--;
            return call;
        }
    }
    return NULL;
}

bool peer_rpc_line_end_late(struct peer_rpc_line *line, uint64_t now_us) {
    struct peer_rpc *peer_rpc = line->peer_rpc;
    struct peer_rpc_call *late = take_late(line, now_us);
    if (late == NULL) {
        return false;
    }
    line_count(peer_rpc, &peer_rpc->stat.failed_count, 1);
    late->done(late->context, ERR_TIMEOUT, bytes_of(NULL, 0));
    free(late);
    return true;
}

bool peer_rpc_line_go_on(struct peer_rpc_line *line, uint64_t now_us) {
    pump(line);
    if (!line->is_held_back || is_full(line) || !meter_is_free(&line->peer_rpc->download, now_us)) {
        return false;
    }
    if (take_input(line)) {
        hold_back(line, now_us);
    }
    return true;
}

bool peer_rpc_line_needs_ticks(const struct peer_rpc_line *line) {
    return line->calls != NULL || line->is_held_back || line->output_start < line->output.size;
}
