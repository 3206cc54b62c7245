#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "node/reading/ring_reader_scope.h"
#include "node/reading/ring_reader_state.h"
#include "web/url/surt.h"

enum { RING_READER_KEY_SIZE_MAX = INDEX_SURT_SIZE_MAX + 16 };

/* The walk over one node. */
struct ring_reader_lane {
    struct ring_reader_question ask; /* its answer is the page */
    struct wire_reader reader;
    bool has_page;
    bool is_last;           /* there is no page behind this one */
    struct buf bound;       /* from, or to in reverse, of the next page */
    struct buf key;         /* of `capture`, without its location: they must come in order */
    struct capture capture; /* the next that it has */
};

struct ring_reader_cursor {
    struct backend_cursor cursor; /* first */
    struct ring_reader *backend;
    struct buf from;
    struct buf to;
    bool in_reverse;
    struct ring_reader_manner manner;
    bool is_counted;                     /* the walking thread has entered: its pages need not do so again */
    struct ring_reader_listing *listing; /* of one URL; NULL: page by page, by what follows */
    size_t listing_next;
    bool is_partial;
    struct absent unheard; /* the nodes that did not answer, if is_partial */
    bool is_denied;        /* a compared holder has nothing: unless another has, that is all there is */
    uint32_t page_count;
    struct ring_reader_lane **lanes; /* a heap: the first has the next capture */
    size_t lanes_count;
    struct peer spares[RING_READER_HOLDERS_MAX]; /* holders that could go on instead of the only lane's */
    size_t spares_count;
    struct ring_reader_member *group; /* of one SURT and time, given from group_next on; slices in the text */
    size_t group_count;
    size_t group_next;
    struct buf text; /* of the group: the SURT, then URLs and types */
    struct buf key;  /* work */
    enum err err;    /* stays */
};

/* The node, or, with NULL, some that have no name here, did not answer. */
static void walk_miss(struct ring_reader_cursor *cursor, const struct peer *peer) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    char name[ADDRESS_TEXT_SIZE_MAX + 8] = RING_READER_OTHERS;
    if (peer != NULL) {
        snprintf(name, sizeof name, "node %s", address_format(&peer->address, address));
    }
    cursor->is_partial = true;
    absent_add_string(&cursor->unheard, name);
}

/* The walk over the captures of one other node, page by page; nothing that it says is taken unchecked. */

static void ring_reader_lane_free(struct ring_reader_lane *lane) {
    if (lane != NULL) {
        buf_done(&lane->ask.question);
        buf_done(&lane->ask.answer);
        buf_done(&lane->bound);
        buf_done(&lane->key);
        free(lane);
    }
}

static struct ring_reader_lane *ring_reader_lane_new(const struct ring_reader_cursor *cursor,
                                                     const struct peer *peer) {
    struct ring_reader_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return NULL;
    }
    lane->ask.peer = *peer;
    buf_init(&lane->ask.question, BACKEND_CODE_WALK_SIZE_MAX);
    buf_init(&lane->ask.answer, BACKEND_CODE_PAGE_SIZE_MAX + 1);
    buf_init(&lane->bound, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&lane->key, RING_READER_KEY_SIZE_MAX);
    if (buf_put(&lane->bound, buf_bytes(cursor->in_reverse ? &cursor->to : &cursor->from)) != ERR_OK) {
        ring_reader_lane_free(lane);
        return NULL;
    }
    return lane;
}

static enum err ring_reader_lane_question(const struct ring_reader_cursor *cursor,
                                          struct ring_reader_lane *lane) {
    struct bytes bound = buf_bytes(&lane->bound);
    struct backend_code_walk walk = {
        .from = cursor->in_reverse ? buf_bytes(&cursor->from) : bound,
        .to = cursor->in_reverse ? bound : buf_bytes(&cursor->to),
        .in_reverse = cursor->in_reverse,
        .count_max = cursor->page_count,
    };
    lane->ask.timeout_ms = cursor->manner.hasty_ms;
    buf_clear(&lane->ask.question);
    return backend_code_put_walk(&lane->ask.question, &walk);
}

/* How sure it is, then the page. */
static void ring_reader_lane_begin(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    struct bytes page = buf_bytes(&lane->ask.answer);
    if (page.size > 0 && page.data[0] == RING_READER_LACKS) {
        walk_miss(cursor, &lane->ask.peer);
    }
    wire_reader_init(&lane->reader, page.size > 0 ? bytes_skip(page, 1) : page);
    lane->has_page = true;
}

