#include "web/html/links_state.h"
#include "web/html/refresh.h"
#include "web/html/srcset.h"

/* The attributes of a tag that mean something to us, the first of each name. */
struct links_tag {
    const struct html_token *token;
    unsigned element;
    uint64_t mask; /* bit i: found[i] is there */
    const struct html_attribute *found[LINKS_ATTRIBUTES_COUNT];
};
_Static_assert(LINKS_ATTRIBUTES_COUNT <= 64, "one bit each");

static bool links_tag_has(const struct links_tag *tag, enum links_attribute attribute) {
    return (tag->mask >> attribute & 1) != 0;
}

static struct bytes raw_value(const struct links_tag *tag, enum links_attribute attribute) {
    if (!links_tag_has(tag, attribute)) {
        return (struct bytes){NULL, 0};
    }
    return html_attribute_value(tag->token, tag->found[attribute]);
}

/* Whether the attribute is there and its value, spaces at its ends aside, is this word in any case. */
static bool links_tag_is(const struct links_tag *tag, enum links_attribute attribute, struct bytes word) {
    return bytes_equal_ignore_case(bytes_trim(raw_value(tag, attribute)), word);
}

static uint64_t links_tag_offset(const struct links_tag *tag, enum links_attribute attribute) {
    return tag->token->offset + tag->found[attribute]->value_from;
}

/* The value, decoded; valid until the next call of links_decode(). */
static struct bytes links_tag_value(struct links *links, const struct links_tag *tag,
                                    enum links_attribute attribute) {
    return links_decode(links, raw_value(tag, attribute), HTML_DECODING_VALUE);
}

static struct link links_link_of(const struct links_tag *tag, enum links_attribute attribute,
                                 enum link_kind kind) {
    return (struct link){.kind = kind,
                         .element = links_element_names[tag->element],
                         .attribute = links_attribute_names[attribute],
                         .offset = links_tag_offset(tag, attribute)};
}

static void links_tag_url(struct links *links, const struct links_tag *tag, enum links_attribute attribute,
                          enum link_kind kind) {
    struct link link = links_link_of(tag, attribute, kind);
    links_report(links, &link, links_tag_value(links, tag, attribute));
}

