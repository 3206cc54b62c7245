/*
 * attested - the fields by which nodes vouch for captures, as they come with captures and in files of others.
 * What is read must be parts of the field, in their order, and fit to stand in a record.
 */
#include "store/document/attested.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct attested attested;
    struct bytes field = bytes_of(data, size);
    bool is_any = attested_read(field, &attested);
    ASSERT(attested_is_later(field) == (is_any && attested.later > 0));
    if (!is_any) {
        return 0;
    }
    ASSERT(size <= ATTESTED_SIZE_MAX && attested.key.size == ATTESTED_KEY_SIZE && attested.text.size > 0);
    ASSERT(attested.later == 0 || attested.later > ATTESTED_VERSION_LAST);
    ASSERT(attested.key.data + attested.key.size + 1 == attested.text.data);
    ASSERT(attested.text.data + attested.text.size == data + size);
    ASSERT(bytes_find_byte(field, '\n') == size && bytes_find_byte(field, '\r') == size);
    return 0;
}
