/*
 * What the model costs: ns for each access of streams that are made up, and, with the name of a
 * file that `valgrind --tool=lackey --trace-mem=yes` has written, ns for each instruction of a
 * program with caches, TLBs, branches and cycles. Usage: model [TRACE [MACHINE...]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shipped-machine.h"

#include "base/check.h"
#include "model/model.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct model *model_new(const struct machine *m, u32 parts)
{
	u64 size = model_size(m, 1, parts);
	void *memory = aligned_alloc(64, size);

	CHECK(memory);
	memset(memory, 0, size);
	return model_init(memory, m, 1, parts);
}

static u64 random_number(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#define ACCESSES 10000000u

static void stream(const struct machine *m, const char *what, u32 parts, u64 reach, bool random,
		   u64 step)
{
	struct model *model = model_new(m, parts);
	struct model_core *core = model_core(model, 0);
	u64 state = 4711, addr = 0;
	double begun = now();

	for (u32 i = 0; i < ACCESSES; i++) {
		addr = (random ? random_number(&state) : addr + step) & (reach - 1);
		if (!parts)
			__asm__ volatile("" : : "r"(addr));
		else if (i & 3)
			model_load(core, i & 255, 0x10000000 + addr, 8);
		else
			model_store(core, i & 255, 0x10000000 + addr, 8);
	}
	printf("  %-44s %6.2f ns\n", what, (now() - begun) / ACCESSES);
	free(model);
}

static void branches(const struct machine *m, const char *what, u32 random)
{
	struct model *model = model_new(m, MODEL_BRANCHES);
	struct model_core *core = model_core(model, 0);
	u64 state = 4711;
	double begun = now();

	for (u32 i = 0; i < ACCESSES; i++) {
		u64 ip = 0x4000 + i % 61 * 16;
		bool taken = i % 7 != 0;

		if (random && i % random == 0)
			taken = random_number(&state) & 1;
		model_branch(core, ip, ip + 2, MODEL_COND, taken, ip + 64);
	}
	printf("  %-44s %6.2f ns, %.1f %% missed\n", what, (now() - begun) / ACCESSES,
	       100.0 * (double)model_count(core, MODEL_BRANCH_MISSES) / ACCESSES);
	free(model);
}

struct step {
	u64 addr;
	u32 size;
	char kind; /* I L S M */
};

static struct step *read_trace(const char *path, size_t *n)
{
	FILE *f = fopen(path, "re");
	struct step *steps = NULL;
	size_t room = 0;
	char line[256];

	if (!f) {
		perror(path);
		exit(2);
	}
	for (*n = 0; fgets(line, sizeof(line), f);) {
		unsigned long long addr;
		unsigned int size;
		char kind;

		if (line[0] == '=' || sscanf(line, " %c %llx,%u", &kind, &addr, &size) != 3)
			continue;
		if (*n == room) {
			room = room ? room * 2 : 1 << 20;
			steps = realloc(steps, room * sizeof(*steps));
			CHECK(steps);
		}
		steps[(*n)++] = (struct step){addr, size, kind};
	}
	fclose(f);
	return steps;
}

/*
 * Instructions that another one follows are no branches; the others are taken for conditional ones,
 * and so is each of those that is seen to branch once and then falls through.
 */
static void replay(const struct machine *m, u32 parts, const char *what, const struct step *steps,
		   size_t n)
{
	struct model *model = model_new(m, parts);
	struct model_core *core = model_core(model, 0);
	static u8 branches_at[1 << 16];
	u64 ip = 0, next = 0, start = 0, instructions = 0;
	u32 run = 0, rounds = (u32)(20000000 / n) + 1;
	double begun;

	memset(branches_at, 0, sizeof(branches_at));
	begun = now();
	for (u32 round = 0; round < rounds; round++)
		for (size_t i = 0; i < n; i++) {
			const struct step *s = &steps[i];
			bool jumps;

			if (s->kind != 'I') {
				if (!(parts & (MODEL_CACHES | MODEL_TLBS)))
					continue;
				if (s->kind != 'S')
					model_load(core, ip, s->addr, s->size);
				if (s->kind != 'L')
					model_store(core, ip, s->addr, s->size);
				continue;
			}
			instructions++;
			jumps = s->addr != next;
			if (jumps || branches_at[ip & 0xffff]) {
				branches_at[ip & 0xffff] = 1;
				if (parts & MODEL_BRANCHES)
					model_branch(core, ip, next, MODEL_COND, jumps, s->addr);
				if (parts & MODEL_CYCLES)
					model_work(core, run, 40 * run);
				if (parts & (MODEL_CACHES | MODEL_TLBS) && next > start)
					model_fetch(core, start, (u32)(next - start));
				start = s->addr;
				run = 0;
			}
			run++;
			ip = s->addr;
			next = ip + s->size;
		}
	printf("  %-44s %6.2f ns an instruction; of 1000: %.1f L1D, %.1f LL, %.1f branch misses",
	       what, (now() - begun) / (double)instructions,
	       1e3 * (double)model_count(core, model_cache_counter(MODEL_L1D, MODEL_READ, true)) /
		       (double)instructions,
	       1e3 * (double)model_count(core, MODEL_CACHE_MISSES) / (double)instructions,
	       1e3 * (double)model_count(core, MODEL_BRANCH_MISSES) / (double)instructions);
	if (parts & MODEL_CYCLES)
		printf("; %.2f cycles",
		       (double)model_count(core, MODEL_CPU_CYCLES) / (double)instructions);
	putchar('\n');
	free(model);
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"skylake-server", "zen4", "cachegrind", NULL};
	const char *const *names = argc > 2 ? (const char *const *)argv + 2 : usual;
	struct step *steps = NULL;
	size_t n = 0;

	if (argc > 1)
		steps = read_trace(argv[1], &n);
	for (; *names; names++) {
		struct machine m = machine_of(*names);

		printf("%s\n", *names);
		if (steps) {
			replay(&m, 0, "nothing but the trace", steps, n);
			replay(&m, MODEL_BRANCHES, "branches", steps, n);
			replay(&m, MODEL_CACHES, "caches", steps, n);
			replay(&m, MODEL_CACHES | MODEL_TLBS, "caches, TLBs", steps, n);
			replay(&m, MODEL_PARTS, "caches, TLBs, branches, cycles", steps, n);
			continue;
		}
		stream(&m, "nothing but the stream", 0, 64, true, 8);
		stream(&m, "one line", MODEL_CACHES, 64, false, 8);
		stream(&m, "sequential, 16 KB", MODEL_CACHES, 16384, false, 8);
		stream(&m, "sequential, 16 KB, TLBs too", MODEL_CACHES | MODEL_TLBS, 16384, false,
		       8);
		stream(&m, "random, 16 KB", MODEL_CACHES, 16384, true, 0);
		stream(&m, "random, 16 KB, TLBs too", MODEL_CACHES | MODEL_TLBS, 16384, true, 0);
		stream(&m, "sequential, 64 MB, TLBs too", MODEL_CACHES | MODEL_TLBS, 64 << 20,
		       false, 8);
		stream(&m, "random, 256 KB, TLBs too", MODEL_CACHES | MODEL_TLBS, 256 << 10, true,
		       0);
		stream(&m, "random, 64 MB, TLBs too", MODEL_CACHES | MODEL_TLBS, 64 << 20, true, 0);
		branches(&m, "branches with a pattern", 0);
		branches(&m, "branches, one in eight random", 8);
	}
	free(steps);
	return 0;
}
