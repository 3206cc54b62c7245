#include "web/rewrite/rewrite_rules.h"

#include "web/rewrite/rewrite_modifier.h"

/* Both lists are in the order of their enum. */
static const char *const more_elements[] = {"baseurl", "blockquote", "del",      "head",
                                            "html",    "ins",        "location", "q"};

static const char *const more_attributes[] = {"cite",      "crossorigin", "formtarget", "initialization",
                                              "integrity", "manifest",    "media",      "nonce",
                                              "ping",      "sourceurl",   "target"};

/* LINKS_OTHER: of any element that has no rule of its own for the attribute. */
static const struct {
    unsigned element;
    unsigned attribute;
    struct rewrite_rule rule;
} more_rules[] = {
    {LINKS_BASE, LINKS_HREF, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_LINK, LINKS_HREF, {REWRITE_AS_LINK, REWRITE_OBJECT, REWRITE_ANYWHERE}},
    {LINKS_LINK, LINKS_IMAGESRCSET, {REWRITE_AS_SRCSET, REWRITE_IMAGE, REWRITE_ANYWHERE}},
    {LINKS_ATOM_LINK, LINKS_HREF, {REWRITE_AS_LINK, REWRITE_OBJECT, REWRITE_ANYWHERE}},
    {LINKS_SCRIPT_ELEMENT, LINKS_SRC, {REWRITE_AS_SCRIPT, REWRITE_SCRIPT, REWRITE_ANYWHERE}},
    {LINKS_SCRIPT_ELEMENT, LINKS_HREF, {REWRITE_AS_SCRIPT, REWRITE_SCRIPT, REWRITE_ANYWHERE}},
    {LINKS_SCRIPT_ELEMENT, LINKS_XLINK_HREF, {REWRITE_AS_SCRIPT, REWRITE_SCRIPT, REWRITE_ANYWHERE}},
    {LINKS_META, LINKS_CONTENT_ATTRIBUTE, {REWRITE_AS_REFRESH, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_META, LINKS_HTTP_EQUIV, {REWRITE_AS_POLICY, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_FORM_ELEMENT, LINKS_ACTION, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_INPUT, LINKS_FORMACTION, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_BUTTON, LINKS_FORMACTION, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_INPUT, LINKS_SRC, {REWRITE_AS_URL, REWRITE_IMAGE, REWRITE_ANYWHERE}},
    {LINKS_IFRAME, LINKS_LONGDESC, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {REWRITE_BLOCKQUOTE, REWRITE_CITE, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {REWRITE_Q, REWRITE_CITE, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {REWRITE_INS, REWRITE_CITE, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {REWRITE_DEL, REWRITE_CITE, {REWRITE_AS_URL, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {REWRITE_HTML_ELEMENT, REWRITE_MANIFEST, {REWRITE_AS_URL, REWRITE_OBJECT, REWRITE_ANYWHERE}},

    {LINKS_A, REWRITE_TARGET, {REWRITE_AS_WINDOW, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_AREA, REWRITE_TARGET, {REWRITE_AS_WINDOW, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_BASE, REWRITE_TARGET, {REWRITE_AS_WINDOW, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_FORM_ELEMENT, REWRITE_TARGET, {REWRITE_AS_WINDOW, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_INPUT, REWRITE_FORMTARGET, {REWRITE_AS_WINDOW, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_BUTTON, REWRITE_FORMTARGET, {REWRITE_AS_WINDOW, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_OTHER, REWRITE_CROSSORIGIN, {REWRITE_AS_CORS, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_OTHER, REWRITE_INTEGRITY, {REWRITE_AS_DROPPED, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_OTHER, REWRITE_NONCE, {REWRITE_AS_DROPPED, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_A, REWRITE_PING, {REWRITE_AS_DROPPED, REWRITE_PAGE, REWRITE_ANYWHERE}},
    {LINKS_AREA, REWRITE_PING, {REWRITE_AS_DROPPED, REWRITE_PAGE, REWRITE_ANYWHERE}},

    {LINKS_OTHER, LINKS_XLINK_HREF, {REWRITE_AS_URL, REWRITE_OBJECT, REWRITE_ANYWHERE}},
    {LINKS_OTHER, LINKS_HREF, {REWRITE_AS_URL, REWRITE_OBJECT, REWRITE_IN_XML}},
    {LINKS_OTHER, LINKS_SRC, {REWRITE_AS_URL, REWRITE_OBJECT, REWRITE_IN_XML}},
    {LINKS_OTHER, REWRITE_INITIALIZATION, {REWRITE_AS_ABSOLUTE_URL, REWRITE_OBJECT, REWRITE_IN_DASH}},
    {LINKS_OTHER, REWRITE_MEDIA, {REWRITE_AS_ABSOLUTE_URL, REWRITE_OBJECT, REWRITE_IN_DASH}},
    {LINKS_OTHER, REWRITE_SOURCEURL, {REWRITE_AS_ABSOLUTE_URL, REWRITE_OBJECT, REWRITE_IN_DASH}},
};
enum { MORE_RULES_COUNT = sizeof more_rules / sizeof *more_rules };

static enum rewrite_modifier modifier_of(const struct links_rule *rule) {
    if (rule->kind == LINK_PAGE) {
        return REWRITE_PAGE;
    }
    if (rule->form == LINKS_AS_SRCSET || rule->attribute == LINKS_POSTER ||
        rule->attribute == LINKS_BACKGROUND) {
        return REWRITE_IMAGE;
    }
    switch (rule->element) {
    case LINKS_IMG:
    case LINKS_IMAGE:
    case LINKS_FEIMAGE:
    case LINKS_AMP_IMG:
    case LINKS_ITUNES_IMAGE:
    case LINKS_MEDIA_THUMBNAIL:
        return REWRITE_IMAGE;
    case LINKS_IFRAME:
    case LINKS_LAYER:
        return REWRITE_IFRAME;
    case LINKS_FRAME:
        return REWRITE_FRAME;
    default:
        return REWRITE_OBJECT;
    }
}

/* What scripts put in place later stays as they expect it. */
static enum rewrite_form form_of(const struct links_rule *rule) {
    if (rule->attribute >= LINKS_DATA_BACKGROUND && rule->attribute <= LINKS_DATA_SRCSET) {
        return REWRITE_AS_NOTHING;
    }
    switch (rule->form) {
    case LINKS_AS_URL:
        return REWRITE_AS_URL;
    case LINKS_AS_SRCSET:
        return REWRITE_AS_SRCSET;
    case LINKS_AS_CSS:
        return REWRITE_AS_CSS;
    case LINKS_AS_HTML:
        return REWRITE_AS_HTML;
    case LINKS_AS_LAZY_URL:
        break;
    }
    return REWRITE_AS_NOTHING;
}

static void rules_add(struct rewrite_rules *rules, unsigned element, unsigned attribute,
                      const struct rewrite_rule *rule) {
    if (element != LINKS_OTHER) {
        rules->rules[element][attribute] = *rule;
        return;
    }
    for (unsigned i = 0; i < REWRITE_ELEMENTS_COUNT; i++) {
        struct rewrite_rule *entry = &rules->rules[i][attribute];
        *entry = entry->form == REWRITE_AS_NOTHING ? *rule : *entry;
    }
}

/* Those of LINKS_OTHER come last, so that they only fill what is empty. */
static void add_all(struct rewrite_rules *rules, bool is_other) {
    for (size_t i = 0; i < links_rules_count; i++) {
        const struct links_rule *from = &links_rules[i];
        struct rewrite_rule rule = {(uint8_t)form_of(from), (uint8_t)modifier_of(from), REWRITE_ANYWHERE};
        if (rule.form != REWRITE_AS_NOTHING && (from->element == LINKS_OTHER) == is_other) {
            rules_add(rules, from->element, from->attribute, &rule);
        }
    }
    for (size_t i = 0; i < MORE_RULES_COUNT; i++) {
        if ((more_rules[i].element == LINKS_OTHER) == is_other) {
            rules_add(rules, more_rules[i].element, more_rules[i].attribute, &more_rules[i].rule);
        }
    }
}

void rewrite_rules_init(struct rewrite_rules *rules) {
    *rules = (struct rewrite_rules){0};
    memcpy(rules->element_names, links_element_names, sizeof links_element_names);
    memcpy(rules->element_names + LINKS_ELEMENTS_COUNT, more_elements, sizeof more_elements);
    memcpy(rules->attribute_names, links_attribute_names, sizeof links_attribute_names);
    memcpy(rules->attribute_names + LINKS_ATTRIBUTES_COUNT, more_attributes, sizeof more_attributes);
    words_init(&rules->elements, rules->element_names, REWRITE_ELEMENTS_COUNT);
    words_init(&rules->attributes, rules->attribute_names, REWRITE_ATTRIBUTES_COUNT);
    add_all(rules, false);
    add_all(rules, true);
}
