/*
 * The accesses that the model is told of, in order, are those that Zydis sees in native single
 * steps; and with the filter, but for those that an obvious filter leaves out. The functions of the
 * model are this test's: they note what they are told.
 */
#include "model/feed.h"
#include "model/model-priv.h"
#include "unit/dbt/snippets.h"
#include "unit/dbt/stepper.h"
#include "unit/test.h"

#include <Zydis/Zydis.h>
#include <asm/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define MASK (DBT_MASK_ALL | DBT_MASK_TRACE | DBT_MASK_MEMORY)

/* The filter of the translator; few sets, so that it lets much through. */
#define LINE_SHIFT 6u
#define SETS       8u

static bool filtered, plain;

u64 snip_operands(void *memory), snip_strings(void *memory), snip_touch(void *memory);
u64 snip_groups(void *memory);
u64 snip_emulated(void *memory), snip_bit_tests(void *memory);
u64 snip_tiles(void *memory);
u64 snip_xsave(void *memory, u64 features), snip_xsavec(void *memory, u64 features);

struct noted {
	u64 ip, addr;
	u32 size;
	char kind; /* 'l', 's', 'p' */
};

/* What the model was told, and what it should have been. */
static struct {
	struct noted at[1 << 20];
	u64 n;
} told, wanted;

/* It is told nothing that it would keep. */
static struct model_core core_told;

static void note(u64 ip, u64 addr, u32 size, char kind)
{
	if (told.n < ARRAY_SIZE(told.at))
		told.at[told.n++] = (struct noted){ip, addr, size, kind};
}

struct model_access model_load(struct model_core *core, u64 ip, u64 addr, u32 size)
{
	(void)core;
	note(ip, addr, size, 'l');
	return (struct model_access){0};
}

struct model_access model_store(struct model_core *core, u64 ip, u64 addr, u32 size)
{
	(void)core;
	note(ip, addr, size, 's');
	return (struct model_access){0};
}

void model_strings(struct model_core *core, u64 ip, struct model_string *s, u32 nr, u64 n,
		   bool down)
{
	for (; n; n--) {
		for (u32 i = 0; i < nr; i++) {
			(s[i].stores ? model_store : model_load)(core, ip, s[i].at, s[i].size);
			s[i].at += down ? -(u64)s[i].size : s[i].size;
		}
	}
}

void model_prefetch(struct model_core *core, u64 addr)
{
	(void)core;
	note(0, addr, 0, 'p');
}

static u64 hits;

void model_hits(struct model_core *core, u64 loads, u64 stores)
{
	(void)core;
	hits += loads + stores;
}

void model_fetch(struct model_core *core, u64 addr, u32 len)
{
	(void)core;
	(void)addr;
	(void)len;
}

void model_fetch_lines(struct model_core *core, u64 first, u64 last, u32 *near)
{
	(void)core;
	(void)first;
	(void)last;
	(void)near;
}

u64 model_count(const struct model_core *core, enum model_counter counter)
{
	(void)core;
	(void)counter;
	return 0;
}

void model_work(struct model_core *core, u32 insns, u64 ticks)
{
	(void)core;
	(void)insns;
	(void)ticks;
}

const struct machine *model_machine(const struct model *model)
{
	static struct machine m = {.memory.line = 64, .core.width = 4};

	(void)model;
	return &m;
}

static void *zeroes(u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static struct path_space *space;
static bool wanted_left; /* wanted[] lacks what the filter leaves out */
static struct feed *feed;
static struct feed_thread feeding;

static void on_trace(struct guest *g, const u32 *words, u32 n, const u64 *slots, u64 nr_slots)
{
	feed_words(feed, &feeding, &core_told,
		   &(struct feed_input){.words = words,
					.nr_words = n,
					.slots = slots,
					.nr_slots = nr_slots,
					.records = (const struct path_record *)slots,
					.nr_records = filtered ? nr_slots / 2 : 0,
					.trace = g->trace_at});
}

static u64 fs_base(void)
{
	u64 base = 0;

	syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
	return base;
}

static void tracing(struct guest *g)
{
	g->on_trace = on_trace;
	if (space)
		return;
	space = zeroes(sizeof(*space));
	feed = zeroes(sizeof(*feed));
	feed_init(feed, NULL, space, MODEL_CACHES, false);
	dbt_paths(g->t, space);
}

static u64 reg_value(const struct dbt_regs *r, ZydisRegister reg, u64 next)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	u32 bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
	u64 v;

	if (reg == ZYDIS_REGISTER_NONE)
		return 0;
	if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
		return next;
	v = r->gpr[ZydisRegisterGetId(whole)];
	return bits == 64 ? v : v & ((1ull << bits) - 1);
}

