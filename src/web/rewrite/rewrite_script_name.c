#include "web/rewrite/rewrite_script.h"

/* A name as it is looked at: what is around it. */
struct name {
    struct rewrite_script *script;
    size_t from;
    size_t to;
    enum rewrite_word word;
    struct rewrite_peek next;
};

static bool script_is_member(const struct rewrite_script *script) {
    return script->last.kind == REWRITE_TOKEN_DOT || script->last.kind == REWRITE_TOKEN_OPTIONAL;
}

static bool script_peek(const struct rewrite_script *script, size_t at, struct rewrite_peek *ret_peek) {
    return rewrite_scan_peek(script->words, script->tape.view, at, script->is_last, ret_peek);
}

/* The name is dealt with and stays. */
static bool script_pass(const struct name *name) {
    struct rewrite_script *script = name->script;
    rewrite_script_take(script,
                        &(struct rewrite_script_token){.kind = REWRITE_TOKEN_NAME, .word = name->word});
    script->at = name->to;
    return true;
}

static bool replace(const struct name *name, struct bytes text) {
    rewrite_script_replace(name->script, name->from, name->to, text);
    return script_pass(name);
}

static bool follows_modifier(const struct rewrite_script *script) {
    enum rewrite_word word = script->last.word;
    return script->last.kind == REWRITE_TOKEN_STAR ||
           (word >= REWRITE_WORD_GET && word <= REWRITE_WORD_STATIC);
}

static bool ends_value(enum rewrite_token_kind kind) {
    return kind >= REWRITE_TOKEN_NAME && kind <= REWRITE_TOKEN_BLOCK_END;
}

/* Whether the name is that of a method or a field: "{ get x() {} }", "class { static x = 1; x() {} }". */
static bool is_defined(const struct name *name) {
    const struct rewrite_script *script = name->script;
    enum rewrite_token_kind last = script->last.kind;
    bool is_called = name->next.kind == REWRITE_TOKEN_OPEN_PARENTHESIS;
    switch ((enum rewrite_frame_kind)script->frames[script->depth].kind) {
    case REWRITE_FRAME_OBJECT:
    case REWRITE_FRAME_PATTERN:
        return is_called &&
               (last == REWRITE_TOKEN_OPEN_BRACE || last == REWRITE_TOKEN_COMMA || follows_modifier(script));
    case REWRITE_FRAME_CLASS:
        return last == REWRITE_TOKEN_OPEN_BRACE || last == REWRITE_TOKEN_SEMICOLON ||
               (last == REWRITE_TOKEN_STAR && is_called) ||
               (ends_value(last) && script->last.word < REWRITE_WORD_ELSE);
    default:
        return false;
    }
}

/* Whether it is a key or a label: "x:", but not of "a ? x : b" and "case x:". */
static bool script_is_key(const struct name *name) {
    const struct rewrite_script *script = name->script;
    return name->next.kind == REWRITE_TOKEN_COLON && script->frames[script->depth].questions_count == 0 &&
           script->last.word != REWRITE_WORD_CASE;
}

static bool is_shorthand(const struct name *name) {
    enum rewrite_token_kind last = name->script->last.kind;
    enum rewrite_token_kind next = name->next.kind;
    return (last == REWRITE_TOKEN_OPEN_BRACE || last == REWRITE_TOKEN_COMMA) &&
           (next == REWRITE_TOKEN_COMMA || next == REWRITE_TOKEN_CLOSE_BRACE || next == REWRITE_TOKEN_EQUALS);
}

/*
 * location
 */

static bool member_location(const struct name *name) {
    bool is_kept = name->script->before.word == REWRITE_WORD_SUPER ||
                   name->next.kind == REWRITE_TOKEN_OPEN_PARENTHESIS ||
                   name->next.kind == REWRITE_TOKEN_BACKTICK;
    return is_kept ? script_pass(name) : replace(name, BYTES(REWRITE_NAME_LOCATION));
}

/* import { location as a, b as location, location } */
static bool imported_location(const struct name *name) {
    if (name->next.word == REWRITE_WORD_AS && name->script->last.word != REWRITE_WORD_AS) {
        return script_pass(name);
    }
    return name->script->last.word == REWRITE_WORD_AS
               ? replace(name, BYTES(REWRITE_NAME_LOCATION))
               : replace(name, BYTES("location as " REWRITE_NAME_LOCATION));
}

/* export { location as a, b as location, location }; the second name is for scripts that write a.location. */
static bool exported_location(const struct name *name) {
    if (name->script->last.word == REWRITE_WORD_AS) {
        return script_pass(name);
    }
    return name->next.word == REWRITE_WORD_AS
               ? replace(name, BYTES(REWRITE_NAME_LOCATION))
               : replace(name, BYTES(REWRITE_NAME_LOCATION " as location," REWRITE_NAME_LOCATION));
}

/* "export var location": others import it by its old name, which rewrite_script_end() adds. */
static void note_export(struct rewrite_script *script) {
    enum rewrite_word word = script->last.word;
    bool declares = (word >= REWRITE_WORD_VAR && word <= REWRITE_WORD_CONST) ||
                    word == REWRITE_WORD_FUNCTION || word == REWRITE_WORD_CLASS;
    if (declares && script->before.word == REWRITE_WORD_EXPORT && script->statement == REWRITE_WORD_EXPORT) {
        script->has_export = true;
    }
}

