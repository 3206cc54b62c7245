/* deletion-text - arbitrary bytes as the text of a decree that deletes: understood as a whole or refused, and
 * what it deletes is what it says. */
#include "node/ring/deletion_text.h"

#include <stdlib.h>

#include "base/assert.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t VERSION = UINT64_C(1767225600000000);
    struct err_detail detail = {0};
    struct deletion_text *text = malloc(sizeof *text);
    struct deletion_set *set = deletion_set_new();
    if (text == NULL || set == NULL) {
        abort();
    }
    enum err err = deletion_text_read(bytes_of(data, size), VERSION, text, set, &detail);
    ASSERT(err != ERR_OK || (deletion_text_is_reason(text->reason) && text->urls_count > 0));
    ASSERT(err == ERR_OK || detail.text[0] != '\0');
    size_t count = err == ERR_OK ? deletion_set_count(set) : 0;
    for (size_t i = 0; i < count; i++) { /* each alone, before the order is another */
        const struct deletion *deletion = deletion_set_at(set, i);
        ASSERT(deletion->key.size > 0 && deletion->to_us <= (int64_t)VERSION);
        bool is_some = deletion->from_us <= deletion->to_us;
        ASSERT(deletion_covers(deletion, deletion->key, BYTES(""), deletion->to_us) == is_some);
    }
    if (count > 0) {
        deletion_set_seal(set);
        ASSERT(deletion_set_end_us(set) == text->to_us);
        for (size_t i = 0; i < count; i++) {
            const struct deletion *deletion = deletion_set_at(set, i);
            bool is_some = deletion->from_us <= deletion->to_us;
            ASSERT(!is_some || deletion_set_covers(set, deletion->key, BYTES(""), deletion->to_us));
            ASSERT(!deletion_set_covers(set, deletion->key, BYTES(""), (int64_t)VERSION + 1));
        }
    }
    deletion_set_free(set);
    free(text);
    return 0;
}
