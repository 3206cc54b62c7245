#include "web/rewrite/rewrite_script.h"

#include "web/url/url.h"

enum { VIEW_SIZE_MAX = REWRITE_CLAUSE_SIZE_MAX * 2 };

void rewrite_script_init(struct rewrite_script *script, const struct words *words) {
    *script = (struct rewrite_script){.words = words};
    tape_init(&script->tape, VIEW_SIZE_MAX);
    buf_init(&script->text, URL_SIZE_MAX * 4);
}

void rewrite_script_done(struct rewrite_script *script) {
    tape_done(&script->tape);
    buf_done(&script->text);
}

void rewrite_script_start(struct rewrite_script *script, const struct rewrite_script_place *place) {
    script->place = *place;
    script->err = ERR_OK;
    tape_start(&script->tape);
    script->state = REWRITE_IN_CODE;
    script->has_ended = script->is_last = script->has_export = false;
    script->statement = REWRITE_WORD_NONE;
    script->is_line_start = true;
    script->has_local[0] = script->has_local[1] = false;
    script->at = script->copied = script->depth = 0;
    script->last = script->before = (struct rewrite_script_token){.kind = REWRITE_TOKEN_START};
    script->frames[0] = (struct rewrite_script_frame){.kind = REWRITE_FRAME_BLOCK};
}

static void script_put(struct rewrite_script *script, struct bytes text) {
    if (script->err == ERR_OK && text.size > 0) {
        script->err = script->place.put(script->place.context, text);
    }
}

void rewrite_script_replace(struct rewrite_script *script, size_t from, size_t to, struct bytes text) {
    script_put(script, bytes_slice(script->tape.view, script->copied, from));
    script_put(script, text);
    script->copied = to;
}

enum err rewrite_script_quote(struct buf *out, struct bytes text, uint8_t quote) {
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == quote || text.data[i] == '\\') {
            buf_put_byte(out, '\\');
        }
        buf_put_byte(out, text.data[i]);
    }
    return out->err;
}

void rewrite_script_take(struct rewrite_script *script, const struct rewrite_script_token *token) {
    script->before = script->last;
    script->last = *token;
    script->is_line_start = false;
}

static void script_take(struct rewrite_script *script, enum rewrite_token_kind kind) {
    rewrite_script_take(script, &(struct rewrite_script_token){.kind = kind});
}

static enum rewrite_step script_enter(struct rewrite_script *script, enum rewrite_script_state state,
                                      size_t size) {
    script->state = state;
    script->at += size;
    return REWRITE_AGAIN;
}

enum rewrite_step rewrite_script_lose(struct rewrite_script *script) {
    return script_enter(script, REWRITE_IN_LOST, 0);
}

/*
 * Punctuators
 */

/* "?" and ":" that belong together; the head of a class has none of these bytes. */
static void punctuate(struct rewrite_script *script, enum rewrite_token_kind kind) {
    struct rewrite_script_frame *frame = rewrite_script_frame(script);
    script_take(script, kind);
    if (kind == REWRITE_TOKEN_QUESTION) {
        frame->questions_count++;
    } else if (kind == REWRITE_TOKEN_COLON) {
        script->last.ends_question = frame->questions_count > 0;
        frame->questions_count -= frame->questions_count > 0 ? 1 : 0;
        frame->has_class = false;
    } else if (kind == REWRITE_TOKEN_SEMICOLON) {
        frame->questions_count = 0;
        frame->has_class = false;
        script->statement = REWRITE_WORD_NONE;
    } else if (kind == REWRITE_TOKEN_COMMA || kind == REWRITE_TOKEN_EQUALS) {
        frame->has_class = false;
    }
}

static enum rewrite_step step_punctuator(struct rewrite_script *script, struct bytes text) {
    enum rewrite_token_kind kind;
    size_t size = rewrite_scan_punctuator(text, script->is_last, &kind);
    if (size == 0) {
        return REWRITE_MORE;
    }
    if (!script->place.is_module) { /* comments of old, for browsers that knew no <script> */
        bool is_close = script->is_line_start && bytes_starts_with(text, BYTES("-->"));
        if (text.size < 4 && !script->is_last && text.data[0] == '<') {
            return REWRITE_MORE;
        }
        if (is_close || bytes_starts_with(text, BYTES("<!--"))) {
            return script_enter(script, REWRITE_IN_LINE_COMMENT, 3);
        }
    }
    switch (text.data[0]) {
    case '(':
    case '[':
    case '{':
        return rewrite_script_open(script, text.data[0]);
    case ')':
    case ']':
    case '}':
        return rewrite_script_close(script, text.data[0]);
    default:
        script->at += size;
        punctuate(script, kind);
        return REWRITE_AGAIN;
    }
}