static void want_once(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		      const ZydisDecodedOperand *op);

static void want(u64 pc, u64 addr, u32 size, char kind)
{
	if (wanted.n < ARRAY_SIZE(wanted.at))
		wanted.at[wanted.n++] = (struct noted){pc, addr, size, kind};
}

/* The word of a bit test, which Zydis does not look for. */
static bool want_bit(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		     const ZydisDecodedOperand *op)
{
	u64 a, size = op[0].size / 8;
	s64 bit, words;

	if (op[0].type != ZYDIS_OPERAND_TYPE_MEMORY || op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	a = (u64)op[0].mem.disp.value + reg_value(r, op[0].mem.base, pc + z->length) +
	    reg_value(r, op[0].mem.index, 0) * (op[0].mem.scale ? op[0].mem.scale : 1) +
	    (op[0].mem.segment == ZYDIS_REGISTER_FS ? feeding.fs_base : 0);
	bit = (s64)(reg_value(r, op[1].reg.value, 0) << (64 - op[0].size)) >> (64 - op[0].size);
	words = bit / op[0].size - (bit % op[0].size < 0);
	a += (u64)words * size;
	want(pc, a, (u32)size, 'l');
	if (op[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
		want(pc, a, (u32)size, 's');
	return true;
}

/* What the SDM says (Vol. 1, 13.6 to 13.10), of x87, SSE and AVX, the latter two in use. */
static void want_xsave(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z)
{
	u64 area = r->gpr[DBT_RDI] + (u64)z->raw.disp.value, asked = r->gpr[DBT_RAX];
	bool loads = z->mnemonic == ZYDIS_MNEMONIC_XRSTOR || z->mnemonic == ZYDIS_MNEMONIC_XRSTOR64;
	bool compact = z->mnemonic == ZYDIS_MNEMONIC_XSAVEC ||
		       z->mnemonic == ZYDIS_MNEMONIC_XSAVEC64;
	char kind = loads ? 'l' : 's';

	if (loads)
		want(pc, area + 512, 64, 'l');
	else if (!compact)
		want(pc, area + 512, 8, 'l');
	if (asked & 3)
		want(pc, area, asked & 2 ? 416 : 160, kind);
	/* AVX is the first of the extended region in both forms. */
	if (asked & 4)
		want(pc, area + 576, 256, kind);
	if (!loads)
		want(pc, area + 512, compact ? 16 : 8, 's');
}

/* Of tiles 0 and 1 in the order of the configuration, as snip_tiles has them. */
static const u8 tile_rows[] = {5, 3};
static const u16 tile_bytes[] = {48, 16};

static void want_tile(const struct dbt_regs *r, u64 pc, const ZydisDecodedOperand *op)
{
	bool stores = op[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
	const ZydisDecodedOperandMem *m = &op[stores ? 0 : 1].mem;
	u32 tile = (u32)ZydisRegisterGetId(op[stores ? 1 : 0].reg.value);
	u64 a = (u64)m->disp.value + reg_value(r, m->base, 0);

	for (u32 row = 0; row < tile_rows[tile]; row++)
		want(pc, a + row * reg_value(r, m->index, 0) * m->scale, tile_bytes[tile],
		     stores ? 's' : 'l');
}

/* What the SDM says of instructions of which C code tells, each of several words. */
static bool want_words(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		       const ZydisDecodedOperand *op)
{
	static const u8 of_iret[] = {16, 8, 0, 24, 32};
	u64 sp = r->gpr[DBT_RSP], a;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_RET:
		if (z->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR)
			return false;
		want(pc, sp + 8, 8, 'l');
		want(pc, sp, 8, 'l');
		return true;
	case ZYDIS_MNEMONIC_IRETQ:
		for (u32 i = 0; i < ARRAY_SIZE(of_iret); i++)
			want(pc, sp + of_iret[i], 8, 'l');
		return true;
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BTS:
	case ZYDIS_MNEMONIC_BTR:
	case ZYDIS_MNEMONIC_BTC: return want_bit(r, pc, z, op);
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVE64:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTOR64: want_xsave(r, pc, z); return true;
	case ZYDIS_MNEMONIC_TILELOADD:
	case ZYDIS_MNEMONIC_TILELOADDT1:
	case ZYDIS_MNEMONIC_TILESTORED: want_tile(r, pc, op); return true;
	case ZYDIS_MNEMONIC_LGS:
		a = r->gpr[DBT_RDI] + (u64)op[1].mem.disp.value;
		want(pc, a, 4, 'l');
		want(pc, a + 4, 2, 'l');
		return true;
	default: return false;
	}
}

/* The accesses of the instruction at @pc, which is executed with @r and leaves @after. */
static void want_step(const struct dbt_regs *r, u64 pc, const struct dbt_regs *after)
{
	static ZydisDecoder decoder;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	if (!decoder.machine_mode)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, (const void *)pc, 15, &z, op)))
		abort();
	if (z.attributes &
	    (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) {
		u64 times = r->gpr[DBT_RCX] - after->gpr[DBT_RCX];
		struct dbt_regs now = *r;

		for (; times; times--) {
			u64 step = r->rflags & 0x400 ? -(u64)(op[0].size / 8) : op[0].size / 8u;

			want_once(&now, pc, &z, op);
			now.gpr[DBT_RSI] += step;
			now.gpr[DBT_RDI] += step;
		}
		return;
	}
	if (!want_words(r, pc, &z, op))
		want_once(r, pc, &z, op);
}

static void want_once(const struct dbt_regs *r, u64 pc, const ZydisDecodedInstruction *z,
		      const ZydisDecodedOperand *op)
{
	for (u32 pass = 0; pass < 2; pass++) {
		for (u32 i = 0; i < z->operand_count; i++) {
			const ZydisDecodedOperandMem *m = &op[i].mem;
			u32 wants = pass ? ZYDIS_OPERAND_ACTION_MASK_WRITE
					 : ZYDIS_OPERAND_ACTION_MASK_READ;
			u32 size = op[i].size / 8;
			u64 a;

			if (op[i].type != ZYDIS_OPERAND_TYPE_MEMORY ||
			    m->type != ZYDIS_MEMOP_TYPE_MEM || !(op[i].actions & wants))
				continue;
			a = (u64)m->disp.value + reg_value(r, m->base, pc + z->length) +
			    reg_value(r, m->index, 0) * (m->scale ? m->scale : 1);
			/* push, call; and pop, whose operand is addressed with the new rsp. */
			if (op[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
			    m->base == ZYDIS_REGISTER_RSP && pass)
				a -= size;
			if (z->mnemonic == ZYDIS_MNEMONIC_POP && m->base == ZYDIS_REGISTER_RSP &&
			    op[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
				a += 8;
			/* Zydis has nothing of al. */
			if (z->mnemonic == ZYDIS_MNEMONIC_XLAT)
				a += (u8)r->gpr[DBT_RAX];
			if (z->address_width == 32)
				a = (u32)a;
			if (m->segment == ZYDIS_REGISTER_FS)
				a += feeding.fs_base;
			if (m->segment == ZYDIS_REGISTER_GS)
				a += feeding.gs_base;
			want(pc, a, size, pass ? 's' : 'l');
		}
	}
}

/* A plain filter leaves out stores to what the same instruction has loaded. */
static u64 leave_out_stores(struct noted *list, u64 n)
{
	u64 left = 0;

	for (u64 i = 0; i < n; i++) {
		const struct noted *a = &list[i];

		if (i && a->kind == 's' && a[-1].kind == 'l' && a->ip == a[-1].ip &&
		    a->addr == a[-1].addr && a->size == a[-1].size)
			continue;
		list[left++] = *a;
	}
	return left;
}

static bool is_last(const u64 *table, u64 line)
{
	return table[line % SETS] == line;
}

/* What a filter leaves out that knows all that came before goes from @list. */
static u64 leave_out(struct noted *list, u64 n)
{
	u64 load[SETS] = {0}, store[SETS] = {0}, left = 0;

	for (u64 i = 0; i < n; i++) {
		const struct noted *a = &list[i];
		u64 line = (a->addr >> LINE_SHIFT) + 1;
		u64 last = ((a->addr + a->size - 1) >> LINE_SHIFT) + 1;

		if (a->kind == 'p') {
			list[left++] = *a;
			continue;
		}
		if ((line == last || plain) &&
		    is_last(a->kind == 's' && !plain ? store : load, line) &&
		    is_last(a->kind == 's' && !plain ? store : load, last))
			continue;
		for (; line <= last; line++) {
			if (load[line % SETS] != line)
				store[line % SETS] = 0;
			load[line % SETS] = line;
			if (a->kind == 's')
				store[line % SETS] = line;
		}
		list[left++] = *a;
	}
	return left;
}

static bool same(const struct noted *a, const struct noted *b)
{
	return a->ip == b->ip && a->addr == b->addr && a->size == b->size && a->kind == b->kind;
}

static void compare(const char *name)
{
	static u64 wanted_all;

	if (filtered) {
		if (!wanted_left) {
			wanted_all = wanted.n;
			if (plain)
				wanted.n = leave_out_stores(wanted.at, wanted.n);
			wanted.n = leave_out(wanted.at, wanted.n);
			wanted_left = true;
		}
		EXPECT_EQ(told.n + hits, wanted_all);
		told.n = leave_out(told.at, told.n);
	}
	for (u64 i = 0; i < told.n && i < wanted.n; i++) {
		const struct noted *is = &told.at[i], *should = &wanted.at[i];

		if (same(is, should))
			continue;
		TEST_FAIL("%s, access %llu of %llu: %c %#llx by %#llx, %u bytes; not %c %#llx by "
			  "%#llx, %u bytes",
			  name, (unsigned long long)i, (unsigned long long)wanted.n, is->kind,
			  (unsigned long long)is->addr, (unsigned long long)is->ip, is->size,
			  should->kind, (unsigned long long)should->addr,
			  (unsigned long long)should->ip, should->size);
		return;
	}
	EXPECT_EQ(told.n, wanted.n);
}

static void check_run(struct guest *g, const struct program *p, u64 period)
{
	dbt_trace_flush(g->t);
	feed_settle(feed, &feeding, &core_told);
	g->nr_traced = told.n = hits = 0;
	dbt_filter_forget(g->t);
	stops.q = METER_INSTRUCTIONS;
	stops.max = 0;
	if (period)
		stops_begin(g, period);
	native_begin(g, p->fn, p->abc);
	EXPECT_EQ(guest_run(g), 0);
	if (period)
		stops_end(g);
	dbt_trace_flush(g->t);
	feed_settle(feed, &feeding, &core_told);
	EXPECT_EQ(feed->unknown, 0);
	compare(p->name);
}

static void want_program(struct guest *g, const struct program *p)
{
	struct native_step *steps;
	struct dbt_regs begin;
	u64 n, gs_base = 0;

	tracing(g);
	feeding.fs_base = fs_base();
	feeding.gs_base = g->t->arch.gs_base;
	native_begin(g, p->fn, p->abc);
	begin = g->t->regs;
	/* The runtime's. */
	syscall(SYS_arch_prctl, ARCH_GET_GS, &gs_base);
	n = native_steps(g, p->fn, p->abc, 2000000, &steps);
	syscall(SYS_arch_prctl, ARCH_SET_GS, gs_base);
	wanted.n = 0;
	wanted_left = false;
	for (u64 i = 0; i < n; i++)
		want_step(i ? &steps[i - 1].regs : &begin, steps[i].pc, &steps[i].regs);
	free(steps);
}

static void filter_on(struct guest *g, u64 mask)
{
	dbt_filter(LINE_SHIFT, SETS, plain);
	filtered = true;
	mprotect((void *)(g->slots_at + PATH_RECORDS_SIZE), 4096, PROT_NONE);
	dbt_set_mask(g->t, mask | DBT_MASK_FILTER);
}

static void filter_off(struct guest *g)
{
	dbt_set_mask(g->t, DBT_MASK_ALL);
	mprotect((void *)(g->slots_at + PATH_RECORDS_SIZE), 4096, PROT_READ | PROT_WRITE);
	filtered = false;
}

static const u64 periods[] = {1, 3, 10, 1009};

static void check_filter(struct guest *g, const struct program *p)
{
	filter_on(g, MASK);
	check_run(g, p, 0);
	check_run(g, p, 0);
	dbt_set_mask(g->t, MASK | DBT_MASK_FILTER | DBT_MASK_PATHS |
				   DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
		check_run(g, p, periods[i]);
	dbt_check(g->t);
	filter_off(g);
}

static void check_program(struct guest *g, const struct program *p)
{
	want_program(g, p);
	dbt_set_mask(g->t, MASK);
	check_run(g, p, 0);
	check_run(g, p, 0);
	dbt_set_mask(g->t, MASK | DBT_MASK_PATHS | DBT_MASK_DEADLINES(METER_INSTRUCTIONS));
	for (u32 i = 0; i < ARRAY_SIZE(periods); i++)
		check_run(g, p, periods[i]);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	dbt_check(g->t);
	check_filter(g, p);
}

/* Not of what elements tell, which this filter takes for an access of the operand. */
static void check_plain(struct guest *g, const struct program *p)
{
	want_program(g, p);
	plain = true;
	check_filter(g, p);
	plain = false;
}

TEST(of_programs)
{
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_program(guest_main(), &snip_programs[i]);
	for (u32 i = 0; i < ARRAY_SIZE(snip_programs); i++)
		check_plain(guest_main(), &snip_programs[i]);
}

static u8 memory[12288] __attribute__((aligned(4096)));

static const struct program forms[] = {{"operands", snip_operands, {(u64)memory}},
				       {"strings", snip_strings, {(u64)memory}},
				       {"groups", snip_groups, {(u64)memory}},
				       {"emulated", snip_emulated, {(u64)memory}},
				       {"bit tests", snip_bit_tests, {(u64)memory}}};

TEST(of_each_kind_of_operand)
{
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++)
		check_program(guest_main(), &forms[i]);
	for (u32 i = 0; i < 3; i++)
		check_plain(guest_main(), &forms[i]);
}

/* Which components are in use is a matter of the CPU's, beyond those that the snippet uses. */
TEST(of_extended_state)
{
	u32 a = 1, b, c = 0, d, features = 2;
	struct program p = {"xsave", snip_xsave, {(u64)memory}};

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(c & BIT(27)))
		return;
	if (c & BIT(28))
		features |= 4;
	p.abc[1] = features;
	memset(memory, 0, sizeof(memory));
	check_program(guest_main(), &p);
	a = 0xd;
	c = 1;
	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(a & BIT(1)))
		return;
	p.name = "xsavec";
	p.fn = snip_xsavec;
	memset(memory, 0, sizeof(memory));
	check_program(guest_main(), &p);
}

#define REQ_XCOMP_PERM  0x1023
#define XCOMP_TILE_DATA 18

TEST(of_rows_of_tiles)
{
	static const struct program p = {"tiles", snip_tiles, {(u64)memory}};
	u32 a = 7, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if (!(d & BIT(24)) || syscall(SYS_arch_prctl, REQ_XCOMP_PERM, XCOMP_TILE_DATA))
		return;
	memset(memory, 0, sizeof(memory));
	memory[0] = 1;
	for (u32 i = 0; i < ARRAY_SIZE(tile_rows); i++) {
		memory[16 + 2 * i] = (u8)tile_bytes[i];
		memory[48 + i] = tile_rows[i];
	}
	check_program(guest_main(), &p);
}

/* Several buffers full. */
TEST(of_more_than_a_buffer)
{
	static const struct program p = {"table", snip_table, {9000}};
	struct guest *g = guest_main();

	want_program(g, &p);
	dbt_set_mask(g->t, MASK);
	check_run(g, &p, 0);
	EXPECT(g->nr_traced > 2 * PATH_TRACE_SIZE / 4 || g->nr_traced == g->max_traced);
	dbt_set_mask(g->t, DBT_MASK_ALL);
	filter_on(g, MASK);
	check_run(g, &p, 0);
	filter_off(g);
}

TEST(in_a_storm_of_signals)
{
	static const struct program programs[] = {{"fib", snip_fib, {15}},
						  {"table", snip_table, {3000}},
						  {"operands", snip_operands, {(u64)memory}},
						  {"groups", snip_groups, {(u64)memory}},
						  {"strings", snip_strings, {(u64)memory}}};
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		want_program(guest_main(), &programs[i]);
		for (u32 deadlines = 0; deadlines < 2; deadlines++) {
			dbt_set_mask(guest_main()->t,
				     MASK | (deadlines ? DBT_MASK_DEADLINES(0) : 0));
			setitimer(ITIMER_REAL, &tick, NULL);
			for (u32 k = 0; k < 20; k++)
				check_run(guest_main(), &programs[i], deadlines ? 500 + k * 37 : 0);
			setitimer(ITIMER_REAL, &off, NULL);
		}
		for (u32 deadlines = 0; deadlines < 2; deadlines++) {
			plain = programs[i].fn == snip_groups && deadlines;
			if (plain)
				want_program(guest_main(), &programs[i]);
			filter_on(guest_main(), MASK | (deadlines ? DBT_MASK_DEADLINES(0) : 0));
			setitimer(ITIMER_REAL, &tick, NULL);
			for (u32 k = 0; k < 20; k++)
				check_run(guest_main(), &programs[i], deadlines ? 500 + k * 37 : 0);
			setitimer(ITIMER_REAL, &off, NULL);
			filter_off(guest_main());
			plain = false;
		}
	}
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
}

TEST(wherever_a_signal_comes)
{
	const struct program programs[] = {{"loop", snip_loop, {3}},
					   {"deep", snip_deep, {2}},
					   {"spilled", snip_spilled, {0}},
					   {"longjmp", snip_longjmp, {0}},
					   forms[0],
					   forms[1]};
	struct guest *g = guest_main();

	for (u32 i = 0; i < ARRAY_SIZE(programs); i++) {
		feeding.string_ends = 0;
		want_program(g, &programs[i]);
		dbt_set_mask(g->t, MASK);
		for (g->step = 1;; g->step++) {
			check_run(g, &programs[i], 0);
			if (g->stepped < g->step || test_failures)
				break;
		}
		g->step = 0;
		dbt_set_mask(g->t, DBT_MASK_ALL);
		filter_on(g, MASK);
		/* Its code is longer. */
		for (g->step = 1;; g->step += 7) {
			check_run(g, &programs[i], 0);
			if (g->stepped < g->step || test_failures)
				break;
		}
		g->step = 0;
		filter_off(g);
		/* One that repeats is left between its iterations. */
		EXPECT_EQ(feeding.string_ends > 0, programs[i].fn == snip_strings);
	}
}

/*
 * An access that faults has been recorded, and its line noted as accessed, when it has not retired.
 * The record is taken back; when the program executes it again it is no access to a known line.
 */
TEST(of_instructions_that_fault_first)
{
	static const struct program p = {"touch", snip_touch, {(u64)memory}};
	struct guest *g = guest_main();

	want_program(g, &p);
	for (u32 i = 0; i < 2; i++) {
		u32 faults = 0;

		dbt_set_mask(g->t, DBT_MASK_ALL);
		if (i)
			filter_on(g, MASK);
		else
			dbt_set_mask(g->t, MASK);
		dbt_trace_flush(g->t);
		feed_settle(feed, &feeding, &core_told);
		told.n = hits = 0;
		dbt_filter_forget(g->t);
		native_begin(g, p.fn, p.abc);
		/*
		 * To be read, then to be written: what it may not do is allowed when it has tried.
		 */
		mprotect(memory, sizeof(memory), PROT_NONE);
		while (guest_run(g) == SIGSEGV && faults < 2) {
			EXPECT_EQ(g->fault_addr & ~4095ull, (u64)memory);
			mprotect(memory, sizeof(memory),
				 faults++ ? PROT_READ | PROT_WRITE : PROT_READ);
		}
		EXPECT_EQ(faults, 2);
		EXPECT_EQ(g->t->regs.rip, GUEST_DONE);
		dbt_trace_flush(g->t);
		feed_settle(feed, &feeding, &core_told);
		compare(p.name);
	}
	filter_off(g);
}
