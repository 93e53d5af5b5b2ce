/* A model's memory and its counters, and work, which has no file of its own. */
#include "model/model-priv.h"

/* Hands memory out from a place; with base 0 only counts. */
struct layout {
	u64 base, used;
};

static void *take(struct layout *l, u64 bytes)
{
	u64 at = l->used;

	l->used += ALIGN_UP(bytes, 64);
	return l->base ? (void *)(uintptr_t)(l->base + at) : NULL;
}

/* NULL where there is nothing. */
static void *take_some(struct layout *l, u64 bytes)
{
	return bytes ? take(l, bytes) : NULL;
}

static u32 log2_up(u64 n)
{
	u32 bits = 0;

	while (BIT(bits) < n)
		bits++;
	return bits;
}

static void tags_place(struct tags *t, struct layout *l, u64 entries, u32 ways,
		       enum tags_policy policy, u32 shift)
{
	struct tags made = {.ways = ways, .shift = shift};

	if (entries) {
		struct tags_sizes sizes;

		tags_shape(&made, (u32)(entries / ways), ways, policy);
		sizes = tags_sizes(&made);
		made.word = take(l, sizes.word);
		made.bytes = take_some(l, sizes.bytes);
		made.order = take_some(l, sizes.order);
		made.away = take_some(l, sizes.away);
		made.recent = take_some(l, sizes.recent);
		made.hint = take_some(l, sizes.hint);
		if (t)
			tags_begin(&made);
	}
	if (t)
		*t = made;
}

static void cache_place(struct tags *t, struct layout *l, const struct machine *m, u32 id)
{
	const struct machine_cache *c = &m->cache[id];

	tags_place(t, l, c->size / m->memory.line, c->ways,
		   c->policy == MACHINE_PLRU ? TAGS_PLRU : TAGS_LRU, log2_up(m->memory.line));
}

/* @bias: of all cores. */
static void predictor_place(struct predictor *p, struct layout *l, const struct machine *m,
			    u32 parts, u8 *bias)
{
	const struct machine_branch *b = &m->branch;
	struct predictor made = {
		.direction = b->direction,
		.mask = b->entries - 1,
		.shift = 64 - log2_up(b->entries),
		.bias = bias,
		.indirect = b->indirect,
		.btb_entries = b->btb,
		.indirect_mask = b->indirect - 1,
		.returns = b->returns,
		.history_mask = b->direction == MACHINE_GSHARE ? BIT(b->history & 63) - 1 : 0,
		.random = 1};
	u32 length = b->history;

	made.counter = take(l, b->entries);
	if (b->direction == MACHINE_TAGE) {
		made.tagged = take(l, (u64)b->entries * TAGE_TABLES * sizeof(u16));
		made.run = take(l, SITES * sizeof(s16));
	}
	made.stack = take(l, b->returns * sizeof(u64));
	if (b->targets == MACHINE_ITTAGE) {
		u64 size = b->indirect * sizeof(struct target_entry);

		made.target_table = take(l, size * TAGE_TABLES);
		made.last_target = take(l, b->btb * sizeof(struct target_entry));
	} else {
		made.by_path = take(l, b->indirect * sizeof(struct indirect_entry));
		made.last_by_path = take(l, b->indirect * sizeof(struct indirect_entry));
	}
	tags_place(&made.btb, l, parts & MODEL_CYCLES ? b->btb : 0, b->btb_ways, TAGS_FIFO, 0);
	/* Each history is longer than the one before by nearly three times. */
	for (u32 i = TAGE_TABLES; i-- > 0; length = length > 2 ? length * 3 / 8 : 1)
		made.tage_mask[i] = length >= 64 ? ~0ull : BIT(length) - 1;
	if (b->history > 64)
		made.tage_mask_high = b->history >= 128 ? ~0ull : BIT(b->history - 64) - 1;
	if (p)
		*p = made;
}

