/*
 * css_step - the states of the tokenizer: css.c knows names and what is between them, css_value.c functions,
 * strings and urls. Each step deals with the view from css->at on.
 */
#ifndef MNEMON_WEB_HTML_CSS_STEP_H
#define MNEMON_WEB_HTML_CSS_STEP_H

#include "web/html/css.h"

enum css_step {
    CSS_AGAIN, /* css->at has moved, the state has changed or css->has_reference */
    CSS_MORE,  /* the view ends before it can be said; nothing from css->at on has been dealt with */
};

void css_open_function(struct css *css, enum css_function function);
void css_close_function(struct css *css);

/* Of "{", "}" and ";": a rule is over, and so is what somebody forgot to close. */
void css_end_rule(struct css *css);

/* css->at is at the quote. */
void css_enter_string(struct css *css, uint8_t quote);

/* In a string, whether it is a reference or not. */
enum css_step css_step_string(struct css *css, struct bytes view);

/* Behind "url(", in an unquoted url, in a bad one. */
enum css_step css_step_url_start(struct css *css, struct bytes view);
enum css_step css_step_url(struct css *css, struct bytes view);
enum css_step css_step_bad_url(struct css *css, struct bytes view);

#endif
