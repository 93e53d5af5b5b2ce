/*
 * The cache's own code for what the filter lets through: it appends a record to the thread's, and
 * has the tables know it. Code of accesses (filter.c) comes here from where it is cold.
 */
#include <asm/prctl.h>

#include "dbt/arch/x86_64/filter-priv.h"
#include "sys/kernel.h"

#define STUBS_BYTES     4096u /* of all stubs, at most */
#define STRING_STEP_MAX 8u    /* bytes of a string's element */

/* mov [rcx + @at], rax or edx */
static void emit_put(struct emitter *e, bool rax, u8 at)
{
	if (rax)
		emit1(e, 0x48);
	emit3(e, 0x89, rax ? 0x41 : 0x51, at);
}

/*
 * Appends { rax, where the trace is, filter.what | @more } to the records by rcx and rdx. The first
 * store may find no more room: records_are_full().
 */
static void emit_append(struct emitter *e, u32 more)
{
	emit_load_gs(e, REG_RCX, GS(slots_at));
	emit_put(e, true, 0);
	emit4(e, PREFIX_GS, 0x8b, 0x14, 0x25); /* mov edx, gs:[] */
	emit_u32(e, GS(trace_at));
	emit_put(e, false, 8);
	emit4(e, PREFIX_GS, 0x8b, 0x14, 0x25);
	emit_u32(e, GS(filter.what));
	if (more)
		emit_group1(e, false, OP_OR, REG_RDX, more);
	emit_put(e, false, 12);
	emit_group1(e, true, OP_ADD, REG_RCX, sizeof(struct path_record));
	emit_store_gs(e, GS(slots_at), REG_RCX);
}

/* @op rax or rdx, gs:[rcx * 8 + @table], or what is written the other way round */
static void emit_entry_op(struct emitter *e, u8 op, u8 reg, u32 table)
{
	emit4(e, PREFIX_GS, 0x48, op, (u8)(0x04 | reg << 3));
	emit1(e, 0xcd);
	emit_u32(e, table);
}

#define OP_MOV_TO   0x89
#define OP_MOV_FROM 0x8b
#define OP_ADD_FROM 0x03

/* mov qword gs:[rcx * 8 + @table], 0 */
static void emit_no_entry(struct emitter *e, u32 table)
{
	emit4(e, PREFIX_GS, 0x48, 0xc7, 0x04);
	emit1(e, 0xcd);
	emit_u32(e, table);
	emit_u32(e, 0);
}

#define JAE 0x83
#define JB  0x82
#define JE  0x84
#define JNE 0x85
#define JA  0x87
#define JNS 0x89
#define JMP 0xe9

/* @jump to where label() says it goes */
static u8 *emit_jump(struct emitter *e, u8 jump)
{
	if (jump == JMP)
		emit1(e, JMP);
	else
		emit2(e, 0x0f, jump);
	emit_u32(e, 0);
	return e->p;
}

static void label(const struct emitter *e, u8 *jump)
{
	u32 rel = (u32)(e->p - jump);

	__builtin_memcpy(jump - 4, &rel, 4);
}

/* Once more from @loop on, as often as edx says. */
static void emit_repeat(struct emitter *e, const u8 *loop)
{
	emit_group1(e, false, OP_SUB, REG_RDX, 1);
	emit2(e, 0x0f, JNS);
	emit_u32(e, (u32)(loop - (e->p + 4)));
}

/* How many more lines of the address eax an access has that begins there: edx. Changes ecx. */
static void emit_more_lines(struct emitter *e)
{
	emit4(e, PREFIX_GS, 0x8b, 0x14, 0x25); /* mov edx, gs:[] */
	emit_u32(e, GS(filter.what));
	emit3(e, 0xc1, 0xea, PATH_RECORD_MORE_AT); /* shr edx */
	emit2(e, 0x89, 0xc1);                      /* mov ecx, eax */
	emit_group1(e, false, OP_AND, REG_RCX, (1u << cache.filter_shift) - 1);
	emit2(e, 0x01, 0xca); /* add edx, ecx */
	emit_shift(e, false, REG_RDX);
}

/* rcx = the set of rax */
static void emit_set(struct emitter *e)
{
	emit3(e, 0x48, 0x89, 0xc1); /* mov rcx, rax */
	emit_shift(e, true, REG_RCX);
	emit_group1(e, false, OP_AND, REG_RCX, cache.filter_sets - 1);
}

