#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/assert.h"

static const struct {
    const char *name;
    const char *text;
} err_words[] = {
    [-ERR_OK] = {"ok", "no error"},
    [-ERR_MEMORY] = {"memory", "out of memory"},
    [-ERR_LIMIT] = {"limit", "a limit was reached"},
    [-ERR_INVALID] = {"invalid", "invalid input"},
    [-ERR_TRUNCATED] = {"truncated", "the input ends too early"},
    [-ERR_UNSUPPORTED] = {"unsupported", "not supported"},
    [-ERR_NOT_FOUND] = {"not_found", "not found"},
    [-ERR_EXISTS] = {"exists", "it exists already"},
    [-ERR_PERMISSION] = {"permission", "permission denied"},
    [-ERR_BUSY] = {"busy", "in use"},
    [-ERR_TIMEOUT] = {"timeout", "timed out"},
    [-ERR_REFUSED] = {"refused", "refused"},
    [-ERR_UNREACHABLE] = {"unreachable", "unreachable"},
    [-ERR_CLOSED] = {"closed", "closed by the other side"},
    [-ERR_CANCELLED] = {"cancelled", "cancelled"},
    [-ERR_IO] = {"io", "input/output error"},
    [-ERR_NO_SPACE] = {"no_space", "no space left on the disk"},
    [-ERR_CORRUPT] = {"corrupt", "stored data is damaged"},
    [-ERR_MISMATCH] = {"mismatch", "not what was expected"},
    [-ERR_SYSTEM] = {"system", "the operating system reported an error"},
    [-ERR_FILES] = {"files", "too many open files"},
    [-ERR_QUOTA] = {"quota", "the quota of disk for this archive is used"},
    [-ERR_THREADS] = {"threads", "the system starts no more threads"},
    [-ERR_DELETED] = {"deleted", "it has been deleted and may not come back"},
};

static bool err_is_known(enum err err) {
    return err <= 0 && err > -(int)(sizeof err_words / sizeof *err_words);
}

const char *err_name(enum err err) {
    return err_is_known(err) ? err_words[-err].name : "unknown";
}

const char *err_text(enum err err) {
    return err_is_known(err) ? err_words[-err].text : "unknown error";
}

enum err err_from_errno(int number) {
    switch (number) {
    case 0:
        return ERR_OK;
    case ENOMEM:
        return ERR_MEMORY;
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EEXIST:
    case ENOTEMPTY:
        return ERR_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_PERMISSION;
    case EBUSY:
    case EAGAIN:
    case EADDRINUSE:
        return ERR_BUSY;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ECONNREFUSED:
        return ERR_REFUSED;
    case ENETUNREACH:
    case EHOSTUNREACH:
        return ERR_UNREACHABLE;
    case ECONNRESET:
    case EPIPE:
        return ERR_CLOSED;
    case ECANCELED:
        return ERR_CANCELLED;
    case EIO:
        return ERR_IO;
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case EMFILE:
    case ENFILE:
        return ERR_FILES;
    case EFBIG:
    case ENAMETOOLONG:
        return ERR_LIMIT;
    default:
        return ERR_SYSTEM;
    }
}

static void detail_format(struct err_detail *detail, enum err err, size_t offset, const char *format,
                          va_list arguments) __attribute__((format(printf, 4, 0)));

static void detail_format(struct err_detail *detail, enum err err, size_t offset, const char *format,
                          va_list arguments) {
    ASSERT(err < 0);
    if (detail == NULL) {
        return;
    }
    detail->err = err;
    detail->offset = offset;
    detail->line = 0;
    detail->column = 0;
    vsnprintf(detail->text, sizeof detail->text, format, arguments);
}

enum err err_set(struct err_detail *detail, enum err err, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    detail_format(detail, err, 0, format, arguments);
    va_end(arguments);
    return err;
}

enum err err_set_at(struct err_detail *detail, enum err err, size_t offset, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    detail_format(detail, err, offset, format, arguments);
    va_end(arguments);
    return err;
}

const char *err_detail_text(const struct err_detail *detail, enum err err) {
    if (detail == NULL || detail->err != err || detail->text[0] == '\0') {
        return err_text(err);
    }
    return detail->text;
}
