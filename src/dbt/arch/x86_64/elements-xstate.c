/*
 * Accesses of instructions that save and restore extended state, and of those that load and store
 * tiles: how much that is, the state says.
 */
#include "dbt/arch/x86_64/plan-priv.h"

/* SDM Vol. 1, 13.4: the legacy region, the header, and components from 2 on. */
#define XSAVE_X87       160u /* bytes of the legacy region without vector registers */
#define XSAVE_LEGACY    416u
#define XSAVE_HEADER    512u
#define XSAVE_EXTENDED  576u
#define XSAVE_COMPONENT 63u /* behind the last one */
#define XCOMP_X87       BIT(0)
#define XCOMP_SSE       BIT(1)
#define XCOMP_COMPACT   BIT(63)

struct component {
	u32 size, offset;
	bool aligned; /* in the compacted form at a multiple of 64 */
};

/* An area in the standard form, with all components that it has room for: not the data of tiles. */
struct area {
	u16 fcw, fsw;
	u8 ftw[20]; /* and others that are 0 initially */
	u32 mxcsr, mxcsr_mask;
	u8 st[8][16]; /* ten bytes each */
	u8 xmm[16][16];
	u8 rest[4096 - XSAVE_LEGACY];
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct area, rest) == XSAVE_LEGACY, "its shape");

/* In a virtual machine each cpuid takes its hypervisor tens of microseconds: asked once of each. */
static const struct component *component_of(u32 i)
{
	static struct component known[XSAVE_COMPONENT];
	static const struct component none;
	static u64 asked;
	u32 a = 0, b, c = i, d;

	if (!(__atomic_load_n(&asked, __ATOMIC_ACQUIRE) & BIT(i))) {
		__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		/* Intel's CPUs answer for leaves that are not there. */
		if (a < 0xd)
			return &none;
		a = 0xd;
		c = i;
		__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
		known[i] = (struct component){.size = a, .offset = b, .aligned = c & 2};
		__atomic_fetch_or(&asked, BIT(i), __ATOMIC_RELEASE);
	}
	return &known[i];
}

static u64 xgetbv(u32 index)
{
	u32 a, d;

	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(index));
	return a | (u64)d << 32;
}

/* XINUSE: components that the CPU takes as not being in their initial state; it may say all. */
static u64 xinuse(void)
{
	/* Leaf 0xd.1 is no component: its EAX says whether xgetbv has an index of 1. */
	return component_of(1)->size & BIT(2) ? xgetbv(1) : ~0ull;
}

static bool is_zero(const u8 *at, u32 size)
{
	u8 any = 0;

	for (u32 i = 0; i < size; i++)
		any |= at[i];
	return !any;
}

/* SDM Vol. 1, 13.6. */
static bool is_initial_x87(const struct area *a)
{
	bool zero = !a->fsw && is_zero(a->ftw, sizeof(a->ftw));

	for (u32 i = 0; i < ARRAY_SIZE(a->st); i++)
		zero &= is_zero(a->st[i], 10);
	return zero && a->fcw == 0x37f;
}

static bool is_initial_sse(const struct area *a)
{
	return a->mxcsr == 0x1f80 && is_zero(a->xmm[0], sizeof(a->xmm));
}

static bool has_room(const struct component *c)
{
	return (u64)c->offset + c->size <= sizeof(struct area);
}

/*
 * Which of @wanted are not in their initial state, by their values. XINUSE would say another thing
 * in each run: what was set to its initial value may count as being in use, until the kernel has
 * let another thread run in between (zeroed vector registers on AMD's Zen 4).
 */
static u64 in_use(u64 wanted)
{
	u64 others = wanted & ~(XCOMP_X87 | XCOMP_SSE), known = wanted & ~others, use = 0;
	struct area a;

	for (u64 left = others; left; left &= left - 1)
		if (has_room(component_of((u32)__builtin_ctzll(left))))
			known |= left & -left;
	__asm__ volatile("xsave64 %0" : "=m"(a) : "a"((u32)known), "d"(known >> 32));
	if (!is_initial_x87(&a))
		use |= XCOMP_X87;
	if (!is_initial_sse(&a))
		use |= XCOMP_SSE;
	for (u64 left = known & others; left; left &= left - 1) {
		const struct component *c = component_of((u32)__builtin_ctzll(left));

		if (!is_zero((const u8 *)&a + c->offset, c->size))
			use |= left & -left;
	}
	return (use & known) | (xinuse() & wanted & ~known);
}

