/* frontier-damage - what the frontier makes of kill -9, of full disks and of damaged entries. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/prng.h"
#include "crawl/frontier/frontier_code.h"
#include "crawl/frontier/frontier_state.h"
#include "frontier-fixture.h"

/*
 * A web of PAGES_COUNT pages as a tree; each page links to its children and to some that are known. It is
 * crawled in two visits by a process that is killed again and again. What the process did is noted in memory
 * that outlives it.
 */
enum { PAGES_COUNT = 20000, HOSTS_COUNT = 37, CHILDREN = 4, LINKS = 8, VISITS = 2, KILLS = 30 };
enum { LOG_MAX = 1 << 20 };

struct shared {
    _Atomic bool is_started; /* the crawl goes on */
    _Atomic uint32_t log_count;
    _Atomic uint32_t confirmed_count; /* so many of the log are on disk */
    bool was_killed;
    struct {
        uint32_t page;
        uint32_t visit;
    } log[LOG_MAX];                        /* what was finished, in this order, since the process began */
    bool is_done[VISITS + 1][PAGES_COUNT]; /* was on disk when the frontier was opened */
};

/* Run this program again to do one thing. A mere fork would be without the threads that RocksDB believes to
 * have. */
static pid_t start_elsewhere(struct fixture *fixture, const char *deed, const char *shared_path) {
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test-frontier-damage", deed, fixture->directory, shared_path, NULL);
        _exit(99);
    }
    assert_true(child > 0);
    return child;
}

static int end_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static struct shared *map_shared(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && ftruncate(fd, sizeof(struct shared)) == 0);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(shared != MAP_FAILED);
    close(fd);
    return shared;
}

/* ---- the web ---- */

static struct frontier_link page_link(char text[TEXT_SIZE], uint32_t page) {
    char host[32];
    char path[32];
    uint16_t depth = 0;
    for (uint32_t up = page; up > 0; up = (up - 1) / CHILDREN) {
        depth++;
    }
    snprintf(host, sizeof host, "%02u.test", page % HOSTS_COUNT);
    snprintf(path, sizeof path, "%u", page);
    return link_of(text, host, path, page % 3 == 0 ? FRONTIER_EMBED : FRONTIER_PAGE, depth);
}

static uint32_t page_of(struct bytes url) {
    uint64_t page = 0;
    assert_true(bytes_to_u64(bytes_skip(url, 15), PAGES_COUNT - 1, &page));
    return (uint32_t)page;
}

/* The count of pages that the page links to. */
static size_t links_of(uint32_t page, uint32_t links[LINKS]) {
    size_t count = 0;
    for (uint32_t i = 1; i <= CHILDREN; i++) {
        if (page * CHILDREN + i < PAGES_COUNT) {
            links[count++] = page * CHILDREN + i;
        }
    }
    for (uint32_t up = page; up > 0 && count < LINKS; up = (up - 1) / CHILDREN) {
        links[count++] = up;
    }
    return count;
}

/* ---- the process that is killed ---- */

/* Ends of this process are seen by the other one, as an exit status; cmocka is not at work here. */
#define MUST(condition) ((condition) ? (void)0 : must_failed(#condition, __LINE__))

static void must_failed(const char *condition, int line) {
    fprintf(stderr, "frontier-damage, line %d: %s\n", line, condition);
    fflush(NULL);
    _exit(1);
}

static bool knows(struct fixture *fixture, uint32_t page) {
    char text[TEXT_SIZE];
    return frontier_knows(fixture->frontier, page_link(text, page).url);
}

/* Is it on disk that the page was finished in the visit? */
static bool was_finished(struct fixture *fixture, uint32_t page, uint32_t visit, struct buf *work) {
    char text[TEXT_SIZE];
    struct frontier_entry entry;
    enum err err = frontier_find(fixture->frontier, page_link(text, page).url, work, &entry);
    if (err == ERR_NOT_FOUND) {
        return false; /* the page that led to it is lost too */
    }
    MUST(err == ERR_OK);
    bool is_finished = entry.url.history.visits_count >= visit;
    MUST(entry.url.history.visits_count + 1 >= visit);
    MUST(is_finished || entry.is_waiting);
    return is_finished;
}

