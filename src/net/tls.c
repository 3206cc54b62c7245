#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/certificate.h"

enum {
    PROTOCOL_SIZE_MAX = 16, /* "mnemon/65535" behind its size */
    PROTOCOLS_SIZE_MAX = (TLS_VERSIONS_MAX + 1) * PROTOCOL_SIZE_MAX,
    CERTIFICATES_SIZE_MAX = 2 * CERTIFICATE_SIZE_MAX, /* of the message that carries them */
    RECORD_OVERHEAD = 22,                             /* head, type of the contents, tag */
};
static const uint64_t REKEY_SIZE_DEFAULT = UINT64_C(16) << 30; /* AES-GCM may go on to 2^24.5 records */
static const char protocol_of_hellos[] = "mnemon/hello";

struct tls_context {
    struct tls_config config;
    SSL_CTX *ssl;
    BIO_METHOD *bio;
    int64_t certified_at_s; /* when our certificate was made */
    bool is_certified;
    uint8_t protocols[PROTOCOLS_SIZE_MAX]; /* as ALPN wants them, the one that we like best first */
    size_t protocols_size;
};

struct tls {
    struct tls_context *context;
    SSL *ssl;
    struct buf *output;
    struct bytes input; /* what is left of it, during a call */
    uint8_t expected[PEER_KEY_SIZE];
    uint8_t peer[PEER_KEY_SIZE];
    bool has_peer;
    bool is_open;
    bool is_finished; /* by the other side */
    uint16_t version;
    size_t handshake_size; /* that came before it was open */
    uint64_t sent_size;    /* under the present key */
    enum err err;
};

/* ---- bytes in and out ---- */

