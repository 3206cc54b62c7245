/*
 * mime-type - anything as the value of Content-Type. What comes out is a type or nothing: sent in a header of
 * its own it must be read as the same again, by rules that know nothing of commas and quotes.
 */
#include "web/type/mime_type.h"

#include <string.h>

#include "fuzz.h"

/* tokens around one slash, in lower case */
static void check_essence(const struct mime_type *type) {
    struct bytes essence = mime_type_essence(type);
    size_t slash = bytes_find_byte(essence, '/');
    ASSERT(slash > 0 && slash + 1 < essence.size && essence.size <= MIME_ESSENCE_SIZE_MAX);
    for (size_t i = 0; i < essence.size; i++) {
        uint8_t byte = essence.data[i];
        ASSERT(i == slash || (byte > ' ' && byte < 0x7f && strchr("/,;\"()<>@[]{}=?:\\", byte) == NULL));
        ASSERT(byte < 'A' || byte > 'Z');
    }
}

static void check(struct bytes input, bool (*read)(struct mime_type *type, struct bytes value)) {
    struct mime_type type;
    struct mime_type again;
    bool is_type = read(&type, input);
    ASSERT(is_type == (type.essence[0] != '\0'));
    if (!is_type) {
        ASSERT(!type.has_charset && type.charset[0] == '\0');
        return;
    }
    check_essence(&type);
    ASSERT(type.has_charset || type.charset[0] == '\0');
    ASSERT(mime_type_charset(&type).size <= MIME_CHARSET_SIZE_MAX);
    ASSERT(mime_type_parse(&again, mime_type_essence(&type)));
    ASSERT(strcmp(again.essence, type.essence) == 0 && !again.has_charset);
    bool is_any = strcmp(type.essence, "*/*") == 0;
    ASSERT(mime_type_extract(&again, mime_type_essence(&type)) == !is_any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size);
    check(input, mime_type_parse);
    check(input, mime_type_extract);
    return 0;
}
