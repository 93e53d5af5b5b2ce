/*
 * One handler for everything. Where it finds the thread decides:
 *
 *   in the cache    dbt_recover() or dbt_fault() gives the exact guest state; delivered at once
 *   guest_call      the call is not begun, or is restarted, or is complete with its result
 *   signal_trap     asked for by signal_deliver(): the notes are delivered from this frame
 *   guest_copy      a guarded access: it ends there
 *   elsewhere       noted; the thread looks before it next enters the cache or begins a guest call
 *
 * The kernel's frame is what is returned through, so its mask and its vector state are what the
 * thread gets: "delivered" means that t->regs enters the guest's handler and that this frame
 * carries the handler's mask and a fresh vector state, while the guest's old vector state has been
 * copied into the frame on the guest's stack.
 */
#include "rt/signal/signal-priv.h"

#include "abi/trace.h"
#include "rt/arch.h"
#include "rt/deterministic/deterministic-run.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/sample/cpu-timer.h"
#include "rt/sample/sample.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "rt/task/core-threads.h"
#include "rt/task/simulate.h"
#include "rt/task/path-stream.h"
#include "rt/task/process.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "rt/task/shared-mm.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <linux/resource.h>

#define SIGNALS_STOP (SIG(SIGTSTP) | SIG(SIGTTIN) | SIG(SIGTTOU) | SIG(SIGSTOP))
/* Signals that dump a core. We catch them, so that the core has the guest's registers. */
#define SIGNALS_CORE (SIG(SIGQUIT) | SIG(SIGABRT) | SIG(SIGXCPU) | SIG(SIGXFSZ) | SIGNALS_SYNC)

void signal_handler(int sig, siginfo_t *info, struct ucontext *uc);

u64 signal_block_all(void)
{
	u64 all = ~0ull, old = 0;

	sys_rt_sigprocmask(SIG_SETMASK, &all, &old);
	return old;
}

void signal_set_mask(u64 mask)
{
	sys_rt_sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* The kernel forces those, but not what an event of somebody's sends. */
static bool from_cpu(const siginfo_t *info)
{
	return info->si_code > 0 && SIG(info->si_signo) & SIGNALS_SYNC &&
	       !(info->si_signo == SIGTRAP && info->si_code == TRAP_PERF);
}

void signal_install(int sig, const struct sys_sigaction *act)
{
	struct sys_sigaction k = {
		.handler = (u64)signal_entry,
		.flags = (act->flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)) | SA_SIGINFO |
			 SA_ONSTACK | SA_NODEFER | SA_RESTORER,
		.restorer = (u64)signal_restorer,
		/* A guarded access may fault while we handle something else. */
		.mask = ~(SIG(SIGSEGV) | SIG(SIGBUS)),
	};

	if (SIG(sig) & SIGNALS_KILL)
		return;
	/* The kick must not end calls that can be restarted. */
	if (sig == SIGNAL_KICK)
		k.flags |= SA_RESTART;
	if (act->handler <= (u64)SIG_IGN &&
	    !(SIG(sig) & SIGNALS_CORE &&
	      (act->handler == (u64)SIG_DFL || SIG(sig) & SIGNALS_SYNC))) {
		k.handler = act->handler;
		k.flags = act->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT);
		k.mask = 0;
	} else if (act->handler == (u64)SIG_IGN) {
		k.flags |= SA_RESTART;
	}
	sys_rt_sigaction(sig, &k, NULL);
}

void signal_install_all(struct sighand *sh)
{
	for (int sig = 1; sig <= SIGNALS; sig++)
		signal_install(sig, &sh->act[sig]);
}

void signal_save(const struct thread *t, struct rt_control *control)
{
	/* Who shares them could change them until the kernel executes the next program. */
	if (__atomic_load_n(&t->sighand->refs, __ATOMIC_ACQUIRE) != 1)
		return;
	control->flags |= CONTROL_SIGNALS;
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (t->sighand->act[sig].handler == (u64)SIG_IGN)
			control->ignored |= SIG(sig);
}

