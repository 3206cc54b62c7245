/*
 * rewrite_script - scripts made to ask the replay script, web/replay.js, where they are and who is above
 * them.
 *
 * Token by token, in bytes that arrive by pieces of any size. The scanner knows comments, strings, templates,
 * regular expressions (by what stands before them) and what each bracket opened; what it is not sure of
 * passes. A script that parses before parses after.
 *
 * What is written, and what the replay script must therefore define (G: as an own property of the global
 * object, before any other script runs; O: on Object.prototype, where the getter gives this.location,
 * this.top, this.parent to any object that is not a window, and the setter sets that):
 *
 *      location                  __mnemon_location                     G, accessor, not configurable
 *      a.location  a?.location   a.__mnemon_location                   O; not before "(", not of super
 *      {location}                {location: __mnemon_location}         in an object
 *      var {location} = a        var {__mnemon_location} = a           O; let and const likewise
 *      top !== self              __mnemon_top !== self                 G; a bare top or parent only in a
 *      parent == window          __mnemon_parent == window                comparison with window, self, top,
 *                                                                         parent or globalThis, and
 *      top.location              __mnemon_top.__mnemon_location        G; before location, document, frames,
 *                                                                         history, postMessage, self, window
 *      window.top  self.parent   window.__mnemon_top …                 O; of window, self, globalThis, top,
 *                                                                         parent only
 *      import(x)                 __mnemon_import("BASE")(x)            G: a function of the original URL of
 *                                the script (of the document's base, if it is in one) that gives a function
 *                                (specifier, options) => Promise; "" if the URL is above 2,048 bytes
 *      import.meta.url           __mnemon_meta(import.meta.url)        G: a function of a replay URL that
 *                                gives the original one
 *
 * Variables, parameters and functions called location are renamed everywhere alike, so that they stay what
 * they are; keys, methods, fields and labels keep their name. In modules imports and exports stay what they
 * are for others, and the specifiers that are absolute or start with "/" become replay URLs; relative ones
 * are right as they are, bare ones are for the import map. Strings are left alone, so a["location"],
 * eval("location"), new Function and importScripts("…") are the replay script's.
 *
 * If brackets do not match or are nested deeper than REWRITE_FRAMES_MAX, the rest passes as it is.
 */
#ifndef MNEMON_WEB_REWRITE_REWRITE_SCRIPT_H
#define MNEMON_WEB_REWRITE_REWRITE_SCRIPT_H

#include "web/html/tape.h"
#include "web/rewrite/rewrite_scan.h"

#define REWRITE_NAME_LOCATION "__mnemon_location"
#define REWRITE_NAME_TOP "__mnemon_top"
#define REWRITE_NAME_PARENT "__mnemon_parent"
#define REWRITE_NAME_IMPORT "__mnemon_import"
#define REWRITE_NAME_META "__mnemon_meta"

enum { REWRITE_FRAMES_MAX = 512, REWRITE_SPECIFIER_SIZE_MAX = 2048, REWRITE_BASE_SIZE_MAX = 2048 };

/* What a bracket opened. */
enum rewrite_frame_kind {
    REWRITE_FRAME_BLOCK, /* the script itself, too */
    REWRITE_FRAME_OBJECT,
    REWRITE_FRAME_PATTERN, /* "{" right behind var, let or const */
    REWRITE_FRAME_CLASS,
    REWRITE_FRAME_IMPORTS,     /* import { */
    REWRITE_FRAME_EXPORTS,     /* export { … } */
    REWRITE_FRAME_EXPORT_FROM, /* export { … } from */
    REWRITE_FRAME_TEMPLATE,    /* ${ */
    REWRITE_FRAME_PARENTHESES,
    REWRITE_FRAME_BRACKETS,
};

struct rewrite_script_frame {
    uint8_t kind;
    bool is_control;          /* if (…), while (…), for (…), with (…) */
    bool is_params;           /* function (…) */
    bool has_class;           /* the next "{" is the body of a class */
    uint32_t questions_count; /* "?" that wait for their ":" */
};

