#include "web/url/ipv4.h"

#include "base/hex.h"

enum { PARTS_MAX = 4 };

/* Larger than any address; what does not fit stops counting here instead of overflowing. */
#define NUMBER_MAX (UINT64_C(1) << 33)

/* One number in its own notation. Empty text is not a number; "0x" is zero. */
static bool parse_number(struct bytes text, uint64_t *ret_number) {
    if (text.size == 0) {
        return false;
    }
    unsigned base = 10;
    if (text.size >= 2 && text.data[0] == '0') {
        bool is_hex = byte_lower(text.data[1]) == 'x';
        base = is_hex ? 16 : 8;
        text = bytes_skip(text, is_hex ? 2 : 1);
    }
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0 || (unsigned)digit >= base) {
            return false;
        }
        number = number * base + (unsigned)digit;
        number = number < NUMBER_MAX ? number : NUMBER_MAX;
    }
    *ret_number = number;
    return true;
}

static bool all_digits(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        if (!byte_is_digit(text.data[i])) {
            return false;
        }
    }
    return text.size > 0;
}

bool ipv4_ends_in_number(struct bytes domain) {
    if (domain.size > 0 && domain.data[domain.size - 1] == '.') {
        domain.size--;
    }
    size_t start = domain.size;
    while (start > 0 && domain.data[start - 1] != '.') {
        start--;
    }
    struct bytes last = bytes_skip(domain, start);
    if (last.size == 0 || !byte_is_digit(last.data[0])) {
        return false;
    }
    uint64_t number;
    return all_digits(last) || parse_number(last, &number); /* 09 is digits, though not a number */
}

enum err ipv4_parse(struct bytes text, uint32_t *ret_address, const char **ret_reason) {
    if (text.size > 0 && text.data[text.size - 1] == '.') {
        text.size--;
    }
    uint64_t numbers[PARTS_MAX];
    size_t count = 0;
    struct bytes part;
    while (bytes_split(&text, '.', &part)) {
        if (count == PARTS_MAX) {
            *ret_reason = "the IPv4 address has more than four numbers";
            return ERR_INVALID;
        }
        if (!parse_number(part, &numbers[count])) {
            *ret_reason = "the IPv4 address has a part that is not a number";
            return ERR_INVALID;
        }
        count++;
    }
    *ret_reason = "a number of the IPv4 address is too large";
    uint64_t address = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        if (numbers[i] > 255) {
            return ERR_INVALID;
        }
        address |= numbers[i] << (8 * (3 - i));
    }
    size_t bytes_left = PARTS_MAX + 1 - count;
    if (count == 0 || numbers[count - 1] >= UINT64_C(1) << (8 * bytes_left)) {
        return ERR_INVALID;
    }
    *ret_address = (uint32_t)(address | numbers[count - 1]);
    return ERR_OK;
}

enum err ipv4_put(struct buf *out, uint32_t address) {
    for (unsigned shift = 24; shift > 0; shift -= 8) {
        buf_put_u64(out, address >> shift & 0xff);
        buf_put_byte(out, '.');
    }
    return buf_put_u64(out, address & 0xff);
}
