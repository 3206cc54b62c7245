#include "node/transport/complaints.h"

#include <stdio.h>

#include "base/utc.h"
#include "replay/site/fill.h"

static struct complaint *complaints_find(struct complaints *complaints, const char *sentence) {
    for (size_t i = 0; i < complaints->count; i++) {
        if (strcmp(complaints->items[i].sentence, sentence) == 0) {
            return &complaints->items[i];
        }
    }
    return NULL;
}

static struct complaint *complaints_make_room(struct complaints *complaints) {
    if (complaints->count < COMPLAINTS_MAX) {
        return &complaints->items[complaints->count++];
    }
    struct complaint *oldest = &complaints->items[0];
    for (size_t i = 1; i < complaints->count; i++) {
        if (complaints->items[i].last_us < oldest->last_us) {
            oldest = &complaints->items[i];
        }
    }
    return oldest;
}

bool complaints_add(struct complaints *complaints, const char *sentence, int64_t now_us) {
    char text[COMPLAINT_SIZE_MAX];
    snprintf(text, sizeof text, "%s", sentence);
    struct complaint *complaint = complaints_find(complaints, text);
    if (complaint == NULL) {
        complaint = complaints_make_room(complaints);
        *complaint = (struct complaint){.first_us = now_us};
        memcpy(complaint->sentence, text, sizeof text);
    }
    complaint->count++;
    complaint->last_us = now_us;
    bool is_due =
        complaint->count == 1 || now_us - complaint->told_us >= COMPLAINTS_PAUSE_S * INT64_C(1000000);
    complaint->told_us = is_due ? now_us : complaint->told_us;
    return is_due;
}

static const struct complaint *newest_before(const struct complaints *complaints, uint64_t shown) {
    const struct complaint *newest = NULL;
    for (size_t i = 0; i < complaints->count; i++) {
        const struct complaint *complaint = &complaints->items[i];
        bool is_shown = (shown >> i & 1) == 1;
        if (!is_shown && (newest == NULL || complaint->last_us > newest->last_us)) {
            newest = complaint;
        }
    }
    return newest;
}

void complaints_put(const struct complaints *complaints, struct json *json, const char *name) {
    uint64_t shown = 0; /* bit i: of the item i */
    const struct complaint *complaint;
    json_open_list(json, name);
    while ((complaint = newest_before(complaints, shown)) != NULL) {
        json_open(json, NULL);
        json_time(json, "first", complaint->first_us);
        json_time(json, "last", complaint->last_us);
        json_count(json, "count", complaint->count);
        json_text(json, "text", complaint->sentence);
        json_close(json);
        shown |= UINT64_C(1) << (complaint - complaints->items);
    }
    json_close(json);
}

void complaints_show(const struct complaints *complaints, struct sheet *sheet) {
    uint64_t shown = 0;
    const struct complaint *complaint;
    sheet_html(sheet, "<ul id=ring-complaints>\n");
    while ((complaint = newest_before(complaints, shown)) != NULL) {
        FILL(sheet, "<li>{string}\n", {.string = complaint->sentence});
        shown |= UINT64_C(1) << (complaint - complaints->items);
    }
    sheet_html(sheet, "</ul>\n");
}