/* Behind the last entry of a page. A node that does not come further would keep us for ever. */
static enum err end_page(const struct ring_reader_cursor *cursor, struct ring_reader_lane *lane,
                         const struct backend_code_page_end *end) {
    lane->has_page = false;
    lane->is_last = end->is_end;
    if (end->is_end) {
        return ERR_OK;
    }
    int order = bytes_compare(end->next, buf_bytes(&lane->bound));
    if (lane->bound.size > 0 && (cursor->in_reverse ? order >= 0 : order <= 0)) {
        return ERR_INVALID;
    }
    buf_clear(&lane->bound);
    return buf_put(&lane->bound, end->next);
}

/* Within the walk, and not before the one that the node gave last. */
static bool is_in_order(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    buf_clear(&cursor->key);
    index_put_capture_prefix(&cursor->key, lane->capture.surt, lane->capture.time_us);
    struct bytes key = buf_bytes(&cursor->key);
    int order = bytes_compare(key, buf_bytes(&lane->key));
    bool is_inside = bytes_compare(key, buf_bytes(&cursor->from)) >= 0 &&
                     (cursor->to.size == 0 || bytes_compare(key, buf_bytes(&cursor->to)) < 0);
    bool is_behind = lane->key.size == 0 || (cursor->in_reverse ? order <= 0 : order >= 0);
    if (cursor->key.err != ERR_OK || !is_inside || !is_behind) {
        return false;
    }
    buf_clear(&lane->key);
    return buf_put(&lane->key, key) == ERR_OK;
}

/* A URL of something else would lead whoever asks for this one there. */
static bool is_of_url(struct ring_reader_cursor *cursor, const struct capture *capture) {
    struct ring_reader_session *session = ring_reader_session(cursor->cursor.session);
    buf_clear(&session->listed_surt);
    return canon_run(&session->canon, capture->url, NULL) == ERR_OK &&
           surt_put(&session->listed_surt, &session->canon) == ERR_OK &&
           bytes_equal(buf_bytes(&session->listed_surt), capture->surt);
}

/* The next capture of the page. ERR_NOT_FOUND: another page is needed, or it was the last; ERR_INVALID. */
static enum err walk_read_entry(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    struct backend_code_page_end end;
    enum err err = backend_code_next_capture(&lane->reader, &lane->capture, &end, NULL);
    if (err == ERR_OK) {
        return is_in_order(cursor, lane) && is_of_url(cursor, &lane->capture) ? ERR_OK : ERR_INVALID;
    }
    if (err == ERR_NOT_FOUND) {
        return end_page(cursor, lane, &end) == ERR_OK ? ERR_NOT_FOUND : ERR_INVALID;
    }
    return ERR_INVALID;
}

/* The lane's node does not answer, or not what it should: another holder goes on, or nobody. */
static bool replace(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    lane->has_page = false;
    if (cursor->spares_count == 0) {
        walk_miss(cursor, &lane->ask.peer);
        return false;
    }
    lane->ask.peer = cursor->spares[--cursor->spares_count];
    if (lane->key.size > 0) { /* what was given of the page is not wanted again */
        buf_clear(&lane->bound);
        buf_put(&lane->bound, buf_bytes(&lane->key));
        if (cursor->in_reverse) {
            buf_put_byte(&lane->bound, 0xff); /* above all locations of that SURT and time */
        }
    }
    return lane->bound.err == ERR_OK;
}

static enum err ring_reader_lane_advance(struct ring_reader_cursor *cursor, struct ring_reader_lane *lane) {
    for (;;) {
        enum err err = lane->has_page ? walk_read_entry(cursor, lane) : ERR_NOT_FOUND;
        if (err == ERR_OK) {
            return ERR_OK;
        }
        if (err == ERR_INVALID) {
            ring_reader_blame(cursor->backend, &lane->ask.peer, "gives a list of captures that is none");
            if (!replace(cursor, lane)) {
                return ERR_NOT_FOUND;
            }
        }
        if (lane->is_last) {
            return ERR_NOT_FOUND;
        }
        err = ring_reader_lane_question(cursor, lane);
        if (err != ERR_OK) {
            return err;
        }
        struct ring_reader_question *ask = &lane->ask;
        if (!cursor->is_counted && ring_reader_enter(cursor->backend) != ERR_OK) {
            walk_miss(cursor, &lane->ask.peer);
            return ERR_NOT_FOUND;
        }
        ring_reader_ask(cursor->backend, &ask, 1);
        if (!cursor->is_counted) {
            ring_reader_leave(cursor->backend);
        }
        if (ask->err == ERR_OK) {
            ring_reader_lane_begin(cursor, lane);
        } else if (!replace(cursor, lane)) {
            return ERR_NOT_FOUND;
        }
    }
}

