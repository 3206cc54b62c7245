#include "node/ring/routing.h"

#include <pthread.h>
#include <stdlib.h>

#include "crawl/rules/pattern.h"
#include "protocol/ring/charter.h"
#include "web/url/surt.h"

/* What one call needs; kept for the next. */
struct admin_pages {
    struct admin_pages *next;
    struct canon canon;
    struct buf surt;
    struct sha256 sha256;
};

/* The scope of one charter. Constant: matching needs no lock, so an old one stays until the end.
 */
struct area {
    struct area *previous;
    struct pattern_list patterns;
    bool is_any;
};

struct routing {
    struct holders *holders;
    pthread_mutex_t lock;
    enum position_mapping mapping; /* lock */
    size_t witnesses;              /* lock */
    struct area *area;             /* lock: the newest; NULL: any URL */
    struct admin_pages *desks;     /* lock: free ones */
};

struct routing *routing_new(struct holders *holders) {
    struct routing *routing = calloc(1, sizeof *routing);
    if (routing != NULL) {
        routing->holders = holders;
        routing->witnesses = 1;
        pthread_mutex_init(&routing->lock, NULL);
    }
    return routing;
}

static void admin_pages_free(struct admin_pages *admin_pages) {
    canon_done(&admin_pages->canon);
    buf_done(&admin_pages->surt);
    sha256_done(&admin_pages->sha256);
    free(admin_pages);
}

void routing_free(struct routing *routing) {
    if (routing == NULL) {
        return;
    }
    while (routing->desks != NULL) {
        struct admin_pages *next = routing->desks->next;
        admin_pages_free(routing->desks);
        routing->desks = next;
    }
    while (routing->area != NULL) {
        struct area *previous = routing->area->previous;
        pattern_list_done(&routing->area->patterns);
        free(routing->area);
        routing->area = previous;
    }
    pthread_mutex_destroy(&routing->lock);
    free(routing);
}

void routing_set_rules(struct routing *routing, enum position_mapping mapping, size_t witnesses) {
    pthread_mutex_lock(&routing->lock);
    routing->mapping = mapping;
    routing->witnesses = witnesses;
    pthread_mutex_unlock(&routing->lock);
}

void routing_read_scope(const struct charter *charter, struct pattern_list *ret_patterns) {
    pattern_list_init(ret_patterns);
    for (uint32_t i = 0; i < charter->scope_count; i++) {
        const struct charter_pattern *pattern = &charter->scope[i];
        enum err err = pattern_list_add(ret_patterns, bytes_of(pattern->text, pattern->size), NULL);
        (void)err;
    }
}

/* Without memory for it the scope stays as it was. */
void routing_set_scope(struct routing *routing, const struct charter *charter) {
    struct area *area = calloc(1, sizeof *area);
    if (area == NULL) {
        return;
    }
    routing_read_scope(charter, &area->patterns);
    area->is_any = charter->scope_count == 0;
    pthread_mutex_lock(&routing->lock);
    area->previous = routing->area;
    routing->area = area;
    pthread_mutex_unlock(&routing->lock);
}

bool routing_allows(struct routing *routing, struct bytes url) {
    pthread_mutex_lock(&routing->lock);
    const struct area *area = routing->area;
    pthread_mutex_unlock(&routing->lock);
    return area == NULL || area->is_any || pattern_list_find(&area->patterns, url) != PATTERN_NONE;
}

bool routing_has_witnesses(struct routing *routing) {
    pthread_mutex_lock(&routing->lock);
    bool has_witnesses = routing->witnesses > 1;
    pthread_mutex_unlock(&routing->lock);
    return has_witnesses;
}

static struct admin_pages *take_admin_pages(struct routing *routing, enum position_mapping *ret_mapping) {
    pthread_mutex_lock(&routing->lock);
    struct admin_pages *admin_pages = routing->desks;
    routing->desks = admin_pages != NULL ? admin_pages->next : NULL;
    *ret_mapping = routing->mapping;
    pthread_mutex_unlock(&routing->lock);
    if (admin_pages != NULL) {
        return admin_pages;
    }
    admin_pages = calloc(1, sizeof *admin_pages);
    if (admin_pages == NULL || sha256_init(&admin_pages->sha256) != ERR_OK) {
        free(admin_pages);
        return NULL;
    }
    canon_init(&admin_pages->canon);
    buf_init(&admin_pages->surt, INDEX_SURT_SIZE_MAX);
    return admin_pages;
}

static void return_admin_pages(struct routing *routing, struct admin_pages *admin_pages) {
    pthread_mutex_lock(&routing->lock);
    admin_pages->next = routing->desks;
    routing->desks = admin_pages;
    pthread_mutex_unlock(&routing->lock);
}

/* The verdict of a place. */
static enum route_verdict routing_judge(struct routing *routing, const uint8_t place[ROUTE_POSITION_SIZE]) {
    struct holders_arc arc;
    pthread_mutex_lock(&routing->lock);
    size_t witnesses = routing->witnesses;
    pthread_mutex_unlock(&routing->lock);
    if (!holders_know(routing->holders, ring_id_read(place), &arc)) {
        return ROUTE_ELSEWHERE;
    }
    if (arc.self_rank < 0) {
        return ROUTE_AWAY;
    }
    return (size_t)arc.self_rank < witnesses ? ROUTE_FETCH : ROUTE_ELSEWHERE;
}

/* Zeros if it has none. */
static bool find_place(struct routing *routing, struct bytes url, uint8_t ret_place[ROUTE_POSITION_SIZE]) {
    enum position_mapping mapping;
    struct admin_pages *admin_pages = take_admin_pages(routing, &mapping);
    memset(ret_place, 0, ROUTE_POSITION_SIZE);
    if (admin_pages == NULL) {
        return false;
    }
    buf_clear(&admin_pages->surt);
    bool is_placed = canon_run(&admin_pages->canon, url, NULL) == ERR_OK &&
                     surt_put(&admin_pages->surt, &admin_pages->canon) == ERR_OK;
    if (is_placed) {
        position_of_surt(&admin_pages->sha256, buf_bytes(&admin_pages->surt), mapping, ret_place);
    }
    return_admin_pages(routing, admin_pages);
    return is_placed;
}

enum route_verdict routing_ask(struct routing *routing, struct bytes url,
                               uint8_t ret_place[ROUTE_POSITION_SIZE]) {
    return find_place(routing, url, ret_place) ? routing_judge(routing, ret_place) : ROUTE_AWAY;
}

bool routing_is_primary(struct routing *routing, struct bytes url) {
    uint8_t place[ROUTE_POSITION_SIZE];
    struct holders_arc arc;
    return find_place(routing, url, place) && holders_know(routing->holders, ring_id_read(place), &arc) &&
           arc.self_rank == 0;
}
