#include "node/proxy/proxy_authority.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/address.h"
#include "base/whole_file.h"
#include "net/dns.h"

enum {
    FILE_SIZE_MAX = 64 << 10,
    PATH_SIZE_MAX = 4096,
    AUTHORITY_DAYS = 3650,
    HOST_DAYS = 7,
    SERIAL_SIZE = 16,
    DAY_S = 24 * 3600,
    HOST_TEXT_SIZE = DNS_NAME_SIZE_MAX + 3,
};

static const unsigned char protocols[] = "\x08http/1.1";

struct host_context {
    char host[HOST_TEXT_SIZE];
    SSL_CTX *context;
    int64_t until_us;
};

struct proxy_authority {
    const struct clock *clock;
    EVP_PKEY *key;
    X509 *certificate;
    EVP_PKEY *hosts_key;
    SSL_CTX *out; /* to servers */
    struct host_context hosts[PROXY_AUTHORITY_HOSTS_MAX];
    size_t hosts_count;
    size_t next_index; /* of the oldest, where all places are taken */
};

/* ---- certificates ---- */

static bool set_times(X509 *certificate, int64_t now_us, long days) {
    int64_t now_s = now_us / 1000000;
    return ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)(now_s - DAY_S)) != NULL &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)(now_s + days * DAY_S)) != NULL;
}

static bool set_serial(X509 *certificate) {
    unsigned char bytes[SERIAL_SIZE];
    if (RAND_bytes(bytes, sizeof bytes) != 1) {
        return false;
    }
    bytes[0] = (bytes[0] & 0x3f) | 0x40; /* positive and of one length */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool is_set = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return is_set;
}

static bool set_name(X509_NAME *name, const char *text) {
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)text, -1, -1, 0) == 1;
}

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool is_added = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return is_added;
}

static X509 *new_certificate(EVP_PKEY *key, int64_t now_us, long days) {
    X509 *certificate = X509_new();
    if (certificate == NULL || X509_set_version(certificate, X509_VERSION_3) != 1 ||
        !set_serial(certificate) || !set_times(certificate, now_us, days) ||
        X509_set_pubkey(certificate, key) != 1) {
        X509_free(certificate);
        return NULL;
    }
    return certificate;
}

static X509 *make_authority(EVP_PKEY *key, int64_t now_us) {
    X509 *certificate = new_certificate(key, now_us, AUTHORITY_DAYS);
    X509_NAME *name = certificate != NULL ? X509_get_subject_name(certificate) : NULL;
    if (name == NULL || !set_name(name, "mnemon proxy of this computer") ||
        X509_set_issuer_name(certificate, name) != 1 ||
        !add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(certificate, certificate, NID_subject_key_identifier, "hash") ||
        X509_sign(certificate, key, EVP_sha256()) == 0) {
        X509_free(certificate);
        return NULL;
    }
    return certificate;
}

/* Names were checked by url_parse(): no comma, no "critical". */
static bool name_host(X509 *certificate, const char *host) {
    char value[HOST_TEXT_SIZE + 8];
    struct address address;
    bool is_address = address_parse(bytes_of_string(host), 1, &address);
    snprintf(value, sizeof value, "%s:%s", is_address ? "IP" : "DNS", host);
    return add_extension(certificate, NULL, NID_subject_alt_name, value);
}

static X509 *make_host(struct proxy_authority *authority, const char *host) {
    X509 *certificate = new_certificate(authority->hosts_key, clock_wall_us(authority->clock), HOST_DAYS);
    if (certificate == NULL ||
        !set_name(X509_get_subject_name(certificate), strlen(host) <= ub_common_name ? host : "a host") ||
        X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate)) != 1 ||
        !add_extension(certificate, authority->certificate, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(certificate, authority->certificate, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(certificate, authority->certificate, NID_ext_key_usage, "serverAuth") ||
        !add_extension(certificate, authority->certificate, NID_authority_key_identifier, "keyid") ||
        !name_host(certificate, host) || X509_sign(certificate, authority->key, EVP_sha256()) == 0) {
        X509_free(certificate);
        return NULL;
    }
    return certificate;
}

/* ---- the file ---- */

