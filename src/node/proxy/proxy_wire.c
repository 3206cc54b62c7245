#include "node/proxy/proxy_wire.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/socket_address.h"

enum {
    OUT_SIZE_MAX = 1 << 20, /* with what TLS adds, and heads */
    RAW_SIZE = 16 << 10,
};

static void flush(struct proxy_wire *wire);
static void read_on(struct proxy_wire *wire);

static void wire_fail(struct proxy_wire *wire, enum err err, const char *reason) {
    if (wire->err == ERR_OK) {
        wire->err = err;
        snprintf(wire->reason, sizeof wire->reason, "%s", reason);
    }
    wire->is_open = false;
}

static void wake(struct proxy_wire *wire) {
    if (!wire->is_closed) {
        wire->wake(wire->context);
    }
}

/* ---- TLS, between the socket and the buffers ---- */

static void fail_tls(struct proxy_wire *wire) {
    char text[160];
    long verdict = SSL_get_verify_result(wire->tls);
    unsigned long code = ERR_peek_last_error();
    if (verdict != X509_V_OK) {
        wire->is_untrusted = true;
        snprintf(text, sizeof text, "its certificate: %.120s", X509_verify_cert_error_string(verdict));
    } else {
        const char *reason = ERR_reason_error_string(code);
        snprintf(text, sizeof text, "TLS: %.120s", reason != NULL ? reason : "it broke off");
    }
    ERR_clear_error();
    wire_fail(wire, ERR_REFUSED, text);
}

/* What TLS wants to send goes to the buffer of the socket. */
static void wire_collect(struct proxy_wire *wire) {
    BIO *from = SSL_get_wbio(wire->tls);
    size_t size = BIO_ctrl_pending(from);
    if (size == 0) {
        return;
    }
    if (buf_reserve(&wire->out, size) != ERR_OK) {
        wire_fail(wire, wire->out.err, err_text(wire->out.err));
        return;
    }
    int got = BIO_read(from, wire->out.data + wire->out.size, (int)size);
    wire->out.size += got > 0 ? (size_t)got : 0;
    flush(wire);
}

static void shake_hands(struct proxy_wire *wire) {
    ERR_clear_error();
    int result = SSL_do_handshake(wire->tls);
    int problem = result == 1 ? SSL_ERROR_NONE : SSL_get_error(wire->tls, result);
    wire_collect(wire); /* an alert, too */
    if (result == 1) {
        wire->is_open = wire->err == ERR_OK;
    } else if (problem != SSL_ERROR_WANT_READ && problem != SSL_ERROR_WANT_WRITE) {
        fail_tls(wire);
    }
}

/* As much as there is room for. */
static void decrypt(struct proxy_wire *wire) {
    if (wire->err == ERR_OK && !SSL_is_init_finished(wire->tls)) {
        shake_hands(wire);
    }
    while (wire->is_open && wire->in.size < PROXY_WIRE_IN_SIZE && !wire->is_ended) {
        size_t room = PROXY_WIRE_IN_SIZE - wire->in.size;
        if (buf_reserve(&wire->in, room) != ERR_OK) {
            wire_fail(wire, ERR_MEMORY, err_text(ERR_MEMORY));
            return;
        }
        ERR_clear_error();
        int got = SSL_read(wire->tls, wire->in.data + wire->in.size, (int)room);
        if (got > 0) {
            wire->in.size += (size_t)got;
            continue;
        }
        int problem = SSL_get_error(wire->tls, got);
        if (problem == SSL_ERROR_ZERO_RETURN) {
            wire->is_ended = true;
        } else if (problem != SSL_ERROR_WANT_READ) {
            fail_tls(wire);
        }
        break;
    }
    if (wire->tls != NULL && wire->err == ERR_OK) {
        wire_collect(wire);
    }
}

/* ---- the socket ---- */

static void wire_on_closed(uv_handle_t *handle) {
    struct proxy_wire *wire = handle->data;
    SSL_free(wire->tls);
    buf_done(&wire->in);
    buf_done(&wire->raw);
    buf_done(&wire->out);
    buf_done(&wire->sending);
    free(wire);
}

static void on_shutdown(uv_shutdown_t *request, int status) {
    (void)request;
    (void)status; /* the other side is gone: then nothing is lost */
}

