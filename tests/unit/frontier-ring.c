/* frontier-ring - what a frontier holds for others: outgoing links, and URLs that another node fetches. */
#include <signal.h>
#include <sys/wait.h>

#include "await.h"
#include "base/prng.h"
#include "frontier-fixture.h"

enum { URLS_COUNT = 1500, LINKS_MAX = 64, WORK_SIZE = 1 << 16 };

/* "http://a.test/17": is it ours to fetch? The frontier's thread asks too. */
static _Atomic bool is_ours[URLS_COUNT];
static _Atomic unsigned asked_count;
static unsigned told_outgoing_count;

static unsigned number_of(struct bytes url) {
    uint64_t number = 0;
    size_t from = url.size;
    while (url.data[from - 1] != '/') {
        from--;
    }
    assert_true(bytes_to_u64(bytes_skip(url, from), URLS_COUNT - 1, &number));
    return (unsigned)number;
}

/* By number, but from the last to the first. */
static void place_of(unsigned number, uint8_t out[ROUTE_POSITION_SIZE]) {
    memset(out, 0, ROUTE_POSITION_SIZE);
    out[0] = (uint8_t)((URLS_COUNT - number) >> 8);
    out[1] = (uint8_t)(URLS_COUNT - number);
}

static bool ask_elsewhere(void *context, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]) {
    (void)context;
    unsigned number = number_of(url);
    place_of(number, ret_place);
    atomic_fetch_add(&asked_count, 1);
    return !atomic_load(&is_ours[number]);
}

static void on_outgoing(void *context) {
    (void)context;
    told_outgoing_count++;
}

static void own(unsigned from, unsigned to, bool is_so) {
    for (unsigned i = from; i < to; i++) {
        atomic_store(&is_ours[i], is_so);
    }
}

static void open_shared(struct fixture *fixture) {
    fixture->config.is_elsewhere = ask_elsewhere;
    fixture->config.outgoing = on_outgoing;
    open_frontier(fixture);
}

static struct frontier_link numbered(char text[TEXT_SIZE], unsigned number, enum route_verdict verdict,
                                     bool is_outgoing) {
    char path[16];
    snprintf(path, sizeof path, "%u", number);
    struct frontier_link link = link_of(text, "a.test", path, FRONTIER_PAGE, 3);
    link.verdict = verdict;
    link.is_outgoing = is_outgoing;
    place_of(number, link.place);
    return link;
}

static size_t add_one(struct fixture *fixture, unsigned number, enum route_verdict verdict,
                      bool is_outgoing) {
    char text[TEXT_SIZE];
    size_t added_count = 0;
    struct frontier_link link = numbered(text, number, verdict, is_outgoing);
    assert_int_equal(frontier_add(fixture->frontier, &link, 1, &added_count), ERR_OK);
    return added_count;
}

static void flush(struct fixture *fixture) {
    assert_int_equal(frontier_put_note(fixture->frontier, "mark", BYTES("x")), ERR_OK);
}

/* The outgoing links behind that of the number (URLS_COUNT: from the first), as "9 7 4"; drop so many. */
static const char *outgoing(struct fixture *fixture, unsigned after, size_t count_max, size_t drop_count,
                            char out[TEXT_SIZE]) {
    struct frontier_outgoing links[LINKS_MAX];
    uint8_t place[ROUTE_POSITION_SIZE] = {0};
    char text[TEXT_SIZE] = "";
    struct buf work;
    size_t count = 0;
    size_t size = 0;
    if (after < URLS_COUNT) {
        place_of(after, place);
        numbered(text, after, ROUTE_AWAY, true);
    }
    buf_init(&work, WORK_SIZE);
    out[0] = '\0';
    flush(fixture);
    assert_int_equal(frontier_read_outgoing(fixture->frontier, place, bytes_of_string(text), &work, links,
                                            count_max, &count),
                     ERR_OK);
    for (size_t i = 0; i < count; i++) {
        uint8_t expected[ROUTE_POSITION_SIZE];
        place_of(number_of(links[i].url), expected);
        assert_memory_equal(links[i].place, expected, sizeof expected);
        assert_true(links[i].depth == 3 && links[i].priority == FRONTIER_PAGE);
        size +=
            (size_t)snprintf(out + size, TEXT_SIZE - size, "%s%u", i > 0 ? " " : "", number_of(links[i].url));
    }
    frontier_drop_outgoing(fixture->frontier, links, drop_count < count ? drop_count : count);
    buf_done(&work);
    return out;
}

