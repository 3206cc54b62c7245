/* decree_room: nobody takes the founder's room, and members crowd out those that flood. */
#include "protocol/ring/decree_room.h"

#include "unit.h"

enum { SEATS_MAX = DECREE_FOUNDER_COUNT_MAX + DECREE_MEMBERS_COUNT_MAX, AUTHORS_MAX = 2048 };

struct room {
    struct charter charter;
    uint8_t authors[AUTHORS_MAX][PEER_KEY_SIZE]; /* 0 is the founder */
    struct decree_seat seats[SEATS_MAX];
    size_t count;
};

static struct room *make(bool is_open) {
    static struct room room;
    room.count = 0;
    charter_init(&room.charter);
    room.charter.is_open = is_open;
    for (unsigned i = 0; i < AUTHORS_MAX; i++) {
        memcpy(room.authors[i], &i, sizeof i);
    }
    memcpy(room.charter.founder, room.authors[0], PEER_KEY_SIZE);
    return &room;
}

static enum err ask(const struct room *room, unsigned author, enum decree_rank rank, int *ret_evicted) {
    struct decree_seat wanted = {.author = room->authors[author], .version = 1000000, .rank = rank};
    return decree_room_find(room->seats, room->count, &room->charter, &wanted, ret_evicted, NULL);
}

static void seat(struct room *room, unsigned author, uint64_t version, enum decree_rank rank) {
    room->seats[room->count++] =
        (struct decree_seat){.author = room->authors[author], .version = version, .rank = rank};
}

/* As many members as there is room for, each with this many. */
static void fill(struct room *room, size_t all, unsigned each, enum decree_rank rank) {
    for (size_t i = 0; i < all; i++) {
        seat(room, 1 + (unsigned)i / each, i, rank);
    }
}

static void the_founders_room_is_its_own(void **state) {
    struct room *room = make(false);
    int evicted = 0;
    (void)state;
    fill(room, DECREE_MEMBERS_COUNT_MAX, DECREE_MEMBER_COUNT_MAX, DECREE_LIVE);
    for (unsigned i = 0; i < DECREE_FOUNDER_COUNT_MAX; i++) {
        assert_int_equal(ask(room, 0, DECREE_LIVE, &evicted), ERR_OK);
        assert_int_equal(evicted, DECREE_ROOM_FREE);
        seat(room, 0, i, DECREE_LIVE);
    }
    assert_int_equal(ask(room, 0, DECREE_LIVE, &evicted), ERR_LIMIT);
}

static void a_member_has_its_share_and_no_more(void **state) {
    struct room *room = make(false);
    int evicted = 0;
    (void)state;
    for (unsigned i = 0; i < DECREE_MEMBER_COUNT_MAX; i++) {
        assert_int_equal(ask(room, 1, DECREE_LIVE, &evicted), ERR_OK);
        seat(room, 1, i, i == 7 ? DECREE_WITHDRAWN : DECREE_LIVE);
    }
    assert_int_equal(ask(room, 1, DECREE_WITHDRAWN, &evicted), ERR_LIMIT);
    assert_int_equal(ask(room, 1, DECREE_LIVE, &evicted), ERR_OK);
    assert_int_equal(evicted, 7);
    assert_int_equal(ask(room, 2, DECREE_LIVE, &evicted), ERR_OK);
    assert_int_equal(evicted, DECREE_ROOM_FREE);
}

static void what_matters_least_goes_first(void **state) {
    struct room *room = make(false);
    int evicted = 0;
    (void)state;
    fill(room, DECREE_MEMBERS_COUNT_MAX, 1, DECREE_LIVE);
    assert_int_equal(ask(room, 1500, DECREE_LIVE, &evicted), ERR_LIMIT);
    room->seats[20].rank = DECREE_WITHDRAWN;
    assert_int_equal(ask(room, 1500, DECREE_WITHDRAWN, &evicted), ERR_LIMIT);
    assert_int_equal(ask(room, 1500, DECREE_LIVE, &evicted), ERR_OK);
    assert_int_equal(evicted, 20);
    room->seats[30].rank = DECREE_IDLE;
    assert_int_equal(ask(room, 1500, DECREE_WITHDRAWN, &evicted), ERR_OK);
    assert_int_equal(evicted, 30);
    assert_int_equal(ask(room, 1500, DECREE_IDLE, &evicted), ERR_LIMIT);
}

static void the_greediest_makes_room_for_others(void **state) {
    struct room *room = make(false);
    int evicted = 0;
    (void)state;
    fill(room, DECREE_MEMBERS_COUNT_MAX - 3, 1, DECREE_LIVE);
    for (unsigned i = 0; i < 3; i++) {
        seat(room, 1400, 10 - i, DECREE_LIVE);
    }
    assert_int_equal(ask(room, 1500, DECREE_LIVE, &evicted), ERR_OK);
    assert_int_equal(evicted, DECREE_MEMBERS_COUNT_MAX - 1); /* its oldest */
    assert_int_equal(ask(room, 1400, DECREE_LIVE, &evicted), ERR_LIMIT);
}

static void an_open_ring_has_less_room_for_members(void **state) {
    struct room *room = make(true);
    int evicted = 0;
    (void)state;
    fill(room, DECREE_OPEN_MEMBERS_COUNT_MAX, DECREE_OPEN_MEMBER_COUNT_MAX, DECREE_LIVE);
    assert_int_equal(ask(room, 1, DECREE_LIVE, &evicted), ERR_LIMIT);
    assert_int_equal(ask(room, 0, DECREE_LIVE, &evicted), ERR_OK);
    assert_int_equal(evicted, DECREE_ROOM_FREE);
    assert_int_equal(ask(room, 1500, DECREE_LIVE, &evicted), ERR_OK);
    assert_int_not_equal(evicted, DECREE_ROOM_FREE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_founders_room_is_its_own),
        cmocka_unit_test(a_member_has_its_share_and_no_more),
        cmocka_unit_test(what_matters_least_goes_first),
        cmocka_unit_test(the_greediest_makes_room_for_others),
        cmocka_unit_test(an_open_ring_has_less_room_for_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
