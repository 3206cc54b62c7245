/*
 * http_rules - the two ways in which HTTP/1 is read here, and all that they differ in.
 *
 * STRICT is for requests that are passed on, and for bodies that are: whoever reads them next must see the
 * same message, or a request could be hidden in another one's body. What has no single meaning is refused.
 * RECORDED is for what servers have sent, live or in a record: nothing is refused, because an archive must
 * read what the web is made of, but every size is bounded.
 *
 *                               STRICT                              RECORDED
 *      lines end in             CRLF                                CRLF or LF
 *      first line               METHOD target HTTP/1.0 or 1.1       anything with "HTTP/" in it, "ICY 200"
 *      empty lines before it    passed over                         no head
 *      a field                  token, colon, no control character  anything with a colon; others are counted
 *      a folded line            refused                             joined
 *      too many fields          refused                             the first FIELDS_COUNT_MAX
 *      more than one Host       refused                             all are there
 *      no empty line at the end more bytes are needed               the head is whole
 *      chunk size               digits                              blanks around it
 *      extensions, trailers     printable, 8 KiB, not folded        anything; a size line has 256 bytes
 *      what is no chunk         ends the reading                    is body, with all that follows
 *
 * What says where a body ends: http_head_framing().
 */
#ifndef MNEMON_HTTP_MESSAGE_HTTP_RULES_H
#define MNEMON_HTTP_MESSAGE_HTTP_RULES_H

enum http_rules { HTTP_RULES_RECORDED, HTTP_RULES_STRICT };

#endif
