#include "replay/admin/admin_pages_state.h"
#include "replay/admin/ring_text.h"

/* What the nodes of the ring do together, on the dashboard. web/ring.js reads this section again and again.
 */
enum { ARCS_SHOWN_MAX = 32, DECREES_SHOWN_MAX = 64, LINE_SIZE_MAX = 64 << 10 };

static void ring_put_line(struct sheet *sheet, enum ring_text which, const struct ring_view *ring) {
    static const char *const titles[] = {"Kept",          "Being repaired", "Checked", "Links to others",
                                         "Hosts' leases", "Between nodes",  "Decrees", "Sites"};
    struct buf line;
    buf_init(&line, LINE_SIZE_MAX);
    ring_text_put(which, ring, &line);
    sheet_fact_text(sheet, titles[which], buf_bytes(&line));
    buf_done(&line);
}

/* ---- arcs ---- */

static void put_level(struct sheet *sheet, enum ring_view_level level) {
    static const enum sheet_mood moods[] = {SHEET_GOOD, SHEET_GOOD, SHEET_WARNING, SHEET_BAD};
    static const char *const words[] = {"whole", "new captures on their way", "a node is away",
                                        "too few copies"};
    sheet_badge(sheet, moods[level], words[level]);
}

static void ring_put_members(struct sheet *sheet, const struct ring_view_arc *arc) {
    for (size_t i = 0; i < arc->members_count; i++) {
        sheet_html(sheet, i > 0 ? ", " : "");
        sheet_string(sheet, arc->members[i].address);
        sheet_format(sheet, " <span class=quiet>%s</span>", ring_text_member(&arc->members[i]));
    }
}

static void put_arc(struct sheet *sheet, const struct ring_view_arc *arc, uint32_t replicas) {
    struct buf repair;
    buf_init(&repair, LINE_SIZE_MAX);
    ring_text_put_arc_repair(arc, &repair);
    sheet_format(sheet, "<tr><td class=key>%.8s…<td class=number>%.1f %%<td>", arc->to, 100 * arc->share);
    put_level(sheet, arc->level);
    FILL(sheet,
         "<td class=number>{number} of {number}<td class=number>{count}<td class=number>{count}<td "
         "class=number>{count}<td>{text}<td>",
         {.number = arc->copies_count}, {.number = replicas}, {.number = arc->keys_count},
         {.number = arc->enough_count}, {.number = arc->missing_count}, {.text = buf_bytes(&repair)});
    ring_put_members(sheet, arc);
    sheet_html(sheet, "\n");
    buf_done(&repair);
}

/* The worst first: a table that ends leaves out what is well. */
static void put_arcs(struct sheet *sheet, const struct ring_view *ring) {
    size_t count = ring->copies.arcs_count;
    size_t shown_count = 0;
    if (count == 0) {
        return;
    }
    sheet_html(sheet, "<h3>Arcs that this node looks after</h3>\n");
    sheet_table_begin(sheet, "Arcs that this node looks after, with their copies");
    sheet_html(sheet, "<thead><tr><th>Ends at<th class=number>Of the ring<th>Level<th class=number>Copies<th "
                      "class=number>Captures<th class=number>With all copies<th "
                      "class=number>Missing<th>Repair<th class=grow>With\n<tbody>");
    for (int level = RING_VIEW_LOW; level >= RING_VIEW_WHOLE; level--) {
        for (size_t i = 0; i < count && shown_count < ARCS_SHOWN_MAX; i++) {
            if ((int)ring->copies.arcs[i].level == level) {
                put_arc(sheet, &ring->copies.arcs[i], ring->replicas);
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

/* The time that its author claims; it may be anything. */
static void ring_put_version(struct sheet *sheet, uint64_t version) {
    if (version <= (uint64_t)UTC_MAX_US) {
        sheet_time(sheet, (int64_t)version);
    } else {
        sheet_format(sheet, "%ju", (uintmax_t)version);
    }
}

static void put_decree(struct sheet *sheet, const struct ring_view_decree *decree) {
    FILL(sheet, "<tr><td>{html}<td class=url>{text}<td>",
         {.string = decree->is_job        ? "job"
                    : decree->is_deletion ? "deletion"
                    : decree->is_unknown  ? "of a kind that this version does not know"
                                          : "takedown"},
         {.text = decree->about != NULL && decree->about[0] != '\0' ? bytes_of_string(decree->about)
                                                                    : decree->name});
    ring_put_version(sheet, decree->version);
    sheet_format(sheet, "<td class=key>%.8s…<td>", decree->author);
    if (decree->is_withdrawn) {
        sheet_badge(sheet, SHEET_PLAIN, "withdrawn");
    } else {
        sheet_badge(sheet, decree->counts ? SHEET_GOOD : SHEET_WARNING,
                    decree->counts ? "counts" : "does not count");
    }
    FILL(sheet, " {string}\n", {.string = decree->counts ? "" : decree->why_not});
}

static void put_decrees(struct sheet *sheet, const struct ring_view *ring) {
    size_t count = ring->decrees_count;
    if (count == 0) {
        return;
    }
    sheet_html(sheet, "<h3>Decrees</h3>\n");
    sheet_table_begin(sheet, "Jobs, takedown rules and deletions of the whole ring");
    sheet_html(sheet, "<thead><tr><th>Kind<th class=grow>Name<th>Made<th>Author<th>State\n"
                      "<tbody>");
    for (size_t i = 0; i < count && i < DECREES_SHOWN_MAX; i++) {
        put_decree(sheet, &ring->decrees[i]);
    }
    sheet_table_end(sheet);
    if (count > DECREES_SHOWN_MAX) {
        sheet_format(sheet, "<p class=quiet>and %zu more\n", count - DECREES_SHOWN_MAX);
    }
}

static void put_ring_services(struct sheet *sheet, const struct ring_view *ring) {
    sheet_html(sheet, "<section id=ring-together>\n<h3>One archive</h3>\n<dl class=facts>\n");
    for (int i = 0; i < RING_TEXT_COUNT; i++) {
        ring_put_line(sheet, (enum ring_text)i, ring);
    }
    sheet_html(sheet, "</dl>\n");
    put_arcs(sheet, ring);
    put_decrees(sheet, ring);
    sheet_html(sheet, "</section>\n");
}

/* ---- the whole ---- */

void admin_pages_put_ring(struct sheet *sheet, const struct admin_pages *admin_pages, struct arena *arena) {
    struct ring_view ring = {0};
    admin_pages->table->get_ring(admin_pages->context, arena, &ring);
    if (ring.text != NULL) {
        FILL(sheet,
             "<h2 id=ring>Ring</h2>\n<p id=ring-text>{string}\n<figure id=ring-figure hidden></figure>\n",
             {.string = ring.text});
        put_ring_services(sheet, &ring);
        admin_pages->table->show_neighbours(admin_pages->context, sheet);
        sheet_script(sheet, "ring.js");
    }
}
