/*
 * Strings at a time: one core is told each access, the other what a string instruction has gone
 * over. Both count the same, whatever the machine.
 */
#include "unit/model/machines.h"
#include "unit/model/same-counts.h"

#include "model/machines.h"

#include <string.h>

static void tell(struct model_core *core, struct model_string *s, u32 nr, u64 n, bool down)
{
	for (; n; n--) {
		for (u32 i = 0; i < nr; i++) {
			if (s[i].stores)
				model_store(core, 7, s[i].at, s[i].size);
			else
				model_load(core, 7, s[i].at, s[i].size);
			s[i].at += down ? -(u64)s[i].size : s[i].size;
		}
	}
}

/* Strings of @cores in turns, and single accesses between them; many are in the same set. */
static void compare(const struct machine *m, u32 parts, u32 cores, const char *what)
{
	struct model *each = model_new(m, cores, parts), *whole = model_new(m, cores, parts);
	u64 state = 88172645463325252ull, way = m->cache[MACHINE_L1D].size;

	if (m->cache[MACHINE_L1D].ways)
		way /= m->cache[MACHINE_L1D].ways;
	for (u32 i = 0; i < 150; i++) {
		u64 n = random_number(&state), times = n >> 10 & (n & 1 ? 511 : 31);
		u32 c = (n >> 3) % cores, size = 1u << (n >> 8) % 4, nr = 1 + (n >> 5 & 1);
		u64 at = 0x100000 + (n >> 32) % 16384;
		/* The other one in the same set, in the same line, or anywhere. */
		u64 other = at + (n >> 20 & 3 ? way * (n >> 22 & 7) : n >> 26 & 4095);
		struct model_string s[2][2] = {
			{{at, size, n >> 6 & 1}, {other, size, n >> 7 & 1}},
			{{at, size, n >> 6 & 1}, {other, size, n >> 7 & 1}},
		};
		bool down = n >> 30 & 1;

		tell(model_core(each, c), s[0], nr, times, down);
		model_strings(model_core(whole, c), 7, s[1], nr, times, down);
		for (u32 k = 0; k < nr; k++)
			EXPECT_EQ(s[0][k].at, s[1][k].at);
		for (u32 k = 0; k < 4; k++) {
			u64 addr = at + (random_number(&state) & 1023);

			model_load(model_core(each, c), 9, addr, 8);
			model_load(model_core(whole, c), 9, addr, 8);
		}
	}
	for (u32 c = 0; c < cores; c++)
		expect_same(model_core(each, c), model_core(whole, c), what);
	model_free(each);
	model_free(whole);
}

static void compare_parts(const struct machine *m, const char *what)
{
	compare(m, MODEL_CACHES, 1, what);
	compare(m, MODEL_TLBS, 1, what);
	compare(m, MODEL_CACHES | MODEL_TLBS | MODEL_CYCLES, 1, what);
	compare(m, MODEL_CACHES | MODEL_TLBS | MODEL_CYCLES, 2, what);
}

TEST(shipped_machines)
{
	for (const struct machine_shipped *s = machines_shipped; s->name; s++) {
		struct machine_mistake why;
		struct machine m;

		EXPECT(!machine_parse(&m, s->text, strlen(s->text), &why));
		compare_parts(&m, s->name);
	}
}

TEST(small_machines)
{
	for (u32 i = 0; i < SMALL_MACHINES; i++) {
		struct machine m = small_machine_of(i);

		compare_parts(&m, "a small machine");
	}
}

TEST(a_cache_that_stores_go_past)
{
	struct machine m = small_machine();

	m.cache[MACHINE_L1D].no_allocate = 1;
	compare_parts(&m, "without write-allocate");
}
