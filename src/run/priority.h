/*
 * priority - threads that give way: work that can wait runs when nobody else wants the processor.
 *
 * Linux gives turns of a timer's tick, 4 ms, so what matters to a reader who needs the processor for 0.2 ms
 * is how seldom another has a turn, and not how long: a crawl at nice 10 made one answer in fifty late.
 *
 * Of the calling thread and of those that it starts from then on, for good: Linux lets nobody take it back.
 *
 * Who wants short turns gets them sooner (Linux 6.12; docs/decisions/0015): threads that serve readers.
 */
#ifndef MNEMON_RUN_PRIORITY_H
#define MNEMON_RUN_PRIORITY_H

enum priority {
    PRIORITY_USUAL,  /* as whoever starts the thread */
    PRIORITY_BEHIND, /* a tenth of what others get: copies, which must come to be even under a crowd */
    PRIORITY_LATER,  /* one part in seventy of what others get: crawling, while people read */
    PRIORITY_IDLE,   /* next to nothing, and gives way to PRIORITY_LATER: counting, indexing texts */
};

void priority_lower(enum priority priority);

/*
 * Between two pieces of work of such a thread: who waits for the processor gets it now, and not at the next
 * tick. Next to nothing where nobody waits.
 */
void priority_yield(void);

enum priority_turns { PRIORITY_USUAL_TURNS, PRIORITY_SHORT_TURNS };

/* Of the calling thread, which gives way to nobody, and of those that it starts while that holds. */
void priority_set_turns(enum priority_turns turns);

#endif
