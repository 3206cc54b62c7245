/* Surplus is removed when all its holders have it (protocol/copies/replicator_release.c), unless its owner
 * wants to keep it. */
#include <sys/statvfs.h>

#include "crawl/engine/attest.h"
#include "node/copies/copies_state.h"
#include "store/instance/record.h"
#include "store/volume/volume_record.h"

enum {
    OWN_QUOTA_PERMILLE = 800, /* of the quota, or … */
    OWN_FREE_SHARE = 10,      /* … with less of the disk free than this part, room is needed */
};

/*
 * Is room needed? Then a capture that this node fetched or imported is given up as any other, once all
 * holders have it (docs/decisions/0020-whose-copy-it-is.md).
 */
static bool remove_needs_room(const struct copies *copies) {
    const struct quota *quota = instance_quota(copies->config.instance);
    struct statvfs space;
    if (quota_is_set(quota)) {
        return quota_permille(quota) >= OWN_QUOTA_PERMILLE;
    }
    return statvfs(copies->config.directory, &space) == 0 && space.f_bavail < space.f_blocks / OWN_FREE_SHARE;
}

/* Did another node fetch it? What this one fetched or imported itself its owner may want to keep. */
static bool remove_is_of_others(struct copies *copies, struct copies_reader *reader,
                                const struct capture *capture) {
    uint8_t key[PEER_KEY_SIZE];
    uint8_t signature[IDENTITY_SIGNATURE_SIZE];
    struct record record;
    if (copies->config.keeps_but_of == NULL || (!copies->config.keeps_own && remove_needs_room(copies))) {
        return true;
    }
    bool is_read = record_init(&record) == ERR_OK &&
                   record_read(&record, reader->session, capture->volume, &capture->location, NULL) == ERR_OK;
    struct bytes field =
        is_read ? fields_get(&record.header.fields, BYTES(VOLUME_SIGNATURE_FIELD)) : bytes_of(NULL, 0);
    bool is_signed = attest_parse(field, key, signature);
    record_done(&record);
    return is_signed && memcmp(key, copies->config.keeps_but_of, sizeof key) != 0;
}

/* The feed takes it out of the keys, unless there is another capture of the same key. ERR_EXISTS: it stays.
 */
enum err copies_remove(struct copies *copies, struct copies_reader *reader, const struct ringkey *key) {
    struct capture capture;
    struct err_detail detail = {0};
    enum err err = copies_find_capture(copies, reader, key, &capture, &detail);
    if (err == ERR_OK && !remove_is_of_others(copies, reader, &capture)) {
        return ERR_EXISTS;
    }
    err = err == ERR_OK ? instance_remove_capture(reader->session, &capture, &detail) : err;
    if (err != ERR_OK && err != ERR_NOT_FOUND) {
        copies_note(copies, "a surplus capture cannot be removed: %s", err_detail_text(&detail, err));
    }
    return err;
}
