#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

const char *err_name(enum err err) {
    switch (err) {
    case ERR_OK:
        return "ok";
    case ERR_MEMORY:
        return "memory";
    case ERR_LIMIT:
        return "limit";
    case ERR_INVALID:
        return "invalid";
    case ERR_TRUNCATED:
        return "truncated";
    case ERR_UNSUPPORTED:
        return "unsupported";
    case ERR_NOT_FOUND:
        return "not_found";
    case ERR_EXISTS:
        return "exists";
    case ERR_PERMISSION:
        return "permission";
    case ERR_BUSY:
        return "busy";
    case ERR_TIMEOUT:
        return "timeout";
    case ERR_REFUSED:
        return "refused";
    case ERR_UNREACHABLE:
        return "unreachable";
    case ERR_CLOSED:
        return "closed";
    case ERR_CANCELLED:
        return "cancelled";
    case ERR_IO:
        return "io";
    case ERR_NO_SPACE:
        return "no_space";
    case ERR_CORRUPT:
        return "corrupt";
    case ERR_MISMATCH:
        return "mismatch";
    case ERR_SYSTEM:
        return "system";
    }
    return "unknown";
}

const char *err_text(enum err err) {
    switch (err) {
    case ERR_OK:
        return "no error";
    case ERR_MEMORY:
        return "out of memory";
    case ERR_LIMIT:
        return "a limit was reached";
    case ERR_INVALID:
        return "invalid input";
    case ERR_TRUNCATED:
        return "the input ends too early";
    case ERR_UNSUPPORTED:
        return "not supported";
    case ERR_NOT_FOUND:
        return "not found";
    case ERR_EXISTS:
        return "it exists already";
    case ERR_PERMISSION:
        return "permission denied";
    case ERR_BUSY:
        return "in use";
    case ERR_TIMEOUT:
        return "timed out";
    case ERR_REFUSED:
        return "refused";
    case ERR_UNREACHABLE:
        return "unreachable";
    case ERR_CLOSED:
        return "closed by the other side";
    case ERR_CANCELLED:
        return "cancelled";
    case ERR_IO:
        return "input/output error";
    case ERR_NO_SPACE:
        return "no space left on the disk";
    case ERR_CORRUPT:
        return "stored data is damaged";
    case ERR_MISMATCH:
        return "not what was expected";
    case ERR_SYSTEM:
        return "the operating system reported an error";
    }
    return "unknown error";
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
    case EFBIG:
    case EMFILE:
    case ENFILE:
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
