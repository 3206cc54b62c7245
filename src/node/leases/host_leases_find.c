#include <stdlib.h>

#include "node/leases/host_leases_state.h"
#include "run/thread.h"

/* What it finds, the next question for the place knows (holders.h keeps it). */
static void *run(void *context) {
    struct host_leases *host_leases = context;
    const struct host_leases_homes *homes = &host_leases->config.homes;
    pthread_mutex_lock(&host_leases->lock);
    while (!host_leases->is_stopping) {
        struct host_leases_wish *wish = host_leases->wishes;
        if (wish == NULL) {
            pthread_cond_wait(&host_leases->has_wish, &host_leases->lock);
            continue;
        }
        pthread_mutex_unlock(&host_leases->lock);
        struct holders_arc arc;
        enum err err = homes->find(homes->context, wish->place, &arc);
        (void)err; /* who still wants it will wish again */
        pthread_mutex_lock(&host_leases->lock);
        host_leases->wishes = wish->next; /* only now: meanwhile nobody wishes for the same */
        host_leases->wishes_count--;
        free(wish);
    }
    pthread_mutex_unlock(&host_leases->lock);
    return NULL;
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
        pthread_cond_signal(&host_leases->has_wish);
    }
    pthread_mutex_unlock(&host_leases->lock);
}

bool host_leases_find_start(struct host_leases *host_leases) {
    return thread_start(&host_leases->finder, "lending-find", run, host_leases) == 0;
}

void host_leases_find_stop(struct host_leases *host_leases) {
    pthread_mutex_lock(&host_leases->lock);
    host_leases->is_stopping = true;
    pthread_cond_signal(&host_leases->has_wish);
    pthread_mutex_unlock(&host_leases->lock);
    pthread_join(host_leases->finder, NULL);
    while (host_leases->wishes != NULL) {
        struct host_leases_wish *next = host_leases->wishes->next;
        free(host_leases->wishes);
        host_leases->wishes = next;
    }
}
