/*
 * priority - threads that give way: work that can wait runs when nobody else wants the processor.
 *
 * Of the calling thread and of those that it starts from then on, for good: Linux lets nobody take it back.
 */
#ifndef MNEMON_BASE_PRIORITY_H
#define MNEMON_BASE_PRIORITY_H

enum priority {
    PRIORITY_LATER = 10, /* a tenth of what others get: crawling, while people read */
    PRIORITY_IDLE = 19,  /* next to nothing: counting, indexing texts */
};

void priority_lower(enum priority priority);

#endif
