/* tls, certificate: two sides in memory, and peers that show the wrong thing, made with OpenSSL itself. */
#include "net/tls.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "clock-manual.h"
#include "net/certificate.h"
#include "unit.h"

enum { NOW_S = 1800000000, WIRE_SIZE_MAX = 1 << 22, TURNS_MAX = 100, DAY_S = 86400 };

/* One of ours. */
struct side {
    struct tls_context *context;
    struct tls *tls;
    struct buf output;
    struct buf received;
    bool is_open;
    bool has_end;
    bool is_bad;
};

struct world {
    struct clock_manual clock;
    struct identity client;
    struct identity server;
    struct side a; /* connects */
    struct side b;
};

static struct tls_context *context_new(struct world *world, const struct identity *identity, uint16_t lowest,
                                       uint16_t highest, uint64_t rekey_size) {
    struct tls_context *context;
    struct tls_config config = {.identity = identity,
                                .clock = &world->clock.clock,
                                .lowest = lowest,
                                .highest = highest,
                                .rekey_size = rekey_size};
    assert_int_equal(tls_context_new(&config, &context, NULL), ERR_OK);
    return context;
}

static void side_open(struct side *side, struct tls_context *context, const uint8_t *expected) {
    side->context = context;
    buf_init(&side->output, WIRE_SIZE_MAX);
    buf_init(&side->received, WIRE_SIZE_MAX);
    assert_int_equal(tls_new(context, expected, &side->output, &side->tls), ERR_OK);
    if (expected != NULL) {
        assert_int_equal(tls_begin(side->tls), TLS_PART);
    }
}

static void side_close(struct side *side) {
    tls_free(side->tls);
    buf_done(&side->output);
    buf_done(&side->received);
    tls_context_free(side->context);
    *side = (struct side){0};
}

static void side_take(struct side *side, struct bytes input) {
    static uint8_t out[TLS_CONTENTS_SIZE_MAX];
    enum tls_verdict verdict;
    do {
        struct bytes contents;
        size_t used;
        verdict = tls_take(side->tls, input, out, &used, &contents);
        input = bytes_skip(input, used);
        side->is_open |= verdict == TLS_OPEN;
        side->has_end |= verdict == TLS_END;
        side->is_bad |= verdict == TLS_BAD;
        if (verdict == TLS_DATA) {
            assert_int_equal(buf_put(&side->received, contents), ERR_OK);
        }
    } while (verdict != TLS_PART && verdict != TLS_BAD);
    assert_true(verdict == TLS_BAD || input.size == 0);
}

/* Until neither has anything to say. */
static void talk(struct side *a, struct side *b) {
    while (a->output.size + b->output.size > 0) {
        side_take(b, buf_bytes(&a->output));
        buf_clear(&a->output);
        side_take(a, buf_bytes(&b->output));
        buf_clear(&b->output);
    }
}

static void begin(struct world *world, struct tls_context *a, struct tls_context *b) {
    side_open(&world->a, a, world->server.key);
    side_open(&world->b, b, NULL);
    talk(&world->a, &world->b);
}

static void begin_as_usual(struct world *world, uint64_t rekey_size) {
    begin(world, context_new(world, &world->client, 1, 2, rekey_size),
          context_new(world, &world->server, 1, 2, rekey_size));
    assert_true(world->a.is_open && world->b.is_open);
}

static int set_up(void **state) {
    static struct world world;
    world = (struct world){0};
    clock_manual_init(&world.clock, INT64_C(1000000) * NOW_S);
    assert_int_equal(identity_random(&world.client), ERR_OK);
    assert_int_equal(identity_random(&world.server), ERR_OK);
    *state = &world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    side_close(&world->a);
    side_close(&world->b);
    assert_int_equal(ERR_peek_error(), 0); /* the queue of the thread is left empty */
    return 0;
}

/* ---- certificates ---- */

static void a_certificate_says_whose_it_is_for_a_month(void **state) {
    struct world *world = *state;
    struct certificate certificate;
    uint8_t key[PEER_KEY_SIZE] = {0};
    assert_int_equal(certificate_init(&certificate, &world->server, NOW_S), ERR_OK);
    assert_int_equal(certificate_check(certificate.x509, NOW_S, key), ERR_OK);
    assert_memory_equal(key, world->server.key, PEER_KEY_SIZE);
    static const int64_t good[] = {NOW_S - DAY_S + 1, NOW_S + 30 * DAY_S - 1};
    static const int64_t bad[] = {NOW_S - DAY_S - 1, NOW_S + 30 * DAY_S + 1};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(certificate_check(certificate.x509, good[i], key), ERR_OK);
        assert_int_equal(certificate_check(certificate.x509, bad[i], key), ERR_TIMEOUT);
    }
    assert_in_range(i2d_X509(certificate.x509, NULL), 300, 600);
    certificate_done(&certificate);
}

