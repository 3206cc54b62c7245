/* What a node says of its ring. */
#include <stdio.h>

#include "replay/admin/metrics.h"
#include "replay/admin/ring_text.h"

enum { METRICS_COPIES_MAX = 64, LEVEL_SIZE_MAX = 16 };

/* ---- copies ---- */

static void metrics_put_levels(struct buf *out, const struct ring_view_copies *copies) {
    static const struct metrics_column column = {
        "ring_arcs", "Arcs that this node looks after, by how well they are kept."};
    struct metrics_row rows[RING_VIEW_LEVELS_COUNT] = {
        {.label = "whole"}, {.label = "fresh"}, {.label = "away"}, {.label = "low"}};
    for (size_t i = 0; i < copies->arcs_count; i++) {
        rows[copies->arcs[i].level].values[0]++;
    }
    metrics_put_rows(out, "level", &column, 1, rows, RING_VIEW_LEVELS_COUNT);
}

/* Of one copy up to as many as are wanted, also if there are none. */
static void metrics_put_copies(struct buf *out, const struct ring_view *ring) {
    static const struct metrics_column column = {
        "ring_captures_copies_min",
        "Captures of these arcs that are known to have so many live copies, or more."};
    struct metrics_row rows[METRICS_COPIES_MAX];
    char labels[METRICS_COPIES_MAX][LEVEL_SIZE_MAX];
    size_t count = ring->replicas < METRICS_COPIES_MAX ? ring->replicas : METRICS_COPIES_MAX;
    for (size_t copies = 1; copies <= count; copies++) {
        struct metrics_row *row = &rows[copies - 1];
        snprintf(labels[copies - 1], LEVEL_SIZE_MAX, "%zu", copies);
        *row = (struct metrics_row){.label = labels[copies - 1]};
        for (size_t i = 0; i < ring->copies.arcs_count; i++) {
            const struct ring_view_arc *arc = &ring->copies.arcs[i];
            row->values[0] += copies <= arc->at_least_count ? arc->at_least[copies - 1] : 0;
        }
    }
    metrics_put_rows(out, "copies", &column, 1, rows, count);
}

/* No sample: something is missing, and it is not known for how long. */
static void metrics_put_left(struct buf *out, const struct ring_view *ring) {
    uint64_t left_s;
    bool is_missing = ring_text_is_missing(ring, &left_s);
    if (!is_missing || left_s > 0) {
        METRICS_PUT(out, {"ring_copies_left_seconds",
                          "About how long until all copies that are under way are there; 0: none is.",
                          is_missing ? left_s : 0});
    }
}

static void metrics_put_stored(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_stored *stored = &ring->copies.stored;
    uint64_t keys_count = 0;
    uint64_t missing_count = 0;
    for (size_t i = 0; i < ring->copies.arcs_count; i++) {
        keys_count += ring->copies.arcs[i].keys_count;
        missing_count += ring->copies.arcs[i].missing_count;
    }
    METRICS_PUT(
        out, {"ring_captures", "Captures here that count for the ring.", stored->keys_count},
        {"ring_captures_arcs", "Captures here that lie in arcs that this node looks after.", keys_count},
        {"ring_captures_missing", "Copies that were missing in these arcs when they were last compared.",
         missing_count},
        {"ring_captures_wanted", "Captures that are on their way here.", stored->wanted_count},
        {"ring_captures_unconfirmed", "Captures here whose primaries have not confirmed them yet.",
         stored->unconfirmed_count},
        {"ring_captures_damaged", "Captures here that cannot be read and are not repaired yet.",
         stored->damaged_count},
        {"ring_checking", "1: there may be more that are not confirmed.", stored->is_checking},
        {"ring_counting", "1: what is in the volumes is still being counted.", !stored->is_fed},
        {"ring_disk_full", "1: this node takes no more copies, for want of disk.", stored->is_full});
    METRICS_PUT(
        out,
        {"ring_copies_fetched_total", "Captures stored here that other nodes gave.", stored->fetched_count},
        {"ring_copies_fetched_bytes_total", "Bytes of their payloads.", stored->fetched_size},
        {"ring_copies_refused_total", "Captures from other nodes that were not what they should be.",
         stored->refused_count},
        {"ring_copies_released_total", "Surplus copies that were given up.", stored->released_count},
        {"ring_copies_repaired_total", "Damaged captures that were repaired.", stored->repaired_count},
        {"ring_comparisons_total", "Comparisons of arcs with other nodes that this node began.",
         stored->compared_count},
        {"ring_challenges_total", "Challenges of other nodes, to prove what they hold.",
         stored->challenged_count},
        {"ring_challenges_failed_total", "Challenges that other nodes failed.", stored->caught_count});
}

