/* What the nodes of the ring do together, on the dashboard. web/ring.js reads this section again and again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utc.h"
#include "replay/admin/admin_pages_state.h"
#include "replay/admin/ring_text.h"

enum { ARCS_SHOWN_MAX = 32, DECREES_SHOWN_MAX = 64, LINE_SIZE_MAX = 64 << 10, ID_DIGITS = 16 };

static void put_line(struct sheet *sheet, enum ring_text which, const json_t *ring) {
    static const char *const titles[] = {"Kept",          "Being repaired", "Checked", "Links to others",
                                         "Hosts' leases", "Between nodes",  "Decrees"};
    struct buf line;
    buf_init(&line, LINE_SIZE_MAX);
    ring_text_put(which, ring, &line);
    if (line.size > 0) {
        sheet_fact(sheet, titles[which]);
        sheet_text(sheet, buf_bytes(&line));
        sheet_html(sheet, "</dd>\n");
    }
    buf_done(&line);
}

/* ---- arcs ---- */

/* The first half of an ID: enough for a share of the ring. */
static uint64_t id_head(const char *id) {
    char digits[ID_DIGITS + 1] = "";
    memcpy(digits, id, strnlen(id, ID_DIGITS));
    return strtoull(digits, NULL, 16);
}

/* The way from `from` to `to`; the whole ring where they are one. */
static double arc_share(const json_t *arc) {
    uint64_t way = id_head(admin_pages_string(arc, "to")) - id_head(admin_pages_string(arc, "from"));
    return way > 0 ? (double)way / 0x1p64 : 1;
}

static void put_level(struct sheet *sheet, const char *level) {
    if (strcmp(level, "whole") == 0) {
        sheet_badge(sheet, SHEET_GOOD, "whole");
    } else if (strcmp(level, "away") == 0) {
        sheet_badge(sheet, SHEET_WARNING, "a node is away");
    } else {
        sheet_badge(sheet, SHEET_BAD, "too few copies");
    }
}

static void put_members(struct sheet *sheet, const json_t *members) {
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        sheet_html(sheet, i > 0 ? ", " : "");
        sheet_text(sheet, bytes_of_string(admin_pages_string(member, "address")));
        sheet_format(sheet, " <span class=quiet>%s</span>", ring_text_member(member));
    }
}

static void put_arc(struct sheet *sheet, const json_t *arc, uint64_t replicas) {
    struct buf repair;
    buf_init(&repair, LINE_SIZE_MAX);
    ring_text_put_arc_repair(arc, &repair);
    sheet_html(sheet, "<tr><td class=key>");
    sheet_format(sheet, "%.8s…<td class=number>%.1f %%<td>", admin_pages_string(arc, "to"),
                 100 * arc_share(arc));
    put_level(sheet, admin_pages_string(arc, "level"));
    sheet_format(sheet, "<td class=number>%ju of %ju<td class=number>",
                 (uintmax_t)admin_pages_number(arc, "copies"), (uintmax_t)replicas);
    sheet_count(sheet, admin_pages_number(arc, "missing"));
    sheet_html(sheet, "<td>");
    sheet_text(sheet, buf_bytes(&repair));
    sheet_html(sheet, "<td>");
    put_members(sheet, admin_pages_member(arc, "members"));
    sheet_html(sheet, "\n");
    buf_done(&repair);
}

