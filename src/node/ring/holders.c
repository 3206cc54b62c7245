#include "node/ring/holders.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/rtt.h"
#include "node/ring/sites.h"
#include "node/transport/transport.h"
#include "run/bell.h"

enum {
    CACHE_MAX = 256,
    ROUNDS_MAX = 8,       /* of one search, past places of the same nodes */
    ROUNDS_SITES_MAX = 32 /* likewise, and of the same site */
};
static const uint64_t CACHE_US = 5 * 1000000;
static const uint64_t SOON_US_MIN = 50000; /* a lookup on a machine that has much to do */
static const uint64_t LATE_US = 500000;

/* The arc that an answer holds for, and how long. Kept apart from the answer, so that looking through them
 * all reads 10 KB, not 300. */
struct found {
    struct ring_id from;
    struct ring_id to;
    uint64_t until_us;
};

/* The ring as we know it: all places, by id. */
struct view {
    struct vnode *vnodes;
    uint64_t *sites; /* of each; NULL: holders are not chosen by them */
    size_t count;
    struct peer *nodes; /* each once */
    size_t nodes_count;
    struct holders_arc own[HOLDERS_ARCS_MAX];
    size_t own_count;
    struct address self;
    size_t copies;
};

struct holders {
    struct transport *transport;
    struct sites *sites;  /* NULL: none */
    struct vnode *circle; /* RING_CIRCLE_MAX, of the ring's loop: as the ring last said */
    size_t circle_count;
    uint64_t circle_generation; /* 0: not yet */
    pthread_mutex_t lock;
    struct view view;                         /* lock */
    uint64_t generation;                      /* lock */
    struct found cache[CACHE_MAX];            /* lock */
    struct holders_arc cache_arcs[CACHE_MAX]; /* lock: what was found there */
    size_t cache_next;                        /* lock */
    uint64_t cache_until_us;                  /* lock: of the last that was found */
    struct rtt usual;                         /* lock: how long a lookup takes */
    uint64_t late_until_us;                   /* lock: those who read do not wait for one */
};

struct holders *holders_new(struct transport *transport) {
    struct holders *holders = calloc(1, sizeof *holders);
    if (holders != NULL) {
        holders->transport = transport;
        holders->circle = malloc(RING_CIRCLE_MAX * sizeof *holders->circle);
        if (holders->circle == NULL) {
            free(holders);
            return NULL;
        }
        pthread_mutex_init(&holders->lock, NULL);
    }
    return holders;
}

void holders_free(struct holders *holders) {
    if (holders != NULL) {
        free(holders->circle);
        free(holders->view.vnodes);
        free(holders->view.sites);
        free(holders->view.nodes);
        pthread_mutex_destroy(&holders->lock);
        free(holders);
    }
}

void holders_set_sites(struct holders *holders, struct sites *sites) {
    holders->sites = sites;
}

/* ---- distinct nodes ---- */

static void holders_add(struct holders_arc *arc, const struct peer *peer, const struct address *self) {
    for (size_t i = 0; i < arc->count; i++) {
        if (address_equal(&arc->peers[i].address, &peer->address)) {
            return;
        }
    }
    if (address_equal(&peer->address, self)) {
        arc->self_rank = (int)arc->count;
    }
    arc->peers[arc->count++] = *peer;
}

static bool holders_has(const struct holders_arc *arc, const struct peer *peer) {
    for (size_t i = 0; i < arc->count; i++) {
        if (address_equal(&arc->peers[i].address, &peer->address)) {
            return true;
        }
    }
    return false;
}

static void holders_replace_last(struct holders_arc *arc, const struct peer *peer,
                                 const struct address *self) {
    size_t last = arc->count - 1;
    arc->self_rank = arc->self_rank == (int)last ? -1 : arc->self_rank;
    arc->self_rank = address_equal(&peer->address, self) ? (int)last : arc->self_rank;
    arc->peers[last] = *peer;
}

