/*
 * PURPOSE: running functions of the test program itself as guest code: they share its memory, their
 * system calls go to the kernel. guest_init() once; then each thread that runs guest code has one
 * struct guest. Signal handlers are the harness's; see guest_step for what SIGTRAP does.
 */
#ifndef UNIT_DBT_GUEST_H
#define UNIT_DBT_GUEST_H

#include "dbt/dbt.h"

#define GUEST_DONE 0x7e57ull /* where a guest function returns to; nothing is executable there */

struct guest {
	struct dbt_thread *t;
	char *stack;              /* its top is where functions start */
	u64 interrupts;           /* DBT_INTERRUPTED seen */
	u64 fault_pc, fault_addr; /* of the last fault handed to the guest, which ends the run */
	int fault_sig;
	/*
	 * Not 0: single-step that many native instructions, then recover as if a signal had come.
	 */
	u64 step;
	u64 stepped; /* how many there were before the run ended */
	u32 outside; /* how many native instructions since the cache was left */
	void (*on_deadline)(struct guest *g); /* as ops.deadline(); sets others */
	void (*on_place)(struct guest *g);    /* as ops.place() */
	u32 *trace; /* what ops.trace() has handed over: nr_traced words, at most max_traced */
	u64 nr_traced, max_traced;
	u64 pieces; /* in which it was */
	/* Not NULL: called with each piece of the trace and its slots. */
	void (*on_trace)(struct guest *g, const u32 *words, u32 n, const u64 *slots, u64 nr_slots);
	u64 slots_at;                      /* ops.slots_map() */
	u64 trace_at;                      /* ops.trace_map() */
	void (*on_native)(u64 *gregs);     /* not NULL: SIGTRAP is its own; see stepper.c */
	void (*on_step)(const u64 *gregs); /* not NULL: called before each of them in the cache */
};

/*
 * That of the test's first thread, made at the first call: with all checks, counting everything, a
 * cache that is full at times, DBT_BASELINE if BASELINE is in the environment, and DBT_WHOLE_JUMPS
 * if WHOLE is. With IMAGED guest_call() and native_begin() of a function of the test program's own
 * find its code in an image, as far as it has been translated before and there is no other thread.
 */
struct guest *guest_main(void);
void guest_init(u32 flags, u32 mask, u64 cache_size, u64 cache_at);
void guest_thread_init(struct guest *g);
void guest_thread_exit(struct guest *g);

/* Runs @fn(a, b, c) as the guest and returns its rax; the registers are in g->t->regs. */
u64 guest_call(struct guest *g, const void *fn, u64 a, u64 b, u64 c);
/*
 * The same from g->t->regs as they are, until GUEST_DONE, or a fault, whose signal it returns (0).
 */
int guest_run(struct guest *g);

/* What they do before. */
void guest_imaged(struct guest *g, const void *fn);
/*
 * @mask, which traces. With IMAGED it has windows and no words of paths, since other code that
 * traces is in no image.
 */
u64 guest_mask(u64 mask);

u64 guest_count(struct guest *g, enum meter_quantity q);

/* Memory that the guest may execute and write; starts empty. */
u8 *guest_code(u64 size, u32 exec_flags);

extern __thread struct guest *guest_self;

#endif
