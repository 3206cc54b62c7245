#include "replay/admin/ring_text.h"

#include "base/value.h"

const char *const ring_text_names[] = {"copies", "repair", "checks",  "links",
                                       "hosts",  "bytes",  "decrees", "sites"};

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

/* "12 captures", "1 capture". */
static void put_things(struct buf *out, uint64_t count, const char *thing) {
    value_put_count(out, count);
    buf_put_format(out, " %s%s", thing, count == 1 ? "" : "s");
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

/* Said if some have fewer. */
static void put_enough(struct buf *out, const struct ring_view *ring) {
    uint64_t keys_count = 0;
    uint64_t enough_count = 0;
    for (size_t i = 0; i < ring->copies.arcs_count; i++) {
        keys_count += ring->copies.arcs[i].keys_count;
        enough_count += ring->copies.arcs[i].enough_count;
    }
    if (enough_count < keys_count) {
        buf_put_string(out, ", ");
        value_put_count(out, enough_count);
        buf_put_string(out, enough_count > 0 ? " or more of " : " of ");
        put_things(out, keys_count, "capture");
        buf_put_string(out, " in them known to have all copies");
    }
}

static void put_unconfirmed(struct buf *out, const struct ring_view_stored *stored) {
    if (stored->unconfirmed_count > 0) {
        buf_put_string(out, "; ");
        put_things(out, stored->unconfirmed_count, "capture");
        buf_put_string(out, " here that other nodes shall keep and have not confirmed yet");
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
    put_things(out, copies->stops_count, "arc");
    buf_put_string(out, " of other nodes compared, ");
    put_things(out, copies->missing_count, "capture");
    buf_put_string(out, " missing here");
    if (copies->silent_count > 0) {
        buf_put_string(out, ", no node answered for ");
        value_put_count(out, copies->silent_count);
    }
}

static void ring_text_put_copies(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_copies *copies = &ring->copies;
    if (!ring->is_begun) {
        buf_put_string(out, "not yet: this node waits for the ring");
        return;
    }
    put_things(out, copies->stored.keys_count, "capture");
    buf_put_string(out, " here, ");
    value_put_count(out, ring->replicas);
    buf_put_string(out, ring->replicas == 1 ? " copy of each wanted" : " copies of each wanted");
    buf_put_string(out, has_too_few_nodes(ring) ? ", more than there are nodes" : "");
    buf_put_format(out, "; looks after %.1f %% of the ring", 100 * ring->share);
    put_arcs(out, copies);
    put_enough(out, ring);
    put_unconfirmed(out, &copies->stored);
    put_tour(out, copies);
    buf_put_string(out, copies->stored.is_full ? "; the disk here is full" : "");
    buf_put_string(out, copies->stored.is_fed ? "" : "; what is in the volumes is still being counted");
}

/* All arcs: what is missing in all, and the time of the slowest, for they are repaired side by side. */
static void put_repair(struct buf *out, const struct ring_view *ring) {
    const struct ring_view_copies *copies = &ring->copies;
    uint64_t repairing_count = 0;
    uint64_t missing_count = 0;
    uint64_t left_s = 0;
    for (size_t i = 0; i < copies->arcs_count; i++) {
        const struct ring_view_arc *arc = &copies->arcs[i];
        repairing_count += arc->is_repairing;
        missing_count += arc->missing_count;
        left_s = arc->left_s > left_s ? arc->left_s : left_s;
    }
    bool is_missing = repairing_count > 0 || missing_count > 0;
    if (is_missing) {
        put_things(out, repairing_count, "arc");
        buf_put_string(out, ", ");
        put_things(out, missing_count, "capture");
        buf_put_string(out, " missing");
    }
    put_left(out, left_s);
    if (copies->stored.wanted_count > 0) {
        buf_put_string(out, is_missing ? "; " : "");
        put_things(out, copies->stored.wanted_count, "capture");
        buf_put_string(out, " on the way here");
    }
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
    const struct part parts[] = {{ring->links_accepted_count, "new ones accepted"},
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
    buf_put_string(out, "lent ");
    put_things(out, ring->leases.lent_count, "time");
    buf_put_string(out, ", borrowed ");
    put_things(out, ring->leases.borrowed_count, "time");
    buf_put_string(out, ", refused ");
    put_things(out, ring->leases.refused_count, "time");
}

static void put_bytes(struct buf *out, const struct ring_view *ring) {
    value_put_size(out, ring->rpc.sent_size);
    buf_put_string(out, " sent, ");
    value_put_size(out, ring->rpc.received_size);
    buf_put_string(out, " received over ");
    put_things(out, ring->rpc.streams_count, "open stream");
    if (ring->rpc.refused_count > 0) {
        buf_put_string(out, "; ");
        put_things(out, ring->rpc.refused_count, "question");
        buf_put_string(out, " refused");
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
    put_things(out, jobs_count, "job");
    buf_put_string(out, ", ");
    put_things(out, rules_count, "takedown rule");
    if (deletions_count > 0) {
        buf_put_string(out, ", ");
        put_things(out, deletions_count, "deletion");
    }
    if (unknown_count > 0) {
        buf_put_string(out, ", ");
        value_put_count(out, unknown_count);
        buf_put_string(out, " of kinds that this version does not know");
    }
    if (idle_count > 0) {
        buf_put_string(out, "; of them ");
        value_put_count(out, idle_count);
        buf_put_string(out, " without effect");
    }
}

/* "2 sites: hall (2 nodes) has copies of 40, cellar (1 node) of 38 of the 40 captures that …". */
static void put_sites(struct buf *out, const struct ring_view *ring) {
    if (ring->sites_count == 0) {
        return;
    }
    put_things(out, ring->sites_count, "site");
    for (size_t i = 0; i < ring->sites_count; i++) {
        const struct ring_view_site *site = &ring->sites[i];
        buf_put_format(out, "%s%s (", i == 0 ? ": " : ", ", site->name);
        put_things(out, site->nodes_count, "node");
        buf_put_string(out, i == 0 ? ") has copies of " : ") of ");
        value_put_count(out, site->captures_count);
    }
    buf_put_string(out, " of the ");
    put_things(out, ring->sites_captures_count, "capture");
    buf_put_string(out, " that this node looks after");
    if (ring->sites_count > 1 && ring->sites_alone_count > 0) {
        buf_put_string(out, "; ");
        value_put_count(out, ring->sites_alone_count);
        buf_put_string(out, " not known to have copies at two sites");
    }
    if (ring->sites_count > 1 && !ring->sites_are_used) {
        buf_put_format(out, "; holders are not chosen by sites: %s", ring->sites_why_not);
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
                                                                 [RING_TEXT_SITES] = put_sites};
    bool needs_begin = which == RING_TEXT_LINKS || which == RING_TEXT_HOSTS;
    if (ring->is_begun || !needs_begin) {
        puts[which](out, ring);
    }
}
