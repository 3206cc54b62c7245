#include "web/rewrite/rewrite_state.h"

enum { HANDLER_NAME_SIZE_MIN = 5 }; /* "oncut"; "once" and "only" are none */

/* <svg:image>, <a:link>: the name behind the colon, in XML. */
static unsigned find_element(const struct rewrite *rewrite, const struct html_token *token) {
    unsigned id = words_find(&rewrite->rules.elements, token->name_key, token->name);
    size_t colon = id == 0 && rewrite_is_xml(rewrite) ? bytes_find_byte(token->name, ':') : token->name.size;
    if (colon == token->name.size) {
        return id;
    }
    struct bytes local = bytes_skip(token->name, colon + 1);
    return words_find(&rewrite->rules.elements, html_key(local), local);
}

static bool is_handler(struct bytes name) {
    return name.size >= HANDLER_NAME_SIZE_MIN && byte_lower(name.data[0]) == 'o' &&
           byte_lower(name.data[1]) == 'n' && byte_is_alpha(name.data[2]);
}

void rewrite_tag_find(const struct rewrite *rewrite, struct rewrite_tag *tag,
                      const struct html_token *token) {
    tag->token = token; /* found[] is not worth the time to clear it */
    tag->element = find_element(rewrite, token);
    tag->mask = 0;
    tag->has_handlers = false;
    for (size_t i = 0; i < token->attributes_count; i++) {
        const struct html_attribute *attribute = &token->attributes[i];
        struct bytes name = html_attribute_name(token, attribute);
        unsigned id = words_find(&rewrite->rules.attributes, attribute->name_key, name);
        tag->ids[i] = (uint8_t)id;
        if (id == 0) {
            tag->has_handlers = tag->has_handlers || is_handler(name);
        } else if ((tag->mask >> id & 1) == 0) {
            tag->mask |= (uint64_t)1 << id;
            tag->found[id] = attribute;
        }
    }
}

struct bytes rewrite_tag_word(const struct rewrite_tag *tag, unsigned attribute) {
    if (!rewrite_tag_has(tag, attribute)) {
        return (struct bytes){NULL, 0};
    }
    return bytes_trim(html_attribute_value(tag->token, tag->found[attribute]));
}

static bool word_is(const struct rewrite_tag *tag, unsigned attribute, const char *word) {
    return bytes_equal_ignore_case(rewrite_tag_word(tag, attribute), bytes_of_string(word));
}

/*
 * What depends on other attributes
 */

/* Whether the word is one of those in the value. */
static bool rewrite_tag_has_word(struct bytes value, struct bytes word) {
    while (value.size > 0) {
        size_t size = 0;
        while (size < value.size && !byte_is_space(value.data[size])) {
            size++;
        }
        if (bytes_equal_ignore_case(bytes_slice(value, 0, size), word)) {
            return true;
        }
        value = bytes_skip(value, size < value.size ? size + 1 : size);
    }
    return false;
}

static enum rewrite_modifier preload_modifier(struct bytes as) {
    static const struct {
        const char *as;
        enum rewrite_modifier modifier;
    } modifiers[] = {
        {"script", REWRITE_SCRIPT}, {"style", REWRITE_STYLE},         {"image", REWRITE_IMAGE},
        {"worker", REWRITE_WORKER}, {"sharedworker", REWRITE_WORKER}, {"document", REWRITE_IFRAME},
    };
    for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers; i++) {
        if (bytes_equal_ignore_case(as, bytes_of_string(modifiers[i].as))) {
            return modifiers[i].modifier;
        }
    }
    return REWRITE_OBJECT;
}

static enum rewrite_modifier link_modifier(const struct rewrite *rewrite, const struct rewrite_tag *tag) {
    struct bytes rel = rewrite_tag_word(tag, LINKS_REL);
    if (rewrite_tag_has_word(rel, BYTES("stylesheet"))) {
        return REWRITE_STYLE;
    }
    if (rewrite_tag_has_word(rel, BYTES("modulepreload"))) {
        return REWRITE_MODULE;
    }
    if (rel.size == 0 && rewrite_is_xml(rewrite)) { /* Atom: an alternate */
        return REWRITE_PAGE;
    }
    return rewrite_tag_has(tag, LINKS_AS) ? preload_modifier(rewrite_tag_word(tag, LINKS_AS))
                                          : REWRITE_OBJECT;
}

/* Only the first one with an href counts, even if that is no URL. */
static void set_base(struct rewrite *rewrite, struct bytes value) {
    if (rewrite->has_own_base) {
        return;
    }
    rewrite->has_own_base = true;
    enum err err = url_parse(&rewrite->own_base, value, rewrite->base, NULL);
    rewrite_check(rewrite, err == ERR_INVALID ? ERR_OK : err);
    if (err == ERR_OK && url_is_web(&rewrite->own_base)) {
        rewrite->base = &rewrite->own_base;
    }
}

/*
 * Values
 */

static bool set_changed(struct rewrite *rewrite, struct bytes value) {
    buf_clear(&rewrite->changed);
    return rewrite_check(rewrite, buf_put(&rewrite->changed, value));
}

static bool change_url(struct rewrite *rewrite, const struct rewrite_tag *tag,
                       const struct rewrite_rule *rule, struct bytes value) {
    enum rewrite_modifier modifier = (enum rewrite_modifier)rule->modifier;
    switch ((enum rewrite_form)rule->form) {
    case REWRITE_AS_LINK:
        modifier = link_modifier(rewrite, tag);
        break;
    case REWRITE_AS_SCRIPT:
        modifier = word_is(tag, LINKS_TYPE, "module") ? REWRITE_MODULE : modifier;
        break;
    case REWRITE_AS_ABSOLUTE_URL:
        return rewrite_is_absolute(value) && rewrite_value_url(rewrite, modifier, value);
    default:
        break;
    }
    if (tag->element == LINKS_BASE) {
        set_base(rewrite, value);
    }
    return rewrite_value_url(rewrite, modifier, value);
}