/* The first place of the view that is not before the id; the count wraps to 0. */
static size_t first_from(const struct view *view, struct ring_id id) {
    size_t from = 0;
    size_t to = view->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (ring_id_compare(view->vnodes[middle].id, id) < 0) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from < view->count ? from : 0;
}

/* Fill up with the nodes that follow in the view. */
static void add_from_view(struct holders_arc *arc, const struct view *view, size_t position) {
    for (size_t i = 0; i < view->count && arc->count < view->copies; i++) {
        holders_add(arc, &view->vnodes[(position + i) % view->count].peer, &view->self);
    }
}

/* Its nodes follow each other from this place of the view on. */
static void spread(struct holders_arc *arc, const struct view *view, size_t position) {
    if (view->sites == NULL || arc->count < 2 || arc->count < view->copies) {
        return;
    }
    size_t at = holders_arc_other_site(view->sites, view->count, position);
    if (at < view->count && !holders_has(arc, &view->vnodes[at].peer)) {
        holders_replace_last(arc, &view->vnodes[at].peer, &view->self);
    }
}

static bool guess(const struct view *view, struct ring_id vnode, struct holders_arc *ret_arc) {
    if (view->count == 0) {
        return false;
    }
    size_t position = first_from(view, vnode);
    *ret_arc = (struct holders_arc){
        .from = view->vnodes[(position + view->count - 1) % view->count].id,
        .to = view->vnodes[position].id,
        .self_rank = -1,
    };
    add_from_view(ret_arc, view, position);
    spread(ret_arc, view, position);
    return true;
}

/* ---- the ring's loop ---- */

static int compare_vnodes(const void *a, const void *b) {
    const struct vnode *left = a;
    const struct vnode *right = b;
    return ring_id_compare(left->id, right->id);
}

static bool is_alive(const struct ring_known *known) {
    return known->vnode.peer.address.port != 0 && known->misses_count == 0;
}

static void put_vnode(struct view *view, const struct vnode *vnode) {
    if (vnode->peer.address.port != 0) {
        view->vnodes[view->count++] = *vnode;
    }
}

/* In a small ring its table says which virtual nodes there are; of those that are silent, nobody expects
 * anything until the table has found out. What was heard of a node outlives the node: during a cut, those of
 * the other side would be taken for holders until each of their virtual nodes has been asked in vain. */
static bool holders_collect_small(struct holders *holders, const struct ring *ring, struct view *view) {
    uint64_t generation = ring_circle_generation(ring);
    if (generation != holders->circle_generation) {
        holders->circle_count = ring_circle(ring, holders->circle);
        holders->circle_generation = generation;
    }
    view->vnodes = malloc((holders->circle_count + 1) * sizeof *view->vnodes);
    for (size_t i = 0; view->vnodes != NULL && i < holders->circle_count; i++) {
        struct ring_known known;
        if (!ring_know(ring, holders->circle[i].id, &known) || known.misses_count == 0) {
            view->vnodes[view->count++] = holders->circle[i];
        }
    }
    return view->vnodes != NULL;
}

/* All nodes we have heard of that are not silent, our lists, ourselves; each virtual node once. */
static bool holders_collect_chord(const struct ring *ring, struct view *view) {
    uint32_t known_count = ring_known_count(ring);
    size_t own = ring_vnodes_count(ring);
    size_t max = known_count + own * (2 + (size_t)ring_list_size(ring));
    view->vnodes = malloc((max + 1) * sizeof *view->vnodes);
    if (view->vnodes == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < known_count; i++) {
        struct ring_known known = ring_known_at(ring, i);
        if (is_alive(&known)) {
            put_vnode(view, &known.vnode);
        }
    }
    for (uint8_t i = 0; i < own && ring_mode(ring) != RING_LIGHT; i++) {
        put_vnode(view, ring_vnode_at(ring, i));
        if (!ring_is_member(ring, i)) {
            continue;
        }
        put_vnode(view, ring_predecessor(ring, i));
        for (uint8_t j = 0; j < ring_list_size(ring); j++) {
            put_vnode(view, ring_successor(ring, i, j));
        }
    }
    qsort(view->vnodes, view->count, sizeof *view->vnodes, compare_vnodes);
    size_t count = 0;
    for (size_t i = 0; i < view->count; i++) {
        if (count == 0 || !ring_id_equal(view->vnodes[count - 1].id, view->vnodes[i].id)) {
            view->vnodes[count++] = view->vnodes[i];
        }
    }
    view->count = count;
    return true;
}