static void core_place(struct layout *l, const struct machine *m, struct model *model, u32 index,
		       u32 parts)
{
	struct model_core *core = take(l, sizeof(*core));
	struct core_windows *windows;

	if (core) {
		core->model = model;
		core->index = index;
		core->parts = parts;
		core->line_mask = ~((u64)m->memory.line - 1);
		core->page_mask = ~((u64)m->memory.page - 1);
		core->page_shift = log2_up(m->memory.page);
		core->l1_latency = m->cache[MACHINE_L1D].latency;
	}
	windows = take(l, sizeof(*windows));
	if (core)
		core->windows = windows;
	if (parts & (MODEL_CACHES | MODEL_TLBS)) {
		const struct machine_cache *l1d = &m->cache[MACHINE_L1D];

		tags_place(core ? &core->recent : NULL, l, l1d->size / m->memory.line / l1d->ways,
			   1, TAGS_LRU, log2_up(m->memory.line));
	}
	if (parts & MODEL_CACHES) {
		cache_place(core ? &core->l1i : NULL, l, m, MACHINE_L1I);
		cache_place(core ? &core->l1d : NULL, l, m, MACHINE_L1D);
		cache_place(core ? &core->l2 : NULL, l, m, MACHINE_L2);
	}
	for (u32 id = 0; parts & MODEL_TLBS && id < MACHINE_TLBS; id++) {
		const struct machine_tlb *t = &m->tlb[id];

		tags_place(core ? &core->tlb[id][TLB_SMALL] : NULL, l, t->entries, t->ways,
			   TAGS_LRU, 0);
		tags_place(core ? &core->tlb[id][TLB_HUGE] : NULL, l, t->huge_entries, t->huge_ways,
			   false, 0);
	}
	if (parts & MODEL_BRANCHES)
		predictor_place(core ? &core->predictor : NULL, l, m, parts,
				model ? model->bias : NULL);
	if (core && parts & MODEL_BRANCHES)
		core->predictor.btb_lost = MODEL_CORES + index;
	if (core && model)
		model->core[index] = core;
}

/* What a load can take beyond the latency of L1D, in order. Returns how many there are. */
static u32 slow_latencies(const struct machine *m, u32 *slow)
{
	const u32 data[] = {m->cache[MACHINE_L1D].latency, m->cache[MACHINE_L2].latency,
			    m->cache[MACHINE_LL].latency, m->memory.snoop, m->memory.latency};
	const u32 second = m->tlb[MACHINE_TLB2].latency;
	const u32 tlb[] = {0, second, second + m->penalty.walk};
	u32 n = 0;

	for (u32 d = 0; d < ARRAY_SIZE(data); d++)
		for (u32 t = 0; t < ARRAY_SIZE(tlb); t++) {
			u32 latency = (data[d] > data[0] ? data[d] : data[0]) + tlb[t], at = 0;

			while (at < n && slow[at] < latency)
				at++;
			if (latency <= data[0] || (at < n && slow[at] == latency))
				continue;
			for (u32 i = n++; i > at; i--)
				slow[i] = slow[i - 1];
			slow[at] = latency;
		}
	return n;
}

u32 model_loads_from(const struct machine *m, u32 latency)
{
	u32 slow[MODEL_LATENCIES], n = slow_latencies(m, slow);

	if (latency <= m->cache[MACHINE_L1D].latency)
		return model_cache_counter(MODEL_L1D, MODEL_READ, false);
	for (u32 i = 0; i < n; i++)
		if (latency <= slow[i])
			return MODEL_SLOW_LOADS + i;
	return MODEL_COUNTERS;
}

static struct model *place(struct layout *l, const struct machine *m, u32 cores, u32 parts)
{
	struct model *model = take(l, sizeof(*model));
	struct sights *lines, *pages;
	struct layout core = {0};

