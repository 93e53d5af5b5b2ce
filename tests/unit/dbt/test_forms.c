/*
 * Classes of instructions that are rewritten, executed in both forms as in test_rewrite.c, which
 * has the random ones; these are forms-*.S: branches, calls and returns of each kind, everything
 * that moves or is addressed by rsp, bit offsets, saved states, segments. Each runs in every place
 * that needs another form, counted in every way.
 *
 * Not to be had in both forms, because the results differ or are the runtime's: rdpmc
 * (tests/conform/test_page.c has it), rdtsc, rdrand and the like where they are virtual
 * (tests/e2e/cli_deterministic.py), int 0x80 (tests/e2e/unchanged/gate.c), xbegin, which may abort
 * natively or not (test_run.c), and branches to an address that is not canonical, where the CPU
 * faults at the branch and we at its target (doc/translator.md).
 * test_forms [NAME]
 */
#include "dbt/dbt.h"
#include "unit/dbt/arena.h"

#include <stdio.h>
#include <string.h>

#define SEEDS 16

/* The linker's names of the section's ends. */
extern const struct form {
	const char *name;
	const unsigned char *begin, *end;
} __start_forms[], __stop_forms[];

static const struct place {
	const char *name;
	u64 at;
	u32 exec_flags;
} places[] = {
	{"low", 0x10000000, 0},
	{"far", 0x200000000000, 0},
	{"near", 0, 0},
	{"checked", 0, DBT_EXEC_CHECKED},
	/*
	 * Where branches of 16 bits get to; those of the other places shall find nothing here, so
	 * it is the last.
	 */
	{"lowest", 0x4000, 0},
};

static unsigned long runs, faults;

/* The number of differences, of which the first is shown. */
static unsigned int run(const struct form *f, struct arena *a, const char *where)
{
	unsigned int bad = 0, len = (unsigned int)(f->end - f->begin);

	for (u64 seed = 0; seed < SEEDS; seed++) {
		const char *what;
		int sig;

		memcpy(arena_slot(a), f->begin, len);
		what = arena_compare(a, len, seed * 0x9e3779b97f4a7c15 + 1, true, 2, &sig);
		runs++;
		faults += sig != 0;
		if (what && !bad++)
			fprintf(stderr, "%s, %s code, seed %lu: %s (natively signal %d)\n", f->name,
				where, (unsigned long)seed, what, sig);
	}
	return bad;
}

int main(int argc, char **argv)
{
	static const u32 masks[] = {DBT_MASK_ALL, DBT_MASK_COUNT, 0,
				    DBT_MASK_COUNT | DBT_MASK_TRACE | DBT_MASK_MEMORY};
	static struct arena *arenas[ARRAY_SIZE(places)]; /* nobody frees them */
	unsigned int bad = 0, classes = 0;

	if (!arena_is_a_cpu())
		return 77;
	for (u32 i = 0; i < ARRAY_SIZE(places); i++) {
		struct arena *a = arenas[i] = arena_new(places[i].at, places[i].exec_flags);

		if (!a) {
			printf("%s code: not allowed\n", places[i].name);
			continue;
		}
		for (u32 m = 0; m < ARRAY_SIZE(masks); m++) {
			arena_mask(masks[m]);
			for (const struct form *f = __start_forms; f < __stop_forms; f++) {
				if (argc > 1 && strcmp(argv[1], f->name) != 0)
					continue;
				classes += i + m == 0;
				bad += run(f, a, places[i].name);
			}
		}
	}
	printf("%u forms, %lu runs, %lu of them fault, %u differences\n", classes, runs, faults,
	       bad);
	return bad || !runs;
}
