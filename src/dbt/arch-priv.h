/*
 * PURPOSE: what the folder of a CPU below arch/ provides to the translator's other files: functions
 * here, dbt-arch.h and guest-priv.h there. Together they are what a port has to write.
 *
 * All are called with cache.lock held but for those of which it is said.
 */
#ifndef DBT_ARCH_PRIV_H
#define DBT_ARCH_PRIV_H

#include "dbt/arch/x86_64/guest-priv.h"
#include "dbt/run-priv.h"

/* Makes the cache's own stubs; called again after each flush. */
/* What is to be known of the CPU, once; and a number for what that was. */
void arch_begin(void);
u64 arch_cpu(void);
void arch_init(void);
/* Before @t enters the cache, with a filter: bases of segments are what they are now. */
void arch_filter_begin(struct dbt_thread *t);

/*
 * Makes the block at guest @pc, which an exit of kind @why has asked for, in @form (of
 * BLOCK_FORMS). NULL with *@fault set to the first byte that cannot be fetched.
 */
struct dbt_block *arch_translate(u64 pc, enum exit_kind why, u32 form, struct dbt_exit *from,
				 u64 *fault);
/*
 * Translates again what was translated for one time only, if it has not been since: stubs of PLTs,
 * which are bound by now.
 */
void arch_translate_once_more(void);
/* Has the memory ready that it takes; whenever code can be written that could not be before. */
void arch_translate_soon(void);
/* Executable memory has changed: forgets what was remembered of it. */
void arch_forget_code(void);
/* Of a BLOCK_CHECKED: whether the guest's bytes are the same. */
bool arch_block_current(struct dbt_block *b);

/* The jump at @patch now leads to @target, both cache offsets; others may be executing it. */
void arch_patch(u32 patch, u32 target);
/* Bytes that arch_exit_code() makes at most. */
#define EXIT_CODE_MOST 512u
/*
 * Where exit @x leads when it is linked to @to: there, or to code that is made for it, which counts
 * first: *@code, which may be 0, the first of all. False: there is no room for it.
 */
bool arch_exit_code(const struct dbt_exit *x, const struct dbt_block *to, u32 *code);
/* Whether @patch lies where that is one store to everybody. */
bool arch_can_patch(u32 patch);

/* The block's entry in TABLE_JUMP, made if need be; NULL no room. */
struct dbt_entry *arch_entry(struct dbt_block *b);
/* An entry in TABLE_JUMP that goes on at the return point @ret, likewise. */
struct dbt_entry *arch_return_entry(struct dbt_entry *ret);
/* It matches nothing any more; others may be executing it. */
void arch_entry_kill(const struct dbt_entry *e);
bool arch_entry_lives(const struct dbt_entry *e);
/* CHECK()s that @x leads to its stub or to its target, and counts on its way if it must. */
void arch_check_exit(const struct dbt_exit *x);
/* CHECK()s that the code of @b is laid out as this CPU likes it. */
void arch_check_jumps(const struct dbt_block *b);

/*
 * Without the lock, the thread being out of the cache: does the instruction at its pc.
 * DBT_INTERRUPTED: it has retired; else what became of it, DBT_REFUSED, DBT_PAGE_FAULT or
 * DBT_STACK_FAULT.
 */
enum dbt_stop arch_emulate(struct dbt_thread *t);
/*
 * Likewise: the instruction at @pc has retired and left behind what it should not have (an address
 * of the cache). Puts it right.
 */
void arch_mend(struct dbt_thread *t, u64 pc);
/*
 * Likewise: if the instruction at its pc accesses elements at addresses that are in a vector
 * register, appends them to the trace (path_element()).
 */
void arch_tell_elements(struct dbt_thread *t);
/*
 * Likewise: the other registers of the guest, now that it has stopped for @stop and its pc is set.
 */
void arch_stopped(struct dbt_thread *t, enum dbt_stop stop);

/*
 * In the cache, or before leave_cache(): of the path through @b that was at offset @off of its code
 * the instructions before @index have retired. Corrects the meter.
 */
void arch_meter_correct(struct dbt_thread *t, const struct dbt_block *b, u32 off, u32 index);
/*
 * From @regs as they are @off bytes behind @b's first to those before the instruction that is being
 * executed there, whose index it returns.
 */
u32 arch_rewind(const struct dbt_thread *t, const struct dbt_block *b, u32 off,
		struct dbt_regs *regs);
/* Whether @off bytes behind @b's first an instruction's native form begins, or is as good as. */
bool arch_at_boundary(const struct dbt_block *b, u32 off);
/* The guest's address of instruction @index of @b. */
u64 arch_insn_pc(const struct dbt_block *b, u32 index);

/* Without the lock: enters the cache. 0: left by an exit, 1: interrupted. */
int dbt_enter(struct dbt_thread *t);
/* Not to be called: code of the cache jumps there. */
void dbt_exit(void);
/* Copies @n bytes of guest memory; returns how many could be read. Needs no lock. */
size_t dbt_fetch(void *to, u64 from, size_t n);

#endif
