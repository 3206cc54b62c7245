/*
 * offers_state - the state of offers.h. Private.
 *
 * One machine in several files: offers.c puts, loads and reads captures; offers_index.c finds them in memory;
 * offers_give.c hands them to other nodes and remembers which of them took a copy.
 */
#ifndef MNEMON_NODE_CROWD_OFFERS_STATE_H
#define MNEMON_NODE_CROWD_OFFERS_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "node/crowd/offers.h"
#include "node/crowd/offers_file.h"
#include "node/crowd/offers_title.h"
#include "store/remote/pack_payload.h"
#include "web/url/canon.h"

enum {
    OFFERS_TAKERS_MAX = 32,
    OFFERS_GIVES_MAX = OFFERS_TAKERS_MAX / 2,
    OFFERS_WORDS_SIZE_MAX = WISH_TITLE_SIZE_MAX + 3,
};

/* A node that took one capture, or is taking it. */
struct offers_taker {
    uint8_t key[PEER_KEY_SIZE];
    struct address address; /* where others reach it; port 0: not known */
    uint64_t since_us;
    uint64_t last_us;
    uint64_t given_size; /* since then */
    bool is_done;        /* it got the end of the capture */
};

struct offers_takers {
    size_t count;
    uint32_t turn; /* decides which one is named first */
    struct offers_taker takers[OFFERS_TAKERS_MAX];
};

/* One capture. */
struct offer {
    bool is_used;
    bool is_checked; /* its file, as it was at changed_at_ns */
    int64_t changed_at_ns;
    struct ringkey key;
    uint8_t hash[WISH_HASH_SIZE];
    struct document_sum sum;
    uint64_t file_size;
    char *url; /* of url_size, then the title, then its words */
    size_t url_size;
    size_t title_size;
    size_t words_size;
    uint32_t next_of_hash; /* slot + 1; 0: none; of a free slot, the next free one */
    uint32_t next_of_digest;
    uint32_t newer; /* slot + 1, by use */
    uint32_t older;
    uint32_t heat;                /* searches and transfers of late, each HEAT_ONE; halves with time */
    uint64_t heat_at_us;          /* when it was last halved */
    uint64_t given_count;         /* whole */
    struct offers_takers *takers; /* NULL: nobody yet */
};

struct offers {
    struct offers_config config;
    int directory; /* open, so that nobody else's path counts */

    pthread_mutex_t lock; /* held briefly, never for the disk; all that follows */
    struct offer *slots;  /* count_max */
    uint64_t *masks;      /* of each slot: the words of its title (offers_title_mask()); 0: none */
    struct map by_key;    /* -> slot:u32 */
    struct map by_hash;   /* -> slot + 1 of the first */
    struct map by_digest; /* likewise */
    uint32_t newest;      /* slot + 1, by use */
    uint32_t oldest;
    uint32_t first_free;
    struct offers_stat stat;
    struct buf words; /* of a wish */

    size_t review_slot; /* the next that offers_review() looks at */

    pthread_mutex_t put_lock; /* one put at a time; before `lock` */
    struct offers_title title;
    struct canon canon;
    struct sha256 sha256;
    struct buf surt;
    struct buf description;
    struct buf text;

    /* Of peer RPC's thread. */
    struct sha256 give_sha256;
    struct pack_payload give_pack_payload;
    struct scratch give_packed;
    struct buf give_text;
    struct buf give_piece;
};

uint64_t offers_now_us(const struct offers *offers);

/* ---- offers_index.c; the lock is held ---- */

enum err offers_index_init(struct offers *offers) MUST_CHECK;
void offers_index_done(struct offers *offers);
struct offer *offers_index_find(struct offers *offers, const struct ringkey *key);

/* What is entered. All of it is copied. */
struct offers_entry {
    struct ringkey key;
    const uint8_t *hash; /* of the SURT */
    struct document_sum sum;
    struct bytes url;
    struct bytes title;
    struct bytes words;
    uint64_t file_size;
};

/* Is there no room for so much more? Then *ret_key has just been removed, and its file is to be. */
bool offers_index_evict(struct offers *offers, uint64_t size, struct ringkey *ret_key);

/* Enter a capture that is not there; there is room for it. False: there is no memory. */
bool offers_index_add(struct offers *offers, const struct offers_entry *entry);
void offers_index_remove(struct offers *offers, struct offer *offer); /* its file stays */
void offers_index_use(struct offers *offers, struct offer *offer, bool is_asked);
uint32_t offers_heat(struct offers *offers, struct offer *offer); /* now */

/* offers_give.c: the service. */
peer_rpc_handler offers_give;
void offers_forget(struct offers *offers, const struct ringkey *key); /* its file is damaged */

#endif
