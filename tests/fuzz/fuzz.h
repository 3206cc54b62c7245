/* fuzz - the entry point that libFuzzer and driver.c both call. */
#ifndef MNEMON_TESTS_FUZZ_H
#define MNEMON_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