/* True with the new value in rewrite->changed. */
static bool rewrite_tag_change(struct rewrite *rewrite, const struct rewrite_tag *tag,
                               const struct rewrite_rule *rule, struct bytes value) {
    switch ((enum rewrite_form)rule->form) {
    case REWRITE_AS_SRCSET:
        return rewrite_value_srcset(rewrite, (enum rewrite_modifier)rule->modifier, value);
    case REWRITE_AS_CSS:
        return rewrite_value_css(rewrite, value);
    case REWRITE_AS_HTML:
        return rewrite_value_html(rewrite, value);
    case REWRITE_AS_REFRESH:
        return word_is(tag, LINKS_HTTP_EQUIV, "refresh") && rewrite_value_refresh(rewrite, value);
    case REWRITE_AS_WINDOW:
        return value.size > 0 && !bytes_equal_ignore_case(value, BYTES("_self")) &&
               set_changed(rewrite, BYTES("_self"));
    case REWRITE_AS_CORS:
        return bytes_equal_ignore_case(value, BYTES("use-credentials")) &&
               set_changed(rewrite, BYTES("anonymous"));
    case REWRITE_AS_NOTHING:
    case REWRITE_AS_POLICY:
    case REWRITE_AS_DROPPED:
        return false;
    default:
        return change_url(rewrite, tag, rule, value);
    }
}

/*
 * Tags
 */

/* How far the source of a tag is out. */
struct progress {
    struct rewrite *rewrite;
    struct bytes source;
    size_t copied;
};

static void copy_to(struct progress *progress, size_t to) {
    rewrite_out(progress->rewrite, bytes_slice(progress->source, progress->copied, to));
    progress->copied = to;
}

static size_t attribute_end(const struct html_attribute *attribute) {
    switch (attribute->quote) {
    case HTML_NO_VALUE:
        return attribute->name_to;
    case HTML_UNQUOTED:
        return attribute->value_to;
    case HTML_SINGLE_QUOTED:
    case HTML_DOUBLE_QUOTED:
        break;
    }
    return attribute->value_to + 1;
}

static void put_changed(struct progress *progress, const struct html_attribute *attribute) {
    struct rewrite *rewrite = progress->rewrite;
    bool is_bare = attribute->quote == HTML_UNQUOTED;
    copy_to(progress, attribute->value_from);
    rewrite_out(rewrite, is_bare ? BYTES("\"") : BYTES(""));
    rewrite_out_escaped(rewrite, buf_bytes(&rewrite->changed),
                        is_bare ? HTML_DOUBLE_QUOTED : attribute->quote);
    rewrite_out(rewrite, is_bare ? BYTES("\"") : BYTES(""));
    progress->copied = attribute->value_to;
}

static bool is_policy(const struct rewrite_tag *tag) {
    return word_is(tag, LINKS_HTTP_EQUIV, "content-security-policy") ||
           word_is(tag, LINKS_HTTP_EQUIV, "content-security-policy-report-only");
}

static bool applies(const struct rewrite *rewrite, const struct rewrite_rule *rule) {
    switch ((enum rewrite_where)rule->where) {
    case REWRITE_IN_XML:
        return rewrite_is_xml(rewrite);
    case REWRITE_IN_DASH:
        return rewrite->place.format == REWRITE_DASH;
    case REWRITE_ANYWHERE:
        break;
    }
    return rule->form != REWRITE_AS_NOTHING;
}

static void put_attribute(struct progress *progress, const struct rewrite_tag *tag, size_t index) {
    struct rewrite *rewrite = progress->rewrite;
    const struct html_attribute *attribute = &tag->token->attributes[index];
    unsigned id = tag->ids[index];
    const struct rewrite_rule *rule = &rewrite->rules.rules[tag->element][id];
    if (id != 0 && !applies(rewrite, rule)) {
        return;
    }
    if (id != 0 && rule->form == REWRITE_AS_DROPPED) { /* each of them, or the second would count */
        copy_to(progress, attribute->name_from);
        progress->copied = attribute_end(attribute);
        return;
    }
    if (id != 0 && rule->form == REWRITE_AS_POLICY) {
        if (is_policy(tag)) {
            copy_to(progress, attribute->name_from);
            rewrite_out(rewrite, BYTES("data-"));
        }
        return;
    }
    bool counts =
        id == 0 ? is_handler(html_attribute_name(tag->token, attribute)) : tag->found[id] == attribute;
    if (!counts || attribute->quote == HTML_NO_VALUE) {
        return;
    }
    struct bytes value =
        rewrite_decode(rewrite, html_attribute_value(tag->token, attribute), HTML_DECODING_VALUE);
    if (id == 0 ? rewrite_value_script(rewrite, value) : rewrite_tag_change(rewrite, tag, rule, value)) {
        put_changed(progress, attribute);
    }
}

void rewrite_tag_out(struct rewrite *rewrite, const struct rewrite_tag *tag) {
    const struct html_token *token = tag->token;
    struct progress progress = {.rewrite = rewrite, .source = token->source};
    if (tag->mask != 0 || tag->has_handlers) {
        for (size_t i = 0; i < token->attributes_count; i++) {
            if (tag->ids[i] != 0 || tag->has_handlers) {
                put_attribute(&progress, tag, i);
            }
        }
    }
    copy_to(&progress, token->source.size);
}
