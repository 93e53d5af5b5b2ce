/*
 * The cache's own code for what the filter lets through: it appends a record to the thread's, and
 * has the tables know it. Code of accesses (filter.c) comes here from where it is cold.
 */
#include <asm/prctl.h>

#include "dbt/arch/x86_64/filter-priv.h"
#include "sys/kernel.h"

#define STUBS_BYTES     3072u /* of all stubs, at most */
#define STRING_STEP_MAX 8u    /* bytes of a string's element */

/* mov [rcx + @at], rax or edx */
static void emit_put(struct emitter *e, bool rax, u8 at)
{
	if (rax)
		emit1(e, 0x48);
	emit3(e, 0x89, rax ? 0x41 : 0x51, at);
}

/*
 * Appends { rax, where the trace is, filter.what } to the records by rcx and rdx. The first store
 * may find no more room: records_are_full().
 */
static void emit_append(struct emitter *e)
{
	emit_load_gs(e, REG_RCX, GS(slots_at));
	emit_put(e, true, 0);
	emit4(e, PREFIX_GS, 0x8b, 0x14, 0x25); /* mov edx, gs:[] */
	emit_u32(e, GS(trace_at));
	emit_put(e, false, 8);
	emit4(e, PREFIX_GS, 0x8b, 0x14, 0x25);
	emit_u32(e, GS(filter.what));
	emit_put(e, false, 12);
	emit_group1(e, true, OP_ADD, REG_RCX, sizeof(struct path_record));
	emit_store_gs(e, GS(slots_at), REG_RCX);
}

/* The sets of the lines that are accessed: rax is the address, edx what[]. */
static void emit_remember(struct emitter *e, bool store)
{
	u32 line = 1u << cache.filter_shift;
	u8 *loop;

	/* edx = how many more lines there are */
	emit3(e, 0xc1, 0xea, PATH_RECORD_MORE_AT); /* shr edx */
	emit2(e, 0x89, 0xc1);                      /* mov ecx, eax */
	emit_group1(e, false, OP_AND, REG_RCX, line - 1);
	emit2(e, 0x01, 0xca); /* add edx, ecx */
	emit_shift(e, false, REG_RDX);
	emit_group1(e, true, OP_AND, REG_RAX, -line);
	loop = e->p;
	emit3(e, 0x48, 0x89, 0xc1); /* mov rcx, rax */
	emit_shift(e, true, REG_RCX);
	emit_group1(e, false, OP_AND, REG_RCX, cache.filter_sets - 1);
	emit3(e, 0x48, 0xf7, 0xd8); /* neg rax */
	/* mov gs:[rcx * 8 + load], rax */
	emit4(e, PREFIX_GS, 0x48, 0x89, 0x04);
	emit1(e, 0xcd);
	emit_u32(e, GS(filter.load));
	if (store) {
		emit4(e, PREFIX_GS, 0x48, 0x89, 0x04);
		emit1(e, 0xcd);
		emit_u32(e, GS(filter.store));
	} else {
		/* mov qword gs:[rcx * 8 + store], 0 */
		emit4(e, PREFIX_GS, 0x48, 0xc7, 0x04);
		emit1(e, 0xcd);
		emit_u32(e, GS(filter.store));
		emit_u32(e, 0);
	}
	emit3(e, 0x48, 0xf7, 0xd8);
	emit_group1(e, true, OP_ADD, REG_RAX, line);
	emit_group1(e, false, OP_SUB, REG_RDX, 1);
	emit2(e, 0x79, (u8)(loop - (e->p + 2))); /* jns */
}

/*
 * Forgets the sets of what lies between rax, where a string was left, and filter.addr, where it
 * began; of @far ones, whose segment is not in these, all.
 */
