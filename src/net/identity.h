/*
 * identity - who a node is: an Ed25519 key pair, kept in DIR/identity.
 *
 * Made at random if there is none, written beside its place and renamed, so that a crash leaves the whole
 * file or nothing. The file is text, three lines, mode 0600:
 *
 *      mnemon identity 1
 *      seed ABC…    52 digits of base32: the secret
 *      key ABC…     52 digits of base32: the public key that follows from it, so that damage is seen
 *
 * One that others may read, that is damaged or that is no plain file is refused, never replaced: a node that
 * silently became somebody else would lose its membership. The public key in lower-case base32 is a node's
 * name for people. Nothing here has state of its own; a loaded identity may be read by any thread.
 * Golden vectors: docs/protocol/transport.md.
 */
#ifndef MNEMON_NET_IDENTITY_H
#define MNEMON_NET_IDENTITY_H

#include "base/err.h"
#include "base/peer.h"

enum {
    IDENTITY_SEED_SIZE = 32,
    IDENTITY_SECRET_SIZE = 64, /* libsodium keeps the public key behind the seed */
    IDENTITY_SIGNATURE_SIZE = 64,
    IDENTITY_TEXT_SIZE = 53, /* 52 digits and a zero byte */
    IDENTITY_PATH_SIZE_MAX = 4096,
};

struct identity {
    uint8_t key[PEER_KEY_SIZE]; /* public, Ed25519 */
    uint8_t secret[IDENTITY_SECRET_SIZE];
    uint8_t exchange_key[PEER_KEY_SIZE];    /* the same pair for X25519 */
    uint8_t exchange_secret[PEER_KEY_SIZE]; /* see seal.h */
};

/* Read DIR/identity, or make it. The detail names the file and says what to do. */
enum err identity_load(struct identity *identity, const char *directory,
                       struct err_detail *detail) MUST_CHECK;

/* The pair that follows from a seed; ERR_SYSTEM if libsodium does not work on this machine. */
enum err identity_from_seed(struct identity *identity, const uint8_t seed[IDENTITY_SEED_SIZE]) MUST_CHECK;

/* A new one that is kept nowhere: for tests, and for clients that nobody must know again. */
enum err identity_random(struct identity *identity) MUST_CHECK;

/* Overwrites the secrets. */
void identity_done(struct identity *identity);

/*
 * A signature covers the context too ("charter", "capture"), so that one made for a purpose is worth nothing
 * for another. The context is a text of 1 to 32 bytes. identity: a struct identity, so that this is a
 * charter_sign and a version_sign of the protocols.
 */
void identity_sign(const void *identity, const char *context, struct bytes message,
                   uint8_t signature[IDENTITY_SIGNATURE_SIZE]);
bool identity_verify(const uint8_t key[PEER_KEY_SIZE], const char *context, struct bytes message,
                     const uint8_t signature[IDENTITY_SIGNATURE_SIZE]);

/* 52 digits of lower-case base32. Returns out. */
const char *identity_key_format(const uint8_t key[PEER_KEY_SIZE], char out[IDENTITY_TEXT_SIZE]);

/* In either case. False if it is none, *ret_key then untouched. */
bool identity_key_parse(struct bytes text, uint8_t ret_key[PEER_KEY_SIZE]);

#endif
