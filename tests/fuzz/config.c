/*
 * config - any text against a table with keys of every type.
 *
 * A mistake has a place inside the text; what is accepted keeps its bounds and reads the same again.
 */
#include "base/config.h"

#include <stdio.h>

#include "base/utf8.h"
#include "fuzz.h"

enum { ARENA_SIZE_MAX = 1 << 28 };

struct settings {
    bool is_on;
    uint64_t number;
    uint64_t size;
    uint64_t duration_us;
    struct bytes text;
    struct bytes other;
    uint32_t choice;
    struct config_list list;
};

static const char *const choices[] = {"memory", "disk", "network", NULL};

static const struct config_key keys[] = {
    {.name = "text", .type = CONFIG_TEXT, .offset = offsetof(struct settings, text), .fallback = "none"},
    {.name = "list", .type = CONFIG_LIST, .offset = offsetof(struct settings, list)},
    {.name = "a.other", .type = CONFIG_TEXT, .offset = offsetof(struct settings, other)},
    {.name = "a.switch", .type = CONFIG_SWITCH, .offset = offsetof(struct settings, is_on), .fallback = "no"},
    {.name = "a.number",
     .type = CONFIG_NUMBER,
     .offset = offsetof(struct settings, number),
     .fallback = "5",
     .min = 5,
     .max = 1000},
    {.name = "b.size",
     .type = CONFIG_SIZE,
     .offset = offsetof(struct settings, size),
     .fallback = "1 KiB",
     .min = 1,
     .max = UINT64_MAX},
    {.name = "b.duration",
     .type = CONFIG_DURATION,
     .offset = offsetof(struct settings, duration_us),
     .fallback = "2 s",
     .min = 1000,
     .max = 3600000000},
    {.name = "b.choice",
     .type = CONFIG_CHOICE,
     .offset = offsetof(struct settings, choice),
     .fallback = "disk",
     .choices = choices},
    {.name = NULL},
};

static void check_place(struct bytes text, const struct err_detail *detail) {
    if (bytes_starts_with(text, BYTES("\xef\xbb\xbf"))) {
        text = bytes_skip(text, 3);
    }
    struct bytes line = bytes_of(NULL, 0);
    for (uint32_t number = 0; number < detail->line; number++) {
        bool is_there = bytes_split(&text, '\n', &line);
        ASSERT(is_there);
    }
    ASSERT(detail->line >= 1);
    ASSERT(detail->column >= 1 && detail->column <= line.size + 1);
    char place[64];
    snprintf(place, sizeof place, "line %u, column %u: ", detail->line, detail->column);
    struct bytes explanation = bytes_of_string(detail->text);
    ASSERT(bytes_starts_with(explanation, bytes_of_string(place)));
    ASSERT(explanation.size > strlen(place));
}

static void check_text(struct bytes text) {
    ASSERT(utf8_is_valid(text));
    ASSERT(text.data == NULL || text.data[text.size] == '\0');
    for (size_t i = 0; i < text.size; i++) {
        ASSERT(text.data[i] >= 0x20 || text.data[i] == '\n' || text.data[i] == '\t');
    }
}

static void check_settings(const struct settings *settings) {
    ASSERT(settings->number >= 5 && settings->number <= 1000);
    ASSERT(settings->size >= 1);
    ASSERT(settings->duration_us >= 1000 && settings->duration_us <= 3600000000);
    ASSERT(settings->choice < 3);
    ASSERT(settings->list.count <= CONFIG_LIST_COUNT_MAX);
    check_text(settings->text);
    check_text(settings->other);
    for (size_t i = 0; i < settings->list.count; i++) {
        check_text(settings->list.items[i]);
    }
}

static void check_equal(const struct settings *a, const struct settings *b) {
    ASSERT(a->is_on == b->is_on && a->number == b->number && a->size == b->size);
    ASSERT(a->duration_us == b->duration_us && a->choice == b->choice);
    ASSERT(bytes_equal(a->text, b->text) && bytes_equal(a->other, b->other));
    ASSERT(a->list.count == b->list.count);
    for (size_t i = 0; i < a->list.count; i++) {
        ASSERT(bytes_equal(a->list.items[i], b->list.items[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes text = bytes_of(data, size);
    struct arena arena;
    arena_init(&arena, ARENA_SIZE_MAX);
    struct settings settings;
    struct settings again;
    struct err_detail detail = {.err = ERR_OK};
    memset(&settings, 0x00, sizeof settings);
    memset(&again, 0xff, sizeof again);
    enum err err = config_read(keys, text, &arena, &settings, &detail);
    enum err err_again = config_read(keys, text, &arena, &again, NULL);
    ASSERT(err == err_again);
    if (err == ERR_OK) {
        check_settings(&settings);
        check_equal(&settings, &again);
    } else {
        ASSERT(err == ERR_INVALID || err == ERR_LIMIT);
        ASSERT(detail.err == err);
        check_place(text, &detail);
    }
    arena_done(&arena);
    return 0;
}