static bool is_ignored(int sig, const struct rt_control *control)
{
	struct sys_sigaction act = {0};

	if (control->flags & CONTROL_SIGNALS)
		return control->ignored & SIG(sig);
	sys_rt_sigaction(sig, NULL, &act);
	return act.handler == (u64)SIG_IGN;
}

void signal_init(struct thread *t, const struct rt_control *control)
{
	struct sighand *sh = t->sighand;

	/* Only "ignored" survives exec; flags such as SA_NOCLDWAIT go with the handler. */
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (is_ignored(sig, control))
			sh->act[sig].handler = (u64)SIG_IGN;
	/* The others are in the kernel as the guest has them: default or ignored. */
	for (int sig = 1; sig <= SIGNALS; sig++)
		if (SIG(sig) & SIGNALS_CORE)
			signal_install(sig, &sh->act[sig]);
}

struct sighand *sighand_copy(struct sighand *from, u32 me)
{
	struct sighand *sh = region_map(sizeof(*sh));

	if (!sh)
		return NULL;
	lock_acquire(&from->lock, me, thread_gone);
	memcpy(sh->act, from->act, sizeof(sh->act));
	lock_release(&from->lock, me);
	sh->refs = 1;
	return sh;
}

void sighand_put(struct sighand *sh)
{
	if (!__atomic_sub_fetch(&sh->refs, 1, __ATOMIC_ACQ_REL))
		region_unmap(sh, sizeof(*sh));
}

void signal_note(struct thread *t, const siginfo_t *info, struct cpu_fault fault)
{
	struct pending *p;

	/* Only standard signals that somebody sent can find it full, and those do not queue. */
	if (t->pending_count == PENDING_MAX)
		return;
	p = &t->pending[t->pending_count];
	p->info = *info;
	p->fault = fault;
	__atomic_store_n(&t->pending_count, t->pending_count + 1, __ATOMIC_RELAXED);
	dbt_interrupt(&t->dbt);
}

static bool may_dump(void)
{
	struct rlimit64 limit = {0, 0};

	return !raw_call4(__NR_prlimit64, 0, RLIMIT_CORE, 0, (long)&limit) && limit.rlim_cur;
}

/*
 * The signal is queued while it is blocked, its action is made the default, and the kernel delivers
 * it when the handler returns to @uc, which shows the guest's registers.
 */
void signal_die(struct thread *t, const siginfo_t *info, struct ucontext *uc)
{
	struct sys_sigaction dfl = {0};

	signal_block_all();
	traces_flush(t);
	beside_end(t);
	sample_flush(t);
	/* A core is the program's. ENOMEM only says that there are holes. */
	sys_madvise((void *)REGION_START, REGION_END - REGION_START, MADV_DONTDUMP);
	sys_madvise((void *)region_code_start, region_code_end - region_code_start, MADV_DONTDUMP);
	if (SIG(info->si_signo) & SIGNALS_CORE && may_dump()) {
		core_threads_stop(t);
		mm_expose(t);
	}
	sys_rt_sigaction(info->si_signo, &dfl, NULL);
	if (raw_call4(__NR_rt_tgsigqueueinfo, sys_getpid(), sys_gettid(), info->si_signo,
		      (long)info))
		sys_tgkill(sys_getpid(), sys_gettid(), info->si_signo);
	uc_show_guest(t, uc);
	uc_set_mask(uc, ~SIG(info->si_signo));
}

static void make_segv(struct pending *p)
{
	memset(p, 0, sizeof(*p));
	p->info.si_signo = SIGSEGV;
	p->info.si_code = SI_KERNEL;
	p->fault = CPU_FAULT_PROTECTION;
}

/* How delivering one signal ended. */
enum outcome { DELIVERED, DROPPED, DYING };

/* Delivers @p through the kernel's frame @uc; see the head of this file. */
static enum outcome deliver_one(struct thread *t, struct pending *p, struct ucontext *uc)
{
	u64 blocked = t->in_mask_call ? t->call_mask : t->sigmask;
	int sig = p->info.si_signo;
	struct sys_sigaction act;
	bool forced = from_cpu(&p->info);

