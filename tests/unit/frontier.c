#include "crawl/frontier/frontier.h"

#include "base/prng.h"
#include "frontier-fixture.h"

/* Take all, in order, as one text of their last path parts: "a b c". Each is finished. */
static const char *take_all(struct fixture *fixture, char out[TEXT_SIZE]) {
    size_t size = 0;
    out[0] = '\0';
    for (struct frontier_url *url; (url = take(fixture)) != NULL;) {
        size_t from = url->url.size;
        while (url->url.data[from - 1] != '/') {
            from--;
        }
        size += (size_t)snprintf(out + size, TEXT_SIZE - size, "%s%.*s", size > 0 ? " " : "",
                                 BYTES_ARG(bytes_skip(url->url, from)));
        assert_true(size < TEXT_SIZE);
        finish(fixture, url, FRONTIER_DONE);
    }
    return out;
}

/* ---- order ---- */

static void gives_out_by_priority_then_depth_then_as_they_came(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_frontier(fixture);
    add(fixture, "a.test", "guess", FRONTIER_GUESS, 0);
    add(fixture, "a.test", "page-2a", FRONTIER_PAGE, 2);
    add(fixture, "a.test", "page-1", FRONTIER_PAGE, 1);
    add(fixture, "a.test", "embed-9", FRONTIER_EMBED, 9);
    add(fixture, "a.test", "page-2b", FRONTIER_PAGE, 2);
    add(fixture, "a.test", "seed", FRONTIER_SEED, 0);
    assert_string_equal(take_all(fixture, text), "seed embed-9 page-1 page-2a page-2b guess");
    struct frontier_stat stat = stat_of(fixture);
    assert_true(stat.known_count == 6 && stat.done_count == 6 && stat.waiting_count == 0);
    assert_true(stat.visit == 1 && stat.hosts_count == 1);
    wait_until_gone(fixture, 1);
    assert_int_equal(stat_of(fixture).lanes_count, 0);
}

static void a_retry_goes_to_the_end_of_its_priority(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_frontier(fixture);
    add(fixture, "a.test", "p1", FRONTIER_PAGE, 1);
    add(fixture, "a.test", "p2", FRONTIER_PAGE, 2);
    add(fixture, "a.test", "g", FRONTIER_GUESS, 1);
    struct frontier_url *url = take(fixture);
    assert_int_equal(url->tries, 0);
    finish(fixture, url, FRONTIER_RETRY);
    url = take(fixture);
    assert_bytes_equal(url->url, BYTES("http://a.test/p2"));
    finish(fixture, url, FRONTIER_AGAIN);
    url = take(fixture);
    assert_bytes_equal(url->url, BYTES("http://a.test/p2"));
    finish(fixture, url, FRONTIER_DONE);
    url = take(fixture);
    assert_bytes_equal(url->url, BYTES("http://a.test/p1"));
    assert_true(url->tries == 1 && url->depth == 1 && url->priority == FRONTIER_PAGE);
    finish(fixture, url, FRONTIER_RETRY);
    reopen(fixture);
    url = take(fixture);
    assert_bytes_equal(url->url, BYTES("http://a.test/p1"));
    assert_true(url->tries == 2 && url->depth == 1 && !url->is_doubtful);
    finish(fixture, url, FRONTIER_FAILED);
    assert_string_equal(take_all(fixture, text), "g");
    assert_true(stat_of(fixture).failed_count == 1 && stat_of(fixture).done_count == 2);
}

