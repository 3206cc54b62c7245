#include "replay/admin/ring_text.h"

#include "base/utc.h"
#include "base/value.h"

const char *const ring_text_names[] = {"copies", "repair",  "checks", "links", "hosts",
                                       "bytes",  "decrees", "sites",  "relay"};

/* Estimates have no tenths. */
static void put_seconds(struct buf *out, uint64_t seconds) {
    if (seconds < 60) {
        buf_put_format(out, "%ju s", (uintmax_t)seconds);
    } else {
        value_put_duration(out, seconds * 1000000);
    }
}

/* 0: not known. */
static void put_left(struct buf *out, uint64_t seconds) {
    if (seconds > 0) {
        buf_put_string(out, ", about ");
        put_seconds(out, seconds);
        buf_put_string(out, " left");
    }
}

/* ---- copies ---- */

static void put_arcs(struct buf *out, const struct ring_view_copies *copies) {
    static const char *const words[RING_VIEW_LEVELS_COUNT] = {"whole", "whole but for new captures",
                                                              "with a node away", "with too few copies"};
    uint64_t counts[RING_VIEW_LEVELS_COUNT] = {0};
    const char *between = "; arcs: ";
    for (size_t i = 0; i < copies->arcs_count; i++) {
        counts[copies->arcs[i].level]++;
    }
    for (size_t i = 0; i < RING_VIEW_LEVELS_COUNT; i++) {
        if (counts[i] > 0) {
            buf_put_string(out, between);
            value_put_count(out, counts[i]);
            buf_put_format(out, " %s", words[i]);
            between = ", ";
        }
    }
}

/* " (2 copies: 39, 1 copy: 58)": how many have fewer than all, or more. */
static void put_fewer(struct buf *out, const struct ring_view *ring) {
    const char *between = " (";
    for (uint32_t copies = ring->replicas; copies-- > 1;) {
        uint64_t count = 0;
        for (size_t i = 0; i < ring->copies.arcs_count; i++) {
            const struct ring_view_arc *arc = &ring->copies.arcs[i];
            count += copies <= arc->at_least_count ? arc->at_least[copies - 1] : 0;
        }
        buf_put_format(out, "%s%u %s: ", between, copies, copies == 1 ? "copy" : "copies");
        value_put_count(out, count);
        between = ", ";
    }
    buf_put_string(out, ring->replicas > 1 ? ")" : "");
}

/* Said if some have fewer. */
static void put_enough(struct buf *out, const struct ring_view *ring) {
    uint64_t keys_count = 0;
    uint64_t enough_count = 0;
    for (size_t i = 0; i < ring->copies.arcs_count; i++) {
        keys_count += ring->copies.arcs[i].keys_count;
        enough_count += ring->copies.arcs[i].enough_count;
    }
    if (enough_count < keys_count) {
        VALUE_PUT(out, enough_count > 0 ? ", {count} or more of " : ", {count} of ", enough_count);
        VALUE_PUT(out, "{count} capture{s} in them known to have all copies", keys_count);
        put_fewer(out, ring);
    }
}

static void put_unconfirmed(struct buf *out, const struct ring_view_stored *stored) {
    if (stored->unconfirmed_count > 0) {
        VALUE_PUT(out, "; {count} capture{s} here that other nodes shall keep and have not confirmed yet",
                  stored->unconfirmed_count);
    }
    if (stored->is_checking) {
        buf_put_string(
            out, "; whether other nodes have what they shall keep of the captures here is being checked");
    }
}

/* Is there an arc for which there are not even nodes enough? */
static bool has_too_few_nodes(const struct ring_view *ring) {
    for (size_t i = 0; i < ring->copies.arcs_count; i++) {
        if (ring->copies.arcs[i].members_count + 1 < ring->replicas) {
            return true;
        }
    }
    return false;
}

/* How the last round over the ring went, for a node that keeps everything. */
static void put_tour(struct buf *out, const struct ring_view_copies *copies) {
    if (!copies->keeps_everything) {
        return;
    }
    buf_put_string(out, "; keeps everything: ");
    if (copies->rounds_count == 0) {
        buf_put_string(out, "the first round over the ring is not over yet");
        return;
    }
    VALUE_PUT(out, "{count} arc{s} of other nodes compared, {count} capture{s} missing here",
              copies->stops_count, copies->missing_count);
    if (copies->silent_count > 0) {
        VALUE_PUT(out, ", no node answered for {count}", copies->silent_count);
    }
}