/*
 * Strings, templates, regular expressions, comments
 */

/* An import's or export's: replaced as a whole, if it is short and has no escapes. */
static enum rewrite_step step_specifier(struct rewrite_script *script, struct bytes text, bool *ret_is_done) {
    struct bytes rest = bytes_skip(text, 1);
    bool is_cut = rest.size > REWRITE_SPECIFIER_SIZE_MAX;
    rest.size = is_cut ? REWRITE_SPECIFIER_SIZE_MAX : rest.size;
    size_t end = bytes_find_byte(rest, text.data[0]);
    *ret_is_done = false;
    if (end == rest.size) {
        return is_cut || script->is_last ? REWRITE_AGAIN : REWRITE_MORE;
    }
    struct bytes specifier = bytes_slice(rest, 0, end);
    script->statement = REWRITE_WORD_NONE;
    struct bytes url;
    if (bytes_find_byte(specifier, '\\') < specifier.size ||
        !script->place.specifier(script->place.context, specifier, &url)) {
        return REWRITE_AGAIN;
    }
    buf_clear(&script->text);
    if (rewrite_script_quote(&script->text, url, text.data[0]) != ERR_OK) {
        script->err = script->text.err;
        return REWRITE_AGAIN;
    }
    rewrite_script_replace(script, script->at + 1, script->at + 1 + end, buf_bytes(&script->text));
    script->at += end + 2;
    script_take(script, REWRITE_TOKEN_LITERAL);
    *ret_is_done = true;
    return REWRITE_AGAIN;
}

static enum rewrite_step step_quote(struct rewrite_script *script, struct bytes text) {
    enum rewrite_word word = script->last.word;
    if (script->statement != REWRITE_WORD_NONE &&
        (word == REWRITE_WORD_FROM || word == REWRITE_WORD_IMPORT)) {
        bool is_done;
        enum rewrite_step step = step_specifier(script, text, &is_done);
        if (is_done || step == REWRITE_MORE) {
            return step;
        }
    }
    script->quote = text.data[0];
    script_take(script, REWRITE_TOKEN_LITERAL);
    return script_enter(script, REWRITE_IN_STRING, 1);
}

static bool is_newline(uint8_t byte) {
    return byte == '\n' || byte == '\r';
}

/* Over a '\' and the byte behind it. */
static enum rewrite_step step_escape(struct rewrite_script *script, struct bytes view) {
    if (view.size - script->at < 3 && !script->is_last) {
        return REWRITE_MORE;
    }
    bool is_crlf =
        view.size - script->at >= 3 && view.data[script->at + 1] == '\r' && view.data[script->at + 2] == '\n';
    size_t size = is_crlf ? 3 : 2;
    script->at += size < view.size - script->at ? size : view.size - script->at;
    return REWRITE_AGAIN;
}

static enum rewrite_step step_string(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size) {
        uint8_t byte = view.data[script->at];
        if (byte == '\\') {
            return step_escape(script, view);
        }
        if (byte == script->quote) {
            return script_enter(script, REWRITE_IN_CODE, 1);
        }
        if (is_newline(byte)) { /* no string at all */
            return rewrite_script_lose(script);
        }
        script->at++;
    }
    return REWRITE_MORE;
}

static enum rewrite_step step_template(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size) {
        uint8_t byte = view.data[script->at];
        if (byte == '\\') {
            return step_escape(script, view);
        }
        if (byte == '`') {
            script_take(script, REWRITE_TOKEN_LITERAL);
            return script_enter(script, REWRITE_IN_CODE, 1);
        }
        if (byte == '$' && script->at + 1 == view.size && !script->is_last) {
            return REWRITE_MORE;
        }
        if (byte == '$' && script->at + 1 < view.size && view.data[script->at + 1] == '{') {
            script_enter(script, REWRITE_IN_CODE, 2);
            script_take(script, REWRITE_TOKEN_OPEN_PARENTHESIS);
            return rewrite_script_push(script,
                                       &(struct rewrite_script_frame){.kind = REWRITE_FRAME_TEMPLATE});
        }
        script->at++;
    }
    return REWRITE_MORE;
}