/* The sets of the lines that are accessed, from the address rax on. */
static void emit_remember(struct emitter *e, bool store)
{
	u32 line = 1u << cache.filter_shift;
	u8 *loop;

	emit_more_lines(e);
	emit_group1(e, true, OP_AND, REG_RAX, -line);
	loop = e->p;
	emit_set(e);
	emit3(e, 0x48, 0xf7, 0xd8); /* neg rax */
	emit_entry_op(e, OP_MOV_TO, REG_RAX, GS(filter.load));
	if (store)
		emit_entry_op(e, OP_MOV_TO, REG_RAX, GS(filter.store));
	else
		emit_no_entry(e, GS(filter.store));
	emit3(e, 0x48, 0xf7, 0xd8);
	emit_group1(e, true, OP_ADD, REG_RAX, line);
	emit_repeat(e, loop);
}

/* Says of set rcx which line was accessed last, if records say otherwise. Changes rax. */
static void emit_say_order(struct emitter *e)
{
	u8 *is_said;

	/* test byte gs:[rcx * 8 + store], 1 */
	emit4(e, PREFIX_GS, 0xf6, 0x04, 0xcd);
	emit_u32(e, GS(filter.store));
	emit1(e, 1);
	is_said = emit_jump(e, JE);
	emit_entry_op(e, OP_MOV_FROM, REG_RAX, GS(filter.load));
	emit3(e, 0x48, 0xf7, 0xd8); /* neg rax */
	emit_store_gs(e, GS(filter.saved[3]), REG_RCX);
	emit_store_gs(e, GS(filter.saved[4]), REG_RDX);
	emit_append(e, PATH_RECORD_AGAIN);
	emit_load_gs(e, REG_RDX, GS(filter.saved[4]));
	emit_load_gs(e, REG_RCX, GS(filter.saved[3]));
	label(e, is_said);
}

/* Forgets the sets of line rcx and of edx more. Changes rax. */
static void emit_forget_sets(struct emitter *e)
{
	u8 *loop = e->p;

	emit_group1(e, false, OP_AND, REG_RCX, cache.filter_sets - 1);
	if (cache.filter_plain == 2)
		emit_say_order(e);
	emit_no_entry(e, GS(filter.load));
	emit_no_entry(e, GS(filter.store));
	emit_group1(e, false, OP_ADD, REG_RCX, 1);
	emit_repeat(e, loop);
}

/*
 * Forgets the sets of what lies between rax, where a string was left, and filter.addr, where it
 * began; of @far ones, whose segment is not in these, all.
 */
static void emit_forget(struct emitter *e, bool far)
{
	u32 line = 1u << cache.filter_shift, all = cache.filter_sets * line;
	u8 *few = NULL;

	if (!far) {
		u8 *upwards;

		emit_load_gs(e, REG_RCX, GS(filter.addr));
		emit3(e, 0x48, 0x39, 0xc8); /* cmp rax, rcx */
		upwards = emit_jump(e, JAE);
		emit2(e, 0x48, 0x91); /* xchg rax, rcx */
		label(e, upwards);
		emit3(e, 0x48, 0x29, 0xc8); /* sub rax, rcx */
		/* edx = how many more lines there are, with those of the last element */
		emit2(e, 0x89, 0xca); /* mov edx, ecx */
		emit_group1(e, false, OP_AND, REG_RDX, line - 1);
		emit4(e, 0x8d, 0x54, 0x02, STRING_STEP_MAX - 1); /* lea edx, [rdx + rax + ] */
		emit_shift(e, false, REG_RDX);
		emit_shift(e, true, REG_RCX);
		emit_group1(e, true, OP_CMP, REG_RAX, all);
		few = emit_jump(e, JB);
	}
	emit1(e, 0xba); /* mov edx, sets - 1 */
	emit_u32(e, cache.filter_sets - 1);
	if (few)
		label(e, few);
	emit_forget_sets(e);
}

/* Of a string: filter.addr is where it began, rax where it was left. */
static void emit_string(struct emitter *e, bool far)
{
	/* What is told of the order was so before. */
	emit_forget(e, far);
	emit_load_gs(e, REG_RAX, GS(filter.addr));
	emit_append(e, 0);
	emit_load_gs(e, REG_RAX, GS(filter.upto));
	emit_append(e, 0);
}

/* Of what is of several lines: the sets of others than these are as they were. */
static void emit_crossing(struct emitter *e)
{
	emit_more_lines(e);
	emit2(e, 0x89, 0xc1); /* mov ecx, eax */
	emit_shift(e, false, REG_RCX);
	emit_forget_sets(e);
	emit_load_gs(e, REG_RAX, GS(filter.addr));
	emit_append(e, 0);
	emit_remember(e, false);
}