/* A walk over the captures of other nodes: page by page from each, merged. */

enum {
    PAGE_COUNT_MAX = 1000,
    PAGE_COUNT_MIN = 8,
    PAGES_COUNT = 8192,        /* about so many captures of all nodes together are here at a time */
    PAGES_SIZE_MAX = 64 << 20, /* and of so many bytes; nodes beyond are left out */
    GROUP_MAX = 64,            /* different captures of one SURT and time; more are left out */
    GROUP_SIZE_MAX = GROUP_MAX * (INDEX_URL_SIZE_MAX + INDEX_MIME_SIZE_MAX) + INDEX_SURT_SIZE_MAX,
};

/* ---- the heap ---- */

static int walk_compare(const struct capture *a, const struct capture *b) {
    int order = bytes_compare(a->surt, b->surt);
    return order != 0 ? order : (a->time_us > b->time_us) - (a->time_us < b->time_us);
}

static bool comes_first(const struct ring_reader_cursor *cursor, size_t a, size_t b) {
    int order = walk_compare(&cursor->lanes[a]->capture, &cursor->lanes[b]->capture);
    return cursor->in_reverse ? order > 0 : order < 0;
}

static void walk_sift(struct ring_reader_cursor *cursor, size_t position) {
    for (;;) {
        size_t best = position;
        for (size_t child = 2 * position + 1; child <= 2 * position + 2 && child < cursor->lanes_count;
             child++) {
            best = comes_first(cursor, child, best) ? child : best;
        }
        if (best == position) {
            return;
        }
        struct ring_reader_lane *moved = cursor->lanes[position];
        cursor->lanes[position] = cursor->lanes[best];
        cursor->lanes[best] = moved;
        position = best;
    }
}

/* The first lane goes on to its next capture, or ends. */
static enum err walk_go_on(struct ring_reader_cursor *cursor) {
    enum err err = ring_reader_lane_advance(cursor, cursor->lanes[0]);
    if (err == ERR_NOT_FOUND) {
        ring_reader_lane_free(cursor->lanes[0]);
        cursor->lanes[0] = cursor->lanes[--cursor->lanes_count];
        err = ERR_OK;
    }
    if (err == ERR_OK) {
        walk_sift(cursor, 0);
    }
    return err;
}

/* ---- groups: what several nodes have is given once, in an order that is the same every time ---- */

static enum err walk_add_member(struct ring_reader_cursor *cursor, const struct ring_reader_lane *lane) {
    const struct capture *capture = &lane->capture;
    struct ring_reader_session *session = ring_reader_session(cursor->cursor.session);
    for (size_t i = 0; i < cursor->group_count; i++) {
        if (memcmp(cursor->group[i].capture.digest, capture->digest, KEY_DIGEST_SIZE) == 0) {
            return ERR_OK;
        }
    }
    if (cursor->group_count == GROUP_MAX) {
        walk_miss(cursor, &lane->ask.peer);
        return ERR_OK;
    }
    struct ring_reader_member *member = &cursor->group[cursor->group_count++];
    *member = (struct ring_reader_member){
        .capture = *capture, .from = lane->ask.peer, .listed_at_us = clock_monotonic_us(&clock_system)};
    member->key = position_capture_key(&session->sha256, capture, cursor->backend->config.mapping);
    member->number = ring_reader_number(&session->sha256, &member->key);
    buf_put(&cursor->text, capture->url);
    return buf_put(&cursor->text, capture->mime);
}

/* The text has come to rest: let the slices point into it. */
static void set_slices(struct ring_reader_cursor *cursor, size_t surt_size) {
    struct bytes text = buf_bytes(&cursor->text);
    size_t at = surt_size;
    for (size_t i = 0; i < cursor->group_count; i++) {
        struct capture *capture = &cursor->group[i].capture;
        size_t url_end = at + capture->url.size;
        size_t mime_end = url_end + capture->mime.size;
        capture->surt = bytes_slice(text, 0, surt_size);
        capture->url = bytes_slice(text, at, url_end);
        capture->mime = bytes_slice(text, url_end, mime_end);
        at = mime_end;
    }
}

