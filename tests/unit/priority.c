/* priority: threads give way one by one; turns change nothing else. */
#include "run/priority.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "unit.h"

struct seen {
    enum priority priority;
    int nice;
    int policy;
};

static void *lower(void *context) {
    struct seen *seen = context;
    priority_lower(seen->priority);
    priority_yield();
    seen->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    seen->policy = sched_getscheduler(0);
    return NULL;
}

static struct seen lowered(enum priority priority) {
    struct seen seen = {.priority = priority};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, lower, &seen), 0);
    pthread_join(thread, NULL);
    return seen;
}

static void each_gives_way_further_than_the_one_before(void **state) {
    (void)state;
    int own = getpriority(PRIO_PROCESS, (id_t)gettid());
    struct seen behind = lowered(PRIORITY_BEHIND);
    struct seen later = lowered(PRIORITY_LATER);
    struct seen idle = lowered(PRIORITY_IDLE);
    assert_true(behind.nice >= own && behind.nice <= later.nice);
    assert_int_equal(behind.policy, SCHED_OTHER);
    assert_int_equal(later.policy, SCHED_OTHER);
    assert_int_equal(idle.policy, SCHED_IDLE);
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)gettid()), own); /* they alone */
}

static void *take_turns(void *context) {
    struct seen *seen = context;
    priority_lower(seen->priority);
    int nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    int policy = sched_getscheduler(0);
    priority_set_turns(PRIORITY_SHORT_TURNS);
    bool is_same = getpriority(PRIO_PROCESS, (id_t)gettid()) == nice && sched_getscheduler(0) == policy;
    priority_set_turns(PRIORITY_USUAL_TURNS);
    seen->nice = is_same && getpriority(PRIO_PROCESS, (id_t)gettid()) == nice;
    seen->policy = is_same && sched_getscheduler(0) == policy;
    return NULL;
}

static void turns_change_neither_priority_nor_policy(void **state) {
    (void)state;
    for (int i = PRIORITY_BEHIND; i <= PRIORITY_IDLE; i++) {
        struct seen seen = {.priority = (enum priority)i};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take_turns, &seen), 0);
        pthread_join(thread, NULL);
        assert_true(seen.nice && seen.policy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gives_way_further_than_the_one_before),
        cmocka_unit_test(turns_change_neither_priority_nor_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
