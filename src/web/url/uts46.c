#include "web/url/uts46.h"

#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>

#include "base/utf8.h"
#include "web/url/uts46_newer.h"

enum {
    ZERO_WIDTH_NON_JOINER = 0x200c,
    ZERO_WIDTH_JOINER = 0x200d,
    SHARP_S = 0xdf,
    CAPITAL_SHARP_S = 0x1e9e,
    FINAL_SIGMA = 0x3c2,
    IDEOGRAPHIC_FULL_STOP = 0x3002,
    FULLWIDTH_FULL_STOP = 0xff0e,
    HALFWIDTH_FULL_STOP = 0xff61,
    OBJECT_REPLACEMENT = 0xfffc,
    VIRAMA = 9, /* canonical combining class */
};

/* NFKC_Casefold of one code point: fold, compose, drop the default ignorable ones. Returns the count. */
static size_t fold(uint32_t code_point, uint32_t folded[UTS46_MAPPED_MAX]) {
    size_t folded_count = UTS46_MAPPED_MAX;
    uint32_t *result = u32_casefold(&code_point, 1, NULL, UNINORM_NFKC, folded, &folded_count);
    ASSERT(result == folded); /* large enough for all; libunistring takes memory only for long text */
    size_t count = 0;
    for (size_t i = 0; i < folded_count; i++) {
        if (!uc_is_property_default_ignorable_code_point(folded[i])) {
            folded[count++] = folded[i];
        }
    }
    return count;
}

/* Invisible or shapeless things that UTS #46 refuses, though their properties would let them through. */
static bool is_excluded(uint32_t code_point) {
    bool is_ideographic_description = code_point >= 0x2ff0 && code_point <= 0x2fff;
    bool is_tag = code_point >= 0xe0000 && code_point <= 0xe007f;
    return is_ideographic_description || is_tag || code_point == OBJECT_REPLACEMENT ||
           code_point == UTF8_REPLACEMENT || uc_is_property_bidi_control(code_point);
}

/* The status "valid" of UTS #46, which includes the four deviation characters when nontransitional. */
static bool is_valid(uint32_t code_point) {
    if (code_point < 0x80) {
        return code_point < 'A' || code_point > 'Z';
    }
    if (code_point == SHARP_S || code_point == FINAL_SIGMA || code_point == ZERO_WIDTH_NON_JOINER ||
        code_point == ZERO_WIDTH_JOINER) {
        return true;
    }
    bool is_mark;
    if (uts46_newer_is_valid(code_point, &is_mark)) {
        return true;
    }
    if (code_point == IDEOGRAPHIC_FULL_STOP || is_excluded(code_point) ||
        uc_is_general_category_withtable(code_point, UC_CATEGORY_MASK_C | UC_CATEGORY_MASK_Z)) {
        return false;
    }
    uint32_t folded[UTS46_MAPPED_MAX];
    return fold(code_point, folded) == 1 && folded[0] == code_point;
}

static bool is_full_stop(uint32_t code_point) {
    return code_point == '.' || code_point == IDEOGRAPHIC_FULL_STOP || code_point == FULLWIDTH_FULL_STOP ||
           code_point == HALFWIDTH_FULL_STOP;
}

bool uts46_map(uint32_t code_point, uint32_t mapped[UTS46_MAPPED_MAX], size_t *ret_count) {
    mapped[0] = code_point;
    *ret_count = 1;
    if (is_full_stop(code_point)) {
        mapped[0] = '.';
        return true;
    }
    if (code_point == CAPITAL_SHARP_S) {
        mapped[0] = SHARP_S; /* folding alone would make it "ss", unlike the small letter */
        return true;
    }
    if (is_valid(code_point) || uts46_newer_map(code_point, &mapped[0])) {
        return true;
    }
    if (is_excluded(code_point) || uc_is_general_category_withtable(code_point, UC_CATEGORY_MASK_Cn)) {
        return false;
    }
    *ret_count = fold(code_point, mapped);
    for (size_t i = 0; i < *ret_count; i++) {
        /* A character such as U+2488 ("1.") must not bring a dot along. */
        if (!is_valid(mapped[i]) || mapped[i] == '.') {
            return false;
        }
    }
    return true;
}

