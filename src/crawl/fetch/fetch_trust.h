/*
 * fetch_trust - certificates: checked against the system's authorities and the host's name, the verdict kept.
 *
 * An archive wants the page even where the certificate is bad, but says so. So the handshake goes on whatever
 * the check finds, in one connection, and OpenSSL keeps the finding with the connection; unless bad ones are
 * refused. Old servers are spoken to as well: TLS 1.0 and weak keys pass where bad certificates do.
 *
 * The authorities are those OpenSSL finds by itself; SSL_CERT_FILE and SSL_CERT_DIR name others.
 */
#ifndef MNEMON_CRAWL_FETCH_FETCH_TRUST_H
#define MNEMON_CRAWL_FETCH_FETCH_TRUST_H

#include <openssl/ssl.h>

#include "crawl/fetch/fetch_exchange.h"

struct fetch_trust {
    X509_STORE *store; /* NULL until the first connection */
    bool refuses_bad;
};

void fetch_trust_init(struct fetch_trust *trust, bool refuses_bad);
void fetch_trust_done(struct fetch_trust *trust);

/* Prepare the context of one connection to the host, a name or an address without brackets. */
enum err fetch_trust_prepare(struct fetch_trust *trust, SSL_CTX *context, struct bytes host) MUST_CHECK;

/* What was found, of a connection or a code of OpenSSL's. */
void fetch_trust_report(const SSL *connection, struct fetch_result *result);
void fetch_trust_report_code(long code, struct fetch_result *result);

/* The handshake is over: let go of the certificate, the verdict stays. Harmless if that was done before.
 */
void fetch_trust_settle(SSL *connection);

/* Let go of the buffers that an idle connection need not have; the next read takes them again. */
void fetch_trust_release(SSL *connection);

#endif
