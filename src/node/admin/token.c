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
#include "base/whole_file.h"

enum { RANDOM_SIZE = 32, MODE = 0600, OTHERS = 0077 };

static enum err token_make(const struct token *token, struct err_detail *detail) {
    uint8_t secret[RANDOM_SIZE];
    char line[2 * RANDOM_SIZE + 2];
    if (getrandom(secret, sizeof secret, 0) != sizeof secret) {
        return whole_file_fail(token->path, detail);
    }
    hex_encode(bytes_of(secret, sizeof secret), line);
    strcat(line, "\n");
    return whole_file_replace(token->path, bytes_of_string(line), MODE, detail);
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
        return whole_file_fail(token->path, detail);
    }
    if ((status.st_mode & OTHERS) != 0) {
        return err_set(detail, ERR_PERMISSION,
                       "%s can be read by others: chmod 600 it, or remove it for a new one", token->path);
    }
    ssize_t size = read(fd, line, sizeof line);
    return size < 0 ? whole_file_fail(token->path, detail)
                    : take_text(token, bytes_of(line, (size_t)size), detail);
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
        return whole_file_fail(token->path, detail);
    }
    enum err err = token_take(token, fd, detail);
    close(fd);
    return err;
}