/* Far more URLs than the window holds; whatever comes out is the first of all that wait. */
static void stays_in_order_when_the_window_is_smaller_than_the_lane(void **state) {
    enum { COUNT = 600 };
    struct fixture *fixture = *state;
    static uint64_t waiting[COUNT]; /* its rank, or UINT64_MAX */
    struct prng prng;
    size_t added = 0;
    size_t finished = 0;
    char path[64];
    fixture->config.window_max = 4;
    open_frontier(fixture);
    prng_init(&prng, 1);
    memset(waiting, 0xff, sizeof waiting);
    while (finished < COUNT) {
        for (uint64_t i = prng_below(&prng, 4); i > 0 && added < COUNT; i--, added++) {
            uint64_t priority = prng_below(&prng, 4);
            uint64_t depth = prng_below(&prng, 5);
            snprintf(path, sizeof path, "%zu", added);
            assert_int_equal(add(fixture, "a.test", path, (enum frontier_priority)priority, (uint16_t)depth),
                             1);
            waiting[added] = priority << 40 | depth << 20 | added;
        }
        poll_frontier(fixture);
        struct frontier_url *url = try_take(fixture);
        if (url == NULL) {
            continue;
        }
        size_t least = 0;
        for (size_t i = 1; i < COUNT; i++) {
            least = waiting[i] < waiting[least] ? i : least;
        }
        snprintf(path, sizeof path, "http://a.test/%zu", least);
        assert_bytes_equal(url->url, bytes_of_string(path));
        if (prng_below(&prng, 4) == 0) {
            finish(fixture, url, FRONTIER_AGAIN);
            continue;
        }
        finish(fixture, url, FRONTIER_DONE);
        waiting[least] = UINT64_MAX;
        finished++;
    }
    wait_until_empty(fixture);
    assert_int_equal(stat_of(fixture).done_count, COUNT);
}

/* Many are in the owner's hands while the window is pushed about by better ones. */
static void nothing_is_given_out_twice_or_lost(void **state) {
    enum { COUNT = 2000, HANDS = 40 };
    struct fixture *fixture = *state;
    static uint8_t times[COUNT];
    struct frontier_url *hands[HANDS] = {NULL};
    struct prng prng;
    char path[32];
    size_t added = 0;
    size_t done = 0;
    fixture->config.window_max = 5;
    open_frontier(fixture);
    prng_init(&prng, 2);
    memset(times, 0, sizeof times);
    while (done < COUNT) {
        for (uint64_t i = prng_below(&prng, 50) == 0 ? 30 : 0; i > 0 && added < COUNT; i--, added++) {
            snprintf(path, sizeof path, "%zu", added);
            add(fixture, "a.test", path, (enum frontier_priority)prng_below(&prng, 4), 1);
        }
        poll_frontier(fixture);
        struct frontier_url **hand = &hands[prng_below(&prng, HANDS)];
        if (*hand == NULL) {
            *hand = try_take(fixture);
            continue;
        }
        uint64_t number = 0;
        assert_true(bytes_to_u64(bytes_skip((*hand)->url, 14), COUNT - 1, &number));
        enum frontier_state end = prng_below(&prng, 3) == 0 ? FRONTIER_AGAIN : FRONTIER_DONE;
        end = prng_below(&prng, 10) == 0 ? FRONTIER_RETRY : end;
        times[number] = (uint8_t)(times[number] + (end == FRONTIER_DONE ? 1 : 0));
        done += end == FRONTIER_DONE ? 1 : 0;
        finish(fixture, *hand, end);
        *hand = NULL;
    }
    wait_until_empty(fixture);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(times[i], 1);
    }
}

/* ---- hosts and lanes ---- */

static void each_host_has_a_lane_of_its_own(void **state) {
    struct fixture *fixture = *state;
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_PAGE, 1);
    add(fixture, "a.test:8080", "1", FRONTIER_PAGE, 1);
    add(fixture, "a.test", "2", FRONTIER_PAGE, 1);
    struct frontier_url *first = take(fixture);
    struct frontier_url *second = take(fixture);
    assert_bytes_equal(frontier_lane_host(first->lane), BYTES("a.test"));
    assert_bytes_equal(frontier_lane_host(second->lane), BYTES("a.test:8080"));
    assert_null(frontier_lane_owner(first->lane));
    frontier_lane_set_owner(first->lane, &first);
    assert_ptr_equal(frontier_lane_owner(first->lane), &first);
    finish(fixture, second, FRONTIER_DONE);
    finish(fixture, first, FRONTIER_CUT);
    first = take(fixture);
    assert_bytes_equal(first->url, BYTES("http://a.test/2"));
    finish(fixture, first, FRONTIER_DONE);
    wait_until_empty(fixture);
    wait_until_gone(fixture, 2);
    assert_int_equal(stat_of(fixture).cut_count, 1);
}