/* What the process before this one did: nothing is lost that was on disk, no page is there without its links.
 */
static void check_log(struct fixture *fixture, struct shared *shared) {
    uint32_t count = atomic_load(&shared->log_count);
    uint32_t confirmed_count = atomic_load(&shared->confirmed_count);
    bool is_tail = false;
    struct buf work;
    buf_init(&work, 1 << 16);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t page = shared->log[i].page;
        uint32_t visit = shared->log[i].visit;
        uint32_t links[LINKS];
        if (!was_finished(fixture, page, visit, &work)) {
            MUST(i >= confirmed_count);
            is_tail = true;
            continue;
        }
        MUST(!is_tail); /* the newest ones are lost, never one before others */
        shared->is_done[visit][page] = true;
        for (size_t j = links_of(page, links); j > 0; j--) {
            MUST(knows(fixture, links[j - 1]));
        }
    }
    buf_done(&work);
    atomic_store(&shared->confirmed_count, 0);
    atomic_store(&shared->log_count, 0);
}

static void check_counts(struct fixture *fixture, const struct shared *shared) {
    struct frontier_stat stat = stat_of(fixture);
    uint64_t known_count = 0;
    uint64_t done_count = 0;
    for (uint32_t i = 0; i < PAGES_COUNT; i++) {
        known_count += knows(fixture, i) ? 1 : 0;
        done_count += shared->is_done[stat.visit][i] ? 1 : 0;
    }
    MUST(stat.known_count == known_count);
    MUST(stat.done_count == done_count);
    if (stat.coming_count == 0) {
        MUST(stat.waiting_count == known_count - done_count);
    }
}

static void finish_page(struct fixture *fixture, struct shared *shared, struct frontier_url *url,
                        uint32_t visit) {
    struct frontier_link links[LINKS];
    char texts[LINKS][TEXT_SIZE];
    uint32_t pages[LINKS];
    uint32_t page = page_of(url->url);
    MUST(!shared->is_done[visit][page]);
    if (page % 50 == 7 && url->tries == 0) {
        finish(fixture, url, FRONTIER_RETRY);
        return;
    }
    size_t count = links_of(page, pages);
    for (size_t i = 0; i < count; i++) {
        links[i] = page_link(texts[i], pages[i]);
    }
    uint32_t index = atomic_load(&shared->log_count);
    MUST(index < LOG_MAX);
    shared->log[index].page = page;
    shared->log[index].visit = visit;
    atomic_store(&shared->log_count, index + 1);
    struct frontier_outcome outcome = {.state = FRONTIER_DONE, .status = 200, .time_us = visit};
    frontier_finish(fixture->frontier, url, &outcome, links, count);
    if (index % 300 == 299) {
        MUST(frontier_put_note(fixture->frontier, "mark", BYTES("x")) == ERR_OK);
        atomic_store(&shared->confirmed_count, index + 1);
    }
}

static int child_crawls(struct fixture *fixture, struct shared *shared) {
    static bool was_known[PAGES_COUNT];
    open_frontier(fixture);
    check_log(fixture, shared);
    check_counts(fixture, shared);
    for (uint32_t i = 0; i < PAGES_COUNT; i++) {
        was_known[i] = knows(fixture, i);
    }
    char text[TEXT_SIZE];
    struct frontier_link seed = page_link(text, 0);
    assert_int_equal(frontier_add(fixture->frontier, &seed, 1, NULL), ERR_OK);
    uint32_t visit_at_start = stat_of(fixture).visit;
    bool was_clean = !shared->was_killed;
    shared->was_killed = true;
    atomic_store(&shared->is_started, true);
    for (uint32_t visit = visit_at_start;; visit++) {
        for (struct frontier_url *url; (url = take(fixture)) != NULL;) {
            bool may_be_stored = !was_clean && visit == visit_at_start && was_known[page_of(url->url)];
            MUST(url->is_doubtful == may_be_stored || url->tries > 0);
            finish_page(fixture, shared, url, visit);
        }
        if (visit == VISITS) {
            break;
        }
        frontier_start_visit(fixture->frontier, 1, INT64_MAX);
    }
    check_log(fixture, shared);
    check_counts(fixture, shared);
    close_frontier(fixture);
    shared->was_killed = false;
    return 0;
}

