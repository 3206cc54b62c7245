#include "crawl/engine/tally.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/value.h"

void tally_count_type(struct tally *tally, const char *mime, uint64_t size) {
    const char *name = mime[0] != '\0' ? mime : "(none)";
    size_t i = 0;
    while (i < tally->types_count && strcmp(tally->types[i].name, name) != 0) {
        i++;
    }
    if (i == tally->types_count && i < TALLY_TYPES_MAX) {
        snprintf(tally->types[i].name, sizeof tally->types[i].name, "%s",
                 i == TALLY_TYPES_MAX - 1 ? "other" : name);
        tally->types_count++;
    }
    i = i < TALLY_TYPES_MAX ? i : TALLY_TYPES_MAX - 1;
    tally->types[i].count++;
    tally->types[i].size += size;
}

const char *tally_reason_text(uint8_t reason) {
    static const char *const texts[] = {
        [TALLY_NONE] = "",
        [TALLY_ROBOTS] = "robots.txt does not allow it",
        [TALLY_NO_ROBOTS] = "robots.txt could not be read, so nothing is allowed",
        [TALLY_HOST_DEAD] = "the host did not answer several times in a row",
        [TALLY_NOT_STORED] = "the archive could not store it",
    };
    if (reason < sizeof texts / sizeof *texts) {
        return texts[reason];
    }
    return reason > TALLY_FAILED ? err_text((enum err)(TALLY_FAILED - (int)reason)) : "unknown reason";
}

/* Types by their count, most first. */
static size_t order_types(const struct tally *tally, const struct tally_type *ordered[TALLY_TYPES_MAX]) {
    for (size_t i = 0; i < tally->types_count; i++) {
        size_t at = i;
        while (at > 0 && ordered[at - 1]->count < tally->types[i].count) {
            ordered[at] = ordered[at - 1];
            at--;
        }
        ordered[at] = &tally->types[i];
    }
    return tally->types_count;
}

static void put_counted(struct buf *out, uint64_t count, const char *what) {
    value_put_count(out, count);
    buf_put_format(out, " %s", what);
}

/* One of several in a line: the gap before the first is the line's name. */
static void put_part(struct buf *out, const char **gap, uint64_t count, const char *what) {
    if (count > 0) {
        buf_put_string(out, *gap);
        put_counted(out, count, what);
        *gap = ", ";
    }
}

static void put_statuses(const struct tally *tally, struct buf *out) {
    const char *gap = "  by status   ";
    for (size_t i = 0; i < TALLY_STATUSES_MAX; i++) {
        if (tally->statuses[i] > 0) {
            buf_put_format(out, "%s%zu: ", gap, i);
            value_put_count(out, tally->statuses[i]);
            gap = ", ";
        }
    }
    buf_put_string(out, tally->done_count > 0 ? "\n" : "");
}

static void put_types(const struct tally *tally, struct buf *out) {
    const struct tally_type *types[TALLY_TYPES_MAX];
    size_t count = order_types(tally, types);
    const char *gap = "  by type     ";
    for (size_t i = 0; i < count && i < 8; i++) {
        buf_put_format(out, "%s%s: ", gap, types[i]->name);
        value_put_count(out, types[i]->count);
        buf_put_string(out, " (");
        value_put_size(out, types[i]->size);
        buf_put_string(out, ")");
        gap = ", ";
    }
    buf_put_string(out, count > 8 ? ", …\n" : count > 0 ? "\n" : "");
}

static void put_left_out(const struct tally *tally, struct buf *out) {
    const char *gap = "  left out    ";
    put_part(out, &gap, tally->robots_denied_count, "by robots.txt");
    for (size_t i = 1; i < TRAP_REASONS_COUNT; i++) {
        put_part(out, &gap, tally->traps[i], trap_reason_name((enum trap_reason)i));
    }
    put_part(out, &gap, tally->out_of_scope_count, "links out of scope");
    buf_put_string(out, gap[0] == ',' ? "\n" : "");
    if (tally->patterns_limited_count > 0) {
        buf_put_string(out, "  patterns    ");
        put_counted(out, tally->patterns_limited_count,
                    "times too slow for a URL, which then did not match\n");
    }
}

static void put_failures(const struct tally *tally, struct buf *out) {
    const char *gap = "  failed      ";
    for (size_t i = 1; i < TALLY_ERRORS_MAX; i++) {
        put_part(out, &gap, tally->errors[i], err_text((enum err) - (int)i));
    }
    buf_put_string(out, gap[0] == ',' ? "\n" : "");
}

void tally_put_summary(const struct tally *tally, uint64_t elapsed_us, struct buf *out) {
    buf_put_string(out, "  stored      ");
    put_counted(out, tally->done_count, "responses, ");
    value_put_size(out, tally->received_size);
    buf_put_string(out, " received in ");
    value_put_duration(out, elapsed_us);
    buf_put_string(out, "\n  duplicates  ");
    put_counted(out, tally->duplicate_count + tally->not_modified_count, "(");
    value_put_count(out, tally->not_modified_count);
    buf_put_string(out, " not modified), ");
    value_put_size(out, tally->saved_size);
    buf_put_string(out, " not stored again\n");
    put_statuses(tally, out);
    put_types(tally, out);
    put_failures(tally, out);
    put_left_out(tally, out);
}

void tally_put_json(const struct tally *tally, struct json *json) {
    JSON_COUNTS(json, {"stored", tally->done_count}, {"changed", tally->changed_count},
                {"duplicates", tally->duplicate_count}, {"not_modified", tally->not_modified_count},
                {"truncated", tally->truncated_count}, {"bad_certificates", tally->bad_tls_count},
                {"failed", tally->failed_count}, {"retried", tally->retried_count},
                {"found_before", tally->found_before_count}, {"received_bytes", tally->received_size},
                {"document_bytes", tally->document_size}, {"saved_bytes", tally->saved_size},
                {"links", tally->links_count}, {"out_of_scope", tally->out_of_scope_count},
                {"robots_denied", tally->robots_denied_count},
                {"patterns_limited", tally->patterns_limited_count});
    json_open(json, "statuses");
    for (size_t i = 0; i < TALLY_STATUSES_MAX; i++) {
        if (tally->statuses[i] > 0) {
            char name[8];
            snprintf(name, sizeof name, "%zu", i);
            json_count(json, name, tally->statuses[i]);
        }
    }
    json_close(json);
    json_open(json, "types");
    for (size_t i = 0; i < tally->types_count; i++) {
        json_open(json, tally->types[i].name);
        JSON_COUNTS(json, {"count", tally->types[i].count}, {"bytes", tally->types[i].size});
        json_close(json);
    }
    json_close(json);
    json_open(json, "errors");
    for (size_t i = 1; i < TALLY_ERRORS_MAX; i++) {
        if (tally->errors[i] > 0) {
            json_count(json, err_name((enum err) - (int)i), tally->errors[i]);
        }
    }
    json_close(json);
    json_open(json, "traps");
    for (size_t i = 1; i < TRAP_REASONS_COUNT; i++) {
        if (tally->traps[i] > 0) {
            json_count(json, trap_reason_name((enum trap_reason)i), tally->traps[i]);
        }
    }
    json_close(json);
}
