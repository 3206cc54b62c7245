#include <stdlib.h>

#include "replay/archive/archive_state.h"
#include "store/document/attested.h"
#include "store/volume/volume_record.h"

/* Records that one reader opens because their entries are from before 0.3: `mnemon store reindex` ends that.
 */
enum { UNMARKED_MAX = 256 };

const char *provenance_name(enum provenance provenance) {
    static const char *const names[] = {
        [PROVENANCE_UNKNOWN] = "unknown",
        [PROVENANCE_FETCHED] = "fetched",
        [PROVENANCE_IMPORTED] = "imported",
    };
    return names[provenance];
}

bool archive_knows_members(const struct archive *archive) {
    return archive->judge != NULL &&
           archive->judge(archive->judge_context, 0, 0) != ARCHIVE_MEMBERSHIP_UNKNOWN;
}

static enum archive_membership provenance_judge(const struct archive *archive, uint64_t voucher,
                                                int64_t time_us) {
    return archive->judge == NULL ? ARCHIVE_MEMBERSHIP_UNKNOWN
                                  : archive->judge(archive->judge_context, voucher, time_us);
}

void archive_origin_read(const struct archive *archive, const struct fields *fields, int64_t time_us,
                         struct archive_origin *ret_origin) {
    struct attested signer;
    struct attested importer;
    struct archive_origin origin = {.provenance = PROVENANCE_UNKNOWN};
    if (attested_read(fields_get(fields, BYTES(VOLUME_SIGNATURE_FIELD)), &signer)) {
        enum archive_membership judged =
            signer.later > 0 ? ARCHIVE_MEMBERSHIP_UNKNOWN
                             : provenance_judge(archive, attested_key_start(&signer), time_us);
        origin.fetched_by = signer.key;
        origin.is_later = signer.later > 0;
        origin.is_stranger = judged == ARCHIVE_STRANGER;
        origin.is_unjudged = judged == ARCHIVE_MEMBERSHIP_UNKNOWN;
        origin.provenance = judged == ARCHIVE_MEMBER ? PROVENANCE_FETCHED : PROVENANCE_UNKNOWN;
    }
    if (attested_read(fields_get(fields, BYTES(VOLUME_IMPORTED_FIELD)), &importer)) {
        bool counts = importer.later == 0 && origin.provenance != PROVENANCE_FETCHED;
        origin.imported_by = importer.key;
        origin.is_later = origin.is_later || importer.later > 0;
        origin.provenance = counts ? PROVENANCE_IMPORTED : origin.provenance;
    }
    *ret_origin = origin;
}

/* Of an entry that says nothing. */
static enum provenance provenance_of_record(struct archive_reader *reader, const struct capture *capture) {
    bool may_read = capture->volume != INSTANCE_GUEST_NUMBER && reader->unmarked_count < UNMARKED_MAX;
    if (may_read && reader->unmarked == NULL) {
        reader->unmarked = calloc(1, sizeof *reader->unmarked);
        if (reader->unmarked != NULL && record_init(reader->unmarked) != ERR_OK) {
            free(reader->unmarked);
            reader->unmarked = NULL;
        }
    }
    if (!may_read || reader->unmarked == NULL) {
        return PROVENANCE_UNKNOWN;
    }
    reader->unmarked_count++;
    struct archive_origin origin;
    struct record *record = reader->unmarked;
    if (record_read(record, reader->session, capture->volume, &capture->location, NULL) != ERR_OK) {
        return PROVENANCE_UNKNOWN;
    }
    archive_origin_read(reader->archive, &record->header.fields, capture->time_us, &origin);
    return origin.provenance;
}

enum provenance archive_provenance(struct archive_reader *reader, const struct capture *capture) {
    if (!capture_has_voucher(capture)) {
        return provenance_of_record(reader, capture);
    }
    bool is_fetched = (capture->flags & CAPTURE_SIGNED) != 0 &&
                      provenance_judge(reader->archive, capture->voucher, capture->time_us) == ARCHIVE_MEMBER;
    return is_fetched                          ? PROVENANCE_FETCHED
           : capture->flags & CAPTURE_IMPORTED ? PROVENANCE_IMPORTED
                                               : PROVENANCE_UNKNOWN;
}

enum archive_trust archive_trust_parse(struct bytes word) {
    return word.size == 0                        ? ARCHIVE_TRUST_DEFAULT
           : bytes_equal(word, BYTES("any"))     ? ARCHIVE_TRUST_ANY
           : bytes_equal(word, BYTES("members")) ? ARCHIVE_TRUST_MEMBERS
                                                 : ARCHIVE_TRUST_INVALID;
}

void archive_reader_set_trust(struct archive_reader *reader, enum archive_trust trust) {
    bool is_default = trust == ARCHIVE_TRUST_DEFAULT;
    reader->trusts_fetched_only =
        is_default ? reader->archive->trusts_fetched_only : trust == ARCHIVE_TRUST_MEMBERS;
    reader->timeline.is_known = false;
}