static bool holders_collect(struct holders *holders, const struct ring *ring, struct view *view) {
    return ring_mode(ring) == RING_SMALL ? holders_collect_small(holders, ring, view)
                                         : holders_collect_chord(ring, view);
}

static int compare_nodes(const void *a, const void *b) {
    const struct peer *left = a;
    const struct peer *right = b;
    int order = memcmp(left->address.ip, right->address.ip, sizeof left->address.ip);
    return order != 0 ? order : (int)left->address.port - (int)right->address.port;
}

static bool collect_nodes(struct view *view) {
    view->nodes = malloc((view->count + 1) * sizeof *view->nodes);
    if (view->nodes == NULL) {
        return false;
    }
    for (size_t i = 0; i < view->count; i++) {
        view->nodes[i] = view->vnodes[i].peer;
    }
    qsort(view->nodes, view->count, sizeof *view->nodes, compare_nodes);
    for (size_t i = 0; i < view->count; i++) {
        if (i == 0 || compare_nodes(&view->nodes[view->nodes_count - 1], &view->nodes[i]) != 0) {
            view->nodes[view->nodes_count++] = view->nodes[i];
        }
    }
    return true;
}

static void collect_own(const struct ring *ring, struct view *view) {
    for (uint8_t i = 0; i < ring_vnodes_count(ring); i++) {
        if (!ring_is_member(ring, i)) {
            continue;
        }
        const struct vnode *self = ring_vnode_at(ring, i);
        struct holders_arc *arc = &view->own[view->own_count++];
        *arc = (struct holders_arc){.from = ring_predecessor(ring, i)->id, .to = self->id, .self_rank = -1};
        holders_add(arc, &self->peer, &view->self);
        for (uint8_t j = 0; j < ring_list_size(ring) && arc->count < view->copies; j++) {
            const struct vnode *next = ring_successor(ring, i, j);
            if (next->peer.address.port != 0) {
                holders_add(arc, &next->peer, &view->self);
            }
        }
        add_from_view(arc, view, first_from(view, ring_id_add_power(self->id, 0)));
        spread(arc, view, first_from(view, self->id));
    }
}

static bool arcs_equal(const struct holders_arc *a, const struct holders_arc *b) {
    bool is_equal = ring_id_equal(a->from, b->from) && ring_id_equal(a->to, b->to) && a->count == b->count;
    for (size_t i = 0; is_equal && i < a->count; i++) {
        is_equal = address_equal(&a->peers[i].address, &b->peers[i].address);
    }
    return is_equal;
}

static bool is_changed(const struct view *a, const struct view *b) {
    bool is_equal = a->own_count == b->own_count && a->copies == b->copies && a->count == b->count;
    for (size_t i = 0; is_equal && i < a->own_count; i++) {
        is_equal = arcs_equal(&a->own[i], &b->own[i]);
    }
    for (size_t i = 0; is_equal && i < a->count; i++) {
        is_equal = ring_id_equal(a->vnodes[i].id, b->vnodes[i].id) &&
                   (a->sites == NULL || b->sites == NULL || a->sites[i] == b->sites[i]);
    }
    return !is_equal || (a->sites == NULL) != (b->sites == NULL);
}