/*
 * Where two lines of each set are known: the last but one becomes the last one. What is always
 * recorded (filter.c) may be of the last one, which then is both.
 */
static void emit_two_known(struct emitter *e)
{
	u8 *crosses, *third, *is_done[2];

	emit4(e, PREFIX_GS, 0x8b, 0x14, 0x25); /* mov edx, gs:[] */
	emit_u32(e, GS(filter.what));
	emit3(e, 0xc1, 0xea, PATH_RECORD_MORE_AT); /* shr edx */
	emit2(e, 0x01, 0xc2);                      /* add edx, eax */
	emit2(e, 0x31, 0xc2);                      /* xor edx, eax */
	emit_shift(e, false, REG_RDX);
	crosses = emit_jump(e, JNE);
	emit_set(e);
	emit_group1(e, true, OP_AND, REG_RAX, -(1u << cache.filter_shift));
	emit3(e, 0x48, 0xf7, 0xd8); /* neg rax */
	emit_entry_op(e, OP_MOV_FROM, REG_RDX, GS(filter.store));
	emit3(e, 0x48, 0x31, 0xc2); /* xor rdx, rax: 0 or 1 of the last but one */
	emit_group1(e, true, OP_CMP, REG_RDX, 1);
	third = emit_jump(e, JA);
	emit_group1(e, false, OP_XOR, REG_RDX, 1);
	emit_entry_op(e, OP_ADD_FROM, REG_RDX, GS(filter.load));
	emit_entry_op(e, OP_MOV_TO, REG_RAX, GS(filter.load));
	emit_entry_op(e, OP_MOV_TO, REG_RDX, GS(filter.store));
	is_done[0] = emit_jump(e, JMP);
	label(e, third);
	/* Bit 0 of store[], as the line has none: the record says so. */
	emit3(e, 0xc1, 0xe2, 31);              /* shl edx, 31 */
	emit4(e, PREFIX_GS, 0x09, 0x14, 0x25); /* or gs:[what], edx */
	emit_u32(e, GS(filter.what));
	emit_entry_op(e, OP_MOV_FROM, REG_RDX, GS(filter.load));
	emit_entry_op(e, OP_MOV_TO, REG_RAX, GS(filter.load));
	emit_entry_op(e, OP_MOV_TO, REG_RDX, GS(filter.store));
	emit_load_gs(e, REG_RAX, GS(filter.addr));
	emit_append(e, 0);
	is_done[1] = emit_jump(e, JMP);
	label(e, crosses);
	emit_crossing(e);
	label(e, is_done[0]);
	label(e, is_done[1]);
}

/* Code that emit_record() jumps to. It changes no register, and no flag that is not @dead. */
static u32 emit_stub(struct emitter *e, enum path_access_kind kind, bool dead, bool far)
{
	u32 at = emit_at(e);
	u8 *skip;

	emit_store_gs(e, GS(filter.saved[0]), REG_RAX);
	emit_store_gs(e, GS(filter.saved[1]), REG_RCX);
	emit_store_gs(e, GS(filter.saved[2]), REG_RDX);
	if (!dead) {
		emit4(e, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto al */
		emit_store_gs(e, GS(filter.flags), REG_RAX);
	}
	emit_load_gs(e, REG_RAX, GS(filter.addr));
	if (kind == PATH_LOADS) {
		emit_load_gs(e, REG_RCX, GS(filter.upto));
		emit2(e, 0x48, 0x91);       /* xchg rax, rcx */
		emit3(e, 0x48, 0x39, 0xc8); /* cmp rax, rcx: nothing was accessed */
		skip = emit_jump(e, JE);
		emit_string(e, far);
		label(e, skip);
	} else if (cache.filter_plain == 2) {
		emit_two_known(e);
	} else {
		emit_append(e, 0);
		if (kind != PATH_PREFETCH)
			emit_remember(e, kind == PATH_STORE);
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
	cache.record_dead_load = emit_stub(&e, PATH_LOAD, true, false);
	if (cache.filter_plain == 2) {
		/* It makes no difference. */
		cache.record_store = cache.record_load;
		cache.record_dead_store = cache.record_dead_load;
	} else {
		cache.record_store = emit_stub(&e, PATH_STORE, false, false);
		cache.record_dead_store = emit_stub(&e, PATH_STORE, true, false);
	}
	cache.record_only = emit_stub(&e, PATH_PREFETCH, false, false);
	cache.record_string = emit_stub(&e, PATH_LOADS, false, false);
	cache.record_far_string = emit_stub(&e, PATH_LOADS, false, true);
	CHECK(e.p <= (u8 *)code_at(cache.cold) + STUBS_BYTES);
}