static void more_hosts_than_lanes_come_in_turn(void **state) {
    enum { HOSTS = 60, EACH = 7 };
    struct fixture *fixture = *state;
    size_t taken[HOSTS] = {0};
    size_t finished_hosts = 0;
    char host[32];
    char path[32];
    fixture->config.lanes_max = 3;
    fixture->config.window_max = 2;
    open_frontier(fixture);
    for (int i = 0; i < HOSTS * EACH; i++) {
        snprintf(host, sizeof host, "%02d.test", i % HOSTS);
        snprintf(path, sizeof path, "%d", i / HOSTS);
        assert_int_equal(add(fixture, host, path, FRONTIER_PAGE, 1), 1);
    }
    for (struct frontier_url *url; (url = take(fixture)) != NULL;) {
        uint64_t number = 0;
        uint64_t index = 0;
        assert_true(stat_of(fixture).lanes_count <= 3);
        assert_true(bytes_to_u64(bytes_slice(url->url, 7, 9), HOSTS - 1, &number));
        assert_true(bytes_to_u64(bytes_skip(url->url, 15), EACH - 1, &index));
        assert_int_equal(index, taken[number]++);
        assert_true(number < finished_hosts + 3 + 3); /* as they came */
        finished_hosts += taken[number] == EACH ? 1 : 0;
        finish(fixture, url, FRONTIER_DONE);
    }
    assert_int_equal(finished_hosts, HOSTS);
    wait_until_gone(fixture, HOSTS);
    assert_int_equal(stat_of(fixture).hosts_count, HOSTS);
}

static void a_long_lane_makes_way_for_others(void **state) {
    enum { LONG = 700 };
    struct fixture *fixture = *state;
    char path[32];
    size_t before_count = 0;
    size_t count = 0;
    fixture->config.lanes_max = 1;
    open_frontier(fixture);
    for (int i = 0; i < LONG; i++) {
        snprintf(path, sizeof path, "%d", i);
        add(fixture, "long.test", path, FRONTIER_PAGE, 1);
    }
    add(fixture, "short.test", "x", FRONTIER_PAGE, 1);
    for (struct frontier_url *url; (url = take(fixture)) != NULL; count++) {
        if (bytes_equal(url->url, BYTES("http://short.test/x"))) {
            before_count = count;
        }
        finish(fixture, url, FRONTIER_DONE);
    }
    assert_int_equal(count, LONG + 1);
    assert_true(before_count > 0 && before_count <= 256);
    wait_until_gone(fixture, 3); /* long, short, long */
}

static void a_resting_lane_makes_way_at_once(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    fixture->config.lanes_max = 1;
    open_frontier(fixture);
    add(fixture, "a.test", "a1", FRONTIER_PAGE, 1);
    add(fixture, "a.test", "a2", FRONTIER_PAGE, 1);
    add(fixture, "b.test", "b1", FRONTIER_PAGE, 1);
    struct frontier_url *url = take(fixture);
    struct frontier_lane *lane = url->lane;
    finish(fixture, url, FRONTIER_AGAIN);
    frontier_lane_rest(lane);
    assert_string_equal(take_all(fixture, text), "b1 a1 a2");
}

static void a_lane_that_is_gone_comes_back_with_new_links(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_frontier(fixture);
    for (int i = 0; i < 3; i++) {
        char path[8];
        snprintf(path, sizeof path, "%d", i);
        add(fixture, "a.test", path, FRONTIER_PAGE, 1);
        assert_string_equal(take_all(fixture, text), path);
        wait_until_gone(fixture, (size_t)i + 1);
    }
    assert_int_equal(fixture->told_count, 3);
}

/* ---- known, budgets, limits ---- */

static void known_urls_are_dropped(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    open_frontier(fixture);
    assert_false(frontier_knows(fixture->frontier, BYTES("http://a.test/1")));
    assert_int_equal(add(fixture, "a.test", "1", FRONTIER_PAGE, 1), 1);
    assert_int_equal(add(fixture, "a.test", "1", FRONTIER_SEED, 0), 0);
    assert_true(frontier_knows(fixture->frontier, BYTES("http://a.test/1")));
    take_all(fixture, text);
    assert_int_equal(add(fixture, "a.test", "1", FRONTIER_PAGE, 1), 0);
    reopen(fixture);
    assert_int_equal(add(fixture, "a.test", "1", FRONTIER_PAGE, 1), 0);
    assert_true(frontier_knows(fixture->frontier, BYTES("http://a.test/1")));
    assert_int_equal(stat_of(fixture).known_count, 1);
}

