#include <stdio.h>
#include <stdlib.h>

#include "base/wire.h"
#include "node/rpc/bulk_state.h"

enum {
    CHUNK_SIZE = 64 << 10, /* given to a stream at once */
    /* Never reached: answers stop at BULK_OUTPUT_SIZE_MAX and one more, questions at BULK_CALLS_MAX. */
    OUTPUT_SIZE_END = 2 * BULK_OUTPUT_SIZE_MAX + BULK_MESSAGE_SIZE_MAX +
                      BULK_CALLS_MAX * (BULK_HEAD_SIZE + BULK_QUESTION_SIZE_MAX),
};
static const uint64_t BURST_US = 100000; /* the rate may be ahead by so much */

/* ---- rates ---- */

static bool meter_is_free(const struct bulk_meter *meter, uint64_t now_us) {
    return meter->rate == 0 || meter->free_us < now_us + BURST_US;
}

static void meter_pass(struct bulk_meter *meter, uint64_t size, uint64_t now_us) {
    if (meter->rate > 0) {
        uint64_t from_us = meter->free_us > now_us ? meter->free_us : now_us;
        meter->free_us = from_us + size * 1000000 / meter->rate;
    }
}

/* ---- output ---- */

static void count_sent(struct bulk *bulk, uint64_t size) {
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.sent_size += size;
    pthread_mutex_unlock(&bulk->lock);
}

static void pump(struct bulk_line *line) {
    struct bulk *bulk = line->bulk;
    uint64_t now_us = bulk_now_us(bulk);
    while (line->is_open && line->output_start < line->output.size && meter_is_free(&bulk->upload, now_us)) {
        struct bytes rest = bytes_slice(buf_bytes(&line->output), line->output_start, line->output.size);
        struct bytes chunk = bytes_of(rest.data, rest.size < CHUNK_SIZE ? rest.size : CHUNK_SIZE);
        if (stream_write(line->stream, chunk) != ERR_OK) {
            break; /* on_room() goes on */
        }
        line->output_start += chunk.size;
        meter_pass(&bulk->upload, chunk.size, now_us);
        count_sent(bulk, chunk.size);
    }
    if (line->output_start == line->output.size) {
        buf_clear(&line->output);
        line->output_start = 0;
    }
}

/* False: no room in memory, and the line is to be ended. */
static bool queue(struct bulk_line *line, uint32_t number, enum bulk_form form, uint8_t code,
                  struct bytes contents) {
    uint8_t head[BULK_HEAD_SIZE];
    struct wire_writer writer;
    struct bytes bytes;
    if (line->output_start > BULK_OUTPUT_SIZE_MAX) {
        buf_consume(&line->output, line->output_start);
        line->output_start = 0;
    }
    wire_writer_init(&writer, head, sizeof head);
    wire_write_u32(&writer, (uint32_t)contents.size);
    wire_write_u32(&writer, number);
    wire_write_u8(&writer, (uint8_t)form);
    wire_write_u8(&writer, code);
    enum err err = wire_writer_finish(&writer, &bytes);
    ASSERT(err == ERR_OK);
    buf_put(&line->output, bytes);
    buf_put(&line->output, contents);
    return line->output.err == ERR_OK;
}

/* ---- the life of a line ---- */

static void remove_line(struct bulk_line *line) {
    struct bulk *bulk = line->bulk;
    for (struct bulk_line **at = &bulk->lines; *at != NULL; at = &(*at)->next) {
        if (*at == line) {
            *at = line->next;
            break;
        }
    }
    bulk->lines_count--;
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.streams_count = bulk->lines_count;
    pthread_mutex_unlock(&bulk->lock);
}

