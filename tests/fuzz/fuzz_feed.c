/*
 * Descriptions of paths that another guest may have written, and a trace that names them: whatever
 * they say, the model is fed with something, comes to an end, and touches nothing outside of the
 * memory. What a thread has in registers is its own: slots are small here, or one instruction
 * would go over more of a string than anybody waits for.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz/at-the-end.h"
#include "model/feed.h"
#include "unit/model/machines.h"

const char *const fuzz_samples[] = {
	"\x07\x11\x01\x23\x05\x33\x11\x42\x51\x67\x21\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b",
	"\x06\x30\x02\xf0\x04\x10\x20\x30\x40\x01\x40\x03\x50\x02\x60\x01\x70\x30\x20\x10\x0f\x0e",
	NULL};
const char *const fuzz_words[] = {"\xff\xff", "\x80", "\x7f", "\x01\x01", "\x10\x20", NULL};

#define BLOCKS 6u
#define PATHS  16u
#define WORDS  64u
#define SLOTS  600u

/* The bytes of the input, and then others that follow from them. */
static struct {
	const uint8_t *at, *end;
	u64 state;
} input;

static u32 byte(void)
{
	if (input.at < input.end) {
		input.state = (input.state ^ *input.at) * 0x100000001b3ull;
		return *input.at++;
	}
	input.state ^= input.state << 13;
	input.state ^= input.state >> 7;
	input.state ^= input.state << 17;
	return input.state >> 32 & 0xff;
}

static u64 number(void)
{
	u64 n = 0;

	for (u32 i = byte() & 7; i; i--)
		n = n << 8 | byte();
	return n;
}

static struct path_space *space;
static struct feed *feed;
static struct machine machines[2];

static void prepare(void)
{
	if (space)
		return;
	space = at_the_end(sizeof(*space));
	feed = at_the_end(ALIGN_UP(sizeof(*feed), 64ul));
	machines[0] = machines[1] = small_machine();
	machines[0].memory.crossing = MACHINE_EACH;
	machines[1].memory.crossing = MACHINE_ONCE;
}

static u8 *put(u8 *to, const void *from, size_t n)
{
	size_t room = (size_t)(space->log + PATH_LOG - to);

	memcpy(to, from, n < room ? n : room);
	return to + (n < room ? n : room);
}

static u8 *align(u8 *to, size_t n)
{
	return space->log + ALIGN_UP((u64)(to - space->log), (u64)n);
}

/* A block that is one by its lengths, or hardly. */
static u8 *write_block(u8 *to)
{
	struct path_block head = {.nr_frags = (u16)(byte() & 3),
				  .nr_insns = (u16)(byte() & 31),
				  .nr_targets = (u16)(byte() & 7),
				  .traced = (u16)(byte() & 3)};
	struct path_accesses of = {.nr_slots = (u16)(byte() & 31),
				   .nr_accesses = (u16)(byte() & 31)};
	u8 insn[32];

	to = put(to, &head, sizeof(head));
	for (u32 i = 0; i < head.nr_frags; i++)
		to = put(to, &(struct path_frag){.pc = number(), .first = byte() & 15},
			 sizeof(struct path_frag));
	for (u32 i = 0; i < head.nr_targets; i++)
		to = put(to, &(u64){number()}, 8);
	for (u32 i = 0; i < head.nr_insns; i++)
		insn[i] = (u8)byte();
	to = align(put(to, insn, head.nr_insns), 2);
	for (u32 i = 0; head.traced && i < head.nr_insns; i++)
		to = put(to, &(u16){(u16)(byte() | byte() << 8)}, 2);
	if (head.traced < PATH_TRACED_ACCESSES)
		return align(to, 8);
	if (byte() == 0xff)
		of.nr_slots = of.nr_accesses = 0xffff;
	to = put(align(to, 8), &of, sizeof(of));
	for (u32 i = 0; i < (of.nr_slots & 31u); i++)
		to = put(to, &(u8){(u8)(byte() & 31)}, 1);
	to = align(to, 8);
	for (u32 i = 0; i < (of.nr_accesses & 31u); i++) {
		struct path_access a = {.disp = byte() & 1 ? byte() : number(),
					.base = (u16)(byte() & 7 ? byte() & 31 : PATH_NO_SLOT),
					.index = (u16)(byte() & 7 ? byte() & 31 : PATH_NO_SLOT),
					.size = (u16)number(),
					.insn = (u8)(byte() & 31),
					.kind = (u8)(byte() & 7),
					.flags = (u8)byte(),
					.scale = (u8)byte()};

		if (a.kind == PATH_LOADS || a.kind == PATH_STORES)
			a.disp &= 0xff;
		to = put(to, &a, sizeof(a));
	}
	return align(to, 8);
}

