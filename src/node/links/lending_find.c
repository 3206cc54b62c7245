#include <stdlib.h>

#include "node/links/lending_state.h"
#include "run/thread.h"

/* What it finds, the next question for the place knows (holders.h keeps it). */
static void *run(void *context) {
    struct lending *lending = context;
    const struct lending_homes *homes = &lending->config.homes;
    pthread_mutex_lock(&lending->lock);
    while (!lending->is_stopping) {
        struct lending_wish *wish = lending->wishes;
        if (wish == NULL) {
            pthread_cond_wait(&lending->has_wish, &lending->lock);
            continue;
        }
        pthread_mutex_unlock(&lending->lock);
        struct holders_arc arc;
        enum err err = homes->find(homes->context, wish->place, &arc);
        (void)err; /* who still wants it will wish again */
        pthread_mutex_lock(&lending->lock);
        lending->wishes = wish->next; /* only now: meanwhile nobody wishes for the same */
        lending->wishes_count--;
        free(wish);
    }
    pthread_mutex_unlock(&lending->lock);
    return NULL;
}

void lending_find(struct lending *lending, struct ring_id place) {
    pthread_mutex_lock(&lending->lock);
    struct lending_wish **end = &lending->wishes;
    while (*end != NULL && !ring_id_equal((*end)->place, place)) {
        end = &(*end)->next;
    }
    bool is_new = *end == NULL && lending->wishes_count < LENDING_WISHES_MAX;
    struct lending_wish *wish = is_new ? calloc(1, sizeof *wish) : NULL;
    if (wish != NULL) {
        wish->place = place;
        *end = wish;
        lending->wishes_count++;
        pthread_cond_signal(&lending->has_wish);
    }
    pthread_mutex_unlock(&lending->lock);
}

bool lending_find_start(struct lending *lending) {
    return thread_start(&lending->finder, "lending-find", run, lending) == 0;
}

void lending_find_stop(struct lending *lending) {
    pthread_mutex_lock(&lending->lock);
    lending->is_stopping = true;
    pthread_cond_signal(&lending->has_wish);
    pthread_mutex_unlock(&lending->lock);
    pthread_join(lending->finder, NULL);
    while (lending->wishes != NULL) {
        struct lending_wish *next = lending->wishes->next;
        free(lending->wishes);
        lending->wishes = next;
    }
}
