#include "node/group/topology_picture.h"

#include "base/utf8.h"

enum {
    PICTURE_SIZE = 800,
    RADIUS = 270,
    LABEL_GAP = 12,       /* between a member and its name */
    LABELS_MAX = 60,      /* edges; beyond, costs beside them hide the drawing */
    NAMES_MAX = 64,       /* members; beyond, their names overlap */
    NAME_LENGTH_MAX = 40, /* characters */
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

typedef void character_writer(struct buf *out, uint32_t code_point);

static void put_plain(struct buf *out, uint32_t code_point) {
    uint8_t bytes[UTF8_LENGTH_MAX];
    buf_put(out, bytes_of(bytes, utf8_encode(code_point, bytes)));
}

/* Inside of double quotes. */
static void put_dot_character(struct buf *out, uint32_t code_point) {
    if (code_point == '"' || code_point == '\\') {
        buf_put_byte(out, '\\');
    }
    put_plain(out, code_point);
}

static void put_xml_character(struct buf *out, uint32_t code_point) {
    switch (code_point) {
    case '&':
        buf_put_string(out, "&amp;");
        break;
    case '<':
        buf_put_string(out, "&lt;");
        break;
    case '>':
        buf_put_string(out, "&gt;");
        break;
    case '"':
        buf_put_string(out, "&quot;");
        break;
    default:
        put_plain(out, code_point);
    }
}

/* No text of XML may hold these, and nobody should see the others. */
static bool is_printable(uint32_t code_point) {
    bool is_control = code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
    bool is_turn = (code_point >= 0x202a && code_point <= 0x202e) || /* of the direction of writing */
                   (code_point >= 0x2066 && code_point <= 0x2069);
    return !is_control && !is_turn && code_point != 0xfffe && code_point != 0xffff;
}

static void picture_put_text(struct buf *out, struct bytes text, character_writer *put) {
    size_t length;
    for (unsigned count = 0; text.size > 0 && count < NAME_LENGTH_MAX; count++) {
        uint32_t code_point = utf8_decode(text, &length);
        put(out, is_printable(code_point) ? code_point : UTF8_REPLACEMENT);
        text = bytes_skip(text, length);
    }
    if (text.size > 0) {
        put(out, 0x2026); /* an ellipsis */
    }
}

static void put_name(struct buf *out, const struct topology *topology, const struct bytes *names,
                     uint32_t index, character_writer *put) {
    char address[ADDRESS_TEXT_SIZE_MAX];
    picture_put_text(out,
                     names != NULL
                         ? names[index]
                         : bytes_of_string(address_format(&topology->members[index].address, address)),
                     put);
}

/* ---- DOT ---- */

enum err topology_put_dot(const struct topology *topology, const struct bytes *names, struct buf *out) {
    buf_put_format(out, "graph \"topology %llu\" {\n", (unsigned long long)topology->sequence);
    for (uint32_t i = 0; i < topology->members_count; i++) {
        buf_put_format(out, "  m%u [label=\"", i);
        put_name(out, topology, names, i, put_dot_character);
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

static void put_edge(const struct topology *topology, const struct bytes *names, const struct place *places,
                     const struct topology_edge *edge, struct buf *out) {
    const struct place *a = &places[edge->a];
    const struct place *b = &places[edge->b];
    buf_put_format(
        out,
        "<g><line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.2f\" opacity=\".5\"%s>",
        a->x, a->y, b->x, b->y, width_of(edge->cost_us),
        edge->cost_us == COSTS_UNKNOWN_US ? " stroke-dasharray=\"4 4\"" : "");
    buf_put_string(out, "<title>");
    put_name(out, topology, names, edge->a, put_xml_character);
    buf_put_string(out, " – ");
    put_name(out, topology, names, edge->b, put_xml_character);
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

static void picture_put_member(const struct topology *topology, const struct bytes *names,
                               const struct place *place, uint32_t index, struct buf *out) {
    buf_put_format(out, "<g><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"%s><title>", place->x, place->y,
                   topology->members_count <= NAMES_MAX ? 6 : 3,
                   index == 0 ? " class=\"master\" stroke-width=\"6\" stroke-opacity=\".4\"" : "");
    put_name(out, topology, names, index, put_xml_character);
    buf_put_string(out, "</title></circle>");
    if (topology->members_count <= NAMES_MAX) {
        double scale = (double)(RADIUS + LABEL_GAP) / RADIUS;
        buf_put_format(out, "<text stroke=\"none\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                       place->x * scale, place->y * scale + 4,
                       place->x > 1    ? "start"
                       : place->x < -1 ? "end"
                                       : "middle");
        put_name(out, topology, names, index, put_xml_character);
        buf_put_string(out, "</text>");
    }
    buf_put_string(out, "</g>\n");
}

enum err topology_put_svg(const struct topology *topology, const struct bytes *names, struct buf *out) {
    struct place places[GROUP_MEMBERS_MAX] = {0};
    place_members(topology, places);
    buf_put_format(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"%d %d %d %d\" font-family=\"sans-serif\""
        " font-size=\"12\" stroke=\"currentColor\" fill=\"currentColor\">\n", /* no style: pages forbid it */
        -PICTURE_SIZE / 2, -PICTURE_SIZE / 2, PICTURE_SIZE, PICTURE_SIZE);
    for (uint32_t i = 0; i < topology->edges_count; i++) {
        put_edge(topology, names, places, &topology->edges[i], out);
    }
    for (uint32_t i = 0; i < topology->members_count; i++) {
        picture_put_member(topology, names, &places[i], i, out);
    }
    buf_put_string(out, "</svg>\n");
    return out->err;
}
