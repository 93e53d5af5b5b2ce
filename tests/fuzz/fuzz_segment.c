/*
 * The counter segment as a command reads it: what guests write there, to whom all of it belongs, is
 * bounded before it is used, and nothing of it reaches a terminal but text.
 *
 * An input is a list of places and what to write there.
 */
#include "fuzz/fuzz.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "backend/guest-segment.h"

const char *const fuzz_samples[] = {"\x10\x20 a\x30\x40 b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
				    NULL};
const char *const fuzz_words[] = {"\xff\xff\xff\xff\xff\xff\xff\xff", "\x1b[2J", "\x01", NULL};

#define METERS 3u

static struct guest_segment segment;
static u64 sums[METER_QUANTITIES]; /* so that they are read */
static u8 *memory;                 /* header and the first meters, as a guest has them */

static void need(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void need_text(const char *text, size_t size)
{
	need(memchr(text, 0, size), "a text without an end");
	for (; *text; text++)
		need(!iscntrl((unsigned char)*text), "a text for a terminal to obey");
}

static void open_once(void)
{
	const struct run_config config = {.cache_mb = 16};
	char why[300];

	if (segment.head)
		return;
	need(!ap__segment_open(&segment, &config, true, why, sizeof(why)), "no segment");
	memory = mmap(NULL, segment_offset(METERS), PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd,
		      0);
	need(memory != MAP_FAILED, "no memory");
}

/* Words of all sizes at places of all kinds, as the input's bytes have it. */
static void write_any(const uint8_t *data, size_t len)
{
	u64 state = 88172645463325252ull;

	for (size_t i = 0; i < len; i++)
		state = (state ^ data[i]) * 0x100000001b3ull;
	for (u32 i = 0; i < 200; i++) {
		u64 at;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		at = (state >> 32) % (segment_offset(METERS - 1) / 8);
		((u64 *)memory)[state & 1 ? at % (METER_SIZE / 8) : at] =
			state & 2 ? state >> (state >> 8 & 63) : ~0ull;
	}
}

/* All of it belongs to our run: else there would be nothing to read. */
static void write_all(const uint8_t *data, size_t len)
{
	u32 number = segment.number;

	write_any(data, len);
	for (size_t at = 0; at + 4 <= len; at += 4) {
		size_t where = (size_t)data[at] << 8 | data[at + 1];

		/* Mostly where texts and numbers are, which is at the beginning. */
		where = data[at + 2] & 1 ? where % METER_SIZE
					 : METER_SIZE + where % (METER_SIZE * (METERS - 1));
		memory[where] = data[at + 3];
	}
	for (u32 i = 0; i < SEGMENT_UNCOUNTED; i++) {
		segment.head->uncounted[i].run = number;
		segment.head->uncounted[i].state = METER_UNCOUNTED_READY;
	}
	for (u32 i = 0; i < METER_REFUSALS; i++)
		meter_refusals(segment.head)[i].run = number;
	meter_runs(segment.head)->text_of = number;
	for (u32 i = 0; i < METERS - 1; i++)
		((struct meter *)(memory + segment_offset(i)))->run = number;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct meter_uncounted u;
	struct meter_refusal r;
	char sentence[600];
	const char *text;
	struct stat st;
	int err;

	open_once();
	write_all(data, len);
	for (u32 i = 0; i < ap__segment_used(&segment); i += i < METERS ? 1 : 5000) {
		const struct meter *m = ap__segment_meter(&segment, i);

		for (u32 q = 0; m && q < METER_QUANTITIES; q++)
			sums[q] += meter_sum(m, (enum meter_quantity)q);
	}
	for (u32 i = 0; i < SEGMENT_UNCOUNTED; i++) {
		if (!ap__segment_uncounted_at(&segment, i, &u))
			continue;
		need_text(u.path, sizeof(u.path));
		need_text(u.why, sizeof(u.why));
	}
	for (u32 i = 0; i < METER_REFUSALS; i++) {
		if (!ap__segment_refusal_at(&segment, i, &r))
			continue;
		need_text(r.comm, sizeof(r.comm));
		refusal_why(&r.refusal, r.comm, sentence, sizeof(sentence));
		need_text(sentence, sizeof(sentence));
		refusal_remedy(&r.refusal, sentence, sizeof(sentence));
		need_text(sentence, sizeof(sentence));
	}
	err = ap__segment_failure(&segment, &text);
	need(err >= 0 && err < 4096, "an errno that is none");
	need_text(text, 256);
	/* Looking makes no memory. */
	need(!fstat(segment.fd, &st) && st.st_blocks < 8 * 8 * (METERS + 1), "pages by looking");
	return 0;
}
