/*
 * words - a fixed list of names of elements or attributes, found by the key that the tokenizer made on its
 * way.
 */
#ifndef MNEMON_WEB_HTML_WORDS_H
#define MNEMON_WEB_HTML_WORDS_H

#include "web/html/html.h"

enum { WORDS_SLOTS_COUNT = 256, WORDS_COUNT_MAX = WORDS_SLOTS_COUNT / 2 };

struct words_slot {
    uint64_t key;
    uint8_t size;
    uint8_t id; /* 0: empty */
};

struct words {
    const char *const *list;
    struct words_slot slots[WORDS_SLOTS_COUNT];
};

/*
 * list[1] to list[count - 1], in lower case, get the ids 1 to count - 1; list[0], and whatever is not in the
 * list, has id 0. The list must stay.
 */
void words_init(struct words *words, const char *const *list, size_t count);

static inline size_t words_slot_of(uint64_t key) {
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 56);
}
_Static_assert(WORDS_SLOTS_COUNT == 1 << 8, "a hash has 8 bits");

/* The id of the name, in any case, whose html_key() is key. */
static inline unsigned words_find(const struct words *words, uint64_t key, struct bytes name) {
    size_t slot = words_slot_of(key);
    while (words->slots[slot].id != 0) {
        const struct words_slot *candidate = &words->slots[slot];
        if (candidate->key == key && candidate->size == name.size) {
            bool is_long = name.size > sizeof key; /* only of longer ones two may have one key */
            struct bytes known = bytes_of(words->list[candidate->id], name.size);
            return !is_long || bytes_equal_ignore_case(known, name) ? candidate->id : 0;
        }
        slot = (slot + 1) % WORDS_SLOTS_COUNT;
    }
    return 0;
}

#endif
