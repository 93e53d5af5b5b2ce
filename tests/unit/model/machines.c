#include "unit/model/machines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static const char text[] =
	"anyperf-machine 1\nmachine small\nabout for tests\n"
	"memory line 64 latency 100 snoop 60\n"
	"l1i size 4K ways 4 latency 4\nl1d size 4K ways 4 latency 4\n"
	"ll size 64K ways 8 latency 30\n"
	"itlb entries 16 ways 4\ndtlb entries 16 ways 4\n"
	"branch direction bimodal entries 1024\ncore width 4 window 10\n"
	"penalty mispredict 10 btb 3 ll 20 memory 80 fetch-ll 25 fetch-memory 90 "
	"overlap 50 tlb2 5 walk 30\n"
	"class int throughput 0.25 latency 1\nclass load throughput 0.5 latency 4\n"
	"class int-div uops 4 throughput 6 latency 20\n"
	"class atomic uops 4 throughput 18 latency 18\n";

struct machine small_machine(void)
{
	struct machine m;
	struct machine_mistake why;

	CHECK(!machine_parse(&m, text, strlen(text), &why));
	return m;
}

void set_cache(struct machine *m, enum machine_cache_id id, u64 size, u32 ways)
{
	m->cache[id].size = size;
	m->cache[id].ways = ways;
	if (!m->cache[id].latency)
		m->cache[id].latency = 1;
}

struct model *model_new(const struct machine *m, u32 cores, u32 parts)
{
	u64 size = model_size(m, cores, parts);
	struct machine_mistake why = {.subject = "", .field = ""};
	void *memory;

	if (machine_check(m, &why)) {
		fprintf(stderr, "machine: %s %s: %u\n", why.subject, why.field, why.fault);
		abort();
	}
	memory = aligned_alloc(64, size);
	CHECK(memory && size % 64 == 0);
	memset(memory, 0, size);
	return model_init(memory, m, cores, parts);
}

void model_free(struct model *model)
{
	free(model);
}

u64 random_number(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct machine small_machine_of(u32 i)
{
	struct machine m = small_machine();

	set_cache(&m, MACHINE_L1D, i & 32 ? 4096 : 1024, i & 16 ? 1 : 4);
	if (i & 8)
		set_cache(&m, MACHINE_L1D, 3072, 3);
	set_cache(&m, MACHINE_L2, i & 1 ? 16384 : 0, 4);
	m.cache[MACHINE_L2].inclusion = i & 2 ? MACHINE_INCLUSIVE : MACHINE_NEITHER;
	m.cache[MACHINE_LL].inclusion = i & 4 ? MACHINE_INCLUSIVE : MACHINE_NEITHER;
	set_cache(&m, MACHINE_LL, 32768, 8);
	m.cache[MACHINE_L1D].policy = i & 64 ? MACHINE_PLRU : MACHINE_LRU;
	m.cache[MACHINE_L1D].prefetch = i & 128 ? MACHINE_NEXT_LINE | MACHINE_STRIDE : 0;
	if (!(i & 3))
		m.memory.crossing = i & 4 ? MACHINE_ONCE : MACHINE_EACH;
	if (i & 1)
		m.memory.crossing = MACHINE_EACH;
	m.tlb[MACHINE_TLB2] = (struct machine_tlb){.entries = 32, .ways = 32};
	return m;
}
