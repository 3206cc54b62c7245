#include "replay/admin/ring_text.h"

#include <string.h>

#include "base/value.h"

const char *const ring_text_names[] = {"keeping", "repair", "checks", "links", "hosts", "bytes", "decrees"};

static uint64_t number(const json_t *object, const char *name) {
    double value = json_number_value(json_object_get(object, name));
    return value >= 1 ? (uint64_t)value : 0;
}

static const char *string(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

static bool is_set(const json_t *object, const char *name) {
    return json_is_true(json_object_get(object, name));
}

/* Estimates have no tenths. */
static void put_seconds(struct buf *out, uint64_t seconds) {
    if (seconds < 60) {
        buf_put_format(out, "%ju s", (uintmax_t)seconds);
    } else {
        value_put_duration(out, seconds * 1000000);
    }
}

/* "12 captures", "1 capture". */
static void put_things(struct buf *out, uint64_t count, const char *thing) {
    value_put_count(out, count);
    buf_put_format(out, " %s%s", thing, count == 1 ? "" : "s");
}

/* ---- copies ---- */

static uint64_t arcs_of_level(const json_t *arcs, const char *level) {
    uint64_t count = 0;
    for (size_t i = 0; i < json_array_size(arcs); i++) {
        count += strcmp(string(json_array_get(arcs, i), "level"), level) == 0;
    }
    return count;
}

static void put_arcs(struct buf *out, const json_t *arcs) {
    static const char *const words[][2] = {
        {"whole", "whole"}, {"away", "with a node away"}, {"low", "with too few copies"}};
    const char *between = "; arcs: ";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t count = arcs_of_level(arcs, words[i][0]);
        if (count > 0) {
            buf_put_string(out, between);
            value_put_count(out, count);
            buf_put_format(out, " %s", words[i][1]);
            between = ", ";
        }
    }
}

/* Is there an arc for which there are not even nodes enough? */
static bool has_too_few_nodes(const json_t *arcs, uint64_t replicas) {
    for (size_t i = 0; i < json_array_size(arcs); i++) {
        const json_t *members = json_object_get(json_array_get(arcs, i), "members");
        if (json_array_size(members) + 1 < replicas) {
            return true;
        }
    }
    return false;
}

static double share_of(const json_t *places) {
    double share = 0;
    for (size_t i = 0; i < json_array_size(places); i++) {
        share += json_number_value(json_object_get(json_array_get(places, i), "share"));
    }
    return share;
}

/* Of who keeps everything: how the last round over the ring went. */
static void put_full_sync(struct buf *out, const json_t *copies) {
    const json_t *full_sync = json_object_get(copies, "tour");
    if (!json_is_object(full_sync)) {
        return;
    }
    buf_put_string(out, "; keeps everything: ");
    if (number(full_sync, "rounds") == 0) {
        buf_put_string(out, "the first round over the ring is not over yet");
        return;
    }
    put_things(out, number(full_sync, "arcs"), "arc");
    buf_put_string(out, " of others compared, ");
    put_things(out, number(full_sync, "missing"), "capture");
    buf_put_string(out, " missing here");
    if (number(full_sync, "silent") > 0) {
        buf_put_string(out, ", nobody answered for ");
        value_put_count(out, number(full_sync, "silent"));
    }
}

static void put_copies(struct buf *out, const json_t *ring, const json_t *copies) {
    if (!json_is_object(copies)) {
        buf_put_string(out, "not yet: this node waits for the ring");
        return;
    }
    put_things(out, number(copies, "keys"), "capture");
    const json_t *arcs = json_object_get(copies, "arcs");
    uint64_t replicas = number(json_object_get(ring, "charter"), "replicas");
    buf_put_string(out, " here, ");
    value_put_count(out, replicas);
    buf_put_string(out, replicas == 1 ? " copy of each wanted" : " copies of each wanted");
    buf_put_string(out, has_too_few_nodes(arcs, replicas) ? ", more than there are nodes" : "");
    buf_put_format(out, "; sees to %.1f %% of the ring", 100 * share_of(json_object_get(ring, "places")));
    put_arcs(out, arcs);
    put_full_sync(out, copies);
    buf_put_string(out, is_set(copies, "full") ? "; the disk here is full" : "");
    buf_put_string(out, is_set(copies, "fed") ? "" : "; what is in the volumes is still being counted");
}

/* Of all arcs: the missing together; the time of the slowest, for they are repaired side by side. */
static void put_repair(struct buf *out, const json_t *copies) {
    const json_t *arcs = json_object_get(copies, "arcs");
    uint64_t wanted_count = number(copies, "wanted");
    uint64_t repairing_count = 0;
    uint64_t missing_count = 0;
    uint64_t left_s = 0;
    for (size_t i = 0; i < json_array_size(arcs); i++) {
        const json_t *arc = json_array_get(arcs, i);
        bool is_repairing = json_object_get(arc, "repairing_s") != NULL;
        uint64_t arc_left_s = number(arc, "left_s");
        repairing_count += is_repairing;
        missing_count += number(arc, "missing");
        left_s = arc_left_s > left_s ? arc_left_s : left_s;
    }
    bool is_missing = repairing_count > 0 || missing_count > 0;
    if (is_missing) {
        put_things(out, repairing_count, "arc");
        buf_put_string(out, ", ");
        put_things(out, missing_count, "capture");
        buf_put_string(out, " missing");
    }
    if (left_s > 0) {
        buf_put_string(out, ", about ");
        put_seconds(out, left_s);
        buf_put_string(out, " left");
    }
    if (wanted_count > 0) {
        buf_put_string(out, is_missing ? "; " : "");
        put_things(out, wanted_count, "capture");
        buf_put_string(out, " on the way here");
    }
}

