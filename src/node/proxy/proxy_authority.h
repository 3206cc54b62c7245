/*
 * proxy_authority - the proxy's own certificates, for users that let it take https: apart.
 *
 * DIRECTORY/proxy-ca.pem holds a private key and a certificate that only this user's browsers shall believe:
 * made once, mode 0600, refused where others may read it, never replaced. Each host gets a certificate of
 * seven days when it is first asked for, kept in memory; all of them have one key, made at the start.
 *
 * Toward servers: TLS 1.2 or newer, checked against the authorities of the system (SSL_CERT_FILE names
 * others) and the host's name. One thread.
 */
#ifndef MNEMON_NODE_PROXY_PROXY_AUTHORITY_H
#define MNEMON_NODE_PROXY_PROXY_AUTHORITY_H

#include <openssl/ssl.h>

#include "base/buf.h"
#include "base/clock.h"

struct proxy_authority;

enum { PROXY_AUTHORITY_HOSTS_MAX = 256 }; /* certificates that are kept */

/* The detail names the file and says what to do. */
enum err proxy_authority_open(const char *directory, const struct clock *clock,
                              struct proxy_authority **ret_authority, struct err_detail *detail) MUST_CHECK;
void proxy_authority_free(struct proxy_authority *authority);

/* Append the certificate that is to be installed, PEM. Makes the file if it is missing. */
enum err proxy_authority_print(const char *directory, const struct clock *clock, struct buf *out,
                               struct err_detail *detail) MUST_CHECK;

/* The side of a connection that shows a certificate for the host; a name, or an address without brackets.
 * NULL: out of memory, or no such name. */
SSL *proxy_authority_accept(struct proxy_authority *authority, struct bytes host);

/* The other side: to the server of that name. */
SSL *proxy_authority_connect(struct proxy_authority *authority, struct bytes host);

#endif
