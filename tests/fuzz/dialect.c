/*
 * dialect - hellos of other nodes: the first bytes that are read of each. What is read must be within its
 * bounds and, written again without the fields of later programs, give the same bytes.
 */
#include "protocol/ring/dialect.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dialect dialect;
    bool wants_answer;
    uint8_t again[DIALECT_HELLO_SIZE_MAX];
    struct bytes input = bytes_of(data, size);
    if (dialect_read_hello(input, &dialect, &wants_answer, NULL) != ERR_OK) {
        return 0;
    }
    ASSERT(dialect.lowest > 0 && dialect.lowest <= dialect.highest);
    ASSERT(strlen(dialect.program) <= DIALECT_PROGRAM_SIZE_MAX);
    ASSERT(dialect.site[0] == '\0' || dialect_site_is_valid(bytes_of_string(dialect.site)));
    ASSERT(!dialect.has_two || address_is_ipv4(&dialect.main) != address_is_ipv4(&dialect.second));
    dialect.site[0] = '\0'; /* these may stand behind fields of later programs */
    dialect.has_two = false;
    struct bytes written = dialect_write_hello(&dialect, wants_answer, again);
    ASSERT(written.size <= size && written.data[0] == (data[0] & 1));
    ASSERT(bytes_equal(bytes_skip(written, 1), bytes_slice(input, 1, written.size)));
    uint16_t common = dialect_common(&dialect, &dialect_of_program);
    ASSERT(common == dialect_common(&dialect_of_program, &dialect));
    ASSERT(common == 0 || (common >= dialect.lowest && common <= dialect.highest));
    return 0;
}
