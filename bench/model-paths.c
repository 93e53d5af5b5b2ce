/*
 * What the model takes for each path of a program: functions of this file are translated, run and
 * traced, with the accesses filtered as the runtime does it, and the model of a machine is fed with
 * the trace. Usage: model-paths record FILE deflate|interpreter|sort [MACHINE]
 *                   model-paths feed FILE [branches]
 *
 * The time of a busy machine says little; the number of the model's instructions does not depend
 * on it. That is what callgrind collects, by the paths that are printed:
 *
 *	valgrind --tool=callgrind --toggle-collect=measured model-paths feed FILE
 *
 * Two runs, because under valgrind translated code does not do what it does on the CPU. FILE is
 * sparse. The programs are small, and are no gzip and no perl: they show what a change of the model
 * does. What is counted is printed too, and stays what it is when the model only becomes faster.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shipped-machine.h"

#include "base/check.h"
#include "model/feed.h"
#include "unit/dbt/guest.h"

/* Paths before the measured ones, so that what is learned once is not in the figure. */
#define WARM     300000u
#define MEASURED 600000u

struct piece {
	u64 trace, nr_slots;
	u32 nr_words, paths;
	u8 bytes[]; /* the slots, and the words, up to a multiple of 8 */
};

/* All zero at first; only little of it is ever written. */
struct recording {
	char machine[64];
	u64 paths, used;
	struct path_space space;
	u8 room[1ull << 30] __attribute__((aligned(8)));
};

static struct recording *recording;

static u32 paths_of(const u32 *words, u32 n)
{
	u32 of = 0;

	for (u32 i = 0; i < n; i++)
		of += words[i] < PATH_WORDS;
	return of;
}

static void on_trace(struct guest *g, const u32 *words, u32 n, const u64 *slots, u64 nr_slots)
{
	struct piece *p = (struct piece *)(recording->room + recording->used);
	u64 size = sizeof(*p) + nr_slots * sizeof(*slots) + ALIGN_UP(n * sizeof(*words), 8);

	CHECK(size <= sizeof(recording->room) - recording->used);
	*p = (struct piece){g->trace_at, nr_slots, n, paths_of(words, n)};
	memcpy(p->bytes, slots, nr_slots * sizeof(*slots));
	memcpy(p->bytes + nr_slots * sizeof(*slots), words, n * sizeof(*words));
	recording->used += size;
	recording->paths += p->paths;
	if (recording->paths >= WARM + MEASURED)
		exit(0);
}

