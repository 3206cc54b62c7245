/*
 * zip - the layout of ZIP files (APPNOTE 6.3.10), as far as WACZ needs it: shared by zip_reader and
 * zip_writer.
 *
 *      [local header, name, extra][bytes of the entry]([data descriptor]) …   the entries
 *      [central header, name, extra, comment] …                               the directory
 *      ([zip64 end][zip64 locator])[end, comment]                             where the directory is
 *
 * All numbers are little-endian. A 16-bit or 32-bit field that is too small for its value is filled with ones
 * and the value stands in the extra field ZIP_EXTRA_64 of the entry, or in the zip64 end.
 *
 *      local header    0 signature   4 version   6 flags   8 method  10 time  12 date  14 crc-32
 *                     18 stored size            22 size   26 name length     28 extra length
 *      central header  0 signature   4 made by   6 version  8 flags  10 method  12 time  14 date  16 crc-32
 *                     20 stored size            24 size   28 name length     30 extra length
 *                     32 comment length  34 disk  36 attributes  38 attributes  42 offset of local header
 *      end             0 signature   4 disk  6 disk of directory  8 entries here  10 entries
 *                     12 directory size         16 directory offset          20 comment length
 *      zip64 locator   0 signature   4 disk      8 offset of zip64 end       16 disks
 *      zip64 end       0 signature   4 size of the rest  12 made by  14 version  16 disk  20 disk of
 * directory 24 entries here           32 entries                   40 directory size 48 directory offset
 *      extra field     0 id          2 length    4 value; in ZIP_EXTRA_64 size, stored size, offset, each
 *                                                only if the header has ones
 */
#ifndef MNEMON_WARC_ZIP_H
#define MNEMON_WARC_ZIP_H

#include <stdint.h>

enum {
    ZIP_LOCAL_SIZE = 30,
    ZIP_CENTRAL_SIZE = 46,
    ZIP_END_SIZE = 22,
    ZIP_LOCATOR_SIZE = 20,
    ZIP_END64_SIZE = 56,
    ZIP_COMMENT_SIZE_MAX = UINT16_MAX,
    ZIP_EXTRA_64 = 1,
};

static const uint32_t ZIP_LOCAL_SIGNATURE = 0x04034b50;
static const uint32_t ZIP_CENTRAL_SIGNATURE = 0x02014b50;
static const uint32_t ZIP_END_SIGNATURE = 0x06054b50;
static const uint32_t ZIP_LOCATOR_SIGNATURE = 0x07064b50;
static const uint32_t ZIP_END64_SIGNATURE = 0x06064b50;

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

enum zip_flag {
    ZIP_FLAG_ENCRYPTED = 1 << 0,
    ZIP_FLAG_DESCRIPTOR = 1 << 3, /* the local header has no sizes; they follow the bytes of the entry */
    ZIP_FLAG_PATCH = 1 << 5,
    ZIP_FLAG_STRONG = 1 << 6, /* encryption, likewise the last */
    ZIP_FLAG_UTF8 = 1 << 11,
    ZIP_FLAG_MASKED = 1 << 13,
};

static inline uint16_t zip_get16(const uint8_t *at) {
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t zip_get32(const uint8_t *at) {
    return zip_get16(at) | (uint32_t)zip_get16(at + 2) << 16;
}

static inline uint64_t zip_get64(const uint8_t *at) {
    return zip_get32(at) | (uint64_t)zip_get32(at + 4) << 32;
}

static inline void zip_set16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void zip_set32(uint8_t *at, uint32_t value) {
    zip_set16(at, (uint16_t)value);
    zip_set16(at + 2, (uint16_t)(value >> 16));
}

static inline void zip_set64(uint8_t *at, uint64_t value) {
    zip_set32(at, (uint32_t)value);
    zip_set32(at + 4, (uint32_t)(value >> 32));
}

#endif