	if (SIG(sig) & SIGNALS_SYNC && blocked & SIG(sig)) {
		if (forced) {
			signal_die(t, &p->info, uc);
			return DYING;
		}
		t->held |= SIG(sig);
		t->held_info[sig % 8] = p->info;
		return DROPPED;
	}
	lock_acquire(&t->sighand->lock, t->id, thread_gone);
	act = t->sighand->act[sig];
	if (act.flags & SA_RESETHAND && act.handler > (u64)SIG_IGN) {
		t->sighand->act[sig].handler = (u64)SIG_DFL;
		signal_install(sig, &t->sighand->act[sig]);
	}
	lock_release(&t->sighand->lock, t->id);

	if (act.handler == (u64)SIG_DFL || (forced && act.handler == (u64)SIG_IGN)) {
		if (SIG(sig) & SIGNALS_IGNORED)
			return DROPPED;
		if (SIG(sig) & SIGNALS_STOP) {
			/* The disposition changed under way: the kernel's is the default now. */
			sys_tgkill(sys_getpid(), sys_gettid(), sig);
			return DROPPED;
		}
		signal_die(t, &p->info, uc);
		return DYING;
	}
	if (act.handler == (u64)SIG_IGN)
		return DROPPED;

	/* The kernel knows where the thread was in the cache. */
	if (sig == SIGTRAP && p->info.si_code == TRAP_HWBKPT)
		p->info.si_addr = (void *)regs_pc(&t->dbt.regs);
	perf_signal(t, &p->info);
	deterministic_signal(t, &p->info);
	if (sigframe_build(t, &act, p, uc, t->sigmask)) {
		struct pending segv;

		make_segv(&segv);
		if (sig == SIGSEGV) {
			signal_die(t, &segv.info, uc);
			return DYING;
		}
		return deliver_one(t, &segv, uc);
	}
	sigframe_init_vectors(uc);
	stream_note(t, PATH_NOTE_SIGNAL, NULL, 0);
	t->sigmask = (blocked | act.mask | (act.flags & SA_NODEFER ? 0 : SIG(sig))) & ~SIGNALS_KILL;
	t->in_mask_call = false;
	return DELIVERED;
}

/* All notes, in order; later ones go on top of earlier ones, as the kernel stacks them. */
static void deliver_notes(struct thread *t, struct ucontext *uc)
{
	for (u32 i = 0; i < t->pending_count; i++) {
		if (deliver_one(t, &t->pending[i], uc) == DYING)
			return;
	}
	__atomic_store_n(&t->pending_count, 0, __ATOMIC_RELAXED);
	uc_set_mask(uc, signal_kernel_mask(t->sigmask));
}

void signal_release_held(struct thread *t)
{
	u64 now = t->held & ~t->sigmask;

	for (int sig = 1; now && sig <= SIGNALS; sig++) {
		if (!(now & SIG(sig)))
			continue;
		now &= ~SIG(sig);
		t->held &= ~SIG(sig);
		signal_note(t, &t->held_info[sig % 8], (struct cpu_fault){0});
	}
}

bool signal_send_own(struct thread *t, const siginfo_t *info, struct cpu_fault fault)
{
	long ret;

	t->own = (struct pending){*info, fault};
	t->debug.trapping = 1;
	ret = raw_call4(__NR_rt_tgsigqueueinfo, sys_getpid(), sys_gettid(), info->si_signo,
			(long)&t->own.info);
	t->debug.trapping = 0;
	return !ret;
}

/*
 * A fault that is noted first, which a tracer is to see as what it is: signal_trap() would be a
 * trap of the program's for it. False: there is more to deliver.
 */
static bool show_fault(struct thread *t)
{
	struct pending p;

	if (!t->traced || !from_cpu(&t->pending[0].info))
		return false;
	p = t->pending[0];
	t->pending_count--;
	memmove(&t->pending[0], &t->pending[1], t->pending_count * sizeof(p));
	if (!signal_send_own(t, &p.info, p.fault)) {
		signal_raise(t, &p.info, p.fault);
		return false;
	}
	/* The tracer may have kept it. */
	signal_set_mask(signal_kernel_mask(t->sigmask));
	return !t->pending_count;
}

