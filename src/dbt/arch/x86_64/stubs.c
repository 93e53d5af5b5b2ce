/* The cache's own code: miss paths, the way in by an entry, and entries made after their block. */
#include "dbt/arch/x86_64/branch-priv.h"
#include "dbt/arch/x86_64/cpu-probe-priv.h"
#include "dbt/arch/x86_64/offsets-priv.h"

_Static_assert(offsetof(struct dbt_thread, regs.gpr) == T_GPR, "enter.S");
_Static_assert(offsetof(struct dbt_thread, regs.rflags) == T_RFLAGS, "enter.S");
_Static_assert(offsetof(struct dbt_thread, interrupt) == T_INTERRUPT, "enter.S");
_Static_assert(offsetof(struct dbt_thread, rt_sp) == T_RT_SP, "enter.S");
_Static_assert(offsetof(struct dbt_thread, enter_pc) == T_ENTER_PC, "enter.S");
_Static_assert(sizeof(struct dbt_exit) == 32, "exits in an array are found by meta_ref");

void arch_patch(u32 patch, u32 target)
{
	u32 *p = (u32 *)code_at(patch);

	code_own(patch);
	/*
	 * Others may be executing it. emit_align_rel() has made sure that they fetch this store
	 * whole.
	 */
	__atomic_store_n(p, target - (patch + 4), __ATOMIC_RELEASE);
}

bool arch_can_patch(u32 patch)
{
	return (patch & 7) <= 4;
}

#define JRCXZ 0xe3
#define JMP   0xe9

void arch_entry_kill(const struct dbt_entry *e)
{
	const u32 kill = e->code + e->kill;

	code_own(kill);
	/* A nop of two bytes in place of the jrcxz, by one store as in arch_patch(). */
	__atomic_store_n((u16 *)code_at(kill), 0x9066, __ATOMIC_RELEASE);
}

bool arch_entry_lives(const struct dbt_entry *e)
{
	const u32 kill = e->code + e->kill;

	return *(const u8 *)code_addr(kill) == JRCXZ && (kill & 7) != 7;
}

void arch_begin(void)
{
	cpu_probe(cache.ops.arch.cpuid);
	cache.fixed_tables = cache.flags & DBT_BASELINE || !cpu_has_fast_pext();
	cache.whole_jumps = cache.flags & DBT_WHOLE_JUMPS || cpu_likes_whole_jumps();
	cache.index_shift = cache.fixed_tables ? 0 : 2;
}

u64 arch_cpu(void)
{
	return cpu_found();
}

void arch_init(void)
{
	struct emitter e;

	meta_alloc(16); /* EXIT_ID_MISS */
	cache.miss.kind = EXIT_MISS;
	e = cold_begin(256);
	cache.exit_code = emit_at(&e);
	emit_jmp_gs(&e, GS(exit_pc));
	cache.miss_code = emit_at(&e);
	emit_store_gs(&e, GS(miss_pc), REG_TARGET);
	emit_unspill_target(&e);
	emit_store_gs_imm(&e, GS(exit_id), EXIT_ID_MISS);
	emit_jmp_gs(&e, GS(exit_pc));
	for (u32 set = 0; set < table_sets(); set++) {
		cache.ret_miss_code[set] = emit_at(&e);
		emit_store_slot(&e);
		emit_jump_target(&e, set);
	}
	cache.enter_code = emit_at(&e);
	emit_spill_target(&e);
	emit_jmp_gs(&e, GS(jump_pc));
	CHECK(emit_at(&e) <= cache.code_size);
	if (cache_has_deadlines())
		countdown_init();
	filter_init();
}

/* Where the displacement at @patch leads to. */
static u32 patched_target(u32 patch)
{
	u32 rel;

	memcpy(&rel, (const void *)code_addr(patch), sizeof(rel));
	return patch + 4 + rel;
}

/* From @at, behind nops: where the jmp there leads to. */
static u32 jmp_target(u32 at)
{
	for (u32 n = 0; *(const u8 *)code_addr(at) != JMP; n++, at++)
		CHECK(n < WHOLE_LINE);
	return patched_target(at + 1);
}

void arch_check_exit(const struct dbt_exit *x)
{
	const struct dbt_block *to = meta_at(x->to);
	u32 at;

	if (!x->patch)
		return;
	CHECK(arch_can_patch(x->patch));
	at = patched_target(x->patch);
	if (!to || !x->counts) {
		CHECK(at == (to ? to->code : x->stub));
		return;
	}
	CHECK(!memcmp((const void *)code_addr(at), (const void *)code_addr(x->stub), x->counts));
	at += x->counts;
	CHECK(at == to->code || jmp_target(at) == to->code);
}

static bool entry_has_room(void)
{
	if (cache.cold - cache.hot >= CODE_SLACK / 2 &&
	    cache.meta_mapped - cache.meta_used >= META_SLACK / 2 && code_thaw())
		return true;
	cache.full = 1;
	return false;
}

bool arch_exit_code(const struct dbt_exit *x, const struct dbt_block *to, u32 *code)
{
	struct emitter e;

	*code = to->code;
	if (!x->counts)
		return true;
	if (!entry_has_room())
		return false;
	e.p = code_at(cache.hot);
	*code = cache.hot;
	memcpy(e.p, (const u8 *)code_addr(x->stub), x->counts);
	e.p += x->counts;
	emit_whole(&e, 5);
	emit_jmp(&e, to->code);
	cache.hot = emit_at(&e);
	return true;
}

struct dbt_entry *arch_entry(struct dbt_block *b)
{
	struct dbt_entry *entry = entry_find(TABLE_JUMP, b->pc, b->flags);
	struct emitter e;

	if (entry || !entry_has_room())
		return entry;
	e.p = code_at(cache.hot);
	entry = emit_entry(&e, TABLE_JUMP, b->pc, 0);
	emit_unspill_target(&e);
	emit_whole(&e, 5);
	emit_jmp(&e, b->code);
	cache.hot = emit_at(&e);
	entry->block = meta_ref_of(b);
	entry_add(entry);
	return entry;
}

struct dbt_entry *arch_return_entry(struct dbt_entry *ret)
{
	struct dbt_entry *entry;
	struct emitter e;

	if (!entry_has_room())
		return NULL;
	e.p = code_at(cache.hot);
	entry = emit_entry(&e, TABLE_JUMP, ret->pc, 0);
	emit_whole(&e, 5);
	emit_jmp(&e, ret->code + ret->resume);
	cache.hot = emit_at(&e);
	entry->block = ret->block;
	entry_add(entry);
	return entry;
}
