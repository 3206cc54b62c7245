/*
 * rewrite_scan - what of JavaScript's grammar needs no memory: words, punctuators, and a look at what comes
 * next. rewrite_script.h uses it.
 */
#ifndef MNEMON_WEB_REWRITE_REWRITE_SCAN_H
#define MNEMON_WEB_REWRITE_REWRITE_SCAN_H

#include "web/html/words.h"

enum {
    REWRITE_NAME_SIZE_MAX = 64, /* no word that means something is as long */
    REWRITE_PEEK_SIZE_MAX = 1024,
    REWRITE_CLAUSE_SIZE_MAX = 4096, /* of "export { … } from" */
};

/* The words that decide something; operators are those in front of a value. */
enum rewrite_word {
    REWRITE_WORD_NONE,
    REWRITE_WORD_LOCATION,
    REWRITE_WORD_TOP,
    REWRITE_WORD_PARENT,
    REWRITE_WORD_WINDOW,
    REWRITE_WORD_SELF,
    REWRITE_WORD_GLOBALTHIS,
    REWRITE_WORD_DOCUMENT,
    REWRITE_WORD_FRAMES,
    REWRITE_WORD_HISTORY,
    REWRITE_WORD_POSTMESSAGE,
    REWRITE_WORD_IMPORT,
    REWRITE_WORD_EXPORT,
    REWRITE_WORD_FROM,
    REWRITE_WORD_AS,
    REWRITE_WORD_META,
    REWRITE_WORD_URL,
    REWRITE_WORD_SUPER,
    REWRITE_WORD_CLASS,
    REWRITE_WORD_FUNCTION,
    REWRITE_WORD_VAR,
    REWRITE_WORD_LET,
    REWRITE_WORD_CONST,
    REWRITE_WORD_IF,
    REWRITE_WORD_WHILE,
    REWRITE_WORD_FOR,
    REWRITE_WORD_WITH,
    REWRITE_WORD_BREAK,
    REWRITE_WORD_CONTINUE,
    REWRITE_WORD_GET,
    REWRITE_WORD_SET,
    REWRITE_WORD_ASYNC,
    REWRITE_WORD_STATIC,
    REWRITE_WORD_TRY,
    REWRITE_WORD_FINALLY,
    REWRITE_WORD_ELSE, /* from here on a "/" behind it starts a regular expression */
    REWRITE_WORD_DO,
    REWRITE_WORD_RETURN, /* from here on a "{" behind it starts an object */
    REWRITE_WORD_THROW,
    REWRITE_WORD_CASE,
    REWRITE_WORD_DEFAULT,
    REWRITE_WORD_TYPEOF,
    REWRITE_WORD_VOID,
    REWRITE_WORD_DELETE,
    REWRITE_WORD_NEW,
    REWRITE_WORD_IN,
    REWRITE_WORD_INSTANCEOF,
    REWRITE_WORD_AWAIT,
    REWRITE_WORD_YIELD,
    REWRITE_WORDS_COUNT,
};

/* Punctuators of one byte are that byte. */
enum rewrite_token_kind {
    REWRITE_TOKEN_OPEN_BRACE = '{',
    REWRITE_TOKEN_CLOSE_BRACE = '}',
    REWRITE_TOKEN_OPEN_PARENTHESIS = '(',
    REWRITE_TOKEN_CLOSE_PARENTHESIS = ')',
    REWRITE_TOKEN_OPEN_BRACKET = '[',
    REWRITE_TOKEN_CLOSE_BRACKET = ']',
    REWRITE_TOKEN_COMMA = ',',
    REWRITE_TOKEN_SEMICOLON = ';',
    REWRITE_TOKEN_COLON = ':',
    REWRITE_TOKEN_EQUALS = '=',
    REWRITE_TOKEN_STAR = '*',
    REWRITE_TOKEN_DOT = '.',
    REWRITE_TOKEN_QUESTION = '?',
    REWRITE_TOKEN_BACKTICK = '`',
    REWRITE_TOKEN_START = 128, /* nothing was before */
    REWRITE_TOKEN_END,         /* nothing comes behind */
    REWRITE_TOKEN_UNKNOWN,     /* too far away */
    REWRITE_TOKEN_NAME,
    REWRITE_TOKEN_LITERAL,     /* number, string, template, regular expression */
    REWRITE_TOKEN_VALUE_END,   /* ")", "]", and the "}" of an object */
    REWRITE_TOKEN_CONTROL_END, /* ")" of if (…), while (…) … */
    REWRITE_TOKEN_BLOCK_END,   /* "}" of a block or a class */
    REWRITE_TOKEN_ARROW,       /* => */
    REWRITE_TOKEN_EQUALITY,    /* == != === !== */
    REWRITE_TOKEN_ELLIPSIS,    /* ... */
    REWRITE_TOKEN_OPTIONAL,    /* ?. */
    REWRITE_TOKEN_INCREMENT,   /* ++ -- */
    REWRITE_TOKEN_OPERATOR,    /* any other of several bytes, or one that means nothing to us */
};

/* The words, case and all. */
void rewrite_scan_words(struct words *words);
enum rewrite_word rewrite_scan_word(const struct words *words, struct bytes name);

bool rewrite_scan_is_space(uint8_t byte);
bool rewrite_scan_is_name(uint8_t byte); /* part of a name, '\' and all that is not ASCII included */

/* Size of the name at the start, escapes and all; text.size if it may go on. */
size_t rewrite_scan_name(struct bytes text);

/* The punctuator at the start of the text, which is no '/', and its size; 0 if more bytes would tell. */
size_t rewrite_scan_punctuator(struct bytes text, bool is_last, enum rewrite_token_kind *ret_kind);

/* What comes next: where it is, and its kind; quotes and slashes are operators. */
struct rewrite_peek {
    enum rewrite_token_kind kind;
    enum rewrite_word word;
    size_t from;
    size_t to;
};

/* The token behind spaces and comments from view[at] on. False if more bytes would tell. */
bool rewrite_scan_peek(const struct words *words, struct bytes view, size_t at, bool is_last,
                       struct rewrite_peek *ret_peek);

#endif
