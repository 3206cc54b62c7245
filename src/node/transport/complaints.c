#include "node/transport/complaints.h"

#include <stdio.h>

#include "base/utc.h"

static struct complaint *find(struct complaints *complaints, const char *sentence) {
    for (size_t i = 0; i < complaints->count; i++) {
        if (strcmp(complaints->items[i].sentence, sentence) == 0) {
            return &complaints->items[i];
        }
    }
    return NULL;
}

static struct complaint *make_room(struct complaints *complaints) {
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
    struct complaint *complaint = find(complaints, text);
    if (complaint == NULL) {
        complaint = make_room(complaints);
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

void complaints_put(const struct complaints *complaints, struct buf *out) {
    uint64_t shown = 0; /* bit i: of the item i */
    const struct complaint *complaint;
    buf_put_byte(out, '[');
    while ((complaint = newest_before(complaints, shown)) != NULL) {
        char first[UTC_RFC3339_SIZE];
        char last[UTC_RFC3339_SIZE];
        buf_put_format(out,
                       "%s{\"first\":\"%s\",\"last\":\"%s\",\"count\":%ju,\"text\":", shown != 0 ? "," : "",
                       utc_format_rfc3339(complaint->first_us, first),
                       utc_format_rfc3339(complaint->last_us, last), (uintmax_t)complaint->count);
        buf_put_json(out, bytes_of_string(complaint->sentence));
        buf_put_byte(out, '}');
        shown |= UINT64_C(1) << (complaint - complaints->items);
    }
    buf_put_byte(out, ']');
}
