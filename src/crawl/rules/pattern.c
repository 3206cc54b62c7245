#include "crawl/rules/pattern.h"

#include <regex.h>
#include <stdlib.h>

enum {
    REPETITIONS_MAX = 1000
}; /* the product of all "{n}" of an expression: glibc copies the part n times */

struct pattern {
    struct bytes text;  /* as it was added; owned */
    bool is_regex;      /* else glob */
    bool is_any_scheme; /* a glob that leaves "https://" out */
    regex_t regex;
};

void pattern_list_init(struct pattern_list *list) {
    *list = (struct pattern_list){NULL, 0, 0};
}

void pattern_list_done(struct pattern_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].is_regex) {
            regfree(&list->items[i].regex);
        }
        free((void *)list->items[i].text.data);
    }
    free(list->items);
    pattern_list_init(list);
}

/* The larger bound of "{n}", "{n,}" or "{n,m}" behind the brace; 1 if it is something else. */
static uint64_t repetitions(const char *text) {
    uint64_t largest = 1;
    while (byte_is_digit((uint8_t)*text)) {
        char *end;
        uint64_t bound = strtoul(text, &end, 10);
        largest = bound > largest ? bound : largest;
        text = *end == ',' ? end + 1 : end;
    }
    return largest < 1 << 20 ? largest : 1 << 20;
}

static enum err check_regex(const char *text, struct err_detail *detail) {
    uint64_t product = 1;
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '\\' && byte_is_digit((uint8_t)text[i + 1])) {
            return err_set_at(detail, ERR_INVALID, i, "back references are not supported");
        }
        if (text[i] == '{') {
            product *= repetitions(text + i + 1);
        }
        if (product > REPETITIONS_MAX) {
            return err_set_at(detail, ERR_INVALID, i, "its repetitions are more than %d together",
                              REPETITIONS_MAX);
        }
        i += text[i] == '\\' && text[i + 1] != '\0' ? 1 : 0;
    }
    return ERR_OK;
}

static enum err compile_regex(struct pattern *pattern, const char *text, struct err_detail *detail) {
    enum err err = check_regex(text, detail);
    if (err != ERR_OK) {
        return err;
    }
    int code = regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB);
    if (code == 0) {
        pattern->is_regex = true;
        return ERR_OK;
    }
    char reason[128];
    regerror(code, &pattern->regex, reason, sizeof reason);
    return err_set(detail, code == REG_ESPACE ? ERR_MEMORY : ERR_INVALID, "%s", reason);
}

static enum err compile(struct pattern *pattern, struct err_detail *detail) {
    struct bytes text = pattern->text;
    if (bytes_starts_with(text, BYTES("re:"))) {
        return compile_regex(pattern, (const char *)text.data + 3, detail);
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
    char *copy = strndup((const char *)text.data, text.size); /* regcomp() wants its zero byte */
    if (copy == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    struct pattern *pattern = &list->items[list->count];
    *pattern = (struct pattern){.text = bytes_of(copy, text.size)};
    enum err err = compile(pattern, detail);
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

/* POSIX knows only strings. */
static bool regex_matches(const regex_t *regex, struct bytes url) {
    char string[PATTERN_URL_SIZE_MAX + 1];
    memcpy(string, url.data, url.size);
    string[url.size] = '\0';
    return regexec(regex, string, 0, NULL, 0) == 0;
}

static bool matches(const struct pattern *pattern, struct bytes url) {
    if (pattern->is_regex) {
        return regex_matches(&pattern->regex, url);
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
        if (matches(&list->items[i], url)) {
            return (int)i;
        }
    }
    return PATTERN_NONE;
}

struct bytes pattern_list_text(const struct pattern_list *list, size_t index) {
    ASSERT(index < list->count);
    return list->items[index].text;
}