static void links_tag_srcset(struct links *links, const struct links_tag *tag,
                             enum links_attribute attribute) {
    struct link link = links_link_of(tag, attribute, LINK_EMBED);
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

/* og:image and friends: no browser fetches them, but programs that preview the page do. */
static bool is_preview(struct bytes name) {
    static const char *const names[] = {"og:image",
                                        "og:image:url",
                                        "og:image:secure_url",
                                        "og:video",
                                        "og:audio",
                                        "twitter:image",
                                        "twitter:image:src",
                                        "msapplication-tileimage",
                                        "thumbnail",
                                        "og:video:url",
                                        NULL};
    return bytes_is_one_of(name, names);
}

static void meta_element(struct links *links, const struct links_tag *tag) {
    if (!links_tag_has(tag, LINKS_CONTENT_ATTRIBUTE)) {
        return;
    }
    if (links_tag_is(tag, LINKS_HTTP_EQUIV, BYTES("refresh"))) {
        struct link link = links_link_of(tag, LINKS_CONTENT_ATTRIBUTE, LINK_REFRESH);
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

static void links_element(struct links *links, const struct links_tag *tag) {
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

/* Where a byte of the tokenizer's input is in the document. */
static uint64_t offset_of(const struct links *links, uint64_t offset) {
    return links->is_inner ? links->inner_offset : offset;
}

/* A document in the document begins: it is looked at when that is over. */
static void start_inner(struct links *links, uint64_t offset) {
    if (!links->is_inner && links->inner_places_count < LINKS_INNER_PLACES_MAX) {
        links->inner_places[links->inner_places_count++] =
            (struct links_inner_place){links->inner.size, offset};
    }
}

static void put_inner(struct links *links, struct bytes html) {
    if (!links->is_inner) {
        buf_put(&links->inner, html);
        links->err = links->inner.err == ERR_MEMORY ? ERR_MEMORY : links->err;
    }
}

/*
 * Text that means something
 */

static struct links_css links_css_of(const struct links *links) {
    return (struct links_css){
        .link = {.element = links_element_names[links->text_element], .offset = links->text_offset}};
}

/* In HTML the text is the style sheet; in XML and SVG it may have character references. */
static void on_style(struct links *links, const struct html_token *token) {
    struct links_css where = links_css_of(links);
    struct bytes text = token->text;
    if ((token->decoding & HTML_DECODE_REFERENCES) != 0 && !html_is_plain(text, token->decoding)) {
        text = links_decode(links, text, token->decoding);
        where.is_utf8 = true;
    }
    links_css_feed(links, text, &where);
}

static void links_end_text(struct links *links) {
    enum links_text text = links->text;
    links->text = LINKS_TEXT_NONE;
    if (text == LINKS_TEXT_STYLE) {
        struct links_css where = links_css_of(links);
        links_css_end(links, &where);
    } else if (text == LINKS_TEXT_URL && links->collected.err == ERR_OK) {
        struct link link = {.kind = links->text_kind,
                            .element = links_element_names[links->text_element],
                            .attribute = "text",
                            .offset = links->text_offset};
        links_report(links, &link, buf_bytes(&links->collected));
    } else if (text == LINKS_TEXT_HTML) {
        /* An unfinished tag must not swallow what follows; whatever opened, nothing reads text specially
         * here. */
        buf_put(&links->inner, BYTES("\n"));
    }
}

static void links_on_text(struct links *links, const struct html_token *token) {
    uint64_t offset = offset_of(links, token->offset);
    if (!links->has_text) {
        links->has_text = true;
        links->text_offset = offset;
        if (links->text == LINKS_TEXT_HTML) {
            start_inner(links, offset);
        }
    }
    switch (links->text) {
    case LINKS_TEXT_STYLE:
        on_style(links, token);
        break;
    case LINKS_TEXT_SCRIPT:
        links->guess.offset = offset;
        links_guess_feed(links, token->text, "script");
        break;
    case LINKS_TEXT_URL:
        buf_put(&links->collected, links_decode(links, token->text, token->decoding));
        break;
    case LINKS_TEXT_HTML:
        put_inner(links, links_decode(links, token->text, token->decoding));
        break;
    case LINKS_TEXT_NONE:
        break;
    }
}

static bool is_style_sheet(const struct links_tag *tag) {
    return !links_tag_has(tag, LINKS_TYPE) || links_tag_is(tag, LINKS_TYPE, BYTES("")) ||
           links_tag_is(tag, LINKS_TYPE, BYTES("text/css"));
}

/* In feeds the text of some elements is a URL, of others HTML. */
static enum links_text links_feed_text(struct links *links, const struct links_tag *tag) {
    links->text_kind = LINK_PAGE;
    switch (tag->element) {
    case LINKS_LINK:
        return links_tag_has(tag, LINKS_HREF) ? LINKS_TEXT_NONE : LINKS_TEXT_URL;
    case LINKS_GUID:
        return links_tag_is(tag, LINKS_ISPERMALINK, BYTES("false")) ? LINKS_TEXT_NONE : LINKS_TEXT_URL;
    case LINKS_COMMENTS:
        return LINKS_TEXT_URL;
    case LINKS_URL:
        links->text_kind = LINK_EMBED;
        return LINKS_TEXT_URL;
    case LINKS_CONTENT:
    case LINKS_CONTENT_ENCODED:
    case LINKS_DESCRIPTION:
    case LINKS_SUMMARY:
        return LINKS_TEXT_HTML;
    default:
        return LINKS_TEXT_NONE;
    }
}

static enum links_text links_text_of(struct links *links, const struct links_tag *tag) {
    if (tag->element == LINKS_STYLE_ELEMENT) {
        return is_style_sheet(tag) ? LINKS_TEXT_STYLE : LINKS_TEXT_NONE;
    }
    if (tag->element == LINKS_SCRIPT_ELEMENT) {
        return links->options.guesses ? LINKS_TEXT_SCRIPT : LINKS_TEXT_NONE;
    }
    return links->format == LINKS_XML && !links->is_inner ? links_feed_text(links, tag) : LINKS_TEXT_NONE;
}

static bool is_json(const struct links_tag *tag) {
    return bytes_ends_with(bytes_trim(raw_value(tag, LINKS_TYPE)), BYTES("json"));
}

/* The tag has been dealt with; what about the text behind it? */
static void start_text(struct links *links, const struct links_tag *tag) {
    enum links_text text = links_text_of(links, tag);
    bool is_empty =
        tag->token->is_self_closing && (links->format == LINKS_XML || tree_is_foreign(&links->tree));
    if (text == LINKS_TEXT_NONE || is_empty) {
        return;
    }
    links_end_text(links);
    links->text = text;
    links->text_element = tag->element;
    links->has_text = false;
    if (text == LINKS_TEXT_STYLE) {
        css_start(&links->css);
    } else if (text == LINKS_TEXT_SCRIPT) {
        guess_start(&links->guess, !is_json(tag), 0);
    } else {
        buf_clear(&links->collected);
    }
}

/*
 * Tags
 */

static void style_attribute(struct links *links, const struct links_tag *tag,
                            enum links_attribute attribute) {
    if (links->text == LINKS_TEXT_STYLE) {
        return; /* a tag in a style sheet, in XML */
    }
    struct links_css where = {.link = {.element = links_element_names[tag->element],
                                       .attribute = links_attribute_names[attribute],
                                       .offset = links_tag_offset(tag, attribute)},
                              .is_utf8 = true};
    css_start(&links->css);
    links_css_feed(links, links_tag_value(links, tag, attribute), &where);
    links_css_end(links, &where);
}

/* What scripts put in place later: a URL, or the value of a CSS property, or neither. */
static void lazy_attribute(struct links *links, const struct links_tag *tag, const struct links_rule *rule) {
    struct bytes value = bytes_trim(html_attribute_value(tag->token, tag->found[rule->attribute]));
    if (bytes_starts_with(value, BYTES("url("))) {
        style_attribute(links, tag, rule->attribute);
    } else if (guess_is_url(value)) {
        links_tag_url(links, tag, rule->attribute, rule->kind);
    }
}

static void apply_rule(struct links *links, const struct links_tag *tag, const struct links_rule *rule) {
    switch (rule->form) {
    case LINKS_AS_URL:
        links_tag_url(links, tag, rule->attribute, rule->kind);
        break;
    case LINKS_AS_LAZY_URL:
        lazy_attribute(links, tag, rule);
        break;
    case LINKS_AS_SRCSET:
        links_tag_srcset(links, tag, rule->attribute);
        break;
    case LINKS_AS_CSS:
        style_attribute(links, tag, rule->attribute);
        break;
    case LINKS_AS_HTML:
        start_inner(links, links_tag_offset(tag, rule->attribute));
        put_inner(links, links_tag_value(links, tag, rule->attribute));
        break;
    }
}

/* The attributes that somebody may want, the first of each name. */
static void find_attributes(const struct links *links, struct links_tag *tag) {
    const struct html_token *token = tag->token;
    for (size_t i = 0; i < token->attributes_count; i++) {
        const struct html_attribute *attribute = &token->attributes[i];
        unsigned id =
            words_find(&links->attributes, attribute->name_key, html_attribute_name(token, attribute));
        if (id != LINKS_NO_ATTRIBUTE && (tag->mask >> id & 1) == 0) {
            tag->mask |= (uint64_t)1 << id;
            tag->found[id] = attribute;
        }
    }
}

/* data-… of names that nobody knows: what a script makes of it is a guess. */
static void guess_attributes(struct links *links, const struct links_tag *tag) {
    const struct html_token *token = tag->token;
    for (size_t i = 0; i < token->attributes_count; i++) {
        const struct html_attribute *attribute = &token->attributes[i];
        struct bytes name = html_attribute_name(token, attribute);
        if (bytes_starts_with_ignore_case(name, BYTES("data-")) &&
            words_find(&links->attributes, attribute->name_key, name) == LINKS_NO_ATTRIBUTE) {
            struct link link = {.kind = LINK_GUESS,
                                .element = links_element_names[tag->element],
                                .attribute = "data-*",
                                .offset = offset_of(links, token->offset) + attribute->value_from};
            links_guess_text(
                links, &link,
                links_decode(links, html_attribute_value(token, attribute), HTML_DECODING_VALUE));
        }
    }
}

/* Text and end tags only matter in some elements. */
static void set_sparse(struct links *links) {
    html_set_sparse(&links->html, links->text == LINKS_TEXT_NONE && links->tree.depth == 0);
}

static void links_on_start_tag(struct links *links, struct html_token *token) {
    if (links->format != LINKS_XML || links->is_inner) {
        tree_tag(&links->tree, &links->html, token);
    }
    struct links_tag tag; /* found[] is not worth the time to clear it */
    tag.token = token;
    tag.mask = 0;
    tag.element = words_find(&links->elements, token->name_key, token->name);
    find_attributes(links, &tag);
    if (links->options.guesses) {
        guess_attributes(links, &tag);
    }
    if (tag.element == LINKS_OTHER && tag.mask == 0) {
        return;
    }
    token->offset = offset_of(links, token->offset);
    for (uint64_t left = tag.mask; left != 0; left &= left - 1) {
        unsigned attribute = (unsigned)__builtin_ctzll(left);
        unsigned rule = links->rules[tag.element][attribute];
        if (rule != 0) {
            apply_rule(links, &tag, &links_rules[rule - 1]);
        }
    }
    links_element(links, &tag);
    start_text(links, &tag);
}

static void links_on_end_tag(struct links *links, const struct html_token *token) {
    if (links->format != LINKS_XML || links->is_inner) {
        tree_tag(&links->tree, &links->html, token);
    }
    if (links->text != LINKS_TEXT_NONE &&
        words_find(&links->elements, token->name_key, token->name) == links->text_element) {
        links_end_text(links);
    }
}

/* <?xml-stylesheet href="…"?> of XML, which the tokenizer takes for a comment. */
static void on_instruction(struct links *links) {
    struct bytes text = buf_bytes(&links->collected);
    size_t href = bytes_find(text, BYTES("href="));
    if (!bytes_starts_with(text, BYTES("?xml-stylesheet")) || href + 5 >= text.size) {
        return;
    }
    uint8_t quote = text.data[href + 5];
    struct bytes value = bytes_skip(text, href + 6);
    size_t size = bytes_find_byte(value, quote);
    if ((quote != '"' && quote != '\'') || size == value.size) {
        return;
    }
    struct link link = {.kind = LINK_EMBED,
                        .element = "?xml-stylesheet",
                        .attribute = "href",
                        .offset = links->text_offset + href + 6};
    links_report(links, &link, links_decode(links, bytes_slice(value, 0, size), HTML_DECODING_VALUE));
}

static void links_on_comment(struct links *links, const struct html_token *token) {
    bool is_first = bytes_starts_with(token->source, BYTES("<?"));
    if (links->format != LINKS_XML || links->text != LINKS_TEXT_NONE ||
        (!is_first && !links->in_instruction)) {
        return;
    }
    if (is_first) {
        buf_clear(&links->collected);
        links->text_offset = token->offset + 1;
    }
    buf_put(&links->collected, token->text);
    links->in_instruction = !token->is_end;
    if (token->is_end && links->collected.err == ERR_OK) {
        on_instruction(links);
    }
}

static void links_drain(struct links *links) {
    struct html_token token;
    while (html_next(&links->html, &token)) {
        switch (token.kind) {
        case HTML_START_TAG:
            links_on_start_tag(links, &token);
            set_sparse(links);
            break;
        case HTML_END_TAG:
            links_on_end_tag(links, &token);
            set_sparse(links);
            break;
        case HTML_TEXT:
            if (links->text != LINKS_TEXT_NONE) {
                links_on_text(links, &token);
            }
            break;
        case HTML_COMMENT:
            links_on_comment(links, &token);
            break;
        default:
            break;
        }
    }
    links->err = html_err(&links->html) != ERR_OK ? html_err(&links->html) : links->err;
}

void links_html_start(struct links *links) {
    html_start(&links->html);
    tree_start(&links->tree);
    html_set_cdata(&links->html, links->format == LINKS_XML && !links->is_inner);
    links->text = LINKS_TEXT_NONE;
    links->in_instruction = false;
}

void links_html_feed(struct links *links, struct bytes piece) {
    html_feed(&links->html, piece);
    links_drain(links);
}

void links_html_end(struct links *links) {
    html_end(&links->html);
    links_drain(links);
    links_end_text(links);
}
