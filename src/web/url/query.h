/*
 * query - the arguments of a query in order, so that "b=2&a=1" and "a=1&b=2" are one.
 */
#ifndef MNEMON_WEB_URL_QUERY_H
#define MNEMON_WEB_URL_QUERY_H

#include "base/buf.h"

/*
 * Sort the arguments of the query that is at the end of the buffer, from byte `from` on: by name, then by
 * value, "a" before "a=". Nothing is lost: repeated and empty arguments stay.
 */
enum err query_sort(struct buf *buf, size_t from);

#endif
