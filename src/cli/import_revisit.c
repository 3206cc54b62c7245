#include <string.h>

#include "base/utc.h"
#include "cli/import.h"
#include "store/instance/merge.h"

enum { CANDIDATES_MAX = 16, SECOND_US = 1000000 };

/* What a revisit says of its original. */
struct hint {
    bool has_digest; /* that we can compute */
    struct warc_digest digest;
    bool is_not_modified; /* the server said so; the digest, if any, may be of nothing */
};

/* A digest as a key of the map: every byte is set, unlike those between the fields of a struct. */
struct digest_key {
    uint8_t bytes[IMPORT_DIGEST_KEY_SIZE];
};

static struct digest_key make_key(const struct warc_digest *digest) {
    struct digest_key key = {.bytes = {(uint8_t)digest->algorithm}};
    memcpy(key.bytes + 1, digest->value, digest->size);
    return key;
}

void import_remember(struct import *import, const struct warc_digest *stated,
                     const uint8_t digest[KEY_DIGEST_SIZE]) {
    if (stated->algorithm == WARC_DIGEST_SHA256) {
        return; /* is the digest */
    }
    struct digest_key key = make_key(stated);
    struct bytes name = bytes_of(key.bytes, sizeof key.bytes);
    pthread_mutex_lock(&import->lock);
    struct import_stated *known = map_get(&import->digests, name);
    if (known == NULL && map_reserve(&import->digests, import->digests.count + 1) == ERR_OK) {
        known = map_put(&import->digests, name);
        known->count = 0;
    }
    if (known != NULL && known->count < IMPORT_STATED_MAX &&
        (known->count == 0 || memcmp(known->digests[0], digest, KEY_DIGEST_SIZE) != 0)) {
        memcpy(known->digests[known->count++], digest, KEY_DIGEST_SIZE);
    }
    pthread_mutex_unlock(&import->lock);
}

static struct import_stated recall(struct import *import, const struct warc_digest *stated) {
    struct digest_key key = make_key(stated);
    struct import_stated result = {0};
    pthread_mutex_lock(&import->lock);
    const struct import_stated *known = map_get(&import->digests, bytes_of(key.bytes, sizeof key.bytes));
    if (known != NULL) {
        result = *known;
    }
    pthread_mutex_unlock(&import->lock);
    return result;
}

static bool has_digest(struct import_job *job, struct bytes bytes, const struct warc_digest *wanted) {
    struct warc_digest digest = {0};
    warc_hash_start(&job->hash, wanted->algorithm);
    warc_hash_update(&job->hash, bytes);
    warc_hash_finish(&job->hash, &digest);
    return warc_digest_equal(&digest, wanted);
}

/* Several writers hash the body with its chunks, so both are tried. */
static bool is_payload(struct import_job *job, const struct hint *hint, const struct key *key,
                       const struct block *block) {
    struct bytes payload;
    if (instance_get(job->session, key, &payload, NULL) != ERR_OK) {
        return false;
    }
    if (has_digest(job, payload, &hint->digest)) {
        return true;
    }
    return record_read(&job->record, job->record_session, key->volume, &block->location, NULL) == ERR_OK &&
           has_digest(job, job->record.body, &hint->digest);
}

static bool is_original(struct import_job *job, const struct hint *hint, const struct capture *capture,
                        struct key *ret_key) {
    struct block block;
    return instance_locate(job->session, capture, ret_key, &block, NULL) == ERR_OK &&
           (!hint->has_digest || hint->is_not_modified || is_payload(job, hint, ret_key, &block));
}

/*
 * By the digest alone: it is the digest, or a file of this run has stated it. What was stated may be wrong:
 * *ret_is_right says whether the payload really has it.
 */
static bool find_by_digest(struct import_job *job, const struct hint *hint, struct key *ret_key,
                           bool *ret_is_right) {
    struct import_stated stated = {0};
    struct block block;
    bool is_found = false;
    *ret_is_right = false;
    if (!hint->has_digest) {
        return false;
    }
    bool is_own = hint->digest.algorithm == WARC_DIGEST_SHA256;
    if (is_own) {
        memcpy(stated.digests[stated.count++], hint->digest.value, KEY_DIGEST_SIZE);
    } else {
        stated = recall(job->import, &hint->digest);
    }
    for (size_t i = 0; i < stated.count && !*ret_is_right; i++) {
        struct key key;
        import_await(job->import, stated.digests[i]); /* where it is still on its way to the disk */
        if (instance_find_digest(job->session, stated.digests[i], 0, &key, &block, NULL) == ERR_OK) {
            *ret_is_right = is_own || is_payload(job, hint, &key, &block);
            *ret_key = is_found && !*ret_is_right ? *ret_key : key;
            is_found = true;
        }
    }
    return is_found;
}

