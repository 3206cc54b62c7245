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

/* Indexed by -enum err; the others say all there is to say. */
static const struct {
    const char *name;
    const char *text;
} failure_words[] = {
    [-ERR_NOT_FOUND] = {"name_not_found", "there is no host of that name"},
    [-ERR_PERMISSION] = {"private_address", "its address is private or special"},
    [-ERR_TIMEOUT] = {"timeout", "the host did not answer in time"},
    [-ERR_REFUSED] = {"refused", "the host refused the connection"},
    [-ERR_UNREACHABLE] = {"unreachable", "there is no way to the host"},
    [-ERR_CLOSED] = {"closed", "the connection ended before the answer did"},
    [-ERR_INVALID] = {"invalid", "the answer is no HTTP"},
};

static const struct {
    const char *name;
    const char *text;
} reason_words[] = {
    [TALLY_NONE] = {"none", ""},
    [TALLY_ROBOTS] = {"robots", "robots.txt does not allow it"},
    [TALLY_NO_ROBOTS] = {"no_robots", "robots.txt could not be read, so nothing is allowed"},
    [TALLY_HOST_DEAD] = {"host_dead", "the host did not answer several times in a row"},
    [TALLY_NOT_STORED] = {"not_stored", "the archive could not store it"},
    [TALLY_TLS] = {"tls", "there is no TLS connection to trust"},
};

const char *tally_reason_text(uint8_t reason) {
    size_t err = reason > TALLY_FAILED ? (size_t)(reason - TALLY_FAILED) : 0;
    if (reason < sizeof reason_words / sizeof *reason_words) {
        return reason_words[reason].text;
    }
    if (err < sizeof failure_words / sizeof *failure_words && failure_words[err].text != NULL) {
        return failure_words[err].text;
    }
    return err > 0 ? err_text((enum err)(TALLY_FAILED - (int)reason)) : "unknown reason";
}

const char *tally_reason_name(uint8_t reason) {
    size_t err = reason > TALLY_FAILED ? (size_t)(reason - TALLY_FAILED) : 0;
    if (reason < sizeof reason_words / sizeof *reason_words) {
        return reason_words[reason].name;
    }
    if (err < sizeof failure_words / sizeof *failure_words && failure_words[err].name != NULL) {
        return failure_words[err].name;
    }
    return err > 0 ? err_name((enum err)(TALLY_FAILED - (int)reason)) : "unknown";
}

void tally_count_failure(struct tally *tally, uint8_t reason, struct bytes url, const char *why) {
    struct tally_failure *failure = tally->failures;
    struct tally_failure *end = tally->failures + tally->failures_count;
    while (failure < end && failure->reason != reason) {
        failure++;
    }
    if (failure == end && tally->failures_count == TALLY_REASONS_MAX) {
        failure--; /* there are not that many */
    } else if (failure == end) {
        tally->failures_count++;
        failure->reason = reason;
        bool is_new = why != NULL && strcmp(why, tally_reason_text(reason)) != 0;
        snprintf(failure->why, sizeof failure->why, "%s", is_new ? why : "");
    }
    failure->count++;
    if (failure->examples_count < TALLY_EXAMPLES_MAX) {
        url.size = url.size < TALLY_EXAMPLE_SIZE_MAX ? url.size : TALLY_EXAMPLE_SIZE_MAX - 1;
        snprintf(failure->examples[failure->examples_count++], TALLY_EXAMPLE_SIZE_MAX, "%.*s",
                 BYTES_ARG(url));
    }
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
        VALUE_PUT(out, "{count} ({size})", types[i]->count, types[i]->size);
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
        VALUE_PUT(out, "  patterns    {count} times too slow for a URL, which then did not match\n",
                  tally->patterns_limited_count);
    }
}

/* A line for each reason, with the first URLs that it befell. */
static void put_failures(const struct tally *tally, struct buf *out) {
    const char *gap = "  not stored  ";
    for (size_t i = 0; i < tally->failures_count; i++) {
        const struct tally_failure *failure = &tally->failures[i];
        buf_put_string(out, gap);
        put_counted(out, failure->count, tally_reason_text(failure->reason));
        if (failure->why[0] != '\0') {
            buf_put_format(out, " (%s)", failure->why);
        }
        for (size_t j = 0; j < failure->examples_count; j++) {
            buf_put_format(out, "%s%s", j == 0 ? ": " : ", ", failure->examples[j]);
        }
        buf_put_string(out, failure->count > failure->examples_count ? ", …\n" : "\n");
        gap = "              ";
    }
}

static void put_failures_json(const struct tally *tally, struct json *json) {
    json_open_list(json, "reasons");
    for (size_t i = 0; i < tally->failures_count; i++) {
        const struct tally_failure *failure = &tally->failures[i];
        json_open(json, NULL);
        json_text(json, "reason", tally_reason_name(failure->reason));
        json_text(json, "text", tally_reason_text(failure->reason));
        json_text(json, "why", failure->why);
        json_count(json, "count", failure->count);
        json_open_list(json, "urls");
        for (size_t j = 0; j < failure->examples_count; j++) {
            json_text(json, NULL, failure->examples[j]);
        }
        json_close(json);
        json_close(json);
    }
    json_close(json);
}

void tally_put_summary(const struct tally *tally, uint64_t elapsed_us, struct buf *out) {
    VALUE_PUT(out,
              "  stored      {count} responses, {size} received in {time}\n"
              "  duplicates  {count} ({count} not modified), {size} not stored again\n",
              tally->done_count, tally->received_size, elapsed_us,
              tally->duplicate_count + tally->not_modified_count, tally->not_modified_count,
              tally->saved_size);
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
                {"patterns_limited", tally->patterns_limited_count},
                {"seeds_stored", tally->seeds_done_count}, {"seeds_failed", tally->seeds_failed_count});
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
    put_failures_json(tally, json);
    json_open(json, "traps");
    for (size_t i = 1; i < TRAP_REASONS_COUNT; i++) {
        if (tally->traps[i] > 0) {
            json_count(json, trap_reason_name((enum trap_reason)i), tally->traps[i]);
        }
    }
    json_close(json);
}