static void budgets_count_across_restarts(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    fixture->config.host_urls_max = 3;
    fixture->config.domain_urls_max = 5;
    open_frontier(fixture);
    assert_int_equal(add(fixture, "www.example.co.uk", "1", FRONTIER_PAGE, 1), 1);
    assert_int_equal(add(fixture, "www.example.co.uk", "2", FRONTIER_PAGE, 1), 1);
    take_all(fixture, text);
    reopen(fixture);
    assert_int_equal(add(fixture, "www.example.co.uk", "3", FRONTIER_PAGE, 1), 1);
    assert_int_equal(add(fixture, "www.example.co.uk", "4", FRONTIER_PAGE, 1), 0); /* host */
    assert_int_equal(add(fixture, "www.example.co.uk", "1", FRONTIER_PAGE, 1), 0); /* known, not over */
    assert_int_equal(stat_of(fixture).over_budget_count, 1);
    assert_int_equal(add(fixture, "a.example.co.uk", "1", FRONTIER_PAGE, 1), 1);
    assert_int_equal(add(fixture, "b.example.co.uk:81", "1", FRONTIER_PAGE, 1), 1);
    assert_int_equal(add(fixture, "c.example.co.uk", "1", FRONTIER_PAGE, 1), 0); /* domain */
    assert_int_equal(add(fixture, "other.co.uk", "1", FRONTIER_PAGE, 1), 1);
    assert_int_equal(add(fixture, "127.0.0.1", "1", FRONTIER_PAGE, 1), 1);
    reopen(fixture);
    assert_int_equal(add(fixture, "c.example.co.uk", "1", FRONTIER_PAGE, 1), 0);
    assert_int_equal(add(fixture, "a.example.co.uk", "2", FRONTIER_PAGE, 1), 0);
    assert_int_equal(add(fixture, "127.0.0.1", "2", FRONTIER_PAGE, 1), 1);
    assert_false(frontier_knows(fixture->frontier, BYTES("http://c.example.co.uk/1")));
    assert_int_equal(stat_of(fixture).hosts_count, 5); /* none for what was refused */
}

static void what_is_too_long_is_dropped_and_counted(void **state) {
    static char url[FRONTIER_URL_SIZE_MAX + 1];
    static char validator[FRONTIER_VALIDATOR_SIZE_MAX + 1];
    struct fixture *fixture = *state;
    memset(url, 'a', sizeof url);
    memcpy(url, "http://a.test/", 14);
    memset(validator, 'v', sizeof validator);
    struct frontier_link links[] = {
        {.url = bytes_of(url, sizeof url), .host = BYTES("a.test"), .priority = FRONTIER_PAGE},
        {.url = bytes_of(url, sizeof url - 1), .host = BYTES("a.test"), .priority = FRONTIER_PAGE},
        {.url = BYTES("http://b.test/"), .host = bytes_of(url, 2000), .priority = FRONTIER_PAGE},
        {.url = BYTES(""), .host = BYTES("a.test"), .priority = FRONTIER_PAGE},
    };
    size_t count = 0;
    open_frontier(fixture);
    assert_int_equal(frontier_add(fixture->frontier, links, 4, &count), ERR_OK);
    assert_int_equal(count, 1);
    assert_int_equal(stat_of(fixture).too_long_count, 3);
    struct frontier_outcome outcome = {
        .state = FRONTIER_DONE,
        .etag = bytes_of(validator, sizeof validator),
        .last_modified = bytes_of(validator, sizeof validator - 1),
    };
    frontier_finish(fixture->frontier, take(fixture), &outcome, NULL, 0);
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 1, INT64_MAX);
    struct frontier_url *again = take(fixture);
    assert_int_equal(again->url.size, FRONTIER_URL_SIZE_MAX);
    assert_true(again->history.etag.size == 0 &&
                again->history.last_modified.size == FRONTIER_VALIDATOR_SIZE_MAX);
}