static enum err make_file(struct proxy_authority *authority, const char *directory, const char *path,
                          struct err_detail *detail) {
    char *text;
    BIO *out = BIO_new(BIO_s_mem());
    authority->key = EVP_EC_gen("P-256");
    authority->certificate =
        authority->key != NULL ? make_authority(authority->key, clock_wall_us(authority->clock)) : NULL;
    enum err err = ERR_MEMORY;
    if (out != NULL && authority->certificate != NULL &&
        PEM_write_bio_PrivateKey(out, authority->key, NULL, NULL, 0, NULL, NULL) == 1 &&
        PEM_write_bio_X509(out, authority->certificate) == 1) {
        long size = BIO_get_mem_data(out, &text);
        err = whole_file_make_directory(directory, detail);
        err = err == ERR_OK ? whole_file_replace(path, bytes_of(text, (size_t)size), 0600, detail) : err;
    }
    BIO_free(out);
    return err;
}

static enum err parse_file(struct proxy_authority *authority, struct bytes text, const char *path,
                           struct err_detail *detail) {
    BIO *in = BIO_new_mem_buf(text.data, (int)text.size);
    if (in != NULL) {
        authority->key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
        authority->certificate = PEM_read_bio_X509(in, NULL, NULL, NULL);
    }
    BIO_free(in);
    bool is_pair = authority->key != NULL && authority->certificate != NULL &&
                   X509_check_private_key(authority->certificate, authority->key) == 1;
    return is_pair ? ERR_OK
                   : err_set(detail, ERR_CORRUPT,
                             "%s: is no key with its certificate; remove it, and install the new one that is "
                             "then made",
                             path);
}

static enum err authority_load(struct proxy_authority *authority, const char *directory,
                               struct err_detail *detail) {
    char path[PATH_SIZE_MAX];
    struct stat stat_of_file;
    struct buf text;
    int size = snprintf(path, sizeof path, "%s/proxy-ca.pem", directory);
    if (size < 0 || (size_t)size >= sizeof path) {
        return err_set(detail, ERR_LIMIT, "%.100s…: the path is too long", directory);
    }
    if (stat(path, &stat_of_file) != 0) {
        return make_file(authority, directory, path, detail);
    }
    if (!S_ISREG(stat_of_file.st_mode) || (stat_of_file.st_mode & 077) != 0) {
        return err_set(detail, ERR_PERMISSION, "%s: is a secret: \"chmod 600\" it", path);
    }
    buf_init(&text, FILE_SIZE_MAX);
    enum err err = whole_file_read(path, &text, detail);
    err = err == ERR_OK ? parse_file(authority, buf_bytes(&text), path, detail) : err;
    buf_done(&text);
    return err;
}

/* ---- contexts ---- */

static int choose_protocol(SSL *tls, const unsigned char **ret_protocol, unsigned char *ret_size,
                           const unsigned char *offered, unsigned offered_size, void *unused) {
    (void)tls;
    (void)unused;
    unsigned char *chosen;
    int result =
        SSL_select_next_proto(&chosen, ret_size, protocols, sizeof protocols - 1, offered, offered_size);
    *ret_protocol = chosen;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *open_host(struct proxy_authority *authority, const char *host) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    X509 *certificate = make_host(authority, host);
    bool is_ready = context != NULL && certificate != NULL &&
                    SSL_CTX_use_certificate(context, certificate) == 1 &&
                    SSL_CTX_use_PrivateKey(context, authority->hosts_key) == 1;
    X509_free(certificate);
    if (!is_ready) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return context;
}