static void shut(struct proxy_wire *wire) {
    if (wire->is_finishing && !wire->is_shut && wire->is_connected && wire->err == ERR_OK &&
        proxy_wire_is_drained(wire)) {
        wire->is_shut = true;
        (void)uv_shutdown(&wire->shutdown, (uv_stream_t *)&wire->tcp, on_shutdown);
    }
}

static void on_written(uv_write_t *request, int status) {
    struct proxy_wire *wire = request->data;
    wire->moved += wire->sending.size;
    buf_clear(&wire->sending);
    if (wire->is_closed) {
        return;
    }
    if (status != 0) {
        wire_fail(wire, ERR_CLOSED, "the connection broke off");
    } else {
        flush(wire);
        shut(wire);
    }
    wake(wire);
}

/* One write at a time; meanwhile the next one gathers. */
static void flush(struct proxy_wire *wire) {
    if (wire->sending.size > 0 || wire->out.size == 0 || !wire->is_connected || wire->err != ERR_OK) {
        return;
    }
    struct buf empty = wire->sending;
    wire->sending = wire->out;
    wire->out = empty;
    uv_buf_t buffer = uv_buf_init((char *)wire->sending.data, (unsigned)wire->sending.size);
    if (uv_write(&wire->write, (uv_stream_t *)&wire->tcp, &buffer, 1, on_written) != 0) {
        buf_clear(&wire->sending);
        wire_fail(wire, ERR_CLOSED, "the connection broke off");
    }
}

static void on_room(uv_handle_t *handle, size_t suggested_size, uv_buf_t *ret_buffer) {
    struct proxy_wire *wire = handle->data;
    struct buf *into = wire->tls != NULL ? &wire->raw : &wire->in;
    size_t room = wire->tls != NULL ? RAW_SIZE : PROXY_WIRE_IN_SIZE - wire->in.size;
    (void)suggested_size;
    *ret_buffer = buf_reserve(into, room) == ERR_OK
                      ? uv_buf_init((char *)into->data + into->size, (unsigned)room)
                      : uv_buf_init(NULL, 0);
}

static void end_input(struct proxy_wire *wire, ssize_t size) {
    wire->is_cut = wire->tls != NULL && !wire->is_ended;
    wire->is_ended = true;
    if (size != UV_EOF) {
        wire_fail(wire, ERR_CLOSED, uv_strerror((int)size));
    } else if (wire->tls != NULL && !wire->is_open) {
        wire_fail(wire, ERR_CLOSED, "TLS: it broke off");
    }
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
    struct proxy_wire *wire = stream->data;
    if (size == 0) {
        return;
    }
    if (size < 0) {
        (void)uv_read_stop(stream);
        wire->is_reading = false;
        end_input(wire, size);
        wake(wire);
        return;
    }
    wire->moved += (uint64_t)size;
    if (wire->tls == NULL) {
        wire->in.size += (size_t)size;
    } else if (BIO_write(SSL_get_rbio(wire->tls), buffer->base, (int)size) == (int)size) {
        decrypt(wire);
    } else {
        wire_fail(wire, ERR_MEMORY, err_text(ERR_MEMORY));
    }
    read_on(wire);
    wake(wire);
}

/* Read if there is room, rest if there is none. */
static void read_on(struct proxy_wire *wire) {
    bool wants =
        wire->is_connected && wire->err == ERR_OK && !wire->is_ended && wire->in.size < PROXY_WIRE_IN_SIZE;
    if (wants == wire->is_reading) {
        return;
    }
    wire->is_reading = wants;
    if (!wants) {
        (void)uv_read_stop((uv_stream_t *)&wire->tcp);
    } else if (uv_read_start((uv_stream_t *)&wire->tcp, on_room, on_read) != 0) {
        wire_fail(wire, ERR_CLOSED, "the connection broke off");
    }
}

static void on_connected(uv_connect_t *request, int status) {
    struct proxy_wire *wire = request->data;
    if (wire->is_closed) {
        return;
    }
    if (status != 0) {
        wire_fail(wire, status == UV_ECONNREFUSED ? ERR_REFUSED : ERR_UNREACHABLE, uv_strerror(status));
    } else {
        wire->is_connected = true;
        wire->is_open = wire->tls == NULL;
        (void)uv_tcp_nodelay(&wire->tcp, 1);
        if (wire->tls != NULL) {
            shake_hands(wire);
        }
        flush(wire);
        read_on(wire);
    }
    wake(wire);
}

