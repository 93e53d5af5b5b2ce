/*
 * A short deterministic run of a fuzz target:  fuzz_X [ROUNDS [SEED [FILE...]]]  or  fuzz_X FILE...
 *
 * Files behind a seed are samples to start from, beside the target's own; without rounds they are
 * run as they are. A file .hex is a corpus: a sample in each line, in hexadecimal.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 4096      /* that is made up here */
#define LARGEST (1 << 20) /* that is read */

struct sample {
	const uint8_t *bytes;
	size_t len;
};

static struct sample samples[1024];
static uint32_t nsamples;
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
	uint32_t words = count(fuzz_words);
	size_t at = roll((uint32_t)len + 1), n;
	uint8_t byte = (uint8_t)roll(256);
	const struct sample *other;
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
		other = &samples[roll(nsamples)];
		n = other->len ? roll((uint32_t)other->len) + 1 : 0;
		return insert(buf, len, at, other->bytes + other->len - n, n);
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

static void add_sample(const uint8_t *bytes, size_t len)
{
	if (nsamples == sizeof(samples) / sizeof(samples[0]))
		return;
	samples[nsamples++] = (struct sample){bytes, len};
}

/* A sample in hexadecimal, as a line of a corpus has it. Digits become bytes in place. */
static void add_line(char *line)
{
	uint8_t *bytes = (uint8_t *)line;
	unsigned int byte;
	size_t len = 0;

	for (const char *at = line; sscanf(at, "%2x", &byte) == 1; at += 2)
		bytes[len++] = (uint8_t)byte;
	add_sample(bytes, len);
}

/* Kept as long as the program runs: the samples are in it. */
static void add_file(const char *path)
{
	const char *type = strrchr(path, '.');
	char *bytes = malloc(LARGEST + 1);
	FILE *f = fopen(path, "rb");
	size_t len;

	if (!f || !bytes) {
		perror(path);
		exit(1);
	}
	len = fread(bytes, 1, LARGEST, f);
	fclose(f);
	bytes[len] = '\0';
	if (!type || strcmp(type, ".hex") != 0) {
		add_sample((uint8_t *)bytes, len);
		return;
	}
	for (char *line = strtok(bytes, "\n"); line; line = strtok(NULL, "\n"))
		add_line(line);
}

/* Every sample as it is. */
static void run_samples(void)
{
	for (uint32_t i = 0; i < nsamples; i++)
		run(samples[i].bytes, samples[i].len);
}

int main(int argc, char **argv)
{
	unsigned long rounds = 20000;
	uint8_t buf[LONGEST + 1];
	size_t len;
	char *end = NULL;

	if (argc > 1)
		rounds = strtoul(argv[1], &end, 10);
	for (int i = end && *end ? 1 : 3; i < argc; i++)
		add_file(argv[i]);
	if (end && *end) {
		run_samples();
		return 0;
	}
	state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 88172645463325252ull;
	for (const char *const *s = fuzz_samples; *s; s++)
		add_sample((const uint8_t *)*s, strlen(*s));
	run_samples();
	for (unsigned long i = 0; nsamples && i < rounds; i++) {
		const struct sample *sample = &samples[roll(nsamples)];

		len = sample->len < LONGEST ? sample->len : LONGEST;
		memcpy(buf, sample->bytes, len);
		for (uint32_t n = roll(6) + 1; n; n--)
			len = mutate(buf, len);
		run(buf, len);
	}
	printf("%lu inputs\n", rounds);
	return 0;
}
