/*
 * Which branches a branch stack has, and what it says of each [BR-01..06]. As on x86, the level of
 * a branch is that of where it goes.
 */
#include "core/core-priv.h"

#define KINDS                                                                                  \
	(PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_ANY_RETURN |                         \
	 PERF_SAMPLE_BRANCH_IND_CALL | PERF_SAMPLE_BRANCH_COND | PERF_SAMPLE_BRANCH_IND_JUMP | \
	 PERF_SAMPLE_BRANCH_CALL | PERF_SAMPLE_BRANCH_CALL_STACK)

static u64 kinds_of(u32 type)
{
	switch (type) {
	case PERF_BR_COND: return PERF_SAMPLE_BRANCH_COND;
	case PERF_BR_IND: return PERF_SAMPLE_BRANCH_IND_JUMP;
	case PERF_BR_CALL: return PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_CALL;
	case PERF_BR_IND_CALL: return PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_IND_CALL;
	case PERF_BR_SYSCALL: return PERF_SAMPLE_BRANCH_ANY_CALL;
	case PERF_BR_RET:
	case PERF_BR_SYSRET: return PERF_SAMPLE_BRANCH_ANY_RETURN;
	default: return 0;
	}
}

/* Calls that have not returned, as hardware keeps them: seen from the last branch backwards. */
static bool open_call(u32 type, u32 *returned)
{
	if (type == PERF_BR_RET) {
		++*returned;
		return false;
	}
	if (type != PERF_BR_CALL && type != PERF_BR_IND_CALL)
		return false;
	if (!*returned)
		return true;
	--*returned;
	return false;
}

static struct perf_branch_entry told(struct perf_branch_entry entry, u64 wanted)
{
	struct perf_branch_entry out = {.from = entry.from, .to = entry.to};

	if (!(wanted & PERF_SAMPLE_BRANCH_NO_FLAGS)) {
		out.mispred = entry.mispred;
		out.predicted = entry.predicted;
		out.in_tx = entry.in_tx;
		out.abort = entry.abort;
	}
	if (!(wanted & PERF_SAMPLE_BRANCH_NO_CYCLES))
		out.cycles = entry.cycles;
	if (wanted & PERF_SAMPLE_BRANCH_TYPE_SAVE)
		out.type = entry.type;
	return out;
}

bool branch_is_wanted(const struct pe_attr *attr, u32 type)
{
	u64 wanted = attr->branch_sample_type;

	return wanted & (PERF_SAMPLE_BRANCH_ANY | (KINDS & kinds_of(type)));
}

static bool level_is_wanted(u64 wanted, u64 to)
{
	return wanted & (to >> 63 ? PERF_SAMPLE_BRANCH_KERNEL : PERF_SAMPLE_BRANCH_USER);
}

/* In a transaction or not: both, unless one of them is asked for. */
static bool transaction_is_wanted(u64 wanted, bool in_tx)
{
	if (!(wanted & (PERF_SAMPLE_BRANCH_IN_TX | PERF_SAMPLE_BRANCH_NO_TX)))
		return true;
	return wanted & (in_tx ? PERF_SAMPLE_BRANCH_IN_TX : PERF_SAMPLE_BRANCH_NO_TX);
}

struct ap_branch_stack branches_of(const struct event *event, const struct ap_branch_stack *given,
				   struct perf_branch_entry *entries)
{
	u64 wanted = event->attr.branch_sample_type;
	struct ap_branch_stack stack = {.hw_idx = given->hw_idx, .entries = entries};
	u32 returned = 0;

	for (u64 i = 0; i < given->nr && stack.nr < BRANCHES_MAX; i++) {
		const struct perf_branch_entry *entry = &given->entries[i];

		if (!level_is_wanted(wanted, entry->to) ||
		    !transaction_is_wanted(wanted, entry->in_tx))
			continue;
		if (wanted & PERF_SAMPLE_BRANCH_CALL_STACK && !(wanted & PERF_SAMPLE_BRANCH_ANY)
			    ? open_call(entry->type, &returned)
			    : branch_is_wanted(&event->attr, entry->type))
			entries[stack.nr++] = told(*entry, wanted);
	}
	return stack;
}
