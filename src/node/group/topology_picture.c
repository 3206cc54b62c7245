#include "node/group/topology_picture.h"

enum {
    PICTURE_SIZE = 800,
    RADIUS = 270,
    LABEL_GAP = 12,  /* between a member and its name */
    LABELS_MAX = 60, /* edges; beyond, costs beside them hide the drawing */
    NAMES_MAX = 64,  /* members; beyond, their addresses overlap */
};

/* ---- text ---- */

static void put_cost(struct buf *out, uint32_t cost_us) {
    if (cost_us == COSTS_UNKNOWN_US) {
        buf_put_string(out, "unknown");
    } else if (cost_us < 1000000) {
        buf_put_format(out, "%u.%u ms", cost_us / 1000, cost_us / 100 % 10);
    } else {
        buf_put_format(out, "%u.%u s", cost_us / 1000000, cost_us / 100000 % 10);
    }
}

static void put_name(struct buf *out, const struct topology *topology, uint32_t index) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    buf_put_string(out, address_format(&topology->members[index].address, address));
}

/* ---- DOT ---- */

enum err topology_put_dot(const struct topology *topology, struct buf *out) {
    buf_put_format(out, "graph \"topology %llu\" {\n", (unsigned long long)topology->sequence);
    for (uint32_t i = 0; i < topology->members_count; i++) {
        buf_put_format(out, "  m%u [label=\"", i);
        put_name(out, topology, i);
        buf_put_string(out, i == 0 ? "\", shape=doublecircle];\n" : "\"];\n");
    }
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        const struct topology_edge *edge = &topology->edges[i];
        buf_put_format(out, "  m%u -- m%u [label=\"", edge->a, edge->b);
        put_cost(out, edge->cost_us);
        buf_put_string(out, edge->cost_us == COSTS_UNKNOWN_US ? "\", style=dashed];\n" : "\"];\n");
    }
    buf_put_string(out, "}\n");
    return out->err;
}

/* ---- places on the circle ---- */

struct place {
    double x;
    double y;
    bool is_taken;
};

/* The cheapest edge from here to somebody without a place; edges_count: none. */
static uint32_t cheapest_edge(const struct topology *topology, const struct place *places, uint32_t from) {
    uint32_t best = topology->edges_count;
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        const struct topology_edge *edge = &topology->edges[i];
        uint32_t other = edge->a == from ? edge->b : edge->a;
        if ((edge->a == from || edge->b == from) && !places[other].is_taken &&
            (best == topology->edges_count || edge->cost_us < topology->edges[best].cost_us)) {
            best = i;
        }
    }
    return best;
}

/* Members in the order of a walk in depth along the cheapest edges; the master first. */
static void order_members(const struct topology *topology, struct place *places, uint16_t *order) {
    uint16_t way[GROUP_MEMBERS_MAX];
    uint32_t way_count = 0;
    uint32_t count = 0;
    for (uint32_t start = 0; start < topology->members_count; start++) {
        if (places[start].is_taken) {
            continue;
        }
        places[start].is_taken = true;
        order[count++] = (uint16_t)start;
        way[way_count++] = (uint16_t)start;
        while (way_count > 0) {
            uint32_t here = way[way_count - 1];
            uint32_t edge = cheapest_edge(topology, places, here);
            if (edge == topology->edges_count) {
                way_count--;
                continue;
            }
            uint32_t other =
                topology->edges[edge].a == here ? topology->edges[edge].b : topology->edges[edge].a;
            places[other].is_taken = true;
            order[count++] = (uint16_t)other;
            way[way_count++] = (uint16_t)other;
        }
    }
}

/* Each is the one before, turned by a step. A step is at most half a turn, for which the series are good to
 * ten digits. */