static int compare_members(const void *a, const void *b) {
    uint64_t left = ((const struct ring_reader_member *)a)->number;
    uint64_t right = ((const struct ring_reader_member *)b)->number;
    return (left > right) - (left < right);
}

/* All captures of the next SURT and time. ERR_NOT_FOUND at the end. */
static enum err fill_group(struct ring_reader_cursor *cursor) {
    cursor->group_count = cursor->group_next = 0;
    if (cursor->lanes_count == 0) {
        return cursor->is_partial ? ERR_UNREACHABLE : ERR_NOT_FOUND;
    }
    struct capture first = cursor->lanes[0]->capture;
    size_t surt_size = first.surt.size;
    buf_clear(&cursor->text);
    enum err err = buf_reserve(&cursor->text, surt_size + 1);
    if (err != ERR_OK) {
        return err;
    }
    buf_put(&cursor->text, first.surt);
    while (err == ERR_OK && cursor->lanes_count > 0) {
        const struct capture *next = &cursor->lanes[0]->capture;
        bool is_same = next->time_us == first.time_us &&
                       bytes_equal(next->surt, bytes_slice(buf_bytes(&cursor->text), 0, surt_size));
        if (!is_same) {
            break;
        }
        err = walk_add_member(cursor, cursor->lanes[0]);
        err = err == ERR_OK ? walk_go_on(cursor) : err;
    }
    if (err != ERR_OK) {
        return err;
    }
    set_slices(cursor, surt_size);
    qsort(cursor->group, cursor->group_count, sizeof cursor->group[0], compare_members);
    return ERR_OK;
}

enum err ring_reader_walk_next(struct ring_reader_cursor *cursor,
                               const struct ring_reader_member **ret_member) {
    if (cursor->err == ERR_OK && cursor->group_next == cursor->group_count) {
        cursor->err = fill_group(cursor);
    }
    if (cursor->err == ERR_OK) {
        size_t index = cursor->group_next++;
        *ret_member = &cursor->group[cursor->in_reverse ? cursor->group_count - 1 - index : index];
    }
    return cursor->err;
}

/* ---- giving ---- */

/* What the crowd has was had already. */
static bool is_doubted(struct ring_reader *backend, const struct ring_reader_member *member) {
    return member->listed_at_us > 0 &&
           ring_reader_doubts_has(&backend->doubts, member->number, clock_monotonic_us(&clock_system));
}

static enum err walk_give(struct ring_reader_cursor *cursor, const struct ring_reader_member *member,
                          struct capture *ret_capture) {
    struct capture capture = member->capture;
    enum err err = ring_reader_listed_put(&cursor->backend->listed, member->number, &member->key, &capture,
                                          &member->from, member->listed_at_us);
    capture.location.segment = RING_READER_OWN;
    capture.location.offset = member->number;
    capture.block_number = 0;
    if (err == ERR_OK) {
        *ret_capture = capture;
    }
    return err;
}

static bool is_inside(struct ring_reader_cursor *cursor, const struct capture *capture) {
    buf_clear(&cursor->key);
    index_put_capture_prefix(&cursor->key, capture->surt, capture->time_us);
    struct bytes key = buf_bytes(&cursor->key);
    return bytes_compare(key, buf_bytes(&cursor->from)) >= 0 &&
           bytes_compare(key, buf_bytes(&cursor->to)) < 0;
}

static enum err ring_reader_url_next(struct ring_reader_cursor *cursor,
                                     const struct ring_reader_member **ret_member) {
    const struct ring_reader_listing *listing = cursor->listing;
    while (cursor->listing_next < listing->count) {
        size_t index = cursor->listing_next++;
        const struct ring_reader_member *member =
            &listing->members[cursor->in_reverse ? listing->count - 1 - index : index];
        if (is_inside(cursor, &member->capture)) {
            *ret_member = member;
            return ERR_OK;
        }
    }
    bool is_denied = cursor->is_denied && listing->count == 0;
    cursor->err = listing->is_partial && !is_denied ? ERR_UNREACHABLE : ERR_NOT_FOUND;
    return cursor->err;
}