/* Among the captures of a URL from one time to another, newest first. */
static enum err find_by_url(struct import_job *job, struct bytes url, int64_t from_us, int64_t to_us,
                            const struct hint *hint, struct key *ret_key) {
    struct merge *merge;
    enum err err = import_make_surt(job, url, NULL);
    if (err != ERR_OK) {
        return err == ERR_MEMORY ? err : ERR_NOT_FOUND;
    }
    buf_clear(&job->from);
    buf_clear(&job->to);
    index_put_capture_prefix(&job->from, buf_bytes(&job->surt), from_us);
    index_put_capture_prefix(&job->to, buf_bytes(&job->surt), to_us);
    err = job->from.err != ERR_OK ? job->from.err : job->to.err;
    if (err == ERR_OK) {
        err = merge_open(job->session, buf_bytes(&job->from), buf_bytes(&job->to), true, &merge, NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture;
    for (size_t i = 0; i < CANDIDATES_MAX && (err = merge_next(merge, &capture, NULL)) == ERR_OK; i++) {
        struct key key;
        if (is_original(job, hint, &capture, &key)) {
            merge_close(merge);
            *ret_key = key;
            return ERR_OK;
        }
    }
    merge_close(merge);
    return err == ERR_OK ? ERR_NOT_FOUND : err;
}

static struct hint read_hint(const struct warc_record *header) {
    struct hint hint = {0};
    struct bytes digest = fields_get(&header->fields, BYTES("WARC-Payload-Digest"));
    hint.has_digest = digest.size > 0 && warc_digest_parse(&hint.digest, digest, NULL) == ERR_OK;
    hint.is_not_modified = record_is_not_modified(header);
    return hint;
}

/* The URL and time that the revisit names; then, as older writers mean it, what its own URL was before. */
static enum err find_by_reference(struct import_job *job, const struct hint *hint, struct key *ret_key) {
    const struct warc_record *header = &job->capture.header;
    struct bytes url = warc_bare_uri(fields_get(&header->fields, BYTES("WARC-Refers-To-Target-URI")));
    struct bytes date = fields_get(&header->fields, BYTES("WARC-Refers-To-Date"));
    int64_t date_us;
    enum err err = ERR_NOT_FOUND;
    if (url.size > 0 && utc_parse_sloppy(date, &date_us)) {
        err = find_by_url(job, url, date_us, date_us + SECOND_US, hint, ret_key);
    }
    if (err == ERR_NOT_FOUND && (hint->has_digest || hint->is_not_modified)) {
        err = find_by_url(job, header->target_uri, INT64_MIN, header->date_us, hint, ret_key);
    }
    return err;
}

bool import_can_read_again(const struct import_job *job) {
    return strcmp(job->file->path, "-") != 0;
}

enum err import_resolve(struct import_job *job, struct key *ret_key, struct err_detail *detail) {
    struct hint hint = read_hint(&job->capture.header);
    struct key stated = {0};
    bool is_right = false;
    bool is_stated = !hint.is_not_modified && find_by_digest(job, &hint, &stated, &is_right);
    enum err err = is_right ? ERR_OK : find_by_reference(job, &hint, ret_key);
    /* The writer's word, if nothing better comes with what is still to be read. */
    bool is_last_look = job->is_second_pass || !import_can_read_again(job);
    if (is_right || (err == ERR_NOT_FOUND && is_stated && is_last_look)) {
        *ret_key = stated;
        return ERR_OK;
    }
    if (err == ERR_OK && hint.has_digest && !hint.is_not_modified) {
        import_remember(job->import, &hint.digest, ret_key->digest);
    }
    return err == ERR_OK || err == ERR_NOT_FOUND ? err : err_set(detail, err, "%s", err_text(err));
}