static void place_members(const struct topology *topology, struct place places[GROUP_MEMBERS_MAX]) {
    uint16_t order[GROUP_MEMBERS_MAX];
    order_members(topology, places, order);
    double step = topology->members_count == 1 ? 0 : 2 * 3.14159265358979324 / topology->members_count;
    double sine = 0;
    double cosine = 0;
    double term = 1;
    for (unsigned i = 0; i < 30; i += 2) {
        double sign = i % 4 == 0 ? 1 : -1;
        cosine += sign * term;
        sine += sign * term * step / (i + 1);
        term = term * step / (i + 1) * step / (i + 2);
    }
    double x = 0;
    double y = -RADIUS; /* the master is on top */
    for (uint32_t i = 0; i < topology->members_count; i++) {
        places[order[i]].x = x;
        places[order[i]].y = y;
        double turned = x * cosine - y * sine;
        y = x * sine + y * cosine;
        x = turned;
    }
}

/* ---- SVG ---- */

/* The cheapest 4, the dearest 1; a decade of costs is one step. */
static double width_of(uint32_t cost_us) {
    double width = 4;
    for (uint32_t cost = cost_us; cost >= 10000 && width > 1; cost /= 10) {
        width -= 0.75;
    }
    return cost_us == COSTS_UNKNOWN_US ? 1 : width;
}

static void put_edge(const struct topology *topology, const struct place *places,
                     const struct topology_edge *edge, struct buf *out) {
    const struct place *a = &places[edge->a];
    const struct place *b = &places[edge->b];
    buf_put_format(
        out,
        "<g><line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.2f\" opacity=\".5\"%s>",
        a->x, a->y, b->x, b->y, width_of(edge->cost_us),
        edge->cost_us == COSTS_UNKNOWN_US ? " stroke-dasharray=\"4 4\"" : "");
    buf_put_string(out, "<title>");
    put_name(out, topology, edge->a);
    buf_put_string(out, " – ");
    put_name(out, topology, edge->b);
    buf_put_string(out, ": ");
    put_cost(out, edge->cost_us);
    buf_put_string(out, "</title></line>");
    if (topology->edges_count <= LABELS_MAX) {
        buf_put_format(out,
                       "<text class=\"cost\" stroke=\"none\" font-size=\"9\" text-anchor=\"middle\" "
                       "opacity=\".7\" x=\"%.1f\" y=\"%.1f\">",
                       (a->x + b->x) / 2, (a->y + b->y) / 2);
        put_cost(out, edge->cost_us);
        buf_put_string(out, "</text>");
    }
    buf_put_string(out, "</g>\n");
}

static void picture_put_member(const struct topology *topology, const struct place *place, uint32_t index,
                               struct buf *out) {
    buf_put_format(out, "<g><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"%s><title>", place->x, place->y,
                   topology->members_count <= NAMES_MAX ? 6 : 3,
                   index == 0 ? " class=\"master\" stroke-width=\"6\" stroke-opacity=\".4\"" : "");
    put_name(out, topology, index);
    buf_put_string(out, "</title></circle>");
    if (topology->members_count <= NAMES_MAX) {
        double scale = (double)(RADIUS + LABEL_GAP) / RADIUS;
        buf_put_format(out, "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                       place->x * scale, place->y * scale + 4,
                       place->x > 1    ? "start"
                       : place->x < -1 ? "end"
                                       : "middle");
        put_name(out, topology, index);
        buf_put_string(out, "</text>");
    }
    buf_put_string(out, "</g>\n");
}

enum err topology_put_svg(const struct topology *topology, struct buf *out) {
    struct place places[GROUP_MEMBERS_MAX] = {0};
    place_members(topology, places);
    buf_put_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"%d %d %d %d\" font-family=\"sans-serif\""
        " font-size=\"12\" stroke=\"currentColor\" fill=\"currentColor\">\n", /* no style: pages forbid it */
        -PICTURE_SIZE / 2, -PICTURE_SIZE / 2, PICTURE_SIZE, PICTURE_SIZE);
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        put_edge(topology, places, &topology->edges[i], out);
    }
    for (uint32_t i = 0; i < topology->members_count; i++) {
        picture_put_member(topology, &places[i], i, out);
    }
    buf_put_string(out, "</svg>\n");
    return out->err;
}
