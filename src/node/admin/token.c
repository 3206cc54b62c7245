#include "node/admin/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hex.h"

enum { RANDOM_SIZE = 32, MODE = 0600, OTHERS = 0077 };

static enum err token_fail(const struct token *token, struct err_detail *detail) {
    enum err err = err_from_errno(errno);
    return err_set(detail, err, "%s: %s", token->path, strerror(errno));
}

/* Whole or not at all, also after a crash: written beside it and renamed. */
static enum err token_make(const struct token *token, struct err_detail *detail) {
    uint8_t secret[RANDOM_SIZE];
    char line[2 * RANDOM_SIZE + 2];
    char path[TOKEN_PATH_SIZE_MAX + 8];
    snprintf(path, sizeof path, "%s.tmp", token->path);
    if (getrandom(secret, sizeof secret, 0) != sizeof secret) {
        return token_fail(token, detail);
    }
    hex_encode(bytes_of(secret, sizeof secret), line);
    strcat(line, "\n");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    if (fd < 0) {
        return token_fail(token, detail);
    }
    bool is_written = fchmod(fd, MODE) == 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line) &&
                      fsync(fd) == 0 && rename(path, token->path) == 0;
    enum err err = is_written ? ERR_OK : token_fail(token, detail);
    close(fd);
    return err;
}

static enum err take_text(struct token *token, struct bytes line, struct err_detail *detail) {
    struct bytes text = bytes_trim(line);
    bool is_sound = text.size >= TOKEN_SIZE_MIN && text.size < TOKEN_SIZE_MAX;
    for (size_t i = 0; i < text.size && is_sound; i++) {
        is_sound = text.data[i] > ' ' && text.data[i] < 0x7f;
    }
    if (!is_sound) {
        return err_set(detail, ERR_INVALID, "%s holds no token: one line of %d to %d letters and digits",
                       token->path, TOKEN_SIZE_MIN, TOKEN_SIZE_MAX - 1);
    }
    memcpy(token->text, text.data, text.size);
    token->text[text.size] = '\0';
    return ERR_OK;
}

static enum err token_take(struct token *token, int fd, struct err_detail *detail) {
    struct stat status;
    char line[TOKEN_SIZE_MAX + 2];
    if (fstat(fd, &status) != 0) {
        return token_fail(token, detail);
    }
    if ((status.st_mode & OTHERS) != 0) {
        return err_set(detail, ERR_PERMISSION,
                       "%s can be read by others: chmod 600 it, or remove it for a new one", token->path);
    }
    ssize_t size = read(fd, line, sizeof line);
    return size < 0 ? token_fail(token, detail) : take_text(token, bytes_of(line, (size_t)size), detail);
}

enum err token_load(struct token *token, const char *directory, struct err_detail *detail) {
    int size = snprintf(token->path, sizeof token->path, "%s/token", directory);
    if (size >= (int)sizeof token->path) {
        return err_set(detail, ERR_LIMIT, "the path of the data directory is too long");
    }
    int fd = open(token->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        enum err err = token_make(token, detail);
        if (err != ERR_OK) {
            return err;
        }
        fd = open(token->path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0) {
        return token_fail(token, detail);
    }
    enum err err = token_take(token, fd, detail);
    close(fd);
    return err;
}