static void ring_text_put_copies(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_copies *copies = &ring->copies;
    if (ring->is_light) {
        buf_put_string(out, "none: a light member holds nothing for the ring");
        return;
    }
    if (!ring->is_begun) {
        buf_put_string(out, "not yet: this node waits for the ring");
        return;
    }
    VALUE_PUT(out, "{count} capture{s} here, ", copies->stored.keys_count);
    VALUE_PUT(out, ring->replicas == 1 ? "{count} copy of each wanted" : "{count} copies of each wanted",
              ring->replicas);
    buf_put_string(out, has_too_few_nodes(ring) ? ", more than there are nodes" : "");
    buf_put_format(out, "; looks after %.1f %% of the ring", 100 * ring->share);
    put_arcs(out, copies);
    put_enough(out, ring);
    put_unconfirmed(out, &copies->stored);
    put_tour(out, copies);
    if (copies->stored.damaged_count > 0) {
        VALUE_PUT(out, "; {count} capture{s} here damaged and not repaired yet",
                  copies->stored.damaged_count);
    }
    buf_put_string(out, copies->stored.is_full ? "; the disk here is full" : "");
    buf_put_string(out, copies->stored.is_fed ? "" : "; what is in the volumes is still being counted");
}

bool ring_text_is_missing(const struct ring_view *ring, uint64_t *ret_left_s) {
    const struct ring_view_stored *stored = &ring->copies.stored;
    bool is_moving = stored->wanted_count + stored->unconfirmed_count + stored->unconfirmed_own_count > 0;
    bool is_known = !is_moving || ring->copies.left_s > 0;
    bool is_missing = is_moving;
    uint64_t left_s = ring->copies.left_s;
    for (size_t i = 0; i < ring->copies.arcs_count; i++) {
        const struct ring_view_arc *arc = &ring->copies.arcs[i];
        is_missing = is_missing || arc->missing_count > 0 || arc->is_doubted;
        is_known = is_known && !arc->is_doubted && (arc->missing_count == 0 || arc->left_s > 0);
        left_s = arc->left_s > left_s ? arc->left_s : left_s; /* they are repaired side by side */
    }
    *ret_left_s = is_known ? left_s : 0;
    return is_missing;
}

/* "; 3 copies": one more part of a sentence. */
static void put_count_of(struct buf *out, const char **between, uint64_t count, const char *one,
                         const char *many) {
    buf_put_string(out, *between);
    value_put_count(out, count);
    buf_put_format(out, " %s", count == 1 ? one : many);
    *between = "; ";
}

/* All arcs: what is missing in all, and until when. What was found missing is counted until the arc is
 * compared again, so the sentence says as of when. */
static void put_repair(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_copies *copies = &ring->copies;
    uint64_t arcs_count = 0; /* where something was missing */
    uint64_t missing_count = 0;
    uint64_t uncompared_count = 0; /* arcs */
    uint64_t doubted_count = 0;    /* likewise */
    uint64_t unconfirmed_count = copies->stored.unconfirmed_count + copies->stored.unconfirmed_own_count;
    uint64_t left_s;
    for (size_t i = 0; i < copies->arcs_count; i++) {
        const struct ring_view_arc *arc = &copies->arcs[i];
        arcs_count += arc->missing_count > 0;
        missing_count += arc->missing_count;
        uncompared_count += arc->is_repairing && arc->missing_count == 0;
        doubted_count += arc->is_doubted && arc->missing_count == 0;
    }
    const char *between = "";
    if (missing_count > 0) {
        put_count_of(out, &between, missing_count, "copy", "copies");
        VALUE_PUT(out, " missing in {count} arc{s} when last compared", arcs_count);
    }
    if (uncompared_count > 0) {
        put_count_of(out, &between, uncompared_count, "arc", "arcs");
        buf_put_string(out, " not yet compared with all that keep copies");
    }
    if (doubted_count > 0) {
        put_count_of(out, &between, doubted_count, "arc", "arcs");
        buf_put_string(out, " of which a capture may be missing here, until compared again");
    }
    if (copies->stored.wanted_count > 0) {
        put_count_of(out, &between, copies->stored.wanted_count, "capture", "captures");
        buf_put_string(out, " on the way here");
    }
    if (unconfirmed_count > 0) {
        put_count_of(out, &between, unconfirmed_count, "copy", "copies");
        buf_put_string(out, " at other nodes not confirmed yet");
    }
    (void)ring_text_is_missing(ring, &left_s);
    put_left(out, left_s);
}

void ring_text_put_arc_repair(const struct ring_view_arc *arc, struct buf *out) {
    if (!arc->is_repairing) {
        return;
    }
    buf_put_string(out, "for ");
    put_seconds(out, arc->repairing_s);
    put_left(out, arc->left_s);
}

const char *ring_text_member(const struct ring_view_member *member) {
    return member->is_false      ? "false"
           : member->is_away     ? "away"
           : member->is_full     ? "full"
           : member->is_spare    ? "spare"
           : member->is_complete ? "complete"
           : member->is_compared ? "behind"
                                 : "not yet compared";
}

