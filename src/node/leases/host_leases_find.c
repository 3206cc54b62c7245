#include <stdlib.h>

#include "node/leases/host_leases_state.h"

/* What it finds, the next question for the place knows (holders.h keeps it). */
static uint64_t host_leases_find_first(void *context) {
    struct host_leases *host_leases = context;
    const struct host_leases_homes *homes = &host_leases->config.homes;
    pthread_mutex_lock(&host_leases->lock);
    struct host_leases_wish *wish = host_leases->wishes;
    pthread_mutex_unlock(&host_leases->lock);
    if (wish == NULL) {
        return TASK_FOR_EVER_US;
    }
    struct holders_arc arc;
    enum err err = homes->find(homes->context, wish->place, &arc);
    (void)err; /* who still wants it will wish again */
    pthread_mutex_lock(&host_leases->lock);
    host_leases->wishes = wish->next; /* only now: meanwhile nobody wishes for the same */
    host_leases->wishes_count--;
    pthread_mutex_unlock(&host_leases->lock);
    free(wish);
    return 0;
}

void host_leases_find(struct host_leases *host_leases, struct ring_id place) {
    pthread_mutex_lock(&host_leases->lock);
    struct host_leases_wish **end = &host_leases->wishes;
    while (*end != NULL && !ring_id_equal((*end)->place, place)) {
        end = &(*end)->next;
    }
    bool is_new = *end == NULL && host_leases->wishes_count < HOST_LEASES_WISHES_MAX;
    struct host_leases_wish *wish = is_new ? calloc(1, sizeof *wish) : NULL;
    if (wish != NULL) {
        wish->place = place;
        *end = wish;
        host_leases->wishes_count++;
        task_poke(&host_leases->finder);
    }
    pthread_mutex_unlock(&host_leases->lock);
}

enum err host_leases_find_start(struct host_leases *host_leases) {
    return task_start(&host_leases->finder, "lease-finder", PRIORITY_USUAL, host_leases_find_first,
                      host_leases);
}

void host_leases_find_stop(struct host_leases *host_leases) {
    task_stop(&host_leases->finder);
    while (host_leases->wishes != NULL) {
        struct host_leases_wish *next = host_leases->wishes->next;
        free(host_leases->wishes);
        host_leases->wishes = next;
    }
}