static void survives_kill_9_at_any_moment(void **state) {
    struct fixture *fixture = *state;
    char path[SCRATCH_PATH_SIZE];
    struct shared *shared = map_shared(scratch_path(fixture->parent, "shared", path));
    struct prng prng;
    int status = 0;
    int kills_count = 0;
    prng_init(&prng, (uint64_t)getpid());
    for (; kills_count < KILLS; kills_count++) {
        atomic_store(&shared->is_started, false);
        pid_t child = start_elsewhere(fixture, "crawl", path);
        siginfo_t ended = {0};
        while (!atomic_load(&shared->is_started) && ended.si_pid == 0) {
            nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL); /* a turn: it starts or ends */
            assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        }
        /* Killed at any time: the moment is the subject. */
        nanosleep(&(struct timespec){.tv_nsec = (long)prng_below(&prng, 40 * 1000 * 1000)}, NULL);
        kill(child, SIGKILL);
        status = end_of(child);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0); /* done before the signal */
            break;
        }
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
    assert_true(kills_count > 0);
    status = end_of(start_elsewhere(fixture, "crawl", path));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (uint32_t i = 0; i < PAGES_COUNT; i++) {
        assert_true(shared->is_done[1][i] && shared->is_done[2][i]);
    }
    munmap(shared, sizeof *shared);
}

/* ---- doubt ---- */

static int child_leaves(struct fixture *fixture) {
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_PAGE, 1);
    add(fixture, "a.test", "2", FRONTIER_PAGE, 1);
    MUST(frontier_put_note(fixture->frontier, "mark", BYTES("x")) == ERR_OK);
    kill(getpid(), SIGKILL);
    return 0;
}

/* What waited at a crash is in doubt until it is finished, also after orderly restarts. */
static void doubt_lasts_until_a_url_is_finished(void **state) {
    struct fixture *fixture = *state;
    int status = end_of(start_elsewhere(fixture, "leave", ""));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct frontier_entry entry;
    struct buf work;
    buf_init(&work, 1 << 16);
    open_frontier(fixture);
    reopen(fixture);
    add(fixture, "a.test", "3", FRONTIER_PAGE, 1);
    assert_int_equal(frontier_find(fixture->frontier, BYTES("http://a.test/2"), &work, &entry), ERR_OK);
    assert_true(entry.url.is_doubtful);
    struct frontier_url *url = take(fixture);
    assert_true(url->is_doubtful);
    finish(fixture, url, FRONTIER_RETRY);
    url = take(fixture);
    assert_true(url->is_doubtful);
    finish(fixture, url, FRONTIER_DONE);
    url = take(fixture);
    assert_bytes_equal(url->url, BYTES("http://a.test/3"));
    assert_false(url->is_doubtful);
    finish(fixture, url, FRONTIER_DONE);
    reopen(fixture);
    url = take(fixture);
    assert_true(url->tries == 1 && url->is_doubtful);
    finish(fixture, url, FRONTIER_DONE);
    wait_until_empty(fixture);
    frontier_start_visit(fixture->frontier, 1, INT64_MAX);
    assert_false(take(fixture)->is_doubtful);
    buf_done(&work);
}

/* ---- full disks ---- */

static void allow_files_of(rlim_t size) {
    MUST(setrlimit(RLIMIT_FSIZE, &(struct rlimit){size, RLIM_INFINITY}) == 0);
}

static uint64_t add_many(struct fixture *fixture, uint64_t from, uint64_t count) {
    char path[128];
    for (uint64_t i = from; i < from + count; i++) {
        snprintf(path, sizeof path, "%090llu", (unsigned long long)i);
        MUST(add(fixture, i % 2 == 0 ? "a.test" : "b.test", path, FRONTIER_PAGE, 1) == 1);
    }
    return from + count;
}

