/* A short deterministic run of a fuzz target:  fuzz_X [ROUNDS [SEED]]  or  fuzz_X FILE... */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 4096

static uint64_t state;

/* xorshift64*: the same numbers everywhere. */
static uint32_t roll(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * 2685821657736338717ull >> 32) % below);
}

static uint32_t count(const char *const *list)
{
	uint32_t n = 0;

	while (list[n])
		n++;
	return n;
}

static size_t insert(uint8_t *buf, size_t len, size_t at, const void *piece, size_t n)
{
	if (len + n > LONGEST)
		return len;
	memmove(buf + at + n, buf + at, len - at);
	memcpy(buf + at, piece, n);
	return len + n;
}

/* One small change. */
static size_t mutate(uint8_t *buf, size_t len)
{
	uint32_t words = count(fuzz_words), samples = count(fuzz_samples);
	size_t at = roll((uint32_t)len + 1), n;
	uint8_t byte = (uint8_t)roll(256);
	const char *piece;

	switch (roll(7)) {
	case 0: /* flip a bit */
		if (at < len)
			buf[at] ^= (uint8_t)(1u << roll(8));
		return len;
	case 1: /* any byte */ return insert(buf, len, at, &byte, 1);
	case 2: /* cut a piece out */
		n = len - at ? roll((uint32_t)(len - at)) + 1 : 0;
		n = n > 8 ? 8 : n;
		memmove(buf + at, buf + at + n, len - at - n);
		return len - n;
	case 3: /* repeat a piece */
		n = len - at > 16 ? 16 : len - at;
		{
			uint8_t copy[16];

			memcpy(copy, buf + at, n);
			return insert(buf, len, at, copy, n);
		}
	case 4: /* a piece of another sample */
		piece = fuzz_samples[roll(samples)];
		n = strlen(piece) ? roll((uint32_t)strlen(piece)) + 1 : 0;
		return insert(buf, len, at, piece + strlen(piece) - n, n);
	case 5: /* end early */ return at;
	default: /* a word of the language */
		piece = fuzz_words[roll(words)];
		return insert(buf, len, at, piece, strlen(piece));
	}
}

/* In memory that ends where the input ends, so that a sanitizer sees one byte too many. */
static void run(const uint8_t *bytes, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);

	if (!exact)
		abort();
	memcpy(exact, bytes, len);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
}

static int run_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *f = fopen(path, "rb");
	size_t len;

	if (!f) {
		perror(path);
		return 1;
	}
	len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	run(bytes, len);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds = 20000;
	uint8_t buf[LONGEST + 1];
	size_t len;
	char *end;

	if (argc > 1) {
		rounds = strtoul(argv[1], &end, 10);
		if (*end) {
			for (int i = 1; i < argc; i++)
				if (run_file(argv[i]))
					return 1;
			return 0;
		}
	}
	state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 88172645463325252ull;
	for (const char *const *s = fuzz_samples; *s; s++)
		run((const uint8_t *)*s, strlen(*s));
	for (unsigned long i = 0; i < rounds; i++) {
		const char *sample = fuzz_samples[roll(count(fuzz_samples))];

		len = strlen(sample);
		memcpy(buf, sample, len);
		for (uint32_t n = roll(6) + 1; n; n--)
			len = mutate(buf, len);
		run(buf, len);
	}
	printf("%lu inputs\n", rounds);
	return 0;
}