enum rewrite_script_state {
    REWRITE_IN_CODE,
    REWRITE_IN_LINE_COMMENT,
    REWRITE_IN_COMMENT,
    REWRITE_IN_STRING,
    REWRITE_IN_TEMPLATE,
    REWRITE_IN_REGEX,
    REWRITE_IN_REGEX_CLASS,  /* [ … ] in one */
    REWRITE_IN_REST_OF_NAME, /* of a long name, or the flags of a regular expression */
    REWRITE_IN_NUMBER,
    REWRITE_IN_LOST, /* the rest passes */
};

struct rewrite_script_token {
    enum rewrite_token_kind kind;
    enum rewrite_word word;
    bool is_window;     /* its value is one, as far as one can see */
    bool ends_question; /* a ":" of "? :" */
};

/* The replay URL of a specifier, valid until the next call; false if it stays. */
typedef bool rewrite_specifier(void *context, struct bytes text, struct bytes *ret_url);

struct rewrite_script_place {
    bool is_module;
    struct bytes base; /* URL against which import() is resolved; borrowed */
    rewrite_specifier *specifier;
    enum err (*put)(void *context, struct bytes piece); /* as rewrite_put of rewrite.h */
    void *context;                                      /* of both */
};

struct rewrite_script {
    struct rewrite_script_place place;
    const struct words *words;
    enum err err;
    struct tape tape;
    enum rewrite_script_state state;
    uint8_t quote;
    bool has_ended;
    bool is_last;                /* the view is all that is left */
    bool is_line_start;          /* only spaces and comments on this line so far */
    bool is_number_sign;         /* the last byte of the number was an 'e' */
    bool has_local[2];           /* a variable or parameter is called top, parent */
    bool has_export;             /* "export var location" was seen */
    enum rewrite_word statement; /* import or export, at the top of a module, that we are in */
    size_t at;                   /* next byte of the view */
    size_t copied;               /* up to here the view has been put */
    struct rewrite_script_token last;
    struct rewrite_script_token before; /* the token before the last */
    struct buf text;                    /* that is put in place of another */
    size_t depth;
    struct rewrite_script_frame frames[REWRITE_FRAMES_MAX];
};

/* words: of rewrite_scan_words(), must stay. */
void rewrite_script_init(struct rewrite_script *script, const struct words *words);
void rewrite_script_done(struct rewrite_script *script);

void rewrite_script_start(struct rewrite_script *script, const struct rewrite_script_place *place);
enum err rewrite_script_feed(struct rewrite_script *script, struct bytes piece) MUST_CHECK;
enum err rewrite_script_end(struct rewrite_script *script) MUST_CHECK;

/* Put all that was fed. A name or the like ends here, though the script goes on. */
enum err rewrite_script_flush(struct rewrite_script *script) MUST_CHECK;

/*
 * One machine in two files: rewrite_script.c does the tokens, rewrite_script_name.c decides what a name and a
 * bracket mean by what is around them. The rest is between these two.
 */

/* A step: what it did. */
enum rewrite_step {
    REWRITE_AGAIN, /* script->at has moved or the state has changed */
    REWRITE_MORE,  /* the view ends before it can be said; nothing from script->at on has been dealt with */
};

/* A name or keyword, from script->at up to `to`. */
enum rewrite_step rewrite_script_name(struct rewrite_script *script, size_t to, enum rewrite_word word);

/* The bracket at script->at. */
enum rewrite_step rewrite_script_open(struct rewrite_script *script, uint8_t byte);
enum rewrite_step rewrite_script_close(struct rewrite_script *script, uint8_t byte);
enum rewrite_step rewrite_script_push(struct rewrite_script *script,
                                      const struct rewrite_script_frame *frame);

/* A token has been seen. */
void rewrite_script_take(struct rewrite_script *script, const struct rewrite_script_token *token);

/* From here on nothing is understood. */
enum rewrite_step rewrite_script_lose(struct rewrite_script *script);

/* Put the text in place of view[from, to). */
void rewrite_script_replace(struct rewrite_script *script, size_t from, size_t to, struct bytes text);

/* Append the text so that it can stand between quotes of a script. */
enum err rewrite_script_quote(struct buf *out, struct bytes text, uint8_t quote);

static inline struct rewrite_script_frame *rewrite_script_frame(struct rewrite_script *script) {
    return &script->frames[script->depth];
}

#endif
