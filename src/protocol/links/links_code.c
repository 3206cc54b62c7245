#include "protocol/links/links_code.h"

#include "base/wire.h"
#include "protocol/links/links_state.h"

enum {
    END = 0,         /* symbol behind the last character of a URL */
    LONG = 127,      /* of a shared length: two symbols with the rest follow */
    DEPTH_LONG = 31, /* likewise */
    LEARNED_RING_SERVICES = 10,
    WORK_PER_BYTE = 16,
    WORK_FREE = 256, /* symbols that need not be paid for */
};

enum part { PART_SCHEME, PART_HOST, PART_PATH, PART_QUERY };

/* What the next character is guessed from. */
struct history {
    uint32_t last;         /* characters, the last in the lowest byte */
    uint32_t word;         /* hash of the letters since the last that is none */
    uint32_t digits_count; /* in a row */
    uint32_t slashes_count;
    enum part part;
};

struct links_code {
    struct arena arena; /* itself */
    struct links_model *model;
    struct links_table *table;
    struct links_code_link links[LINKS_CODE_LINKS_MAX];
    uint8_t text[LINKS_CODE_TEXT_SIZE_MAX];
};

/* Coding goes one way or the other by the same path. */
struct run {
    struct links_model *model;
    struct links_table *table; /* NULL: by the model */
    struct links_coder coder;
    bool is_learning; /* nothing is coded */
    size_t symbols_count;
    uint8_t head_before; /* priority and depth of the link before */
    size_t shared_before;
};

/* ---- symbols ---- */

static uint8_t code_symbol(struct run *run, const uint32_t contexts[LINKS_MODEL_CONTEXTS], uint8_t symbol) {
    if (run->is_learning) {
        links_model_learn(run->model, contexts, symbol);
        return symbol;
    }
    return links_model_code(run->model, &run->coder, contexts, symbol);
}

static uint32_t code_mix(uint32_t hash, uint32_t word) {
    hash = (hash ^ word) * UINT32_C(0xcc9e2d51);
    return hash ^ hash >> 15;
}

/* Numbers: half of the contexts know what the number was the last time. */
static uint8_t code_number(struct run *run, uint32_t kind, uint32_t before, uint8_t symbol) {
    uint32_t contexts[LINKS_MODEL_CONTEXTS];
    run->symbols_count++;
    if (run->table != NULL) {
        return links_table_number(run->table, &run->coder, kind, symbol);
    }
    for (uint32_t i = 0; i < LINKS_MODEL_CONTEXTS; i++) {
        contexts[i] = code_mix(code_mix(kind << 8 | i, i % 2 == 0 ? 0 : before + 1), 0x51ed270b);
    }
    return code_symbol(run, contexts, symbol);
}

static void history_add(struct history *history, uint8_t byte) {
    history->last = history->last << 8 | byte;
    history->digits_count = byte_is_digit(byte) ? history->digits_count + 1 : 0;
    if (byte_is_alpha(byte)) {
        history->word = code_mix(history->word + 1, byte_lower(byte));
    } else {
        history->word = 0;
    }
    if (byte == '/' && history->part < PART_PATH && ++history->slashes_count >= 2) {
        history->part = history->slashes_count == 2 ? PART_HOST : PART_PATH;
    } else if (byte == '?') {
        history->part = PART_QUERY;
    }
}

/* above: where the URL before went on; 0 behind the first character that differs. */
static uint8_t code_character(struct run *run, const struct history *history, uint8_t above, uint8_t symbol) {
    uint32_t low = history->last;
    uint32_t part = (uint32_t)history->part;
    run->symbols_count++;
    if (run->table != NULL) {
        return links_table_character(run->table, &run->coder, low, symbol);
    }
    uint32_t keys[LINKS_MODEL_CONTEXTS] = {
        low & 0xff,
        low & 0xffff,
        low & 0xffffff,
        low,
        code_mix(history->word, low & 0xff),
        code_mix(history->digits_count << 16 | part << 8 | above, history->slashes_count),
    };
    uint32_t contexts[LINKS_MODEL_CONTEXTS];
    for (uint32_t i = 0; i < LINKS_MODEL_CONTEXTS; i++) {
        contexts[i] = code_mix(code_mix(i + 1, keys[i]), i < 2 ? part : 0);
    }
    return code_symbol(run, contexts, symbol);
}

/* ---- one link ---- */

enum number_kind { NUMBER_HEAD, NUMBER_DEPTH, NUMBER_SHARED, NUMBER_SHARED_REST };

