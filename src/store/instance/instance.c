#include "store/instance/instance.h"
#include "store/instance/deletion.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/backend/backend_local.h"
#include "store/backend/backend_mirrored.h"
#include "store/instance/instance_state.h"
#include "store/remote/backend_remote.h"

enum {
    SERVER_TIMEOUT_MS = 30000,
    OTHERS_COUNT = 1 + INSTANCE_MIRRORED_MAX, /* the guest and the mirrored volumes */
};

/* ---- opening ---- */

static enum err instance_read_connector(struct connector *connector, const struct instance_config *config,
                                        struct err_detail *detail) {
    char path[INSTANCE_PLACE_SIZE_MAX];
    if (config->connector != NULL) {
        return connector_read(connector, config->connector, detail);
    }
    int size = snprintf(path, sizeof path, "%s/connector", config->directory);
    if (size >= (int)sizeof path) {
        return err_set(detail, ERR_LIMIT, "the path of the data directory is too long");
    }
    if (access(path, F_OK) == 0) {
        return connector_read(connector, path, detail);
    }
    snprintf(path, sizeof path, "%s/volumes/0", config->directory);
    if (config->must_exist && access(path, F_OK) != 0) {
        return err_set(detail, ERR_NOT_FOUND, "there is no archive in %s", config->directory);
    }
    enum err err = connector_default(connector, config->directory);
    return err == ERR_OK ? ERR_OK : err_set(detail, err, "%s: %s", config->directory, err_text(err));
}

/* One of the largest documents can always be read, and put together from its chunks. */
static const uint64_t READING_SIZE_MIN = UINT64_C(8) << 30;

/* What a running node has open is reached through it, under the same numbers. */
static void instance_use_server(struct connector *connector, const struct instance_config *config) {
    for (size_t i = 0; i < connector->volumes_count; i++) {
        struct connector_volume *volume = &connector->volumes[i];
        if (volume->url == NULL) {
            volume->url = config->server;
            volume->token = config->token;
            volume->remote_number = volume->number;
            volume->timeout_ms = SERVER_TIMEOUT_MS;
        }
    }
}

static enum err instance_open_local(struct instance *instance, struct instance_slot *slot,
                                    const struct instance_config *config, struct err_detail *detail) {
    struct backend_local_config local = {
        .path = slot->config->path,
        .index = slot->config->index,
        .is_made = slot->config->is_made,
        .volume = config->volume,
    };
    local.volume.number = slot->config->number;
    local.volume.scratch_budget = &instance->reading;
    local.volume.quota = &instance->quota;
    struct backend *backend;
    enum err err = backend_local_open(&local, &backend, &slot->recovery, detail);
    slot->backend = err == ERR_OK ? backend : NULL;
    return err;
}

static enum err instance_open_remote(struct instance_slot *slot, const struct instance_config *config,
                                     struct err_detail *detail) {
    struct backend_remote_config remote = {
        .url = slot->config->url,
        .token = slot->config->token,
        .volume = slot->config->remote_number,
        .number = slot->config->number,
        .answer_timeout_ms = slot->config->timeout_ms,
        .scratch_directory = config->directory,
        .clock = config->volume.clock,
    };
    struct backend *backend;
    enum err err = backend_remote_open(&remote, &backend, detail);
    slot->backend = err == ERR_OK ? backend : NULL;
    return err;
}

/* A volume that another process has, or that is written wrongly, is a mistake; any other may be down. */
static bool instance_may_be_down(enum err err) {
    return err != ERR_BUSY && err != ERR_INVALID && err != ERR_MEMORY;
}

static enum err instance_open_slots(struct instance *instance, const struct instance_config *config,
                                    struct err_detail *detail) {
    size_t up_count = 0;
    enum err first = ERR_OK;
    for (size_t i = 0; i < instance->connector.volumes_count; i++) {
        struct instance_slot *slot = &instance->slots[i];
        struct err_detail inner = {0};
        slot->config = &instance->connector.volumes[i];
        instance->slots_count++;
        instance->writable_count += slot->config->is_writable ? 1 : 0;
        enum err err = slot->config->url == NULL ? instance_open_local(instance, slot, config, &inner)
                                                 : instance_open_remote(slot, config, &inner);
        up_count += err == ERR_OK ? 1 : 0;
        if (err == ERR_OK) {
            continue;
        }
        slot->err = err;
        snprintf(slot->reason, sizeof slot->reason, "%s", err_detail_text(&inner, err));
        if (!instance_may_be_down(err)) {
            return err_set(detail, err, "%s", slot->reason);
        }
        if (first == ERR_OK) {
            first = err_set(detail, err, "%s", slot->reason);
        }
    }
    return up_count > 0 ? ERR_OK : first;
}