void signal_deliver(struct thread *t)
{
	if (t->held & ~t->sigmask)
		signal_release_held(t);
	if (!t->pending_count) {
		t->in_mask_call = false;
		return;
	}
	if (show_fault(t))
		return;
	signal_trap();
	/* A debugger takes traps for its own, and this one may never have come here. */
	if (t->pending_count)
		dbt_interrupt(&t->dbt);
}

void signal_fault(struct thread *t, int sig, int code, u64 addr, struct cpu_fault fault)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = sig;
	info.si_code = code;
	info.si_addr = (void *)addr;
	signal_raise(t, &info, fault);
}

void signal_raise(struct thread *t, const siginfo_t *info, struct cpu_fault fault)
{
	/* It goes in front of what was noted: its frame must show the state of now. */
	signal_set_mask(~SIGNALS_SYNC);
	if (t->pending_count == PENDING_MAX)
		t->pending_count--;
	memmove(&t->pending[1], &t->pending[0], t->pending_count * sizeof(t->pending[0]));
	t->pending[0] = (struct pending){*info, fault};
	t->pending_count++;
	dbt_interrupt(&t->dbt);
}

void signal_perf(struct thread *t, siginfo_t *info)
{
	if (!(t->sigmask & SIG(SIGTRAP))) {
		signal_raise(t, info, (struct cpu_fault){0});
		return;
	}
	info->si_perf_flags = TRAP_PERF_FLAG_ASYNC;
	if (!(t->held & SIG(SIGTRAP)))
		t->held_info[SIGTRAP % 8] = *info;
	t->held |= SIG(SIGTRAP);
}

void signal_force_segv(struct thread *t)
{
	signal_fault(t, SIGSEGV, SI_KERNEL, 0, CPU_FAULT_PROTECTION);
}

static void handle_note(struct thread *t, const siginfo_t *info, struct ucontext *uc)
{
	signal_note(t, info, uc_fault(uc));
	uc_set_mask(uc, ~SIGNALS_SYNC);
}

/*
 * Delivers a fault of the guest's, for which t->regs is right. @info is the kernel's but for @addr.
 */
static void deliver_fault(struct thread *t, const siginfo_t *info, struct ucontext *uc, u64 addr)
{
	struct pending p = {*info, uc_fault(uc)};

	p.info.si_addr = (void *)addr;
	cpu_fault_at(&p.fault, addr);
	/* A fault comes before a signal that was noted earlier and not delivered yet. */
	if (deliver_one(t, &p, uc) != DYING)
		deliver_notes(t, uc);
}

/*
 * At a boundary of dbt_recover(). A trap of the guest's for an instruction that has retired on the
 * way comes before all that was noted, and before what it may execute next has another flag.
 */
static void note_trace(struct thread *t, struct ucontext *uc)
{
	if (!dbt_take_trace(&t->dbt))
		return;
	signal_fault(t, SIGTRAP, TRAP_TRACE, regs_pc(&t->dbt.regs), CPU_FAULT_DEBUG);
	uc_set_mask(uc, ~SIGNALS_SYNC);
}

/*
 * The translator wants this thread out of the cache, where it saw it a moment ago, or the session
 * has set deadlines while it was running. A guest call
 * that is interrupted has only just begun, so it is made again as it stands.
 */
static void handle_kick(struct thread *t, struct ucontext *uc)
{
	enum dbt_where where = dbt_recover(&t->dbt, uc);

	if (where == DBT_AT_BOUNDARY)
		note_trace(t, uc);
	if (where != DBT_IN_RUNTIME)
		return;
	if (guest_call_was_interrupted(uc))
		t->call_again = true;
	if (sample_is_stale(t) || sample_is_stopped(t) || simulate_is_stale() ||
	    windows_is_stale(t))
		dbt_interrupt(&t->dbt);
}