/* Of each virtual node, if they count. If there is no memory for them, they do not. */
static void collect_sites(struct sites *sites, struct view *view, const struct peer *self) {
    if (sites == NULL) {
        return;
    }
    sites_update(sites, view->nodes, view->nodes_count, self);
    if (!sites_are_used(sites)) {
        return;
    }
    view->sites = calloc(view->count + 1, sizeof *view->sites);
    for (size_t i = 0; view->sites != NULL && i < view->count; i++) {
        view->sites[i] = sites_of(sites, &view->vnodes[i].peer);
    }
}

void holders_update(struct holders *holders, const struct ring *ring, size_t copies) {
    struct view *view = calloc(1, sizeof *view);
    if (view == NULL) {
        return; /* the old one is better than none */
    }
    view->copies = copies < HOLDERS_MAX ? copies : HOLDERS_MAX;
    view->self = ring_vnode_at(ring, 0)->peer.address;
    if (holders_collect(holders, ring, view) && collect_nodes(view)) {
        collect_sites(holders->sites, view, &ring_vnode_at(ring, 0)->peer);
        collect_own(ring, view);
        pthread_mutex_lock(&holders->lock);
        if (is_changed(&holders->view, view)) {
            holders->generation++;
            memset(holders->cache, 0, sizeof holders->cache);
            holders->cache_until_us = 0;
        }
        struct view old = holders->view;
        holders->view = *view;
        pthread_mutex_unlock(&holders->lock);
        *view = old;
    }
    free(view->vnodes);
    free(view->sites);
    free(view->nodes);
    free(view);
}

/* ---- any thread ---- */

static bool find_own(const struct view *view, struct ring_id vnode, struct holders_arc *ret_arc) {
    for (size_t i = 0; i < view->own_count; i++) {
        if (ring_id_is_owned(view->own[i].from, vnode, view->own[i].to)) {
            *ret_arc = view->own[i];
            return true;
        }
    }
    return false;
}

static bool find_cached(const struct holders *holders, struct ring_id vnode, struct holders_arc *ret_arc) {
    uint64_t now_us = holders->cache_until_us > 0 ? clock_monotonic_us(&clock_system) : 0;
    if (now_us >= holders->cache_until_us) {
        return false;
    }
    for (size_t i = 0; i < CACHE_MAX; i++) {
        const struct found *found = &holders->cache[i];
        if (now_us < found->until_us && ring_id_is_owned(found->from, vnode, found->to)) {
            *ret_arc = holders->cache_arcs[i];
            return true;
        }
    }
    return false;
}

static void keep_found(struct holders *holders, const struct holders_arc *arc) {
    size_t i = holders->cache_next;
    uint64_t until_us = clock_monotonic_us(&clock_system) + CACHE_US;
    holders->cache[i] = (struct found){.from = arc->from, .to = arc->to, .until_us = until_us};
    holders->cache_arcs[i] = *arc;
    holders->cache_until_us = until_us;
    holders->cache_next = (i + 1) % CACHE_MAX;
}

/* A lookup says which nodes hold a position and all behind it, not where the arc begins: a part would be
 * taken for the whole arc. */
static void widen(const struct view *view, struct ring_id vnode, struct holders_arc *arc) {
    struct holders_arc guessed;
    if (guess(view, vnode, &guessed) && ring_id_equal(guessed.to, arc->to)) {
        arc->from = guessed.from;
    }
}

bool holders_know(struct holders *holders, struct ring_id vnode, struct holders_arc *ret_arc) {
    pthread_mutex_lock(&holders->lock);
    bool is_known = find_own(&holders->view, vnode, ret_arc);
    if (!is_known && find_cached(holders, vnode, ret_arc)) {
        widen(&holders->view, vnode, ret_arc);
        is_known = true;
    }
    is_known = is_known || guess(&holders->view, vnode, ret_arc);
    pthread_mutex_unlock(&holders->lock);
    return is_known;
}

