/* What nodes hand on to each other. web/ring.js reads the section on the dashboard again and again. */
#include "replay/admin/admin_pages_state.h"

enum { HOT_SHOWN_MAX = 20, WIDTH = 640, AWAY = 110, ROW_HEIGHT = 22, LABEL_GAP = 12 };

/* This node in the middle, its neighbours in two columns beside it, so that no label hides another. */
static void put_figure(struct sheet *sheet, const struct crowd_view *crowd) {
    size_t count = crowd->neighbours_count;
    size_t left_count = count / 2;
    int height = (int)(count - left_count + 1) * ROW_HEIGHT;
    sheet_format(
        sheet,
        "<figure><svg class=ring viewBox=\"0 0 %d %d\" role=img aria-label=\"%zu neighbours of this node\">",
        WIDTH, height, count);
    for (size_t i = 0; i < count; i++) {
        bool is_left = i < left_count;
        size_t rows_count = is_left ? left_count : count - left_count;
        size_t row = is_left ? i : i - left_count;
        int x = is_left ? WIDTH / 2 - AWAY : WIDTH / 2 + AWAY;
        int y = height * (int)(2 * row + 1) / (int)(2 * rows_count);
        sheet_format(sheet, "<line class=finger x1=%d y1=%d x2=%d y2=%d />", WIDTH / 2, height / 2, x, y);
        sheet_format(sheet, "<circle class=other cx=%d cy=%d r=5 /><text x=%d y=%d text-anchor=%s>", x, y,
                     x + (is_left ? -LABEL_GAP : LABEL_GAP), y + 4, is_left ? "end" : "start");
        sheet_string(sheet, crowd->neighbours[i]);
        sheet_html(sheet, "</text>");
    }
    sheet_format(sheet, "<circle class=own cx=%d cy=%d r=8 /></svg></figure>\n", WIDTH / 2, height / 2);
}

static void put_facts(struct sheet *sheet, const struct crowd_view *crowd) {
    FILL(
        sheet,
        "<dl class=facts>\n<dt>Searches of this node</dt><dd>{count} begun, {count} found, {count} without "
        "success</dd>\n<dt>Queries of others</dt><dd>{count} received, {count} answered, {count} copies sent "
        "on, {count} refused as too many from one node</dd>\n<dt>Handed on</dt><dd>{count} captures, {size}; "
        "{count} times sent to other nodes that have it</dd>\n<dt>Offered</dt><dd>{count} captures that were "
        "read here, {size}</dd>\n<dt>Obtained</dt><dd>{count} captures, {size}; {count} refused as "
        "false</dd>\n<dt>Shuffles</dt><dd>{count} of ours, {count} of others, {count} neighbours dropped as "
        "silent</dd>\n</dl>\n",
        {.number = crowd->searches_count}, {.number = crowd->found_count}, {.number = crowd->lost_count},
        {.number = crowd->queries_count}, {.number = crowd->hits_count}, {.number = crowd->forwarded_count},
        {.number = crowd->limited_count}, {.number = crowd->offers.given_count},
        {.number = crowd->offers.given_size}, {.number = crowd->offers.referred_count},
        {.number = crowd->offers.count}, {.number = crowd->offers.size},
        {.number = crowd->obtained.obtained_count}, {.number = crowd->obtained.obtained_size},
        {.number = crowd->obtained.false_count}, {.number = crowd->shuffled_count},
        {.number = crowd->served_count}, {.number = crowd->silent_count});
}

static void crowd_put_hot(struct sheet *sheet, const struct crowd_view *crowd) {
    sheet_html(sheet, "<h3>Wanted most</h3>\n");
    sheet_table_begin(sheet, "Captures that others asked this node for most");
    sheet_html(sheet, "<thead><tr><th class=grow>URL<th class=number>Asked for<th class=number>Given<th "
                      "class=number>Size\n<tbody>");
    for (size_t i = 0; i < crowd->hot_count && i < HOT_SHOWN_MAX; i++) {
        const struct crowd_view_hot *hot = &crowd->hot[i];
        FILL(sheet, "<tr><td>{text}<td class=number>{count}<td class=number>{count}<td class=number>{size}\n",
             {.text = hot->url}, {.number = hot->asked_count}, {.number = hot->given_count},
             {.number = hot->size});
    }
    sheet_table_end(sheet);
}

void admin_pages_put_crowd(struct sheet *sheet, const struct admin_pages *admin_pages, struct arena *arena) {
    struct crowd_view crowd = {0};
    admin_pages->table->get_crowd(admin_pages->context, arena, &crowd);
    if (crowd.overlay != NULL) {
        sheet_html(sheet, "<h2 id=crowd>Crowd</h2>\n<section id=crowd-live>\n<p>");
        sheet_format(
            sheet,
            "A node that has read a capture hands it on to others. %zu of %u neighbours, chosen at random "
            "and "
            "exchanged again and again (<code>%s</code>); this node takes part as <code>%s</code>.\n",
            crowd.neighbours_count, crowd.view_size, crowd.overlay, crowd.part);
        put_figure(sheet, &crowd);
        put_facts(sheet, &crowd);
        crowd_put_hot(sheet, &crowd);
        sheet_html(sheet, "</section>\n");
    }
}