/* ---- outgoing links ---- */

static void outgoing_links_are_read_around_the_ring(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_shared(fixture);
    for (unsigned i = 1; i <= 9; i++) {
        assert_int_equal(add_one(fixture, i, ROUTE_AWAY, true), 0);
    }
    struct frontier_stat stat = stat_of(fixture);
    assert_true(stat.known_count == 0 && stat.waiting_count == 0 && stat.outgoing_count == 9);
    assert_int_equal(told_outgoing_count, 9);
    assert_string_equal(outgoing(fixture, URLS_COUNT, LINKS_MAX, 0, text), "9 8 7 6 5 4 3 2 1");
    assert_string_equal(outgoing(fixture, 4, LINKS_MAX, 0, text), "3 2 1 9 8 7 6 5 4");
    assert_string_equal(outgoing(fixture, 4, 4, 0, text), "3 2 1 9");
    assert_string_equal(outgoing(fixture, 4, 0, 0, text), "");
    reopen(fixture);
    assert_int_equal(stat_of(fixture).outgoing_count, 9);
    assert_string_equal(outgoing(fixture, 7, LINKS_MAX, 5, text), "6 5 4 3 2 1 9 8 7");
    assert_string_equal(outgoing(fixture, 1, LINKS_MAX, 0, text), "9 8 7 1");
    reopen(fixture);
    assert_string_equal(outgoing(fixture, 1, LINKS_MAX, 4, text), "9 8 7 1");
    reopen(fixture);
    assert_int_equal(stat_of(fixture).outgoing_count, 0);
    assert_string_equal(outgoing(fixture, 0, LINKS_MAX, 0, text), "");
}

static void no_password_goes_out(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_shared(fixture);
    struct frontier_link link = numbered(text, 5, ROUTE_AWAY, true);
    link.url = BYTES("http://user:secret@a.test/5");
    assert_int_equal(frontier_add(fixture->frontier, &link, 1, NULL), ERR_OK);
    assert_int_equal(add_one(fixture, 4, ROUTE_AWAY, true), 0);
    assert_int_equal(stat_of(fixture).outgoing_count, 1);
    assert_string_equal(outgoing(fixture, URLS_COUNT, LINKS_MAX, 0, text), "4");
}

static void a_link_of_every_page_goes_out_once(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_shared(fixture);
    add_one(fixture, 1, ROUTE_AWAY, true);
    add_one(fixture, 1, ROUTE_AWAY, true);
    assert_int_equal(stat_of(fixture).outgoing_count, 1);
    assert_string_equal(outgoing(fixture, URLS_COUNT, LINKS_MAX, 1, text), "1");
    add_one(fixture, 1, ROUTE_AWAY, true);
    assert_int_equal(stat_of(fixture).outgoing_count, 0); /* they have it */
    frontier_recall(fixture->frontier);
    add_one(fixture, 1, ROUTE_AWAY, true);
    assert_int_equal(stat_of(fixture).outgoing_count, 1); /* they are others now */
    /* Erased and put again within one batch. */
    struct frontier_outgoing link = {.url = BYTES("http://a.test/1")};
    place_of(1, link.place);
    frontier_drop_outgoing(fixture->frontier, &link, 1);
    frontier_recall(fixture->frontier);
    add_one(fixture, 1, ROUTE_AWAY, true);
    reopen(fixture);
    assert_string_equal(outgoing(fixture, URLS_COUNT, LINKS_MAX, 1, text), "1");
}

