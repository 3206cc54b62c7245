#include "net/arrivals.h"

#include "base/assert.h"

/* The i-th in order, from the oldest. */
static uint64_t *at(struct arrivals *arrivals, uint32_t i) {
    return &arrivals->recent[(arrivals->first + i) % ARRIVALS_COUNT];
}

void arrivals_begin(struct arrivals *arrivals, uint64_t lowest) {
    arrivals->lowest = lowest;
    arrivals->first = 0;
    arrivals->count = 0;
}

uint64_t arrivals_highest(const struct arrivals *arrivals) {
    if (arrivals->count == 0) {
        return arrivals->lowest;
    }
    return arrivals->recent[(arrivals->first + arrivals->count - 1) % ARRIVALS_COUNT];
}

bool arrivals_take(struct arrivals *arrivals, uint64_t counter) {
    if (counter <= arrivals->lowest) {
        return false;
    }
    uint32_t place = arrivals->count; /* how many are below it */
    while (place > 0 && *at(arrivals, place - 1) > counter) {
        place--;
    }
    if (place > 0 && *at(arrivals, place - 1) == counter) {
        return false;
    }
    if (arrivals->count == ARRIVALS_COUNT) {
        if (place == 0) { /* below all that are kept: it would be the one to go */
            arrivals->lowest = counter;
            return true;
        }
        arrivals->lowest = *at(arrivals, 0);
        arrivals->first = (arrivals->first + 1) % ARRIVALS_COUNT;
        arrivals->count--;
        place--;
    }
    for (uint32_t i = arrivals->count; i > place; i--) {
        *at(arrivals, i) = *at(arrivals, i - 1);
    }
    *at(arrivals, place) = counter;
    arrivals->count++;
    ASSERT(arrivals->count <= ARRIVALS_COUNT);
    return true;
}
