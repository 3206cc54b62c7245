#include "node/ring/sites.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "base/map.h"

enum { WHY_SIZE_MAX = ADDRESS_TEXT_SIZE_MAX + 64, SITES_SHOWN_MAX = 64 };

struct sites_node {
    struct address address;
    uint64_t site;
    char name[DIALECTS_SITE_SIZE_MAX];
};

struct sites {
    struct dialects *dialects;
    pthread_mutex_t lock;
    struct peer self;         /* lock, as all below */
    bool is_understood;       /* by all that are known, as far as they have said */
    bool has_several;         /* sites */
    char why[WHY_SIZE_MAX];   /* it is not understood by all */
    struct sites_node *nodes; /* all that are known */
    size_t nodes_count;
};

struct sites *sites_new(struct dialects *dialects) {
    struct sites *sites = calloc(1, sizeof *sites);
    if (sites != NULL) {
        sites->dialects = dialects;
        pthread_mutex_init(&sites->lock, NULL);
    }
    return sites;
}

void sites_free(struct sites *sites) {
    if (sites != NULL) {
        pthread_mutex_destroy(&sites->lock);
        free(sites->nodes);
        free(sites);
    }
}

static struct sites_node sites_make_node(struct sites *sites, const struct peer *peer, bool is_self) {
    struct sites_node node = {.address = peer->address};
    dialects_site(sites->dialects, peer, is_self, node.name);
    node.site = map_hash(bytes_of_string(node.name), 0);
    return node;
}

/* ---- the ring's loop ---- */

/* Does one of them not understand it? *ret_are_known: all have said what they understand. */
static bool sites_find_old(struct sites *sites, const struct peer *nodes, size_t count,
                           const struct peer *self, bool *ret_are_known, char why[WHY_SIZE_MAX]) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    bool is_old = false;
    *ret_are_known = true;
    for (size_t i = 0; i < count; i++) {
        struct dialects_known known = dialects_find(sites->dialects, &nodes[i]);
        bool is_other = !peer_same_key(&nodes[i], self);
        bool is_told = is_other && known.is_known && !dialect_has(&known.dialect, DIALECT_SITES);
        if (is_other && (is_told || (!known.is_known && why[0] == '\0'))) {
            snprintf(why, WHY_SIZE_MAX,
                     is_told ? "%s does not know them" : "%s has not said whether it knows them",
                     address_format(&nodes[i].address, address));
        }
        is_old = is_old || is_told;
        *ret_are_known = *ret_are_known && (known.is_known || !is_other);
    }
    return is_old;
}

void sites_update(struct sites *sites, const struct peer *nodes, size_t nodes_count,
                  const struct peer *self) {
    struct sites_node *made = calloc(nodes_count + 1, sizeof *made);
    char why[WHY_SIZE_MAX] = "";
    bool are_known;
    if (made == NULL) {
        return; /* the old ones are better than none */
    }
    bool has_several = false;
    for (size_t i = 0; i < nodes_count; i++) {
        made[i] = sites_make_node(sites, &nodes[i], peer_same_key(&nodes[i], self));
        has_several = has_several || made[i].site != made[0].site;
    }
    bool is_old = sites_find_old(sites, nodes, nodes_count, self, &are_known, why);
    pthread_mutex_lock(&sites->lock);
    sites->self = *self;
    sites->is_understood = !is_old && (are_known || sites->is_understood);
    sites->has_several = has_several;
    memcpy(sites->why, why, sizeof why);
    struct sites_node *old = sites->nodes;
    sites->nodes = made;
    sites->nodes_count = nodes_count;
    pthread_mutex_unlock(&sites->lock);
    free(old);
}

/* ---- any thread ---- */

bool sites_are_used(struct sites *sites) {
    if (sites == NULL) {
        return false;
    }
    pthread_mutex_lock(&sites->lock);
    bool are_used = sites->is_understood && sites->has_several;
    pthread_mutex_unlock(&sites->lock);
    return are_used;
}

uint64_t sites_of(struct sites *sites, const struct peer *peer) {
    pthread_mutex_lock(&sites->lock);
    bool is_self = peer_same_key(peer, &sites->self);
    pthread_mutex_unlock(&sites->lock);
    return sites_make_node(sites, peer, is_self).site;
}

/* ---- for people ---- */

/* The lock is held, as in all of these. */
static size_t sites_index_of(struct ring_view_site *list, size_t *count, struct arena *arena,
                             const struct sites_node *node) {
    size_t at = 0;
    while (at < *count && strcmp(list[at].name, node->name) != 0) {
        at++;
    }
    if (at == *count && at < SITES_SHOWN_MAX) {
        list[(*count)++] = (struct ring_view_site){.name = arena_text(arena, node->name)};
    }
    return at;
}

static const struct sites_node *sites_at(const struct sites *sites, const char *address) {
    char text[ADDRESS_TEXT_SIZE_MAX];
    for (size_t i = 0; i < sites->nodes_count; i++) {
        if (strcmp(address_format(&sites->nodes[i].address, text), address) == 0) {
            return &sites->nodes[i];
        }
    }
    return NULL;
}

/* One arc of this node's: which sites have all of its captures? */
static void sites_count_arc(const struct sites *sites, const struct ring_view_arc *arc, size_t own_index,
                            struct arena *arena, struct ring_view *view, struct ring_view_site *list) {
    bool has[SITES_SHOWN_MAX + 1] = {false};
    size_t sites_count = 0;
    has[own_index] = true;
    for (size_t i = 0; i < arc->members_count; i++) {
        const struct ring_view_member *member = &arc->members[i];
        const struct sites_node *node = sites_at(sites, member->address);
        bool is_sound = member->is_complete && !member->is_false && !member->is_away;
        if (node != NULL && is_sound) {
            has[sites_index_of(list, &view->sites_count, arena, node)] = true;
        }
    }
    for (size_t i = 0; i < view->sites_count; i++) {
        list[i].captures_count += has[i] ? arc->keys_count : 0;
        sites_count += has[i];
    }
    view->sites_captures_count += arc->keys_count;
    view->sites_alone_count += sites_count < 2 ? arc->keys_count : 0;
}

void sites_view(struct sites *sites, struct arena *arena, struct ring_view *view) {
    struct ring_view_site *list = arena_take_array(arena, SITES_SHOWN_MAX, sizeof *list);
    if (list == NULL) {
        return;
    }
    pthread_mutex_lock(&sites->lock);
    size_t own_index = 0;
    for (size_t i = 0; i < sites->nodes_count; i++) {
        size_t at = sites_index_of(list, &view->sites_count, arena, &sites->nodes[i]);
        if (at < SITES_SHOWN_MAX) {
            list[at].nodes_count++;
        }
        bool is_self = address_equal(&sites->nodes[i].address, &sites->self.address);
        own_index = is_self ? at : own_index;
    }
    for (size_t i = 0; i < view->copies.arcs_count; i++) {
        sites_count_arc(sites, &view->copies.arcs[i], own_index, arena, view, list);
    }
    view->sites = list;
    view->sites_are_used = sites->is_understood && sites->has_several;
    view->sites_why_not = sites->is_understood ? "" : arena_text(arena, sites->why);
    pthread_mutex_unlock(&sites->lock);
}
