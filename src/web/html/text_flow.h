/* text_flow - a run of words with single spaces between them, up to a size. Private to text.c. */
#ifndef MNEMON_WEB_HTML_TEXT_FLOW_H
#define MNEMON_WEB_HTML_TEXT_FLOW_H

#include "base/buf.h"

struct text_flow {
    struct buf out;
    size_t size_max;
    bool wants_space; /* before the next word */
    bool is_full;
};

void text_flow_init(struct text_flow *flow, size_t size_max);
void text_flow_done(struct text_flow *flow);
void text_flow_clear(struct text_flow *flow);

/* Append text in UTF-8. All spaces and controls count as spaces; what has no width is dropped. */
void text_flow_put(struct text_flow *flow, struct bytes text);

/* A word ends here. */
static inline void text_flow_space(struct text_flow *flow) {
    flow->wants_space = true;
}

#endif