enum err instance_open(const struct instance_config *config, struct instance **ret_instance,
                       struct err_detail *detail) {
    ASSERT(config->directory != NULL || config->connector != NULL);
    struct instance *instance = calloc(1, sizeof *instance);
    if (instance == NULL) {
        return ERR_MEMORY;
    }
    enum err err = instance_read_connector(&instance->connector, config, detail);
    if (err != ERR_OK) {
        free(instance);
        return err;
    }
    if (config->server != NULL) {
        instance_use_server(&instance->connector, config);
    }
    instance->quota.size_max = config->quota_size;
    pthread_mutex_init(&instance->lock, NULL);
    if (config->directory != NULL) { /* without memory for it, nothing is marked */
        instance->directory = strdup(config->directory);
    }
    pthread_rwlock_init(&instance->deletions_lock, NULL);
    instance->deletions_end_us = INT64_MIN;
    scratch_budget_init_by_disk(&instance->reading, config->directory != NULL ? config->directory : "/tmp",
                                READING_SIZE_MIN);
    instance->digest_bits =
        config->volume.digest_bits == 0 ? 8 * KEY_DIGEST_SIZE : config->volume.digest_bits;
    instance->slots = calloc(instance->connector.volumes_count + OTHERS_COUNT, sizeof *instance->slots);
    err = instance->slots == NULL ? ERR_MEMORY : instance_open_slots(instance, config, detail);
    for (uint16_t i = 0; i < OTHERS_COUNT && err == ERR_OK; i++) {
        instance->others[i] = (struct connector_volume){.number = (uint16_t)(INSTANCE_GUEST_NUMBER + i)};
        instance->slots[instance->slots_count + i].config = &instance->others[i];
    }
    if (err != ERR_OK) {
        instance_close(instance);
        return err;
    }
    *ret_instance = instance;
    return ERR_OK;
}

const struct quota *instance_quota(const struct instance *instance) {
    return &instance->quota;
}

struct scratch_budget *instance_reading_budget(struct instance *instance) {
    return &instance->reading;
}

void instance_close(struct instance *instance) {
    size_t count = instance->slots_count + OTHERS_COUNT;
    for (size_t i = 0; instance->slots != NULL && i < count; i++) {
        struct backend *backend = instance->slots[i].backend;
        if (backend != NULL) {
            backend->table->close(backend);
        }
    }
    free(instance->slots);
    free(instance->directory);
    deletion_set_free(instance->deletions);
    pthread_rwlock_destroy(&instance->deletions_lock);
    pthread_mutex_destroy(&instance->lock);
    connector_done(&instance->connector);
    free(instance);
}

/* ---- volumes ---- */

size_t instance_volumes_count(const struct instance *instance) {
    return instance->slots_count;
}

void instance_volume(struct instance *instance, size_t index, struct instance_volume *ret_volume) {
    ASSERT(index < instance->slots_count);
    const struct instance_slot *slot = &instance->slots[index];
    bool is_remote = slot->config->url != NULL;
    bool is_local = slot->backend != NULL && !is_remote;
    struct instance_volume volume = {
        .number = slot->config->number,
        .is_remote = is_remote,
        .is_writable = slot->config->is_writable,
        .place = is_remote ? slot->config->url : slot->config->path,
        .backend = slot->backend,
        .volume = is_local ? backend_local_volume(slot->backend) : NULL,
        .recovery = is_local ? &slot->recovery : NULL,
        .err = slot->err,
    };
    if (volume.err != ERR_OK) {
        pthread_mutex_lock(&instance->lock);
        memcpy(volume.reason, slot->reason, sizeof volume.reason);
        pthread_mutex_unlock(&instance->lock);
    }
    *ret_volume = volume;
}

/* NULL: the slot's volume is another machine's, or down. */
static const struct index *instance_index_of_slot(const struct instance_slot *slot) {
    bool is_local = slot->backend != NULL && slot->config->url == NULL;
    return is_local ? volume_index(backend_local_volume(slot->backend)) : NULL;
}

void instance_set_cache_size(struct instance *instance, size_t size) {
    for (size_t i = 0; i < instance->slots_count; i++) {
        const struct index *index = instance_index_of_slot(&instance->slots[i]);
        if (index != NULL) {
            index_set_cache_size(index, size / instance->slots_count);
        }
    }
}

