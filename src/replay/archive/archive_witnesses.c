#include "replay/archive/archive_state.h"
#include "store/instance/merge.h"
#include "store/instance/witnesses.h"
#include "store/volume/volume_record.h"

/* It, or what another node fetched of the same URL in the same visit. */
static bool witnesses_are_of_visit(const struct capture *capture, const struct capture *other) {
    return (other->flags & CAPTURE_WITNESS) != 0 && other->visit_s == capture->visit_s &&
           bytes_equal(other->url, capture->url);
}

static bool witnesses_agree(const struct capture *capture, const struct capture *other) {
    return witnesses_are_one(capture, other) ||
           (other->signer == capture->signer && memcmp(other->digest, capture->digest, KEY_DIGEST_SIZE) == 0);
}

static enum err witnesses_open(struct archive_reader *reader, const struct capture *capture,
                               struct merge **ret_merge) {
    static const int64_t SECOND_US = 1000000;
    struct buf from;
    struct buf to;
    buf_init(&from, ARCHIVE_KEY_SIZE_MAX);
    buf_init(&to, ARCHIVE_KEY_SIZE_MAX);
    index_put_capture_prefix(&from, capture->surt, capture->visit_s * SECOND_US);
    index_put_capture_prefix(&to, capture->surt, INT64_MAX);
    enum err err = from.err != ERR_OK ? from.err : to.err;
    instance_session_hide_witnesses(reader->session, false);
    err = err == ERR_OK
              ? merge_open(reader->session, buf_bytes(&from), buf_bytes(&to), false, ret_merge, NULL)
              : err;
    instance_session_hide_witnesses(reader->session, true);
    buf_done(&from);
    buf_done(&to);
    return err;
}

/* The key of the node that signed it, before the space. */
static void witnesses_read_signer(struct instance_session *session, struct record *work,
                                  const struct capture *capture, struct archive_witness *out) {
    if (record_read(work, session, capture->volume, &capture->location, NULL) != ERR_OK) {
        return;
    }
    struct bytes field = fields_get(&work->header.fields, BYTES(VOLUME_SIGNATURE_FIELD));
    struct bytes key = bytes_slice(field, 0, bytes_find_byte(field, ' '));
    if (key.size == sizeof out->key - 1) {
        memcpy(out->key, key.data, key.size);
        out->key[key.size] = '\0';
    }
}

/* One node counts once. */
static bool witnesses_have(const struct archive_witnesses *witnesses, const uint16_t *signers,
                           uint16_t signer) {
    for (size_t i = 0; i < witnesses->count; i++) {
        if (signers[i] == signer) {
            return true;
        }
    }
    return false;
}

void archive_witnesses_find(struct archive_reader *reader, struct record *work, const struct capture *capture,
                            struct archive_witnesses *ret_witnesses) {
    enum { LOOKED_MAX = 64 }; /* captures of the SURT since the visit began */
    struct merge *merge;
    struct capture other;
    uint16_t signers[ARCHIVE_WITNESSES_MAX];
    *ret_witnesses = (struct archive_witnesses){.count = 0};
    if (!(capture->flags & CAPTURE_WITNESS) || witnesses_open(reader, capture, &merge) != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < LOOKED_MAX && ret_witnesses->count < ARCHIVE_WITNESSES_MAX &&
                       merge_next(merge, &other, NULL) == ERR_OK;
         i++) {
        if (!witnesses_are_of_visit(capture, &other) || archive_see(reader, &other) != ERR_OK ||
            witnesses_have(ret_witnesses, signers, other.signer)) {
            continue;
        }
        signers[ret_witnesses->count] = other.signer;
        struct archive_witness *witness = &ret_witnesses->list[ret_witnesses->count++];
        *witness = (struct archive_witness){
            .time_us = other.time_us,
            .id = capture_id(&other),
            .status = other.status,
            .agrees = witnesses_agree(capture, &other),
        };
        memcpy(witness->digest, other.digest, sizeof witness->digest);
        ret_witnesses->agree_count += witness->agrees;
        if (work != NULL) {
            witnesses_read_signer(reader->session, work, &other, witness);
        }
    }
    merge_close(merge);
}
