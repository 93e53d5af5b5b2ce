/* The cache's own code: returns, miss paths, the way in through an entry, entries made after their block. */
#include "dbt/arch/x86_64/branch-priv.h"
#include "dbt/arch/x86_64/flags-priv.h"
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

/*
 * The common end of all returns: rax is the guest's return address, its own value spilled; rsp still
 * points at it. One copy, because what the CPU predicts a return by is its call, not its address.
 */
static void emit_ret_code(struct emit *e)
{
	u8 *found[2];

	cache.ret_code = emit_at(e);
	emit_spill(e, REG_RCX);
	emit_spill(e, REG_RDX);
	emit_index(e, REG_RDX, TABLE_RET);
	emit3(e, 0x8d, 0x14, 0x12); /* lea edx, [rdx + rdx]: slots are 16 bytes */
	for (u32 way = 0; way < 2; way++) {
		emit4(e, 0x65, 0x48, 0x8b, 0x0c); /* mov rcx, gs:[rdx * 8 + slot.minus_pc] */
		emit1(e, 0xd5);
		emit_u32(e, TABLE_RET_GS + way * 16);
		emit4(e, 0x48, 0x8d, 0x0c, 0x01); /* lea rcx, [rcx + rax] */
		emit2(e, 0xe3, 0);                /* jrcxz */
		found[way] = e->p;
	}
	emit_unspill(e, REG_RDX);
	emit_add_rsp(e, 8);
	emit_jmp(e, cache.miss_code[TABLE_RET]);
	found[1][-1] = (u8)(e->p - found[1]);
	emit4(e, 0x65, 0x48, 0x8b, 0x14); /* mov rdx, gs:[rdx * 8 + second.code] */
	emit1(e, 0xd5);
	emit_u32(e, TABLE_RET_GS + 24);
	emit2(e, 0xeb, 9);
	found[0][-1] = (u8)(e->p - found[0]);
	emit4(e, 0x65, 0x48, 0x8b, 0x14); /* mov rdx, gs:[rdx * 8 + slot.code] */
	emit1(e, 0xd5);
	emit_u32(e, TABLE_RET_GS + 8);
	cache.ret_store = emit_at(e);
	emit4(e, 0x48, 0x89, 0x14, 0x24); /* mov [rsp], rdx */
	emit_unspill(e, REG_RDX);
	emit_unspill(e, REG_RCX);
	emit1(e, 0xc3);
	cache.ret_end = emit_at(e);
}

static void ask_cpu(u32 leaf, u32 regs[4])
{
	regs[0] = leaf;
	regs[2] = 0;
	if (cache.ops.cpuid)
		cache.ops.cpuid(leaf, 0, regs);
	else
		__asm__("cpuid" : "+a"(regs[0]), "=b"(regs[1]), "+c"(regs[2]), "=d"(regs[3]));
}

/* BMI2's pext in hardware: AMD before Zen 3 and Hygon take some twenty cycles and more for it. */
static bool has_fast_pext(void)
{
	u32 r[4];

	ask_cpu(7, r);
	if (!(r[1] >> 8 & 1))
		return false;
	ask_cpu(0, r);
	if (r[2] != 0x444d4163 /* AuthenticAMD */ && r[2] != 0x656e6975 /* HygonGenuine */)
		return true;
	ask_cpu(1, r);
	return (r[0] >> 8 & 15) + (r[0] >> 20 & 255) >= 0x19;
}

void arch_init(void)
{
	struct emit e;

	if (cache.epoch == 1) {
		flags_init();
		cache.fixed_tables = cache.flags & DBT_BASELINE || !has_fast_pext();
	}
	cache.index_shift[TABLE_JUMP] = cache.fixed_tables ? 0 : 2;
	cache.index_shift[TABLE_RET] = cache.fixed_tables ? 0 : 3;
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
	emit_spill(&e, REG_RCX);
	cache.enter_ret_code = emit_at(&e);
	emit_spill(&e, REG_RAX);
	emit_load_gs(&e, REG_RAX, GS(miss_pc));
	emit_jmp_gs(&e, GS(jump_pc));
	CHECK(emit_at(&e) <= cache.code_size);

	e.p = code_at(cache.hot);
	emit_ret_code(&e);
	cache.hot = emit_at(&e);
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
	e.p = code_at(cache.hot);
	b->call_entry = emit_at(&e);
	emit_call_entry(&e);
	emit_jmp(&e, b->code);
	cache.hot = emit_at(&e);
	return b->call_entry;
}

struct dbt_entry *arch_entry(struct dbt_block *b, enum entry_table table)
{
	struct dbt_entry *entry = entry_find(table, b->pc);
	struct emit e;

	if (entry)
		return entry;
	if (cache.cold - cache.hot < CODE_SLACK / 2 ||
	    cache.meta_mapped - cache.meta_used < META_SLACK / 2) {
		cache.full = 1;
		return NULL;
	}
	e.p = code_at(cache.hot);
	entry = emit_entry(&e, table, b->pc);
	emit_jmp(&e, b->code);
	cache.hot = emit_at(&e);
	entry->block = b;
	entry_add(entry);
	return entry;
}
