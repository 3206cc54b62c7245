/* Arbitrary bytes as packed links. Held to: what is read can be written, and read again as the same. */
#include "fuzz.h"

#include <stdlib.h>

#include "protocol/links/links_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct links_code *code;
    static struct links_code_link links[LINKS_CODE_LINKS_MAX];
    static uint8_t text[LINKS_CODE_TEXT_SIZE_MAX];
    static uint8_t memory[1 << 18];
    struct links_code_batch batch;
    if (code == NULL) {
        code = links_code_new();
        ASSERT(code != NULL);
    }
    if (links_code_read(code, bytes_of(data, size), &batch) != NULL) {
        return 0;
    }
    size_t used = 0;
    for (size_t i = 0; i < batch.count; i++) {
        struct bytes url = batch.links[i].url;
        ASSERT(links_code_takes(url) && url.size <= sizeof text - used);
        memcpy(text + used, url.data, url.size);
        links[i] = batch.links[i];
        links[i].url = bytes_of(text + used, url.size);
        used += url.size;
    }
    size_t count = batch.count;
    for (enum links_code_way way = LINKS_CODE_BY_MODEL; way <= LINKS_CODE_BY_TABLE; way++) {
        size_t written = links_code_write(code, way, batch.job, links, count, memory, sizeof memory);
        ASSERT(written > 0);
        const char *wrong = links_code_read(code, bytes_of(memory, written), &batch);
        ASSERT(wrong == NULL && batch.count == count);
        for (size_t i = 0; i < count; i++) {
            ASSERT(bytes_equal(batch.links[i].url, links[i].url) && batch.links[i].depth == links[i].depth);
        }
    }
    return 0;
}