enum err ring_reader_captures_next(struct backend_cursor *generic, struct capture *ret_capture,
                                   struct err_detail *detail) {
    struct ring_reader_cursor *cursor = (struct ring_reader_cursor *)generic;
    const struct ring_reader_member *member = NULL;
    do {
        if (cursor->err == ERR_OK) {
            cursor->err = cursor->listing != NULL ? ring_reader_url_next(cursor, &member)
                                                  : ring_reader_walk_next(cursor, &member);
        }
    } while (cursor->err == ERR_OK && is_doubted(cursor->backend, member));
    if (cursor->err == ERR_OK) {
        cursor->err = walk_give(cursor, member, ret_capture);
    }
    if (cursor->err == ERR_UNREACHABLE) {
        return err_set(detail, ERR_UNREACHABLE, "%s", ring_reader_captures_unheard(generic));
    }
    return cursor->err;
}

const char *ring_reader_captures_unheard(const struct backend_cursor *generic) {
    const struct ring_reader_cursor *cursor = (const struct ring_reader_cursor *)generic;
    const struct ring_reader_listing *listing = cursor->listing;
    if (listing == NULL) {
        return cursor->is_partial ? cursor->unheard.text : "";
    }
    bool is_denied = cursor->is_denied && listing->count == 0;
    return !listing->is_partial || is_denied ? ""
           : listing->unheard.size > 0       ? (const char *)listing->unheard.data
                                             : RING_READER_OTHERS;
}

/* ---- opening ---- */

static enum err add_lane(struct ring_reader_cursor *cursor, const struct peer *peer,
                         struct ring_reader_lane **ret_lane) {
    struct ring_reader_lane *lane = ring_reader_lane_new(cursor, peer);
    if (lane == NULL) {
        return ERR_MEMORY;
    }
    cursor->lanes[cursor->lanes_count++] = lane;
    *ret_lane = lane;
    return ERR_OK;
}

static bool is_sure(void *context, size_t index, struct bytes answer) {
    (void)context;
    (void)index;
    return answer.size > 1 && answer.data[0] == RING_READER_SURE;
}

static bool has_nothing(const struct ring_reader_lane *lane) {
    struct wire_reader reader;
    struct capture capture;
    struct backend_code_page_end end = {0};
    wire_reader_init(&reader, bytes_skip(buf_bytes(&lane->ask.answer), 1));
    return backend_code_next_capture(&reader, &capture, &end, NULL) == ERR_NOT_FOUND && end.is_end;
}

/*
 * The first holder of a position that answers for all. ERR_NOT_FOUND: none does. A holder that has nothing
 * goes from the list: the others are to be asked, too.
 */
static enum err ask_holders(struct ring_reader_cursor *cursor, struct peer *peers, size_t *holders_count) {
    const struct ring_reader_config *config = &cursor->backend->config;
    struct ring_reader_lane *lane;
    size_t index;
    size_t count = ring_reader_put_busy_last(cursor->backend, peers, *holders_count, NULL);
    count = cursor->manner.asks_busy ? *holders_count : count;
    count =
        ring_reader_doubts_sort(&cursor->backend->doubts, peers, count, clock_monotonic_us(&clock_system));
    if (count == 0) {
        return ERR_NOT_FOUND;
    }
    cursor->page_count = PAGE_COUNT_MAX;
    enum err err = add_lane(cursor, &peers[0], &lane);
    if (err == ERR_OK) {
        err = ring_reader_lane_question(cursor, lane);
    }
    if (err != ERR_OK) {
        return err;
    }
    err = peer_rpc_ask_any(config->peer_rpc, peers, count, PEER_RPC_WALK, buf_bytes(&lane->ask.question),
                           config->timeout_ms, is_sure, NULL, &lane->ask.answer, &index, NULL);
    cursor->is_denied = err == ERR_OK && has_nothing(lane);
    if (err != ERR_OK || cursor->is_denied) {
        cursor->lanes_count = 0;
        ring_reader_lane_free(lane);
        if (err == ERR_OK) {
            peers[index] = peers[--*holders_count];
        }
        return ERR_NOT_FOUND;
    }
    lane->ask.peer = peers[index];
    for (size_t i = 0; i < count; i++) {
        if (i != index) {
            cursor->spares[cursor->spares_count++] = peers[i];
        }
    }
    ring_reader_lane_begin(cursor, lane);
    return ERR_OK;
}

