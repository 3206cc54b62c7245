/* What is here, and how it is found: by its key, the hash of its SURT, its digest, words of its title. */
#include <sodium.h>
#include <stdlib.h>

#include "node/crowd/offers_state.h"

enum { HEAT_ONE = 1 << 10, HEAT_MAX = 1 << 30 };
static const uint64_t HEAT_HALF_US = 60000000;

enum err offers_index_init(struct offers *offers) {
    uint32_t count_max = offers->config.count_max;
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed); /* keys and hashes come from others */
    map_init(&offers->by_key, RINGKEY_SIZE, sizeof(uint32_t), count_max, seed);
    map_init(&offers->by_hash, WISH_HASH_SIZE, sizeof(uint32_t), count_max, seed);
    map_init(&offers->by_digest, SHA256_SIZE, sizeof(uint32_t), count_max, seed);
    offers->slots = calloc(count_max, sizeof *offers->slots);
    offers->masks = calloc(count_max, sizeof *offers->masks);
    if (offers->slots == NULL || offers->masks == NULL) {
        return ERR_MEMORY;
    }
    for (uint32_t i = 0; i < count_max; i++) {
        offers->slots[i].next_of_hash = i + 1 < count_max ? i + 2 : 0;
    }
    offers->first_free = 1;
    return ERR_OK;
}

void offers_index_done(struct offers *offers) {
    for (size_t i = 0; offers->slots != NULL && i < offers->config.count_max; i++) {
        free(offers->slots[i].url);
        free(offers->slots[i].takers);
    }
    free(offers->slots);
    free(offers->masks);
    map_done(&offers->by_key);
    map_done(&offers->by_hash);
    map_done(&offers->by_digest);
}

struct offer *offers_index_find(struct offers *offers, const struct ringkey *key) {
    const uint32_t *slot = map_get(&offers->by_key, bytes_of(key->bytes, RINGKEY_SIZE));
    return slot != NULL ? &offers->slots[*slot] : NULL;
}

/* ---- chains of captures with one hash or digest ---- */

static struct bytes hash_of(const struct offer *offer) {
    return bytes_of(offer->hash, WISH_HASH_SIZE);
}

static struct bytes digest_of(const struct offer *offer) {
    return bytes_of(offer->sum.digest, SHA256_SIZE);
}

static uint32_t *link_of(struct offer *offer, bool by_hash) {
    return by_hash ? &offer->next_of_hash : &offer->next_of_digest;
}

static void chain(struct offers *offers, uint32_t slot, bool by_hash) {
    struct offer *offer = &offers->slots[slot];
    uint32_t *first =
        map_put(by_hash ? &offers->by_hash : &offers->by_digest, by_hash ? hash_of(offer) : digest_of(offer));
    ASSERT(first != NULL);
    *link_of(offer, by_hash) = *first;
    *first = slot + 1;
}

static void unchain(struct offers *offers, uint32_t slot, bool by_hash) {
    struct offer *offer = &offers->slots[slot];
    struct map *map = by_hash ? &offers->by_hash : &offers->by_digest;
    struct bytes key = by_hash ? hash_of(offer) : digest_of(offer);
    uint32_t *first = map_get(map, key);
    ASSERT(first != NULL);
    uint32_t *at = first;
    while (*at != slot + 1) {
        ASSERT(*at != 0);
        at = link_of(&offers->slots[*at - 1], by_hash);
    }
    *at = *link_of(offer, by_hash);
    if (*first == 0) {
        map_remove(map, key);
    }
}

/* ---- the order of use ---- */

static void put_newest(struct offers *offers, struct offer *offer) {
    uint32_t number = (uint32_t)(offer - offers->slots) + 1;
    offer->newer = 0;
    offer->older = offers->newest;
    *(offers->newest != 0 ? &offers->slots[offers->newest - 1].newer : &offers->oldest) = number;
    offers->newest = number;
}

static void take_out(struct offers *offers, const struct offer *offer) {
    *(offer->newer != 0 ? &offers->slots[offer->newer - 1].older : &offers->newest) = offer->older;
    *(offer->older != 0 ? &offers->slots[offer->older - 1].newer : &offers->oldest) = offer->newer;
}

