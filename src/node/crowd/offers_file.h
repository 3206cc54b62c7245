/*
 * offers_file - the file of one capture that this node hands on (docs/formats/offers.md).
 *
 *      magic[8]  "MNEMONO1"
 *      size:u32  of the head
 *      check[32] SHA-256 of the head
 *      head      key[40] title:string description:string payload_size:varint
 *      payload   to the end
 *
 * The description is that of node/captures/captures_code.h. The name of the file is the key in hexadecimal
 * digits. A file is written beside its place and renamed; it is not synced, since it can be lost: what is
 * damaged is found by the digests. Readers take any file.
 */
#ifndef MNEMON_NODE_CROWD_OFFERS_FILE_H
#define MNEMON_NODE_CROWD_OFFERS_FILE_H

#include "base/buf.h"
#include "base/ringkey.h"
#include "node/captures/captures_code.h"
#include "protocol/crowd/wish.h"
#include "store/document/document.h"

enum {
    OFFERS_FILE_PREFIX_SIZE = 8 + 4 + SHA256_SIZE,
    OFFERS_FILE_HEAD_SIZE_MAX = CAPTURES_CODE_DESCRIPTION_SIZE_MAX + (4 << 10),
    OFFERS_FILE_NAME_SIZE = 2 * RINGKEY_SIZE + 1,
};

struct offers_file_head {
    struct ringkey key;
    struct bytes title;
    struct bytes description;
    uint64_t payload_size;
};

/* What a description says, as far as it matters here. Borrows from it. */
struct offers_file_about {
    struct bytes url;
    int64_t time_us;
    struct document_sum sum;
};

/* Prefix and head. ERR_LIMIT if a part is too long. */
enum err offers_file_put_head(struct buf *out, struct sha256 *sha256,
                              const struct offers_file_head *head) MUST_CHECK;

/* From the start of a file, as much as there is up to the end of the head. *ret_size: with the prefix. */
enum err offers_file_read_head(struct bytes in, struct sha256 *sha256, struct offers_file_head *ret_head,
                               size_t *ret_size, struct err_detail *detail) MUST_CHECK;

/* False if the description is none, or of another capture than the key. */
bool offers_file_read_about(const struct offers_file_head *head, struct offers_file_about *ret_about);

/* ---- files ---- */

/* directory: an open one. */
enum err offers_file_write(int directory, const struct ringkey *key, struct bytes head,
                           struct bytes payload) MUST_CHECK;
void offers_file_remove(int directory, const struct ringkey *key);

struct offers_file {
    int fd;
    struct buf *text; /* the head as it lies there; head borrows from it */
    struct offers_file_head head;
    size_t payload_start;
    int64_t changed_at_ns; /* by the file system's clock */
};

/*
 * Open and read its head. ERR_CORRUPT: it is no such file, or not of this key; ERR_NOT_FOUND, ERR_IO …
 * payload_size_max: what is larger is ERR_CORRUPT, too.
 */
enum err offers_file_open(struct offers_file *file, int directory, const struct ringkey *key,
                          struct sha256 *sha256, struct buf *text, uint64_t payload_size_max) MUST_CHECK;
void offers_file_close(struct offers_file *file);

/* A part of the payload that is there. */
enum err offers_file_read(const struct offers_file *file, uint64_t offset, void *out, size_t size) MUST_CHECK;

/* Is the payload that of the digest? ERR_CORRUPT. */
enum err offers_file_check(const struct offers_file *file, struct sha256 *sha256,
                           const uint8_t digest[SHA256_SIZE]) MUST_CHECK;

#endif
