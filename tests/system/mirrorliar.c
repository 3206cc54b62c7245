/*
 * mirrorliar - mnemon as it should not be: it hands on collections with lies, for the tests.
 *
 * The linker puts these in the place of the true functions (--wrap). $MIRROR_LIE says what it does to others:
 *
 *      manifest   answers to questions for one thing, the root of a manifest, have a byte changed
 *      contents   answers to questions for several, which are files, have
 *      forged     versions are changed, so that their signatures are wrong
 *      notice     those that it tells by itself are
 *      replayed   a version that was told once is followed by the first one that it knew
 *      foreign    whose collection is asked for does not matter: it tells its own of that name
 *
 * When it publishes, names and targets of links may say what no file system would let them: %2f is a slash,
 * %2e a dot, %00 a zero byte; and it finds no fault with any path.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "node/mirror/mirror_driver_code.h"
#include "node/rpc/peer_rpc.h"
#include "protocol/mirror/manifest_writer.h"

peer_rpc_handler __real_mirror_driver_answer;
peer_rpc_handler __wrap_mirror_driver_answer;
void __real_mirror_driver_put_version_question(struct buf *out, uint16_t port,
                                               const uint8_t publisher[PEER_KEY_SIZE], struct bytes name,
                                               struct bytes statement);
void __wrap_mirror_driver_put_version_question(struct buf *out, uint16_t port,
                                               const uint8_t publisher[PEER_KEY_SIZE], struct bytes name,
                                               struct bytes statement);
const char *__wrap_path_rule_fault(struct bytes path);
const char *__wrap_path_rule_link_fault(struct bytes path, struct bytes target);
const char *__wrap_path_rule_order_fault(struct bytes previous, bool previous_is_directory,
                                         struct bytes path);
enum err __real_manifest_writer_add(struct manifest_writer *writer, const struct manifest_entry *entry);
enum err __wrap_manifest_writer_add(struct manifest_writer *writer, const struct manifest_entry *entry);

/* ---- when it serves ---- */

static bool lies(const char *lie) {
    const char *wanted = getenv("MIRROR_LIE");
    return wanted != NULL && strcmp(wanted, lie) == 0;
}

/* What the first statement was, once another has been told. */
static void replay(struct buf *answer) {
    static uint8_t first[PEER_RPC_QUESTION_SIZE_MAX];
    static uint8_t last[PEER_RPC_QUESTION_SIZE_MAX];
    static size_t first_size;
    static size_t last_size;
    bool is_told = bytes_equal(buf_bytes(answer), bytes_of(last, last_size));
    memcpy(last, answer->data, answer->size);
    last_size = answer->size;
    if (first_size == 0 && answer->size > PEER_KEY_SIZE + 1) {
        memcpy(first, answer->data, answer->size);
        first_size = answer->size;
    } else if (is_told && first_size > 0) {
        buf_clear(answer);
        buf_put(answer, bytes_of(first, first_size));
    }
}

static void lie_about_version(struct buf *answer) {
    if (lies("forged")) {
        answer->data[answer->size - 1] ^= 1;
    } else if (lies("replayed")) {
        replay(answer);
    }
}

static void lie_about_chunks(const struct mirror_driver_question *question, struct buf *answer) {
    if (lies(question->digests_count == 1 ? "manifest" : "contents")) {
        answer->data[answer->size - 1] ^= 1;
    }
}

/* The same question, but about whoever's collection of that name. */
static struct bytes ask_anybodys(const struct mirror_driver_question *question, struct buf *out) {
    static const uint8_t anybody[PEER_KEY_SIZE];
    __real_mirror_driver_put_version_question(out, question->port, anybody, question->name,
                                              question->statement);
    return buf_bytes(out);
}

enum err __wrap_mirror_driver_answer(void *context, const struct peer *from, struct bytes input,
                                     struct buf *answer, struct err_detail *detail) {
    struct mirror_driver_question question;
    struct buf other;
    bool is_sound = mirror_driver_read_question(input, &question, NULL) == ERR_OK;
    bool is_version = is_sound && question.kind == MIRROR_DRIVER_VERSION;
    bool is_chunks = is_sound && question.kind == MIRROR_DRIVER_CHUNKS;
    buf_init(&other, PEER_RPC_QUESTION_SIZE_MAX);
    struct bytes asked = is_version && lies("foreign") ? ask_anybodys(&question, &other) : input;
    enum err err = __real_mirror_driver_answer(context, from, asked, answer, detail);
    buf_done(&other);
    if (err == ERR_OK && is_version && answer->size > PEER_KEY_SIZE + 1) {
        lie_about_version(answer);
    } else if (err == ERR_OK && is_chunks && answer->size > 8) {
        lie_about_chunks(&question, answer);
    }
    return err;
}

void __wrap_mirror_driver_put_version_question(struct buf *out, uint16_t port,
                                               const uint8_t publisher[PEER_KEY_SIZE], struct bytes name,
                                               struct bytes statement) {
    __real_mirror_driver_put_version_question(out, port, publisher, name, statement);
    if (statement.size > 0 && out->size > 0 && lies("notice")) {
        out->data[out->size - 1] ^= 1; /* of the signature, which comes last */
    }
}

/* ---- when it publishes ---- */

const char *__wrap_path_rule_fault(struct bytes path) {
    (void)path;
    return NULL;
}

const char *__wrap_path_rule_link_fault(struct bytes path, struct bytes target) {
    (void)path;
    (void)target;
    return NULL;
}

const char *__wrap_path_rule_order_fault(struct bytes previous, bool previous_is_directory,
                                         struct bytes path) {
    (void)previous;
    (void)previous_is_directory;
    (void)path;
    return NULL;
}

static struct bytes decode(struct bytes text, uint8_t out[PATH_RULE_SIZE_MAX]) {
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '%' && i + 2 < text.size) {
            (void)hex_decode(bytes_slice(text, i + 1, i + 3), &out[size++], 1);
            i += 2;
        } else {
            out[size++] = text.data[i];
        }
    }
    return bytes_of(out, size);
}

enum err __wrap_manifest_writer_add(struct manifest_writer *writer, const struct manifest_entry *entry) {
    uint8_t path[PATH_RULE_SIZE_MAX];
    uint8_t target[PATH_RULE_SIZE_MAX];
    struct manifest_entry lie = *entry;
    lie.path = decode(entry->path, path);
    lie.target = decode(entry->target, target);
    return __real_manifest_writer_add(writer, &lie);
}