static void emit_forget(struct emitter *e, bool far)
{
	u32 line = 1u << cache.filter_shift, all = cache.filter_sets * line;
	u8 *loop, *few = NULL;

	if (!far) {
		emit_load_gs(e, REG_RCX, GS(filter.addr));
		emit3(e, 0x48, 0x39, 0xc8); /* cmp rax, rcx */
		emit2(e, 0x73, 2);          /* jae */
		emit2(e, 0x48, 0x91);       /* xchg rax, rcx */
		emit3(e, 0x48, 0x29, 0xc8); /* sub rax, rcx */
		/* edx = how many more lines there are, with those of the last element */
		emit2(e, 0x89, 0xca); /* mov edx, ecx */
		emit_group1(e, false, OP_AND, REG_RDX, line - 1);
		emit4(e, 0x8d, 0x54, 0x02, STRING_STEP_MAX - 1); /* lea edx, [rdx + rax + ] */
		emit_shift(e, false, REG_RDX);
		emit_shift(e, true, REG_RCX);
		emit_group1(e, true, OP_CMP, REG_RAX, all);
		emit2(e, 0x72, 0); /* jb */
		few = e->p;
	}
	emit1(e, 0xba); /* mov edx, sets - 1 */
	emit_u32(e, cache.filter_sets - 1);
	if (few)
		few[-1] = (u8)(e->p - few);
	loop = e->p;
	emit2(e, 0x89, 0xc8); /* mov eax, ecx */
	emit_group1(e, false, OP_AND, REG_RAX, cache.filter_sets - 1);
	for (u32 i = 0; i < 2; i++) {
		emit4(e, PREFIX_GS, 0x48, 0xc7, 0x04); /* mov qword gs:[rax * 8 + ], 0 */
		emit1(e, 0xc5);
		emit_u32(e, i ? GS(filter.store) : GS(filter.load));
		emit_u32(e, 0);
	}
	emit_group1(e, false, OP_ADD, REG_RCX, 1);
	emit_group1(e, false, OP_SUB, REG_RDX, 1);
	emit2(e, 0x79, (u8)(loop - (e->p + 2))); /* jns */
}

/* Code that emit_record() jumps to. It changes no register, and no flag that is not @dead. */
static u32 emit_stub(struct emitter *e, enum path_access_kind kind, bool dead, bool far)
{
	u32 at = emit_at(e);
	u8 *skip = NULL;

	emit_store_gs(e, GS(filter.saved[0]), REG_RAX);
	emit_store_gs(e, GS(filter.saved[1]), REG_RCX);
	emit_store_gs(e, GS(filter.saved[2]), REG_RDX);
	if (!dead) {
		emit4(e, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto al */
		emit_store_gs(e, GS(filter.flags), REG_RAX);
	}
	emit_load_gs(e, REG_RAX, GS(filter.addr));
	if (kind == PATH_LOADS) {
		emit_gs_op(e, 0x3b, REG_RAX, GS(filter.upto)); /* cmp: nothing was accessed */
		emit2(e, 0x0f, 0x84);                          /* je */
		emit_u32(e, 0);
		skip = e->p;
	}
	emit_append(e);
	if (kind == PATH_LOADS) {
		emit_load_gs(e, REG_RAX, GS(filter.upto));
		emit_append(e);
	}
	if (kind == PATH_LOADS)
		emit_forget(e, far);
	else if (kind != PATH_PREFETCH)
		emit_remember(e, kind == PATH_STORE);
	if (skip) {
		u32 rel = (u32)(e->p - skip);

		__builtin_memcpy(skip - 4, &rel, 4);
	}
	if (!dead) {
		emit_load_gs(e, REG_RAX, GS(filter.flags));
		emit3(e, 0x04, 0x7f, 0x9e); /* add al, 0x7f; sahf */
	}
	emit_load_gs(e, REG_RDX, GS(filter.saved[2]));
	emit_load_gs(e, REG_RCX, GS(filter.saved[1]));
	emit_load_gs(e, REG_RAX, GS(filter.saved[0]));
	emit_jmp_gs(e, GS(filter.back));
	return at;
}

void arch_filter_begin(struct dbt_thread *t)
{
	sys_arch_prctl(ARCH_GET_FS, (u64)&t->filter.fs_base);
}

void filter_init(void)
{
	struct emitter e;

	if (!(cache.mask & DBT_MASK_FILTER))
		return;
	cache.filter_set_bits = cold_word((u64)(cache.filter_sets - 1) << cache.filter_shift);
	cache.filter_line_bits = cold_word(-(1ull << cache.filter_shift));
	e = cold_begin(STUBS_BYTES);
	cache.record_load = emit_stub(&e, PATH_LOAD, false, false);
	cache.record_store = emit_stub(&e, PATH_STORE, false, false);
	cache.record_dead_load = emit_stub(&e, PATH_LOAD, true, false);
	cache.record_dead_store = emit_stub(&e, PATH_STORE, true, false);
	cache.record_only = emit_stub(&e, PATH_PREFETCH, false, false);
	cache.record_string = emit_stub(&e, PATH_LOADS, false, false);
	cache.record_far_string = emit_stub(&e, PATH_LOADS, false, true);
	CHECK(e.p <= (u8 *)code_at(cache.cold) + STUBS_BYTES);
}