static enum rewrite_step step_regex(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size) {
        uint8_t byte = view.data[script->at];
        bool is_in_class = script->state == REWRITE_IN_REGEX_CLASS;
        if (byte == '\\') {
            return step_escape(script, view);
        }
        if (is_newline(byte)) { /* it was no regular expression */
            return rewrite_script_lose(script);
        }
        if (byte == '/' && !is_in_class) {
            return script_enter(script, REWRITE_IN_REST_OF_NAME, 1);
        }
        if (byte == (is_in_class ? ']' : '[')) {
            script->state = is_in_class ? REWRITE_IN_REGEX : REWRITE_IN_REGEX_CLASS;
        }
        script->at++;
    }
    return REWRITE_MORE;
}

static enum rewrite_step step_line_comment(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size && !is_newline(view.data[script->at])) {
        script->at++;
    }
    return script->at == view.size ? REWRITE_MORE : script_enter(script, REWRITE_IN_CODE, 0);
}

static enum rewrite_step script_step_comment(struct rewrite_script *script, struct bytes view) {
    size_t end = bytes_find(bytes_skip(view, script->at), BYTES("*/"));
    struct bytes comment = bytes_slice(view, script->at, script->at + end);
    if (bytes_find_byte(comment, '\n') < comment.size || bytes_find_byte(comment, '\r') < comment.size) {
        script->is_line_start = true;
    }
    if (script->at + end < view.size) {
        return script_enter(script, REWRITE_IN_CODE, end + 2);
    }
    bool has_star = view.size > script->at && view.data[view.size - 1] == '*' && !script->is_last;
    script->at = view.size - (has_star ? 1 : 0);
    return REWRITE_MORE;
}

static bool regex_follows(const struct rewrite_script_token *last) {
    switch (last->kind) {
    case REWRITE_TOKEN_NAME:
        return last->word >= REWRITE_WORD_ELSE;
    case REWRITE_TOKEN_LITERAL:
    case REWRITE_TOKEN_VALUE_END:
    case REWRITE_TOKEN_INCREMENT:
        return false;
    default:
        return true;
    }
}

static enum rewrite_step step_slash(struct rewrite_script *script, struct bytes text) {
    if (text.size < 2 && !script->is_last) {
        return REWRITE_MORE;
    }
    uint8_t next = text.size > 1 ? text.data[1] : '\0';
    if (next == '/') {
        return script_enter(script, REWRITE_IN_LINE_COMMENT, 2);
    }
    if (next == '*') {
        return script_enter(script, REWRITE_IN_COMMENT, 2);
    }
    if (regex_follows(&script->last)) {
        script_take(script, REWRITE_TOKEN_LITERAL);
        return script_enter(script, REWRITE_IN_REGEX, 1);
    }
    script->at++;
    script_take(script, REWRITE_TOKEN_OPERATOR);
    return REWRITE_AGAIN;
}

/*
 * Code
 */

static enum rewrite_step step_name(struct rewrite_script *script, struct bytes text) {
    bool is_cut = text.size > REWRITE_NAME_SIZE_MAX;
    text.size = is_cut ? REWRITE_NAME_SIZE_MAX : text.size;
    size_t size = rewrite_scan_name(text);
    if (size == text.size && is_cut) {
        script_take(script, REWRITE_TOKEN_NAME);
        return script_enter(script, REWRITE_IN_REST_OF_NAME, size);
    }
    if (size == text.size && !script->is_last) {
        return REWRITE_MORE;
    }
    enum rewrite_word word = rewrite_scan_word(script->words, bytes_slice(text, 0, size));
    if (word == REWRITE_WORD_NONE) {
        script_take(script, REWRITE_TOKEN_NAME);
        script->at += size;
        return REWRITE_AGAIN;
    }
    return rewrite_script_name(script, script->at + size, word);
}

static enum rewrite_step step_rest_of_name(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size && rewrite_scan_is_name(view.data[script->at])) {
        script->at++;
    }
    return script->at == view.size ? REWRITE_MORE : script_enter(script, REWRITE_IN_CODE, 0);
}

/* "1", ".5", "0x1f", "1e+5", "10n": letters and all. */
static enum rewrite_step step_number(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size) {
        uint8_t byte = view.data[script->at];
        bool is_sign = (byte == '+' || byte == '-') && script->is_number_sign;
        if (!rewrite_scan_is_name(byte) && byte != '.' && !is_sign) {
            return script_enter(script, REWRITE_IN_CODE, 0);
        }
        script->is_number_sign = byte_lower(byte) == 'e';
        script->at++;
    }
    return REWRITE_MORE;
}

