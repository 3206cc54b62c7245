/*
 * index_mime - one byte for the media types that nearly every capture has.
 *
 * A code is part of the format of the index: it keeps its meaning for ever. New types are appended.
 */
#ifndef MNEMON_STORE_INDEX_INDEX_MIME_H
#define MNEMON_STORE_INDEX_INDEX_MIME_H

#include "base/bytes.h"

enum { INDEX_MIME_OTHER = 255 };

/* INDEX_MIME_OTHER where the type has no code. Exact: other capitals are another type. */
uint8_t index_mime_code(struct bytes mime);

/* False where no type has that code, *ret_mime untouched. The slice lives for ever. */
bool index_mime_of_code(uint8_t code, struct bytes *ret_mime);

#endif