void bulk_line_end(struct bulk_line *line, enum err err) {
    struct bulk *bulk = line->bulk;
    line->is_over = true; /* those who are told now may ask again, but not here */
    if (line->stream != NULL) {
        stream_free(line->stream);
        line->stream = NULL;
    }
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.failed_count += line->calls_count;
    pthread_mutex_unlock(&bulk->lock);
    while (line->calls != NULL) {
        struct bulk_call *call = line->calls;
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

static void blame(struct bulk_line *line, const char *sentence) {
    const struct bulk_config *config = &line->bulk->config;
    if (config->blame != NULL) {
        config->blame(config->context, &line->peer, sentence);
    }
    bulk_line_end(line, ERR_INVALID);
}

/* ---- input ---- */

static void on_answer(struct bulk_line *line, uint32_t number, enum err err, struct bytes contents) {
    for (struct bulk_call **at = &line->calls; *at != NULL; at = &(*at)->next) {
        struct bulk_call *call = *at;
        if (call->number == number) {
            *at = call->next;
            line->calls_count--;
            bulk_learn(line->bulk, &line->peer, call->service, err,
                       bulk_now_us(line->bulk) - call->asked_at_us);
            call->done(call->context, err, err == ERR_OK ? contents : bytes_of(NULL, 0));
            free(call);
            return;
        }
    }
    /* Late, or cancelled. */
}

static bool answer_question(struct bulk_line *line, uint32_t number, uint8_t service, struct bytes question) {
    struct bulk *bulk = line->bulk;
    struct err_detail detail = {.err = ERR_OK};
    enum err err = ERR_UNSUPPORTED;
    buf_clear(&bulk->answer);
    const struct bulk_config *config = &bulk->config;
    bulk_handler *handler = service < BULK_SERVICES_COUNT ? bulk->services[service].handler : NULL;
    if (handler != NULL && config->serves != NULL &&
        !config->serves(config->context, &line->peer, (enum bulk_service)service)) {
        err = err_set(&detail, ERR_PERMISSION, "this is not for you");
    } else if (handler != NULL) {
        err = handler(bulk->services[service].context, &line->peer, question, &bulk->answer, &detail);
        err = err == ERR_OK ? bulk->answer.err : err;
    }
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.answers_count += err == ERR_OK;
    bulk->stat.refused_count += err != ERR_OK;
    pthread_mutex_unlock(&bulk->lock);
    if (err == ERR_OK) {
        return queue(line, number, BULK_ANSWER, service, buf_bytes(&bulk->answer));
    }
    const char *text = err_detail_text(&detail, err);
    return queue(line, number, BULK_FAILURE, (uint8_t)-err, bytes_of_string(text));
}

/* False: the line is no more. */
static bool take_message(struct bulk_line *line, struct wire_reader *head, struct bytes contents) {
    (void)wire_read_u32(head);
    uint32_t number = wire_read_u32(head);
    uint8_t form = wire_read_u8(head);
    uint8_t code = wire_read_u8(head);
    line->used_at_us = bulk_now_us(line->bulk);
    switch (form) {
    case BULK_QUESTION:
        if (!answer_question(line, number, code, contents)) {
            bulk_line_end(line, ERR_MEMORY);
            return false;
        }
        return true;
    case BULK_ANSWER:
        on_answer(line, number, ERR_OK, contents);
        return true;
    default:
        on_answer(line, number, code > 0 && code <= -ERR_SYSTEM ? (enum err) - code : ERR_REFUSED, contents);
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
    size_t size_max = form == BULK_QUESTION ? BULK_QUESTION_SIZE_MAX
                      : form == BULK_ANSWER ? BULK_ANSWER_SIZE_MAX
                                            : BULK_TEXT_SIZE_MAX;
    return reader.err == ERR_OK && form < BULK_FORMS_COUNT && size <= size_max;
}

static bool is_full(const struct bulk_line *line) {
    return line->output.size - line->output_start > BULK_OUTPUT_SIZE_MAX;
}

/* The message at the start of the input has come whole; *ret_size is that of its contents. False: not yet. */
static bool has_message(const struct bulk_line *line, size_t used, size_t *ret_size, bool *ret_is_sound) {
    struct bytes rest = bytes_slice(buf_bytes(&line->input), used, line->input.size);
    *ret_is_sound = true;
    if (rest.size < BULK_HEAD_SIZE) {
        return false;
    }
    *ret_is_sound = head_is_sound(rest, ret_size);
    return *ret_is_sound && rest.size >= BULK_HEAD_SIZE + *ret_size;
}

/* Whole messages at the start of the input, while he takes our answers. False: the line is no more. */
static bool take_input(struct bulk_line *line) {
    size_t used = 0;
    size_t size;
    bool is_sound = true;
    while (!is_full(line) && has_message(line, used, &size, &is_sound)) {
        struct bytes rest = bytes_slice(buf_bytes(&line->input), used, line->input.size);
        struct wire_reader head;
        wire_reader_init(&head, rest);
        used += BULK_HEAD_SIZE + size;
        if (!take_message(line, &head, bytes_slice(rest, BULK_HEAD_SIZE, BULK_HEAD_SIZE + size))) {
            return false;
        }
        pump(line);
    }
    if (!is_sound) {
        blame(line, "sent a message over a stream that is none");
        return false;
    }
    buf_consume(&line->input, used);
    return true;
}

static void hold_back(struct bulk_line *line, uint64_t now_us) {
    bool is_held_back = is_full(line) || !meter_is_free(&line->bulk->download, now_us);
    if (is_held_back != line->is_held_back) {
        line->is_held_back = is_held_back;
        stream_pause(line->stream, is_held_back);
    }
}

static void on_data(void *context, struct stream *stream, struct bytes bytes) {
    struct bulk_line *line = context;
    struct bulk *bulk = line->bulk;
    uint64_t now_us = bulk_now_us(bulk);
    (void)stream;
    meter_pass(&bulk->download, bytes.size, now_us);
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.received_size += bytes.size;
    pthread_mutex_unlock(&bulk->lock);
    if (buf_put(&line->input, bytes) != ERR_OK) {
        bulk_line_end(line, ERR_MEMORY);
    } else if (take_input(line)) {
        hold_back(line, now_us);
    }
}

static void on_room(void *context, struct stream *stream) {
    struct bulk_line *line = context;
    (void)stream;
    bulk_line_go_on(line, bulk_now_us(line->bulk));
}

static void on_open(void *context, struct stream *stream) {
    struct bulk_line *line = context;
    line->is_open = true;
    line->peer = *stream_peer(stream);
    const struct bulk_config *config = &line->bulk->config;
    if (config->admits != NULL && !config->admits(config->context, &line->peer)) {
        bulk_line_end(line, ERR_PERMISSION);
        return;
    }
    pump(line);
}

static void on_finish(void *context, struct stream *stream) {
    (void)context;
    stream_finish(stream); /* he has nothing more to say, so neither have we */
}

static void on_closed(void *context, struct stream *stream, enum err err) {
    struct bulk_line *line = context;
    (void)stream;
    line->stream = NULL;
    bulk_line_end(line, err == ERR_OK ? ERR_CLOSED : err);
}

static const struct stream_events events = {
    .on_open = on_open,
    .on_data = on_data,
    .on_room = on_room,
    .on_finish = on_finish,
    .on_closed = on_closed,
};

/* ---- making ---- */

static struct bulk_line *add_line(struct bulk *bulk, const struct peer *peer) {
    struct bulk_line *line = calloc(1, sizeof *line);
    if (line == NULL) {
        return NULL;
    }
    line->bulk = bulk;
    line->peer = *peer;
    line->used_at_us = bulk_now_us(bulk);
    buf_init(&line->input, BULK_MESSAGE_SIZE_MAX + CHUNK_SIZE);
    buf_init(&line->output, OUTPUT_SIZE_END);
    line->next = bulk->lines;
    bulk->lines = line;
    bulk->lines_count++;
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.streams_count = bulk->lines_count;
    pthread_mutex_unlock(&bulk->lock);
    return line;
}

static bool is_idle(const struct bulk_line *line) {
    return line->calls == NULL && line->output.size == line->output_start && line->input.size == 0;
}

/* Room for one more, if need be in place of the one that was idle for longest. */
static bool make_room(struct bulk *bulk) {
    if (bulk->lines_count < bulk->config.streams_max) {
        return true;
    }
    struct bulk_line *oldest = NULL;
    for (struct bulk_line *line = bulk->lines; line != NULL; line = line->next) {
        if (!line->is_over && is_idle(line) && (oldest == NULL || line->used_at_us < oldest->used_at_us)) {
            oldest = line;
        }
    }
    if (oldest != NULL) {
        bulk_line_end(oldest, ERR_CLOSED);
    }
    return oldest != NULL;
}

static bool key_is_known(const struct peer *peer) {
    static const uint8_t zeros[PEER_KEY_SIZE];
    return memcmp(peer->key, zeros, PEER_KEY_SIZE) != 0;
}

struct bulk_line *bulk_line_find(struct bulk *bulk, const struct peer *peer) {
    for (struct bulk_line *line = bulk->lines; line != NULL; line = line->next) {
        bool is_his = key_is_known(peer) ? memcmp(line->peer.key, peer->key, PEER_KEY_SIZE) == 0
                                         : address_equal(&line->peer.address, &peer->address);
        if (is_his && !line->is_over && line->calls_count < BULK_CALLS_MAX) {
            return line;
        }
    }
    return NULL;
}

enum err bulk_line_connect(struct bulk *bulk, const struct peer *peer, struct bulk_line **ret_line) {
    struct stream_config config = {.loop = &bulk->loop, .identity = bulk->config.identity};
    if (!make_room(bulk)) {
        return ERR_BUSY;
    }
    struct bulk_line *line = add_line(bulk, peer);
    if (line == NULL) {
        return ERR_MEMORY;
    }
    line->is_ours = true;
    if (bulk->config.meet != NULL) {
        bulk->config.meet(bulk->config.context, peer);
    }
    enum err err = stream_connect(&config, peer, &events, line, &line->stream);
    if (err != ERR_OK) {
        bulk_line_end(line, err);
        return err;
    }
    *ret_line = line;
    return ERR_OK;
}

void bulk_line_accept(void *context, struct stream *stream) {
    struct bulk *bulk = context;
    const struct bulk_config *config = &bulk->config;
    bool is_admitted = config->admits == NULL || config->admits(config->context, stream_peer(stream));
    struct bulk_line *line =
        is_admitted && !bulk->is_ending && make_room(bulk) ? add_line(bulk, stream_peer(stream)) : NULL;
    if (line == NULL) {
        pthread_mutex_lock(&bulk->lock);
        bulk->stat.refused_count++;
        pthread_mutex_unlock(&bulk->lock);
        stream_free(stream);
        return;
    }
    line->stream = stream;
    line->is_open = true;
    stream_own(stream, &events, line);
}

/* ---- questions ---- */

enum err bulk_line_ask(struct bulk_line *line, enum bulk_service service, struct bytes question,
                       uint64_t deadline_us, bulk_done *done, void *context, uint32_t *ret_number) {
    struct bulk *bulk = line->bulk;
    if (line->calls_count >= BULK_CALLS_MAX) {
        return ERR_BUSY;
    }
    struct bulk_call *call = calloc(1, sizeof *call);
    if (call == NULL || !queue(line, bulk->numbers + 1, BULK_QUESTION, (uint8_t)service, question)) {
        free(call);
        return ERR_MEMORY;
    }
    *call = (struct bulk_call){.number = ++bulk->numbers,
                               .service = service,
                               .asked_at_us = bulk_now_us(bulk),
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

void bulk_cancel(struct bulk *bulk, uint32_t number) {
    for (struct bulk_line *line = bulk->lines; line != NULL; line = line->next) {
        for (struct bulk_call **at = &line->calls; *at != NULL; at = &(*at)->next) {
            struct bulk_call *call = *at;
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
static struct bulk_call *take_late(struct bulk_line *line, uint64_t now_us) {
    for (struct bulk_call **at = &line->calls; *at != NULL; at = &(*at)->next) {
        struct bulk_call *call = *at;
        if (now_us >= call->deadline_us) {
            *at = call->next;
            line->calls_count--;
            return call;
        }
    }
    return NULL;
}

bool bulk_line_end_late(struct bulk_line *line, uint64_t now_us) {
    struct bulk *bulk = line->bulk;
    struct bulk_call *late = take_late(line, now_us);
    if (late == NULL) {
        return false;
    }
    pthread_mutex_lock(&bulk->lock);
    bulk->stat.failed_count++;
    pthread_mutex_unlock(&bulk->lock);
    late->done(late->context, ERR_TIMEOUT, bytes_of(NULL, 0));
    free(late);
    return true;
}

bool bulk_line_go_on(struct bulk_line *line, uint64_t now_us) {
    pump(line);
    if (!line->is_held_back || is_full(line) || !meter_is_free(&line->bulk->download, now_us)) {
        return false;
    }
    if (take_input(line)) {
        hold_back(line, now_us);
    }
    return true;
}

bool bulk_line_needs_ticks(const struct bulk_line *line) {
    return line->calls != NULL || line->is_held_back || line->output_start < line->output.size;
}
