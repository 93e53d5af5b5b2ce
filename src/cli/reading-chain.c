/* The call chain of a sample, wherever it stands: in the record, in its branches, or in a stack. */
#include "cli/reading.h"

#include <string.h>
#include <sys/utsname.h>

/* A file without features, of a recorder that was killed, is taken for one of this machine. */
static enum sym_cpu cpu_of(struct reading *r)
{
	const char *arch = reading_arch(r);
	struct utsname own;

	if (!*arch && !uname(&own))
		arch = own.machine;
	return !strcmp(arch, "x86_64")    ? SYM_CPU_X86_64
	       : !strcmp(arch, "aarch64") ? SYM_CPU_ARM64
					  : SYM_CPU_OTHER;
}

/* Once for each sample. */
static void unwind(struct reading *r, const struct data_item *item)
{
	const struct ap_sample *s = &item->record.sample;
	struct sym_unwind_input in;

	r->unwound = true;
	r->nr_frames = 0;
	if (!s->stack_user.dyn_size || s->regs_user.abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	if (!r->unwinder && !r->unwinder_tried) {
		r->unwinder_tried = true;
		r->unwinder = sym_unwinder_new(r->view);
		if (!r->unwinder)
			command_error(r->cmd, "libdw.so.1 is not installed, which follows copied "
					      "stacks: call chains end in the kernel (Debian: "
					      "libdw1)");
	}
	if (!r->unwinder)
		return;
	in = (struct sym_unwind_input){
		.cpu = cpu_of(r),
		.pid = item->record.id.pid,
		.mask = s->regs_user.mask,
		.values = s->regs_user.values,
		.stack = s->stack_user.bytes,
		.stack_len = min_u64(s->stack_user.dyn_size, s->stack_user.len),
	};
	r->nr_frames = sym_unwind(r->unwinder, &in, r->frames);
}

static bool next_of_stack(struct reading *r, const struct data_item *item, struct reading_walk *w,
			  u64 *addr)
{
	if (!r->unwound)
		unwind(r, item);
	if (w->frame == r->nr_frames)
		return false;
	w->kernel = false;
	*addr = r->frames[w->frame++];
	return true;
}

/* The calls that are open, if the sample has recorded such; else NULL. */
static const struct ap_branch_stack *open_calls(const struct reading *r,
						const struct data_item *item)
{
	const struct ap_branch_stack *calls = &item->record.sample.branch_stack;
	const struct data_event *e = item->event >= 0 ? data_reader_event(r->data, (u32)item->event)
						      : NULL;

	return calls->nr && e && (e->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK)
		       ? calls
		       : NULL;
}

static bool next_call(const struct ap_branch_stack *calls, struct reading_walk *w, u64 *addr)
{
	if (w->call > calls->nr)
		return false;
	w->kernel = false;
	*addr = w->call ? calls->entries[w->call - 1].from : calls->entries[0].to;
	w->call++;
	return true;
}

bool reading_walk_next(struct reading *r, const struct data_item *item, struct reading_walk *w,
		       u64 *addr)
{
	const struct ap_branch_stack *calls = open_calls(r, item);
	const struct ap_callchain *chain = &item->record.sample.callchain;

	if (!w->at)
		w->kernel = reading_in_kernel(item);
	w->returns = false;
	while (w->at < chain->nr) {
		u64 ip = chain->ips[w->at++];

		if (ap_callchain_is_marker(ip)) {
			w->kernel = ip == (u64)PERF_CONTEXT_KERNEL;
			w->guest = ip != (u64)PERF_CONTEXT_KERNEL && ip != (u64)PERF_CONTEXT_USER;
			if (ip == (u64)PERF_CONTEXT_USER && calls)
				w->at = chain->nr;
			/* First comes where that mode was. */
			w->depth = 0;
			continue;
		}
		if (w->guest)
			continue;
		w->returns = w->depth++ > 0;
		*addr = ip;
		return true;
	}
	return calls ? next_call(calls, w, addr) : next_of_stack(r, item, w, addr);
}

bool reading_has_chain(struct reading *r, const struct data_item *item)
{
	struct reading_walk w = {0};
	u64 addr;

	return item->record.sample.callchain.nr || reading_walk_next(r, item, &w, &addr);
}