static bool is_settled(struct fixture *fixture, unsigned number) {
    char text[TEXT_SIZE];
    return frontier_is_settled(fixture->frontier, numbered(text, number, ROUTE_AWAY, true).url);
}

static void what_is_known_or_went_out_is_settled(void **state) {
    struct fixture *fixture = *state;
    open_shared(fixture);
    assert_false(is_settled(fixture, 1));
    add_one(fixture, 1, ROUTE_AWAY, true);
    add_one(fixture, 2, ROUTE_FETCH, true);
    add_one(fixture, 3, ROUTE_ELSEWHERE, false);
    add_one(fixture, 4, ROUTE_AWAY, false);
    assert_true(is_settled(fixture, 1) && is_settled(fixture, 2) && is_settled(fixture, 3));
    assert_false(is_settled(fixture, 4)); /* nobody was told */
    frontier_recall(fixture->frontier);
    assert_false(is_settled(fixture, 1)); /* its holders may be others now */
    assert_true(is_settled(fixture, 2) && is_settled(fixture, 3));
}

static void reading_stops_where_the_buffer_is_full(void **state) {
    struct fixture *fixture = *state;
    struct frontier_outgoing links[LINKS_MAX];
    uint8_t place[ROUTE_POSITION_SIZE] = {0};
    struct buf work;
    size_t count = 0;
    open_shared(fixture);
    for (unsigned i = 1; i <= 9; i++) {
        add_one(fixture, i, ROUTE_AWAY, true);
    }
    flush(fixture);
    buf_init(&work, 3 * strlen("http://a.test/1") + 1);
    assert_int_equal(
        frontier_read_outgoing(fixture->frontier, place, bytes_of(NULL, 0), &work, links, LINKS_MAX, &count),
        ERR_OK);
    assert_int_equal(count, 3);
    assert_bytes_equal(links[2].url, BYTES("http://a.test/7"));
    buf_done(&work);
}

/* ---- elsewhere ---- */

static enum frontier_state state_of(struct fixture *fixture, unsigned number, bool *ret_waits) {
    char text[TEXT_SIZE];
    struct buf work;
    struct frontier_entry entry;
    buf_init(&work, WORK_SIZE);
    struct frontier_link link = numbered(text, number, ROUTE_FETCH, false);
    assert_int_equal(frontier_find(fixture->frontier, link.url, &work, &entry), ERR_OK);
    *ret_waits = entry.is_waiting;
    buf_done(&work);
    return entry.state;
}

static void what_is_elsewhere_waits_when_it_is_recalled(void **state) {
    struct fixture *fixture = *state;
    bool waits = true;
    own(0, URLS_COUNT, false);
    open_shared(fixture);
    assert_int_equal(add_one(fixture, 1, ROUTE_ELSEWHERE, true), 1);
    assert_int_equal(add_one(fixture, 1, ROUTE_FETCH, false), 0);
    assert_int_equal(add_one(fixture, 2, ROUTE_ELSEWHERE, false), 1);
    assert_true(stat_of(fixture).known_count == 2 && stat_of(fixture).outgoing_count == 1);
    assert_null(take(fixture));
    assert_true(state_of(fixture, 1, &waits) == FRONTIER_ELSEWHERE && !waits);
    frontier_recall(fixture->frontier);
    assert_false(frontier_is_empty(fixture->frontier)); /* not before all were looked at */
    assert_null(take(fixture));
    own(1, 2, true);
    frontier_recall(fixture->frontier);
    struct frontier_url *url = take(fixture);
    assert_true(number_of(url->url) == 1 && url->is_doubtful && url->depth == 3);
    frontier_recall(fixture->frontier);
    frontier_recall(fixture->frontier);
    assert_null(try_take(fixture));
    finish(fixture, url, FRONTIER_DONE);
    assert_null(take(fixture));
    assert_true(state_of(fixture, 1, &waits) == FRONTIER_DONE && !waits);
    frontier_recall(fixture->frontier); /* it was done in this visit */
    assert_null(take(fixture));
    assert_int_equal(stat_of(fixture).done_count, 1);
}

