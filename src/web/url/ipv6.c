#include "web/url/ipv6.h"

#include "base/hex.h"

enum { NO_GAP = -1, IPV4_PIECES = 2 };

/* "1.2.3.4", four decimal numbers without leading zeros, as the last two pieces. */
static bool parse_ipv4_tail(struct bytes text, uint16_t *pieces) {
    uint32_t address = 0;
    unsigned count = 0;
    struct bytes part;
    while (bytes_split(&text, '.', &part)) {
        uint64_t number;
        if (count == 4 || part.size > 3 || !bytes_to_u64(part, 255, &number)) {
            return false;
        }
        if (part.size > 1 && part.data[0] == '0') {
            return false;
        }
        address = address << 8 | (uint32_t)number;
        count++;
    }
    pieces[0] = (uint16_t)(address >> 16);
    pieces[1] = (uint16_t)address;
    return count == 4;
}

/* Up to four hex digits at the start of the text; how many there were. */
static size_t ipv6_read_piece(struct bytes text, uint16_t *ret_piece) {
    unsigned piece = 0;
    size_t length = 0;
    while (length < 4 && length < text.size && hex_digit(text.data[length]) >= 0) {
        piece = piece << 4 | (unsigned)hex_digit(text.data[length]);
        length++;
    }
    *ret_piece = (uint16_t)piece;
    return length;
}

/* Move the pieces after the gap to the end and fill the gap with zeros. */
static void spread(uint16_t *pieces, int count, int gap) {
    int moved = count - gap;
    for (int i = 1; i <= moved; i++) {
        pieces[IPV6_PIECES - i] = pieces[count - i];
    }
    for (int i = gap; i < IPV6_PIECES - moved; i++) {
        pieces[i] = 0;
    }
}

/* The pieces in the order of the text; *ret_gap is the index of the one before which "::" stood. */
static enum err parse_pieces(struct bytes text, uint16_t pieces[IPV6_PIECES], int *ret_count, int *ret_gap,
                             const char **ret_reason) {
    int count = 0;
    while (text.size > 0) {
        if (count == IPV6_PIECES) {
            *ret_reason = "the IPv6 address has more than eight pieces";
            return ERR_INVALID;
        }
        size_t length = ipv6_read_piece(text, &pieces[count]);
        if (length < text.size && text.data[length] == '.') {
            *ret_count = count + IPV4_PIECES;
            bool fits = *ret_count <= IPV6_PIECES;
            return fits && parse_ipv4_tail(text, &pieces[count]) ? ERR_OK : ERR_INVALID;
        }
        text = bytes_skip(text, length);
        count++;
        if (length == 0 || (text.size > 0 && (text.data[0] != ':' || text.size == 1))) {
            return ERR_INVALID;
        }
        text = bytes_skip(text, text.size > 0 ? 1 : 0);
        if (text.size > 0 && text.data[0] == ':') {
            if (*ret_gap != NO_GAP) {
                *ret_reason = "the IPv6 address has two \"::\"";
                return ERR_INVALID;
            }
            *ret_gap = count;
            text = bytes_skip(text, 1);
        }
    }
    *ret_count = count;
    return ERR_OK;
}

enum err ipv6_parse(struct bytes text, uint16_t ret_pieces[IPV6_PIECES], const char **ret_reason) {
    uint16_t pieces[IPV6_PIECES];
    bool starts_with_gap = bytes_starts_with(text, BYTES("::"));
    int gap = starts_with_gap ? 0 : NO_GAP;
    int count;
    *ret_reason = "the IPv6 address is malformed";
    enum err err = parse_pieces(bytes_skip(text, starts_with_gap ? 2 : 0), pieces, &count, &gap, ret_reason);
    if (err != ERR_OK) {
        return err;
    }
    if (gap == NO_GAP && count != IPV6_PIECES) {
        *ret_reason = "the IPv6 address has less than eight pieces";
        return ERR_INVALID;
    }
    if (gap != NO_GAP && count == IPV6_PIECES) {
        return ERR_INVALID; /* the gap must stand for something */
    }
    if (gap != NO_GAP) {
        spread(pieces, count, gap);
    }
    memcpy(ret_pieces, pieces, sizeof pieces);
    return ERR_OK;
}

/* The first longest run of two or more zero pieces: where it starts, and *ret_length 0 if there is none. */
static int longest_zeros(const uint16_t *pieces, int *ret_length) {
    int best = 0;
    *ret_length = 0;
    for (int i = 0; i < IPV6_PIECES; i++) {
        int length = 0;
        while (i + length < IPV6_PIECES && pieces[i + length] == 0) {
            length++;
        }
        if (length > 1 && length > *ret_length) {
            best = i;
            *ret_length = length;
        }
        i += length;
    }
    return best;
}

enum err ipv6_put(struct buf *out, const uint16_t pieces[IPV6_PIECES]) {
    int zeros_length;
    int zeros = longest_zeros(pieces, &zeros_length);
    int i = 0;
    while (i < IPV6_PIECES) {
        if (zeros_length > 0 && i == zeros) {
            buf_put_string(out, "::");
            i += zeros_length;
            continue;
        }
        buf_put_format(out, "%x", pieces[i]);
        i++;
        if (i < IPV6_PIECES && !(zeros_length > 0 && i == zeros)) {
            buf_put_byte(out, ':');
        }
    }
    return out->err;
}
