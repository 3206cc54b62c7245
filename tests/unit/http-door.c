/* http-door: who comes in, who waits outside, and which thread gets whom, over real sockets. */
#include "http/server/http_door.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "await.h"
#include "http-client.h"
#include "unit.h"

enum { THREADS = 4, GIVEN_MAX = 64 };

struct fixture {
    struct http_door door;
    pthread_mutex_t lock;
    int fds[GIVEN_MAX];          /* lock */
    unsigned threads[GIVEN_MAX]; /* lock */
    size_t count;                /* lock */
};

static bool give(void *context, unsigned thread, int take_fd, const struct address *client) {
    struct fixture *fixture = context;
    (void)client;
    pthread_mutex_lock(&fixture->lock);
    fixture->fds[fixture->count] = take_fd;
    fixture->threads[fixture->count++] = thread;
    pthread_mutex_unlock(&fixture->lock);
    return true;
}

static size_t given_count(struct fixture *fixture) {
    pthread_mutex_lock(&fixture->lock);
    size_t count = fixture->count;
    pthread_mutex_unlock(&fixture->lock);
    return count;
}

static void await_given(struct fixture *fixture, size_t count) {
    await_that(given_count(fixture) >= count);
}

static void open_door(struct fixture *fixture, unsigned connections_max, unsigned per_address_max) {
    struct http_door_config config = {.threads_count = THREADS,
                                      .connections_max = connections_max,
                                      .connections_per_address_max = per_address_max,
                                      .give = give,
                                      .context = fixture};
    struct address address = address_ipv4(127, 0, 0, 1, 0);
    pthread_mutex_init(&fixture->lock, NULL);
    assert_int_equal(http_door_init(&fixture->door, &config, &address, NULL), ERR_OK);
    assert_int_equal(http_door_open(&fixture->door), ERR_OK);
}

static void close_door(struct fixture *fixture) {
    http_door_close(&fixture->door);
    for (size_t i = 0; i < fixture->count; i++) {
        close(fixture->fds[i]);
    }
    http_door_done(&fixture->door);
    pthread_mutex_destroy(&fixture->lock);
}

static void every_thread_gets_as_many(void **state) {
    (void)state;
    struct fixture fixture = {0};
    int fds[3 * THREADS];
    unsigned counts[THREADS] = {0};
    open_door(&fixture, GIVEN_MAX, GIVEN_MAX);
    for (size_t i = 0; i < 3 * THREADS; i++) {
        fds[i] = http_connect(fixture.door.address.port);
    }
    await_given(&fixture, 3 * THREADS);
    for (size_t i = 0; i < 3 * THREADS; i++) {
        counts[fixture.threads[i]]++;
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(counts[i], 3);
    }
    unsigned thread = fixture.threads[5];
    http_door_leave(&fixture.door, fixture.fds[5]); /* who has one less gets the next */
    int next = http_connect(fixture.door.address.port);
    await_given(&fixture, 3 * THREADS + 1);
    assert_int_equal(fixture.threads[3 * THREADS], thread);
    close_door(&fixture);
    close(next);
    for (size_t i = 0; i < 3 * THREADS; i++) {
        close(fds[i]);
    }
}

/* All requests so far are being worked on. */
static void work_on_all(struct fixture *fixture) {
    for (size_t i = 0; i < fixture->count; i++) {
        assert_true(http_door_wait(&fixture->door, fixture->fds[i], HTTP_WAIT_WORK));
    }
}

static bool is_shut(int fd) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

static void those_beyond_the_limit_wait_outside(void **state) {
    (void)state;
    struct fixture fixture = {0};
    int fds[3];
    open_door(&fixture, 2, GIVEN_MAX);
    fds[0] = http_connect(fixture.door.address.port);
    fds[1] = http_connect(fixture.door.address.port);
    await_given(&fixture, 2);
    work_on_all(&fixture);
    fds[2] = http_connect(fixture.door.address.port);
    usleep(20000); /* a third one would come now */
    assert_int_equal(given_count(&fixture), 2);
    http_door_leave(&fixture.door, fixture.fds[0]);
    await_given(&fixture, 3);
    http_door_leave(&fixture.door, fixture.fds[0]); /* once more: nothing */
    assert_int_equal(fixture.door.taken_count, 2);
    close_door(&fixture); /* while it waits for room */
    for (size_t i = 0; i < 3; i++) {
        close(fds[i]);
    }
}

/* The second has kept the server waiting longest; the third does not take its answer. */
static void whoever_kept_us_waiting_longest_makes_room(void **state) {
    (void)state;
    struct fixture fixture = {0};
    int fds[5];
    open_door(&fixture, 3, GIVEN_MAX);
    for (size_t i = 0; i < 3; i++) {
        fds[i] = http_connect(fixture.door.address.port);
        await_given(&fixture, i + 1);
    }
    assert_true(http_door_wait(&fixture.door, fixture.fds[0], HTTP_WAIT_WORK));
    assert_true(http_door_wait(&fixture.door, fixture.fds[2], HTTP_WAIT_TAKEN));
    for (size_t i = 3; i < 5; i++) {
        fds[i] = http_connect(fixture.door.address.port);
        await_given(&fixture, i + 1);
        assert_true(http_door_wait(&fixture.door, fixture.fds[i], HTTP_WAIT_WORK));
        assert_true(is_shut(fds[i == 3 ? 1 : 2]));
        assert_int_equal(is_shut(fds[2]), i == 4);
    }
    assert_false(is_shut(fds[0]));
    assert_false(http_door_wait(&fixture.door, fixture.fds[1], HTTP_WAIT_WORK)); /* too late */
    assert_int_equal(http_door_evicted_count(&fixture.door), 2);
    http_door_leave(&fixture.door, fixture.fds[1]);
    assert_int_equal(fixture.door.taken_count, 3);
    close_door(&fixture);
    for (size_t i = 0; i < 5; i++) {
        close(fds[i]);
    }
}

static void one_address_has_so_many_and_the_next_is_closed(void **state) {
    (void)state;
    struct fixture fixture = {0};
    int fds[3];
    open_door(&fixture, GIVEN_MAX, 2);
    fds[0] = http_connect(fixture.door.address.port);
    fds[1] = http_connect(fixture.door.address.port);
    await_given(&fixture, 2);
    work_on_all(&fixture);
    fds[2] = http_connect(fixture.door.address.port);
    struct pollfd wait = {.fd = fds[2], .events = POLLIN};
    assert_int_equal(poll(&wait, 1, -1), 1);
    assert_int_equal(given_count(&fixture), 2);
    close_door(&fixture);
    for (size_t i = 0; i < 3; i++) {
        close(fds[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_gets_as_many),
        cmocka_unit_test(those_beyond_the_limit_wait_outside),
        cmocka_unit_test(whoever_kept_us_waiting_longest_makes_room),
        cmocka_unit_test(one_address_has_so_many_and_the_next_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