	if (model) {
		model->machine = *m;
		model->parts = parts;
		model->cores = cores;
		model->page_shift = log2_up(m->memory.page);
		model->huge_shift = log2_up(m->memory.huge);
		model->nr_slow = slow_latencies(m, model->slow);
	}
	lines = take_some(l, parts & (MODEL_CACHES | MODEL_TLBS) ? sizeof(*lines) : 0);
	pages = take_some(l, parts & MODEL_TLBS ? sizeof(*pages) : 0);
	if (model) {
		model->lines = lines;
		model->pages = pages;
	}
	if (parts & MODEL_BRANCHES && m->branch.direction == MACHINE_TAGE) {
		u8 *bias = take(l, SITES);

		if (model)
			model->bias = bias;
	}
	core_place(&core, m, NULL, 0, parts);
	if (model) {
		model->cores_at = l->base + l->used;
		model->core_size = core.used;
	}
	l->used += cores * core.used;
	if (model)
		model->ll_at = l->base + l->used;
	if (parts & MODEL_CACHES)
		cache_place(model ? &model->ll : NULL, l, m, MACHINE_LL);
	if (model)
		model->end = l->base + l->used;
	return model;
}

u64 model_size(const struct machine *m, u32 cores, u32 parts)
{
	struct layout l = {0};

	place(&l, m, cores, parts);
	return l.used;
}

struct model *model_init(void *memory, const struct machine *m, u32 cores, u32 parts)
{
	struct layout l = {.base = (u64)(uintptr_t)memory};

	return place(&l, m, cores, parts);
}

u64 model_usual(const struct model *model)
{
	return model->cores_at + model->core_size - (u64)(uintptr_t)model;
}

const void *model_ll_tables(const struct model *model, u64 *size)
{
	*size = model->end - model->ll_at;
	return (const void *)(uintptr_t)model->ll_at;
}

struct model_core *model_core(struct model *model, u32 index)
{
	/* Of most nothing is ever touched. */
	if (unlikely(!model->core[index])) {
		struct layout l = {.base = model->cores_at + index * model->core_size};

		core_place(&l, &model->machine, model, index, model->parts);
	}
	if (model->active <= index)
		model->active = index + 1;
	return model->core[index];
}

const struct machine *model_machine(const struct model *model)
{
	return &model->machine;
}

u32 model_filter_sets(const struct machine *m)
{
	const struct machine_cache *l1d = &m->cache[MACHINE_L1D];
	u64 sets = l1d->size / m->memory.line / l1d->ways;

	/* A store may leave no line behind. */
	if (l1d->no_allocate || sets & (sets - 1) || sets > MODEL_FILTER_SETS)
		return 0;
	return (u32)sets;
}

void model_use_filter(struct model_core *core, u64 *loads, u64 *stores)
{
	core->filter[0] = loads;
	core->filter[1] = stores;
}

void model_hits(struct model_core *core, u64 loads, u64 stores)
{
	core->count[model_cache_counter(MODEL_L1D, MODEL_READ, false)] += loads;
	core->count[model_cache_counter(MODEL_L1D, MODEL_WRITE, false)] += stores;
}

void model_work(struct model_core *core, u32 insns, u64 ticks)
{
	work(core, insns, ticks);
}

static u64 cycles(const struct model_core *core)
{
	return core->ticks / MACHINE_TICKS + core->stalled_front + core->stalled_back;
}

/* A cell of the matrix that another counter stands for. */
static u64 matrix_count(const struct model_core *core, u32 cell)
{
	u32 id = cell / 2 / MODEL_OPS, op = cell / 2 % MODEL_OPS;
	bool miss = cell & 1;

	if (id == MODEL_BPU && op == MODEL_READ)
		return core->count[miss ? MODEL_BRANCH_MISSES : MODEL_BRANCH_INSTRUCTIONS];
	/* Each load and store is looked up in both. */
	if (id == MODEL_DTLB && !miss && op != MODEL_PREFETCH)
		return core->count[model_cache_counter(MODEL_L1D, op, false)];
	return core->count[MODEL_HW_CACHE + cell];
}