static bool free_location(const struct name *name) {
    struct rewrite_script *script = name->script;
    enum rewrite_frame_kind frame = (enum rewrite_frame_kind)rewrite_script_frame(script)->kind;
    bool is_jump = script->last.word == REWRITE_WORD_BREAK || script->last.word == REWRITE_WORD_CONTINUE;
    if (frame == REWRITE_FRAME_IMPORTS) {
        return imported_location(name);
    }
    if (frame == REWRITE_FRAME_EXPORTS) {
        return exported_location(name);
    }
    if (frame == REWRITE_FRAME_EXPORT_FROM || is_jump || is_defined(name) ||
        name->next.kind == REWRITE_TOKEN_UNKNOWN) {
        return script_pass(name);
    }
    if (script_is_key(name) && frame != REWRITE_FRAME_PATTERN) {
        return script_pass(name);
    }
    if (frame == REWRITE_FRAME_OBJECT && is_shorthand(name)) {
        return replace(name, BYTES("location:" REWRITE_NAME_LOCATION));
    }
    note_export(script);
    return replace(name, BYTES(REWRITE_NAME_LOCATION));
}

static bool on_location(struct name *name) {
    if (!script_peek(name->script, name->to, &name->next)) {
        return false;
    }
    return script_is_member(name->script) ? member_location(name) : free_location(name);
}

/*
 * top and parent
 */

static bool names_window(enum rewrite_word word) {
    return word >= REWRITE_WORD_TOP && word <= REWRITE_WORD_GLOBALTHIS;
}

static bool is_of_windows_only(enum rewrite_word word) {
    return word == REWRITE_WORD_LOCATION || (word >= REWRITE_WORD_WINDOW && word <= REWRITE_WORD_POSTMESSAGE);
}

static bool replace_frame(const struct name *name) {
    replace(name, name->word == REWRITE_WORD_TOP ? BYTES(REWRITE_NAME_TOP) : BYTES(REWRITE_NAME_PARENT));
    return name->script->last.is_window = true;
}

/* A variable of that name: from here on it is none of ours. */
static void note_local(const struct name *name) {
    struct rewrite_script *script = name->script;
    enum rewrite_word last = script->last.word;
    bool is_declared = (last >= REWRITE_WORD_VAR && last <= REWRITE_WORD_CONST) ||
                       last == REWRITE_WORD_FUNCTION || rewrite_script_frame(script)->is_params ||
                       name->next.kind == REWRITE_TOKEN_ARROW;
    if (is_declared) {
        script->has_local[name->word == REWRITE_WORD_TOP ? 0 : 1] = true;
    }
}

/* "top.location", "top != self". False if more bytes would tell. */
static bool next_shows_window(const struct name *name, bool *ret_shows) {
    *ret_shows = false;
    bool is_dot = name->next.kind == REWRITE_TOKEN_DOT || name->next.kind == REWRITE_TOKEN_OPTIONAL;
    if (!is_dot && name->next.kind != REWRITE_TOKEN_EQUALITY) {
        return true;
    }
    struct rewrite_peek other;
    if (!script_peek(name->script, name->next.to, &other)) {
        return false;
    }
    *ret_shows = is_dot ? is_of_windows_only(other.word) : names_window(other.word);
    return true;
}

/* "self != top", and nothing behind it. */
static bool last_shows_window(const struct name *name) {
    enum rewrite_token_kind next = name->next.kind;
    bool goes_on = next == REWRITE_TOKEN_DOT || next == REWRITE_TOKEN_OPTIONAL ||
                   next == REWRITE_TOKEN_OPEN_BRACKET || next == REWRITE_TOKEN_OPEN_PARENTHESIS ||
                   next == REWRITE_TOKEN_UNKNOWN;
    return name->script->last.kind == REWRITE_TOKEN_EQUALITY && name->script->before.is_window && !goes_on;
}

static bool on_frame(struct name *name) {
    struct rewrite_script *script = name->script;
    if (!script_peek(script, name->to, &name->next)) {
        return false;
    }
    if (script_is_member(script)) {
        bool is_of_window = script->before.is_window && name->next.kind != REWRITE_TOKEN_OPEN_PARENTHESIS;
        return is_of_window ? replace_frame(name) : script_pass(name);
    }
    bool shows;
    if (!next_shows_window(name, &shows)) {
        return false;
    }
    note_local(name);
    bool is_local = script->has_local[name->word == REWRITE_WORD_TOP ? 0 : 1];
    if (is_local || is_defined(name) || !(shows || last_shows_window(name))) {
        return script_pass(name);
    }
    return replace_frame(name);
}

/*
 * import
 */

