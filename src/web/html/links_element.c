#include "web/html/links_state.h"
#include "web/html/refresh.h"
#include "web/html/srcset.h"

static struct bytes raw_value(const struct links_tag *tag, enum links_attribute attribute) {
    if (!links_tag_has(tag, attribute)) {
        return (struct bytes){NULL, 0};
    }
    return html_attribute_value(tag->token, tag->found[attribute]);
}

bool links_tag_is(const struct links_tag *tag, enum links_attribute attribute, struct bytes word) {
    return bytes_equal_ignore_case(bytes_trim(raw_value(tag, attribute)), word);
}

uint64_t links_tag_offset(const struct links_tag *tag, enum links_attribute attribute) {
    return tag->token->offset + tag->found[attribute]->value_from;
}

struct bytes links_tag_value(struct links *links, const struct links_tag *tag,
                             enum links_attribute attribute) {
    return links_decode(links, raw_value(tag, attribute), HTML_DECODING_VALUE);
}

static struct link link_of(const struct links_tag *tag, enum links_attribute attribute, enum link_kind kind) {
    return (struct link){.kind = kind,
                         .element = links_element_names[tag->element],
                         .attribute = links_attribute_names[attribute],
                         .offset = links_tag_offset(tag, attribute)};
}

void links_tag_url(struct links *links, const struct links_tag *tag, enum links_attribute attribute,
                   enum link_kind kind) {
    struct link link = link_of(tag, attribute, kind);
    links_report(links, &link, links_tag_value(links, tag, attribute));
}

void links_tag_srcset(struct links *links, const struct links_tag *tag, enum links_attribute attribute) {
    struct link link = link_of(tag, attribute, LINK_EMBED);
    struct bytes rest = links_tag_value(links, tag, attribute);
    struct bytes text;
    while (srcset_next(&rest, &text)) {
        links_report(links, &link, text);
    }
}

/*
 * link
 */

enum rel { REL_IGNORED, REL_EMBED, REL_PAGE, REL_PREFETCH };

static enum rel rel_of(struct bytes word) {
    static const struct {
        const char *word;
        enum rel rel;
    } words[] = {
        {"stylesheet", REL_EMBED},
        {"icon", REL_EMBED},
        {"apple-touch-icon", REL_EMBED},
        {"apple-touch-icon-precomposed", REL_EMBED},
        {"apple-touch-startup-image", REL_EMBED},
        {"mask-icon", REL_EMBED},
        {"fluid-icon", REL_EMBED},
        {"image_src", REL_EMBED},
        {"manifest", REL_EMBED},
        {"preload", REL_EMBED},
        {"modulepreload", REL_EMBED},
        {"enclosure", REL_EMBED}, /* Atom */
        {"prefetch", REL_PREFETCH},
        {"dns-prefetch", REL_IGNORED},
        {"preconnect", REL_IGNORED},
        {"pingback", REL_IGNORED},
        {"edituri", REL_IGNORED},
        {"wlwmanifest", REL_IGNORED},
        {"hub", REL_IGNORED},
        {"shortcut", REL_IGNORED}, /* as in "shortcut icon" */
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (bytes_equal_ignore_case(word, bytes_of_string(words[i].word))) {
            return words[i].rel;
        }
    }
    return REL_PAGE;
}

bool links_rel_kind(struct bytes rel, bool has_as, enum link_kind *ret_kind) {
    bool is_page = false;
    while (rel.size > 0) {
        size_t size = 0;
        while (size < rel.size && !byte_is_space(rel.data[size])) {
            size++;
        }
        enum rel word = size == 0 ? REL_IGNORED : rel_of(bytes_slice(rel, 0, size));
        if (word == REL_EMBED || (word == REL_PREFETCH && has_as)) {
            *ret_kind = LINK_EMBED;
            return true;
        }
        is_page = is_page || word != REL_IGNORED;
        rel = bytes_skip(rel, size < rel.size ? size + 1 : size);
    }
    *ret_kind = LINK_PAGE;
    return is_page;
}