static u64 flops_of(const struct model_core *core, u32 first, u32 last)
{
	u64 sum = 0;

	for (u32 kind = first; kind <= last; kind++)
		sum += core->count[model_flops_counter(kind, false)] +
		       core->count[model_flops_counter(kind, true)];
	return sum;
}

static u64 loads_from(const struct model_core *core, u32 counter)
{
	u64 sum = 0;

	for (u32 i = counter; i < MODEL_SLOW_LOADS + core->model->nr_slow; i++)
		sum += core->count[i];
	return sum;
}

u64 model_count(const struct model_core *core, enum model_counter counter)
{
	const struct machine_core *c = &core->model->machine.core;

	switch (counter) {
	case MODEL_CPU_CYCLES:
	case MODEL_REF_CYCLES: return cycles(core);
	case MODEL_BUS_CYCLES: return cycles(core) * c->bus_mhz / c->mhz;
	case MODEL_STALLED_FRONTEND: return core->stalled_front;
	case MODEL_STALLED_BACKEND: return core->stalled_back;
	case MODEL_CACHE_REFERENCES:
		return model_count(core, model_cache_counter(MODEL_LL, MODEL_READ, false)) +
		       model_count(core, model_cache_counter(MODEL_LL, MODEL_WRITE, false)) +
		       core->count[MODEL_LL_FETCHES];
	case MODEL_CACHE_MISSES:
		return model_count(core, model_cache_counter(MODEL_LL, MODEL_READ, true)) +
		       model_count(core, model_cache_counter(MODEL_LL, MODEL_WRITE, true)) +
		       core->count[MODEL_LL_FETCH_MISSES];
	case MODEL_DATA_ACCESSES:
		return core->count[model_cache_counter(MODEL_L1D, MODEL_READ, false)] +
		       core->count[model_cache_counter(MODEL_L1D, MODEL_WRITE, false)];
	case MODEL_INSNS_FLOAT:
		return core->count[MODEL_INSNS_X87] + core->count[MODEL_INSNS_MMX] +
		       core->count[MODEL_INSNS_SSE];
	case MODEL_FLOPS_ALL: return flops_of(core, MODEL_ADD, MODEL_FUSED);
	default:
		if (counter >= MODEL_SLOW_LOADS)
			return loads_from(core, counter);
		if (counter >= MODEL_FLOPS_OF && counter < MODEL_FLOPS_ALL)
			return flops_of(core, counter - MODEL_FLOPS_OF, counter - MODEL_FLOPS_OF);
		if (counter >= MODEL_HW_CACHE && counter < MODEL_L2_ACCESSES)
			return matrix_count(core, counter - MODEL_HW_CACHE);
		return core->count[counter];
	}
}

u32 model_halves(u32 parts, struct model_half *half)
{
	u32 others = parts & (MODEL_CACHES | MODEL_TLBS);

	half[0] = (struct model_half){parts, parts};
	if (!(parts & MODEL_BRANCHES) || !others)
		return 1;
	/* With MODEL_CYCLES what each loses by itself; what instructions take goes to one. */
	half[0] = (struct model_half){.parts = parts & (MODEL_BRANCHES | MODEL_CYCLES),
				      .fed = MODEL_BRANCHES};
	half[1].parts = half[1].fed = parts & ~(u32)MODEL_BRANCHES;
	return 2;
}

/* From here on all are sums of others. */
#define WORKED_OUT MODEL_INSNS_FLOAT

/* Others that are not simply counted; and there are cells of the matrix. */
static const u8 worked_out[] = {
	MODEL_CPU_CYCLES,      MODEL_REF_CYCLES,       MODEL_BUS_CYCLES,   MODEL_STALLED_FRONTEND,
	MODEL_STALLED_BACKEND, MODEL_CACHE_REFERENCES, MODEL_CACHE_MISSES, MODEL_DATA_ACCESSES,
};

