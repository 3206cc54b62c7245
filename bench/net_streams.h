/* net_streams - streams in TLS against streams of programs up to 0.2, in turns: see net.c. */
#ifndef NET_STREAMS_H
#define NET_STREAMS_H

#include "net/stream.h"

void net_streams_compare(const struct identity *a, const struct identity *b);

#endif
