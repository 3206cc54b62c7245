#include "web/html/links.h"
#include "web/rewrite/rewrite.h"

static const char *const modifier_names[REWRITE_MODIFIERS_COUNT] = {
    [REWRITE_PAGE] = "mp_",   [REWRITE_RAW] = "id_",     [REWRITE_IFRAME] = "if_",  [REWRITE_FRAME] = "fr_",
    [REWRITE_IMAGE] = "im_",  [REWRITE_SCRIPT] = "js_",  [REWRITE_MODULE] = "esm_", [REWRITE_STYLE] = "cs_",
    [REWRITE_OBJECT] = "oe_", [REWRITE_WORKER] = "wkr_",
};

const char *rewrite_modifier_name(enum rewrite_modifier modifier) {
    return modifier_names[modifier];
}

enum rewrite_modifier rewrite_modifier_of(struct bytes name) {
    for (size_t i = 0; i < REWRITE_MODIFIERS_COUNT; i++) {
        if (bytes_equal(name, bytes_of_string(modifier_names[i]))) {
            return (enum rewrite_modifier)i;
        }
    }
    return REWRITE_PAGE;
}

/* How images, media, fonts and archives start. */
static bool is_binary(struct bytes head) {
    static const struct {
        size_t at;
        const char *magic;
    } magics[] = {
        {0, "\x89PNG"},          {0, "GIF8"}, {0, "\xff\xd8\xff"}, {0, "RIFF"},   {0, "%PDF-"}, {0, "PK\3\4"},
        {0, "\x1f\x8b"},         {0, "wOFF"}, {0, "wOF2"},         {0, "OTTO"},   {4, "ftyp"},  {0, "OggS"},
        {0, "\x1a\x45\xdf\xa3"}, {0, "ID3"},  {0, "fLaC"},         {0, "7z\xbc"}, {0, "Rar!"},  {0, "BZh"},
    };
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        struct bytes magic = bytes_of_string(magics[i].magic);
        if (head.size >= magics[i].at + magic.size &&
            bytes_starts_with(bytes_skip(head, magics[i].at), magic)) {
            return true;
        }
    }
    return false;
}

static struct bytes type_of(struct bytes content_type) {
    return bytes_trim(bytes_slice(content_type, 0, bytes_find_byte(content_type, ';')));
}

/* Types that servers give to anything. */
static bool is_vague(struct bytes type) {
    static const char *const types[] = {"",
                                        "text/plain",
                                        "application/octet-stream",
                                        "binary/octet-stream",
                                        "unknown/unknown",
                                        "application/unknown",
                                        "*/*",
                                        NULL};
    return bytes_is_one_of(type, types);
}

static bool is_dash(struct bytes type, struct bytes head) {
    return bytes_equal_ignore_case(type, BYTES("application/dash+xml")) ||
           bytes_find(bytes_slice(head, 0, head.size < 512 ? head.size : 512), BYTES("<MPD")) <
               (head.size < 512 ? head.size : 512);
}

static enum rewrite_format format_of_links(enum links_format format, struct bytes type, struct bytes head) {
    switch (format) {
    case LINKS_HTML:
        return REWRITE_HTML;
    case LINKS_XML:
        return is_dash(type, head) ? REWRITE_DASH : REWRITE_XML;
    case LINKS_CSS:
        return REWRITE_CSS;
    case LINKS_MANIFEST:
    case LINKS_JSON:
        return REWRITE_JSON;
    case LINKS_SCRIPT:
        return REWRITE_CLASSIC_SCRIPT;
    case LINKS_PLAYLIST:
        return REWRITE_HLS;
    case LINKS_NONE:
    case LINKS_UNKNOWN:
        break;
    }
    return REWRITE_AS_IS;
}

/* The first byte that says something. */
static uint8_t first_byte(struct bytes head) {
    head = bytes_trim(bytes_starts_with(head, BYTES("\xef\xbb\xbf")) ? bytes_skip(head, 3) : head);
    return head.size > 0 ? head.data[0] : '\0';
}

/* From the type and the first bytes alone. */
static enum rewrite_format own_format(struct bytes type, struct bytes head) {
    static const char *const scripts[] = {"text/x-javascript",        "text/jscript",
                                          "application/x-ecmascript", "text/livescript",
                                          "text/x-ecmascript",        NULL};
    if (bytes_is_one_of(type, scripts)) {
        return REWRITE_CLASSIC_SCRIPT;
    }
    if (!is_vague(type)) {
        return format_of_links(links_format_of(type), type, head);
    }
    enum rewrite_format format = format_of_links(links_sniff(head), type, head);
    bool is_shown_as_text = type.size > 0 && format != REWRITE_HLS && format != REWRITE_DASH;
    return is_shown_as_text && links_format_of(type) == LINKS_NONE ? REWRITE_AS_IS : format;
}

enum rewrite_format rewrite_format_of(struct bytes content_type, enum rewrite_modifier modifier,
                                      struct bytes head) {
    if (modifier == REWRITE_RAW || is_binary(head)) {
        return REWRITE_AS_IS;
    }
    struct bytes type = type_of(content_type);
    enum rewrite_format format = own_format(type, head);
    /* A browser takes what it asked for as a script for one whatever its type, but for media. */
    bool is_any_text = is_vague(type) || format == REWRITE_HTML || format == REWRITE_JSON;
    uint8_t first = first_byte(head);
    switch (modifier) {
    case REWRITE_SCRIPT:
    case REWRITE_MODULE:
    case REWRITE_WORKER:
        if (format == REWRITE_JSON && (first == '{' || first == '[')) {
            return REWRITE_JSON;
        }
        if (format == REWRITE_CLASSIC_SCRIPT || (is_any_text && first != '<')) {
            return modifier == REWRITE_MODULE ? REWRITE_MODULE_SCRIPT : REWRITE_CLASSIC_SCRIPT;
        }
        return format;
    case REWRITE_STYLE:
        return is_any_text && first != '<' ? REWRITE_CSS : format;
    default:
        return format;
    }
}