/* Where component @i is in the form of @layout, which has those that have a place; 0: standard. */
static u32 place_of(u32 i, u64 layout)
{
	u32 at = XSAVE_EXTENDED;

	if (!layout)
		return component_of(i)->offset;
	for (u64 left = layout & (BIT(i) - 1) & ~(XCOMP_X87 | XCOMP_SSE); left; left &= left - 1) {
		const struct component *c = component_of((u32)__builtin_ctzll(left));

		at = (c->aligned ? ALIGN_UP(at, 64u) : at) + c->size;
	}
	return component_of(i)->aligned ? ALIGN_UP(at, 64u) : at;
}

/*
 * Of those that an area has by its header, which are not in their initial state there. Whether the
 * header has those as well is XINUSE of when it was saved.
 */
static u64 in_use_at(u64 area, u64 there, u64 layout)
{
	u64 others = there & ~(XCOMP_X87 | XCOMP_SSE), use = there & ~others;
	struct area a;

	if (use && dbt_fetch(&a, area, XSAVE_LEGACY) == XSAVE_LEGACY) {
		if (is_initial_x87(&a))
			use &= ~XCOMP_X87;
		if (is_initial_sse(&a))
			use &= ~XCOMP_SSE;
	}
	for (u64 left = others; left; left &= left - 1) {
		u32 i = (u32)__builtin_ctzll(left), size = component_of(i)->size;

		if (size > sizeof(a) || dbt_fetch(&a, area + place_of(i, layout), size) != size ||
		    !is_zero((const u8 *)&a, size))
			use |= BIT(i);
	}
	return use;
}

static void tell_components(struct dbt_thread *t, enum path_access_kind kind, u64 area, u64 there,
			    u64 layout)
{
	u64 others = there & ~(XCOMP_X87 | XCOMP_SSE);

	if (there & (XCOMP_X87 | XCOMP_SSE))
		path_element(t, kind, there & XCOMP_SSE ? XSAVE_LEGACY : XSAVE_X87, area);
	for (u64 left = others; left; left &= left - 1) {
		u32 i = (u32)__builtin_ctzll(left);

		path_element(t, kind, component_of(i)->size, area + place_of(i, layout));
	}
}

void tell_xstate(struct dbt_thread *t, const struct insn *d, u64 pc)
{
	u64 wanted = (u32)t->regs.gpr[REG_RAX] | t->regs.gpr[REG_RDX] << 32, header[2];
	u64 area = address_of(t, d, pc, 0);
	bool compact = d->opcode == 0xc7;
	u8 which = d->modrm >> 3 & 7; /* of 0f ae: 4 xsave, 5 xrstor, 6 xsaveopt */

	wanted &= xgetbv(0);
	path_elements(t, pc);
	if (!compact && which == 5) {
		u64 layout;

		path_element(t, PATH_LOAD, XSAVE_EXTENDED - XSAVE_HEADER, area + XSAVE_HEADER);
		if (dbt_fetch(header, area + XSAVE_HEADER, sizeof(header)) != sizeof(header))
			return;
		layout = header[1] & XCOMP_COMPACT ? header[1] & ~XCOMP_COMPACT : 0;
		tell_components(t, PATH_LOAD, area, in_use_at(area, header[0] & wanted, layout),
				layout);
		return;
	}
	if (!compact)
		path_element(t, PATH_LOAD, sizeof(header[0]), area + XSAVE_HEADER);
	/* xsave saves what is asked for, whatever it is. */
	tell_components(t, PATH_STORE, area, compact || which == 6 ? in_use(wanted) : wanted,
			compact ? wanted : 0);
	path_element(t, PATH_STORE, compact ? sizeof(header) : sizeof(header[0]),
		     area + XSAVE_HEADER);
}

#define XCOMP_TILES 17 /* the configuration of tiles; without one in use there are none */

/* SDM Vol. 1, 18.3: what sttilecfg stores. */
struct tile_config {
	u8 palette, start_row, reserved[14];
	u16 bytes_of_row[16];
	u8 rows[16];
};

/* A row each, as far apart as the index says; after a fault the CPU begins behind those it has. */
void tell_tile(struct dbt_thread *t, const struct insn *d, u64 pc)
{
	u64 apart = d->mem.index == REG_NONE ? 0 : t->regs.gpr[d->mem.index] << d->mem.scale;
	struct tile_config config;
	u32 tile = insn_reg_field(d) & 7;

	path_elements(t, pc);
	/* On a CPU without tiles the guest's instruction is no good, and ours would be neither. */
	if (!component_of(XCOMP_TILES)->size || !(xinuse() & BIT(XCOMP_TILES)))
		return;
	/* sttilecfg [rax] */
	__asm__ volatile(".byte 0xc4, 0xe2, 0x79, 0x49, 0x00" : : "a"(&config) : "memory");
	for (u64 row = config.start_row; row < config.rows[tile]; row++)
		path_element(t, d->mem_write ? PATH_STORE : PATH_LOAD, config.bytes_of_row[tile],
			     address_of(t, d, pc, (row - 1) * apart));
}
