/* html_doctype - what a <!DOCTYPE …> says. */
#ifndef MNEMON_WEB_HTML_HTML_DOCTYPE_H
#define MNEMON_WEB_HTML_HTML_DOCTYPE_H

#include "web/html/html.h"

/*
 * Fill in name, ids and is_quirky from the text between "<!DOCTYPE" and '>', or the end of the input where
 * there was no '>' (is_open).
 */
void html_doctype_parse(struct html_token *token, struct bytes text, bool is_open);

#endif
