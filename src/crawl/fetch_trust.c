#include "crawl/fetch_trust.h"

#include <openssl/x509v3.h>
#include <stdio.h>

#include "net/dns.h"

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

/*
 * Behind a session ticket, OpenSSL keeps its 16 KB for reading, although libcurl asks it to give them back
 * (SSL_MODE_RELEASE_BUFFERS). What is in the middle of a record it does not let go.
 */
void fetch_trust_release(SSL *connection) {
    SSL_free_buffers(connection);
}