static void what_is_ours_no_longer_goes_to_others(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    bool waits = true;
    own(0, URLS_COUNT, true);
    open_shared(fixture);
    add_one(fixture, 1, ROUTE_FETCH, false);
    add_one(fixture, 2, ROUTE_FETCH, false);
    struct frontier_url *url = take(fixture);
    struct frontier_outcome outcome = {.state = FRONTIER_ELSEWHERE};
    struct frontier_link link = numbered(text, 1, ROUTE_AWAY, true);
    own(1, 2, false);
    frontier_finish(fixture->frontier, url, &outcome, &link, 1);
    finish(fixture, take(fixture), FRONTIER_DONE);
    assert_null(take(fixture));
    assert_true(state_of(fixture, 1, &waits) == FRONTIER_ELSEWHERE && !waits);
    assert_string_equal(outgoing(fixture, URLS_COUNT, LINKS_MAX, 1, text), "1");
    /* With the next visit the other one is no longer ours either; and then it is again. */
    own(2, 3, false);
    frontier_start_visit(fixture->frontier, 1, INT64_MAX);
    assert_null(take(fixture));
    assert_true(state_of(fixture, 2, &waits) == FRONTIER_ELSEWHERE && !waits);
    assert_int_equal(outgoing(fixture, URLS_COUNT, LINKS_MAX, 2, text)[0], '2'); /* and 1, by chance */
    own(0, URLS_COUNT, true);
    frontier_recall(fixture->frontier);
    for (unsigned count = 0; count < 2; count++) {
        url = take(fixture);
        assert_true(url->is_doubtful && url->history.visits_count == (number_of(url->url) == 2 ? 1 : 0));
        finish(fixture, url, FRONTIER_DONE);
    }
    assert_null(take(fixture));
    /* A visit in which nothing changed doubts nothing. */
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 2, INT64_MAX);
    url = take(fixture);
    assert_false(url->is_doubtful);
    finish(fixture, url, FRONTIER_DONE);
}

/* The answer of the first is about arcs that are no more. */
static void a_recall_during_a_recall_begins_again(void **state) {
    enum { COUNT = 100 };
    struct fixture *fixture = *state;
    own(0, URLS_COUNT, false);
    open_shared(fixture);
    for (unsigned i = 0; i < COUNT; i++) {
        add_one(fixture, i, ROUTE_ELSEWHERE, false);
    }
    wait_until_empty(fixture);
    atomic_store(&asked_count, 0);
    frontier_recall(fixture->frontier);
    poll_frontier(fixture);
    await_that(atomic_load(&asked_count) >= COUNT); /* read, and not yet polled */
    own(0, URLS_COUNT, true);
    frontier_recall(fixture->frontier);
    unsigned count = 0;
    for (struct frontier_url *url; (url = take(fixture)) != NULL; count++) {
        finish(fixture, url, FRONTIER_DONE);
    }
    assert_int_equal(count, COUNT);
}

/* Whoever fetches them may have lost what it was told. */
static void what_stays_elsewhere_goes_out_now_and_then(void **state) {
    enum { VISITS = 8, COUNT = 200 };
    struct fixture *fixture = *state;
    struct frontier_outgoing links[COUNT];
    static unsigned sent_counts[COUNT];
    uint8_t place[ROUTE_POSITION_SIZE] = {0};
    struct buf work;
    own(0, URLS_COUNT, false);
    open_shared(fixture);
    buf_init(&work, WORK_SIZE);
    for (unsigned i = 0; i < COUNT; i++) {
        add_one(fixture, i, ROUTE_ELSEWHERE, false);
    }
    for (unsigned visit = 0; visit < VISITS; visit++) {
        size_t count = 0;
        frontier_start_visit(fixture->frontier, visit, INT64_MAX);
        wait_until_empty(fixture);
        assert_int_equal(
            frontier_read_outgoing(fixture->frontier, place, bytes_of(NULL, 0), &work, links, COUNT, &count),
            ERR_OK);
        assert_true(count < COUNT / 2 && count == stat_of(fixture).outgoing_count);
        for (size_t i = 0; i < count; i++) {
            sent_counts[number_of(links[i].url)]++;
        }
        frontier_drop_outgoing(fixture->frontier, links, count);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(sent_counts[i], 1);
    }
    buf_done(&work);
}