static void link_element(struct links *links, const struct links_tag *tag) {
    enum link_kind kind = LINK_PAGE;
    bool has_rel = links_tag_has(tag, LINKS_REL);
    bool is_followed = has_rel
                           ? links_rel_kind(raw_value(tag, LINKS_REL), links_tag_has(tag, LINKS_AS), &kind)
                           : links->format == LINKS_XML; /* Atom: an alternate */
    if (is_followed && links_tag_has(tag, LINKS_HREF)) {
        links_tag_url(links, tag, LINKS_HREF, kind);
    }
    if (is_followed && links_tag_has(tag, LINKS_IMAGESRCSET)) {
        links_tag_srcset(links, tag, LINKS_IMAGESRCSET);
    }
}

/*
 * meta, base, forms
 */

/* og:image and friends: no browser fetches them, but those who preview the page do. */
static bool is_preview(struct bytes name) {
    static const char *const names[] = {
        "og:image",      "og:image:url",      "og:image:secure_url",     "og:video",  "og:audio",
        "twitter:image", "twitter:image:src", "msapplication-tileimage", "thumbnail", "og:video:url",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal_ignore_case(name, bytes_of_string(names[i]))) {
            return true;
        }
    }
    return false;
}

static void meta_element(struct links *links, const struct links_tag *tag) {
    if (!links_tag_has(tag, LINKS_CONTENT_ATTRIBUTE)) {
        return;
    }
    if (links_tag_is(tag, LINKS_HTTP_EQUIV, BYTES("refresh"))) {
        struct link link = link_of(tag, LINKS_CONTENT_ATTRIBUTE, LINK_REFRESH);
        struct bytes text;
        if (refresh_url(links_tag_value(links, tag, LINKS_CONTENT_ATTRIBUTE), &text)) {
            links_report(links, &link, text);
        }
    } else if (links->options.guesses && (is_preview(bytes_trim(raw_value(tag, LINKS_PROPERTY))) ||
                                          is_preview(bytes_trim(raw_value(tag, LINKS_NAME))))) {
        links_tag_url(links, tag, LINKS_CONTENT_ATTRIBUTE, LINK_GUESS);
    }
}

/* Only the first one with an href counts, even if that is no URL. */
static void base_element(struct links *links, const struct links_tag *tag) {
    if (links->has_own_base || links->is_inner || !links_tag_has(tag, LINKS_HREF)) {
        return;
    }
    links->has_own_base = true;
    struct bytes text = links_tag_value(links, tag, LINKS_HREF);
    enum err err = url_parse(&links->own_base, text, links->base, NULL);
    links->err = err == ERR_MEMORY ? err : links->err;
    bool is_forbidden = err != ERR_OK || bytes_equal(url_scheme(&links->own_base), BYTES("data")) ||
                        bytes_equal(url_scheme(&links->own_base), BYTES("javascript"));
    links->base = is_forbidden ? links->base : &links->own_base;
}

/* Only what a GET leads to: a POST changes things. */
static void form_element(struct links *links, const struct links_tag *tag, enum links_attribute action,
                         enum links_attribute method) {
    bool is_get = !links_tag_is(tag, method, BYTES("post")) && !links_tag_is(tag, method, BYTES("dialog"));
    if (links->options.forms && is_get && links_tag_has(tag, action)) {
        links_tag_url(links, tag, action, LINK_FORM);
    }
}

void links_element(struct links *links, const struct links_tag *tag) {
    switch (tag->element) {
    case LINKS_LINK:
    case LINKS_ATOM_LINK:
        link_element(links, tag);
        break;
    case LINKS_META:
        meta_element(links, tag);
        break;
    case LINKS_BASE:
        base_element(links, tag);
        break;
    case LINKS_FORM_ELEMENT:
        form_element(links, tag, LINKS_ACTION, LINKS_METHOD);
        break;
    case LINKS_INPUT:
        if (links_tag_has(tag, LINKS_SRC) && links_tag_is(tag, LINKS_TYPE, BYTES("image"))) {
            links_tag_url(links, tag, LINKS_SRC, LINK_EMBED);
        }
        form_element(links, tag, LINKS_FORMACTION, LINKS_FORMMETHOD);
        break;
    case LINKS_BUTTON:
        form_element(links, tag, LINKS_FORMACTION, LINKS_FORMMETHOD);
        break;
    default:
        break;
    }
}
