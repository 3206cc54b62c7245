#include "http/message/http_body.h"

void http_body_start(struct http_body *body, struct http_framing framing) {
    body->kind = framing.kind;
    body->left = framing.kind == HTTP_BODY_LENGTH ? framing.size : 0;
    body->is_ended = framing.kind == HTTP_BODY_NONE || (framing.kind == HTTP_BODY_LENGTH && body->left == 0);
    body->is_wrong = false;
    chunked_start(&body->chunked, HTTP_RULES_STRICT);
}

size_t http_body_take(struct http_body *body, struct bytes bytes) {
    size_t taken = body->is_ended || body->is_wrong ? 0 : bytes.size;
    if (taken > 0 && body->kind == HTTP_BODY_LENGTH) {
        taken = bytes.size < body->left ? bytes.size : (size_t)body->left;
        body->left -= taken;
        body->is_ended = body->left == 0;
    }
    if (taken > 0 && body->kind == HTTP_BODY_CHUNKED) {
        taken = chunked_take(&body->chunked, bytes);
        body->is_ended = body->chunked.state == CHUNKED_ENDED;
        body->is_wrong = body->chunked.state == CHUNKED_WRONG;
    }
    return taken;
}

bool http_body_finish(struct http_body *body) {
    body->is_ended = body->is_ended || body->kind == HTTP_BODY_UNTIL_CLOSE;
    return body->is_ended;
}
