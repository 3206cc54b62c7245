#include "node/crowd/offers_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "base/whole_file.h"
#include "base/wire.h"
#include "store/remote/backend_code.h"

#define MAGIC "MNEMONO1"

enum { MAGIC_SIZE = 8, FILE_MODE = 0600, READ_SIZE = 64 << 10, PART_NAME_SIZE = OFFERS_FILE_NAME_SIZE + 8 };

/* ---- the head ---- */

enum err offers_file_put_head(struct buf *out, struct sha256 *sha256, const struct offers_file_head *head) {
    struct wire_writer writer;
    size_t start = out->size;
    size_t size_max = RINGKEY_SIZE + head->title.size + head->description.size + 3 * WIRE_VARINT_SIZE_MAX;
    enum err err = buf_reserve(out, OFFERS_FILE_PREFIX_SIZE + size_max);
    if (err != ERR_OK) {
        return err;
    }
    if (head->title.size > WISH_TITLE_SIZE_MAX ||
        head->description.size > CAPTURES_CODE_DESCRIPTION_SIZE_MAX) {
        return ERR_LIMIT;
    }
    uint8_t *prefix = out->data + start;
    wire_writer_init(&writer, prefix + OFFERS_FILE_PREFIX_SIZE, size_max);
    wire_write_bytes(&writer, bytes_of(head->key.bytes, RINGKEY_SIZE));
    wire_write_string(&writer, head->title);
    wire_write_string(&writer, head->description);
    wire_write_varint(&writer, head->payload_size);
    ASSERT(writer.err == ERR_OK);
    size_t size = writer.size;
    uint8_t check[SHA256_SIZE];
    sha256_digest(sha256, bytes_of(prefix + OFFERS_FILE_PREFIX_SIZE, size), check);
    wire_writer_init(&writer, prefix, OFFERS_FILE_PREFIX_SIZE);
    wire_write_bytes(&writer, BYTES(MAGIC));
    wire_write_u32(&writer, (uint32_t)size);
    wire_write_bytes(&writer, bytes_of(check, sizeof check));
    out->size += OFFERS_FILE_PREFIX_SIZE + size;
    return ERR_OK;
}

/* The size of the head, of a prefix that has come whole; 0 if it is none. */
static size_t head_size(struct bytes prefix) {
    struct wire_reader reader;
    wire_reader_init(&reader, prefix);
    bool is_magic = bytes_equal(wire_read_bytes(&reader, MAGIC_SIZE), BYTES(MAGIC));
    uint32_t size = wire_read_u32(&reader);
    return is_magic && size <= OFFERS_FILE_HEAD_SIZE_MAX ? size : 0;
}

enum err offers_file_read_head(struct bytes in, struct sha256 *sha256, struct offers_file_head *ret_head,
                               size_t *ret_size, struct err_detail *detail) {
    struct wire_reader reader;
    struct offers_file_head head;
    uint8_t check[SHA256_SIZE];
    size_t size = in.size >= OFFERS_FILE_PREFIX_SIZE ? head_size(in) : 0;
    if (size == 0 || in.size - OFFERS_FILE_PREFIX_SIZE < size) {
        return err_set(detail, ERR_CORRUPT, "no file of an offer");
    }
    struct bytes text = bytes_slice(in, OFFERS_FILE_PREFIX_SIZE, OFFERS_FILE_PREFIX_SIZE + size);
    sha256_digest(sha256, text, check);
    if (memcmp(check, in.data + OFFERS_FILE_PREFIX_SIZE - SHA256_SIZE, SHA256_SIZE) != 0) {
        return err_set(detail, ERR_CORRUPT, "the head of an offer is damaged");
    }
    wire_reader_init(&reader, text);
    wire_read_array(&reader, head.key.bytes, RINGKEY_SIZE);
    head.title = wire_read_string(&reader, WISH_TITLE_SIZE_MAX);
    head.description = wire_read_string(&reader, CAPTURES_CODE_DESCRIPTION_SIZE_MAX);
    head.payload_size = wire_read_varint(&reader, VOLUME_DOCUMENT_SIZE_MAX);
    if (wire_reader_finish(&reader, detail) != ERR_OK || !utf8_is_valid(head.title)) {
        return err_set(detail, ERR_CORRUPT, "the head of an offer is none");
    }
    *ret_head = head;
    *ret_size = OFFERS_FILE_PREFIX_SIZE + size;
    return ERR_OK;
}

bool offers_file_read_about(const struct offers_file_head *head, struct offers_file_about *ret_about) {
    struct backend_code_document received;
    if (backend_code_read_document(head->description, &received, NULL) != ERR_OK ||
        received.form != BACKEND_CODE_LEFT_OUT || received.sum.size != head->payload_size ||
        received.document.url.size == 0) {
        return false;
    }
    bool is_of_key = received.document.time_us == ringkey_time_us(&head->key) &&
                     memcmp(received.sum.digest, ringkey_digest(&head->key), RINGKEY_DIGEST_SIZE) == 0;
    *ret_about = (struct offers_file_about){
        .url = received.document.url, .time_us = received.document.time_us, .sum = received.sum};
    return is_of_key;
}