static void every_flipped_bit_of_a_certificate_is_refused(void **state) {
    struct world *world = *state;
    struct certificate certificate;
    uint8_t der[CERTIFICATE_SIZE_MAX];
    uint8_t key[PEER_KEY_SIZE];
    assert_int_equal(certificate_init(&certificate, &world->server, NOW_S), ERR_OK);
    uint8_t *end = der;
    size_t size = (size_t)i2d_X509(certificate.x509, &end);
    size_t accepted = 0;
    for (size_t bit = 0; bit < size * 8; bit += UNIT_IS_SANITIZED ? 7 : 1) {
        const uint8_t *at = der;
        der[bit / 8] ^= (uint8_t)(1 << bit % 8);
        X509 *x509 = d2i_X509(NULL, &at, (long)size);
        if (x509 != NULL && at == der + size && certificate_check(x509, NOW_S, key) == ERR_OK) {
            accepted++;
        }
        X509_free(x509);
        der[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ERR_clear_error();
    assert_int_equal(accepted, 0);
    certificate_done(&certificate);
}

/* The same certificate, changed and signed again by its own key: what anybody can make. */
enum change {
    CHANGE_NOTHING,
    CHANGE_NO_PROOF,
    CHANGE_TWO_PROOFS,
    CHANGE_KEY, /* another key under the same proof */
    CHANGE_CRITICAL,
    CHANGE_LARGE,
    CHANGE_EXPIRED,
    CHANGE_RSA,
    CHANGE_OTHER_CURVE,
    CHANGE_DIGEST,
    CHANGES_COUNT,
};

static void add_extension(X509 *x509, const char *oid, bool is_critical, size_t size) {
    static uint8_t bytes[CERTIFICATE_SIZE_MAX];
    ASN1_OBJECT *object = OBJ_txt2obj(oid, 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    assert_int_equal(ASN1_OCTET_STRING_set(value, bytes, (int)size), 1);
    X509_EXTENSION *extension = X509_EXTENSION_create_by_OBJ(NULL, object, is_critical, value);
    assert_int_equal(X509_add_ext(x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(object);
}

static void replace_key(struct certificate *certificate, EVP_PKEY *take_key) {
    EVP_PKEY_free(certificate->key);
    certificate->key = take_key;
    assert_int_equal(X509_set_pubkey(certificate->x509, take_key), 1);
}

static void change_certificate(struct certificate *certificate, enum change change) {
    X509 *x509 = certificate->x509;
    switch (change) {
    case CHANGE_NO_PROOF:
        X509_EXTENSION_free(X509_delete_ext(x509, 0));
        break;
    case CHANGE_TWO_PROOFS:
        assert_int_equal(X509_add_ext(x509, X509_get_ext(x509, 0), -1), 1);
        break;
    case CHANGE_KEY:
        replace_key(certificate, EVP_EC_gen("prime256v1"));
        break;
    case CHANGE_CRITICAL:
        add_extension(x509, "1.2.3.4", true, 4);
        break;
    case CHANGE_LARGE:
        add_extension(x509, "1.2.3.4", false, CERTIFICATE_SIZE_MAX);
        break;
    case CHANGE_EXPIRED:
        assert_non_null(ASN1_TIME_set(X509_getm_notAfter(x509), NOW_S - 1));
        break;
    case CHANGE_RSA:
        replace_key(certificate, EVP_RSA_gen(2048));
        break;
    case CHANGE_OTHER_CURVE:
        replace_key(certificate, EVP_EC_gen("secp384r1"));
        break;
    default:
        break;
    }
    assert_true(X509_sign(x509, certificate->key, change == CHANGE_DIGEST ? EVP_sha1() : EVP_sha256()) > 0);
}

static const enum err wanted[CHANGES_COUNT] = {
    [CHANGE_NOTHING] = ERR_OK,      [CHANGE_NO_PROOF] = ERR_INVALID, [CHANGE_TWO_PROOFS] = ERR_INVALID,
    [CHANGE_KEY] = ERR_PERMISSION,  [CHANGE_CRITICAL] = ERR_INVALID, [CHANGE_LARGE] = ERR_INVALID,
    [CHANGE_EXPIRED] = ERR_TIMEOUT, [CHANGE_RSA] = ERR_INVALID,      [CHANGE_OTHER_CURVE] = ERR_INVALID,
    [CHANGE_DIGEST] = ERR_INVALID,
};

static void a_certificate_of_another_form_is_refused(void **state) {
    struct world *world = *state;
    for (int change = 0; change < CHANGES_COUNT; change++) {
        struct certificate certificate;
        uint8_t key[PEER_KEY_SIZE];
        assert_int_equal(certificate_init(&certificate, &world->server, NOW_S), ERR_OK);
        change_certificate(&certificate, (enum change)change);
        assert_int_equal(certificate_check(certificate.x509, NOW_S, key), wanted[change]);
        certificate_done(&certificate);
    }
}

/* ---- two of ours ---- */

static void both_prove_their_keys_and_say_everything(void **state) {
    struct world *world = *state;
    begin_as_usual(world, 0);
    assert_memory_equal(tls_peer(world->a.tls), world->server.key, PEER_KEY_SIZE);
    assert_memory_equal(tls_peer(world->b.tls), world->client.key, PEER_KEY_SIZE);
    assert_int_equal(tls_version(world->a.tls), 2);
    assert_int_equal(tls_version(world->b.tls), 2);
    assert_int_equal(tls_put(world->a.tls, BYTES("question")), ERR_OK);
    assert_int_equal(tls_finish(world->a.tls), ERR_OK);
    talk(&world->a, &world->b);
    assert_true(world->b.has_end);
    assert_int_equal(tls_put(world->b.tls, BYTES("answer")), ERR_OK); /* the other direction is still open */
    assert_int_equal(tls_finish(world->b.tls), ERR_OK);
    talk(&world->a, &world->b);
    assert_bytes_equal(buf_bytes(&world->b.received), BYTES("question"));
    assert_bytes_equal(buf_bytes(&world->a.received), BYTES("answer"));
    assert_true(world->a.has_end);
    assert_false(world->a.is_bad || world->b.is_bad);
}

static void a_byte_behind_the_end_is_refused(void **state) {
    struct world *world = *state;
    begin_as_usual(world, 0);
    assert_int_equal(tls_finish(world->a.tls), ERR_OK);
    talk(&world->a, &world->b);
    side_take(&world->b, BYTES("x"));
    assert_true(world->b.is_bad);
    assert_int_equal(tls_err(world->b.tls), ERR_INVALID);
}

/* A new key changes what a record of the same contents must look like to be taken. */
static void the_key_is_changed_after_so_much(void **state) {
    static const uint8_t contents[1000];
    struct world *world = *state;
    begin_as_usual(world, 10 * sizeof contents);
    size_t larger = 0;
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(tls_put(world->a.tls, bytes_of(contents, sizeof contents)), ERR_OK);
        larger += world->a.output.size > sizeof contents + 22;
        talk(&world->a, &world->b);
    }
    assert_int_equal(larger, 9);
    assert_int_equal(world->b.received.size, 100 * sizeof contents);
}

static void the_highest_version_of_both_is_spoken(void **state) {
    struct world *world = *state;
    static const struct {
        uint16_t a[2], b[2], common;
    } cases[] = {
        {{1, 2}, {1, 3}, 2}, {{1, 3}, {1, 2}, 2},     {{2, 2}, {1, 4}, 2},
        {{1, 2}, {3, 4}, 0}, {{1, 60}, {50, 70}, 60},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(world, context_new(world, &world->client, cases[i].a[0], cases[i].a[1], 0),
              context_new(world, &world->server, cases[i].b[0], cases[i].b[1], 0));
        assert_true(world->a.is_open && world->b.is_open);
        assert_int_equal(tls_version(world->a.tls), cases[i].common);
        assert_int_equal(tls_version(world->b.tls), cases[i].common);
        side_close(&world->a);
        side_close(&world->b);
    }
}

static void another_node_and_oneself_are_told_apart(void **state) {
    struct world *world = *state;
    side_open(&world->a, context_new(world, &world->client, 1, 2, 0), world->client.key);
    side_open(&world->b, context_new(world, &world->server, 1, 2, 0), NULL);
    talk(&world->a, &world->b);
    assert_int_equal(tls_err(world->a.tls), ERR_MISMATCH);
    assert_int_equal(tls_err(world->b.tls), ERR_REFUSED); /* it is told, and was not told who asked */
    assert_false(world->a.is_open || world->b.is_open);
    side_close(&world->a);
    side_close(&world->b);
    static const uint8_t anybody[PEER_KEY_SIZE];
    side_open(&world->a, context_new(world, &world->server, 1, 2, 0), anybody);
    side_open(&world->b, context_new(world, &world->server, 1, 2, 0), NULL);
    talk(&world->a, &world->b);
    assert_int_equal(tls_err(world->a.tls), ERR_MISMATCH);
    assert_false(world->a.is_open || world->b.is_open);
}

static void the_certificate_is_renewed_each_day(void **state) {
    struct world *world = *state;
    struct tls_context *a = context_new(world, &world->client, 1, 2, 0);
    struct tls_context *b = context_new(world, &world->server, 1, 2, 0);
    for (size_t day = 0; day < 4; day++) {
        begin(world, a, b);
        assert_true(world->a.is_open && world->b.is_open);
        world->a.context = world->b.context = NULL;
        side_close(&world->a);
        side_close(&world->b);
        world->clock.wall_now_us +=
            INT64_C(1000000) * 20 * DAY_S * (day == 2 ? -3 : 1); /* a clock set back, too */
    }
    tls_context_free(a);
    tls_context_free(b);
}

static void a_changed_record_is_refused(void **state) {
    struct world *world = *state;
    begin_as_usual(world, 0);
    assert_int_equal(tls_put(world->a.tls, BYTES("question")), ERR_OK);
    world->a.output.data[world->a.output.size - 1] ^= 1;
    side_take(&world->b, buf_bytes(&world->a.output));
    assert_true(world->b.is_bad);
    assert_int_equal(world->b.received.size, 0);
}

/* What was recorded of a stream says nothing to a new one. */
static void a_replayed_stream_is_refused(void **state) {
    struct world *world = *state;
    struct buf recorded;
    buf_init(&recorded, WIRE_SIZE_MAX);
    side_open(&world->a, context_new(world, &world->client, 1, 2, 0), world->server.key);
    side_open(&world->b, context_new(world, &world->server, 1, 2, 0), NULL);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(buf_put(&recorded, buf_bytes(&world->a.output)), ERR_OK);
        side_take(&world->b, buf_bytes(&world->a.output));
        buf_clear(&world->a.output);
        side_take(&world->a, buf_bytes(&world->b.output));
        buf_clear(&world->b.output);
    }
    assert_true(world->a.is_open && world->b.is_open);
    assert_int_equal(tls_put(world->a.tls, BYTES("question")), ERR_OK);
    assert_int_equal(buf_put(&recorded, buf_bytes(&world->a.output)), ERR_OK);
    struct side again = {0};
    side_open(&again, context_new(world, &world->server, 1, 2, 0), NULL);
    side_take(&again, buf_bytes(&recorded));
    assert_true(again.is_bad);
    assert_false(again.is_open);
    assert_int_equal(again.received.size, 0);
    side_close(&again);
    buf_done(&recorded);
}

/* ---- one of ours, and OpenSSL in the hands of somebody else ---- */

struct stranger {
    SSL_CTX *context;
    SSL *ssl;
};

static int accept_any(X509_STORE_CTX *store, void *context) {
    (void)store;
    (void)context;
    return 1;
}

static void stranger_open(struct stranger *stranger, bool is_client, const struct certificate *certificate,
                          const char *protocol) {
    stranger->context = SSL_CTX_new(TLS_method());
    SSL_CTX_set_cert_verify_callback(stranger->context, accept_any, NULL);
    SSL_CTX_set_verify(stranger->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_security_level(stranger->context, 0);
    if (certificate != NULL) {
        assert_int_equal(SSL_CTX_use_certificate(stranger->context, certificate->x509), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey(stranger->context, certificate->key), 1);
    }
    if (protocol != NULL) {
        assert_int_equal(
            SSL_CTX_set_alpn_protos(stranger->context, (const uint8_t *)protocol, (unsigned)strlen(protocol)),
            0);
    }
    stranger->ssl = SSL_new(stranger->context);
    SSL_set_bio(stranger->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (is_client) {
        SSL_set_connect_state(stranger->ssl);
    } else {
        SSL_set_accept_state(stranger->ssl);
    }
}

static void stranger_close(struct stranger *stranger) {
    SSL_free(stranger->ssl);
    SSL_CTX_free(stranger->context);
    ERR_clear_error();
}

static void stranger_talk(struct stranger *stranger, struct side *side) {
    for (size_t i = 0; i < TURNS_MAX; i++) {
        uint8_t bytes[4096];
        (void)SSL_do_handshake(stranger->ssl);
        ERR_clear_error();
        int size;
        while ((size = BIO_read(SSL_get_wbio(stranger->ssl), bytes, sizeof bytes)) > 0) {
            side_take(side, bytes_of(bytes, (size_t)size));
        }
        (void)BIO_write(SSL_get_rbio(stranger->ssl), side->output.data, (int)side->output.size);
        buf_clear(&side->output);
    }
}

static enum err meet_stranger(struct world *world, struct stranger *stranger) {
    side_open(&world->b, context_new(world, &world->server, 1, 2, 0), NULL);
    stranger_talk(stranger, &world->b);
    assert_int_equal(world->b.is_open, tls_err(world->b.tls) == ERR_OK);
    enum err err = tls_err(world->b.tls);
    side_close(&world->b);
    return err;
}

static enum err meet_server(struct world *world, struct stranger *stranger) {
    side_open(&world->a, context_new(world, &world->client, 1, 2, 0), world->server.key);
    stranger_talk(stranger, &world->a);
    assert_int_equal(world->a.is_open, tls_err(world->a.tls) == ERR_OK);
    enum err err = tls_err(world->a.tls);
    side_close(&world->a);
    return err;
}

static const char good_protocol[] = "\x08mnemon/2";

/* The forms that are refused alone are refused in TLS, on either side. */
static void whoever_shows_a_wrong_certificate_is_not_let_in(void **state) {
    struct world *world = *state;
    for (int change = 0; change < CHANGES_COUNT; change++) {
        struct certificate certificate;
        struct stranger stranger;
        assert_int_equal(certificate_init(&certificate, &world->client, NOW_S), ERR_OK);
        change_certificate(&certificate, (enum change)change);
        stranger_open(&stranger, true, &certificate, good_protocol);
        enum err err = meet_stranger(world, &stranger);
        assert_int_equal(err == ERR_OK, change == CHANGE_NOTHING);
        stranger_close(&stranger);
        certificate_done(&certificate);
        assert_int_equal(certificate_init(&certificate, &world->server, NOW_S), ERR_OK);
        change_certificate(&certificate, (enum change)change);
        stranger_open(&stranger, false, &certificate, NULL);
        assert_int_not_equal(meet_server(world, &stranger), ERR_OK); /* it chooses no protocol of ours */
        stranger_close(&stranger);
        certificate_done(&certificate);
    }
}

static int choose_good_protocol(SSL *ssl, const unsigned char **ret, unsigned char *ret_size,
                                const unsigned char *offered, unsigned offered_size, void *context) {
    (void)ssl;
    (void)offered;
    (void)offered_size;
    const char *protocol = context;
    *ret = (const unsigned char *)protocol + 1;
    *ret_size = (unsigned char)protocol[0];
    return SSL_TLSEXT_ERR_OK;
}

static void a_server_must_choose_one_of_our_protocols(void **state) {
    struct world *world = *state;
    static const char *const protocols[] = {good_protocol, "\x08mnemon/3", "\x08mnemon/0", "\x09mnemon/02",
                                            "\x08http/1.1"};
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        struct certificate certificate;
        struct stranger stranger;
        assert_int_equal(certificate_init(&certificate, &world->server, NOW_S), ERR_OK);
        stranger_open(&stranger, false, &certificate, NULL);
        SSL_CTX_set_alpn_select_cb(stranger.context, choose_good_protocol, (void *)(uintptr_t)protocols[i]);
        assert_int_equal(meet_server(world, &stranger) == ERR_OK, i == 0);
        stranger_close(&stranger);
        certificate_done(&certificate);
    }
}

static void other_protocols_and_versions_of_tls_are_refused(void **state) {
    struct world *world = *state;
    struct certificate certificate;
    struct stranger stranger;
    assert_int_equal(certificate_init(&certificate, &world->client, NOW_S), ERR_OK);
    static const char *const protocols[] = {"\x08http/1.1", NULL, "\x08mnemon/9"};
    for (size_t i = 0; i < 3; i++) {
        stranger_open(&stranger, true, &certificate, protocols[i]);
        assert_int_equal(meet_stranger(world, &stranger), ERR_UNSUPPORTED);
        stranger_close(&stranger);
    }
    stranger_open(&stranger, true, &certificate, good_protocol);
    assert_int_equal(SSL_set_max_proto_version(stranger.ssl, TLS1_2_VERSION), 1);
    assert_int_equal(meet_stranger(world, &stranger), ERR_UNSUPPORTED);
    stranger_close(&stranger);
    certificate_done(&certificate);
}

static void one_certificate_is_shown_and_no_more(void **state) {
    struct world *world = *state;
    struct certificate certificate;
    struct certificate second;
    struct stranger stranger;
    assert_int_equal(certificate_init(&certificate, &world->client, NOW_S), ERR_OK);
    assert_int_equal(certificate_init(&second, &world->client, NOW_S), ERR_OK);
    stranger_open(&stranger, true, NULL, good_protocol);
    assert_int_equal(meet_stranger(world, &stranger), ERR_PERMISSION);
    stranger_close(&stranger);
    stranger_open(&stranger, true, &certificate, good_protocol);
    assert_int_equal(SSL_add1_chain_cert(stranger.ssl, second.x509), 1);
    assert_int_equal(meet_stranger(world, &stranger), ERR_PERMISSION);
    stranger_close(&stranger);
    certificate_done(&second);
    certificate_done(&certificate);
}

/* OpenSSL compares a certificate's key with the private one, so this has the public half of the first. */
static EVP_PKEY *mix_keys(EVP_PKEY *public_key, EVP_PKEY *private_key) {
    uint8_t point[128];
    size_t point_size;
    BIGNUM *number = NULL;
    EVP_PKEY *mixed = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    assert_int_equal(EVP_PKEY_get_octet_string_param(public_key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                                     &point_size),
                     1);
    assert_int_equal(EVP_PKEY_get_bn_param(private_key, OSSL_PKEY_PARAM_PRIV_KEY, &number), 1);
    OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0);
    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, point_size);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    assert_int_equal(EVP_PKEY_fromdata(context, &mixed, EVP_PKEY_KEYPAIR, params), 1);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    BN_free(number);
    EVP_PKEY_CTX_free(context);
    return mixed;
}

/* It shows the certificate of another node, whose key it does not have. */
static void a_stolen_certificate_is_not_enough(void **state) {
    struct world *world = *state;
    struct certificate certificate;
    struct certificate own;
    struct stranger stranger;
    assert_int_equal(certificate_init(&certificate, &world->client, NOW_S), ERR_OK);
    assert_int_equal(certificate_init(&own, &world->client, NOW_S), ERR_OK);
    EVP_PKEY *mixed = mix_keys(certificate.key, own.key);
    EVP_PKEY_free(certificate.key);
    certificate.key = mixed;
    stranger_open(&stranger, true, &certificate, good_protocol);
    assert_int_not_equal(meet_stranger(world, &stranger), ERR_OK);
    stranger_close(&stranger);
    certificate_done(&own);
    certificate_done(&certificate);
}

static void a_handshake_that_goes_on_and_on_is_cut_off(void **state) {
    struct world *world = *state;
    uint8_t record[5 + 16000] = {TLS_FIRST_BYTE, 3, 1, 16000 >> 8, 16000 & 0xff, 1, 0, 0xff, 0xff};
    side_open(&world->b, context_new(world, &world->server, 1, 2, 0), NULL);
    for (size_t i = 0; i < sizeof record && !world->b.is_bad; i += 100) {
        size_t size = sizeof record - i < 100 ? sizeof record - i : 100;
        side_take(&world->b, bytes_of(record + i, size));
        assert_true(i <= TLS_HANDSHAKE_SIZE_MAX);
    }
    assert_true(world->b.is_bad);
    assert_int_equal(tls_err(world->b.tls), ERR_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_certificate_says_whose_it_is_for_a_month, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_of_a_certificate_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_certificate_of_another_form_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(both_prove_their_keys_and_say_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_byte_behind_the_end_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_key_is_changed_after_so_much, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_highest_version_of_both_is_spoken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_node_and_oneself_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_certificate_is_renewed_each_day, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_changed_record_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_replayed_stream_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whoever_shows_a_wrong_certificate_is_not_let_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_must_choose_one_of_our_protocols, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_protocols_and_versions_of_tls_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_certificate_is_shown_and_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stolen_certificate_is_not_enough, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_handshake_that_goes_on_and_on_is_cut_off, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
