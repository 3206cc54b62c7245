#include "protocol/crowd/view.h"

_Static_assert(CROWD_VIEW_MAX <= 64, "positions are bits of a word in view_merge()");

void view_init(struct view *view, const struct peer *self, uint8_t size_max) {
    ASSERT(size_max > 0 && size_max <= CROWD_VIEW_MAX);
    view->self = *self;
    view->size_max = size_max;
    view->count = 0;
}

/* address_equal() in two words, the one first in which addresses differ: the inner loop of a shuffle. */
static inline bool view_is_same(const struct address *a, const struct address *b) {
    uint64_t words[2][2];
    memcpy(words[0], a->ip, sizeof a->ip);
    memcpy(words[1], b->ip, sizeof b->ip);
    return words[0][1] == words[1][1] && words[0][0] == words[1][0] && a->port == b->port;
}

int view_find(const struct view *view, const struct address *address) {
    for (int i = 0; i < view->count; i++) {
        if (view_is_same(&view->neighbours[i].peer.address, address)) {
            return i;
        }
    }
    return -1;
}

void view_remove(struct view *view, size_t position) {
    ASSERT(position < view->count);
    view->neighbours[position] = view->neighbours[--view->count];
}

static bool view_is_self(const struct view *view, const struct address *address) {
    return view_is_same(&view->self.address, address);
}

bool view_add(struct view *view, const struct crowd_neighbour *neighbour) {
    const struct address *address = &neighbour->peer.address;
    if (address->port == 0 || view_is_self(view, address)) {
        return false;
    }
    int position = view_find(view, address);
    if (position >= 0) {
        struct crowd_neighbour *known = &view->neighbours[position];
        if (memcmp(known->peer.key, neighbour->peer.key, PEER_KEY_SIZE) != 0) {
            *known = *neighbour;
        }
        return true;
    }
    if (view->count == view->size_max) {
        return false;
    }
    view->neighbours[view->count++] = *neighbour;
    return true;
}

size_t view_pick(const struct view *view, struct prng *prng, int without, size_t count,
                 uint8_t out[CROWD_VIEW_MAX]) {
    ASSERT(without < view->count);
    size_t left = 0;
    for (int i = 0; i < view->count; i++) {
        out[left] = (uint8_t)i;
        left += i != without;
    }
    count = count < left ? count : left;
    for (size_t i = 0; i < count; i++) {
        size_t other = i + (size_t)prng_below(prng, left - i);
        uint8_t taken = out[other];
        out[other] = out[i];
        out[i] = taken;
    }
    return count;
}

static bool view_is_among(const struct crowd_neighbour *neighbours, size_t count,
                          const struct address *address) {
    size_t i = 0;
    while (i < count && !view_is_same(&neighbours[i].peer.address, address)) {
        i++;
    }
    return i < count;
}

/*
 * Those that both sides sent stay on both sides (`kept`, bits of positions): each could otherwise overwrite
 * the one that it counts on the other to have. That, and that both go by the order of the message, is what
 * theorem 1 rests on, if the two send lists of different lengths.
 */
static uint64_t find_kept(const struct view *view, const struct crowd_neighbour *received,
                          size_t received_count, uint64_t *ret_new) {
    uint64_t kept = 0;
    uint64_t is_new = 0;
    for (size_t i = 0; i < received_count; i++) {
        const struct address *address = &received[i].peer.address;
        int position = view_find(view, address);
        if (position >= 0) {
            kept |= UINT64_C(1) << position;
        } else if (address->port != 0 && !view_is_self(view, address) &&
                   !view_is_among(received, i, address)) {
            is_new |= UINT64_C(1) << i;
        }
    }
    *ret_new = is_new;
    return kept;
}

/* The next of `sent`, from *index on, that is there and may be overwritten; -1: none. */
static int next_sent(const struct view *view, const struct address *sent, size_t sent_count, uint64_t kept,
                     size_t *index) {
    while (*index < sent_count) {
        int position = view_find(view, &sent[(*index)++]);
        if (position >= 0 && (kept >> position & 1) == 0) {
            return position;
        }
    }
    return -1;
}

void view_merge(struct view *view, const struct crowd_neighbour *received, size_t received_count,
                const struct address *sent, size_t sent_count) {
    ASSERT(received_count <= 64);
    uint64_t is_new;
    uint64_t kept = find_kept(view, received, received_count, &is_new);
    uint8_t known_count = view->count;
    size_t sent_index = 0;
    for (size_t i = 0; i < received_count; i++) {
        if ((is_new >> i & 1) == 0) {
            continue;
        }
        int position =
            view->count < view->size_max ? view->count : next_sent(view, sent, sent_count, kept, &sent_index);
        if (position < 0) {
            return;
        }
        view->neighbours[position] = received[i];
        view->count = (uint8_t)(view->count + (position == view->count));
        kept |= UINT64_C(1) << position;
    }
    ASSERT(view->count >= known_count);
}

int view_oldest(const struct view *view) {
    int oldest = view->count == 0 ? -1 : 0;
    for (int i = 1; i < view->count; i++) {
        oldest = view->neighbours[i].age > view->neighbours[oldest].age ? i : oldest;
    }
    return oldest;
}

void view_age(struct view *view) {
    for (int i = 0; i < view->count; i++) {
        view->neighbours[i].age += view->neighbours[i].age < UINT32_MAX;
    }
}