size_t holders_own(struct holders *holders, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    pthread_mutex_lock(&holders->lock);
    size_t count = holders->view.own_count;
    memcpy(out, holders->view.own, count * sizeof *out);
    pthread_mutex_unlock(&holders->lock);
    return count;
}

size_t holders_all(struct holders *holders, struct peer *out, size_t peers_max) {
    pthread_mutex_lock(&holders->lock);
    size_t count = holders->view.nodes_count;
    if (peers_max > 0 && count > 0) {
        memcpy(out, holders->view.nodes, (count < peers_max ? count : peers_max) * sizeof *out);
    }
    pthread_mutex_unlock(&holders->lock);
    return count;
}

/* Our own lists say it more surely than what was heard. */
static const struct holders_arc *own_to(const struct view *view, struct ring_id to) {
    for (size_t i = 0; i < view->own_count; i++) {
        if (ring_id_equal(view->own[i].to, to)) {
            return &view->own[i];
        }
    }
    return NULL;
}

size_t holders_each(struct holders *holders, void (*visit)(void *context, const struct holders_arc *arc),
                    void *context) {
    struct holders_arc arc;
    pthread_mutex_lock(&holders->lock);
    const struct view *view = &holders->view;
    for (size_t i = 0; i < view->count; i++) {
        const struct holders_arc *own = own_to(view, view->vnodes[i].id);
        if (guess(view, view->vnodes[i].id, &arc)) {
            visit(context, own != NULL ? own : &arc);
        }
    }
    size_t count = view->nodes_count;
    pthread_mutex_unlock(&holders->lock);
    return count;
}

bool holders_locate(struct holders *holders, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer) {
    bool is_found = false;
    pthread_mutex_lock(&holders->lock);
    for (size_t i = 0; i < holders->view.nodes_count && !is_found; i++) {
        is_found = memcmp(holders->view.nodes[i].key, key, PEER_KEY_SIZE) == 0;
        if (is_found) {
            *ret_peer = holders->view.nodes[i];
        }
    }
    pthread_mutex_unlock(&holders->lock);
    return is_found;
}

bool holders_have_key(struct holders *holders, const uint8_t key[PEER_KEY_SIZE]) {
    struct peer peer;
    return holders_locate(holders, key, &peer);
}

static bool is_own(const struct view *view, struct ring_id id) {
    for (size_t i = 0; i < view->own_count; i++) {
        if (ring_id_equal(view->own[i].to, id)) {
            return true;
        }
    }
    return false;
}

size_t holders_after(struct holders *holders, struct ring_id own_vnode, struct vnode *out,
                     size_t vnodes_max) {
    size_t count = 0;
    pthread_mutex_lock(&holders->lock);
    const struct view *view = &holders->view;
    if (is_own(view, own_vnode)) {
        size_t position = first_from(view, ring_id_add_power(own_vnode, 0));
        for (; count < vnodes_max && count < view->count; count++) {
            out[count] = view->vnodes[(position + count) % view->count];
        }
    }
    pthread_mutex_unlock(&holders->lock);
    return count;
}

size_t holders_vnodes_count(struct holders *holders) {
    pthread_mutex_lock(&holders->lock);
    size_t count = holders->view.count;
    pthread_mutex_unlock(&holders->lock);
    return count;
}

size_t holders_copies(struct holders *holders) {
    pthread_mutex_lock(&holders->lock);
    size_t copies = holders->view.own_count > 0 ? holders->view.copies : 0;
    pthread_mutex_unlock(&holders->lock);
    return copies;
}

uint64_t holders_generation(struct holders *holders) {
    pthread_mutex_lock(&holders->lock);
    uint64_t generation = holders->generation;
    pthread_mutex_unlock(&holders->lock);
    return generation;
}

/* ---- lookups ---- */

/* Of a thread that waits and of the ring, which answers: the last one frees it. */
struct search {
    pthread_mutex_t lock;
    struct bell over;
    bool is_over;
    bool is_left; /* nobody waits any more */
    struct transport_question question;
    struct transport_answer answer;
};