static enum err open_out(struct proxy_authority *authority) {
    authority->out = SSL_CTX_new(TLS_client_method());
    if (authority->out == NULL || SSL_CTX_set_default_verify_paths(authority->out) != 1 ||
        SSL_CTX_set_alpn_protos(authority->out, protocols, sizeof protocols - 1) != 0) {
        return ERR_MEMORY;
    }
    SSL_CTX_set_min_proto_version(authority->out, TLS1_2_VERSION);
    SSL_CTX_set_verify(authority->out, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(authority->out, SSL_MODE_RELEASE_BUFFERS);
    return ERR_OK;
}

enum err proxy_authority_open(const char *directory, const struct clock *clock,
                              struct proxy_authority **ret_authority, struct err_detail *detail) {
    struct proxy_authority *authority = calloc(1, sizeof *authority);
    if (authority == NULL) {
        return ERR_MEMORY;
    }
    authority->clock = clock;
    authority->hosts_key = EVP_EC_gen("P-256");
    enum err err = authority->hosts_key == NULL ? ERR_MEMORY : authority_load(authority, directory, detail);
    err = err == ERR_OK ? open_out(authority) : err;
    if (err != ERR_OK) {
        proxy_authority_free(authority);
        return err;
    }
    *ret_authority = authority;
    return ERR_OK;
}

void proxy_authority_free(struct proxy_authority *authority) {
    if (authority == NULL) {
        return;
    }
    for (size_t i = 0; i < authority->hosts_count; i++) {
        SSL_CTX_free(authority->hosts[i].context);
    }
    SSL_CTX_free(authority->out);
    EVP_PKEY_free(authority->hosts_key);
    EVP_PKEY_free(authority->key);
    X509_free(authority->certificate);
    free(authority);
}

enum err proxy_authority_print(const char *directory, const struct clock *clock, struct buf *out,
                               struct err_detail *detail) {
    struct proxy_authority *authority;
    char *text;
    enum err err = proxy_authority_open(directory, clock, &authority, detail);
    if (err != ERR_OK) {
        return err;
    }
    BIO *to = BIO_new(BIO_s_mem());
    err = ERR_MEMORY;
    if (to != NULL && PEM_write_bio_X509(to, authority->certificate) == 1) {
        long size = BIO_get_mem_data(to, &text);
        err = buf_put(out, bytes_of(text, (size_t)size));
    }
    BIO_free(to);
    proxy_authority_free(authority);
    return err;
}

/* ---- connections ---- */

static bool host_text(struct bytes host, char out[HOST_TEXT_SIZE]) {
    if (host.size > 1 && host.data[0] == '[' && host.data[host.size - 1] == ']') {
        host = bytes_slice(host, 1, host.size - 1);
    }
    if (host.size > 0 && host.data[host.size - 1] == '.') {
        host.size--; /* no certificate has the dot */
    }
    if (host.size == 0 || host.size >= HOST_TEXT_SIZE || bytes_find_byte(host, ',') < host.size) {
        return false;
    }
    memcpy(out, host.data, host.size);
    out[host.size] = '\0';
    return true;
}

static struct host_context *find_host(struct proxy_authority *authority, const char *host) {
    for (size_t i = 0; i < authority->hosts_count; i++) {
        if (strcmp(authority->hosts[i].host, host) == 0) {
            return &authority->hosts[i];
        }
    }
    if (authority->hosts_count < PROXY_AUTHORITY_HOSTS_MAX) {
        return &authority->hosts[authority->hosts_count++];
    }
    return &authority->hosts[authority->next_index++ % PROXY_AUTHORITY_HOSTS_MAX];
}

SSL *proxy_authority_accept(struct proxy_authority *authority, struct bytes host) {
    char text[HOST_TEXT_SIZE];
    if (!host_text(host, text)) {
        return NULL;
    }
    struct host_context *place = find_host(authority, text);
    int64_t now_us = clock_wall_us(authority->clock);
    if (strcmp(place->host, text) != 0 || now_us > place->until_us || place->context == NULL) {
        SSL_CTX_free(place->context);
        place->context = open_host(authority, text);
        snprintf(place->host, sizeof place->host, "%s", text);
        place->until_us = now_us + (HOST_DAYS - 1) * DAY_S * INT64_C(1000000);
    }
    SSL *tls = place->context != NULL ? SSL_new(place->context) : NULL;
    if (tls != NULL) {
        SSL_set_accept_state(tls);
    }
    return tls;
}

SSL *proxy_authority_connect(struct proxy_authority *authority, struct bytes host) {
    char text[HOST_TEXT_SIZE];
    struct address address;
    SSL *tls = host_text(host, text) ? SSL_new(authority->out) : NULL;
    if (tls == NULL) {
        return NULL;
    }
    bool is_set = address_parse(bytes_of_string(text), 1, &address)
                      ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), text) == 1
                      : SSL_set1_host(tls, text) == 1 && SSL_set_tlsext_host_name(tls, text) == 1;
    if (!is_set) {
        SSL_free(tls);
        return NULL;
    }
    SSL_set_connect_state(tls);
    return tls;
}
