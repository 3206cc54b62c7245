/* grouping_state - what the files of grouping*.c share. Private to them. */
#ifndef MNEMON_NODE_GROUP_GROUPING_STATE_H
#define MNEMON_NODE_GROUP_GROUPING_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "net/bucket.h"
#include "node/group/grouping.h"

enum {
    GROUPING_ASKED_MAX = 16,   /* who waits for approval, of one group; the oldest makes room */
    GROUPING_LEARNED_MAX = 64, /* transfers that the loop has not seen yet; more are dropped */
    GROUPING_PROBES_MAX = 8,   /* under way at once */
    GROUPING_MEMBERS_MAX = GROUPING_GROUPS_MAX * GROUP_MEMBERS_MAX,
};

/* ---- between the threads ---- */

/* The beat has read a file. */
struct grouping_news {
    struct grouping_news *next;
    bool is_gone; /* there is no such group any more; only the name counts */
    bool has_state;
    struct group_wish wish;
    struct group_state_file state;
};

/* For the disk's thread. */
struct grouping_save {
    struct grouping_save *next;
    char name[GROUP_FILES_NAME_SIZE_MAX];
    uint32_t life;   /* of the slot */
    bool is_removal; /* of all files of the group */
    bool has_number; /* EVENT_SAVED is wanted */
    uint64_t number;
    struct group_state_file state;
};

struct grouping_learned {
    struct peer peer;
    uint64_t size;
    uint64_t duration_us;
};

/*
 *      FREE ─ claimed by the loop ─> OPENING ─> TIMING ─> PROBING ─ told or failed ─> FREE
 *              an empty one: the stream is there │  an empty one: the round trip
 */
enum grouping_probe_state {
    GROUPING_PROBE_FREE,
    GROUPING_PROBE_OPENING,
    GROUPING_PROBE_TIMING,
    GROUPING_PROBE_PROBING
};

struct grouping_probe {
    struct grouping *grouping;
    _Atomic enum grouping_probe_state state;
    struct peer peer;
    uint32_t size;
    uint64_t asked_at_us;
    uint64_t round_trip_us;
};

/* ---- a group ---- */

struct grouping_asked {
    struct peer peer;
    uint64_t at_us;
};

/* What other threads see. */
struct grouping_view {
    char name[GROUP_FILES_NAME_SIZE_MAX];
    bool is_leaving;
    enum group_mode mode;
    bool is_master;
    bool is_refused;
    uint32_t term;
    uint32_t sequence;
    struct group_rules rules;
    struct group_counters counters;
    size_t neighbours_count;
    struct group_neighbour neighbours[GROUPING_NEIGHBOURS_MAX];
    size_t asked_count;
    struct grouping_asked asked[GROUPING_ASKED_MAX];
};

struct grouping_slot {
    /* The loop's. */
    bool is_used;
    uint32_t life; /* tells one user of the slot from the next */
    struct group_wish wish;
    struct group_rules rules; /* as they are known now */
    uint8_t id[GROUP_ID_SIZE];
    struct group *group; /* NULL: the contact has not said yet whose the group is */
    bool is_refused;
    bool is_removed; /* its files are being removed */
    uint64_t wake_at_us;
    uint64_t ask_at_us;  /* the contact, again */
    unsigned asks_count; /* since he last answered */
    bool is_told;        /* that he is not in the group himself */
    size_t asked_count;
    struct grouping_asked asked[GROUPING_ASKED_MAX];
    size_t approvals_count; /* GROUP_ASKED whose papers are good: said when the step is over */
    struct peer approvals[GROUPING_ASKED_MAX];
    uint64_t copy_at_us;

    /* The lock's. */
    bool is_shown;
    struct grouping_view view;
    struct topology *topology; /* a copy; NULL: none yet */
};

struct grouping {
    struct grouping_config config;
    struct ringing *ringing;
    struct bulk *bulk;
    struct peer self;
    _Atomic bool is_begun;
    _Atomic bool is_stopped;

    /* The loop's. */
    struct sha256 sha256;
    struct outbox out;
    struct action *actions;
    uint8_t *memory;
    struct grouping_slot slots[GROUPING_GROUPS_MAX];

    /* The beat's. */
    size_t known_count;
    struct group_wish *known;     /* GROUPING_GROUPS_MAX */
    char told[ERR_TEXT_SIZE_MAX]; /* what is wrong with a file, said last */

    /* The bulk thread's. */
    struct bucket probes_bucket; /* of those that we answer */

    pthread_t thread; /* of the disk */
    pthread_cond_t work;

    pthread_mutex_t lock; /* of all below */
    struct grouping_news *news;
    struct grouping_news **news_end;
    struct grouping_save *saves; /* to be written */
    struct grouping_save **saves_end;
    struct grouping_save *saved; /* the loop has to be told */
    size_t learned_count;
    struct grouping_learned learned[GROUPING_LEARNED_MAX];
    struct map members; /* keys of all members of all groups */
    struct grouping_probe probes[GROUPING_PROBES_MAX];
};

static inline uint64_t grouping_now_us(const struct grouping *grouping) {
    return clock_monotonic_us(grouping->config.clock);
}

void grouping_note(const struct grouping *grouping, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* grouping.c: the loop shall take what others have put down for it (grouping_take_posts()). */
void grouping_hurry(struct grouping *grouping);

/* grouping_loop.c, the loop. A step, with its time and all that follows from it. */
void grouping_step(struct grouping *grouping, struct grouping_slot *slot, struct event *event);
void grouping_found(struct grouping *grouping, struct grouping_slot *slot, const struct peer *contact);
void grouping_open_slot(struct grouping *grouping, struct grouping_slot *slot,
                        const struct grouping_news *news);
void grouping_close_slot(struct grouping *grouping, struct grouping_slot *slot);
void grouping_set_timer(struct grouping *grouping);

/* grouping_news.c, the loop: what others have put down for it. Its files go when a group has been left. */
void grouping_take_posts(void *context);
void grouping_remove(struct grouping *grouping, struct grouping_slot *slot);

/* grouping_notice.c, the loop: what a group says. */
void grouping_on_notice(struct grouping *grouping, struct grouping_slot *slot, const struct action *action);

/* grouping_ask.c, the loop: whose is the group of that name? */
void grouping_ask(struct grouping *grouping, struct grouping_slot *slot);
bool grouping_ask_receive(struct grouping *grouping, const struct datagram_message *message);

/* grouping_papers.c, the loop: the token of this node; and are those of another good? */
struct bytes grouping_write_papers(struct grouping *grouping, const struct grouping_slot *slot,
                                   uint8_t out[GROUP_PAPERS_SIZE_MAX]);
bool grouping_papers_are_good(struct grouping *grouping, const struct grouping_slot *slot,
                              const struct peer *peer, struct bytes papers);

/* grouping_disk.c */
void *grouping_run_disk(void *context);
void grouping_save(struct grouping *grouping, const struct grouping_slot *slot, const uint64_t *number,
                   struct bytes document);
void grouping_save_removal(struct grouping *grouping, const struct grouping_slot *slot);

/* grouping_probe.c: the loop; then the bulk thread. */
void grouping_probe(struct grouping *grouping, const struct peer *peer, uint32_t size);
enum err grouping_answer_probe(void *context, const struct peer *from, struct bytes question,
                               struct buf *answer, struct err_detail *detail);

/* grouping_share.c, the loop: what others see; at once where it matters. */
void grouping_show(struct grouping *grouping, struct grouping_slot *slot, bool is_now);
void grouping_hide(struct grouping *grouping, struct grouping_slot *slot);

#endif
