#include "node/transport/ring_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/whole_file.h"
#include "net/identity.h"

enum {
    PATH_SIZE_MAX = 4096 + 64,
    MODE = 0600,
    PEERS_LAYOUT = 1,
    LAYOUT_OFFSET = 4, /* in a charter */
    LAYOUT_PLAIN = 1,  /* of one that every program reads */
};

static const char peers_mark[] = "mnpe";
_Static_assert((int)RING_FILES_PEERS_MAX <= (int)PEERS_FILE_COUNT_MAX, "a list has room for them");

static const char *ring_files_path_of(const char *directory, const char *name, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/ring/%s", directory, name);
    return out;
}

/* ---- files ---- */

/* ERR_LIMIT: it holds more than size_max bytes. */
static enum err ring_files_read_file(const char *path, uint8_t *memory, size_t size_max,
                                     struct bytes *ret_bytes, struct err_detail *detail) {
    struct buf text;
    buf_init(&text, size_max);
    enum err err = whole_file_read(path, &text, detail);
    if (err == ERR_OK && text.size > 0) {
        memcpy(memory, text.data, text.size);
    }
    *ret_bytes = bytes_of(memory, text.size);
    buf_done(&text);
    return err;
}

static enum err ring_files_write_file(const char *directory, const char *name, struct bytes bytes,
                                      struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring", directory);
    enum err err = whole_file_make_directory(directory, detail);
    err = err == ERR_OK ? whole_file_make_directory(path, detail) : err;
    return err == ERR_OK ? whole_file_replace(ring_files_path_of(directory, name, path), bytes, MODE, detail)
                         : err;
}

/* ---- the charter and the membership ---- */

