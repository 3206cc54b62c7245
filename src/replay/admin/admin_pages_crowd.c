/* What nodes hand on to each other. web/ring.js reads the section on the dashboard again and again. */
#include "replay/admin/admin_pages_state.h"

enum { HOT_SHOWN_MAX = 20, WIDTH = 640, AWAY = 110, ROW_HEIGHT = 22, LABEL_GAP = 12 };

static void answer_crowd(struct http_request *request) {
    const struct admin_pages *admin_pages = admin_pages_of(request);
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_crowd(admin_pages->context, &text);
    http_answer_json(request, ADMIN_PAGES_OK, "no-store", &text);
}

size_t admin_pages_crowd_routes(struct replay *replay, struct http_route *out) {
    out[0] = (struct http_route){
        .method = "GET", .path = "/api/v1/crowd", .context = replay, .answer = answer_crowd};
    return 1;
}

/* ---- on the dashboard ---- */

static void put_number(struct sheet *sheet, const json_t *crowd, const char *path, const char *words) {
    sheet_count(sheet, admin_pages_number(crowd, path));
    sheet_format(sheet, " %s", words);
}

static void put_size(struct sheet *sheet, const json_t *crowd, const char *path, const char *words) {
    sheet_size(sheet, admin_pages_number(crowd, path));
    sheet_html(sheet, words);
}

/* This node in the middle, its neighbours in two columns beside it, so that no label hides another. */
static void put_figure(struct sheet *sheet, const json_t *view) {
    size_t count = json_array_size(view);
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
        sheet_text(sheet, bytes_of_string(admin_pages_string(json_array_get(view, i), "address")));
        sheet_html(sheet, "</text>");
    }
    sheet_format(sheet, "<circle class=own cx=%d cy=%d r=8 /></svg></figure>\n", WIDTH / 2, height / 2);
}

static void put_facts(struct sheet *sheet, const json_t *crowd) {
    sheet_html(sheet, "<dl class=facts>\n");
    sheet_fact(sheet, "Searches of this node");
    put_number(sheet, crowd, "searches.begun", "begun, ");
    put_number(sheet, crowd, "searches.found", "found, ");
    put_number(sheet, crowd, "searches.lost", "without a finding</dd>\n");
    sheet_fact(sheet, "Queries of others");
    put_number(sheet, crowd, "queries.received", "received, ");
    put_number(sheet, crowd, "queries.hits", "answered, ");
    put_number(sheet, crowd, "queries.forwarded", "copies sent on, ");
    put_number(sheet, crowd, "queries.limited", "refused as too many of one node</dd>\n");
    sheet_fact(sheet, "Handed on");
    put_number(sheet, crowd, "offers.given", "captures, ");
    put_size(sheet, crowd, "offers.given_size", "; ");
    put_number(sheet, crowd, "offers.referred", "times sent to others who have it</dd>\n");
    sheet_fact(sheet, "Offered");
    put_number(sheet, crowd, "offers.count", "captures that were read here, ");
    put_size(sheet, crowd, "offers.size", "</dd>\n");
    sheet_fact(sheet, "Obtained");
    put_number(sheet, crowd, "obtained.count", "captures, ");
    put_size(sheet, crowd, "obtained.size", "; ");
    put_number(sheet, crowd, "obtained.false", "refused as false</dd>\n");
    sheet_fact(sheet, "Shuffles");
    put_number(sheet, crowd, "shuffles.answered", "of ours, ");
    put_number(sheet, crowd, "shuffles.served", "of others, ");
    put_number(sheet, crowd, "shuffles.silent", "neighbours dropped as silent</dd>\n");
    sheet_html(sheet, "</dl>\n");
}

static void put_hot(struct sheet *sheet, const json_t *hot) {
    sheet_html(sheet, "<h3>Wanted most</h3>\n");
    sheet_table_begin(sheet, "Captures that others asked this node for most");
    sheet_html(sheet, "<thead><tr><th class=grow>URL<th class=number>Asked for<th class=number>Given<th "
                      "class=number>Size\n<tbody>");
    for (size_t i = 0; i < json_array_size(hot) && i < HOT_SHOWN_MAX; i++) {
        const json_t *object = json_array_get(hot, i);
        sheet_html(sheet, "<tr><td>");
        sheet_text(sheet, bytes_of_string(admin_pages_string(object, "url")));
        sheet_html(sheet, "<td class=number>");
        sheet_count(sheet, admin_pages_number(object, "asked"));
        sheet_html(sheet, "<td class=number>");
        sheet_count(sheet, admin_pages_number(object, "given"));
        sheet_html(sheet, "<td class=number>");
        sheet_size(sheet, admin_pages_number(object, "size"));
        sheet_html(sheet, "\n");
    }
    sheet_table_end(sheet);
}

void admin_pages_put_crowd(struct sheet *sheet, const struct admin_pages *admin_pages) {
    struct buf text;
    buf_init(&text, ADMIN_PAGES_TEXT_SIZE_MAX);
    admin_pages->table->put_crowd(admin_pages->context, &text);
    json_t *crowd = json_loadb((const char *)text.data, text.size, 0, NULL);
    buf_done(&text);
    if (crowd != NULL && strcmp(admin_pages_string(crowd, "state"), "none") != 0) {
        sheet_html(sheet, "<h2 id=crowd>Crowd</h2>\n<section id=crowd-live>\n<p>");
        sheet_format(
            sheet,
            "What is read at one node is handed on by it. %zu of %ju neighbours, chosen at random and "
            "exchanged again and again (<code>%s</code>); this node takes part as <code>%s</code>.\n",
            json_array_size(admin_pages_member(crowd, "view")),
            (uintmax_t)admin_pages_number(crowd, "view_size"), admin_pages_string(crowd, "overlay"),
            admin_pages_string(crowd, "part"));
        put_figure(sheet, admin_pages_member(crowd, "view"));
        put_facts(sheet, crowd);
        put_hot(sheet, admin_pages_member(crowd, "hot"));
        sheet_html(sheet, "</section>\n");
    }
    json_decref(crowd);
}
