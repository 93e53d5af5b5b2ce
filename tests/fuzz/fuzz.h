/*
 * PURPOSE: what a fuzz target is: LLVMFuzzerTestOneInput(), called with any bytes. Linked with
 * driver.c it becomes a short deterministic test: the same inputs in every run, from a fixed seed,
 * made by mutating the target's own samples. Linked with clang's -fsanitize=fuzzer it is
 * libFuzzer's.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Inputs to start from; strings, so without their closing NUL. NULL at the end. */
extern const char *const fuzz_samples[];

/* Pieces that the target's language is made of; spliced in by the mutator. NULL at the end. */
extern const char *const fuzz_words[];

#endif
