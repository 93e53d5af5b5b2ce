/*
 * Reads what `valgrind --tool=lackey --trace-mem=yes` has written, from stdin, and feeds it to the
 * model: lackey SIZE,WAYS,LINE of I1, of D1, of LL. Prints instructions, loads, stores and misses
 * as cachegrind's events are called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model/machines.h"
#include "model/model.h"

static struct machine machine_of(char **geometry)
{
	static const enum machine_cache_id ids[] = {MACHINE_L1I, MACHINE_L1D, MACHINE_LL};
	const struct machine_shipped *s = machines_shipped;
	struct machine_mistake why;
	struct machine m;

	while (strcmp(s->name, "cachegrind") != 0)
		s++;
	CHECK(!machine_parse(&m, s->text, strlen(s->text), &why));
	for (int i = 0; i < 3; i++) {
		unsigned int size, ways, line;

		CHECK(sscanf(geometry[i], "%u,%u,%u", &size, &ways, &line) == 3);
		m.memory.line = line;
		m.cache[ids[i]].size = size;
		m.cache[ids[i]].ways = ways;
	}
	CHECK(!machine_check(&m, &why));
	return m;
}

static unsigned long long cell(const struct model_core *c, u32 id, u32 op, bool miss)
{
	return model_count(c, model_cache_counter(id, op, miss));
}

int main(int argc, char **argv)
{
	struct machine m;
	struct model *model;
	struct model_core *core;
	unsigned long long instructions = 0, addr;
	unsigned int size;
	char line[256], kind;
	void *memory;
	u64 bytes;

	CHECK(argc == 4);
	m = machine_of(argv + 1);
	bytes = model_size(&m, 1, MODEL_CACHES);
	memory = aligned_alloc(64, bytes);
	CHECK(memory);
	memset(memory, 0, bytes);
	model = model_init(memory, &m, 1, MODEL_CACHES);
	core = model_core(model, 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, " %c %llx,%u", &kind, &addr, &size) != 3 || line[0] == '=')
			continue;
		/* Larger than a line: cachegrind takes it for one line long. */
		if (size > m.memory.line)
			size = m.memory.line;
		switch (kind) {
		case 'I':
			instructions++;
			model_fetch(core, addr, size);
			break;
		case 'L':
		case 'M': /* a load and a store of the same place count as a load */
			model_load(core, 0, addr, size);
			break;
		case 'S': model_store(core, 0, addr, size); break;
		}
	}
	printf("Ir %llu\n", instructions);
	printf("I1mr %llu\n", cell(core, MODEL_L1I, MODEL_READ, true));
	printf("ILmr %llu\n", (unsigned long long)model_count(core, MODEL_LL_FETCH_MISSES));
	printf("Dr %llu\n", cell(core, MODEL_L1D, MODEL_READ, false));
	printf("D1mr %llu\n", cell(core, MODEL_L1D, MODEL_READ, true));
	printf("DLmr %llu\n", cell(core, MODEL_LL, MODEL_READ, true));
	printf("Dw %llu\n", cell(core, MODEL_L1D, MODEL_WRITE, false));
	printf("D1mw %llu\n", cell(core, MODEL_L1D, MODEL_WRITE, true));
	printf("DLmw %llu\n", cell(core, MODEL_LL, MODEL_WRITE, true));
	free(memory);
	return 0;
}
