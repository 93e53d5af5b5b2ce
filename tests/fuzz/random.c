/* A short deterministic run of a target that takes any bytes:  fuzz_X [ROUNDS [SEED]]. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#define LONGEST 3000

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 88172645463325252ull;

	for (unsigned long i = 0; i < rounds; i++) {
		uint8_t bytes[LONGEST];
		size_t len = LONGEST - i * 37 % LONGEST;

		/* xorshift64*: the same numbers everywhere. */
		for (size_t k = 0; k < len; k++) {
			state ^= state >> 12;
			state ^= state << 25;
			state ^= state >> 27;
			bytes[k] = (uint8_t)(state * 2685821657736338717ull >> 56);
		}
		LLVMFuzzerTestOneInput(bytes, len);
	}
	printf("%lu inputs\n", rounds);
	return 0;
}