const char *ring_text_node(const struct ring_view_node *node) {
    return !node->is_here       ? "away"
           : node->has_report   ? "here"
           : !node->has_feature ? "says nothing"
                                : "not heard yet";
}

/* Questions take their time on the way, so that a small difference says nothing. */
void ring_text_put_clock(const struct ring_view_node *node, struct buf *out) {
    int64_t away_ms = node->clock_offset_ms < 0 ? -node->clock_offset_ms : node->clock_offset_ms;
    if (!node->has_clock) {
        return;
    }
    if (away_ms < 500) {
        buf_put_string(out, "in time");
        return;
    }
    buf_put_format(out, "%.1f s %s", (double)away_ms / 1000, node->clock_offset_ms < 0 ? "behind" : "ahead");
}

static void put_arcs_of_node(const struct ring_view_node *node, struct buf *out) {
    static const char *const words[RING_VIEW_LEVELS_COUNT] = {"whole", "whole but for new captures",
                                                              "with a node away", "with too few copies"};
    const char *between = " (arcs: ";
    for (size_t i = 0; i < RING_VIEW_LEVELS_COUNT; i++) {
        if (node->arcs_counts[i] > 0) {
            buf_put_string(out, between);
            value_put_count(out, node->arcs_counts[i]);
            buf_put_format(out, " %s", words[i]);
            between = ", ";
        }
    }
    buf_put_string(out, between[0] == ',' ? ")" : "");
}

void ring_text_put_node(const struct ring_view_node *node, struct buf *out) {
    buf_put_string(out, ring_text_node(node));
    if (!node->has_report) {
        return;
    }
    buf_put_string(out, node->is_here ? ", " : ", last word ");
    put_seconds(out, node->heard_s);
    VALUE_PUT(out, " ago: {count} capture{s}, {count} of them looked after", node->captures_count,
              node->arc_captures_count);
    put_arcs_of_node(node, out);
    VALUE_PUT(out, ", {size} of disk used", node->used_size);
    if (node->quota_size > 0) {
        VALUE_PUT(out, " of {size}", node->quota_size);
    }
    VALUE_PUT(out, ", {size} free, load {count} %", node->free_size, node->load_permille / 10);
    buf_put_string(out, ", up ");
    put_seconds(out, node->uptime_s);
    if (node->has_clock) {
        buf_put_string(out, ", clock ");
        ring_text_put_clock(node, out);
    }
}

void ring_text_put_job(const struct ring_view_job *job, uint64_t unreported_count, struct buf *out) {
    VALUE_PUT(out, "{count} stored, {count} waiting, {count} failed, {size} received on {count} node{s}",
              job->stored_count, job->waiting_count, job->failed_count, job->received_size, job->nodes_count);
    if (job->running_count > 0) {
        VALUE_PUT(out, ", running on {count}", job->running_count);
    }
    if (unreported_count > 0) {
        VALUE_PUT(out, "; counts of {count} node{s} are missing", unreported_count);
    }
}

/* ---- what was done ---- */

/* A number with its words; one that is 0 is left out. */
struct part {
    uint64_t count;
    const char *words;
};

static void put_parts(struct buf *out, const struct part *parts, size_t count) {
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        if (parts[i].count > 0) {
            buf_put_string(out, between);
            value_put_count(out, parts[i].count);
            buf_put_format(out, " %s", parts[i].words);
            between = ", ";
        }
    }
}

static void put_checks(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_copies *copies = &ring->copies;
    const struct part parts[] = {{copies->stored.challenged_count, "challenges of others"},
                                 {copies->stored.caught_count, "of them failed"},
                                 {copies->stored.refused_count, "false captures refused"},
                                 {copies->stored.repaired_count, "damaged captures repaired"},
                                 {copies->stored.released_count, "surplus copies given up"}};
    put_parts(out, parts, sizeof parts / sizeof *parts);
}

static void ring_text_put_links(struct buf *out, const struct ring_view *ring) {
    const struct part parts[] = {
        {ring->links_new_count, "new ones accepted"},
        {ring->links_accepted_count - ring->links_new_count, "known before or not wanted"},
        {ring->links_silent_count, "nodes silent"},
        {ring->links_malformed_count, "messages malformed"},
        {ring->links_flood_count, "messages too many"}};
    if (ring->links_sent_count > 0) {
        value_put_count(out, ring->links_sent_count);
        buf_put_format(out, " sent, %.1f bytes each; ",
                       (double)ring->links_sent_size / (double)ring->links_sent_count);
    } else {
        buf_put_string(out, "none sent; ");
    }
    size_t size = out->size;
    put_parts(out, parts, sizeof parts / sizeof *parts);
    buf_put_string(out, out->size == size ? "none accepted" : "");
}

static void put_hosts(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_leases *leases = &ring->leases;
    VALUE_PUT(out, "lent {count} time{s}, borrowed {count} time{s}, refused {count} time{s}",
              leases->lent_count, leases->borrowed_count, leases->refused_count);
}

