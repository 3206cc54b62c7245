/* What is deleted is neither stored nor shown, from the moment at which the instance knows of it. */
#include "store/instance/deletion.h"
#include "store/instance/instance_state.h"
#include "warc/request_key.h"
#include "web/url/surt.h"
#include "web/url/url.h"

void instance_set_deletions(struct instance *instance, struct deletion_set *take_set) {
    deletion_set_seal(take_set);
    pthread_rwlock_wrlock(&instance->deletions_lock);
    struct deletion_set *before = instance->deletions;
    instance->deletions = take_set;
    instance->deletions_generation++;
    instance->deletions_end_us = deletion_set_end_us(take_set);
    pthread_rwlock_unlock(&instance->deletions_lock);
    deletion_set_free(before);
}

uint64_t instance_deletions_generation(const struct instance *instance) {
    return instance->deletions_generation;
}

bool instance_is_deleted(struct instance *instance, struct bytes surt, struct bytes url, int64_t time_us) {
    if (time_us > instance->deletions_end_us) { /* without a lock, for the many of whom none is */
        return false;
    }
    pthread_rwlock_rdlock(&instance->deletions_lock);
    bool is_deleted =
        instance->deletions != NULL && deletion_set_covers(instance->deletions, surt, url, time_us);
    pthread_rwlock_unlock(&instance->deletions_lock);
    return is_deleted;
}

enum err instance_check_deleted(struct instance *instance, const struct document *document,
                                struct err_detail *detail) {
    struct canon canon;
    struct buf url;
    struct buf surt;
    if (document->url.size == 0 || document->time_us > instance->deletions_end_us) {
        return ERR_OK;
    }
    canon_init(&canon);
    buf_init(&url, URL_SIZE_MAX + REQUEST_KEY_TEXT_SIZE_MAX);
    buf_init(&surt, URL_SIZE_MAX + 16);
    bool is_found = request_key_put_url(&url, document->url, document->request) == ERR_OK &&
                    canon_run(&canon, buf_bytes(&url), NULL) == ERR_OK && surt_put(&surt, &canon) == ERR_OK;
    bool is_deleted =
        is_found && instance_is_deleted(instance, buf_bytes(&surt), buf_bytes(&url), document->time_us);
    buf_done(&surt);
    buf_done(&url);
    canon_done(&canon);
    return is_deleted ? err_set(detail, ERR_DELETED, "it has been deleted from the ring") : ERR_OK;
}
