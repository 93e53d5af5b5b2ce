/*
 * PURPOSE: functions in assembly (snippets.S) that tests run as guest code, those that several
 * tests take; and the programs that are held against the stepper, which run some thousand steps.
 */
#ifndef UNIT_DBT_SNIPPETS_H
#define UNIT_DBT_SNIPPETS_H

#include <string.h>
#include <sys/mman.h>

#include "dbt/dbt.h"

u64 snip_loop(u64 n), snip_rep(u64 n), snip_branches(void), snip_flags(u64 a, u64 b);
u64 snip_redzone(void), snip_fib(u64 n), snip_table(u64 n), snip_spilled(void), snip_deep(u64 n);
u64 snip_live(u64 n), snip_compared(u64 n);
u64 snip_longjmp(void), snip_vector(u64 n, u64 step), snip_transaction(u64 eax);

extern const char snip_rewriting[], snip_rewriting_end[];

/* snip_rewriting(n) where it can be written, and be executed by the stepper too. */
static inline void *snip_rewriting_copy(struct dbt_thread *t)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	memcpy(at, snip_rewriting, (size_t)(snip_rewriting_end - snip_rewriting));
	dbt_exec_add(t, (u64)at, 4096, DBT_EXEC_WRITABLE);
	return at;
}

struct program {
	const char *name;
	const void *fn;
	u64 abc[3];
};

static const struct program snip_programs[] __attribute__((unused)) = {
	{"loop", snip_loop, {300}},       {"rep", snip_rep, {200}},
	{"branches", snip_branches, {0}}, {"flags", snip_flags, {200, 7}},
	{"redzone", snip_redzone, {0}},   {"fib", snip_fib, {9}},
	{"table", snip_table, {100}},     {"spilled", snip_spilled, {0}},
	{"deep", snip_deep, {300}},       {"longjmp", snip_longjmp, {0}},
	{"vector", snip_vector, {40, 3}},
};

#endif