static void search_free(struct search *search) {
    pthread_mutex_destroy(&search->lock);
    free(search);
}

static void on_answered(struct transport_question *question, const struct transport_answer *answer) {
    struct search *search = question->context;
    pthread_mutex_lock(&search->lock);
    search->answer = *answer;
    search->is_over = true;
    bool is_left = search->is_left;
    bell_ring(&search->over);
    pthread_mutex_unlock(&search->lock);
    if (is_left) {
        search_free(search);
    }
}

/* The ring answers every question by itself, at the latest after its own time-outs. False: not by then; the
 * search is the ring's. */
static bool holders_look_up(struct holders *holders, struct search *search, struct ring_id key,
                            uint64_t until_us) {
    search->is_over = false;
    search->question = (struct transport_question){
        .key = key, .vnodes_wanted = TRANSPORT_VNODES_MAX, .answered = on_answered, .context = search};
    transport_ask(holders->transport, &search->question);
    pthread_mutex_lock(&search->lock);
    bool is_late = false;
    while (!search->is_over && !is_late) {
        (void)bell_await(&search->over, &search->lock, until_us);
        is_late = !search->is_over && clock_monotonic_us(&clock_system) >= until_us;
    }
    search->is_left = is_late;
    pthread_mutex_unlock(&search->lock);
    return !is_late;
}

/* One id before it, so that (from, to] holds the place itself. */
static struct ring_id before(struct ring_id id) {
    return (struct ring_id){id.high - (id.low == 0), id.low - 1};
}

static bool holders_are_at_one_site(struct sites *sites, const struct holders_arc *arc) {
    uint64_t site = sites_of(sites, &arc->peers[0]);
    for (size_t i = 1; i < arc->count; i++) {
        if (sites_of(sites, &arc->peers[i]) != site) {
            return false;
        }
    }
    return true;
}

/* The next node clockwise. True: there are enough. sites: NULL: any will do. */
static bool take_next(struct holders_arc *arc, const struct peer *peer, const struct address *self,
                      size_t copies, struct sites *sites) {
    bool is_full = arc->count >= copies;
    if (!is_full) {
        holders_add(arc, peer, self);
    } else if (sites_of(sites, peer) != sites_of(sites, &arc->peers[0])) { /* all are of one site, so far */
        holders_replace_last(arc, peer, self);
    }
    return arc->count >= copies && (sites == NULL || !holders_are_at_one_site(sites, arc));
}

/* ERR_TIMEOUT: it takes longer; the search goes on by itself. */
static enum err search_ring(struct holders *holders, struct search *search, struct ring_id vnode,
                            const struct address *self, size_t copies, uint64_t until_us,
                            struct holders_arc *arc) {
    struct ring_id key = vnode;
    struct ring_id first = {0};
    struct sites *sites = copies > 1 && sites_are_used(holders->sites) ? holders->sites : NULL;
    unsigned rounds_max = sites != NULL ? ROUNDS_SITES_MAX : ROUNDS_MAX;
    *arc = (struct holders_arc){.from = before(vnode), .self_rank = -1};
    for (unsigned round = 0; round < rounds_max; round++) {
        bool is_done = false;
        if (!holders_look_up(holders, search, key, until_us)) {
            return ERR_TIMEOUT;
        }
        const struct transport_answer *answer = &search->answer;
        if (answer->err != ERR_OK) {
            return arc->count > 0 ? ERR_OK : answer->err;
        }
        if (round == 0) {
            first = answer->vnodes[0].id;
            arc->to = first;
        }
        for (uint8_t i = 0; i < answer->vnodes_count && !is_done; i++) {
            bool is_around = (round > 0 || i > 0) && ring_id_equal(answer->vnodes[i].id, first);
            if (is_around) {
                return ERR_OK;
            }
            if (answer->vnodes[i].peer.address.port != 0) {
                is_done = take_next(arc, &answer->vnodes[i].peer, self, copies, sites);
            }
        }
        if (is_done || answer->vnodes_count < 2) {
            return ERR_OK;
        }
        key = ring_id_add_power(answer->vnodes[answer->vnodes_count - 1].id, 0);
    }
    return ERR_OK;
}

