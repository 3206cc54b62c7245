#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/regex.h"

#include <pcre2.h>
#include <stdlib.h>

enum {
    HEAP_KIB_MAX = 4096,
    PARENTHESES_MAX = 50,
};

struct regex {
    pcre2_code *code;
    struct regex_rules rules;
    size_t size;
    bool has_one_start; /* a match begins at the start of the text or nowhere */
    bool has_first;     /* begins with this byte … */
    uint8_t first;
    const uint8_t *firsts; /* … or with one of these; NULL: with any. In the code */
};

static pcre2_code *regex_compile(struct bytes text, uint32_t options, struct err_detail *detail) {
    int number = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (context == NULL) {
        err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
        return NULL;
    }
    pcre2_set_parens_nest_limit(context, PARENTHESES_MAX);
    pcre2_code *code = pcre2_compile(text.data, text.size, options, &number, &at, context);
    pcre2_compile_context_free(context);
    if (code == NULL) {
        char reason[128] = "";
        pcre2_get_error_message(number, (PCRE2_UCHAR *)reason, sizeof reason);
        err_set(detail, ERR_INVALID, "the regular expression is wrong at its byte %zu: %s", at + 1, reason);
    }
    return code;
}

/*
 * PCRE2 counts steps anew for each place where a match may begin, so the places must be counted too. And a
 * repetition that it makes possessive by itself looks at the whole text in one step: not if steps are to
 * bound the work.
 */
static uint32_t regex_options(const struct regex_rules *rules) {
    return PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C |
           (rules->is_anchored ? PCRE2_ANCHORED : 0) | (rules->is_end_anchored ? PCRE2_ENDANCHORED : 0) |
           (rules->is_posix ? PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_POSSESS : 0);
}

static void regex_look(struct regex *regex) {
    uint32_t options = 0;
    uint32_t kind = 0;
    uint32_t first = 0;
    pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &regex->size);
    pcre2_pattern_info(regex->code, PCRE2_INFO_ALLOPTIONS, &options);
    pcre2_pattern_info(regex->code, PCRE2_INFO_FIRSTCODETYPE, &kind);
    pcre2_pattern_info(regex->code, PCRE2_INFO_FIRSTCODEUNIT, &first);
    pcre2_pattern_info(regex->code, PCRE2_INFO_FIRSTBITMAP, &regex->firsts);
    regex->has_one_start = (options & PCRE2_ANCHORED) != 0;
    regex->has_first = kind == 1;
    regex->first = (uint8_t)first;
}

enum err regex_new(struct bytes text, const struct regex_rules *rules, struct regex **ret_regex,
                   struct err_detail *detail) {
    struct err_detail own = {.err = ERR_OK};
    struct regex *regex = calloc(1, sizeof *regex);
    if (regex == NULL) {
        return err_set(detail, ERR_MEMORY, "%s", err_text(ERR_MEMORY));
    }
    regex->rules = *rules;
    regex->code = regex_compile(text, regex_options(rules), &own);
    if (regex->code == NULL) {
        regex_free(regex);
        return err_set(detail, own.err, "%s", own.text);
    }
    regex_look(regex);
    if (regex->size > REGEX_CODE_SIZE_MAX) {
        regex_free(regex);
        return err_set(detail, ERR_LIMIT, "the regular expression is too large: at most %d KiB when compiled",
                       REGEX_CODE_SIZE_MAX >> 10);
    }
    *ret_regex = regex;
    return ERR_OK;
}

void regex_free(struct regex *regex) {
    if (regex != NULL) {
        pcre2_code_free(regex->code);
        free(regex);
    }
}

size_t regex_size(const struct regex *regex) {
    return sizeof *regex + regex->size;
}

/* Places where a match may begin. */
static size_t regex_starts(const struct regex *regex, struct bytes text) {
    size_t count = 1;
    if (regex->has_one_start) {
        return count;
    }
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        count += regex->has_first        ? byte == regex->first
                 : regex->firsts != NULL ? (regex->firsts[byte / 8] >> (byte % 8)) & 1
                                         : 1;
    }
    return count;
}

enum regex_verdict regex_match(const struct regex *regex, struct bytes text) {
    size_t steps = regex->rules.steps_max / regex_starts(regex, text);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    int result = PCRE2_ERROR_NOMEMORY;
    if (match != NULL && limits != NULL) {
        pcre2_set_match_limit(limits, steps > 0 ? (uint32_t)steps : 1);
        pcre2_set_depth_limit(limits, regex->rules.depth_max);
        pcre2_set_heap_limit(limits, HEAP_KIB_MAX);
        result = pcre2_match(regex->code, text.data, text.size, 0, 0, match, limits);
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    return result >= 0 ? REGEX_YES : result == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_LIMIT;
}