static u64 next_number(u64 *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* Looks for repeats with chains of hashes, as gzip does. */
static u64 deflate(u64 rounds)
{
	static u8 text[1 << 18];
	static u32 head[1 << 13], chain[1 << 15];
	u64 state = 4711, found = 0;

	for (u32 i = 0; i < sizeof(text); i++) {
		/* Words of an alphabet that is used unevenly. */
		u64 r = next_number(&state);

		text[i] = (u8)("etaoin shrdlu"[r / 7 % 13] + (r % 7 ? 0 : 1));
	}
	while (rounds--) {
		memset(head, 0, sizeof(head));
		for (u32 i = 0; i + 258 < sizeof(text);) {
			u32 h = (u32)(text[i] << 10 ^ text[i + 1] << 5 ^ text[i + 2]) & 0x1fff;
			u32 at = head[h], best = 2;

			for (u32 tries = 32; at && i - at < 32000 && tries; tries--) {
				u32 len = 0;

				if (text[at + best] == text[i + best])
					while (len < 258 && text[at + len] == text[i + len])
						len++;
				if (len > best)
					best = len;
				at = chain[at & 0x7fff];
			}
			chain[i & 0x7fff] = head[h];
			head[h] = i;
			found += best > 2;
			i += best > 2 ? best : 1;
		}
	}
	return found;
}

/* Byte code whose instructions are found by indirect jumps, with hashes, as perl's and python's. */
static u64 interpreter(u64 rounds)
{
	static const void *const labels[] = {&&push, &&add, &&mul, &&get, &&put, &&test, &&loop};
	static u8 code[64];
	static u64 table[4096], stack[64];
	u64 state = 4711, acc = 7, turns = 0;
	u64 *sp = stack;
	const u8 *pc;

	for (u32 i = 0; i < sizeof(code); i++)
		code[i] = (u8)(next_number(&state) % 6);
	code[sizeof(code) - 1] = 6;
	pc = code;
	goto *labels[*pc++];
push:
	sp = stack + (u64)(sp - stack + 1) % 64;
	*sp = acc;
	goto *labels[*pc++];
add:
	acc += *sp + turns;
	goto *labels[*pc++];
mul:
	acc = acc * 0x9e3779b97f4a7c15ull ^ acc >> 29;
	goto *labels[*pc++];
get:
	for (u32 i = (u32)acc % 4096, tries = 4; tries && table[i] > acc; tries--)
		i = (i + 1) % 4096;
	acc ^= table[acc % 4096];
	goto *labels[*pc++];
put:
	table[acc * 0x9e3779b97f4a7c15ull >> 52] = acc;
	goto *labels[*pc++];
test:
	if (acc & 64 && pc < code + sizeof(code) - 2)
		pc++;
	goto *labels[*pc++];
loop:
	if (++turns < rounds * 1000) {
		pc = code;
		goto *labels[*pc++];
	}
	return acc;
}

static void sort_of(u64 *at, s64 low, s64 high)
{
	while (low < high) {
		u64 pivot = at[(low + high) / 2];
		s64 i = low, j = high;

		while (i <= j) {
			while (at[i] < pivot)
				i++;
			while (at[j] > pivot)
				j--;
			if (i <= j) {
				u64 was = at[i];

				at[i++] = at[j];
				at[j--] = was;
			}
		}
		sort_of(at, low, j);
		low = i;
	}
}

static u64 sort(u64 rounds)
{
	static u64 numbers[1 << 16];
	u64 state = 4711;

	while (rounds--) {
		for (u32 i = 0; i < ARRAY_SIZE(numbers); i++)
			numbers[i] = next_number(&state);
		sort_of(numbers, 0, ARRAY_SIZE(numbers) - 1);
	}
	return numbers[0];
}

static const struct {
	const char *name;
	u64 (*run)(u64 rounds);
} programs[] = {{"deflate", deflate}, {"interpreter", interpreter}, {"sort", sort}};

static void *zeroes(u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct recording *map_file(const char *path, bool make)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_TRUNC : 0), 0600);
	void *at = MAP_FAILED;

	if (fd >= 0 && (!make || !ftruncate(fd, sizeof(struct recording))))
		at = mmap(NULL, sizeof(struct recording), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
	if (at == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return at;
}

/* Until there are paths enough. */
static void record(u64 (*run)(u64 rounds), const char *machine)
{
	struct machine m = machine_of(machine);
	u32 sets = model_filter_sets(&m);
	u64 mask = DBT_MASK_ALL | DBT_MASK_TRACE | DBT_MASK_MEMORY;
	static struct guest g;

	snprintf(recording->machine, sizeof(recording->machine), "%s", machine);
	guest_init(0, DBT_MASK_ALL, 32 << 20, 0);
	guest_thread_init(&g);
	dbt_paths(g.t, &recording->space);
	if (sets) {
		dbt_filter((u32)__builtin_ctz(m.memory.line), sets, false);
		CHECK(!mprotect((void *)(g.slots_at + PATH_RECORDS_SIZE), 4096, PROT_NONE));
		mask |= DBT_MASK_FILTER;
	}
	g.on_trace = on_trace;
	dbt_set_mask(g.t, mask);
	for (;;)
		guest_call(&g, (const void *)run, 1, 0, 0);
}

__attribute__((noinline)) void measured(struct feed *feed, struct feed_thread *t,
					struct model_core *core, const struct feed_input *in);

void measured(struct feed *feed, struct feed_thread *t, struct model_core *core,
	      const struct feed_input *in)
{
	feed_words(feed, t, core, in);
}

static void feed_recording(u32 parts)
{
	struct machine m = machine_of(recording->machine);
	struct model *model = model_init(zeroes(model_size(&m, 1, parts)), &m, 1, parts);
	struct model_core *core = model_core(model, 0);
	struct feed *feed = zeroes(sizeof(*feed));
	static struct feed_thread t;
	u64 paths = 0, seen = 0;

	feed_init(feed, model, &recording->space, parts, false);
	for (u64 at = 0; at < recording->used;) {
		const struct piece *p = (const struct piece *)(recording->room + at);
		struct feed_input in = {.words = (const u32 *)(p->bytes + p->nr_slots * 8),
					.nr_words = p->nr_words,
					.slots = (const u64 *)p->bytes,
					.nr_slots = p->nr_slots,
					.trace = p->trace};

		if (parts != MODEL_BRANCHES && model_filter_sets(&m)) {
			in.records = (const struct path_record *)p->bytes;
			in.nr_records = p->nr_slots / 2;
		}
		if (seen >= WARM) {
			measured(feed, &t, core, &in);
			paths += p->paths;
		} else {
			feed_words(feed, &t, core, &in);
		}
		seen += p->paths;
		at += sizeof(*p) + p->nr_slots * 8 + ALIGN_UP(p->nr_words * 4ull, 8);
	}
	feed_settle(feed, &t, core);
	CHECK(!feed->unknown);
	printf("%llu paths measured\n", (unsigned long long)paths);
	for (u32 i = 0; i < MODEL_COUNTERS; i++)
		printf("%s%llu", i ? " " : "counted ",
		       (unsigned long long)model_count(core, (enum model_counter)i));
	putchar('\n');
}

int main(int argc, char **argv)
{
	bool branches = argc == 4 && strcmp(argv[3], "branches") == 0;

	if ((argc == 3 || branches) && strcmp(argv[1], "feed") == 0) {
		recording = map_file(argv[2], false);
		feed_recording(branches ? MODEL_BRANCHES : MODEL_PARTS);
		return 0;
	}
	for (u32 i = 0; i < ARRAY_SIZE(programs) && argc > 3; i++) {
		if (strcmp(argv[1], "record") != 0 || strcmp(argv[3], programs[i].name) != 0)
			continue;
		recording = map_file(argv[2], true);
		record(programs[i].run, argc > 4 ? argv[4] : "zen4");
	}
	fprintf(stderr, "usage: model-paths record FILE deflate|interpreter|sort [MACHINE]\n"
			"       model-paths feed FILE [branches]\n");
	return 2;
}
