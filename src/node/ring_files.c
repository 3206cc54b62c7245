#include "node/ring_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/identity.h"

enum {
    PATH_SIZE_MAX = 4096 + 64,
    MODE = 0600,
    DIRECTORY_MODE = 0777,
    PEERS_LAYOUT = 1,
    PEER_SIZE = 16 + 2 + PEER_KEY_SIZE,
    PEERS_SIZE_MAX = 16 + RING_FILES_PEERS_MAX * PEER_SIZE,
};

static const char peers_magic[4] = {'m', 'n', 'p', 'e'};

static const char *path_of(const char *directory, const char *name, char out[PATH_SIZE_MAX]) {
    snprintf(out, PATH_SIZE_MAX, "%s/ring/%s", directory, name);
    return out;
}

static enum err fail(const char *path, struct err_detail *detail) {
    int number = errno;
    return err_set(detail, err_from_errno(number), "%.180s: %s", path, strerror(number));
}

/* ---- files ---- */

/* ERR_LIMIT where it holds more than size_max bytes. */
static enum err read_file(const char *path, uint8_t *memory, size_t size_max, struct bytes *ret_bytes,
                          struct err_detail *detail) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail(path, detail);
    }
    size_t size = 0;
    ssize_t got = 1;
    while (size < size_max && got > 0) {
        got = read(fd, memory + size, size_max - size);
        size += got > 0 ? (size_t)got : 0;
    }
    uint8_t more;
    enum err err = got < 0 ? fail(path, detail) : ERR_OK;
    if (err == ERR_OK && read(fd, &more, 1) > 0) {
        err = err_set(detail, ERR_LIMIT, "%.180s is too long", path);
    }
    close(fd);
    *ret_bytes = bytes_of(memory, size);
    return err;
}

static void sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static enum err make_directories(const char *directory, struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    snprintf(path, sizeof path, "%s/ring", directory);
    bool is_made = (mkdir(directory, DIRECTORY_MODE) == 0 || errno == EEXIST) &&
                   (mkdir(path, DIRECTORY_MODE) == 0 || errno == EEXIST);
    return is_made ? ERR_OK : fail(path, detail);
}

static enum err write_file(const char *directory, const char *name, struct bytes bytes,
                           struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    char part[PATH_SIZE_MAX + 8];
    enum err err = make_directories(directory, detail);
    if (err != ERR_OK) {
        return err;
    }
    snprintf(part, sizeof part, "%s.part", path_of(directory, name, path));
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    if (fd < 0) {
        return fail(part, detail);
    }
    bool is_written =
        write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size && fsync(fd) == 0 && rename(part, path) == 0;
    err = is_written ? ERR_OK : fail(part, detail);
    close(fd);
    snprintf(part, sizeof part, "%s/ring", directory);
    sync_directory(part);
    return err;
}

/* ---- the charter and the membership ---- */

enum err ring_files_read_charter(const char *directory, struct charter *ret_charter,
                                 uint8_t memory[CHARTER_SIZE_MAX], struct bytes *ret_encoded,
                                 struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct bytes encoded;
    struct err_detail reason = {0};
    enum err err = read_file(path_of(directory, "charter", path), memory, CHARTER_SIZE_MAX, &encoded, detail);
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

enum err ring_files_write_charter(const char *directory, struct bytes charter, struct err_detail *detail) {
    return write_file(directory, "charter", charter, detail);
}

enum err ring_files_read_membership(const char *directory, struct membership *ret_membership,
                                    struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[MEMBERSHIP_SIZE_MAX];
    struct bytes bytes;
    struct err_detail reason = {0};
    *ret_membership = (struct membership){0};
    enum err err = read_file(path_of(directory, "membership", path), memory, sizeof memory, &bytes, detail);
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
    return write_file(directory, "membership", membership_write(membership, memory), detail);
}

/* ---- peers ---- */

static void read_peer(struct wire_reader *reader, struct peer *peer) {
    wire_read_array(reader, peer->address.ip, sizeof peer->address.ip);
    peer->address.port = wire_read_u16(reader);
    wire_read_array(reader, peer->key, PEER_KEY_SIZE);
}

size_t ring_files_read_peers(const char *directory, struct peer out[RING_FILES_PEERS_MAX]) {
    char path[PATH_SIZE_MAX];
    uint8_t memory[PEERS_SIZE_MAX];
    struct bytes bytes;
    struct wire_reader reader;
    if (read_file(path_of(directory, "peers", path), memory, sizeof memory, &bytes, NULL) != ERR_OK) {
        return 0;
    }
    wire_reader_init(&reader, bytes);
    struct bytes mark = wire_read_bytes(&reader, sizeof peers_magic);
    bool is_known =
        bytes_equal(mark, bytes_of(peers_magic, sizeof peers_magic)) && wire_read_u8(&reader) == PEERS_LAYOUT;
    size_t count = is_known ? (size_t)wire_read_varint(&reader, RING_FILES_PEERS_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        read_peer(&reader, &out[i]);
    }
    return wire_reader_finish(&reader, NULL) == ERR_OK ? count : 0;
}

enum err ring_files_write_peers(const char *directory, const struct peer *peers, size_t count,
                                struct err_detail *detail) {
    uint8_t memory[PEERS_SIZE_MAX];
    struct wire_writer writer;
    struct bytes bytes;
    ASSERT(count <= RING_FILES_PEERS_MAX);
    wire_writer_init(&writer, memory, sizeof memory);
    wire_write_bytes(&writer, bytes_of(peers_magic, sizeof peers_magic));
    wire_write_u8(&writer, PEERS_LAYOUT);
    wire_write_varint(&writer, count);
    for (size_t i = 0; i < count; i++) {
        wire_write_bytes(&writer, bytes_of(peers[i].address.ip, sizeof peers[i].address.ip));
        wire_write_u16(&writer, peers[i].address.port);
        wire_write_bytes(&writer, bytes_of(peers[i].key, PEER_KEY_SIZE));
    }
    enum err err = wire_writer_finish(&writer, &bytes);
    ASSERT(err == ERR_OK);
    return write_file(directory, "peers", bytes, detail);
}

/* ---- leaving ---- */

enum err ring_files_leave(const char *directory, struct err_detail *detail) {
    static const char *const names[] = {"peers", "membership", "charter"}; /* the charter last: it counts */
    char path[PATH_SIZE_MAX];
    char left[PATH_SIZE_MAX + 8];
    if (access(path_of(directory, "charter", path), F_OK) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "%.200s is in no ring", directory);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(left, sizeof left, "%s.left", path_of(directory, names[i], path));
        if (rename(path, left) != 0 && errno != ENOENT) {
            return fail(path, detail);
        }
    }
    return ERR_OK;
}