static int tls_bio_read(BIO *bio, char *out, int size) {
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (tls->input.size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t part = tls->input.size < (size_t)size ? tls->input.size : (size_t)size;
    if (!tls->is_open) {
        tls->handshake_size += part;
        if (tls->handshake_size > TLS_HANDSHAKE_SIZE_MAX) {
            tls->err = ERR_LIMIT;
            return -1;
        }
    }
    memcpy(out, tls->input.data, part);
    tls->input = bytes_skip(tls->input, part);
    return (int)part;
}

static int tls_bio_write(BIO *bio, const char *data, int size) {
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    enum err err = buf_put(tls->output, bytes_of(data, (size_t)size));
    if (err != ERR_OK) {
        tls->err = err;
        return -1;
    }
    return size;
}

static long tls_bio_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int tls_bio_create(BIO *bio) {
    BIO_set_init(bio, 1);
    return 1;
}

/* ---- who is there ---- */

static int64_t tls_now_s(const struct tls_context *context) {
    return clock_wall_us(context->config.clock) / 1000000;
}

/* In place of OpenSSL's search for an authority. */
static int tls_check_certificate(X509_STORE_CTX *store, void *context) {
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *tls = SSL_get_app_data(ssl);
    (void)context;
    enum err err = ERR_INVALID;
    if (sk_X509_num(X509_STORE_CTX_get0_untrusted(store)) == 1) {
        err = certificate_check(X509_STORE_CTX_get0_cert(store), tls_now_s(tls->context), tls->peer);
    }
    if (err == ERR_OK && ((!sodium_is_zero(tls->expected, PEER_KEY_SIZE) &&
                           memcmp(tls->peer, tls->expected, PEER_KEY_SIZE) != 0) ||
                          memcmp(tls->peer, tls->context->config.identity->key, PEER_KEY_SIZE) == 0)) {
        err = ERR_MISMATCH;
    }
    tls->has_peer = err == ERR_OK;
    tls->err = err == ERR_INVALID || err == ERR_TIMEOUT ? ERR_PERMISSION : err;
    X509_STORE_CTX_set_error(store, err == ERR_OK        ? X509_V_OK
                                    : err == ERR_TIMEOUT ? X509_V_ERR_CERT_HAS_EXPIRED
                                                         : X509_V_ERR_APPLICATION_VERIFICATION);
    return err == ERR_OK;
}

/* ---- which versions ---- */

/* One of ALPN: its size in a byte, then the text. Returns the size of both. */
static size_t tls_protocol_put(uint8_t *out, const char *text) {
    size_t size = strlen(text);
    ASSERT(size + 1 <= PROTOCOL_SIZE_MAX);
    out[0] = (uint8_t)size;
    memcpy(out + 1, text, size);
    return size + 1;
}

static void tls_list_protocols(struct tls_context *context) {
    const struct tls_config *config = &context->config;
    uint32_t version = config->highest;
    for (size_t i = 0; i < TLS_VERSIONS_MAX && version >= config->lowest; i++, version--) {
        char text[PROTOCOL_SIZE_MAX];
        snprintf(text, sizeof text, "mnemon/%u", (unsigned)version);
        context->protocols_size += tls_protocol_put(context->protocols + context->protocols_size, text);
    }
    context->protocols_size +=
        tls_protocol_put(context->protocols + context->protocols_size, protocol_of_hellos);
}

/* The first of ours that the other side offers, too. */
static int tls_choose_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_size,
                               const unsigned char *offered, unsigned offered_size, void *pointer) {
    const struct tls_context *context = pointer;
    struct tls *tls = SSL_get_app_data(ssl);
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, ret_size, context->protocols, (unsigned)context->protocols_size,
                              offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
        tls->err = ERR_UNSUPPORTED;
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* False: none of ours. Whoever offers nothing is not asked by OpenSSL, so both sides look. */
static bool tls_read_version(struct tls *tls) {
    const struct tls_config *config = &tls->context->config;
    const unsigned char *data;
    unsigned size;
    SSL_get0_alpn_selected(tls->ssl, &data, &size);
    struct bytes protocol = bytes_of(data, size);
    if (bytes_equal(protocol, bytes_of_string(protocol_of_hellos))) {
        tls->version = 0;
        return true;
    }
    for (uint32_t version = config->highest; version >= config->lowest; version--) {
        char text[PROTOCOL_SIZE_MAX];
        snprintf(text, sizeof text, "mnemon/%u", (unsigned)version);
        if (bytes_equal(protocol, bytes_of_string(text))) {
            tls->version = (uint16_t)version;
            return true;
        }
    }
    return false;
}

/* ---- the context ---- */

/* A certificate of today. Streams that are open keep theirs. */
static enum err tls_certify(struct tls_context *context) {
    int64_t now_s = tls_now_s(context);
    struct certificate certificate;
    if (context->is_certified && now_s >= context->certified_at_s &&
        now_s - context->certified_at_s < CERTIFICATE_RENEWED_S) {
        return ERR_OK;
    }
    enum err err = certificate_init(&certificate, context->config.identity, now_s);
    if (err != ERR_OK) {
        return err;
    }
    bool is_well = SSL_CTX_use_certificate(context->ssl, certificate.x509) == 1 &&
                   SSL_CTX_use_PrivateKey(context->ssl, certificate.key) == 1;
    certificate_done(&certificate);
    context->certified_at_s = now_s;
    context->is_certified = is_well;
    return is_well ? ERR_OK : ERR_SYSTEM;
}

/* ChaCha20 first on a processor without instructions for AES. The one that connects decides. */
static const char *tls_ciphers(void) {
    return crypto_aead_aes256gcm_is_available() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                                : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
}

/* All that the configuration of the machine could say otherwise is said here. */
static bool tls_set_up(struct tls_context *context) {
    SSL_CTX *ssl = context->ssl;
    (void)SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET);
    (void)SSL_CTX_clear_options(ssl, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    (void)SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(ssl, CERTIFICATES_SIZE_MAX);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ssl, tls_check_certificate, NULL);
    SSL_CTX_set_alpn_select_cb(ssl, tls_choose_protocol, context);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(ssl, 0) == 1 &&
           SSL_CTX_set_max_early_data(ssl, 0) == 1 && SSL_CTX_set_ciphersuites(ssl, tls_ciphers()) == 1 &&
           SSL_CTX_set1_groups_list(ssl, "X25519") == 1 &&
           SSL_CTX_set1_sigalgs_list(ssl, "ecdsa_secp256r1_sha256") == 1 &&
           SSL_CTX_set1_client_sigalgs_list(ssl, "ecdsa_secp256r1_sha256") == 1 &&
           SSL_CTX_set_alpn_protos(ssl, context->protocols, (unsigned)context->protocols_size) == 0;
}