static bool is_worth_asking(const struct ring_reader_cursor *cursor, const struct peer *peer) {
    bool is_busy = !cursor->manner.asks_busy && peer_rpc_is_busy(cursor->backend->config.peer_rpc, peer);
    struct ring_reader_doubts *doubts = &cursor->backend->doubts;
    uint64_t now_us = clock_monotonic_us(&clock_system);
    return !is_busy && ring_reader_doubts_trust(doubts, peer, now_us) != RING_READER_PASSED_OVER &&
           !ring_reader_doubts_is_silent(doubts, peer, now_us);
}

/* All of them at the same time, a page of each. Nodes that do not answer are left out. */
static enum err ask_all(struct ring_reader_cursor *cursor, const struct peer *peers, size_t count) {
    size_t share = PAGES_COUNT / (count > 0 ? count : 1);
    struct ring_reader_question **questions = calloc(count + 1, sizeof *questions);
    size_t questions_count = 0;
    size_t size = 0;
    enum err err = questions == NULL ? ERR_MEMORY : ERR_OK;
    cursor->page_count = (uint32_t)(share > PAGE_COUNT_MAX   ? PAGE_COUNT_MAX
                                    : share < PAGE_COUNT_MIN ? PAGE_COUNT_MIN
                                                             : share);
    for (size_t i = 0; i < count && err == ERR_OK; i++) {
        struct ring_reader_lane *lane;
        if (!is_worth_asking(cursor, &peers[i])) {
            walk_miss(cursor, &peers[i]);
            continue;
        }
        err = add_lane(cursor, &peers[i], &lane);
        if (err == ERR_OK) {
            err = ring_reader_lane_question(cursor, lane);
            questions[questions_count++] = &lane->ask;
        }
    }
    if (err == ERR_OK) {
        ring_reader_ask(cursor->backend, questions, questions_count);
    }
    free(questions);
    size_t kept_count = 0;
    for (size_t i = 0; i < cursor->lanes_count; i++) {
        struct ring_reader_lane *lane = cursor->lanes[i];
        size += lane->ask.answer.size;
        if (err == ERR_OK && lane->ask.err == ERR_OK && size <= PAGES_SIZE_MAX) {
            ring_reader_lane_begin(cursor, lane);
            cursor->lanes[kept_count++] = lane;
        } else {
            walk_miss(cursor, &lane->ask.peer);
            ring_reader_lane_free(lane);
        }
    }
    cursor->lanes_count = kept_count;
    return err;
}

/* The first capture of each lane; those that have none end. Then the heap. */
static enum err walk_start(struct ring_reader_cursor *cursor) {
    size_t kept_count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < cursor->lanes_count; i++) {
        struct ring_reader_lane *lane = cursor->lanes[i];
        enum err outcome = err == ERR_OK ? ring_reader_lane_advance(cursor, lane) : ERR_CANCELLED;
        if (outcome == ERR_OK) {
            cursor->lanes[kept_count++] = lane;
        } else {
            ring_reader_lane_free(lane);
            err = err == ERR_OK && outcome != ERR_NOT_FOUND ? outcome : err;
        }
    }
    cursor->lanes_count = kept_count;
    cursor->is_partial = cursor->is_partial && !(cursor->is_denied && kept_count == 0);
    for (size_t i = cursor->lanes_count / 2; i-- > 0;) {
        walk_sift(cursor, i);
    }
    return err;
}

