/*
 * PURPOSE: what was found where an event reached its period: the part of a sample that the core
 * cannot know by itself. A driver or the host fills it in and hands it to event_overflow(). Values
 * that are not given have what the kernel writes in their place (nothing, 0, "not available").
 *
 * Lifetime: borrowed for the call, with all that it points to.
 */
#ifndef CORE_SAMPLE_SAMPLE_FACTS_H
#define CORE_SAMPLE_SAMPLE_FACTS_H

#include "record/coding.h"

struct pe_attr;
struct task;

struct sample_facts {
	struct task *task; /* on which it happened; NULL: nobody's */
	u64 time;          /* when, in the event's clock; 0: now */
	u16 cpumode;       /* PERF_RECORD_MISC_USER or another of CPUMODE_MASK */
	u64 periods;       /* that have passed, if the task tells late; 0: one */
	bool exact_ip;     /* ip is the instruction itself, not one behind it */
	u64 has;           /* PERF_SAMPLE_*: what of `sample` is given besides ip */

	/*
	 * As a reader would have it, but for what the event did not ask for being there as well:
	 *
	 *	callchain     addresses in user mode alone, beginning with that of the program
	 *	              counter: no markers
	 *	branch_stack  any branches, each with its type: the core takes out those of the
	 *	              event's kinds
	 *	regs_*        any registers, with their mask: those that were asked for and are not
	 *	              there are 0
	 *	stack_user    what could be read, from the stack pointer up; dyn_size is not looked
	 *	at
	 *
	 * read and cgroup are the core's, and period is the event's unless it is given.
	 */
	struct ap_sample sample;
	struct ap_callchain kernel_chain; /* the kernel's part in front of it, without markers */
};

/*
 * Whether @attr's branch stack has branches of @type (PERF_BR_*), as far as that depends on what
 * kind they are. Not for PERF_SAMPLE_BRANCH_CALL_STACK, which has calls that have not returned.
 */
bool branch_is_wanted(const struct pe_attr *attr, u32 type);

#endif