static bool tls_make_bio(struct tls_context *context) {
    context->bio = BIO_meth_new(BIO_TYPE_NONE, "stream");
    return context->bio != NULL && BIO_meth_set_read(context->bio, tls_bio_read) == 1 &&
           BIO_meth_set_write(context->bio, tls_bio_write) == 1 &&
           BIO_meth_set_ctrl(context->bio, tls_bio_control) == 1 &&
           BIO_meth_set_create(context->bio, tls_bio_create) == 1;
}

enum err tls_context_new(const struct tls_config *config, struct tls_context **ret_context,
                         struct err_detail *detail) {
    struct tls_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return err_set(detail, ERR_MEMORY, "no memory for TLS");
    }
    context->config = *config;
    struct tls_config *mine = &context->config;
    mine->clock = mine->clock != NULL ? mine->clock : &clock_system;
    mine->lowest = mine->lowest > 0 ? mine->lowest : 1;
    mine->highest = mine->highest > mine->lowest ? mine->highest : mine->lowest;
    mine->rekey_size = mine->rekey_size > 0 ? mine->rekey_size : REKEY_SIZE_DEFAULT;
    tls_list_protocols(context);
    context->ssl = SSL_CTX_new(TLS_method());
    bool is_well = context->ssl != NULL && tls_make_bio(context) && tls_set_up(context) &&
                   tls_certify(context) == ERR_OK;
    if (!is_well) {
        char text[128];
        ERR_error_string_n(ERR_get_error(), text, sizeof text);
        ERR_clear_error();
        tls_context_free(context);
        return err_set(detail, ERR_SYSTEM, "OpenSSL does not work here: %s", text);
    }
    *ret_context = context;
    return ERR_OK;
}

void tls_context_free(struct tls_context *context) {
    if (context != NULL) {
        SSL_CTX_free(context->ssl);
        BIO_meth_free(context->bio);
        free(context);
    }
}

/* ---- one stream ---- */

enum err tls_new(struct tls_context *context, const uint8_t *expected, struct buf *output,
                 struct tls **ret_tls) {
    enum err err = tls_certify(context);
    if (err != ERR_OK) {
        ERR_clear_error();
        return err;
    }
    struct tls *tls = calloc(1, sizeof *tls);
    SSL *ssl = SSL_new(context->ssl);
    BIO *bio = BIO_new(context->bio);
    if (tls == NULL || ssl == NULL || bio == NULL) {
        free(tls);
        SSL_free(ssl);
        BIO_free(bio);
        ERR_clear_error();
        return ERR_MEMORY;
    }
    tls->context = context;
    tls->ssl = ssl;
    tls->output = output;
    BIO_set_data(bio, tls);
    SSL_set_bio(ssl, bio, bio);
    (void)SSL_set_app_data(ssl, tls);
    if (expected != NULL) {
        memcpy(tls->expected, expected, PEER_KEY_SIZE);
        SSL_set_connect_state(ssl);
    } else {
        SSL_set_accept_state(ssl);
    }
    *ret_tls = tls;
    return ERR_OK;
}

void tls_free(struct tls *tls) {
    if (tls != NULL) {
        SSL_free(tls->ssl);
        free(tls);
    }
}

/* What an alert of the other side, or an error of ours, comes to. */
static enum err tls_explain(unsigned long code) {
    enum { OF_ALERTS = 1000 };
    switch (ERR_GET_REASON(code)) {
    case ERR_R_MALLOC_FAILURE:
        return ERR_MEMORY;
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return ERR_PERMISSION;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_VERSION_NUMBER:
    case OF_ALERTS + SSL_AD_NO_APPLICATION_PROTOCOL:
    case OF_ALERTS + SSL_AD_PROTOCOL_VERSION:
        return ERR_UNSUPPORTED;
    default:
        return ERR_GET_REASON(code) >= OF_ALERTS && !ERR_SYSTEM_ERROR(code) ? ERR_REFUSED : ERR_INVALID;
    }
}

