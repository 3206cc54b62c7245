#include "web/html/tree.h"

/* The order counts: text models first, then what enters foreign content, what holds HTML in it, what leaves
 * it. */
enum {
    NAME_OTHER,
    NAME_SCRIPT,
    NAME_STYLE,
    NAME_XMP,
    NAME_IFRAME,
    NAME_NOEMBED,
    NAME_NOFRAMES,
    NAME_TEXTAREA,
    NAME_PLAINTEXT,
    NAME_TITLE, /* RCDATA in HTML, holds HTML in SVG */
    NAME_SVG,
    NAME_MATH,
    NAME_FOREIGNOBJECT,
    NAME_DESC,
    NAME_MI,
    NAME_MO,
    NAME_MN,
    NAME_MS,
    NAME_MTEXT,
    NAME_ANNOTATION_XML,
    NAME_FONT,
    NAME_LEAVING, /* this and all behind it */
};
_Static_assert((int)NAME_LEAVING == (int)TREE_LEAVING, "the header knows it");

/* clang-format off */
static const char *const names[] = {
    [NAME_OTHER] = "",
    [NAME_SCRIPT] = "script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "plaintext",
    [NAME_TITLE] = "title", "svg", "math", "foreignobject", "desc", "mi", "mo", "mn", "ms", "mtext",
    [NAME_ANNOTATION_XML] = "annotation-xml", "font",
    [NAME_LEAVING] = "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em",
    "embed", "h1", "h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr",
    "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul",
    "var",
};
/* clang-format on */

void tree_init(struct tree *tree) {
    words_init(&tree->words, names, sizeof names / sizeof *names);
    tree_start(tree);
}

void tree_start(struct tree *tree) {
    tree->depth = 0;
}

static bool holds_html(unsigned id) {
    return id == NAME_TITLE || (id >= NAME_FOREIGNOBJECT && id <= NAME_ANNOTATION_XML);
}

static unsigned innermost(const struct tree *tree) {
    return tree->depth > 0 ? tree->stack[tree->depth - 1] : (unsigned)NAME_OTHER;
}

bool tree_is_foreign(const struct tree *tree) {
    return tree->depth > 0 && !holds_html(innermost(tree));
}

static void tree_push(struct tree *tree, unsigned id) {
    if (tree->depth < TREE_DEPTH_MAX) {
        tree->stack[tree->depth++] = (uint8_t)id;
    }
}

/* Out of the innermost foreign content, to the HTML around it. */
static void tree_leave(struct tree *tree) {
    while (tree_is_foreign(tree)) {
        tree->depth--;
    }
}

static void set_model(struct html *html, const struct html_token *token, unsigned id) {
    switch (id) {
    case NAME_SCRIPT:
        html_set_model(html, HTML_SCRIPT, token->name);
        break;
    case NAME_STYLE:
    case NAME_XMP:
    case NAME_IFRAME:
    case NAME_NOEMBED:
    case NAME_NOFRAMES:
        html_set_model(html, HTML_RAWTEXT, token->name);
        break;
    case NAME_TITLE:
    case NAME_TEXTAREA:
        html_set_model(html, HTML_RCDATA, token->name);
        break;
    case NAME_PLAINTEXT:
        html_set_model(html, HTML_PLAINTEXT, token->name);
        break;
    default:
        break;
    }
}

/* <annotation-xml> holds HTML only if it says so. */
static bool declares_html(const struct html_token *token) {
    const struct html_attribute *encoding = html_find_attribute(token, BYTES("encoding"));
    if (encoding == NULL) {
        return false;
    }
    struct bytes value = html_attribute_value(token, encoding);
    return bytes_equal_ignore_case(value, BYTES("text/html")) ||
           bytes_equal_ignore_case(value, BYTES("application/xhtml+xml"));
}

static bool leaves(const struct html_token *token, unsigned id) {
    if (id == NAME_FONT) {
        return html_find_attribute(token, BYTES("color")) != NULL ||
               html_find_attribute(token, BYTES("face")) != NULL ||
               html_find_attribute(token, BYTES("size")) != NULL;
    }
    return id >= NAME_LEAVING;
}

static void foreign_start_tag(struct tree *tree, const struct html_token *token, unsigned id) {
    if (leaves(token, id)) {
        tree_leave(tree);
        return;
    }
    if (token->is_self_closing) {
        return;
    }
    bool is_svg = innermost(tree) == NAME_SVG;
    bool is_of_svg = id == NAME_TITLE || id == NAME_FOREIGNOBJECT || id == NAME_DESC;
    bool is_html = holds_html(id) && is_of_svg == is_svg;
    if (id == NAME_ANNOTATION_XML && !declares_html(token)) {
        is_html = false;
    }
    if (id == NAME_SVG || id == NAME_MATH || is_html) {
        tree_push(tree, id);
    }
}

static void end_tag(struct tree *tree, unsigned id) {
    bool is_leaving = id >= NAME_LEAVING && (strcmp(names[id], "p") == 0 || strcmp(names[id], "br") == 0);
    if (is_leaving) {
        tree_leave(tree);
        return;
    }
    for (size_t i = tree->depth; i > 0; i--) {
        if (tree->stack[i - 1] == id) {
            tree->depth = i - 1;
            return;
        }
    }
}

void tree_apply(struct tree *tree, struct html *html, const struct html_token *token, unsigned id) {
    if (token->kind == HTML_END_TAG) {
        end_tag(tree, id);
    } else if (tree_is_foreign(tree)) {
        foreign_start_tag(tree, token, id);
    } else if (id == NAME_SVG || id == NAME_MATH) {
        if (!token->is_self_closing) {
            tree_push(tree, id);
        }
    } else {
        set_model(html, token, id);
    }
    html_set_cdata(html, tree_is_foreign(tree));
}