/* ---- coming and going ---- */

void offers_index_remove(struct offers *offers, struct offer *offer) {
    uint32_t slot = (uint32_t)(offer - offers->slots);
    unchain(offers, slot, true);
    unchain(offers, slot, false);
    take_out(offers, offer);
    map_remove(&offers->by_key, bytes_of(offer->key.bytes, RINGKEY_SIZE));
    offers->stat.count--;
    offers->stat.size -= offer->file_size;
    free(offer->url);
    free(offer->takers);
    *offer = (struct offer){.next_of_hash = offers->first_free};
    offers->masks[slot] = 0;
    offers->first_free = slot + 1;
}

bool offers_index_evict(struct offers *offers, uint64_t size, struct ringkey *ret_key) {
    ASSERT(size <= offers->config.size_max);
    if (offers->first_free != 0 && offers->stat.size + size <= offers->config.size_max) {
        return false;
    }
    struct offer *oldest = &offers->slots[offers->oldest - 1];
    *ret_key = oldest->key;
    offers_index_remove(offers, oldest);
    return true;
}

static bool has_memory(struct offers *offers) {
    size_t count = offers->stat.count + 1 < offers->config.count_max ? (size_t)offers->stat.count + 1
                                                                     : offers->config.count_max;
    return map_reserve(&offers->by_key, count) == ERR_OK && map_reserve(&offers->by_hash, count) == ERR_OK &&
           map_reserve(&offers->by_digest, count) == ERR_OK;
}

bool offers_index_add(struct offers *offers, const struct offers_entry *entry) {
    ASSERT(offers->first_free != 0);
    size_t text_size = entry->url.size + entry->title.size + entry->words.size;
    char *text = malloc(text_size + 1);
    if (text == NULL || !has_memory(offers)) {
        free(text);
        return false;
    }
    uint32_t slot = offers->first_free - 1;
    struct offer *offer = &offers->slots[slot];
    offers->first_free = offer->next_of_hash;
    *offer = (struct offer){
        .is_used = true,
        .key = entry->key,
        .sum = entry->sum,
        .file_size = entry->file_size,
        .url = text,
        .url_size = entry->url.size,
        .title_size = entry->title.size,
        .words_size = entry->words.size,
        .heat_at_us = offers_now_us(offers),
    };
    memcpy(offer->hash, entry->hash, WISH_HASH_SIZE);
    const struct bytes parts[] = {entry->url, entry->title, entry->words};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].size > 0) {
            memcpy(text, parts[i].data, parts[i].size);
        }
        text += parts[i].size;
    }
    uint32_t *found = map_put(&offers->by_key, bytes_of(entry->key.bytes, RINGKEY_SIZE));
    ASSERT(found != NULL);
    *found = slot;
    chain(offers, slot, true);
    chain(offers, slot, false);
    put_newest(offers, offer);
    offers->masks[slot] = offers_title_mask(entry->words);
    offers->stat.count++;
    offers->stat.size += entry->file_size;
    return true;
}

/* ---- use ---- */

uint32_t offers_heat(struct offers *offers, struct offer *offer) {
    uint64_t now_us = offers_now_us(offers);
    while (offer->heat > 0 && now_us - offer->heat_at_us >= HEAT_HALF_US) {
        offer->heat /= 2;
        offer->heat_at_us += HEAT_HALF_US;
    }
    offer->heat_at_us = offer->heat == 0 ? now_us : offer->heat_at_us;
    return (offer->heat + HEAT_ONE - 1) / HEAT_ONE;
}

void offers_index_use(struct offers *offers, struct offer *offer, bool is_asked) {
    take_out(offers, offer);
    put_newest(offers, offer);
    if (is_asked) {
        (void)offers_heat(offers, offer);
        offer->heat += offer->heat < HEAT_MAX ? HEAT_ONE : 0;
    }
}

/* ---- what answers a wish ---- */

/* The best so far, the best first. */
struct choice {
    const struct wish *wish;
    struct offer *best[WISH_FINDINGS_MAX];
    size_t count;
};

