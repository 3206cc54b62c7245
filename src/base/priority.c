#include "base/priority.h"

#include <sys/resource.h>
#include <unistd.h>

void priority_lower(enum priority priority) {
    setpriority(PRIO_PROCESS, (id_t)gettid(), (int)priority); /* of this thread only, on Linux */
}
