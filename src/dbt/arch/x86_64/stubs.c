/* The cache's own code: miss paths, the way in through an entry, entries made after their block. */
#include "dbt/arch/x86_64/branch-priv.h"
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

	/* Others may be executing it: emit_align_rel() made this one store that fetches see whole. */
	__atomic_store_n(p, target - (patch + 4), __ATOMIC_RELEASE);
}

void arch_init(void)
{
	struct emit e;

	/* Small exit numbers are the misses'. */
	meta_alloc(16 * (TABLES + 1));
	e = cold_begin(256);
	cache.exit_code = emit_at(&e);
	emit_jmp_gs(&e, GS(exit_pc));
	for (u32 table = 0; table < TABLES; table++) {
		cache.miss_code[table] = emit_at(&e);
		cache.miss[table].kind = table == TABLE_JUMP ? EXIT_MISS : EXIT_RET_MISS;
		emit_store_gs(&e, GS(miss_pc), REG_RAX);
		emit_unspill(&e, REG_RAX);
		emit_unspill(&e, REG_RCX);
		emit_store_gs_imm(&e, GS(exit_id), table + 1u);
		emit_jmp_gs(&e, GS(exit_pc));
	}
	cache.miss_call_code = emit_at(&e);
	emit_push_gs(&e, GS(ret_to));
	emit_jmp(&e, cache.miss_code[TABLE_JUMP]);
	cache.enter_jump_code = emit_at(&e);
	emit_spill(&e, REG_RAX);
	emit_spill(&e, REG_RCX);
	emit_load_gs(&e, REG_RAX, GS(miss_pc));
	emit_jmp_gs(&e, GS(jump_pc));
	CHECK(emit_at(&e) <= cache.code_size);
}

u32 arch_call_entry(struct dbt_block *b)
{
	struct emit e;

	if (b->call_entry)
		return b->call_entry;
	if (cache.cold - cache.hot < CODE_SLACK / 2) {
		cache.full = 1;
		return 0;
	}
	e = cold_begin(32);
	b->call_entry = emit_at(&e);
	emit_call_entry(&e);
	emit_jmp(&e, b->code);
	return b->call_entry;
}

struct dbt_entry *arch_entry(struct dbt_block *b, enum entry_table table)
{
	struct dbt_entry *entry = entry_find(table, b->pc);
	struct emit e;

	if (entry)
		return entry;
	if (cache.cold - cache.hot < CODE_SLACK / 2 ||
	    cache.meta_size - cache.meta_used < META_SLACK / 2) {
		cache.full = 1;
		return NULL;
	}
	e = cold_begin(112);
	/* cold_word() grows the same way, so the words come to lie below the code. */
	entry = emit_entry(&e, table, b->pc, b->flags & BLOCK_FLAGS_LIVE ? FL_ARITH : 0);
	emit_jmp(&e, b->code);
	entry->block = b;
	entry_add(entry);
	return entry;
}