/* "0xe+1" is a sum; "#!" stands at the start of a file only; "#x" is a name. */
static enum rewrite_step step_digit(struct rewrite_script *script, struct bytes text) {
    if (text.size < 2 && !script->is_last) {
        return REWRITE_MORE;
    }
    bool is_hex = text.size > 1 && text.data[0] == '0' && byte_lower(text.data[1]) == 'x';
    if (is_hex) {
        script_take(script, REWRITE_TOKEN_LITERAL);
        return script_enter(script, REWRITE_IN_REST_OF_NAME, 2);
    }
    script->is_number_sign = false;
    script_take(script, REWRITE_TOKEN_LITERAL);
    return script_enter(script, REWRITE_IN_NUMBER, 1);
}

static enum rewrite_step step_hash(struct rewrite_script *script, struct bytes text) {
    if (text.size < 2 && !script->is_last) {
        return REWRITE_MORE;
    }
    if (script->tape.offset + script->at == 0 && bytes_starts_with(text, BYTES("#!"))) {
        return script_enter(script, REWRITE_IN_LINE_COMMENT, 2);
    }
    script_take(script, REWRITE_TOKEN_NAME);
    return script_enter(script, REWRITE_IN_REST_OF_NAME, 1);
}

static enum rewrite_step step_code(struct rewrite_script *script, struct bytes view) {
    while (script->at < view.size && rewrite_scan_is_space(view.data[script->at])) {
        script->is_line_start = script->is_line_start || is_newline(view.data[script->at]);
        script->at++;
    }
    if (script->at == view.size) {
        return REWRITE_MORE;
    }
    struct bytes text = bytes_skip(view, script->at);
    uint8_t byte = text.data[0];
    if (byte_is_digit(byte)) {
        return step_digit(script, text);
    }
    if (rewrite_scan_is_name(byte)) {
        return step_name(script, text);
    }
    switch (byte) {
    case '"':
    case '\'':
        return step_quote(script, text);
    case '`':
        return script_enter(script, REWRITE_IN_TEMPLATE, 1);
    case '/':
        return step_slash(script, text);
    case '#':
        return step_hash(script, text);
    case '.':
        return text.size > 1 && byte_is_digit(text.data[1]) ? step_digit(script, text)
                                                            : step_punctuator(script, text);
    default:
        return step_punctuator(script, text);
    }
}

static enum rewrite_step script_step(struct rewrite_script *script, struct bytes view) {
    switch (script->state) {
    case REWRITE_IN_CODE:
        return step_code(script, view);
    case REWRITE_IN_LINE_COMMENT:
        return step_line_comment(script, view);
    case REWRITE_IN_COMMENT:
        return script_step_comment(script, view);
    case REWRITE_IN_STRING:
        return step_string(script, view);
    case REWRITE_IN_TEMPLATE:
        return step_template(script, view);
    case REWRITE_IN_REGEX:
    case REWRITE_IN_REGEX_CLASS:
        return step_regex(script, view);
    case REWRITE_IN_REST_OF_NAME:
        return step_rest_of_name(script, view);
    case REWRITE_IN_NUMBER:
        return step_number(script, view);
    case REWRITE_IN_LOST:
        break;
    }
    script->at = view.size;
    return REWRITE_MORE;
}

/* More bytes in the view, or the news that these are the last. False if it takes another piece. */
static bool script_more(struct rewrite_script *script) {
    if (script->at > 0) { /* without what is done, the view may reach further */
        rewrite_script_replace(script, script->at, script->at, (struct bytes){NULL, 0});
        tape_consume(&script->tape, script->at);
        script->at = script->copied = 0;
        return true;
    }
    if (tape_more(&script->tape)) {
        return true;
    }
    script->err = script->tape.held.err != ERR_OK ? script->tape.held.err : script->err;
    if (!script->has_ended || script->is_last) {
        return false;
    }
    return script->is_last = true;
}

static enum err script_run(struct rewrite_script *script) {
    do {
        while (script->err == ERR_OK && script_step(script, script->tape.view) == REWRITE_AGAIN) {
        }
    } while (script->err == ERR_OK && script_more(script));
    return script->err;
}

enum err rewrite_script_feed(struct rewrite_script *script, struct bytes piece) {
    tape_feed(&script->tape, piece);
    return script_run(script);
}

enum err rewrite_script_flush(struct rewrite_script *script) {
    script->is_last = true;
    script_run(script);
    script->is_last = false;
    return script->err;
}

enum err rewrite_script_end(struct rewrite_script *script) {
    script->has_ended = true;
    script_run(script);
    if (script->has_export) {
        script_put(script, BYTES("\nexport{" REWRITE_NAME_LOCATION " as location};"));
    }
    return script->err;
}