/* Priority and depth. */
static void code_head(struct run *run, struct links_code_link *link) {
    uint32_t depth = link->depth;
    uint8_t head = (uint8_t)((depth < DEPTH_LONG ? depth : DEPTH_LONG) << 2 | link->priority);
    head = code_number(run, NUMBER_HEAD, run->head_before, head);
    run->head_before = head;
    link->priority = head & LINKS_CODE_PRIORITY_MAX;
    link->depth = head >> 2;
    if (head >> 2 == DEPTH_LONG) {
        uint32_t rest = 0;
        for (int shift = 14; shift >= 0; shift -= 7) {
            rest = rest << 7 | code_number(run, NUMBER_DEPTH, 0, depth >> shift & 127);
        }
        link->depth = (uint16_t)rest;
    }
}

/* How many characters it shares with the one before. */
static size_t code_shared(struct run *run, size_t shared) {
    uint8_t first = code_number(run, NUMBER_SHARED, (uint32_t)run->shared_before,
                                (uint8_t)(shared < LONG ? shared : LONG));
    run->shared_before = first;
    if (first < LONG) {
        return first;
    }
    size_t high = code_number(run, NUMBER_SHARED_REST, 0, (shared - LONG) >> 7 & 127);
    return LONG + (high << 7 | code_number(run, NUMBER_SHARED_REST, 1, (shared - LONG) & 127));
}

static struct history history_of(struct bytes text) {
    struct history history = {0};
    for (size_t i = 0; i < text.size; i++) {
        history_add(&history, text.data[i]);
    }
    return history;
}

/* The characters from `from` on; where it parts from the link before, `above` is how that one goes on. */
static void code_rest(struct run *run, struct bytes url, size_t from, uint8_t above, size_t parts_at) {
    struct history history = history_of(bytes_slice(url, 0, from));
    for (size_t i = from; i < url.size; i++) {
        code_character(run, &history, i == parts_at ? above : 0, url.data[i]);
        history_add(&history, url.data[i]);
    }
    code_character(run, &history, url.size == parts_at ? above : 0, END);
}

static void write_link(struct run *run, struct bytes before, const struct links_code_link *link) {
    struct links_code_link coded = *link;
    size_t shared = bytes_common_size(before, link->url);
    code_head(run, &coded);
    code_shared(run, shared);
    code_rest(run, link->url, shared, shared < before.size ? before.data[shared] : 0, shared);
}

/* Into the room given. NULL, or what is wrong. */
static const char *read_link(struct run *run, struct bytes before, uint8_t *room, size_t room_size,
                             struct links_code_link *link) {
    *link = (struct links_code_link){0};
    code_head(run, link);
    size_t shared = code_shared(run, 0);
    if (shared > before.size || shared > room_size) {
        return "shares more than there is";
    }
    size_t size = shared;
    struct history history = history_of(bytes_slice(before, 0, shared));
    memcpy(room, before.data, shared);
    uint8_t above = shared < before.size ? before.data[shared] : 0;
    for (;;) {
        uint8_t symbol = code_character(run, &history, above, 0);
        if (symbol == END) {
            break;
        }
        if (symbol <= 0x20 || symbol > 0x7e) {
            return "no character of a URL";
        }
        if (size == room_size || size == LINKS_CODE_URL_SIZE_MAX || links_coder_is_overrun(&run->coder)) {
            return "a URL too long";
        }
        if (run->symbols_count > WORK_FREE + WORK_PER_BYTE * run->coder.size) {
            return "more than its bytes pay for";
        }
        room[size++] = symbol;
        history_add(&history, symbol);
        above = 0;
    }
    link->url = bytes_of(room, size);
    return NULL;
}

/* ---- all ---- */

/* By insertion: some dozens, in the order of their hashes. */
static void code_sort(struct links_code_link *links, size_t count) {
    for (size_t i = 1; i < count; i++) {
        struct links_code_link link = links[i];
        size_t j = i;
        for (; j > 0 && bytes_compare(links[j - 1].url, link.url) > 0; j--) {
            links[j] = links[j - 1];
        }
        links[j] = link;
    }
}

/* The lines from end to end; and, of lines far apart that are put in order, what those next to each other
 * share. */
static void learn_text(struct links_code *code) {
    struct run run = {.model = code->model, .is_learning = true};
    size_t stride = links_text_count / LEARNED_RING_SERVICES;
    for (size_t i = 0; i < stride; i++) {
        struct links_code_link links[LEARNED_RING_SERVICES];
        for (size_t j = 0; j < LEARNED_RING_SERVICES; j++) {
            size_t line = j * stride + i;
            links[j] = (struct links_code_link){.url = bytes_of_string(links_text[line]),
                                                .priority = line % 4 == 0 ? 1 : 2,
                                                .depth = (uint16_t)(1 + i % 5)};
        }
        code_sort(links, LEARNED_RING_SERVICES);
        for (size_t j = 0; j < LEARNED_RING_SERVICES; j++) {
            struct bytes before = j == 0 ? (struct bytes){NULL, 0} : links[j - 1].url;
            size_t shared = bytes_common_size(before, links[j].url);
            code_head(&run, &links[j]);
            code_shared(&run, shared);
            code_rest(&run, links[j].url, 0, shared < before.size ? before.data[shared] : 0, shared);
        }
    }
    links_model_keep(code->model);
}