enum err ring_files_read_charter(const char *directory, struct charter *ret_charter,
                                 uint8_t memory[CHARTER_SIZE_MAX], struct bytes *ret_encoded,
                                 struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct bytes encoded;
    struct err_detail reason = {0};
    enum err err = ring_files_read_file(ring_files_path_of(directory, "charter", path), memory,
                                        CHARTER_SIZE_MAX, &encoded, detail);
    if (err == ERR_NOT_FOUND) {
        return err_set(detail, err, "%.200s is in no ring", directory);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = charter_read(encoded, identity_verify, ret_charter, &reason);
    if (err != ERR_OK) {
        return err_set(detail, ERR_CORRUPT, "%.120s is damaged: %.100s", path, err_detail_text(&reason, err));
    }
    *ret_encoded = encoded;
    return ERR_OK;
}

/* Charters begin with four letters and their layout. */
static unsigned ring_files_layout(struct bytes charter) {
    return charter.size > LAYOUT_OFFSET ? charter.data[LAYOUT_OFFSET] : 0;
}

static enum err ring_files_keep_plain(const char *directory, struct bytes charter,
                                      struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct bytes before = {0};
    enum err err = ERR_OK;
    if (ring_files_layout(charter) <= LAYOUT_PLAIN) {
        return ERR_OK;
    }
    uint8_t *memory = malloc(CHARTER_SIZE_MAX);
    if (memory == NULL) {
        return ERR_MEMORY;
    }
    bool is_there = ring_files_read_file(ring_files_path_of(directory, "charter", path), memory,
                                         CHARTER_SIZE_MAX, &before, NULL) == ERR_OK;
    if (is_there && ring_files_layout(before) == LAYOUT_PLAIN) {
        err = ring_files_write_file(directory, "charter.plain", before, detail);
    }
    free(memory);
    return err;
}

size_t ring_files_read_plain(const char *directory, uint8_t memory[CHARTER_SIZE_MAX]) {
    char path[PATH_SIZE_MAX];
    struct bytes plain;
    enum err err = ring_files_read_file(ring_files_path_of(directory, "charter.plain", path), memory,
                                        CHARTER_SIZE_MAX, &plain, NULL);
    return err == ERR_OK ? plain.size : 0;
}

enum err ring_files_write_charter(const char *directory, struct bytes charter, struct err_detail *detail) {
    enum err err = ring_files_keep_plain(directory, charter, detail);
    if (err != ERR_OK) {
        return err;
    }
    return ring_files_write_file(directory, "charter", charter, detail);
}

enum err ring_files_write_later(const char *directory, struct bytes charter, struct err_detail *detail) {
    return ring_files_write_file(directory, "charter.later", charter, detail);
}

/* Charters are large: not on the stack. ERR_OK: it takes the place of the one that counted. */
static enum err ring_files_adopt(const char *directory, struct bytes later) {
    struct charter *charters = malloc(2 * sizeof *charters + CHARTER_SIZE_MAX);
    struct bytes encoded;
    if (charters == NULL) {
        return ERR_MEMORY;
    }
    enum err err =
        ring_files_read_charter(directory, &charters[0], (uint8_t *)(charters + 2), &encoded, NULL);
    err = err == ERR_OK ? charter_read(later, identity_verify, &charters[1], NULL) : err;
    err = err == ERR_OK ? charter_succeeds(&charters[0], &charters[1], NULL) : err;
    err = err == ERR_OK ? ring_files_write_charter(directory, later, NULL) : err;
    free(charters);
    return err;
}

size_t ring_files_read_later(const char *directory, uint8_t memory[CHARTER_SIZE_MAX]) {
    char path[PATH_SIZE_MAX];
    struct bytes later;
    enum err err = ring_files_read_file(ring_files_path_of(directory, "charter.later", path), memory,
                                        CHARTER_SIZE_MAX, &later, NULL);
    bool is_adopted = err == ERR_OK && ring_files_adopt(directory, later) == ERR_OK;
    if (is_adopted) {
        (void)!whole_file_remove(path, NULL); /* if not, it is older than the charter at the next start */
    }
    return err == ERR_OK && !is_adopted ? later.size : 0;
}

enum err ring_files_read_membership(const char *directory, struct membership *ret_membership,
                                    struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    struct bytes bytes;
    struct err_detail reason = {0};
    *ret_membership = (struct membership){0};
    enum err err = ring_files_read_file(ring_files_path_of(directory, "membership", path), memory,
                                        sizeof memory, &bytes, detail);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    err = membership_read(bytes, ret_membership, &reason);
    if (err != ERR_OK) {
        return err_set(detail, ERR_CORRUPT, "%.120s is damaged: %.100s", path, err_detail_text(&reason, err));
    }
    return ERR_OK;
}

enum err ring_files_write_membership(const char *directory, const struct membership *membership,
                                     struct err_detail *detail) {
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    return ring_files_write_file(directory, "membership", membership_write(membership, memory), detail);
}

/* ---- peers ---- */

struct bytes peers_file_write(const char *mark, const struct peer *peers, size_t count, void *memory) {
    struct wire_writer writer;
    ASSERT(count <= PEERS_FILE_COUNT_MAX);
    wire_writer_init(&writer, memory, PEERS_FILE_SIZE_MAX);
    wire_write_bytes(&writer, bytes_of(mark, PEERS_FILE_MARK_SIZE));
    wire_write_u8(&writer, PEERS_LAYOUT);
    wire_write_varint(&writer, count);
    for (size_t i = 0; i < count; i++) {
        peer_write(&writer, PEER_PLAIN, &peers[i]);
    }
    return wire_writer_bytes(&writer);
}

size_t peers_file_read(const char *mark, struct bytes bytes, struct peer *out, size_t peers_max) {
    struct wire_reader reader;
    wire_reader_init(&reader, bytes);
    struct bytes found = wire_read_bytes(&reader, PEERS_FILE_MARK_SIZE);
    bool is_known =
        bytes_equal(found, bytes_of(mark, PEERS_FILE_MARK_SIZE)) && wire_read_u8(&reader) == PEERS_LAYOUT;
    size_t count = is_known ? (size_t)wire_read_varint(&reader, peers_max) : 0;
    for (size_t i = 0; i < count; i++) {
        peer_read(&reader, PEER_PLAIN, &out[i]);
    }
    return wire_reader_finish(&reader, NULL) == ERR_OK ? count : 0;
}

size_t ring_files_read_peers(const char *directory, struct peer out[RING_FILES_PEERS_MAX]) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[PEERS_FILE_SIZE_MAX];
    struct bytes bytes;
    enum err err = ring_files_read_file(ring_files_path_of(directory, "peers", path), memory, sizeof memory,
                                        &bytes, NULL);
    return err == ERR_OK ? peers_file_read(peers_mark, bytes, out, RING_FILES_PEERS_MAX) : 0;
}

enum err ring_files_write_peers(const char *directory, const struct peer *peers, size_t count,
                                struct err_detail *detail) {
    uint8_t memory[PEERS_FILE_SIZE_MAX];
    return ring_files_write_file(directory, "peers", peers_file_write(peers_mark, peers, count, memory),
                                 detail);
}

/* ---- leaving ---- */

enum err ring_files_leave(const char *directory, struct err_detail *detail) {
    static const char *const names[] = {"peers", "membership", "charter.later", "charter.plain",
                                        "charter"}; /* the charter last: it counts */
    char path[PATH_SIZE_MAX];
    char left[PATH_SIZE_MAX + 8];
    if (access(ring_files_path_of(directory, "charter", path), F_OK) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "%.200s is in no ring", directory);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(left, sizeof left, "%s.left", ring_files_path_of(directory, names[i], path));
        enum err err = whole_file_rename(path, left, detail);
        if (err != ERR_OK && err != ERR_NOT_FOUND) {
            return err;
        }
    }
    return ERR_OK;
}