void model_counts(const struct model_core *core, u64 *counts)
{
	const u32 dtlb = MODEL_DTLB * MODEL_OPS * 2, bpu = MODEL_BPU * MODEL_OPS * 2;

	__builtin_memcpy(counts, core->count, sizeof(core->count));
	for (u32 i = 0; i < ARRAY_SIZE(worked_out); i++)
		counts[worked_out[i]] = model_count(core, (enum model_counter)worked_out[i]);
	for (u32 cell = 0; cell < 2 * MODEL_OPS; cell++) {
		counts[MODEL_HW_CACHE + dtlb + cell] = matrix_count(core, dtlb + cell);
		counts[MODEL_HW_CACHE + bpu + cell] = matrix_count(core, bpu + cell);
	}
	for (u32 i = WORKED_OUT; i < MODEL_COUNTERS; i++)
		counts[i] = model_count(core, (enum model_counter)i);
}

void model_halves_sum(const struct machine *m, const u64 (*counts)[MODEL_COUNTERS], u32 n, u64 *sum)
{
	for (u32 i = 0; i < MODEL_COUNTERS; i++) {
		sum[i] = 0;
		for (u32 h = 0; h < n; h++)
			sum[i] += counts[h][i];
	}
	/* That is rounded once. */
	sum[MODEL_BUS_CYCLES] = sum[MODEL_CPU_CYCLES] * m->core.bus_mhz / m->core.mhz;
}

static u32 parts_of_cell(u32 cell)
{
	u32 id = cell / 2 / MODEL_OPS, op = cell / 2 % MODEL_OPS;

	switch (id) {
	case MODEL_L1D:
	case MODEL_LL: return MODEL_CACHES;
	case MODEL_L1I: return op == MODEL_WRITE ? 0 : MODEL_CACHES;
	case MODEL_NODE: return op == MODEL_PREFETCH ? 0 : MODEL_CACHES;
	case MODEL_DTLB: return op == MODEL_PREFETCH ? 0 : MODEL_TLBS;
	case MODEL_ITLB: return op == MODEL_READ ? MODEL_TLBS : 0;
	default: return op == MODEL_READ ? MODEL_BRANCHES : 0;
	}
}

u32 model_parts_of(enum model_counter counter)
{
	switch (counter) {
	case MODEL_CPU_CYCLES:
	case MODEL_REF_CYCLES:
	case MODEL_BUS_CYCLES: return MODEL_TIMING;
	case MODEL_INSTRUCTIONS: return MODEL_CYCLES;
	case MODEL_BRANCH_INSTRUCTIONS:
	case MODEL_BRANCH_MISSES:
	case MODEL_CONDITIONAL_MISSES: return MODEL_BRANCHES;
	case MODEL_BTB_MISSES: return MODEL_BRANCHES | MODEL_CYCLES;
	/* Walks for instructions are lost in the back as well. */
	case MODEL_STALLED_FRONTEND: return MODEL_BRANCHES | MODEL_CACHES | MODEL_CYCLES;
	case MODEL_STALLED_BACKEND: return MODEL_CACHES | MODEL_TLBS | MODEL_CYCLES;
	case MODEL_TLB2_HITS:
	case MODEL_ITLB2_HITS: return MODEL_TLBS;
	default:
		if (counter >= MODEL_HW_CACHE && counter < MODEL_L2_ACCESSES)
			return parts_of_cell(counter - MODEL_HW_CACHE);
		if (counter >= MODEL_FLOPS && counter < MODEL_SLOW_LOADS)
			return MODEL_FLOATS;
		if (counter >= MODEL_SLOW_LOADS && counter < MODEL_COUNTERS)
			return MODEL_CACHES | MODEL_TLBS;
		return counter < MODEL_COUNTERS ? MODEL_CACHES : 0;
	}
}