/* The nodes that have captures of this walk. No peers: nobody but ourselves. */
static enum err find_peers(struct ring_reader_cursor *cursor, struct peer **ret_peers, size_t *ret_count,
                           bool *ret_is_one_position) {
    struct ring_reader *backend = cursor->backend;
    const struct ring_reader_config *config = &backend->config;
    struct ring_reader_session *session = ring_reader_session(cursor->cursor.session);
    uint8_t position[RINGKEY_POSITION_SIZE];
    *ret_is_one_position = ring_reader_scope(&session->sha256, buf_bytes(&cursor->from),
                                             buf_bytes(&cursor->to), config->mapping, position);
    enum ring_reader_knowledge knowledge =
        *ret_is_one_position ? ring_reader_knowledge(config, position) : RING_READER_KNOWS_NOT;
    cursor->is_denied = knowledge == RING_READER_KNOWS_OF_NOTHING;
    *ret_count = 0;
    if (*ret_is_one_position ? knowledge == RING_READER_KNOWS_ALL
                             : config->has_everything != NULL && config->has_everything(config->context)) {
        return ERR_OK;
    }
    if (config->is_in_ring != NULL && !config->is_in_ring(config->context)) {
        walk_miss(cursor, NULL);
        return ERR_OK;
    }
    size_t peers_max = RING_READER_HOLDERS_MAX;
    if (!*ret_is_one_position) {
        peers_max = config->find_all(config->context, NULL, 0);
        if (peers_max > RING_READER_NODES_MAX) {
            walk_miss(cursor, NULL);
            peers_max = RING_READER_NODES_MAX;
        }
    }
    struct peer *peers = calloc(peers_max + 1, sizeof *peers);
    if (peers == NULL) {
        return ERR_MEMORY;
    }
    *ret_peers = peers;
    if (*ret_is_one_position) {
        enum err err = ring_reader_holders(backend, position, NULL, peers, ret_count);
        return err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    size_t count = config->find_all(config->context, peers, peers_max);
    count = count < peers_max ? count : peers_max;
    for (size_t i = 0; i < count; i++) {
        if (memcmp(peers[i].key, config->self, PEER_KEY_SIZE) != 0) {
            peers[(*ret_count)++] = peers[i];
        }
    }
    return ERR_OK;
}

static enum err open_lanes(struct ring_reader_cursor *cursor) {
    struct peer *peers = NULL;
    size_t count;
    bool is_one_position;
    enum err err = find_peers(cursor, &peers, &count, &is_one_position);
    if (err == ERR_OK && count > 0) {
        cursor->lanes = calloc(count, sizeof(struct ring_reader_lane *));
        cursor->lanes_count = 0;
        err = cursor->lanes == NULL ? ERR_MEMORY : ERR_OK;
        bool asks_one = is_one_position && !cursor->is_denied && cursor->manner.hasty_ms == 0;
        if (err == ERR_OK && asks_one) {
            err = ask_holders(cursor, peers, &count);
        }
        if (err == ERR_NOT_FOUND || (err == ERR_OK && !asks_one)) {
            err = ask_all(cursor, peers, count);
        }
    }
    free(peers);
    return err == ERR_OK ? walk_start(cursor) : err;
}

void ring_reader_cursor_close(struct backend_cursor *generic) {
    struct ring_reader_cursor *cursor = (struct ring_reader_cursor *)generic;
    for (size_t i = 0; i < cursor->lanes_count; i++) {
        ring_reader_lane_free(cursor->lanes[i]);
    }
    if (cursor->listing != NULL) {
        ring_reader_cache_release(&cursor->backend->listings, cursor->listing);
    }
    free(cursor->lanes);
    free(cursor->group);
    buf_done(&cursor->from);
    buf_done(&cursor->to);
    buf_done(&cursor->text);
    buf_done(&cursor->key);
    free(cursor);
}

static enum err cursor_new(struct backend_session *session, struct bytes from, struct bytes to,
                           bool in_reverse, struct ring_reader_cursor **ret_cursor) {
    struct ring_reader_cursor *cursor = calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return ERR_MEMORY;
    }
    cursor->cursor.session = session;
    cursor->backend = ring_reader_of(session);
    cursor->in_reverse = in_reverse;
    buf_init(&cursor->from, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&cursor->to, BACKEND_CODE_KEY_SIZE_MAX);
    buf_init(&cursor->text, GROUP_SIZE_MAX);
    buf_init(&cursor->key, RING_READER_KEY_SIZE_MAX);
    buf_put(&cursor->from, from);
    buf_put(&cursor->to, to);
    enum err err = cursor->from.err != ERR_OK ? cursor->from.err : cursor->to.err;
    if (err != ERR_OK) {
        ring_reader_cursor_close(&cursor->cursor);
        return err;
    }
    *ret_cursor = cursor;
    return ERR_OK;
}

static enum err open_pages(struct ring_reader_cursor *cursor) {
    cursor->group = calloc(GROUP_MAX, sizeof *cursor->group);
    return cursor->group == NULL ? ERR_MEMORY : open_lanes(cursor);
}

