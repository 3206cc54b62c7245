#include "web/html/text_flow.h"

#include "base/utf8.h"

void text_flow_init(struct text_flow *flow, size_t size_max) {
    *flow = (struct text_flow){.size_max = size_max};
    buf_init(&flow->out, size_max);
}

void text_flow_done(struct text_flow *flow) {
    buf_done(&flow->out);
}

void text_flow_clear(struct text_flow *flow) {
    buf_clear(&flow->out);
    flow->wants_space = false;
    flow->is_full = false;
}

enum width { WIDTH_WORD, WIDTH_SPACE, WIDTH_NONE };

static enum width width_of(uint32_t code_point) {
    if (code_point <= 0x20 || (code_point >= 0x7f && code_point <= 0xa0)) {
        return WIDTH_SPACE;
    }
    if (code_point == 0xad || code_point == 0xfeff || (code_point >= 0x200b && code_point <= 0x200f) ||
        (code_point >= 0x202a && code_point <= 0x202e) || (code_point >= 0x2060 && code_point <= 0x2069)) {
        return WIDTH_NONE; /* soft hyphens, joiners, directions: a word is the same word without them */
    }
    bool is_space = (code_point >= 0x2000 && code_point <= 0x200a) || code_point == 0x2028 ||
                    code_point == 0x2029 || code_point == 0x202f || code_point == 0x205f ||
                    code_point == 0x3000 || code_point == 0x1680;
    return is_space ? WIDTH_SPACE : WIDTH_WORD;
}

/* A run of one word; it may be cut, between its characters. */
static void put_run(struct text_flow *flow, struct bytes run) {
    bool has_space = flow->wants_space && flow->out.size > 0;
    size_t room = flow->size_max - flow->out.size;
    if (run.size + has_space > room) {
        flow->is_full = true;
        size_t size = room > has_space ? room - has_space : 0;
        while (size > 0 && (run.data[size] & 0xc0) == 0x80) {
            size--;
        }
        run = bytes_slice(run, 0, size);
    }
    flow->wants_space = false;
    if (run.size == 0) {
        return;
    }
    if (has_space) {
        buf_put_byte(&flow->out, ' ');
    }
    buf_put(&flow->out, run);
}

void text_flow_put(struct text_flow *flow, struct bytes text) {
    while (text.size > 0 && !flow->is_full) {
        size_t run_size = 0;
        size_t length = 0;
        enum width width = WIDTH_WORD;
        while (run_size < text.size) {
            uint8_t byte = text.data[run_size];
            length = 1;
            if (byte > 0x20 && byte < 0x7f) {
                run_size++;
                continue;
            }
            width = width_of(utf8_decode(bytes_skip(text, run_size), &length));
            if (width != WIDTH_WORD) {
                break;
            }
            run_size += length;
        }
        if (run_size > 0) {
            put_run(flow, bytes_slice(text, 0, run_size));
        }
        bool is_at_end = run_size == text.size;
        text = bytes_skip(text, is_at_end ? run_size : run_size + length);
        if (!is_at_end && width == WIDTH_SPACE) {
            text_flow_space(flow);
        }
    }
}
