/*
 * fetch_trust - certificates: checked against the system's authorities and the host's name, the verdict kept.
 *
 * An archive wants the page even if the certificate is bad, but says so. So the handshake goes on whatever
 * the check finds, in one connection, and OpenSSL keeps the finding with the connection; unless bad ones are
 * refused. Old servers are spoken to as well: TLS 1.0 and weak keys pass where bad certificates do.
 *
 * The authorities are those OpenSSL finds by itself; SSL_CERT_FILE and SSL_CERT_DIR name others.
 */
#include "crawl/fetch/fetch_state.h"

#include <openssl/x509v3.h>
#include <stdio.h>

enum { BARE_SESSION_SIZE_MAX = 512 }; /* a cipher and a key of at most 256 bytes */

void fetch_trust_init(struct fetch_trust *trust, bool refuses_bad) {
    *trust = (struct fetch_trust){.refuses_bad = refuses_bad};
}

void fetch_trust_done(struct fetch_trust *trust) {
    X509_STORE_free(trust->store);
    trust->store = NULL;
}

/* One store for all connections: the authorities would cost a megabyte each time. */
static enum err open_store(struct fetch_trust *trust) {
    if (trust->store != NULL) {
        return ERR_OK;
    }
    X509_STORE *store = X509_STORE_new();
    if (store == NULL || X509_STORE_set_default_paths(store) != 1) {
        X509_STORE_free(store);
        return ERR_MEMORY;
    }
    trust->store = store;
    return ERR_OK;
}

static bool expect_host(SSL_CTX *context, struct bytes host) {
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);
    char text[DNS_NAME_SIZE_MAX + 2];
    struct address address;
    if (host.size > 0 && host.data[host.size - 1] == '.') {
        host.size--; /* no certificate has the dot */
    }
    if (host.size >= sizeof text) {
        return false;
    }
    memcpy(text, host.data, host.size);
    text[host.size] = '\0';
    if (address_parse(host, 443, &address)) {
        return X509_VERIFY_PARAM_set1_ip_asc(param, text) == 1;
    }
    return X509_VERIFY_PARAM_set1_host(param, text, host.size) == 1;
}

/* The usual check; then only what it found and the server's own certificate stay with the connection. */
static int verify(X509_STORE_CTX *context, void *unused) {
    (void)unused;
    int result = X509_verify_cert(context);
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(context);
    X509_STORE_CTX_set0_verified_chain(context, NULL);
    while (sk_X509_num(sent) > 1) {
        X509_free(sk_X509_pop(sent));
    }
    return result;
}

enum err fetch_trust_prepare(struct fetch_trust *trust, SSL_CTX *context, struct bytes host) {
    enum err err = open_store(trust);
    if (err != ERR_OK) {
        return err;
    }
    if (!expect_host(context, host)) {
        return ERR_INVALID;
    }
    SSL_CTX_set1_cert_store(context, trust->store);
    SSL_CTX_set_cert_verify_callback(context, verify, NULL);
    SSL_CTX_set_verify(context, trust->refuses_bad ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!trust->refuses_bad) {
        SSL_CTX_set_security_level(context, 0);
        SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
        SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT);
    }
    return ERR_OK;
}

void fetch_trust_report_code(long code, struct fetch_result *result) {
    result->tls = code == X509_V_OK ? FETCH_TLS_GOOD : FETCH_TLS_BAD;
    if (code != X509_V_OK) {
        snprintf(result->tls_reason, sizeof result->tls_reason, "%s", X509_verify_cert_error_string(code));
    }
}

void fetch_trust_report(const SSL *connection, struct fetch_result *result) {
    fetch_trust_report_code(SSL_get_verify_result(connection), result);
}

/* A session of the same keys that knows no certificate, as text. 0 if there is none. */
static size_t write_bare_session(const SSL_SESSION *session, uint8_t out[BARE_SESSION_SIZE_MAX]) {
    SSL_SESSION *bare = SSL_SESSION_new();
    uint8_t key[SSL_MAX_MASTER_KEY_LENGTH];
    int size = 0;
    size_t key_size = SSL_SESSION_get_master_key(session, key, sizeof key);
    if (bare != NULL && SSL_SESSION_set1_master_key(bare, key, key_size) == 1 &&
        SSL_SESSION_set_cipher(bare, SSL_SESSION_get0_cipher(session)) == 1 &&
        SSL_SESSION_set_protocol_version(bare, SSL_SESSION_get_protocol_version(session)) == 1) {
        size = i2d_SSL_SESSION(bare, NULL);
    }
    if (size > 0 && size <= BARE_SESSION_SIZE_MAX) {
        size = i2d_SSL_SESSION(bare, &out);
    } else {
        size = 0;
    }
    SSL_SESSION_free(bare);
    OPENSSL_cleanse(key, sizeof key);
    return (size_t)size;
}

/*
 * OpenSSL keeps the certificate, taken apart into 5 KB, as long as the connection lives, and has no call to
 * drop it. It is dropped when another session is read into the same object. That object must have no ticket
 * yet, or its memory would be lost: so before the first byte is read, and libcurl asks for none earlier.
 */
void fetch_trust_settle(SSL *connection) {
    uint8_t text[BARE_SESSION_SIZE_MAX];
    const uint8_t *at = text;
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(connection);
    SSL_SESSION *session = SSL_get_session(connection);
    if (sk_X509_num(chain) <= 0 || session == NULL || SSL_SESSION_has_ticket(session)) {
        return;
    }
    while (sk_X509_num(chain) > 0) {
        X509_free(sk_X509_pop(chain));
    }
    size_t size = write_bare_session(session, text);
    if (size > 0) {
        d2i_SSL_SESSION(&session, &at, (long)size);
    }
    OPENSSL_cleanse(text, sizeof text);
}

/*
 * Behind a session ticket, OpenSSL keeps its 16 KB for reading, although libcurl asks it to give them back
 * (SSL_MODE_RELEASE_BUFFERS). What is in the middle of a record it does not let go.
 */
void fetch_trust_release(SSL *connection) {
    SSL_free_buffers(connection);
}
