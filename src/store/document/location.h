/* location - where a record lies: one compressed frame of one segment. */
#ifndef MNEMON_STORE_DOCUMENT_LOCATION_H
#define MNEMON_STORE_DOCUMENT_LOCATION_H

#include <stdint.h>

struct location {
    uint32_t segment; /* number of the segment in its volume, from 1 */
    uint32_t length;  /* of the frame, in the file */
    uint64_t offset;  /* of the frame, in the file */
};

#endif