void instance_settle(struct instance *instance) {
    for (size_t i = 0; i < instance->slots_count; i++) {
        const struct index *index = instance_index_of_slot(&instance->slots[i]);
        if (index != NULL) {
            index_settle(index);
        }
    }
}

size_t instance_find_volume(const struct instance *instance, uint16_t number) {
    size_t index = 0;
    while (index < instance->slots_count && instance->slots[index].config->number != number) {
        index++;
    }
    return index;
}

bool instance_is_here(const struct instance *instance) {
    for (size_t i = 0; i < instance->slots_count; i++) {
        if (instance->slots[i].config->url != NULL) {
            return false;
        }
    }
    return instance->slots[instance->slots_count].backend == NULL; /* the guest's */
}

void instance_set_guest(struct instance *instance, struct backend *backend) {
    backend->number = INSTANCE_GUEST_NUMBER;
    instance->slots[instance->slots_count].backend = backend;
}

struct backend *instance_guest(const struct instance *instance) {
    return instance->slots[instance->slots_count].backend;
}

void instance_add_mirrored(struct instance *instance, uint16_t number, const char *origin,
                           struct backend *take_backend) {
    ASSERT(instance_is_mirrored(number) && instance_mirrored(instance, number) == NULL);
    size_t index = number - (size_t)INSTANCE_MIRRORED_NUMBER;
    snprintf(instance->origins[index], sizeof instance->origins[index], "%s", origin);
    take_backend->number = number;
    instance->slots[instance->slots_count + 1 + index].backend = take_backend;
    if (index >= instance->mirrored_end) {
        instance->mirrored_end = index + 1;
    }
}

struct backend *instance_mirrored(const struct instance *instance, uint16_t number) {
    size_t index = number - (size_t)INSTANCE_MIRRORED_NUMBER;
    return instance_is_mirrored(number) && index < instance->mirrored_end
               ? instance->slots[instance->slots_count + 1 + index].backend
               : NULL;
}

const char *instance_mirrored_origin(const struct instance *instance, uint16_t number) {
    ASSERT(instance_is_mirrored(number));
    return instance->origins[number - INSTANCE_MIRRORED_NUMBER];
}

bool instance_is_trouble(enum err err) {
    switch (err) {
    case ERR_UNREACHABLE:
    case ERR_TIMEOUT:
    case ERR_CLOSED:
    case ERR_REFUSED:
    case ERR_PERMISSION:
    case ERR_MISMATCH:
    case ERR_IO:
    case ERR_NO_SPACE:
    case ERR_QUOTA:
    case ERR_SYSTEM:
        return true;
    default:
        return false;
    }
}

enum err instance_note(struct instance *instance, size_t index, enum err err, struct err_detail *detail) {
    struct instance_slot *slot = &instance->slots[index];
    if (!instance_is_trouble(err)) {
        if (slot->err != ERR_OK) {
            slot->err = ERR_OK;
        }
        return err;
    }
    bool has_reason = detail != NULL && detail->err == err && detail->text[0] != '\0';
    char reason[ERR_TEXT_SIZE_MAX];
    snprintf(reason, sizeof reason, "%s", err_detail_text(detail, err));
    pthread_mutex_lock(&instance->lock);
    if (has_reason || slot->err != err) { /* a caller without a detail must not hide what another was told */
        memcpy(slot->reason, reason, sizeof slot->reason);
    }
    slot->err = err;
    pthread_mutex_unlock(&instance->lock);
    return err_set(detail, err, "volume %u: %s", slot->config->number, reason);
}

/* ---- sessions ---- */

struct instance_session *instance_session_new(struct instance *instance) {
    struct instance_session *session =
        calloc(1, sizeof *session + (instance->slots_count + OTHERS_COUNT) * sizeof session->sessions[0]);
    if (session == NULL) {
        return NULL;
    }
    session->instance = instance;
    session->slots_count = instance->slots_count;
    if (document_hasher_init(&session->hasher) != ERR_OK) {
        instance_session_free(session);
        return NULL;
    }
    return session;
}

void instance_session_free(struct instance_session *session) {
    if (session == NULL) {
        return;
    }
    for (size_t i = 0; i < session->instance->slots_count + OTHERS_COUNT; i++) {
        struct backend_session *backend = session->sessions[i];
        if (backend != NULL) {
            backend->backend->table->session_close(backend);
        }
    }
    document_hasher_done(&session->hasher);
    free(session);
}

const struct absent *instance_session_absent(const struct instance_session *session) {
    return &session->absent;
}

void instance_session_forget_absent(struct instance_session *session) {
    session->absent = (struct absent){0};
}

