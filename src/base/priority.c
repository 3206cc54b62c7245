#include "base/priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NICE_BEHIND = 10, NICE_MAX = 19 };

void priority_lower(enum priority priority) {
    int nice = priority == PRIORITY_BEHIND ? NICE_BEHIND : NICE_MAX;
    setpriority(PRIO_PROCESS, (id_t)gettid(), nice); /* of this thread only, on Linux */
    if (priority == PRIORITY_IDLE) {
        sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    }
}
