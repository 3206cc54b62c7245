#include "net/contacts.h"

#include <sodium.h>

enum { PLACE_SIZE = 18 };

static const struct contacts_config defaults = {
    .proved_max = 4096,
    .guests_max = 4096,
    .proof_us = UINT64_C(3600000000),
    .first = {.per_second = 2, .burst = 8},
    .first_total = {.per_second = 2000, .burst = 2000},
};

/* An address as the key of a table and as input of a hash: a struct has gaps. */
struct place {
    uint8_t bytes[PLACE_SIZE];
};

static struct place contacts_place_of(const struct address *address) {
    struct place place;
    memcpy(place.bytes, address->ip, 16);
    place.bytes[16] = (uint8_t)(address->port & 0xff);
    place.bytes[17] = (uint8_t)(address->port >> 8);
    return place;
}

enum err contacts_init(struct contacts *contacts, const struct contacts_config *config) {
    *contacts = (struct contacts){.config = *config};
    struct contacts_config *mine = &contacts->config;
    mine->proved_max = mine->proved_max > 0 ? mine->proved_max : defaults.proved_max;
    mine->guests_max = mine->guests_max > 0 ? mine->guests_max : defaults.guests_max;
    mine->proof_us = mine->proof_us > 0 ? mine->proof_us : defaults.proof_us;
    mine->first = mine->first.burst > 0 ? mine->first : defaults.first;
    mine->first_total = mine->first_total.burst > 0 ? mine->first_total : defaults.first_total;
    randombytes_buf(contacts->secret, sizeof contacts->secret);
    enum err err = lru_init(&contacts->proved, PLACE_SIZE, sizeof(struct contact), mine->proved_max);
    if (err == ERR_OK) {
        err = lru_init(&contacts->guests, PLACE_SIZE, sizeof(struct contact), mine->guests_max);
    }
    if (err != ERR_OK) {
        contacts_done(contacts);
    }
    return err;
}

void contacts_done(struct contacts *contacts) {
    lru_done(&contacts->proved);
    lru_done(&contacts->guests);
    sodium_memzero(contacts->secret, sizeof contacts->secret);
}

bool contact_is_proved(const struct contact *contact, uint64_t now_us) {
    return now_us < contact->proved_until_us;
}

struct contact *contacts_find(struct contacts *contacts, const struct address *address) {
    struct place place = contacts_place_of(address);
    struct contact *contact = lru_find(&contacts->proved, place.bytes);
    return contact != NULL ? contact : lru_find(&contacts->guests, place.bytes);
}

static struct contact *find_or_add(struct contacts *contacts, const struct address *address) {
    struct contact *contact = contacts_find(contacts, address);
    if (contact == NULL) {
        struct place place = contacts_place_of(address);
        contact = lru_add(&contacts->guests, place.bytes);
        contact->address = *address;
    }
    return contact;
}

void contacts_received(struct contacts *contacts, const struct address *address, size_t size,
                       uint64_t now_us) {
    struct contact *contact = find_or_add(contacts, address);
    contact->heard_at_us = now_us;
    if (!contact_is_proved(contact, now_us)) {
        if (contact->received_bytes == 0) {
            contact->sent_bytes = 0; /* what we sent of our own accord was no answer */
        }
        contact->received_bytes += size;
    }
}

bool contacts_may_send(struct contacts *contacts, const struct address *address, size_t size,
                       uint64_t now_us) {
    struct contact *contact = find_or_add(contacts, address);
    if (contact_is_proved(contact, now_us)) {
        return true;
    }
    if (contact->received_bytes == 0) {
        return bucket_take(&contact->first, contacts->config.first, now_us) &&
               bucket_take(&contacts->first_total, contacts->config.first_total, now_us);
    }
    if (contact->sent_bytes + size > contact->received_bytes * CONTACT_FACTOR) {
        return false;
    }
    contact->sent_bytes += size;
    return true;
}

bool contacts_need_proof(struct contacts *contacts, const struct address *address, uint64_t now_us) {
    struct contact *contact = find_or_add(contacts, address);
    if (contact_is_proved(contact, now_us) || now_us < contact->challenge_at_us) {
        return false;
    }
    contact->challenge_at_us = now_us + CONTACT_CHALLENGE_US;
    return true;
}

static void hash_slice(const struct contacts *contacts, const struct address *address,
                       const uint8_t key[PEER_KEY_SIZE], uint64_t slice, uint8_t out[CONTACT_COOKIE_SIZE]) {
    struct place place = contacts_place_of(address);
    crypto_generichash_state state;
    crypto_generichash_init(&state, contacts->secret, sizeof contacts->secret, CONTACT_COOKIE_SIZE);
    crypto_generichash_update(&state, place.bytes, sizeof place.bytes);
    crypto_generichash_update(&state, key, PEER_KEY_SIZE);
    crypto_generichash_update(&state, (const uint8_t *)&slice, sizeof slice);
    crypto_generichash_final(&state, out, CONTACT_COOKIE_SIZE);
}

void contacts_cookie(const struct contacts *contacts, const struct address *address,
                     const uint8_t key[PEER_KEY_SIZE], uint64_t now_us, uint8_t out[CONTACT_COOKIE_SIZE]) {
    hash_slice(contacts, address, key, now_us / CONTACT_SLICE_US, out);
}

bool contacts_is_cookie(const struct contacts *contacts, const struct address *address,
                        const uint8_t key[PEER_KEY_SIZE], uint64_t now_us,
                        const uint8_t cookie[CONTACT_COOKIE_SIZE]) {
    uint8_t expected[CONTACT_COOKIE_SIZE];
    uint64_t slice = now_us / CONTACT_SLICE_US;
    for (uint64_t age = 0; age < 2 && age <= slice; age++) {
        hash_slice(contacts, address, key, slice - age, expected);
        if (sodium_memcmp(expected, cookie, sizeof expected) == 0) {
            return true;
        }
    }
    return false;
}

void contacts_prove(struct contacts *contacts, const struct address *address,
                    const uint8_t key[PEER_KEY_SIZE], uint64_t now_us) {
    struct place place = contacts_place_of(address);
    struct contact *contact = lru_find(&contacts->proved, place.bytes);
    if (contact == NULL) {
        lru_remove(&contacts->guests, place.bytes);
        contact = lru_add(&contacts->proved, place.bytes);
        contact->address = *address;
    }
    memcpy(contact->key, key, PEER_KEY_SIZE);
    contact->heard_at_us = now_us;
    contact->proved_until_us = now_us + contacts->config.proof_us;
    contact->received_bytes = 0;
    contact->sent_bytes = 0;
}
