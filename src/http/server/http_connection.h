/*
 * http_connection - one connection on the loop that serves it: requests in, answers out, one after the other.
 *
 *      HEAD ──> BODY ──> WORK ──> SEND ──┬──> HEAD      the next request, if the connection stays
 *        └───────────────────────────^   └──> LINGER    what was not read is thrown away for a while
 *
 * Heads and chunks are read by the STRICT rules (http_rules.h): a request with one meaning, or 400 and the
 * end of the connection. So nothing that stands between a client and this server can take for the end of a
 * request what the server does not (request smuggling).
 *
 * Each connection has a time by which it must have come further; the thread looks once a second and closes
 * those that have not: a client that sends a byte now and then keeps its place no longer than one that is
 * silent. What arrives while a request is being answered waits: in memory up to HTTP_BLOCK_SIZE, the rest in
 * the socket.
 */
#ifndef MNEMON_HTTP_SERVER_HTTP_CONNECTION_H
#define MNEMON_HTTP_SERVER_HTTP_CONNECTION_H

#include "base/address.h"

struct http_thread;

/* From the door's loop. False: no memory, or the thread is being stopped; the descriptor is the caller's. */
bool http_connection_new(struct http_thread *thread, int fd, const struct address *client);

/* On the thread: close those that are too slow. */
void http_connections_look(void *thread);

/* On the thread: ask streams again that had nothing to send. */
void http_connections_again(void *thread);

/* On the thread, at its end. None is suspended. */
void http_connections_close(void *thread);

#endif
