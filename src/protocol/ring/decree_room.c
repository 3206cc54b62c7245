#include "protocol/ring/decree_room.h"

static bool room_is_same(const uint8_t a[PEER_KEY_SIZE], const uint8_t b[PEER_KEY_SIZE]) {
    return memcmp(a, b, PEER_KEY_SIZE) == 0;
}

static size_t room_count_of(const struct decree_seat *seats, size_t count,
                            const uint8_t author[PEER_KEY_SIZE]) {
    size_t of_author = 0;
    for (size_t i = 0; i < count; i++) {
        of_author += room_is_same(seats[i].author, author);
    }
    return of_author;
}

/* Matters less, or as much and is older. */
static bool room_goes_before(const struct decree_seat *a, const struct decree_seat *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->version < b->version;
}

/* The one that goes first of this author (NULL: of all members); DECREE_ROOM_FREE: there is none. */
static int room_find_least(const struct decree_seat *seats, size_t count, const struct charter *charter,
                           const uint8_t *author) {
    int least = DECREE_ROOM_FREE;
    for (size_t i = 0; i < count; i++) {
        bool is_candidate = author != NULL ? room_is_same(seats[i].author, author)
                                           : !room_is_same(seats[i].author, charter->founder);
        if (is_candidate && (least == DECREE_ROOM_FREE || room_goes_before(&seats[i], &seats[least]))) {
            least = (int)i;
        }
    }
    return least;
}

/* A seat of the member that has the most; *ret_count: how many it has. */
static size_t room_find_greediest(const struct decree_seat *seats, size_t count,
                                  const struct charter *charter, size_t *ret_count) {
    size_t greediest = 0;
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        size_t of_author = room_is_same(seats[i].author, charter->founder)
                               ? 0
                               : room_count_of(seats, count, seats[i].author);
        if (of_author > most) {
            most = of_author;
            greediest = i;
        }
    }
    *ret_count = most;
    return greediest;
}

enum err decree_room_find(const struct decree_seat *seats, size_t count, const struct charter *charter,
                          const struct decree_seat *wanted, int *ret_evicted, struct err_detail *detail) {
    size_t founders = room_count_of(seats, count, charter->founder);
    if (room_is_same(wanted->author, charter->founder)) {
        if (founders >= DECREE_FOUNDER_COUNT_MAX) {
            return err_set(detail, ERR_LIMIT, "the founder has %d decrees, and there is no room for more",
                           DECREE_FOUNDER_COUNT_MAX);
        }
        *ret_evicted = DECREE_ROOM_FREE;
        return ERR_OK;
    }
    size_t each_max = charter->is_open ? DECREE_OPEN_MEMBER_COUNT_MAX : DECREE_MEMBER_COUNT_MAX;
    size_t all_max = charter->is_open ? DECREE_OPEN_MEMBERS_COUNT_MAX : DECREE_MEMBERS_COUNT_MAX;
    size_t own = room_count_of(seats, count, wanted->author);
    if (own < each_max && count - founders < all_max) {
        *ret_evicted = DECREE_ROOM_FREE;
        return ERR_OK;
    }
    bool is_own_full = own >= each_max;
    int least = room_find_least(seats, count, charter, is_own_full ? wanted->author : NULL);
    if (seats[least].rank < wanted->rank) {
        *ret_evicted = least;
        return ERR_OK;
    }
    if (is_own_full) {
        return err_set(detail, ERR_LIMIT, "a member of this ring has at most %zu decrees", each_max);
    }
    size_t most;
    size_t greediest = room_find_greediest(seats, count, charter, &most);
    if (most <= own + 1) { /* to take turns would help nobody */
        return err_set(detail, ERR_LIMIT, "the members of this ring have %zu decrees, and no room for more",
                       all_max);
    }
    *ret_evicted = room_find_least(seats, count, charter, seats[greediest].author);
    return ERR_OK;
}