static void cpu_fault(struct thread *t, int sig, siginfo_t *info, struct ucontext *uc)
{
	u64 addr = (u64)info->si_addr, guest_addr = addr;
	/*
	 * On a page that we have protected a write is refused (SEGV_ACCERR). Missing pages are
	 * between the guest and the kernel.
	 */
	bool write = uc_is_write(uc) && sig == SIGSEGV && info->si_code == SEGV_ACCERR;

	/*
	 * When it forces a signal the kernel takes those of its kind that wait first, though they
	 * are blocked. So a stop may be on its way, and this comes where its handler begins.
	 */
	if (uc_pc(uc) == (u64)signal_entry)
		uc = uc_of_handler(uc);
	switch (dbt_fault(&t->dbt, uc, addr, write, &guest_addr)) {
	case DBT_AT_BOUNDARY: deliver_fault(t, info, uc, guest_addr); return;
	case DBT_RESUME:
		/* The trace that it has handed over is to have a sample. */
		if (t->modeled.watching && sample_is_stopped(t))
			handle_kick(t, uc);
		return;
	case DBT_STEP: return;
	case DBT_IN_RUNTIME: break;
	}
	if (uc_pc(uc) == (u64)guest_copy_insn) {
		t->copy_fault.sig = sig;
		t->copy_fault.code = info->si_code;
		uc_set_pc(uc, (u64)guest_copy_end);
		return;
	}
	if (info->si_code == SI_KERNEL && guest_call_refused(t, uc))
		return;
	if (guest_call_raised(uc)) {
		handle_note(t, info, uc);
		return;
	}
	if (t->in_sigreturn && info->si_code == SI_KERNEL) {
		t->in_sigreturn = false;
		return;
	}
	if (sig == SIGBUS && dbt_image_has(addr))
		die("what was translated before is gone while it is in use: somebody has cut off a "
		    "file of translations; the next run does without\n");
	say("anyperf: signal %d, code %d at %p in the runtime, address %p (pid %d): a bug\n", sig,
	    info->si_code, (void *)uc_pc(uc), info->si_addr, sys_getpid());
	CHECK(!"the runtime faulted");
}

/* The guest single-steps itself. */
static void trace_trap(struct thread *t, const siginfo_t *info, struct ucontext *uc)
{
	if (dbt_trace(&t->dbt, uc) == DBT_AT_BOUNDARY)
		deliver_fault(t, info, uc, regs_pc(&t->dbt.regs));
}

/*
 * A debug register that somebody has set by ptrace. One that stops execution is met in the runtime;
 * the CPU watches data. What the kernel reads and writes for a program is not met, so neither is
 * what the runtime does.
 */
static void debug_trap(struct thread *t, const siginfo_t *info, struct ucontext *uc)
{
	struct pending p = {*info, CPU_FAULT_DEBUG};

	switch (dbt_accessed(&t->dbt, uc)) {
	case DBT_AT_BOUNDARY:
		if (deliver_one(t, &p, uc) != DYING)
			deliver_notes(t, uc);
		return;
	case DBT_STEP:
	case DBT_RESUME: handle_note(t, info, uc); return;
	case DBT_IN_RUNTIME: return;
	}
}

bool signal_is_stop(const siginfo_t *info)
{
	return info->si_signo == SIGTRAP && info->si_code == TRAP_PERF &&
	       (info->si_perf_data == TRACE_SIG_DATA || info->si_perf_data == TRACE_SIG_FAULT ||
		info->si_perf_data == TRACE_SIG_WATCH);
}

/* Where a kernel's accesses to the guest's memory are made (sys/arch/<cpu>/guest-call.S). */
static bool is_for_guest(u64 pc)
{
	return pc >= (u64)guest_call_begin && pc <= (u64)guest_copy_end;
}

