#include "store/index/index_url.h"

enum form {
    FORM_WEB = 1,    /* http or https; else the SURT is the URL */
    FORM_HTTPS = 2,  /* with FORM_WEB */
    FORM_WWW = 4,    /* with FORM_WEB: "www." stands before the host, which the SURT drops */
    FORM_DIFFERS = 8 /* front, back and middle follow */
};

static uint8_t index_url_form_of(struct bytes url) {
    uint8_t form = FORM_WEB;
    if (bytes_starts_with(url, BYTES("https://"))) {
        form |= FORM_HTTPS;
    } else if (!bytes_starts_with(url, BYTES("http://"))) {
        return 0;
    }
    struct bytes host = bytes_skip(url, form & FORM_HTTPS ? 8 : 7);
    return bytes_starts_with(host, BYTES("www.")) ? form | FORM_WWW : form;
}

/* "org,example" -> "example.org" */
static void index_url_put_host(struct buf *out, struct bytes reversed) {
    for (size_t end = reversed.size;;) {
        size_t start = end;
        while (start > 0 && reversed.data[start - 1] != ',') {
            start--;
        }
        buf_put(out, bytes_slice(reversed, start, end));
        if (start == 0) {
            return;
        }
        buf_put_byte(out, '.');
        end = start - 1;
    }
}

/* Up to the port; an IPv6 address has colons of its own. */
static size_t index_url_host_size(struct bytes authority) {
    size_t bracket = bytes_find_byte(authority, ']');
    size_t from = bracket < authority.size ? bracket : 0;
    return from + bytes_find_byte(bytes_skip(authority, from), ':');
}

static enum err index_url_imply(struct buf *out, struct bytes surt, uint8_t form) {
    buf_clear(out);
    if (!(form & FORM_WEB)) {
        return buf_put(out, surt);
    }
    size_t end = bytes_find_byte(surt, ')');
    struct bytes authority = bytes_slice(surt, 0, end);
    size_t port = index_url_host_size(authority);
    buf_put_string(out, form & FORM_HTTPS ? "https://" : "http://");
    buf_put_string(out, form & FORM_WWW ? "www." : "");
    index_url_put_host(out, bytes_slice(authority, 0, port));
    buf_put(out, bytes_skip(authority, port));
    return buf_put(out, bytes_skip(surt, end < surt.size ? end + 1 : end));
}

static size_t index_url_common_back(struct bytes a, struct bytes b) {
    size_t size = 0;
    while (size < a.size && size < b.size && a.data[a.size - 1 - size] == b.data[b.size - 1 - size]) {
        size++;
    }
    return size;
}

enum err index_url_write(struct wire_writer *writer, struct bytes surt, struct bytes url, struct buf *work) {
    uint8_t form = index_url_form_of(url);
    enum err err = index_url_imply(work, surt, form);
    if (err != ERR_OK) {
        return err;
    }
    struct bytes implied = buf_bytes(work);
    if (bytes_equal(implied, url)) {
        wire_write_u8(writer, form);
        return ERR_OK;
    }
    size_t front = bytes_common_size(implied, url);
    size_t back = index_url_common_back(bytes_skip(implied, front), bytes_skip(url, front));
    wire_write_u8(writer, form | FORM_DIFFERS);
    wire_write_varint(writer, front);
    wire_write_varint(writer, back);
    wire_write_string(writer, bytes_slice(url, front, url.size - back));
    return ERR_OK;
}

/* Replace what lies between the first `front` and the last `back` bytes. */
static enum err index_url_splice(struct buf *url, size_t front, size_t back, struct bytes middle) {
    enum err err = buf_reserve(url, middle.size);
    if (err != ERR_OK) {
        return err;
    }
    if (back > 0) {
        memmove(url->data + front + middle.size, url->data + url->size - back, back);
    }
    if (middle.size > 0) {
        memcpy(url->data + front, middle.data, middle.size);
    }
    url->size = front + middle.size + back;
    return ERR_OK;
}

static enum err index_url_read_difference(struct wire_reader *reader, struct buf *url) {
    size_t front = (size_t)wire_read_varint(reader, url->size);
    size_t back = (size_t)wire_read_varint(reader, url->size - front);
    struct bytes middle = wire_read_string(reader, INDEX_URL_SIZE_MAX);
    return reader->err == ERR_OK ? index_url_splice(url, front, back, middle) : ERR_OK;
}

enum err index_url_read(struct wire_reader *reader, struct bytes surt, struct buf *url) {
    uint8_t form = wire_read_u8_max(reader, FORM_WEB | FORM_HTTPS | FORM_WWW | FORM_DIFFERS);
    enum err err = index_url_imply(url, surt, form);
    if (err == ERR_OK && form & FORM_DIFFERS) {
        err = index_url_read_difference(reader, url);
    }
    if (err == ERR_OK && url->size > INDEX_URL_SIZE_MAX) {
        wire_read_fail(reader, ERR_LIMIT, "the URL is too long");
    }
    return err;
}