/* RFC 5892, appendix A: a joiner needs a virama before it, or (the non-joiner) cursive letters around it. */
static bool joiner_is_allowed(const uint32_t *label, size_t count, size_t index) {
    if (index > 0 && uc_combining_class(label[index - 1]) == VIRAMA) {
        return true;
    }
    if (label[index] == ZERO_WIDTH_JOINER) {
        return false;
    }
    size_t before = index;
    while (before > 0 && uc_joining_type(label[before - 1]) == UC_JOINING_TYPE_T) {
        before--;
    }
    size_t after = index + 1;
    while (after < count && uc_joining_type(label[after]) == UC_JOINING_TYPE_T) {
        after++;
    }
    if (before == 0 || after == count) {
        return false;
    }
    int left = uc_joining_type(label[before - 1]);
    int right = uc_joining_type(label[after]);
    return (left == UC_JOINING_TYPE_L || left == UC_JOINING_TYPE_D) &&
           (right == UC_JOINING_TYPE_R || right == UC_JOINING_TYPE_D);
}

const char *uts46_check_label(const uint32_t *label, size_t count) {
    static const uint32_t prefix[] = {'x', 'n', '-', '-'};
    if (count >= 4 && memcmp(label, prefix, sizeof prefix) == 0) {
        return "a label of the domain is punycode of punycode";
    }
    bool is_mark = false;
    if (count > 0 && ((uts46_newer_is_valid(label[0], &is_mark) && is_mark) ||
                      uc_is_general_category_withtable(label[0], UC_CATEGORY_MASK_M))) {
        return "a label of the domain starts with a combining mark";
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_valid(label[i]) || label[i] == '.') {
            return "the domain has a character that domains may not have";
        }
        if ((label[i] == ZERO_WIDTH_JOINER || label[i] == ZERO_WIDTH_NON_JOINER) &&
            !joiner_is_allowed(label, count, i)) {
            return "a label of the domain has a joiner where none is allowed";
        }
    }
    return NULL;
}

/* The bidirectional classes of a label as a set, so that RFC 5893 reads as set operations. */
enum bidi {
    BIDI_L = 1 << 0,
    BIDI_R_AL = 1 << 1,
    BIDI_AN = 1 << 2,
    BIDI_EN = 1 << 3,
    BIDI_NSM = 1 << 4,
    BIDI_NEUTRAL = 1 << 5, /* ES, CS, ET, ON, BN */
    BIDI_OTHER = 1 << 6,
};

static enum bidi bidi_of(uint32_t code_point) {
    switch (uc_bidi_class(code_point)) {
    case UC_BIDI_L:
        return BIDI_L;
    case UC_BIDI_R:
    case UC_BIDI_AL:
        return BIDI_R_AL;
    case UC_BIDI_AN:
        return BIDI_AN;
    case UC_BIDI_EN:
        return BIDI_EN;
    case UC_BIDI_NSM:
        return BIDI_NSM;
    case UC_BIDI_ES:
    case UC_BIDI_CS:
    case UC_BIDI_ET:
    case UC_BIDI_ON:
    case UC_BIDI_BN:
        return BIDI_NEUTRAL;
    default:
        return BIDI_OTHER;
    }
}

static unsigned bidi_set(const uint32_t *label, size_t count) {
    unsigned set = 0;
    for (size_t i = 0; i < count; i++) {
        set |= (unsigned)bidi_of(label[i]);
    }
    return set;
}

/* The six conditions of RFC 5893, section 2. */
bool uts46_bidi_is_allowed(const uint32_t *label, size_t count) {
    if (count == 0) {
        return true;
    }
    unsigned set = bidi_set(label, count);
    while (count > 1 && bidi_of(label[count - 1]) == BIDI_NSM) {
        count--;
    }
    unsigned first = (unsigned)bidi_of(label[0]);
    unsigned last = (unsigned)bidi_of(label[count - 1]);
    if (first == BIDI_R_AL) {
        return (set & (BIDI_L | BIDI_OTHER)) == 0 && (last & (BIDI_R_AL | BIDI_EN | BIDI_AN)) != 0 &&
               (set & (BIDI_EN | BIDI_AN)) != (BIDI_EN | BIDI_AN);
    }
    return first == BIDI_L && (set & (BIDI_R_AL | BIDI_AN | BIDI_OTHER)) == 0 &&
           (last & (BIDI_L | BIDI_EN)) != 0;
}

bool uts46_is_bidi(const uint32_t *text, size_t count) {
    return (bidi_set(text, count) & (BIDI_R_AL | BIDI_AN)) != 0;
}