enum err ring_reader_walk_open(struct backend_session *session, struct bytes from, struct bytes to,
                               bool in_reverse, struct ring_reader_manner manner,
                               struct ring_reader_cursor **ret_cursor) {
    struct ring_reader_cursor *cursor;
    enum err err = cursor_new(session, from, to, in_reverse, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    cursor->manner = manner;
    cursor->is_counted = true;
    err = open_pages(cursor);
    if (err != ERR_OK) {
        ring_reader_cursor_close(&cursor->cursor);
        return err;
    }
    *ret_cursor = cursor;
    return ERR_OK;
}

static enum ring_reader_knowledge knowledge_of_url(struct ring_reader_cursor *cursor, struct bytes surt) {
    const struct ring_reader_config *config = &cursor->backend->config;
    uint8_t position[RINGKEY_POSITION_SIZE];
    position_of_surt(&ring_reader_session(cursor->cursor.session)->sha256, surt,
                     (enum position_mapping)config->mapping, position);
    return ring_reader_knowledge(config, position);
}

/* In the listing of one URL, if it fits there. */
static enum err find_listing(struct ring_reader_cursor *cursor, struct bytes surt) {
    struct ring_reader_listing *listing;
    int64_t time_us = ring_reader_scope_time(buf_bytes(&cursor->from), buf_bytes(&cursor->to));
    enum err err = ring_reader_list_url(ring_reader_session(cursor->cursor.session), surt, time_us, &listing);
    if (err != ERR_OK) {
        return err;
    }
    if (!listing->is_long) {
        cursor->listing = listing;
        return ERR_OK;
    }
    ring_reader_cache_release(&cursor->backend->listings, listing);
    return ERR_OK;
}

/* A compared holder needs none; if it has nothing, it asks, and does not depend on an answer. */
static enum err open_listing(struct ring_reader_cursor *cursor, struct bytes surt) {
    enum ring_reader_knowledge knowledge = knowledge_of_url(cursor, surt);
    cursor->is_denied = knowledge == RING_READER_KNOWS_OF_NOTHING;
    enum err err = knowledge == RING_READER_KNOWS_ALL ? ERR_NOT_FOUND : find_listing(cursor, surt);
    bool is_over =
        knowledge == RING_READER_KNOWS_ALL || (cursor->is_denied && err != ERR_OK && err != ERR_MEMORY);
    cursor->err = is_over ? ERR_NOT_FOUND : ERR_OK;
    return is_over ? ERR_OK : err;
}

static enum err open_any(struct ring_reader_cursor *cursor) {
    struct ring_reader *backend = cursor->backend;
    struct bytes surt;
    if (!ring_reader_use(backend)) {
        cursor->err = ERR_NOT_FOUND; /* without a ring there is nothing */
        if (ring_reader_is_expected(backend)) {
            walk_miss(cursor, NULL);
            cursor->err = ERR_UNREACHABLE;
        }
        return ERR_OK;
    }
    enum err err = ERR_OK;
    if (ring_reader_scope_is_url(buf_bytes(&cursor->from), buf_bytes(&cursor->to), &surt)) {
        err = open_listing(cursor, surt);
    }
    ring_reader_unuse(backend);
    if (err != ERR_OK || cursor->listing != NULL || cursor->err != ERR_OK) {
        return err;
    }
    err = ring_reader_enter(backend);
    if (err == ERR_OK) {
        err = open_pages(cursor);
        ring_reader_leave(backend);
    }
    return err;
}

enum err ring_reader_captures_open(struct backend_session *session, struct bytes from, struct bytes to,
                                   bool in_reverse, struct backend_cursor **ret_cursor,
                                   struct err_detail *detail) {
    struct ring_reader_cursor *cursor;
    enum err err = cursor_new(session, from, to, in_reverse, &cursor);
    if (err != ERR_OK) {
        return err;
    }
    bool is_empty = to.size > 0 && bytes_compare(from, to) >= 0;
    cursor->err = is_empty ? ERR_NOT_FOUND : ERR_OK;
    err = is_empty ? ERR_OK : open_any(cursor);
    if (err != ERR_OK) {
        ring_reader_cursor_close(&cursor->cursor);
        err = err == ERR_MEMORY ? err : ERR_UNREACHABLE; /* the walk goes on with what is here */
        return err_set(detail, err, "%s", err == ERR_MEMORY ? err_text(err) : RING_READER_OTHERS);
    }
    *ret_cursor = &cursor->cursor;
    return ERR_OK;
}
