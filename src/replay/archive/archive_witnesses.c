#include "replay/archive/archive_state.h"
#include "store/instance/merge.h"
#include "store/instance/witnesses.h"
#include "store/volume/volume_record.h"

/* The one, or another that was fetched with it. */
static bool witnesses_have(const struct capture *capture, const struct capture *other) {
    return witnesses_are_one(capture, other) ||
           (other->time_us == capture->time_us && other->signer == capture->signer &&
            memcmp(other->digest, capture->digest, KEY_DIGEST_SIZE) == 0);
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
static bool witnesses_read_signer(struct instance_session *session, struct record *work,
                                  const struct capture *capture, struct archive_witness *out) {
    if (record_read(work, session, capture->volume, &capture->location, NULL) != ERR_OK) {
        return false;
    }
    struct bytes field = fields_get(&work->header.fields, BYTES(VOLUME_SIGNATURE_FIELD));
    struct bytes key = bytes_slice(field, 0, bytes_find_byte(field, ' '));
    if (key.size != sizeof out->key - 1) {
        return false;
    }
    memcpy(out->key, key.data, key.size);
    out->key[key.size] = '\0';
    out->time_us = capture->time_us;
    return true;
}

size_t archive_witnesses(struct archive_reader *reader, struct record *work, const struct capture *capture,
                         struct archive_witness out[ARCHIVE_WITNESSES_MAX]) {
    enum { LOOKED_MAX = 64 }; /* captures of the SURT since the visit began */
    struct merge *merge;
    struct capture other;
    size_t count = 0;
    if (!(capture->flags & CAPTURE_WITNESS) || witnesses_open(reader, capture, &merge) != ERR_OK) {
        return 0;
    }
    for (size_t i = 0;
         i < LOOKED_MAX && count < ARCHIVE_WITNESSES_MAX && merge_next(merge, &other, NULL) == ERR_OK; i++) {
        if (witnesses_have(capture, &other)) {
            count += witnesses_read_signer(reader->session, work, &other, &out[count]) ? 1 : 0;
        }
    }
    merge_close(merge);
    return count;
}
