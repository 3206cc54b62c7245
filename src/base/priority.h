/*
 * priority - threads that give way: work that can wait runs when nobody else wants the processor.
 *
 * Linux gives turns of a timer's tick, 4 ms, so what matters to a reader who needs the processor for 0.2 ms
 * is how seldom another has a turn, and not how long: a crawl at nice 10 made one answer in fifty late.
 *
 * Of the calling thread and of those that it starts from then on, for good: Linux lets nobody take it back.
 */
#ifndef MNEMON_BASE_PRIORITY_H
#define MNEMON_BASE_PRIORITY_H

enum priority {
    PRIORITY_BEHIND, /* a tenth of what others get: copies, which must come to be even under a crowd */
    PRIORITY_LATER,  /* one part in seventy of what others get: crawling, while people read */
    PRIORITY_IDLE,   /* next to nothing, and gives way to PRIORITY_LATER: counting, indexing texts */
};

void priority_lower(enum priority priority);

#endif