/* Arcs change again and again: each URL is given out as ours once, and in the end every one was. */
static void nothing_is_lost_or_done_twice_while_arcs_change(void **state) {
    enum { ROUNDS = 30 };
    struct fixture *fixture = *state;
    static unsigned done_counts[URLS_COUNT];
    struct prng prng;
    memset(done_counts, 0, sizeof done_counts);
    prng_init(&prng, 7);
    own(0, URLS_COUNT, false);
    fixture->config.window_max = 16;
    open_shared(fixture);
    for (unsigned i = 0; i < URLS_COUNT; i++) {
        atomic_store(&is_ours[i], prng_below(&prng, 3) == 0);
        add_one(fixture, i, atomic_load(&is_ours[i]) ? ROUTE_FETCH : ROUTE_ELSEWHERE, false);
    }
    for (unsigned round = 0; round <= ROUNDS; round++) {
        size_t takes = round == ROUNDS ? SIZE_MAX : prng_below(&prng, 2 * URLS_COUNT / ROUNDS);
        for (unsigned i = 0; i < URLS_COUNT; i++) {
            bool is_flipped = round == ROUNDS || prng_below(&prng, 10) == 0;
            atomic_store(&is_ours[i], is_flipped ? round == ROUNDS || prng_below(&prng, 2) == 0 : is_ours[i]);
        }
        frontier_recall(fixture->frontier);
        for (size_t i = 0; i < takes; i++) {
            struct frontier_url *url = take(fixture);
            if (url == NULL) {
                break;
            }
            unsigned number = number_of(url->url);
            bool is_mine = atomic_load(&is_ours[number]);
            done_counts[number] += is_mine ? 1 : 0;
            finish(fixture, url, is_mine ? FRONTIER_DONE : FRONTIER_ELSEWHERE);
        }
        if (round % 7 == 6) {
            reopen(fixture);
        }
    }
    for (unsigned i = 0; i < URLS_COUNT; i++) {
        assert_int_equal(done_counts[i], 1);
    }
    assert_true(stat_of(fixture).known_count == URLS_COUNT && stat_of(fixture).done_count == URLS_COUNT);
}

/* ---- kill -9 ---- */

/* One page with links of all three kinds, all that is elsewhere recalled in part, and no farewell. */
static int child_leaves(const char *directory) {
    static struct fixture fixture;
    static char texts[URLS_COUNT][TEXT_SIZE];
    static struct frontier_link links[URLS_COUNT];
    snprintf(fixture.directory, sizeof fixture.directory, "%s", directory);
    own(0, URLS_COUNT, false);
    open_shared(&fixture);
    add_one(&fixture, 0, ROUTE_FETCH, false);
    for (unsigned i = 1; i < URLS_COUNT; i++) {
        links[i] = numbered(texts[i], i, i % 3 == 0 ? ROUTE_AWAY : ROUTE_ELSEWHERE, i <= 30);
    }
    struct frontier_outcome outcome = {.state = FRONTIER_DONE, .status = 200};
    frontier_finish(fixture.frontier, take(&fixture), &outcome, links + 1, URLS_COUNT - 1);
    flush(&fixture);
    own(0, URLS_COUNT, true);
    frontier_recall(fixture.frontier);
    while (stat_of(&fixture).waiting_count == 0) {
        poll_frontier(&fixture);
    }
    flush(&fixture);
    kill(getpid(), SIGKILL);
    return 0;
}