/* The kernel sends it on the way back to user mode, so no call was interrupted by it. */
static void handle_stop(struct thread *t, const siginfo_t *info, struct ucontext *uc)
{
	u64 addr = (u64)info->si_addr;
	bool touched = info->si_perf_data == TRACE_SIG_FAULT && !info->si_perf_flags &&
		       !region_overlaps(addr, 1);

	enum dbt_where where;

	sample_stopped(t);
	if (info->si_perf_data == TRACE_SIG_WATCH)
		where = dbt_accessed(&t->dbt, uc);
	else
		where = touched ? dbt_touched(&t->dbt, uc) : dbt_recover(&t->dbt, uc);
	if (where == DBT_AT_BOUNDARY)
		note_trace(t, uc);
	/* Who goes on into the cache reads code; if he came back for that he never would. */
	if (where == DBT_IN_RUNTIME &&
	    (info->si_perf_data != TRACE_SIG_WATCH || is_for_guest(uc_pc(uc))))
		dbt_interrupt(&t->dbt);
}

void signal_handler(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct thread *t = this_thread();
	u32 slot, periods;

	if (cpu_timer_is(info, &slot, &periods)) {
		sample_timer_stopped(t, slot, periods);
		handle_kick(t, uc);
		return;
	}
	if (sig == SIGTRAP && sample_trapped(t, uc) && signal_is_stop(info))
		return;
	if (signal_is_stop(info)) {
		handle_stop(t, info, uc);
		return;
	}
	if (t->debug.trapping && sig == t->own.info.si_signo &&
	    info->si_code == t->own.info.si_code) {
		if (deliver_one(t, &t->own, uc) != DYING)
			deliver_notes(t, uc);
		dbt_interrupt(&t->dbt);
		return;
	}
	if (sig == SIGTRAP && info->si_code == TRAP_HWBKPT) {
		debug_trap(t, info, uc);
		return;
	}
	if (sig == SIGTRAP && uc_pc(uc) == (u64)signal_trap_end && from_cpu(info)) {
		deliver_notes(t, uc);
		return;
	}
	if (sig == SIGTRAP && t->dbt.stepping && from_cpu(info)) {
		/* On behalf of a signal that is noted already. */
		if (dbt_recover(&t->dbt, uc) != DBT_AT_BOUNDARY)
			return;
		if (dbt_take_trace(&t->dbt))
			deliver_fault(t, info, uc, regs_pc(&t->dbt.regs));
		else
			deliver_notes(t, uc);
		return;
	}
	if (sig == SIGTRAP && info->si_code == TRAP_TRACE) {
		trace_trap(t, info, uc);
		return;
	}
	if (from_cpu(info)) {
		cpu_fault(t, sig, info, uc);
		return;
	}
	if (process_is_kick(info)) {
		handle_kick(t, uc);
		return;
	}
	handle_note(t, info, uc);
	switch (dbt_recover(&t->dbt, uc)) {
	case DBT_AT_BOUNDARY:
		note_trace(t, uc);
		deliver_notes(t, uc);
		return;
	case DBT_STEP:
	case DBT_RESUME: return;
	case DBT_IN_RUNTIME: guest_call_settle(t, uc);
	}
}

/* exec */

void signal_exec_prepare(struct thread *t)
{
	struct sys_sigaction ign = {.handler = (u64)SIG_IGN};

	meter_kickable(t, false);
	/* The kernel keeps mask, pending set and ignored signals over exec; these only we know. */
	signal_block_all();
	for (int sig = 1; sig <= SIGNALS; sig++) {
		if (!(SIG(sig) & SIGNALS_SYNC))
			continue;
		if (t->sighand->act[sig].handler == (u64)SIG_IGN)
			sys_rt_sigaction(sig, &ign, NULL);
		if (t->held & SIG(sig))
			raw_call4(__NR_rt_tgsigqueueinfo, sys_getpid(), sys_gettid(), sig,
				  (long)&t->held_info[sig % 8]);
	}
	signal_set_mask(t->sigmask);
}

void signal_exec_failed(struct thread *t)
{
	u64 sync = SIGNALS_SYNC;

	/* Those that were handed to the kernel are taken back, while they are blocked. */
	if (t->held) {
		struct __kernel_timespec now = {0, 0};

		while (raw_call4(__NR_rt_sigtimedwait, (long)&sync, 0, (long)&now, SIGSET_SIZE) > 0)
			;
	}
	signal_install_all(t->sighand);
	meter_kickable(t, true);
	signal_set_mask(signal_kernel_mask(t->sigmask));
}
