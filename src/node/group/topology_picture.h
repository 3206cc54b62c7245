/*
 * topology_picture - a topology for people: as DOT (Graphviz) and as a drawing in SVG, with costs.
 *
 * In the drawing members stand on a circle, in the order of a walk along the cheapest edges, so that most
 * edges are short; the thicker an edge, the cheaper. Members and edges say what they are when pointed at;
 * costs are also written beside the edges where these are few. Colours are those of the text around it.
 *
 * Not part of what must be pure: buf allocates, up to the maximum of its owner.
 */
#ifndef MNEMON_NODE_GROUP_TOPOLOGY_PICTURE_H
#define MNEMON_NODE_GROUP_TOPOLOGY_PICTURE_H

#include "base/buf.h"
#include "protocol/group/topology.h"

/* Members have the names of their addresses. At least one member. Returns out->err. */
enum err topology_put_dot(const struct topology *topology, struct buf *out);
enum err topology_put_svg(const struct topology *topology, struct buf *out);

#endif