/* ---- restarts ---- */

static void all_is_as_before_after_a_restart(void **state) {
    enum { COUNT = 500 };
    struct fixture *fixture = *state;
    static bool was_seen[COUNT];
    char host[32];
    char path[32];
    memset(was_seen, 0, sizeof was_seen);
    fixture->config.window_max = 8;
    open_frontier(fixture);
    for (int i = 0; i < COUNT; i++) {
        snprintf(host, sizeof host, "%d.test", i % 9);
        snprintf(path, sizeof path, "%d", i);
        add(fixture, host, path, (enum frontier_priority)(i % 4), (uint16_t)(i % 7));
    }
    for (int done = 0; done < COUNT;) {
        struct frontier_url *hands[3];
        for (int i = 0; i < 3; i++) { /* in the owner's hands when the frontier is closed */
            hands[i] = take(fixture);
        }
        for (int i = 0; i < 40 && done < COUNT; i++, done++) {
            struct frontier_url *url = i < 3 && hands[i] != NULL && done < COUNT - 3 ? hands[i] : NULL;
            url = url != NULL ? url : take(fixture);
            if (url == NULL) {
                break;
            }
            uint64_t number = 0;
            assert_true(bytes_to_u64(bytes_skip(url->url, 14), COUNT - 1, &number));
            assert_true(!was_seen[number] && !url->is_doubtful);
            assert_true(url->priority == number % 4 && url->depth == number % 7);
            was_seen[number] = true;
            finish(fixture, url, FRONTIER_DONE);
        }
        struct frontier_stat before = stat_of(fixture);
        reopen(fixture);
        struct frontier_stat after = stat_of(fixture);
        assert_true(before.known_count == COUNT && after.known_count == COUNT);
        assert_int_equal(before.waiting_count, after.waiting_count);
        assert_int_equal(before.done_count, after.done_count);
        assert_int_equal(before.hosts_count, after.hosts_count);
        assert_int_equal(after.taken_count, 0);
    }
    wait_until_empty(fixture);
}

static void a_second_owner_is_told_that_it_is_busy(void **state) {
    struct fixture *fixture = *state;
    struct frontier *second = NULL;
    struct err_detail detail = {0};
    open_frontier(fixture);
    assert_int_equal(frontier_open(&fixture->config, &second, &detail), ERR_BUSY);
    assert_non_null(strstr(detail.text, "LOCK"));
    assert_null(second);
}

/* ---- visits ---- */

static void finish_with(struct fixture *fixture, struct frontier_url *url,
                        const struct frontier_outcome *outcome) {
    frontier_finish(fixture->frontier, url, outcome, NULL, 0);
}

static void a_visit_brings_back_what_was_found(void **state) {
    struct fixture *fixture = *state;
    struct frontier_outcome outcome = {
        .state = FRONTIER_DONE,
        .time_us = 1000,
        .status = 200,
        .etag = BYTES("\"x\""),
        .last_modified = BYTES("yesterday"),
        .has_digest = true,
        .digest = {1, 2, 3},
    };
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_EMBED, 3);
    finish_with(fixture, take(fixture), &outcome);
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 77, INT64_MAX);
    reopen(fixture);
    struct frontier_url *url = take(fixture);
    assert_true(url->depth == 3 && url->priority == FRONTIER_EMBED && url->history.visits_count == 1);
    assert_true(url->history.last_time_us == 1000 && url->history.first_time_us == 1000 &&
                url->history.last_status == 200);
    assert_bytes_equal(url->history.etag, outcome.etag);
    assert_bytes_equal(url->history.last_modified, outcome.last_modified);
    assert_true(url->history.has_digest && url->history.changes_count == 0);
    assert_memory_equal(url->history.digest, outcome.digest, sizeof outcome.digest);
    /* Not modified: what the answer does not say stays. */
    finish_with(fixture, url,
                &(struct frontier_outcome){
                    .state = FRONTIER_DONE, .time_us = 2000, .status = 304, .etag = BYTES("\"y\"")});
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 78, INT64_MAX);
    url = take(fixture);
    assert_bytes_equal(url->history.etag, BYTES("\"y\""));
    assert_bytes_equal(url->history.last_modified, outcome.last_modified);
    assert_memory_equal(url->history.digest, outcome.digest, sizeof outcome.digest);
    assert_true(url->history.visits_count == 2 && url->history.last_time_us == 2000 &&
                url->history.first_time_us == 1000);
    /* No answer: all of it stays. */
    finish_with(fixture, url, &(struct frontier_outcome){.state = FRONTIER_FAILED, .time_us = 3000});
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 79, INT64_MAX);
    url = take(fixture);
    assert_true(url->history.visits_count == 2 && url->history.last_time_us == 2000 &&
                url->history.last_status == 304);
    /* Changed. */
    outcome =
        (struct frontier_outcome){.state = FRONTIER_DONE, .time_us = 4000, .status = 404, .is_changed = true};
    finish_with(fixture, url, &outcome);
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 80, INT64_MAX);
    url = take(fixture);
    assert_true(url->history.visits_count == 3 && url->history.changes_count == 1 &&
                url->history.first_time_us == 1000);
    assert_true(url->history.etag.size == 0 && url->history.last_modified.size == 0 &&
                !url->history.has_digest);
    struct frontier_stat stat = stat_of(fixture);
    assert_true(stat.visit == 5 && stat.visit_start_us == 80 && stat.done_count == 0);
}