/* A guest stands for many, and names those of them that did not answer. */
void instance_miss(struct instance_session *session, size_t index, const struct err_detail *detail) {
    uint16_t number = session->instance->slots[index].config->number;
    if (instance_is_mirrored(number)) {
        char name[INSTANCE_ORIGIN_SIZE_MAX + 16];
        snprintf(name, sizeof name, "collection %s", instance_mirrored_origin(session->instance, number));
        absent_add_string(&session->absent, name);
    } else if (number == INSTANCE_GUEST_NUMBER) {
        bool has_names = detail != NULL && detail->err != ERR_OK && detail->text[0] != '\0';
        absent_add_string(&session->absent, has_names ? detail->text : "the ring");
    } else {
        absent_add_volume(&session->absent, number);
    }
}

static void instance_set_slots_count(struct instance_session *session) {
    const struct instance *instance = session->instance;
    session->slots_count =
        instance->slots_count + (session->reads_mirrored ? 1 + instance->mirrored_end : session->reads_guest);
}

void instance_session_set_guest(struct instance_session *session, bool reads_guest) {
    session->reads_guest = reads_guest;
    instance_set_slots_count(session);
}

void instance_session_set_mirrored(struct instance_session *session, bool reads_mirrored) {
    size_t first = session->instance->slots_count + 1;
    for (size_t i = first; i < first + session->instance->mirrored_end; i++) {
        struct backend_session *backend = session->sessions[i];
        if (backend != NULL && (!reads_mirrored || backend_mirrored_is_stale(backend))) {
            backend->backend->table->session_close(backend);
            session->sessions[i] = NULL;
        }
    }
    session->reads_mirrored = reads_mirrored;
    instance_set_slots_count(session);
}

void instance_session_set_brief(struct instance_session *session, bool is_brief) {
    session->is_brief = is_brief;
}

void instance_session_hide_witnesses(struct instance_session *session, bool hides_witnesses) {
    session->hides_witnesses = hides_witnesses;
}

bool instance_reads(const struct instance_session *session, size_t index) {
    const struct instance *instance = session->instance;
    if (index < instance->slots_count) {
        return true;
    }
    bool is_wanted = index == instance->slots_count ? session->reads_guest : session->reads_mirrored;
    return is_wanted && index < session->slots_count && instance->slots[index].backend != NULL;
}

size_t instance_find_slot(const struct instance_session *session, uint16_t number) {
    size_t index = 0;
    while (index < session->slots_count && session->instance->slots[index].config->number != number) {
        index++;
    }
    return index < session->slots_count && instance_reads(session, index) ? index : session->slots_count;
}

bool instance_session_sees(const struct instance_session *session, uint16_t number) {
    return instance_find_slot(session, number) < session->slots_count;
}

enum err instance_reach(struct instance_session *session, size_t index, struct backend_session **ret_session,
                        struct err_detail *detail) {
    struct instance_slot *slot = &session->instance->slots[index];
    if (slot->backend == NULL) {
        instance_miss(session, index, NULL);
        return err_set(detail, ERR_UNREACHABLE, "volume %u is down: %s", slot->config->number, slot->reason);
    }
    if (session->sessions[index] == NULL) {
        enum err err = slot->backend->table->session_open(slot->backend, &session->sessions[index]);
        if (err == ERR_NOT_FOUND) {
            return err_set(detail, err, "the collection is not here any more");
        }
        if (err != ERR_OK) {
            return err_set(detail, err, "volume %u: %s", slot->config->number, err_text(err));
        }
    }
    *ret_session = session->sessions[index];
    return ERR_OK;
}

enum err instance_reach_volume(struct instance_session *session, uint16_t number, size_t *ret_index,
                               struct backend_session **ret_session, struct err_detail *detail) {
    size_t index = instance_find_slot(session, number);
    if (index == session->slots_count) {
        return err_set(detail, ERR_NOT_FOUND, "there is no volume %u", number);
    }
    *ret_index = index;
    return instance_reach(session, index, ret_session, detail);
}

void instance_drain(struct instance *instance) {
    for (size_t i = 0; i < instance->slots_count; i++) {
        struct backend *backend = instance->slots[i].backend;
        if (backend != NULL) {
            backend->table->drain(backend);
        }
    }
}

enum err instance_stat(struct instance_session *session, size_t index, struct volume_stat *ret_stat,
                       struct err_detail *detail) {
    struct backend_session *backend;
    enum err err = instance_reach(session, index, &backend, detail);
    if (err != ERR_OK) {
        return err;
    }
    err = backend->backend->table->stat(backend, ret_stat, detail);
    return instance_note(session->instance, index, err, detail);
}
