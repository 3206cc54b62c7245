/* captures_state - what the files of captures*.c share. Private to them. */
#ifndef MNEMON_NODE_CAPTURES_STATE_H
#define MNEMON_NODE_CAPTURES_STATE_H

#include "node/captures.h"
#include "node/captures_code.h"
#include "store/document_hasher.h"
#include "store/place.h"
#include "store/record.h"
#include "store/squeeze.h"
#include "url/canon.h"

enum { CAPTURES_GIVERS_COUNT = 4, CAPTURES_PEERS_MAX = 32 };

/* A payload that somebody is fetching in pieces: it is read from the disk once, not once for each of them. */
struct captures_giver {
    struct ringkey key;
    bool is_open;
    struct instance_session *session; /* NULL: not used yet */
    struct bytes payload;             /* in the session's hands */
    uint64_t used_at;                 /* counts questions */
};

struct captures {
    struct captures_config config;

    /* The bulk thread's. */
    bool has_kit; /* what follows is there */
    struct captures_giver givers[CAPTURES_GIVERS_COUNT];
    uint64_t questions_count;
    struct instance_session *session; /* to find captures, and for their records */
    struct record record;
    struct sha256 sha256;
    struct squeeze squeeze;
    struct buf surt;
    struct buf bounds;
    struct buf description;
    struct scratch piece;
};

struct captures_session {
    struct captures *captures;
    struct document_hasher hasher;
    struct canon canon;
    struct squeeze squeeze;
    struct payload head; /* of the description */
    struct buf surt;
    struct buf question;
    struct buf answer;
    struct buf kept; /* an answer that is used where none is better */
    struct buf message;
    struct buf description; /* what *ret_captured borrows */
    struct scratch body;    /* likewise */
    struct scratch piece;
    uint32_t piece_size; /* that the way to the others seems to bear */
};

/* captures_give.c: the service. */
bulk_handler captures_give;
void captures_give_done(struct captures *captures);

/* captures_check.c: is the description that of the key? Fills all but the body. ERR_MISMATCH with a sentence.
 */
enum err captures_check(struct captures_session *session, const struct ringkey *key, struct bytes description,
                        struct captured *ret_captured, struct err_detail *detail) MUST_CHECK;

#endif