/* ---- for the owner ---- */

struct proxy_wire *proxy_wire_new(uv_loop_t *loop, void (*wake_owner)(void *context), void *context) {
    struct proxy_wire *wire = calloc(1, sizeof *wire);
    if (wire == NULL || uv_tcp_init(loop, &wire->tcp) != 0) {
        free(wire);
        return NULL;
    }
    wire->wake = wake_owner;
    wire->context = context;
    wire->tcp.data = wire->connect.data = wire->write.data = wire;
    buf_init(&wire->in, PROXY_WIRE_IN_SIZE);
    buf_init(&wire->raw, RAW_SIZE);
    buf_init(&wire->out, OUT_SIZE_MAX);
    buf_init(&wire->sending, OUT_SIZE_MAX);
    return wire;
}

void proxy_wire_close(struct proxy_wire *wire) {
    if (wire != NULL && !wire->is_closed) {
        wire->is_closed = true;
        uv_close((uv_handle_t *)&wire->tcp, wire_on_closed);
    }
}

void proxy_wire_accept(struct proxy_wire *wire, uv_stream_t *listener) {
    if (uv_accept(listener, (uv_stream_t *)&wire->tcp) != 0) {
        wire_fail(wire, ERR_CLOSED, "it is gone");
        return;
    }
    (void)uv_tcp_nodelay(&wire->tcp, 1);
    wire->is_connected = wire->is_open = true;
    read_on(wire);
}

void proxy_wire_connect(struct proxy_wire *wire, const struct address *address) {
    struct sockaddr_storage storage;
    int status =
        uv_tcp_connect(&wire->connect, &wire->tcp, socket_address_put(address, &storage), on_connected);
    if (status != 0) {
        wire_fail(wire, ERR_UNREACHABLE, uv_strerror(status));
    }
}

void proxy_wire_secure(struct proxy_wire *wire, SSL *tls) {
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    wire->tls = tls;
    wire->is_open = false;
    if (in == NULL || out == NULL || BIO_write(in, wire->in.data, (int)wire->in.size) < (int)wire->in.size) {
        BIO_free(in);
        BIO_free(out);
        wire_fail(wire, ERR_MEMORY, err_text(ERR_MEMORY));
        return;
    }
    BIO_set_mem_eof_return(in, -1); /* empty is not the end */
    SSL_set_bio(tls, in, out);
    buf_clear(&wire->in);
    if (wire->is_connected) {
        decrypt(wire);
        read_on(wire);
    }
}

void proxy_wire_take(struct proxy_wire *wire, size_t size) {
    buf_consume(&wire->in, size);
    if (wire->tls != NULL && wire->is_open) {
        decrypt(wire);
    }
    read_on(wire);
}

void proxy_wire_write(struct proxy_wire *wire, struct bytes bytes) {
    if (wire->err != ERR_OK || wire->is_finishing || bytes.size == 0) {
        return;
    }
    if (wire->tls == NULL) {
        if (buf_put(&wire->out, bytes) != ERR_OK) {
            wire_fail(wire, wire->out.err, err_text(wire->out.err));
        }
        flush(wire);
        return;
    }
    ASSERT(wire->is_open);
    ERR_clear_error();
    if (SSL_write(wire->tls, bytes.data, (int)bytes.size) != (int)bytes.size) {
        fail_tls(wire);
        return;
    }
    wire_collect(wire);
}

size_t proxy_wire_room(const struct proxy_wire *wire) {
    size_t used = wire->out.size + wire->sending.size;
    return wire->is_open && !wire->is_finishing && used < PROXY_WIRE_OUT_SIZE ? PROXY_WIRE_OUT_SIZE - used
                                                                              : 0;
}

bool proxy_wire_is_drained(const struct proxy_wire *wire) {
    return wire->out.size == 0 && wire->sending.size == 0;
}

void proxy_wire_finish(struct proxy_wire *wire) {
    if (wire->is_finishing || wire->err != ERR_OK) {
        return;
    }
    if (wire->tls != NULL && wire->is_open) {
        (void)SSL_shutdown(wire->tls);
        wire_collect(wire);
    }
    wire->is_finishing = true;
    shut(wire);
}
