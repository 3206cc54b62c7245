#include "crawl/rules/pattern.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/regex.h"
#include "crawl/rules/pattern_posix.h"

enum {
    STEPS_MAX = 2000000, /* about 25 ms: for each URL that is found */
    DEPTH_MAX = 20000,   /* "(/[a-z]+)*" over the longest URL */
    TRANSLATED_SIZE_MAX = 10 * PATTERN_SIZE_MAX,
};

struct pattern {
    struct bytes text;   /* as it was added; owned */
    bool is_any_scheme;  /* a glob that leaves "https://" out */
    struct regex *regex; /* NULL: a glob */
};

void pattern_list_init(struct pattern_list *list) {
    *list = (struct pattern_list){.items = NULL};
}

void pattern_list_done(struct pattern_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        regex_free(list->items[i].regex);
        free((void *)list->items[i].text.data);
    }
    free(list->items);
    free((void *)list->limited_count);
    pattern_list_init(list);
}

static enum err compile_regex(struct pattern_list *list, struct pattern *pattern, struct bytes text,
                              struct err_detail *detail) {
    static const struct regex_rules rules = {
        .is_posix = true, .steps_max = STEPS_MAX, .depth_max = DEPTH_MAX};
    struct regex *regex = NULL;
    struct buf translated;
    buf_init(&translated, TRANSLATED_SIZE_MAX);
    if (list->limited_count == NULL &&
        (list->limited_count = calloc(1, sizeof *list->limited_count)) == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    enum err err = pattern_posix_put(text, &translated, detail);
    err = err == ERR_OK ? regex_new(buf_bytes(&translated), &rules, &regex, detail) : err;
    buf_done(&translated);
    if (err == ERR_OK && list->code_size + regex_size(regex) > PATTERNS_CODE_SIZE_MAX) {
        regex_free(regex);
        return err_set(detail, ERR_LIMIT, "the regular expressions are too large together");
    }
    if (err == ERR_OK) {
        pattern->regex = regex;
        list->code_size += regex_size(regex);
    }
    return err;
}

static enum err compile(struct pattern_list *list, struct pattern *pattern, struct err_detail *detail) {
    struct bytes text = pattern->text;
    if (bytes_starts_with(text, BYTES("re:"))) {
        return compile_regex(list, pattern, bytes_skip(text, 3), detail);
    }
    bool has_scheme = bytes_find(text, BYTES("://")) < text.size;
    pattern->is_any_scheme = !has_scheme && text.data[0] != '*';
    return ERR_OK;
}

static enum err reserve(struct pattern_list *list) {
    if (list->count < list->capacity) {
        return ERR_OK;
    }
    size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
    struct pattern *items = reallocarray(list->items, capacity, sizeof *items);
    if (items == NULL) {
        return ERR_MEMORY;
    }
    list->items = items;
    list->capacity = capacity;
    return ERR_OK;
}

enum err pattern_list_add(struct pattern_list *list, struct bytes text, struct err_detail *detail) {
    if (text.size == 0) {
        return err_set(detail, ERR_INVALID, "the pattern is empty");
    }
    if (text.size > PATTERN_SIZE_MAX || list->count == PATTERNS_MAX) {
        return err_set(detail, ERR_LIMIT, "patterns have at most %d bytes and are at most %d",
                       PATTERN_SIZE_MAX, PATTERNS_MAX);
    }
    if (bytes_find_byte(text, 0) < text.size) {
        return err_set(detail, ERR_INVALID, "a zero byte in a pattern");
    }
    if (reserve(list) != ERR_OK) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    char *copy = strndup((const char *)text.data, text.size);
    if (copy == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    struct pattern *pattern = &list->items[list->count];
    *pattern = (struct pattern){.text = bytes_of(copy, text.size)};
    enum err err = compile(list, pattern, detail);
    if (err != ERR_OK) {
        free(copy);
        return err;
    }
    list->count++;
    return ERR_OK;
}

/* The byte of the glob at i, where '\' makes the next one plain. *ret_next is where the one after begins. */
static uint8_t glob_byte(struct bytes glob, size_t i, bool *ret_is_plain, size_t *ret_next) {
    *ret_is_plain = glob.data[i] == '\\' && i + 1 < glob.size;
    i += *ret_is_plain ? 1 : 0;
    *ret_next = i + 1;
    return glob.data[i];
}

/*
 * Where it does not go on, only the last '*' is made longer: an earlier one could not reach more. So it takes
 * at most glob times text steps.
 */
bool pattern_glob(struct bytes glob, struct bytes text) {
    size_t g = 0;
    size_t t = 0;
    size_t star_g = SIZE_MAX; /* behind the last '*' */
    size_t star_t = 0;        /* how far that one reaches */
    while (t < text.size) {
        bool is_plain = false;
        size_t next = g;
        uint8_t byte = g < glob.size ? glob_byte(glob, g, &is_plain, &next) : 0;
        bool is_wild = g < glob.size && !is_plain;
        if (is_wild && byte == '*') {
            star_g = g = next;
            star_t = t;
        } else if ((is_wild && byte == '?') || (g < glob.size && byte == text.data[t])) {
            g = next;
            t++;
        } else if (star_g != SIZE_MAX) {
            g = star_g;
            t = ++star_t;
        } else {
            return false;
        }
    }
    while (g < glob.size && glob.data[g] == '*') {
        g++;
    }
    return g == glob.size;
}

static bool matches(const struct pattern_list *list, const struct pattern *pattern, struct bytes url) {
    if (pattern->regex != NULL) {
        enum regex_verdict verdict = regex_match(pattern->regex, url);
        if (verdict == REGEX_LIMIT) {
            atomic_fetch_add_explicit(list->limited_count, 1, memory_order_relaxed);
        }
        return verdict == REGEX_YES;
    }
    size_t scheme_end = bytes_find(url, BYTES("://"));
    if (pattern->is_any_scheme && scheme_end < url.size) {
        url = bytes_skip(url, scheme_end + 3);
    }
    return pattern_glob(pattern->text, url);
}

int pattern_list_find(const struct pattern_list *list, struct bytes url) {
    if (url.size == 0 || url.size > PATTERN_URL_SIZE_MAX) {
        return PATTERN_NONE;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (matches(list, &list->items[i], url)) {
            return (int)i;
        }
    }
    return PATTERN_NONE;
}

uint64_t pattern_list_limited(const struct pattern_list *list) {
    return list->limited_count == NULL ? 0 : atomic_load_explicit(list->limited_count, memory_order_relaxed);
}

struct bytes pattern_list_text(const struct pattern_list *list, size_t index) {
    ASSERT(index < list->count);
    return list->items[index].text;
}