static enum err find_until(struct holders *holders, struct ring_id vnode, uint64_t until_us,
                           struct holders_arc *ret_arc) {
    pthread_mutex_lock(&holders->lock);
    bool is_known = find_own(&holders->view, vnode, ret_arc) || find_cached(holders, vnode, ret_arc);
    struct address self = holders->view.self;
    size_t copies = holders->view.copies;
    pthread_mutex_unlock(&holders->lock);
    if (is_known) {
        return ERR_OK;
    }
    if (holders->transport == NULL || copies == 0) {
        return ERR_NOT_FOUND;
    }
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return ERR_MEMORY;
    }
    struct holders_arc arc;
    uint64_t begin_us = clock_monotonic_us(&clock_system);
    pthread_mutex_init(&search->lock, NULL);
    enum err err = search_ring(holders, search, vnode, &self, copies, until_us, &arc);
    if (err != ERR_TIMEOUT) {
        search_free(search);
    }
    if (err != ERR_OK) {
        return err;
    }
    pthread_mutex_lock(&holders->lock);
    keep_found(holders, &arc);
    rtt_sample(&holders->usual, clock_monotonic_us(&clock_system) - begin_us);
    pthread_mutex_unlock(&holders->lock);
    *ret_arc = arc;
    return ERR_OK;
}

enum err holders_find(struct holders *holders, struct ring_id vnode, struct holders_arc *ret_arc) {
    return find_until(holders, vnode, BELL_NEVER_US, ret_arc);
}

enum err holders_find_soon(struct holders *holders, struct ring_id vnode, struct holders_arc *ret_arc) {
    uint64_t now_us = clock_monotonic_us(&clock_system);
    pthread_mutex_lock(&holders->lock);
    const struct rtt usual = holders->usual;
    bool is_late = now_us < holders->late_until_us;
    pthread_mutex_unlock(&holders->lock);
    if (is_late && holders_know(holders, vnode, ret_arc)) {
        return ERR_OK; /* one page has several lookups: they do not all wait for the same node */
    }
    uint64_t patience_us = usual.smoothed_us + UINT64_C(4) * usual.variation_us;
    patience_us = patience_us > SOON_US_MIN ? patience_us : SOON_US_MIN;
    enum err err = find_until(holders, vnode, now_us + patience_us, ret_arc);
    if (err != ERR_TIMEOUT) {
        return err;
    }
    pthread_mutex_lock(&holders->lock);
    holders->late_until_us = clock_monotonic_us(&clock_system) + LATE_US;
    pthread_mutex_unlock(&holders->lock);
    return holders_know(holders, vnode, ret_arc) ? ERR_OK : err;
}

/* ---- as a table ---- */

static size_t ask_own(void *context, struct holders_arc out[HOLDERS_ARCS_MAX]) {
    return holders_own(context, out);
}

static bool ask_known(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return holders_know(context, place, ret_arc);
}

static enum err ask_find(void *context, struct ring_id place, struct holders_arc *ret_arc) {
    return holders_find(context, place, ret_arc);
}

static size_t ask_copies(void *context) {
    return holders_copies(context);
}

static uint64_t ask_generation(void *context) {
    return holders_generation(context);
}

static bool ask_locate(void *context, const uint8_t key[PEER_KEY_SIZE], struct peer *ret_peer) {
    return holders_locate(context, key, ret_peer);
}

struct holders_source holders_source(struct holders *holders) {
    return (struct holders_source){ask_own,        ask_known,  ask_find, ask_copies,
                                   ask_generation, ask_locate, holders};
}