struct links_code *links_code_new(void) {
    struct links_code *code = arena_new(sizeof *code, sizeof *code + 64);
    struct links_model *model = links_model_new();
    struct links_table *table = links_table_new();
    if (code == NULL || model == NULL || table == NULL) {
        links_model_free(model);
        links_table_free(table);
        arena_free(code);
        return NULL;
    }
    code->model = model;
    code->table = table;
    learn_text(code);
    return code;
}

void links_code_free(struct links_code *code) {
    if (code != NULL) {
        links_model_free(code->model);
        links_table_free(code->table);
        arena_free(code);
    }
}

bool links_code_takes(struct bytes url) {
    for (size_t i = 0; i < url.size; i++) {
        if (url.data[i] <= 0x20 || url.data[i] > 0x7e) {
            return false;
        }
    }
    return url.size > 0 && url.size <= LINKS_CODE_URL_SIZE_MAX;
}

static struct run start_run(struct links_code *code, enum links_code_way way) {
    return (struct run){.model = code->model, .table = way == LINKS_CODE_BY_TABLE ? code->table : NULL};
}

static void end_run(struct run *run) {
    if (run->table != NULL) {
        links_table_forget(run->table);
    } else {
        links_model_forget(run->model);
    }
}

size_t links_code_write(struct links_code *code, enum links_code_way way,
                        const uint8_t job[LINKS_CODE_JOB_SIZE], struct links_code_link *links, size_t count,
                        uint8_t *out, size_t size_max) {
    ASSERT(count > 0 && count <= LINKS_CODE_LINKS_MAX);
    struct wire_writer writer;
    struct bytes head;
    wire_writer_init(&writer, out, size_max);
    wire_write_bytes(&writer, bytes_of(job, LINKS_CODE_JOB_SIZE));
    if (way == LINKS_CODE_BY_TABLE) {
        wire_write_varint(&writer, 0);
    }
    wire_write_varint(&writer, count);
    if (wire_writer_finish(&writer, &head) != ERR_OK) {
        return 0;
    }
    code_sort(links, count);
    struct run run = start_run(code, way);
    struct bytes before = {NULL, 0};
    size_t text_size = 0;
    links_coder_encode(&run.coder, out + head.size, size_max - head.size);
    for (size_t i = 0; i < count; i++) {
        ASSERT(links_code_takes(links[i].url) && links[i].priority <= LINKS_CODE_PRIORITY_MAX);
        text_size += links[i].url.size;
        write_link(&run, before, &links[i]);
        before = links[i].url;
    }
    bool is_whole = links_coder_flush(&run.coder) && text_size <= LINKS_CODE_TEXT_SIZE_MAX;
    end_run(&run);
    while (is_whole && run.symbols_count > WORK_FREE + WORK_PER_BYTE * run.coder.position) {
        is_whole = run.coder.position < run.coder.size;
        if (is_whole) {
            run.coder.out[run.coder.position++] = 0;
        }
    }
    return is_whole ? head.size + run.coder.position : 0;
}

static const char *code_read_links(struct links_code *code, struct run *run, size_t count) {
    struct bytes before = {code->text, 0};
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        struct links_code_link *link = &code->links[i];
        const char *wrong = read_link(run, before, code->text + used, sizeof code->text - used, link);
        if (wrong != NULL) {
            return wrong;
        }
        if (bytes_compare(link->url, before) <= 0) {
            return "links not in order";
        }
        used += link->url.size;
        before = link->url;
    }
    return links_coder_is_overrun(&run->coder) ? "ends inside a link" : NULL;
}

const char *links_code_read(struct links_code *code, struct bytes bytes, struct links_code_batch *ret_batch) {
    struct links_code_batch batch = {.links = code->links};
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    wire_read_array(&reader, batch.job, sizeof batch.job);
    batch.count = wire_read_varint(&reader, LINKS_CODE_LINKS_MAX);
    enum links_code_way way = batch.count == 0 ? LINKS_CODE_BY_TABLE : LINKS_CODE_BY_MODEL;
    if (way == LINKS_CODE_BY_TABLE) {
        batch.count = wire_read_varint(&reader, LINKS_CODE_LINKS_MAX);
    }
    struct bytes coded = wire_read_bytes(&reader, wire_reader_left(&reader));
    if (reader.err != ERR_OK || batch.count == 0) {
        return "no links";
    }
    struct run run = start_run(code, way);
    links_coder_decode(&run.coder, coded);
    const char *wrong = code_read_links(code, &run, batch.count);
    end_run(&run);
    if (wrong == NULL) {
        *ret_batch = batch;
    }
    return wrong;
}