/* ERR_OK, or why the disk takes nothing at the moment. */
static enum err error_of(struct fixture *fixture, struct err_detail *detail) {
    struct frontier *frontier = fixture->frontier;
    pthread_mutex_lock(&frontier->lock);
    enum err err = frontier->err;
    *detail = frontier->detail;
    pthread_mutex_unlock(&frontier->lock);
    return err;
}

/* Status 0 where all behaved as it should. */
static int child_fills(struct fixture *fixture, bool is_closed_full) {
    struct err_detail detail = {0};
    uint64_t count = 0;
    uint64_t done_count = 0;
    signal(SIGXFSZ, SIG_IGN); /* the write shall fail instead */
    open_frontier(fixture);
    count = add_many(fixture, count, 100);
    MUST(frontier_put_note(fixture->frontier, "mark", BYTES("x")) == ERR_OK);
    allow_files_of(64 << 10);
    while (error_of(fixture, &detail) == ERR_OK) {
        count = add_many(fixture, count, 50);
        poll_frontier(fixture);
    }
    MUST(detail.err == ERR_LIMIT && strstr(detail.text, "File too large") != NULL);
    allow_files_of(1); /* now nothing goes at all */
    MUST(frontier_put_note(fixture->frontier, "late", BYTES("y")) != ERR_OK);
    while (!frontier_is_behind(fixture->frontier)) {
        count = add_many(fixture, count, 100);
    }
    MUST(error_of(fixture, &detail) != ERR_OK && stat_of(fixture).known_count == count);
    if (is_closed_full) {
        close_frontier(fixture);
        return 0;
    }
    allow_files_of(RLIM_INFINITY);
    while (error_of(fixture, &detail) != ERR_OK || frontier_is_behind(fixture->frontier)) {
        poll_frontier(fixture);
    }
    struct buf value;
    buf_init(&value, 100);
    MUST(frontier_get_note(fixture->frontier, "late", &value) == ERR_OK && value.size == 1);
    buf_done(&value);
    reopen(fixture);
    for (struct frontier_url *url; (url = take(fixture)) != NULL; done_count++) {
        MUST(!url->is_doubtful);
        finish(fixture, url, FRONTIER_DONE);
    }
    MUST(done_count == count && stat_of(fixture).known_count == count);
    close_frontier(fixture);
    return 0;
}

static void goes_on_when_a_full_disk_has_room_again(void **state) {
    struct fixture *fixture = *state;
    int status = end_of(start_elsewhere(fixture, "fill", ""));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_disk_that_stays_full_ends_as_a_crash(void **state) {
    struct fixture *fixture = *state;
    int status = end_of(start_elsewhere(fixture, "fill-and-close", ""));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    open_frontier(fixture);
    struct frontier_stat stat = stat_of(fixture);
    assert_true(stat.known_count >= 100 && stat.known_count == stat.waiting_count);
    assert_true(take(fixture)->is_doubtful);
}

/* ---- damage that checksums miss ---- */

static void put_raw(struct fixture *fixture, struct bytes key, struct bytes value) {
    struct kv *kv = kv_new(fixture->directory, &frontier_kv_options);
    assert_int_equal(kv_open(kv, NULL), ERR_OK);
    assert_int_equal(kv_put(kv, 0, key, value, NULL), ERR_OK);
    kv_free(kv);
}

static void assert_does_not_open(struct fixture *fixture, enum err err, const char *word) {
    struct err_detail detail = {0};
    struct frontier *frontier = NULL;
    assert_int_equal(frontier_open(&fixture->config, &frontier, &detail), err);
    assert_non_null(strstr(detail.text, word));
    assert_null(frontier);
}

static void damaged_entries_are_corrupt(void **state) {
    struct fixture *fixture = *state;
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_PAGE, 1);
    close_frontier(fixture);
    put_raw(fixture, BYTES("c\0\0\0\0"), BYTES("\xff"));
    assert_does_not_open(fixture, ERR_CORRUPT, "an entry of c");
    put_raw(fixture, BYTES("c\0\0\0\0"), BYTES("\1"));
    open_frontier(fixture);
    close_frontier(fixture);
    put_raw(fixture, BYTES("c\0\0\0\0"), BYTES("\1\1")); /* no such host */
    assert_does_not_open(fixture, ERR_CORRUPT, "an entry of c");
    put_raw(fixture, BYTES("o0123456789abcdef"), BYTES("\1\1")); /* no URL */
    assert_does_not_open(fixture, ERR_CORRUPT, "an entry of o");
    put_raw(fixture, BYTES("kshort"), BYTES(""));
    assert_does_not_open(fixture, ERR_CORRUPT, "an entry of k");
    put_raw(fixture, BYTES("h\0\0\0\7"), BYTES("12345678b.test"));
    assert_does_not_open(fixture, ERR_CORRUPT, "an entry of h");
    put_raw(fixture, BYTES("mstate"), BYTES("\xff"));
    assert_does_not_open(fixture, ERR_CORRUPT, "its state");
    put_raw(fixture, BYTES("mkey"), BYTES("short"));
    assert_does_not_open(fixture, ERR_CORRUPT, "its key");
    put_raw(fixture, BYTES("mformat"), BYTES("\xc8"));
    assert_does_not_open(fixture, ERR_MISMATCH, "200");
}