/* ---- between nodes ---- */

static void metrics_put_traffic(struct buf *out, const struct ring_view_traffic *traffic) {
    METRICS_PUT(
        out, {"ring_member", "1: this node is a member of its ring.", traffic->is_member},
        {"ring_vnodes", "Virtual nodes of this node.", traffic->vnodes_count},
        {"ring_known_vnodes", "Virtual nodes that this node has heard of.", traffic->known_vnodes_count},
        {"ring_estimated_vnodes", "Virtual nodes of the whole ring, an estimate.",
         traffic->estimated_vnodes_count},
        {"ring_lookups_total", "Lookups of positions.", traffic->lookups_count},
        {"ring_lookups_lost_total", "Lookups that nobody answered.", traffic->lost_count},
        {"ring_lookup_hops_total", "Hops of all lookups.", traffic->hops_count},
        {"ring_silent_total", "Questions of the ring that were not answered.", traffic->silent_count},
        {"ring_malformed_total", "Messages of the ring that make no sense.", traffic->malformed_count},
        {"ring_blamed_total", "Messages of the ring against its rules.", traffic->blamed_count});
    METRICS_PUT(
        out, {"datagrams_received_total", "Datagrams received.", traffic->received_count},
        {"datagrams_received_bytes_total", "Bytes of datagrams received.", traffic->received_size},
        {"datagrams_sent_total", "Datagrams sent.", traffic->sent_count},
        {"datagrams_sent_bytes_total", "Bytes of datagrams sent.", traffic->sent_size},
        {"datagrams_unsent_total", "Datagrams that could not be sent.", traffic->unsent_count},
        {"datagrams_discarded_total", "Datagrams that were thrown away unread.", traffic->discarded_count},
        {"greetings_refused_total", "Greetings of other nodes that this node refused.",
         traffic->refused_count},
        {"greetings_refused_by_others_total", "Greetings of this node that others refused.",
         traffic->refusals_count});
}

static void metrics_put_rpc(struct buf *out, const struct ring_view_rpc *rpc) {
    METRICS_PUT(
        out, {"streams", "Open streams to other nodes.", rpc->streams_count},
        {"streams_without_tls_total", "Streams opened in the way of programs up to 0.2.", rpc->first_count},
        {"streams_sent_bytes_total", "Bytes sent over streams.", rpc->sent_size},
        {"streams_received_bytes_total", "Bytes received over streams.", rpc->received_size},
        {"questions_asked_total", "Questions to other nodes.", rpc->questions_count},
        {"questions_failed_total", "Questions to other nodes without an answer.", rpc->failed_count},
        {"questions_answered_total", "Questions of other nodes that were answered.", rpc->answers_count},
        {"questions_refused_total", "Questions of other nodes that were not answered.", rpc->refused_count},
        {"questions_put_off_total", "Readers of other nodes that were told to come later.", rpc->shed_count});
}

