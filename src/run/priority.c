#include "run/priority.h"

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NICE_BEHIND = 10, NICE_MAX = 19 };

void priority_lower(enum priority priority) {
    if (priority == PRIORITY_USUAL) {
        return;
    }
    int nice = priority == PRIORITY_BEHIND ? NICE_BEHIND : NICE_MAX;
    setpriority(PRIO_PROCESS, (id_t)gettid(), nice); /* of this thread only, on Linux */
    if (priority == PRIORITY_IDLE) {
        sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    }
}

void priority_yield(void) {
    sched_yield();
}

/* Of the kernel; its header and that of the C library exclude each other. */
struct kernel_sched_attr {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
};

static const uint64_t TURN_SHORT_NS = 100000; /* the shortest that the kernel takes */

void priority_set_turns(enum priority_turns turns) {
    if (sched_getscheduler(0) != SCHED_OTHER) {
        return; /* somebody knows better */
    }
    struct kernel_sched_attr attributes = {
        .size = sizeof attributes,
        .policy = SCHED_OTHER,
        .nice = getpriority(PRIO_PROCESS, (id_t)gettid()),
        .runtime = turns == PRIORITY_SHORT_TURNS ? TURN_SHORT_NS : 0,
    };
    syscall(SYS_sched_setattr, 0, &attributes, 0); /* older kernels take no notice */
}