static void describe(void)
{
	u32 block[BLOCKS];
	u8 *to = space->log + 8;

	for (u32 i = 0; i < BLOCKS; i++) {
		/* One is where there is hardly room for it. */
		if (i + 1 == BLOCKS)
			to = space->log + PATH_LOG - 8 * (u64)(byte() & 63) - 8;
		block[i] = (u32)((to - space->log) / 8);
		to = write_block(to);
	}
	for (u32 i = 0; i < PATHS; i++)
		space->path[PATH_FIRST + i] = (struct path_entry){
			.block = byte() & 15 ? block[byte() % BLOCKS] : (u32)number(),
			.from = (u8)(byte() & 15),
			.upto = (u8)(byte() & 63),
			.taken = (u8)byte(),
			.known = byte() & 15 ? 1 : (u8)byte()};
}

static u32 word(void)
{
	u32 kind = byte();

	if (kind & 3)
		return PATH_FIRST + (kind >> 2) % PATHS;
	if (kind & 4)
		return (0x80u + (kind >> 3 & 7)) << 24 | (byte() & 15) << 8 | (byte() & 31);
	return (u32)number();
}

/* As slots, so where strings begin and end that an instruction was interrupted in. */
static void keep_short(u32 *words, u32 n)
{
	for (u32 i = 0; i + 2 < n; i++) {
		if ((words[i] & PATH_TRACE_KIND) != PATH_TRACE_ELEMENT)
			continue;
		words[i + 1] &= 0xfff;
		words[i + 2] = 0;
	}
}

static void feed_any(const struct machine *m, u32 parts, bool each)
{
	struct model *model = model_new(m, 1, parts);
	struct model_core *core = model_core(model, 0);
	struct path_record records[WORDS];
	struct feed_thread *t = calloc(1, sizeof(*t));
	u64 slots[SLOTS];
	u32 words[WORDS];

	CHECK(t);
	memset(feed->at + PATH_FIRST, 0, PATHS * sizeof(feed->at[0]));
	memset(feed->left_out, 0, sizeof(feed->left_out));
	feed->used = feed->unknown = 0;
	feed_init(feed, model, space, parts, each);
	for (u32 round = 0; round < 3; round++) {
		struct feed_input in = {.words = words,
					.slots = slots,
					.records = records,
					.trace = number(),
					.nr_words = 1 + byte() % WORDS,
					.nr_slots = byte() * 3u % SLOTS,
					.nr_records = byte() % WORDS};

		for (u32 i = 0; i < in.nr_words; i++)
			words[i] = word();
		for (u32 i = 0; i < in.nr_slots; i++)
			slots[i] = byte() << (byte() & 3);
		for (u32 i = 0; i < in.nr_records; i++)
			records[i] = (struct path_record){
				.addr = byte() << (byte() & 3),
				.at = (u32)in.trace + 4 * (byte() % WORDS),
				.what = path_record_what(byte() & 31, byte(), byte() & 1, byte())};
		/* Words may name paths that nobody has described, and then there are no others. */
		for (u32 i = 0; i < in.nr_words; i++)
			if (words[i] < PATH_WORDS && words[i] >= PATH_FIRST + PATHS)
				words[i] = PATH_WORDS - 1;
		keep_short(words, in.nr_words);
		feed_words(feed, t, core, &in);
		CHECK(feed->used <= FEED_ROOM && t->nr_stashed <= PATH_SLOTS_MAX);
		CHECK(t->nr_stashed_records <= FEED_RECORDS);
	}
	feed_settle(feed, t, core);
	CHECK(!t->pending);
	free(t);
	model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	u32 parts, how;

	prepare();
	input.at = data;
	input.end = data + len;
	input.state = 88172645463325252ull;
	how = byte();
	parts = how & 15;
	describe();
	feed_any(&machines[how >> 4 & 1], parts, how >> 5 & 1);
	return 0;
}
