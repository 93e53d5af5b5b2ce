/*
 * The filter before the model: one core is told each access, the other only those that a filter as
 * translated code has it lets through. Both count the same, whatever the machine.
 */
#include "unit/model/machines.h"
#include "unit/model/same-counts.h"

#include "model/machines.h"

#include <string.h>

/* As in translated code: the lines' addresses + 1. */
struct filter {
	u64 load[MODEL_FILTER_SETS], store[MODEL_FILTER_SETS];
	u64 passed, loads, stores;
};

static void tell(const struct machine *m, struct model_core *core, u64 addr, u32 size, bool store)
{
	if (store)
		model_store(core, addr % 61, addr, size);
	else
		model_load(core, addr % 61, addr, size);
	(void)m;
}

/* Accesses by way of the filter. */
static void filtered(const struct machine *m, struct model_core *core, struct filter *f, u64 addr,
		     u32 size, bool store)
{
	u64 line = addr / m->memory.line, last = (addr + size - 1) / m->memory.line;
	u32 sets = model_filter_sets(m);

	if (line == last && (store ? f->store : f->load)[line % sets] == line + 1) {
		model_hits(core, !store, store);
		f->passed++;
		return;
	}
	for (; line <= last; line++) {
		if (f->load[line % sets] != line + 1)
			f->store[line % sets] = 0;
		f->load[line % sets] = line + 1;
		if (store)
			f->store[line % sets] = line + 1;
	}
	tell(m, core, addr, size, store);
}

/* Accesses of @cores in turns, mostly near the last one. */
static void compare(const struct machine *m, u32 parts, u32 cores, const char *what)
{
	struct model *all = model_new(m, cores, parts), *some = model_new(m, cores, parts);
	static struct filter filters[2];
	u64 state = 88172645463325252ull, at[2][4] = {0}, reach = m->cache[MACHINE_L1D].size;
	u64 passed = 0;

	memset(filters, 0, sizeof(filters));
	for (u32 c = 0; c < cores; c++)
		model_use_filter(model_core(some, c), filters[c].load, filters[c].store);
	for (u32 i = 0; i < 16000; i++) {
		u64 n = random_number(&state);
		u32 c = (n >> 3) % cores, size = 1u << (n >> 8) % 6;
		u64 *p = &at[c][n >> 16 & 3];
		bool store = (n >> 20) % 3 == 0;

		if (n >> 24 & 31)
			*p += n >> 32 & 24;
		else
			*p = (n >> 32) % (reach * ((n >> 29 & 7) + 1));
		if ((n >> 40) % 97 == 0)
			size = 200;
		/* What the cores share is little. */
		if (cores > 1 && (n >> 48) % 4)
			*p = (*p & ~15ull) % 65536;
		tell(m, model_core(all, c), 0x10000 + *p, size, store);
		filtered(m, model_core(some, c), &filters[c], 0x10000 + *p, size, store);
		if ((n >> 50) % 53 == 0) {
			model_prefetch(model_core(all, c), 0x10000 + *p + 4096);
			model_prefetch(model_core(some, c), 0x10000 + *p + 4096);
		}
		model_work(model_core(all, c), 1, 100);
		model_work(model_core(some, c), 1, 100);
		/* It may forget. */
		if ((n >> 44) % 1009 == 0)
			memset(filters[c].load, 0, sizeof(filters[c].load));
		if ((n >> 44) % 1009 < 2)
			memset(filters[c].store, 0, sizeof(filters[c].store));
	}
	for (u32 c = 0; c < cores; c++) {
		expect_same(model_core(all, c), model_core(some, c), what);
		passed += filters[c].passed;
	}
	EXPECT(passed > 16000 / 10);
	model_free(all);
	model_free(some);
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
		EXPECT(model_filter_sets(&m));
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

TEST(machines_without)
{
	struct machine m = small_machine();

	EXPECT_EQ(model_filter_sets(&m), 16);
	m.cache[MACHINE_L1D].no_allocate = 1;
	EXPECT_EQ(model_filter_sets(&m), 0);
	m = small_machine();
	set_cache(&m, MACHINE_L1D, 3 * 64 * 4, 4);
	EXPECT_EQ(model_filter_sets(&m), 0);
	set_cache(&m, MACHINE_L1D, 1024 * 64 * 4, 4);
	EXPECT_EQ(model_filter_sets(&m), 0);
}