static void a_damaged_url_is_told_and_stops_nothing_else(void **state) {
    struct fixture *fixture = *state;
    struct err_detail detail = {0};
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_PAGE, 1);
    close_frontier(fixture);
    uint8_t key[FRONTIER_CODE_KEY_SIZE_MAX];
    put_raw(fixture, frontier_code_queue_key(key, 0, frontier_code_position(FRONTIER_PAGE, 1, 1)),
            BYTES("\xff"));
    open_frontier(fixture);
    while (error_of(fixture, &detail) == ERR_OK) {
        poll_frontier(fixture);
    }
    assert_int_equal(detail.err, ERR_CORRUPT);
    assert_int_equal(stat_of(fixture).waiting_count, 1);
}

/* A host that has nothing although its count says so must not keep the crawl from ending. */
static void a_count_that_is_wrong_is_put_right(void **state) {
    struct fixture *fixture = *state;
    open_frontier(fixture);
    add(fixture, "a.test", "1", FRONTIER_PAGE, 1);
    finish(fixture, take(fixture), FRONTIER_DONE);
    close_frontier(fixture);
    put_raw(fixture, BYTES("c\0\0\0\0"), BYTES("\5"));
    for (int i = 0; i < 2; i++) {
        open_frontier(fixture);
        assert_int_equal(stat_of(fixture).waiting_count, i == 0 ? 5 : 0);
        assert_null(take(fixture));
        close_frontier(fixture);
    }
}

static int child(const char *deed, const char *directory, const char *shared_path) {
    static struct fixture fixture;
    snprintf(fixture.directory, sizeof fixture.directory, "%s", directory);
    if (strcmp(deed, "crawl") == 0) {
        fixture.config.window_max = 16;
        fixture.config.lanes_max = 20;
        return child_crawls(&fixture, map_shared(shared_path));
    }
    if (strcmp(deed, "leave") == 0) {
        return child_leaves(&fixture);
    }
    return child_fills(&fixture, strcmp(deed, "fill-and-close") == 0);
}

int main(int count, char **arguments) {
    if (count == 4) {
        return child(arguments[1], arguments[2], arguments[3]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(survives_kill_9_at_any_moment, make, destroy),
        cmocka_unit_test_setup_teardown(doubt_lasts_until_a_url_is_finished, make, destroy),
        cmocka_unit_test_setup_teardown(goes_on_when_a_full_disk_has_room_again, make, destroy),
        cmocka_unit_test_setup_teardown(a_disk_that_stays_full_ends_as_a_crash, make, destroy),
        cmocka_unit_test_setup_teardown(damaged_entries_are_corrupt, make, destroy),
        cmocka_unit_test_setup_teardown(a_damaged_url_is_told_and_stops_nothing_else, make, destroy),
        cmocka_unit_test_setup_teardown(a_count_that_is_wrong_is_put_right, make, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
