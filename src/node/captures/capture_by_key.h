/* capture_by_key - a capture of this node by its key on the ring (base/ringkey.h), if its SURT is known.
 */
#ifndef MNEMON_NODE_CAPTURES_CAPTURE_BY_KEY_H
#define MNEMON_NODE_CAPTURES_CAPTURE_BY_KEY_H

#include "base/buf.h"
#include "base/ringkey.h"
#include "store/instance/instance.h"

/*
 * bounds: for work. url: gets the URL of the capture; NULL: it is not wanted. surt and url of *ret_capture
 * borrow from these, mime is empty. ERR_NOT_FOUND; ERR_BUSY: a volume is down, it may be there.
 */
enum err capture_by_key(struct instance_session *session, struct bytes surt, const struct ringkey *key,
                        struct buf *bounds, struct buf *url, struct capture *ret_capture,
                        struct err_detail *detail) MUST_CHECK;

#endif
