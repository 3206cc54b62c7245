/*
 * sitemap - anything as a sitemap. The first byte says how it is cut into pieces, which must not matter.
 */
#include "crawl/rules/sitemap.h"

#include "base/map.h"
#include "fuzz.h"

/* All that was reported, in one number. */
struct sum {
    uint64_t hash;
    uint32_t count;
};

static void add(void *context, const struct sitemap_entry *entry) {
    struct sum *sum = context;
    ASSERT(entry->url.size > 0 && entry->url.size <= SITEMAP_URL_SIZE_MAX);
    sum->hash = map_hash(entry->url, sum->hash + entry->is_sitemap);
    sum->count++;
}

static struct sum read_pieces(struct bytes text, size_t piece_size) {
    static struct sitemap sitemap;
    struct sum sum = {0, 0};
    sitemap_init(&sitemap, add, &sum);
    while (text.size > 0) {
        size_t size = text.size < piece_size ? text.size : piece_size;
        sitemap_feed(&sitemap, bytes_slice(text, 0, size));
        text = bytes_skip(text, size);
    }
    sitemap_finish(&sitemap);
    ASSERT(sum.count == sitemap.entries_count && sitemap.level >= sitemap.entry_level);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    struct bytes text = bytes_of(data + 1, size - 1);
    struct sum whole = read_pieces(text, size);
    struct sum pieces = read_pieces(text, data[0] % 16 + 1u);
    ASSERT(whole.count == pieces.count && whole.hash == pieces.hash);

    /* The same behind the decompressor, which plain text passes. */
    static struct sitemap sitemap;
    struct sum sum = {0, 0};
    struct source_memory memory;
    source_memory_init(&memory, text);
    sitemap_init(&sitemap, add, &sum);
    enum err err = sitemap_read(&sitemap, &memory.source, NULL);
    ASSERT(err != ERR_MEMORY);
    return 0;
}