static void put_bytes(struct buf *out, const struct ring_view *ring) {
    VALUE_PUT(out, "{size} sent, {size} received over {count} open stream{s}", ring->rpc.sent_size,
              ring->rpc.received_size, ring->rpc.streams_count);
    if (ring->rpc.refused_count > 0) {
        VALUE_PUT(out, "; {count} question{s} refused", ring->rpc.refused_count);
    }
}

static void put_decrees(struct buf *out, const struct ring_view *ring) {
    uint64_t jobs_count = 0;
    uint64_t rules_count = 0;
    uint64_t deletions_count = 0;
    uint64_t unknown_count = 0;
    uint64_t idle_count = 0;
    for (size_t i = 0; i < ring->decrees_count; i++) {
        const struct ring_view_decree *decree = &ring->decrees[i];
        if (!decree->is_withdrawn) {
            jobs_count += decree->is_job;
            deletions_count += decree->is_deletion;
            unknown_count += decree->is_unknown;
            rules_count += !decree->is_job && !decree->is_deletion && !decree->is_unknown;
            idle_count += !decree->counts;
        }
    }
    if (jobs_count + rules_count + deletions_count + unknown_count == 0) {
        buf_put_string(out, "none");
        return;
    }
    VALUE_PUT(out, "{count} job{s}, {count} takedown rule{s}", jobs_count, rules_count);
    if (deletions_count > 0) {
        VALUE_PUT(out, ", {count} deletion{s}", deletions_count);
    }
    if (unknown_count > 0) {
        VALUE_PUT(out, ", {count} of kinds that this version does not know", unknown_count);
    }
    if (idle_count > 0) {
        VALUE_PUT(out, "; of them {count} without effect", idle_count);
    }
}

/* "2 sites: hall (2 nodes) has copies of 40, cellar (1 node) of 38 of the 40 captures that …". */
static void put_sites(struct buf *out, const struct ring_view *ring) {
    if (ring->sites_count == 0 || ring->is_light) {
        return;
    }
    VALUE_PUT(out, "{count} site{s}", ring->sites_count);
    for (size_t i = 0; i < ring->sites_count; i++) {
        const struct ring_view_site *site = &ring->sites[i];
        buf_put_format(out, "%s%s (", i == 0 ? ": " : ", ", site->name);
        VALUE_PUT(out, i == 0 ? "{count} node{s}) has copies of {count}" : "{count} node{s}) of {count}",
                  site->nodes_count, site->captures_count);
    }
    VALUE_PUT(out, " of the {count} capture{s} that this node looks after", ring->sites_captures_count);
    if (ring->sites_count > 1 && ring->sites_alone_count > 0) {
        VALUE_PUT(out, "; {count} not known to have copies at two sites", ring->sites_alone_count);
    }
    if (ring->sites_count > 1 && !ring->sites_are_used) {
        buf_put_format(out, "; holders are not chosen by sites: %s", ring->sites_why_not);
    }
}

/* Of members only what is going on. */
static void put_relay(struct buf *out, const struct ring_view *ring) {
    char since[UTC_RFC3339_SIZE];
    if (ring->is_light && ring->relay != NULL) {
        buf_put_format(out, "in the crowd through %s since %s", ring->relay,
                       utc_format_rfc3339(ring->relay_since_us / 1000000 * 1000000, since));
    } else if (ring->is_light) {
        buf_put_format(out, "not in the crowd: %s",
                       ring->relay_why_none != NULL ? ring->relay_why_none
                                                    : "it is switched off, or not begun");
    } else if (ring->relay_members_count > 0) {
        VALUE_PUT(out, "of {count} light member{s}, at most {count}", ring->relay_members_count,
                  ring->relay_members_max);
    }
}

void ring_text_put(enum ring_text which, const struct ring_view *ring, struct buf *out) {
    static void (*const puts[])(struct buf * out,
                                const struct ring_view *ring) = {[RING_TEXT_COPIES] = ring_text_put_copies,
                                                                 [RING_TEXT_REPAIR] = put_repair,
                                                                 [RING_TEXT_CHECKS] = put_checks,
                                                                 [RING_TEXT_LINKS] = ring_text_put_links,
                                                                 [RING_TEXT_HOSTS] = put_hosts,
                                                                 [RING_TEXT_BYTES] = put_bytes,
                                                                 [RING_TEXT_DECREES] = put_decrees,
                                                                 [RING_TEXT_SITES] = put_sites,
                                                                 [RING_TEXT_RELAY] = put_relay};
    bool needs_begin = which == RING_TEXT_LINKS || which == RING_TEXT_HOSTS;
    if (ring->is_begun || !needs_begin) {
        puts[which](out, ring);
    }
}