static enum tls_verdict tls_fail(struct tls *tls, enum err err) {
    tls->err = tls->err != ERR_OK ? tls->err : err;
    ERR_clear_error();
    return TLS_BAD;
}

/* A call of OpenSSL that returned no success. */
static enum tls_verdict tls_stop(struct tls *tls, int status) {
    switch (SSL_get_error(tls->ssl, status)) {
    case SSL_ERROR_WANT_READ:
        return tls->err == ERR_OK ? TLS_PART : TLS_BAD;
    case SSL_ERROR_ZERO_RETURN:
        tls->is_finished = true;
        return tls->is_open ? TLS_END : tls_fail(tls, ERR_INVALID);
    default:
        return tls_fail(tls, tls_explain(ERR_peek_error()));
    }
}

static enum tls_verdict tls_shake_hands(struct tls *tls) {
    ERR_clear_error();
    int status = SSL_do_handshake(tls->ssl);
    if (status != 1) {
        return tls_stop(tls, status);
    }
    if (!tls->has_peer || !tls_read_version(tls)) {
        return tls_fail(tls, ERR_UNSUPPORTED);
    }
    tls->is_open = true;
    return TLS_OPEN;
}

enum tls_verdict tls_begin(struct tls *tls) {
    return tls_shake_hands(tls);
}

static enum tls_verdict tls_read(struct tls *tls, uint8_t *out, struct bytes *ret_contents) {
    size_t size;
    if (tls->is_finished) {
        return tls->input.size == 0 ? TLS_PART : tls_fail(tls, ERR_INVALID);
    }
    ERR_clear_error();
    int status = SSL_read_ex(tls->ssl, out, TLS_CONTENTS_SIZE_MAX, &size);
    if (status != 1) {
        return tls_stop(tls, status);
    }
    *ret_contents = bytes_of(out, size);
    return TLS_DATA;
}

enum tls_verdict tls_take(struct tls *tls, struct bytes input, uint8_t *out, size_t *ret_used,
                          struct bytes *ret_contents) {
    enum tls_verdict verdict = TLS_BAD;
    tls->input = input;
    if (tls->err == ERR_OK) {
        verdict = tls->is_open ? tls_read(tls, out, ret_contents) : tls_shake_hands(tls);
    }
    *ret_used = input.size - tls->input.size;
    tls->input = bytes_of(NULL, 0);
    return verdict;
}

enum err tls_put(struct tls *tls, struct bytes contents) {
    size_t written;
    ASSERT(tls->is_open);
    if (contents.size == 0) {
        return ERR_OK;
    }
    size_t records_count = contents.size / TLS_CONTENTS_SIZE_MAX + 2; /* and a change of the key */
    enum err err = buf_reserve(tls->output, contents.size + records_count * RECORD_OVERHEAD);
    if (err != ERR_OK) {
        return err;
    }
    ERR_clear_error();
    tls->sent_size += contents.size;
    if (tls->sent_size > tls->context->config.rekey_size) {
        tls->sent_size = contents.size;
        (void)SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    if (SSL_write_ex(tls->ssl, contents.data, contents.size, &written) != 1) {
        (void)tls_fail(tls, ERR_INVALID);
        return tls->err;
    }
    ASSERT(written == contents.size);
    return ERR_OK;
}

enum err tls_finish(struct tls *tls) {
    ASSERT(tls->is_open);
    ERR_clear_error();
    if (SSL_shutdown(tls->ssl) < 0) {
        (void)tls_fail(tls, ERR_INVALID);
        return tls->err;
    }
    return ERR_OK;
}

const uint8_t *tls_peer(const struct tls *tls) {
    return tls->peer;
}

uint16_t tls_version(const struct tls *tls) {
    return tls->version;
}

enum err tls_err(const struct tls *tls) {
    return tls->err;
}
