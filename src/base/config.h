/*
 * config - mnemon.conf: named values with defaults, checked before anything starts.
 *
 *      # a comment, to the end of the line
 *      [crawl]                      names below belong to crawl
 *      delay = 2 s                  spellings as in base/value.h
 *      user_agent = "mnemon (+https://example.org/bot)"    quotes keep spaces, # and escapes \" \\ \n \t
 *      exclude = "*.zip"              a list grows with each line of the same name
 *      exclude = "*.iso"
 *
 * The program describes its keys in a table; config_read() fills the caller's struct with the defaults and
 * then with what the file says. A mistake stops it with line, column and what would have been right. Text is
 * copied into the arena. Format: docs/formats/config.md.
 */
#ifndef MNEMON_BASE_CONFIG_H
#define MNEMON_BASE_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum { CONFIG_LIST_COUNT_MAX = 1024 };

struct config_list {
    struct bytes *items;
    size_t count;
    size_t capacity;
};

/* The type of the caller's field follows each. */
enum config_type {
    CONFIG_SWITCH,   /* bool */
    CONFIG_NUMBER,   /* uint64_t */
    CONFIG_SIZE,     /* uint64_t, bytes */
    CONFIG_DURATION, /* uint64_t, microseconds */
    CONFIG_TEXT,     /* struct bytes, ended by a zero byte that does not count */
    CONFIG_CHOICE,   /* uint32_t, index into choices */
    CONFIG_LIST,     /* struct config_list */
};

struct config_key {
    const char *name; /* "crawl.delay"; without a dot: before the first section */
    enum config_type type;
    size_t offset;        /* of the field in the caller's struct */
    const char *fallback; /* the default, as one would write it; NULL for an empty text or list */
    uint64_t min;         /* of numbers, sizes, durations */
    uint64_t max;
    const char *const *choices; /* ended by NULL */
    const char *help;           /* one line */
};

/*
 * Fill *out. The keys end with one whose name is NULL. For a mistake in the text (ERR_INVALID; ERR_LIMIT for
 * a list that is too long) *detail has line, column and a text that begins with them; ERR_MEMORY may come
 * without a place. *out then holds a mixture and is not to be used.
 */
enum err config_read(const struct config_key *keys, struct bytes text, struct arena *arena, void *out,
                     struct err_detail *detail) MUST_CHECK;

#endif
