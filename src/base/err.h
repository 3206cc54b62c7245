/*
 * err - the operating errors of the whole program, and the sentence that explains one to a user.
 *
 * A function that can fail returns `enum err`: 0 or a negative value. What it hands back through `ret_`
 * arguments is untouched on failure. If a person will read the reason, the function also takes a
 * `struct err_detail *` (may be NULL) and fills it by err_set().
 */
#ifndef MNEMON_BASE_ERR_H
#define MNEMON_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Short on purpose: it stands before nearly every prototype. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* The values are stable: they appear in logs, in JSON and in exit reports. Append, never renumber. */
enum err {
    ERR_OK = 0,
    ERR_MEMORY = -1,       /* the allocator said no */
    ERR_LIMIT = -2,        /* a stated maximum was reached */
    ERR_INVALID = -3,      /* input that breaks its format */
    ERR_TRUNCATED = -4,    /* input that ends too early */
    ERR_UNSUPPORTED = -5,  /* sound input that asks for what is not built */
    ERR_NOT_FOUND = -6,    /* there is no such thing */
    ERR_EXISTS = -7,       /* there is one already */
    ERR_PERMISSION = -8,   /* not allowed, by the system or by a rule */
    ERR_BUSY = -9,         /* in use by somebody else; try later */
    ERR_TIMEOUT = -10,     /* no answer in time */
    ERR_REFUSED = -11,     /* the other side said no */
    ERR_UNREACHABLE = -12, /* no way to the other side */
    ERR_CLOSED = -13,      /* the other side has gone */
    ERR_CANCELLED = -14,   /* we gave up ourselves */
    ERR_IO = -15,          /* reading or writing failed */
    ERR_NO_SPACE = -16,    /* the disk is full */
    ERR_CORRUPT = -17,     /* stored bytes that fail their check */
    ERR_MISMATCH = -18,    /* sound, but not what was expected (digest, version, signature) */
    ERR_SYSTEM = -19,      /* any other failure of the operating system */
    ERR_FILES = -20,       /* the process, or the system, has too many files open */
    ERR_THREADS = -21,     /* the system starts no more threads */
    ERR_QUOTA = -22,       /* there is space, but this archive may not take it */
    ERR_DELETED = -23,     /* it was deleted on purpose, and may not come back */
    ERR_LAST = ERR_DELETED,
};

enum { ERR_TEXT_SIZE_MAX = 256 };

struct err_detail {
    enum err err;
    size_t offset;   /* byte in the input, from 0; meaningful if the function says so */
    uint32_t line;   /* from 1; 0 if the input has no lines */
    uint32_t column; /* in bytes, from 1 */
    char text[ERR_TEXT_SIZE_MAX];
};

/* The name of the value without its prefix, in lower case: "no_space". Never NULL. */
const char *err_name(enum err err);

/* A sentence fragment for people: "no space left on the disk". Never NULL. */
const char *err_text(enum err err);

/* Is there no room, whoever says so? What is there can be read. */
static inline bool err_is_full(enum err err) {
    return err == ERR_NO_SPACE || err == ERR_QUOTA;
}

/* The value that fits an errno of the operating system. */
enum err err_from_errno(int number);

/* Fill *detail, unless it is NULL, and return err, so that `return err_set(…)` reads well. */
enum err err_set(struct err_detail *detail, enum err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with the place in the input. */
enum err err_set_at(struct err_detail *detail, enum err err, size_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The text of the detail, or err_text() if nobody filled it. */
const char *err_detail_text(const struct err_detail *detail, enum err err);

#endif
