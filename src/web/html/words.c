#include "web/html/words.h"

void words_init(struct words *words, const char *const *list, size_t count) {
    ASSERT(count <= WORDS_COUNT_MAX);
    *words = (struct words){.list = list};
    for (size_t id = 1; id < count; id++) {
        struct bytes name = bytes_of_string(list[id]);
        uint64_t key = html_key(name);
        size_t slot = words_slot_of(key);
        while (words->slots[slot].id != 0) {
            ASSERT(words->slots[slot].key != key);
            slot = (slot + 1) % WORDS_SLOTS_COUNT;
        }
        words->slots[slot] = (struct words_slot){key, (uint8_t)name.size, (uint8_t)id};
    }
}
