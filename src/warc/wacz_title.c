#include "warc/wacz_title.h"

#include <stdlib.h>

#include "base/hex.h"
#include "base/utf8.h"

enum { CODE_POINT_MAX = 0x10ffff, REFERENCE_SIZE_MAX = 10, LATIN_FROM = 0x80, LATIN_TO = 0xa0 };

/* windows-1252 between 0x80 and 0x9f; the rest of it is Latin-1. */
static const uint16_t latin[LATIN_TO - LATIN_FROM] = {
    0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178,
};

static bool title_is_space(uint32_t code_point) {
    return code_point <= ' ' || code_point == 0xa0;
}

/* Does a tag of that name begin here? `lower` is "<name" or "</name". */
static bool is_tag(struct bytes text, struct bytes lower) {
    if (!bytes_starts_with_ignore_case(text, lower) || text.size == lower.size) {
        return false;
    }
    uint8_t next = text.data[lower.size];
    return next <= ' ' || next == '>' || next == '/';
}

/* What follows the next occurrence of a tag; nothing if there is none. */
static struct bytes behind(struct bytes text, struct bytes lower) {
    while (text.size > 0 && !is_tag(text, lower)) {
        text = bytes_skip(text, 1);
        text = bytes_skip(text, bytes_find_byte(text, '<'));
    }
    size_t end = bytes_find_byte(text, '>');
    return end < text.size ? bytes_skip(text, end + 1) : bytes_of(NULL, 0);
}

/* The text between <title> and </title>. */
static struct bytes find_title(struct bytes html) {
    static const char *const passed[][2] = {
        {"<script", "</script"}, {"<style", "</style"}, {"<svg", "</svg"}, {"<template", "</template"}};
    struct bytes rest = html;
    while ((rest = bytes_skip(rest, bytes_find_byte(rest, '<'))).size > 0) {
        if (bytes_starts_with_ignore_case(rest, BYTES("<!--"))) {
            size_t end = bytes_find(rest, BYTES("-->"));
            rest = bytes_skip(rest, end < rest.size ? end + 3 : rest.size);
            continue;
        }
        if (is_tag(rest, BYTES("<title"))) {
            rest = behind(rest, BYTES("<title"));
            struct bytes title = rest;
            while (rest.size > 0 && !is_tag(rest, BYTES("</title"))) {
                rest = bytes_skip(rest, 1);
                rest = bytes_skip(rest, bytes_find_byte(rest, '<'));
            }
            return bytes_slice(title, 0, rest.size > 0 ? title.size - rest.size : 0);
        }
        const char *end_tag = NULL;
        for (size_t i = 0; i < sizeof passed / sizeof *passed && end_tag == NULL; i++) {
            end_tag = is_tag(rest, bytes_of_string(passed[i][0])) ? passed[i][1] : NULL;
        }
        rest = end_tag != NULL ? behind(rest, bytes_of_string(end_tag)) : bytes_skip(rest, 1);
    }
    return bytes_of(NULL, 0);
}

/* "charset=…" of a Content-Type, or of a <meta> in either of its forms. */
static bool names_other_charset(struct bytes text) {
    static const char *const latins[] = {"windows-1252", "iso-8859-1", "latin1", "us-ascii", "ascii"};
    size_t at = 0;
    while (at + 8 <= text.size && !bytes_starts_with_ignore_case(bytes_skip(text, at), BYTES("charset="))) {
        at++;
    }
    if (at + 8 > text.size) {
        return false;
    }
    struct bytes name = bytes_skip(text, at + 8);
    if (name.size > 0 && (name.data[0] == '"' || name.data[0] == '\'')) {
        name = bytes_skip(name, 1);
    }
    for (size_t i = 0; i < sizeof latins / sizeof *latins; i++) {
        if (bytes_starts_with_ignore_case(name, bytes_of_string(latins[i]))) {
            return false;
        }
    }
    /* Many label what is in fact windows-1252 as UTF-8. */
    return !bytes_starts_with_ignore_case(name, BYTES("utf-8")) &&
           !bytes_starts_with_ignore_case(name, BYTES("utf8"));
}

/* "&#38;" and friends. 0 if it is none, and then it is text. */
static uint32_t read_reference(struct bytes text, size_t *ret_length) {
    static const struct {
        const char *name;
        uint32_t code_point;
    } known[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xa0}};
    size_t end = bytes_find_byte(text, ';');
    if (end == text.size || end > REFERENCE_SIZE_MAX) {
        return 0;
    }
    struct bytes body = bytes_slice(text, 1, end);
    *ret_length = end + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (bytes_equal(body, bytes_of_string(known[i].name))) {
            return known[i].code_point;
        }
    }
    if (body.size < 2 || body.data[0] != '#') {
        return 0;
    }
    bool is_hex = byte_lower(body.data[1]) == 'x';
    uint32_t base = is_hex ? 16 : 10;
    uint32_t value = 0;
    for (size_t i = is_hex ? 2 : 1; i < body.size; i++) {
        int digit = hex_digit(body.data[i]);
        if (digit < 0 || (uint32_t)digit >= base || value > CODE_POINT_MAX) {
            return 0;
        }
        value = value * base + (uint32_t)digit;
    }
    bool is_usable = value <= CODE_POINT_MAX && (value < 0xd800 || value > 0xdfff);
    return is_usable ? value : 0;
}

static uint32_t read_code_point(struct bytes text, bool is_utf8, size_t *ret_length) {
    uint32_t code_point = text.data[0] == '&' ? read_reference(text, ret_length) : 0;
    if (code_point != 0) {
        return code_point;
    }
    if (is_utf8) {
        return utf8_decode(text, ret_length);
    }
    *ret_length = 1;
    uint8_t byte = text.data[0];
    return byte >= LATIN_FROM && byte < LATIN_TO ? latin[byte - LATIN_FROM] : byte;
}

enum err wacz_title_put(struct buf *out, struct bytes html, struct bytes content_type) {
    size_t size = html.size < WACZ_TITLE_HTML_SIZE ? html.size : WACZ_TITLE_HTML_SIZE;
    struct bytes title = find_title(bytes_slice(html, 0, size));
    bool is_utf8 = utf8_is_valid(title);
    if (!is_utf8 && (names_other_charset(content_type) || names_other_charset(bytes_slice(html, 0, size)))) {
        return ERR_OK;
    }
    size_t start = out->size;
    bool has_gap = false;
    enum err err = ERR_OK;
    while (title.size > 0 && err == ERR_OK) {
        uint8_t bytes[UTF8_LENGTH_MAX];
        size_t length = 1;
        uint32_t code_point = read_code_point(title, is_utf8, &length);
        title = bytes_skip(title, length);
        if (title_is_space(code_point)) {
            has_gap = out->size > start;
            continue;
        }
        size_t encoded = utf8_encode(code_point, bytes);
        if (out->size - start + encoded + 1 > WACZ_TITLE_SIZE_MAX) {
            break;
        }
        err = has_gap ? buf_put_byte(out, ' ') : ERR_OK;
        err = err == ERR_OK ? buf_put(out, bytes_of(bytes, encoded)) : err;
        has_gap = false;
    }
    return err;
}