/* ---- files ---- */

static void name_file(const struct ringkey *key, char out[OFFERS_FILE_NAME_SIZE]) {
    hex_encode(bytes_of(key->bytes, RINGKEY_SIZE), out);
}

enum err offers_file_write(int directory, const struct ringkey *key, struct bytes head,
                           struct bytes payload) {
    char name[OFFERS_FILE_NAME_SIZE];
    char part[PART_NAME_SIZE];
    name_file(key, name);
    snprintf(part, sizeof part, "%s.part", name);
    int fd = openat(directory, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    bool is_written = whole_file_write_all(fd, head) && whole_file_write_all(fd, payload);
    enum err err = is_written ? ERR_OK : err_from_errno(errno);
    close(fd);
    if (err == ERR_OK && renameat(directory, part, directory, name) != 0) {
        err = err_from_errno(errno);
    }
    if (err != ERR_OK) {
        unlinkat(directory, part, 0);
    }
    return err;
}

void offers_file_remove(int directory, const struct ringkey *key) {
    char name[OFFERS_FILE_NAME_SIZE];
    name_file(key, name);
    unlinkat(directory, name, 0);
}

static enum err read_at(int fd, uint64_t offset, void *out, size_t size) {
    enum err err = whole_file_read_at(fd, offset, out, size);
    return err == ERR_TRUNCATED ? ERR_CORRUPT : err;
}

static enum err offer_read_text(struct offers_file *file) {
    struct buf *text = file->text;
    buf_clear(text);
    enum err err = buf_reserve(text, OFFERS_FILE_PREFIX_SIZE);
    if (err == ERR_OK) {
        err = read_at(file->fd, 0, text->data, OFFERS_FILE_PREFIX_SIZE);
    }
    if (err != ERR_OK) {
        return err;
    }
    text->size = OFFERS_FILE_PREFIX_SIZE;
    size_t size = head_size(buf_bytes(text));
    err = size > 0 ? buf_reserve(text, size) : ERR_CORRUPT;
    if (err == ERR_OK) {
        err = read_at(file->fd, text->size, text->data + text->size, size);
    }
    text->size += err == ERR_OK ? size : 0;
    return err;
}

enum err offers_file_open(struct offers_file *file, int directory, const struct ringkey *key,
                          struct sha256 *sha256, struct buf *text, uint64_t payload_size_max) {
    char name[OFFERS_FILE_NAME_SIZE];
    struct stat status;
    name_file(key, name);
    *file = (struct offers_file){.text = text};
    /* A pipe would keep us waiting, a link lead elsewhere. */
    file->fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file->fd < 0) {
        return errno == ENOENT ? ERR_NOT_FOUND : errno == ELOOP ? ERR_CORRUPT : err_from_errno(errno);
    }
    enum err err = fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode) ? ERR_OK : ERR_CORRUPT;
    if (err == ERR_OK) {
        err = offer_read_text(file);
    }
    if (err == ERR_OK) {
        err = offers_file_read_head(buf_bytes(text), sha256, &file->head, &file->payload_start, NULL);
    }
    bool is_sound = err == ERR_OK && ringkey_compare(&file->head.key, key) == 0 &&
                    file->head.payload_size <= payload_size_max &&
                    (uint64_t)status.st_size == file->payload_start + file->head.payload_size;
    if (!is_sound) {
        offers_file_close(file);
        return err == ERR_OK ? ERR_CORRUPT : err;
    }
    file->changed_at_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    return ERR_OK;
}

void offers_file_close(struct offers_file *file) {
    close(file->fd);
    file->fd = -1;
}

enum err offers_file_read(const struct offers_file *file, uint64_t offset, void *out, size_t size) {
    ASSERT(offset <= file->head.payload_size && size <= file->head.payload_size - offset);
    return read_at(file->fd, file->payload_start + offset, out, size);
}

enum err offers_file_check(const struct offers_file *file, struct sha256 *sha256,
                           const uint8_t digest[SHA256_SIZE]) {
    uint8_t part[READ_SIZE];
    uint8_t found[SHA256_SIZE];
    sha256_start(sha256);
    for (uint64_t offset = 0; offset < file->head.payload_size;) {
        uint64_t left = file->head.payload_size - offset;
        size_t size = left < sizeof part ? (size_t)left : sizeof part;
        enum err err = offers_file_read(file, offset, part, size);
        if (err != ERR_OK) {
            return err;
        }
        sha256_update(sha256, bytes_of(part, size));
        offset += size;
    }
    sha256_finish(sha256, found);
    return memcmp(found, digest, SHA256_SIZE) == 0 ? ERR_OK : ERR_CORRUPT;
}