/* The worst first: a table that ends leaves out what is well. */
static void put_arcs(struct sheet *sheet, const json_t *ring) {
    static const char *const levels[] = {"low", "away", "whole"};
    const json_t *arcs = admin_pages_member(ring, "together.keeping.arcs");
    uint64_t replicas = admin_pages_number(ring, "charter.replicas");
    size_t count = json_array_size(arcs);
    size_t shown_count = 0;
    if (count == 0) {
        return;
    }
    sheet_html(sheet, "<h3>Arcs that this node sees to</h3>\n");
    sheet_table_begin(sheet, "Arcs that this node sees to, with their copies");
    sheet_html(sheet, "<thead><tr><th>Ends at<th class=number>Of the ring<th>Level<th class=number>Copies<th "
                      "class=number>Missing<th>Repair<th class=grow>With\n<tbody>");
    for (size_t level = 0; level < sizeof levels / sizeof *levels; level++) {
        for (size_t i = 0; i < count && shown_count < ARCS_SHOWN_MAX; i++) {
            const json_t *arc = json_array_get(arcs, i);
            if (strcmp(admin_pages_string(arc, "level"), levels[level]) == 0) {
                put_arc(sheet, arc, replicas);
                shown_count++;
            }
        }
    }
    sheet_table_end(sheet);
    if (shown_count < count) {
        sheet_format(sheet, "<p class=quiet>and %zu more, no worse than these\n", count - shown_count);
    }
}

/* ---- decrees ---- */

/* When it was made, says its author, who may have written anything. */
static void put_version(struct sheet *sheet, uint64_t version) {
    if (version <= (uint64_t)UTC_MAX_US) {
        sheet_time(sheet, (int64_t)version);
    } else {
        sheet_format(sheet, "%ju", (uintmax_t)version);
    }
}

static void put_decree(struct sheet *sheet, const json_t *decree) {
    bool counts = json_is_true(admin_pages_member(decree, "counts"));
    bool is_withdrawn = json_is_true(admin_pages_member(decree, "withdrawn"));
    sheet_html(sheet,
               strcmp(admin_pages_string(decree, "kind"), "job") == 0 ? "<tr><td>job" : "<tr><td>takedown");
    sheet_html(sheet, "<td class=url>");
    sheet_text(sheet, bytes_of_string(admin_pages_string(decree, "name")));
    sheet_html(sheet, "<td>");
    put_version(sheet, admin_pages_number(decree, "version"));
    sheet_format(sheet, "<td class=key>%.8s…<td>", admin_pages_string(decree, "author"));
    if (is_withdrawn) {
        sheet_badge(sheet, SHEET_PLAIN, "withdrawn");
    } else {
        sheet_badge(sheet, counts ? SHEET_GOOD : SHEET_WARNING, counts ? "counts" : "does not count");
    }
    sheet_html(sheet, " ");
    sheet_text(sheet, bytes_of_string(counts ? "" : admin_pages_string(decree, "why_not")));
    sheet_html(sheet, "\n");
}

static void put_decrees(struct sheet *sheet, const json_t *decrees) {
    size_t count = json_array_size(decrees);
    if (count == 0) {
        return;
    }
    sheet_html(sheet, "<h3>Decrees</h3>\n");
    sheet_table_begin(sheet, "Jobs and takedown rules of the whole ring");
    sheet_html(sheet, "<thead><tr><th>Kind<th class=grow>Name<th>Made<th>Author<th>State\n"
                      "<tbody>");
    for (size_t i = 0; i < count && i < DECREES_SHOWN_MAX; i++) {
        put_decree(sheet, json_array_get(decrees, i));
    }
    sheet_table_end(sheet);
    if (count > DECREES_SHOWN_MAX) {
        sheet_format(sheet, "<p class=quiet>and %zu more\n", count - DECREES_SHOWN_MAX);
    }
}

void admin_pages_put_ring_services(struct sheet *sheet, const json_t *ring) {
    const json_t *ring_services = admin_pages_member(ring, "together");
    sheet_html(sheet, "<section id=ring-together>\n");
    if (json_is_object(ring_services)) {
        sheet_html(sheet, "<h3>One archive</h3>\n<dl class=facts>\n");
        for (int i = 0; i < RING_TEXT_COUNT; i++) {
            put_line(sheet, (enum ring_text)i, ring);
        }
        sheet_html(sheet, "</dl>\n");
        put_arcs(sheet, ring);
        put_decrees(sheet, admin_pages_member(ring_services, "decrees"));
    }
    sheet_html(sheet, "</section>\n");
}