/* "import.meta.url", if nobody assigns to it. False if more bytes would tell. */
static bool meta_url(struct name *name, bool *ret_is_url) {
    static const struct {
        enum rewrite_token_kind kind;
        enum rewrite_word word;
    } chain[] = {{REWRITE_TOKEN_DOT, REWRITE_WORD_NONE},
                 {REWRITE_TOKEN_NAME, REWRITE_WORD_META},
                 {REWRITE_TOKEN_DOT, REWRITE_WORD_NONE},
                 {REWRITE_TOKEN_NAME, REWRITE_WORD_URL}};
    size_t to = name->to;
    struct rewrite_peek next;
    *ret_is_url = false;
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) {
        if (!script_peek(name->script, to, &next)) {
            return false;
        }
        if (next.kind != chain[i].kind || next.word != chain[i].word) {
            return true;
        }
        to = next.to;
    }
    if (!script_peek(name->script, to, &next)) {
        return false;
    }
    bool is_changed = next.kind == REWRITE_TOKEN_EQUALS || next.kind == REWRITE_TOKEN_INCREMENT ||
                      next.kind == REWRITE_TOKEN_UNKNOWN ||
                      name->script->last.kind == REWRITE_TOKEN_INCREMENT;
    bool is_operator = next.kind == REWRITE_TOKEN_OPERATOR && next.to - next.from > 1; /* "+=", too */
    *ret_is_url = !is_changed && !is_operator;
    name->to = *ret_is_url ? to : name->to;
    return true;
}

static bool replace_meta(const struct name *name) {
    struct rewrite_script *script = name->script;
    rewrite_script_replace(script, name->from, name->from, BYTES(REWRITE_NAME_META "("));
    rewrite_script_replace(script, name->to, name->to, BYTES(")"));
    script_pass(name);
    script->last = (struct rewrite_script_token){.kind = REWRITE_TOKEN_VALUE_END};
    return true;
}

static bool replace_import(const struct name *name) {
    struct rewrite_script *script = name->script;
    struct bytes base = script->place.base;
    struct buf *text = &script->text;
    buf_clear(text);
    buf_put_string(text, REWRITE_NAME_IMPORT "(\"");
    rewrite_script_quote(text, bytes_slice(base, 0, base.size <= REWRITE_BASE_SIZE_MAX ? base.size : 0), '"');
    buf_put_string(text, "\")");
    script->err = text->err != ERR_OK ? text->err : script->err;
    replace(name, buf_bytes(text));
    script->last = (struct rewrite_script_token){.kind = REWRITE_TOKEN_VALUE_END};
    return true;
}

static bool on_import(struct name *name) {
    struct rewrite_script *script = name->script;
    bool is_url = false;
    if (!script_peek(script, name->to, &name->next) ||
        (name->next.kind == REWRITE_TOKEN_DOT && !script_is_member(script) && !meta_url(name, &is_url))) {
        return false;
    }
    if (script_is_member(script) || is_defined(name) || script_is_key(name)) {
        return script_pass(name);
    }
    if (is_url) {
        return replace_meta(name);
    }
    if (name->next.kind == REWRITE_TOKEN_OPEN_PARENTHESIS) {
        return replace_import(name);
    }
    if (script->place.is_module && script->depth == 0 && name->next.kind != REWRITE_TOKEN_DOT) {
        script->statement = REWRITE_WORD_IMPORT;
    }
    return script_pass(name);
}

/*
 * Words that only matter for others
 */

static bool on_other(const struct name *name) {
    struct rewrite_script *script = name->script;
    bool is_window = names_window(name->word) && (!script_is_member(script) || script->before.is_window);
    if (script_is_member(script)) { /* a.return is no return */
        struct name member = *name;
        member.word = REWRITE_WORD_NONE;
        script_pass(&member);
        script->last.is_window = is_window;
        return true;
    }
    if (name->word == REWRITE_WORD_EXPORT && script->place.is_module && script->depth == 0) {
        script->statement = REWRITE_WORD_EXPORT;
    }
    if (name->word == REWRITE_WORD_CLASS) { /* "{ class() {} }" is a method */
        struct rewrite_script_frame *frame = rewrite_script_frame(script);
        bool is_first =
            script->last.kind == REWRITE_TOKEN_OPEN_BRACE || script->last.kind == REWRITE_TOKEN_COMMA;
        frame->has_class = frame->kind != REWRITE_FRAME_OBJECT || !is_first;
    }
    script_pass(name);
    script->last.is_window = is_window;
    return true;
}

/* False if more bytes would tell. */
static bool on_name(struct name *name) {
    switch (name->word) {
    case REWRITE_WORD_LOCATION:
        return on_location(name);
    case REWRITE_WORD_TOP:
    case REWRITE_WORD_PARENT:
        return on_frame(name);
    case REWRITE_WORD_IMPORT:
        return on_import(name);
    default:
        return on_other(name);
    }
}

enum rewrite_step rewrite_script_name(struct rewrite_script *script, size_t to, enum rewrite_word word) {
    struct name name = {.script = script, .from = script->at, .to = to, .word = word};
    return on_name(&name) ? REWRITE_AGAIN : REWRITE_MORE;
}

/*
 * What brackets open: by that an object is told from a block, and a division from a regular expression
 */

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

/* What the "{" at script->at opens. False if more bytes would tell. */
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
