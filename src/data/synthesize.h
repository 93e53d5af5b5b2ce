/*
 * PURPOSE: records of what was there before recording began: processes, their names and mappings,
 * the kernel's. Made from /proc, in the form in which the kernel tells what happens later, with the
 * time 0.
 */
#ifndef DATA_SYNTHESIZE_H
#define DATA_SYNTHESIZE_H

#include <anyperf/sampler.h>

#include "base/types.h"

struct data_synthesis {
	const struct ap_layout *layout; /* of the first event; borrowed */
	bool data_maps;                 /* mappings that are not executable too */
	ap_records_fn *put;             /* takes each record */
	void *data;
};

/* Each returns 0 or what `put` returned; what has gone meanwhile is left out. */
int data_synthesize_kernel(const struct data_synthesis *s);
int data_synthesize_process(const struct data_synthesis *s,
			    pid_t pid); /* a thread's: its process */
int data_synthesize_all(const struct data_synthesis *s);

/* That @n records were lost of which no LOST record has told. */
int data_synthesize_lost(const struct data_synthesis *s, u64 n);

/* What a sample of user mode says. */
#define DATA_CALLERS_MAX 126u
struct data_sample {
	u64 ip, period;
	const u64 *callers; /* where each goes on, the nearest first */
	u32 nr_callers;     /* at most DATA_CALLERS_MAX */
	u64 addr;           /* of the data that it is done with; 0: none */
	u64 stack;          /* where the thread's stack is; 0: not known */
};

/*
 * With what stands in @id, as far as the layout has it. Registers in the layout are the stack
 * pointer alone.
 */
int data_synthesize_sample(const struct data_synthesis *s, const struct ap_sample_id *id,
			   const struct data_sample *what);

#endif
