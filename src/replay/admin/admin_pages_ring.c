#include "base/value.h"
#include "replay/admin/admin_pages_state.h"
#include "replay/admin/ring_text.h"

/* What the nodes of the ring do together, on the dashboard. web/ring.js reads this section again and again.
 */
enum { ARCS_SHOWN_MAX = 32, DECREES_SHOWN_MAX = 64, NODES_SHOWN_MAX = 200, LINE_SIZE_MAX = 64 << 10 };

static void ring_put_line(struct sheet *sheet, enum ring_text which, const struct ring_view *ring) {
    static const char *const titles[RING_TEXT_COUNT] = {
        "Kept",    "Being repaired", "Checked", "Links to others", "Hosts' leases", "Between nodes",
        "Decrees", "Sites",          "Relay"};
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

/* ---- what nodes say of themselves ---- */

static void put_node_state(struct sheet *sheet, const struct ring_view_node *node) {
    bool is_low = node->has_report && (node->arcs_counts[RING_VIEW_LOW] > 0 || node->damaged_count > 0);
    sheet_badge(sheet,
                !node->is_here      ? SHEET_WARNING
                : !node->has_report ? SHEET_PLAIN
                : is_low            ? SHEET_BAD
                                    : SHEET_GOOD,
                is_low && node->is_here ? "too few copies" : ring_text_node(node));
}

static void put_duration(struct sheet *sheet, uint64_t seconds, const char *behind) {
    struct buf text;
    buf_init(&text, LINE_SIZE_MAX);
    if (seconds < 60) {
        buf_put_format(&text, "%ju s", (uintmax_t)seconds);
    } else {
        value_put_duration(&text, seconds * 1000000);
    }
    FILL(sheet, "<td class=number>{text}{html}", {.text = buf_bytes(&text)}, {.string = behind});
    buf_done(&text);
}

/* A node of which there is no report has its address and its state, and nothing that looks like a number. */
static void put_node(struct sheet *sheet, const struct ring_view_node *node) {
    struct buf clock;
    FILL(sheet, "<tr><td>{string}{html}<td>", {.string = node->address},
         {.string = node->is_self ? " <span class=quiet>this node</span>" : ""});
    put_node_state(sheet, node);
    if (!node->has_report) {
        sheet_html(sheet, "<td><td><td><td><td><td><td><td class=number>\n");
        return;
    }
    buf_init(&clock, LINE_SIZE_MAX);
    ring_text_put_clock(node, &clock);
    FILL(sheet, "<td>{string}", {.string = node->program});
    put_duration(sheet, node->heard_s, " ago");
    put_duration(sheet, node->uptime_s, "");
    FILL(sheet, "<td class=number>{count} %", {.number = node->load_permille / 10});
    FILL(sheet,
         "<td class=number>{size}<td class=number>{size}<td class=number>{count}<td class=number>{text}\n",
         {.number = node->used_size}, {.number = node->free_size}, {.number = node->captures_count},
         {.text = buf_bytes(&clock)});
    buf_done(&clock);
}

static void put_nodes(struct sheet *sheet, const struct ring_view *ring) {
    if (ring->reports_count == 0) {
        return;
    }
    sheet_html(sheet,
               "<h3>Nodes</h3>\n<p class=quiet>Each row is that node's own signed word, as of its last "
               "report.\n");
    sheet_table_begin(sheet, "Nodes of the ring, by what they say of themselves");
    sheet_html(
        sheet,
        "<thead><tr><th class=grow>Node<th>State<th>Version<th class=number>Heard<th class=number>Up<th "
        "class=number>Load<th class=number>Disk used<th class=number>Free<th class=number>Captures<th "
        "class=number>Clock\n<tbody id=ring-reports>");
    for (size_t i = 0; i < ring->reports_count && i < NODES_SHOWN_MAX; i++) {
        put_node(sheet, &ring->reports[i]);
    }
    sheet_table_end(sheet);
    if (ring->reports_count > NODES_SHOWN_MAX) {
        sheet_format(sheet, "<p class=quiet>and %zu more\n", ring->reports_count - NODES_SHOWN_MAX);
    }
}

/* What each does for the others: its own word of what it keeps and sends, and that of the others of its
 * uptime. */
static void put_contributions(struct sheet *sheet, const struct ring_view *ring) {
    if (ring->reports_count == 0) {
        return;
    }
    sheet_html(
        sheet,
        "<h3>Contributions</h3>\n<p class=quiet>Kept and sent are the node's own word, sent since it was "
        "started. Proved is for how long it met the challenges of another node without a gap.\n");
    sheet_table_begin(sheet, "What each node contributes");
    sheet_html(sheet, "<thead><tr><th class=grow>Node<th class=number>Kept<th class=number>Sent to others<th "
                      "class=number>Proved uptime<th class=number>Challenges met<th class=number>Failed<th "
                      "class=number>By nodes\n<tbody id=ring-contributions>");
    for (size_t i = 0; i < ring->reports_count && i < NODES_SHOWN_MAX; i++) {
        const struct ring_view_node *node = &ring->reports[i];
        FILL(sheet, "<tr><td>{string}", {.string = node->address});
        if (node->has_report) {
            FILL(sheet, "<td class=number>{size}<td class=number>{size}", {.number = node->used_size},
                 {.number = node->sent_size});
        } else {
            sheet_html(sheet, "<td><td>");
        }
        put_duration(sheet, node->proved_s, "");
        FILL(sheet, "<td class=number>{count}<td class=number>{count}<td class=number>{count}\n",
             {.number = node->met_count}, {.number = node->failed_count}, {.number = node->provers_count});
    }
    sheet_table_end(sheet);
}

static void put_ring_jobs(struct sheet *sheet, const struct ring_view *ring) {
    if (ring->jobs_count == 0) {
        return;
    }
    sheet_html(sheet, "<h3>Jobs of the ring</h3>\n");
    sheet_table_begin(sheet, "Jobs of the ring, all nodes together");
    sheet_html(sheet,
               "<thead><tr><th class=grow>Job<th class=number>Stored<th class=number>Waiting<th "
               "class=number>Failed<th class=number>Received<th class=number>Nodes<th class=number>At it<th "
               "class=number>Counts missing\n<tbody id=ring-jobs>");
    for (size_t i = 0; i < ring->jobs_count; i++) {
        const struct ring_view_job *job = &ring->jobs[i];
        FILL(sheet,
             "<tr><td>{string}<td class=number>{count}<td class=number>{count}<td class=number>{count}<td "
             "class=number>{size}<td class=number>{count}<td class=number>{count}<td class=number>{count}\n",
             {.string = job->name}, {.number = job->stored_count}, {.number = job->waiting_count},
             {.number = job->failed_count}, {.number = job->received_size}, {.number = job->nodes_count},
             {.number = job->running_count}, {.number = ring->unreported_count});
    }
    sheet_table_end(sheet);
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
    put_nodes(sheet, ring);
    put_ring_jobs(sheet, ring);
    put_contributions(sheet, ring);
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