static void only_what_is_due_waits_again(void **state) {
    struct fixture *fixture = *state;
    char text[TEXT_SIZE];
    static const int64_t due_us[] = {0, 100, 200, 300};
    open_frontier(fixture);
    for (int i = 0; i < 4; i++) {
        char path[8];
        snprintf(path, sizeof path, "%d", i);
        add(fixture, "a.test", path, FRONTIER_PAGE, 1);
        finish_with(
            fixture, take(fixture),
            &(struct frontier_outcome){.state = i == 1 ? FRONTIER_CUT : FRONTIER_DONE, .due_us = due_us[i]});
    }
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 1, 200);
    assert_false(frontier_is_empty(fixture->frontier));
    assert_string_equal(take_all(fixture, text), "0 1");
    frontier_start_visit(fixture->frontier, 2, INT64_MAX);
    assert_string_equal(take_all(fixture, text), "0 1 2 3");
}

/* More than fits into one go, with new links while they come over, and restarts in between. */
static void a_long_visit_takes_every_url_once(void **state) {
    enum { COUNT = 3000 };
    struct fixture *fixture = *state;
    static uint8_t times[2 * COUNT];
    char host[32];
    char path[32];
    size_t count = 0;
    memset(times, 0, sizeof times);
    fixture->config.lanes_max = 8;
    open_frontier(fixture);
    for (int i = 0; i < COUNT; i++) {
        snprintf(host, sizeof host, "%02d.test", i % 30);
        snprintf(path, sizeof path, "%d", i);
        add(fixture, host, path, FRONTIER_PAGE, 1);
    }
    for (struct frontier_url *url; (url = take(fixture)) != NULL;) {
        finish(fixture, url, FRONTIER_DONE);
    }
    frontier_start_visit(fixture->frontier, 1, INT64_MAX);
    assert_int_equal(stat_of(fixture).coming_count, COUNT);
    for (struct frontier_url *url; (url = take(fixture)) != NULL; count++) {
        uint64_t number = 0;
        assert_true(bytes_to_u64(bytes_skip(url->url, 15), 2 * COUNT, &number));
        times[number]++;
        if (number % 100 == 0 && number < COUNT) {
            snprintf(path, sizeof path, "%d", (int)number + COUNT);
            add(fixture, "nw.test", path, FRONTIER_PAGE, 2);
        }
        finish(fixture, url, FRONTIER_DONE);
        if (count % 700 == 699) {
            reopen(fixture);
        }
    }
    assert_int_equal(count, COUNT + COUNT / 100);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(times[i], 1);
    }
    assert_true(stat_of(fixture).coming_count == 0 && stat_of(fixture).done_count == count);
}

/* ---- explaining, notes ---- */

