/*
 * tree - the little of tree construction that a tokenizer depends on: how the text of an element is to be
 * read, and whether we are in SVG or MathML, where <script>, <style> and <title> are ordinary and CDATA
 * exists.
 *
 * An approximation: it knows the elements that enter and leave foreign content, not the whole tree. Scripting
 * counts as off, so that what stands in <noscript> is read as elements. Beyond TREE_DEPTH_MAX levels of
 * foreign content in each other the inner ones are taken for the outer.
 */
#ifndef MNEMON_WEB_HTML_TREE_H
#define MNEMON_WEB_HTML_TREE_H

#include "web/html/words.h"

enum { TREE_DEPTH_MAX = 32 };

struct tree {
    struct words words;
    size_t depth;
    uint8_t stack[TREE_DEPTH_MAX]; /* ids of svg, math and of the elements in them that hold HTML */
};

void tree_init(struct tree *tree);

/* A new document. */
void tree_start(struct tree *tree);

/* Ids from this one on only leave foreign content. */
enum { TREE_LEAVING = 21 };

/* For tree_tag(): the tag has this id, and it matters. */
void tree_apply(struct tree *tree, struct html *html, const struct html_token *token, unsigned id);

/* The token is a start or an end tag that html_next() has just given: set the model for what follows. */
static inline void tree_tag(struct tree *tree, struct html *html, const struct html_token *token) {
    unsigned id = words_find(&tree->words, token->name_key, token->name);
    if (tree->depth > 0 || (id > 0 && id < TREE_LEAVING)) {
        tree_apply(tree, html, token, id);
    }
}

/* Whether what follows belongs to SVG or MathML. */
bool tree_is_foreign(const struct tree *tree);

#endif
