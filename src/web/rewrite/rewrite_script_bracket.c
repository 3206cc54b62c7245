/* What brackets open: by that an object is told from a block, and a division from a regular expression. */
#include "web/rewrite/rewrite_script.h"

static bool opens_params(const struct rewrite_script *script) {
    return script->last.word == REWRITE_WORD_FUNCTION ||
           (script->before.word == REWRITE_WORD_FUNCTION &&
            (script->last.kind == REWRITE_TOKEN_NAME || script->last.kind == REWRITE_TOKEN_STAR));
}

static bool opens_control(const struct rewrite_script *script) {
    enum rewrite_word word = script->last.word;
    return (word >= REWRITE_WORD_IF && word <= REWRITE_WORD_WITH) ||
           (word == REWRITE_WORD_AWAIT && script->before.word == REWRITE_WORD_FOR);
}

/* A "{" behind ":": the value of a key or of "? :", or the block behind a label or case. */
static bool colon_has_value(const struct rewrite_script *script) {
    enum rewrite_frame_kind kind = (enum rewrite_frame_kind)script->frames[script->depth].kind;
    return script->last.ends_question || (kind != REWRITE_FRAME_BLOCK && kind != REWRITE_FRAME_CLASS);
}

/* Whether "export { … }" at the start of the text is followed by "from". */
static bool has_from(const struct rewrite_script *script, struct bytes text, bool *ret_from) {
    bool is_cut = text.size > REWRITE_CLAUSE_SIZE_MAX;
    text.size = is_cut ? REWRITE_CLAUSE_SIZE_MAX : text.size;
    bool is_last = is_cut || script->is_last;
    size_t end = bytes_find_byte(text, '}');
    struct rewrite_peek next = {.kind = REWRITE_TOKEN_END};
    if (end == text.size ? !is_last : !rewrite_scan_peek(script->words, text, end + 1, is_last, &next)) {
        return false;
    }
    *ret_from = next.word == REWRITE_WORD_FROM;
    return true;
}

/* What the "{" at script->at opens. False where more bytes would tell. */
static bool brace_kind(const struct rewrite_script *script, enum rewrite_frame_kind *ret_kind) {
    const struct rewrite_script_token *last = &script->last;
    *ret_kind = REWRITE_FRAME_BLOCK;
    if (script->frames[script->depth].has_class) {
        *ret_kind = REWRITE_FRAME_CLASS;
    } else if (script->statement == REWRITE_WORD_IMPORT && script->depth == 0 &&
               (last->word == REWRITE_WORD_IMPORT || last->kind == REWRITE_TOKEN_COMMA)) {
        *ret_kind = REWRITE_FRAME_IMPORTS;
    } else if (script->statement == REWRITE_WORD_EXPORT && last->word == REWRITE_WORD_EXPORT) {
        bool is_from;
        if (!has_from(script, bytes_skip(script->tape.view, script->at), &is_from)) {
            return false;
        }
        *ret_kind = is_from ? REWRITE_FRAME_EXPORT_FROM : REWRITE_FRAME_EXPORTS;
    } else if (last->word >= REWRITE_WORD_VAR && last->word <= REWRITE_WORD_CONST) {
        *ret_kind = REWRITE_FRAME_PATTERN;
    } else if (last->word >= REWRITE_WORD_RETURN) {
        bool is_statement = last->word == REWRITE_WORD_RETURN && script->is_line_start;
        *ret_kind = is_statement ? REWRITE_FRAME_BLOCK : REWRITE_FRAME_OBJECT;
    } else if (last->kind == REWRITE_TOKEN_COLON) {
        *ret_kind = colon_has_value(script) ? REWRITE_FRAME_OBJECT : REWRITE_FRAME_BLOCK;
    } else if (last->kind < REWRITE_TOKEN_START) {
        bool is_block = last->kind == REWRITE_TOKEN_OPEN_BRACE || last->kind == REWRITE_TOKEN_SEMICOLON;
        *ret_kind = is_block ? REWRITE_FRAME_BLOCK : REWRITE_FRAME_OBJECT;
    } else if (last->kind >= REWRITE_TOKEN_EQUALITY) {
        *ret_kind = REWRITE_FRAME_OBJECT;
    }
    return true;
}

enum rewrite_step rewrite_script_push(struct rewrite_script *script,
                                      const struct rewrite_script_frame *frame) {
    if (script->depth + 1 == REWRITE_FRAMES_MAX) {
        return rewrite_script_lose(script);
    }
    script->frames[++script->depth] = *frame;
    return REWRITE_AGAIN;
}

enum rewrite_step rewrite_script_open(struct rewrite_script *script, uint8_t byte) {
    struct rewrite_script_frame frame = {.kind = REWRITE_FRAME_BRACKETS};
    if (byte == '(') {
        frame = (struct rewrite_script_frame){.kind = REWRITE_FRAME_PARENTHESES,
                                              .is_control = opens_control(script),
                                              .is_params = opens_params(script)};
    } else if (byte == '{') {
        enum rewrite_frame_kind kind;
        if (!brace_kind(script, &kind)) {
            return REWRITE_MORE;
        }
        frame.kind = (uint8_t)kind;
        rewrite_script_frame(script)->has_class = false;
    }
    script->at++;
    rewrite_script_take(script, &(struct rewrite_script_token){.kind = (enum rewrite_token_kind)byte});
    return rewrite_script_push(script, &frame);
}

enum rewrite_step rewrite_script_close(struct rewrite_script *script, uint8_t byte) {
    struct rewrite_script_frame frame = *rewrite_script_frame(script);
    bool is_brace = frame.kind < REWRITE_FRAME_PARENTHESES;
    bool fits = byte == ')'   ? frame.kind == REWRITE_FRAME_PARENTHESES
                : byte == ']' ? frame.kind == REWRITE_FRAME_BRACKETS
                              : is_brace;
    if (script->depth == 0 || !fits) {
        return rewrite_script_lose(script);
    }
    script->depth--;
    script->at++;
    if (frame.kind == REWRITE_FRAME_TEMPLATE) {
        script->state = REWRITE_IN_TEMPLATE;
        return REWRITE_AGAIN;
    }
    bool is_block = frame.kind == REWRITE_FRAME_BLOCK || frame.kind == REWRITE_FRAME_CLASS;
    rewrite_script_take(script,
                        &(struct rewrite_script_token){.kind = frame.is_control ? REWRITE_TOKEN_CONTROL_END
                                                               : is_block       ? REWRITE_TOKEN_BLOCK_END
                                                                                : REWRITE_TOKEN_VALUE_END});
    return REWRITE_AGAIN;
}