static void finds_one_url_in_every_state(void **state) {
    struct fixture *fixture = *state;
    struct frontier_entry entry = {.reason = 99};
    struct buf work;
    buf_init(&work, 1 << 16);
    open_frontier(fixture);
    struct bytes url = BYTES("http://a.test/1");
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_NOT_FOUND);
    assert_int_equal(entry.reason, 99);
    add(fixture, "a.test", "1", FRONTIER_EMBED, 4);
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_OK);
    assert_true(entry.is_waiting && entry.state == FRONTIER_AGAIN && entry.url.depth == 4);
    assert_true(entry.url.priority == FRONTIER_EMBED && entry.url.lane == NULL);
    assert_bytes_equal(entry.url.url, url);
    finish_with(fixture, take(fixture), &(struct frontier_outcome){.state = FRONTIER_RETRY, .reason = 7});
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_OK);
    assert_true(entry.is_waiting && entry.state == FRONTIER_RETRY && entry.reason == 7);
    assert_true(entry.url.tries == 1 && entry.url.depth == 4);
    finish_with(fixture, take(fixture),
                &(struct frontier_outcome){.state = FRONTIER_DONE, .status = 200, .reason = 8, .due_us = 9});
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_OK);
    assert_true(!entry.is_waiting && entry.state == FRONTIER_DONE && entry.reason == 8 && entry.due_us == 9);
    assert_true(entry.url.history.visits_count == 1 && entry.url.history.last_status == 200 &&
                entry.url.tries == 0);
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 1, INT64_MAX);
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_OK);
    assert_true(entry.is_waiting && entry.state == FRONTIER_DONE); /* it comes */
    struct frontier_url *taken = take(fixture);
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_OK);
    assert_true(entry.is_waiting && entry.state == FRONTIER_DONE);
    finish_with(fixture, taken, &(struct frontier_outcome){.state = FRONTIER_CUT, .reason = 10});
    assert_int_equal(frontier_find(fixture->frontier, url, &work, &entry), ERR_OK);
    assert_true(!entry.is_waiting && entry.state == FRONTIER_CUT && entry.url.history.visits_count == 1);
    buf_done(&work);
}

static void notes_are_kept(void **state) {
    static char large[(1 << 20) + 1];
    struct fixture *fixture = *state;
    struct buf value;
    buf_init(&value, 1 << 20);
    open_frontier(fixture);
    assert_int_equal(frontier_get_note(fixture->frontier, "a", &value), ERR_NOT_FOUND);
    assert_int_equal(frontier_put_note(fixture->frontier, "a", BYTES("one")), ERR_OK);
    assert_int_equal(frontier_put_note(fixture->frontier, "b", bytes_of(large, sizeof large - 1)), ERR_OK);
    assert_int_equal(frontier_put_note(fixture->frontier, "c", bytes_of(large, sizeof large)), ERR_LIMIT);
    assert_int_equal(frontier_put_note(fixture->frontier, "a", BYTES("two")), ERR_OK);
    reopen(fixture);
    assert_int_equal(frontier_get_note(fixture->frontier, "a", &value), ERR_OK);
    assert_bytes_equal(buf_bytes(&value), BYTES("two"));
    assert_int_equal(frontier_get_note(fixture->frontier, "b", &value), ERR_OK);
    assert_int_equal(value.size, sizeof large - 1);
    buf_done(&value);
}

/* ---- memory ---- */

/* In the same run for a lane that comes back, over a restart, and after a crash with what was written. */
static void what_is_kept_with_a_host_comes_with_its_next_lane(void **state) {
    struct fixture *fixture = *state;
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_PAGE, 1);
    struct frontier_url *url = take(fixture);
    assert_string_equal(fixture->kept, "");
    frontier_lane_keep(url->lane, BYTES("once"));
    frontier_lane_keep(url->lane, BYTES("twice"));
    assert_int_equal(frontier_lane_kept(url->lane).size, 0);
    finish(fixture, url, FRONTIER_DONE);
    wait_until_gone(fixture, 1);
    add(fixture, "b.test", "1", FRONTIER_PAGE, 1);
    finish(fixture, take(fixture), FRONTIER_DONE);
    assert_string_equal(fixture->kept, "");
    wait_until_gone(fixture, 2);
    add(fixture, "a.test", "2", FRONTIER_PAGE, 1);
    finish(fixture, take(fixture), FRONTIER_DONE);
    assert_string_equal(fixture->kept, "twice");
    add(fixture, "a.test", "3", FRONTIER_PAGE, 1);
    reopen(fixture);
    url = take(fixture);
    assert_bytes_equal(url->url, BYTES("http://a.test/3"));
    assert_string_equal(fixture->kept, "twice");
    finish(fixture, url, FRONTIER_DONE);
}