static void consider(struct choice *choice, struct offer *offer) {
    const struct wish *wish = choice->wish;
    int64_t time_us = ringkey_time_us(&offer->key);
    bool has_time = wish->kind != WISH_DIGEST;
    if (has_time && !wish_takes_time(wish, time_us)) {
        return;
    }
    size_t place = choice->count;
    while (has_time && place > 0 &&
           wish_prefers(wish, time_us, ringkey_time_us(&choice->best[place - 1]->key))) {
        place--;
    }
    if (place == WISH_FINDINGS_MAX) {
        return;
    }
    choice->count += choice->count < WISH_FINDINGS_MAX;
    memmove(&choice->best[place + 1], &choice->best[place],
            (choice->count - place - 1) * sizeof choice->best[0]);
    choice->best[place] = offer;
}

static void consider_chain(struct offers *offers, struct choice *choice, bool by_hash) {
    struct bytes key = by_hash ? bytes_of(choice->wish->hash, WISH_HASH_SIZE)
                               : bytes_of(choice->wish->digest, WISH_DIGEST_SIZE);
    const uint32_t *first = map_get(by_hash ? &offers->by_hash : &offers->by_digest, key);
    for (uint32_t slot = first != NULL ? *first : 0; slot != 0;
         slot = *link_of(&offers->slots[slot - 1], by_hash)) {
        consider(choice, &offers->slots[slot - 1]);
    }
}

/* The masks of 4,096 titles are 32 KiB: it is faster to look at all of them than to keep lists of words. */
static void consider_words(struct offers *offers, struct choice *choice) {
    buf_clear(&offers->words);
    offers_title_put_words(&offers->words, choice->wish->words);
    struct bytes words = buf_bytes(&offers->words);
    uint64_t mask = offers_title_mask(words);
    if (mask == 0 || offers->words.err != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < offers->config.count_max; i++) {
        struct offer *offer = &offers->slots[i];
        if ((offers->masks[i] & mask) != mask) {
            continue;
        }
        struct bytes title_words =
            bytes_of(offer->url + offer->url_size + offer->title_size, offer->words_size);
        if (offers_title_has_words(title_words, words)) {
            consider(choice, offer);
        }
    }
}

static struct wish_finding index_describe(const struct offer *offer, enum wish_kind kind) {
    struct wish_finding finding = {.key = offer->key, .size = offer->sum.size};
    if (kind != WISH_URL) {
        bool is_short = offer->url_size <= WISH_URL_SIZE_MAX;
        finding.url = bytes_of(offer->url, is_short ? offer->url_size : 0);
        finding.title = bytes_of(offer->url + offer->url_size, offer->title_size);
    }
    return finding;
}

/* The lock is held. */
static void index_choose(struct offers *offers, struct choice *choice) {
    if (choice->wish->kind == WISH_WORDS) {
        consider_words(offers, choice);
    } else {
        consider_chain(offers, choice, choice->wish->kind == WISH_URL);
    }
}

size_t offers_have(void *context, struct bytes bytes, uint8_t *memory) {
    struct offers *offers = context;
    struct wish wish;
    if (offers->config.is_closed || !wish_read(bytes, &wish)) {
        return 0;
    }
    struct wish_finding findings[WISH_FINDINGS_MAX];
    struct choice choice = {.wish = &wish};
    size_t size = 0;
    pthread_mutex_lock(&offers->lock);
    index_choose(offers, &choice);
    for (size_t i = 0; i < choice.count; i++) {
        findings[i] = index_describe(choice.best[i], wish.kind);
    }
    if (choice.count > 0) {
        offers_index_use(offers, choice.best[0], true);
        size = wish_write_findings(findings, choice.count, memory).size;
    }
    pthread_mutex_unlock(&offers->lock);
    return size;
}

size_t offers_have_own(struct offers *offers, const struct wish *wish,
                       struct ringkey out[WISH_FINDINGS_MAX]) {
    struct choice choice = {.wish = wish};
    pthread_mutex_lock(&offers->lock);
    index_choose(offers, &choice);
    for (size_t i = 0; i < choice.count; i++) {
        out[i] = choice.best[i]->key;
    }
    pthread_mutex_unlock(&offers->lock);
    return choice.count;
}