void ring_text_put_arc_repair(const json_t *arc, struct buf *out) {
    if (json_object_get(arc, "repairing_s") == NULL) {
        return;
    }
    buf_put_string(out, "for ");
    put_seconds(out, number(arc, "repairing_s"));
    if (number(arc, "left_s") > 0) {
        buf_put_string(out, ", about ");
        put_seconds(out, number(arc, "left_s"));
        buf_put_string(out, " left");
    }
}

const char *ring_text_member(const json_t *member) {
    static const char *const words[] = {"false", "away", "full", "spare", "complete"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (is_set(member, words[i])) {
            return words[i];
        }
    }
    return json_object_get(member, "compared_s") != NULL ? "behind" : "not yet compared";
}

/* ---- what was done ---- */

/* Numbers with their words, those that are 0 left out. */
struct part {
    const char *name;
    const char *words;
};

static void put_parts(struct buf *out, const json_t *object, const struct part *parts, size_t count) {
    const char *between = "";
    for (size_t i = 0; i < count; i++) {
        uint64_t value = number(object, parts[i].name);
        if (value > 0) {
            buf_put_string(out, between);
            value_put_count(out, value);
            buf_put_format(out, " %s", parts[i].words);
            between = ", ";
        }
    }
}

static void put_checks(struct buf *out, const json_t *copies) {
    static const struct part parts[] = {{"challenged", "challenges of others"},
                                        {"caught", "of them failed"},
                                        {"refused", "false captures refused"},
                                        {"repaired", "damaged captures repaired"},
                                        {"released", "surplus copies given up"}};
    put_parts(out, copies, parts, sizeof parts / sizeof *parts);
}

static void put_links(struct buf *out, const json_t *links) {
    static const struct part parts[] = {{"accepted", "new ones accepted"},
                                        {"silent", "nodes silent"},
                                        {"malformed", "messages malformed"},
                                        {"flood", "messages too many"}};
    uint64_t sent_count = number(links, "sent");
    if (sent_count > 0) {
        value_put_count(out, sent_count);
        buf_put_format(out, " sent, %.1f bytes each; ",
                       (double)number(links, "sent_size") / (double)sent_count);
    } else if (json_is_object(links)) {
        buf_put_string(out, "none sent; ");
    }
    size_t size = out->size;
    put_parts(out, links, parts, sizeof parts / sizeof *parts);
    buf_put_string(out, json_is_object(links) && out->size == size ? "none accepted" : "");
}

static void put_hosts(struct buf *out, const json_t *leases) {
    if (json_is_object(leases)) {
        buf_put_string(out, "lent ");
        put_things(out, number(leases, "lent"), "time");
        buf_put_string(out, ", borrowed ");
        put_things(out, number(leases, "borrowed"), "time");
        buf_put_string(out, ", refused ");
        put_things(out, number(leases, "refused"), "time");
    }
}

static void put_bytes(struct buf *out, const json_t *ring_services) {
    value_put_size(out, number(ring_services, "sent_size"));
    buf_put_string(out, " sent, ");
    value_put_size(out, number(ring_services, "received_size"));
    buf_put_string(out, " received over ");
    put_things(out, number(ring_services, "streams"), "open stream");
    if (number(ring_services, "refused") > 0) {
        buf_put_string(out, "; ");
        put_things(out, number(ring_services, "refused"), "question");
        buf_put_string(out, " refused");
    }
}

static void put_decrees(struct buf *out, const json_t *decrees) {
    uint64_t jobs_count = 0;
    uint64_t rules_count = 0;
    uint64_t idle_count = 0;
    for (size_t i = 0; i < json_array_size(decrees); i++) {
        const json_t *decree = json_array_get(decrees, i);
        if (is_set(decree, "withdrawn")) {
            continue;
        }
        bool is_job = strcmp(string(decree, "kind"), "job") == 0;
        jobs_count += is_job;
        rules_count += !is_job;
        idle_count += !is_set(decree, "counts");
    }
    if (jobs_count + rules_count == 0) {
        buf_put_string(out, "none");
        return;
    }
    put_things(out, jobs_count, "job");
    buf_put_string(out, ", ");
    put_things(out, rules_count, "takedown rule");
    if (idle_count > 0) {
        buf_put_string(out, "; of them ");
        value_put_count(out, idle_count);
        buf_put_string(out, " without effect");
    }
}

void ring_text_put(enum ring_text which, const json_t *ring, struct buf *out) {
    const json_t *ring_services = json_object_get(ring, "together");
    const json_t *copies = json_object_get(ring_services, "keeping");
    if (!json_is_object(ring_services)) {
        return;
    }
    switch (which) {
    case RING_TEXT_COPIES:
        put_copies(out, ring, copies);
        return;
    case RING_TEXT_REPAIR:
        put_repair(out, copies);
        return;
    case RING_TEXT_CHECKS:
        put_checks(out, copies);
        return;
    case RING_TEXT_LINKS:
        put_links(out, json_object_get(ring_services, "links"));
        return;
    case RING_TEXT_HOSTS:
        put_hosts(out, json_object_get(ring_services, "leases"));
        return;
    case RING_TEXT_BYTES:
        put_bytes(out, ring_services);
        return;
    case RING_TEXT_DECREES:
        put_decrees(out, json_object_get(ring_services, "decrees"));
        return;
    case RING_TEXT_COUNT:
        return;
    }
}