/* The child kills itself in the end. */
static void run_child(const struct fixture *fixture, const char *word) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test-frontier-ring", word, fixture->directory, NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void end_when_durable(struct frontier_wait *wait, bool is_durable) {
    (void)wait;
    if (is_durable) {
        kill(getpid(), SIGKILL);
    }
    _exit(98);
}

static int child_waits(const char *directory) {
    static struct fixture fixture;
    static struct frontier_wait wait = {.done = end_when_durable};
    snprintf(fixture.directory, sizeof fixture.directory, "%s", directory);
    open_shared(&fixture);
    add_one(&fixture, 7, ROUTE_FETCH, false);
    frontier_when_durable(fixture.frontier, &wait);
    for (unsigned turns_count = 0; await_turn(&turns_count);) {
    }
    return 0;
}

static void note_durable(struct frontier_wait *wait, bool is_durable) {
    assert_true(is_durable);
    wait->done = NULL;
}

static void who_waits_is_told_when_it_is_on_disk(void **state) {
    struct fixture *fixture = *state;
    struct frontier_wait wait = {.done = note_durable};
    run_child(fixture, "wait");
    own(0, URLS_COUNT, true);
    open_shared(fixture);
    assert_int_equal(add_one(fixture, 7, ROUTE_FETCH, false), 0); /* it is known */
    assert_int_equal(add_one(fixture, 8, ROUTE_FETCH, false), 1);
    frontier_when_durable(fixture->frontier, &wait);
    close_frontier(fixture);
    assert_null(wait.done); /* at the end at the latest */
    open_shared(fixture);
}

static void a_crash_takes_nothing_that_was_written(void **state) {
    struct fixture *fixture = *state;
    static bool was_taken[URLS_COUNT];
    run_child(fixture, "leave");
    own(0, URLS_COUNT, true);
    open_shared(fixture);
    struct frontier_stat stat = stat_of(fixture);
    assert_true(stat.outgoing_count == 30 && stat.known_count == URLS_COUNT - (URLS_COUNT - 1) / 3);
    assert_true(stat.waiting_count > 0 && stat.waiting_count < stat.known_count - 1);
    uint64_t count = 0;
    for (struct frontier_url *url; (url = take(fixture)) != NULL; count++) {
        unsigned number = number_of(url->url);
        assert_true(url->is_doubtful && number % 3 != 0 && !was_taken[number]);
        was_taken[number] = true;
        finish(fixture, url, FRONTIER_DONE);
    }
    assert_int_equal(count, stat.known_count - 1);
}

int main(int count, char **arguments) {
    if (count == 3) {
        return strcmp(arguments[1], "wait") == 0 ? child_waits(arguments[2]) : child_leaves(arguments[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(outgoing_links_are_read_around_the_ring, make, destroy),
        cmocka_unit_test_setup_teardown(no_password_goes_out, make, destroy),
        cmocka_unit_test_setup_teardown(a_link_of_every_page_goes_out_once, make, destroy),
        cmocka_unit_test_setup_teardown(what_is_known_or_went_out_is_settled, make, destroy),
        cmocka_unit_test_setup_teardown(reading_stops_where_the_buffer_is_full, make, destroy),
        cmocka_unit_test_setup_teardown(what_is_elsewhere_waits_when_it_is_recalled, make, destroy),
        cmocka_unit_test_setup_teardown(what_is_ours_no_longer_goes_to_others, make, destroy),
        cmocka_unit_test_setup_teardown(a_recall_during_a_recall_begins_again, make, destroy),
        cmocka_unit_test_setup_teardown(what_stays_elsewhere_goes_out_now_and_then, make, destroy),
        cmocka_unit_test_setup_teardown(nothing_is_lost_or_done_twice_while_arcs_change, make, destroy),
        cmocka_unit_test_setup_teardown(a_crash_takes_nothing_that_was_written, make, destroy),
        cmocka_unit_test_setup_teardown(who_waits_is_told_when_it_is_on_disk, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
