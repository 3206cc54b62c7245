#include "store/backend/backend_local.h"
#include "store/instance/instance_state.h"

/* The session with a volume that is on a disk of this machine. */
static enum err reach_local(struct instance_session *session, uint16_t number, size_t *ret_index,
                            struct backend_session **ret_session, struct err_detail *detail) {
    const struct instance *instance = session->instance;
    size_t index = instance_find_volume(instance, number);
    if (index < instance->slots_count && instance->slots[index].config->url != NULL) {
        return err_set(detail, ERR_UNSUPPORTED, "volume %u is on another machine: it is mended there",
                       number);
    }
    if (index == instance->slots_count) {
        return err_set(detail, ERR_NOT_FOUND, "there is no volume %u", number);
    }
    *ret_index = index;
    return instance_reach(session, index, ret_session, detail);
}

enum err instance_remove_capture(struct instance_session *session, const struct capture *capture,
                                 struct err_detail *detail) {
    struct backend_session *backend;
    size_t index = 0;
    enum err err = reach_local(session, capture->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_local_remove_capture(backend, capture, detail);
    return instance_note(session->instance, index, err, detail);
}

static enum err repair_on(struct instance_session *session, const struct key *key,
                          const struct document *document, bool is_elsewhere, bool *is_repaired,
                          struct err_detail *detail) {
    struct backend_session *backend;
    size_t index = 0;
    bool is_repaired_here = false;
    enum err err = reach_local(session, key->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend_local_repair(backend, key, document, is_elsewhere, &is_repaired_here, detail);
    *is_repaired = *is_repaired || is_repaired_here;
    return instance_note(session->instance, index, err, detail);
}

enum err instance_repair(struct instance_session *session, const struct key *key,
                         const struct document *document, bool *ret_is_repaired, struct err_detail *detail) {
    struct backend_session *backend;
    struct block block;
    struct key located = *key;
    size_t index = 0;
    bool is_repaired = false;
    enum err err = reach_local(session, key->volume, &index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    struct capture capture = {.volume = key->volume, .block_number = key->number};
    memcpy(capture.digest, key->digest, sizeof capture.digest);
    err = instance_locate(session, &capture, &located, &block, NULL);
    bool is_elsewhere = err == ERR_OK && located.volume != key->volume;
    err = ERR_OK; /* where nobody has it, it is given back to this volume */
    if (is_elsewhere && !document->is_body_left_out) {
        err = repair_on(session, &located, document, false, &is_repaired, detail);
    }
    if (err == ERR_OK) {
        err = repair_on(session, key, document, is_elsewhere, &is_repaired, detail);
    }
    if (err == ERR_OK) {
        *ret_is_repaired = is_repaired;
    }
    return err;
}