static void metrics_put_crawl(struct buf *out, const struct ring_view *ring) {
    METRICS_PUT(
        out,
        {"links_sent_total", "Links sent to other nodes, each for every receiver.", ring->links_sent_count},
        {"links_new_total", "Links of other nodes that were new here.", ring->links_new_count},
        {"links_silent_total", "Nodes that did not answer links.", ring->links_silent_count},
        {"leases_lent_total", "Leases of hosts that this node gave.", ring->leases.lent_count},
        {"leases_borrowed_total", "Leases of hosts that this node got.", ring->leases.borrowed_count},
        {"leases_refused_total", "Leases of hosts that this node did not get.", ring->leases.refused_count});
}

/* ---- what nodes say of themselves ---- */

static void metrics_put_nodes(struct buf *out, const struct ring_view *ring) {
    static const struct metrics_column column = {
        "ring_nodes_state",
        "Nodes by what is known of them: their own word, if they say anything and are here."};
    struct metrics_row rows[] = {
        {.label = "here"}, {.label = "away"}, {.label = "says nothing"}, {.label = "not heard yet"}};
    uint64_t heard_s_max = 0;
    uint64_t clock_ms_max = 0;
    for (size_t i = 0; i < ring->reports_count; i++) {
        const struct ring_view_node *node = &ring->reports[i];
        const char *state = ring_text_node(node);
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
            rows[j].values[0] += strcmp(state, rows[j].label) == 0;
        }
        int64_t away_ms = node->clock_offset_ms < 0 ? -node->clock_offset_ms : node->clock_offset_ms;
        bool is_off = node->is_here && node->has_clock && (uint64_t)away_ms > clock_ms_max;
        clock_ms_max = is_off ? (uint64_t)away_ms : clock_ms_max;
        bool is_old = node->is_here && node->has_report && node->heard_s > heard_s_max;
        heard_s_max = is_old ? node->heard_s : heard_s_max;
    }
    metrics_put_rows(out, "state", &column, 1, rows, sizeof rows / sizeof *rows);
    METRICS_PUT(
        out, {"ring_report_age_seconds", "Age of the oldest last word of a node that is here.", heard_s_max},
        {"ring_clock_offset_seconds", "How far the clock of another node that is here is off, at most.",
         clock_ms_max / 1000});
}

/* ---- what all agree on ---- */

static void metrics_put_decrees(struct buf *out, const struct ring_view *ring) {
    uint64_t valid_count = 0;
    uint64_t idle_count = 0;
    for (size_t i = 0; i < ring->decrees_count; i++) {
        valid_count += !ring->decrees[i].is_withdrawn;
        idle_count += !ring->decrees[i].is_withdrawn && !ring->decrees[i].counts;
    }
    METRICS_PUT(out, {"ring_decrees", "Decrees that are not withdrawn.", valid_count},
                {"ring_decrees_idle", "Decrees that have no effect here.", idle_count});
}

static void metrics_put_sites(struct buf *out, const struct ring_view *ring) {
    METRICS_PUT(out, {"ring_sites", "Sites at which nodes stand.", ring->sites_count},
                {"ring_captures_one_site",
                 "Captures that this node looks after and that are not known to have copies at two sites.",
                 ring->sites_alone_count});
}

void metrics_put_ring(const struct ring_view *ring, struct buf *out) {
    if (ring->text == NULL) {
        return;
    }
    METRICS_PUT(out, {"ring_replicas", "Copies of each capture that are wanted.", ring->replicas},
                {"ring_nodes", "Nodes of the ring that are known, this one included.", ring->nodes_count});
    metrics_put_traffic(out, &ring->traffic);
    metrics_put_rpc(out, &ring->rpc);
    metrics_put_decrees(out, ring);
    metrics_put_sites(out, ring);
    if (ring->is_begun) {
        metrics_put_stored(out, ring);
        metrics_put_levels(out, &ring->copies);
        metrics_put_copies(out, ring);
        metrics_put_left(out, ring);
        metrics_put_crawl(out, ring);
        metrics_put_nodes(out, ring);
    }
}