static void memory_does_not_grow_with_what_waits(void **state) {
    enum { COUNT = 20000, HOSTS = 5000 };
    struct fixture *fixture = *state;
    char host[32];
    char path[128];
    fixture->config.lanes_max = 20;
    fixture->config.window_max = 16;
    open_frontier(fixture);
    for (int i = 0; i < COUNT; i++) {
        snprintf(host, sizeof host, "%d.test", i % HOSTS);
        snprintf(path, sizeof path, "a-path-of-a-hundred-bytes/%074d", i);
        add(fixture, host, path, FRONTIER_PAGE, 1);
        while (frontier_is_behind(fixture->frontier)) {
            poll_frontier(fixture);
        }
    }
    struct buf value;
    buf_init(&value, 100);
    assert_int_equal(frontier_get_note(fixture->frontier, "a", &value), ERR_NOT_FOUND); /* all is written */
    for (int i = 0; i < 100; i++) {
        poll_frontier(fixture);
    }
    struct frontier_stat stat = stat_of(fixture);
    assert_true(stat.lanes_count == 20 && stat.waiting_count == COUNT && stat.hosts_count == HOSTS);
    /* Fingerprints 20,000 * 13, hosts and domains in whole blocks, 20 lanes of 16 URLs of 400 bytes. */
    assert_true(stat.memory_size < 20000 * 13 + 8192 * (40 + 16) + 4 * 16384 * 2 + 20 * 16 * 500 + 100000);
    buf_done(&value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_out_by_priority_then_depth_then_as_they_came, make, destroy),
        cmocka_unit_test_setup_teardown(a_retry_goes_to_the_end_of_its_priority, make, destroy),
        cmocka_unit_test_setup_teardown(stays_in_order_when_the_window_is_smaller_than_the_lane, make,
                                        destroy),
        cmocka_unit_test_setup_teardown(nothing_is_given_out_twice_or_lost, make, destroy),
        cmocka_unit_test_setup_teardown(each_host_has_a_lane_of_its_own, make, destroy),
        cmocka_unit_test_setup_teardown(more_hosts_than_lanes_come_in_turn, make, destroy),
        cmocka_unit_test_setup_teardown(a_long_lane_makes_way_for_others, make, destroy),
        cmocka_unit_test_setup_teardown(a_resting_lane_makes_way_at_once, make, destroy),
        cmocka_unit_test_setup_teardown(a_lane_that_is_gone_comes_back_with_new_links, make, destroy),
        cmocka_unit_test_setup_teardown(known_urls_are_dropped, make, destroy),
        cmocka_unit_test_setup_teardown(budgets_count_across_restarts, make, destroy),
        cmocka_unit_test_setup_teardown(what_is_too_long_is_dropped_and_counted, make, destroy),
        cmocka_unit_test_setup_teardown(all_is_as_before_after_a_restart, make, destroy),
        cmocka_unit_test_setup_teardown(a_second_owner_is_told_that_it_is_busy, make, destroy),
        cmocka_unit_test_setup_teardown(a_visit_brings_back_what_was_found, make, destroy),
        cmocka_unit_test_setup_teardown(only_what_is_due_waits_again, make, destroy),
        cmocka_unit_test_setup_teardown(a_long_visit_takes_every_url_once, make, destroy),
        cmocka_unit_test_setup_teardown(finds_one_url_in_every_state, make, destroy),
        cmocka_unit_test_setup_teardown(notes_are_kept, make, destroy),
        cmocka_unit_test_setup_teardown(what_is_kept_with_a_host_comes_with_its_next_lane, make, destroy),
        cmocka_unit_test_setup_teardown(memory_does_not_grow_with_what_waits, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
