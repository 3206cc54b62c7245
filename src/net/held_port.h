/*
 * held_port - a TCP port that is ours before anybody listens at it.
 *
 * A node has one port for datagrams and streams. If any will do, the system chooses one that is free for
 * streams; it is held while the owner tries to get the same for datagrams, and until a listener (stream.h)
 * goes on with it. So nobody can take it between the two.
 */
#ifndef MNEMON_NET_HELD_PORT_H
#define MNEMON_NET_HELD_PORT_H

#include "base/address.h"
#include "base/err.h"

enum { HELD_PORT_NONE = -1 };

/* Bind any free port of the address, which then names it. *ret_socket: for held_port_done(). */
enum err held_port_take(struct address *address, int *ret_socket, struct err_detail *detail) MUST_CHECK;

/* Nothing happens if there is none. *socket is HELD_PORT_NONE then. */
void held_port_done(int *socket);

#endif
