/* fuzz - the entry point that libFuzzer and driver.c both call, and how an input is taken apart. */
#ifndef MNEMON_TESTS_FUZZ_H
#define MNEMON_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of an input of several messages: sender byte, u16 length, message; a length of 65,535: time passes. */
struct fuzz_message {
    uint8_t sender;
    bool passes_time;
    struct bytes bytes;
};

/* The next one; the last may be cut short. False: there are no more. */
static inline bool fuzz_next(struct bytes *input, struct fuzz_message *ret_message) {
    if (input->size < 3) {
        return false;
    }
    size_t length = input->data[1] | (size_t)input->data[2] << 8;
    ret_message->sender = input->data[0];
    ret_message->passes_time = length == 0xffff;
    *input = bytes_skip(*input, 3);
    length = ret_message->passes_time ? 0 : length < input->size ? length : input->size;
    ret_message->bytes = bytes_slice(*input, 0, length);
    *input = bytes_skip(*input, length);
    return true;
}

#endif
