/*
 * From high to low on the guest's stack, as x64_setup_rt_frame() has it: 128 bytes of red zone, the
 * vector state aligned to 64, then struct sigframe so that (sp + 8) is a multiple of 16.
 */
#include "rt/arch/x86_64/sigframe.h"

#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/signal/altstack.h"
#include "rt/signal/signal.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <asm/prctl.h>

#define XFEATURES_DYNAMIC (1ull << 18) /* XTILEDATA: on request only */

#define FLAGS_TF 0x100ull
#define FLAGS_DF 0x400ull
#define FLAGS_RF 0x10000ull
/* What a program may set through a frame: AC RF OF DF TF SF ZF AF PF CF. */
#define FLAGS_FIX 0x50dd5ull

/*
 * As the kernel's sigaltstack_size_valid(): the least size is that of before AVX, however large
 * frames are. It is larger only for a process that has asked for larger state (AMX).
 */
bool altstack_size_valid(const struct thread *t, u64 size)
{
	u64 asked_for = 0;

	if (size < 2048) /* MINSIGSTKSZ */
		return false;
	if (size >= t->min_altstack ||
	    sys_failed(raw_call2(__NR_arch_prctl, ARCH_GET_XCOMP_PERM, (long)&asked_for)))
		return true;
	return !(asked_for & XFEATURES_DYNAMIC);
}

static const struct _fpx_sw_bytes *xstate_info(const void *fpstate)
{
	return &((const struct _fpstate *)fpstate)->sw_reserved;
}

/* Bytes that the kernel has put at uc_mcontext.fpstate, the closing magic included. */
static u32 xstate_size(const void *fpstate)
{
	const struct _fpx_sw_bytes *sw = xstate_info(fpstate);

	return sw->magic1 == FP_XSTATE_MAGIC1 ? sw->extended_size : sizeof(struct _fpstate);
}

/* The x87 image at @to names an instruction in the code cache; it is to name the program's. */
static int put_x87_pc(struct thread *t, u64 to, const void *fpstate)
{
	u64 pc = ((const struct _fpstate *)fpstate)->rip;

	if (!dbt_in_cache(pc))
		return 0;
	pc = dbt_guest_pc(&t->dbt, pc);
	return guest_write(t, to + offsetof(struct _fpstate, rip), &pc, sizeof(pc));
}

int sigframe_build(struct thread *t, const struct sys_sigaction *act, const struct pending *p,
		   const struct ucontext *kuc, u64 mask)
{
	struct dbt_regs *r = &t->dbt.regs;
	u64 sp = r->gpr[DBT_RSP], fpstate = 0;
	bool nested = altstack_on(t, sp), entering = false;
	struct sigframe f;

	if (!(act->flags & SA_RESTORER))
		return -EFAULT;
	memset(&f, 0, sizeof(f));
	f.restorer = act->restorer;
	f.uc.uc_flags = kuc->uc_flags;
	f.uc.uc_stack.ss_sp = (void *)t->alt_sp;
	f.uc.uc_stack.ss_size = t->alt_size;
	f.uc.uc_stack.ss_flags =
		(int)t->alt_flags; /* as they were set: whether sp is on it is not told */

	f.uc.uc_mcontext = kuc->uc_mcontext; /* segments, and what follows them */
	sigcontext_set(&f.uc.uc_mcontext, r);
	/* As the CPU has it: the instruction was told of as the one at a breakpoint. */
	f.uc.uc_mcontext.eflags = r->rflags | (t->dbt.pass_pc == r->rip ? FLAGS_RF : 0);
	f.uc.uc_mcontext.gs = t->dbt.arch.gs_selector;
	f.uc.uc_mcontext.trapno = p->fault.trapno;
	f.uc.uc_mcontext.err = p->fault.err;
	f.uc.uc_mcontext.cr2 = p->fault.cr2;
	f.uc.uc_mcontext.oldmask = mask;
	memcpy(&f.uc.uc_sigmask, &mask, sizeof(mask));
	f.info = p->info;

	sp -= 128;
	if (act->flags & SA_ONSTACK && t->alt_size && (t->alt_flags & SS_AUTODISARM || !nested)) {
		sp = t->alt_sp + t->alt_size;
		entering = true;
	}
	if (kuc->uc_mcontext.fpstate) {
		u32 size = xstate_size(kuc->uc_mcontext.fpstate);

		sp = ALIGN_DOWN(sp - size, 64);
		fpstate = sp;
	}
	f.uc.uc_mcontext.fpstate = (void *)fpstate;
	sp = ALIGN_DOWN(sp - sizeof(f), 16) - 8;

	/*
	 * A frame that runs over the end of the alternate stack is fatal; it is not written below
	 * it.
	 */
	if (nested || entering) {
		if (sp <= t->alt_sp || sp - t->alt_sp > t->alt_size)
			return -EFAULT;
	}
	if (fpstate && guest_write(t, fpstate, kuc->uc_mcontext.fpstate,
				   xstate_size(kuc->uc_mcontext.fpstate)))
		return -EFAULT;
	if (fpstate && put_x87_pc(t, fpstate, kuc->uc_mcontext.fpstate))
		return -EFAULT;
	if (guest_write(t, sp, &f,
			act->flags & SA_SIGINFO ? sizeof(f) : offsetof(struct sigframe, info)))
		return -EFAULT;

	if (t->alt_flags & SS_AUTODISARM) {
		t->alt_sp = t->alt_size = 0;
		t->alt_flags = SS_DISABLE;
	}
	r->gpr[DBT_RDI] = (u64)p->info.si_signo;
	r->gpr[DBT_RSI] = sp + offsetof(struct sigframe, info);
	r->gpr[DBT_RDX] = sp + offsetof(struct sigframe, uc);
	r->gpr[DBT_RAX] = 0;
	r->gpr[DBT_RSP] = sp;
	r->rip = act->handler;
	r->rflags &= ~(FLAGS_DF | FLAGS_RF | FLAGS_TF);
	return 0;
}

/* Offset of the protection keys' rights (XSAVE component 9) in the standard format; 0: none. */
static u32 pkru_offset(void)
{
	u32 a = 13, b, c = 9, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return a ? b : 0;
}

#define XFEATURE_PKRU 9
#define PKRU_INIT     0x55555554u /* all keys but 0 denied: the kernel's default for handlers */

void sigframe_init_vectors(struct ucontext *kuc)
{
	struct _xstate *x = (struct _xstate *)kuc->uc_mcontext.fpstate;

	if (!x)
		return;
	/* Components whose bit is clear get their initial state. MXCSR is loaded regardless. */
	x->fpstate.mxcsr = 0x1f80;
	if (xstate_info(x)->magic1 == FP_XSTATE_MAGIC1) {
		u64 all = xstate_info(x)->xfeatures;

		x->xstate_hdr.xfeatures = 0;
		if (all & BIT(XFEATURE_PKRU)) {
			u32 at = pkru_offset();

			if (at && at + 8 <= xstate_info(x)->xstate_size) {
				*(u64 *)((u8 *)x + at) = PKRU_INIT;
				x->xstate_hdr.xfeatures = BIT(XFEATURE_PKRU);
			}
		}
		return;
	}
	memset(x, 0, offsetof(struct _fpstate, mxcsr));
	memset((u8 *)x + 32, 0, 384);
	x->fpstate.cwd = 0x37f;
}

int sigframe_restore(struct thread *t, u64 *mask, struct cpu_fault *fault)
{
	struct dbt_regs *r = &t->dbt.regs;
	struct sigframe f;
	struct ucontext own;
	u16 cs, ss, selector = 0;

	/* The restorer has been popped. */
	if (guest_read(&f, r->gpr[DBT_RSP] - 8, offsetof(struct sigframe, info)))
		return -EFAULT;

	memset(&own, 0, sizeof(own));
	__asm__("mov %%cs, %0" : "=r"(cs));
	__asm__("mov %%ss, %0" : "=r"(ss));
	own.uc_flags = f.uc.uc_flags;
	own.uc_mcontext.cs = cs;
	own.uc_mcontext.ss = ss;
	own.uc_mcontext.fpstate = f.uc.uc_mcontext.fpstate;
	own.uc_mcontext.eflags = 0x202;
	own.uc_stack.ss_sp = (void *)(t->area + AREA_ALT_AT);
	own.uc_stack.ss_size = AREA_ALT_SIZE;
	*mask = 0;
	memcpy(mask, &f.uc.uc_sigmask, sizeof(*mask));
	*mask &= ~SIGNALS_KILL;
	{
		u64 kmask = ~SIGNALS_SYNC; /* the caller sets the final one */

		memcpy(&own.uc_sigmask, &kmask, sizeof(kmask));
	}

	sigcontext_get(&f.uc.uc_mcontext, r);
	if ((f.uc.uc_mcontext.cs | 3) != cs)
		selector = f.uc.uc_mcontext.cs | 3;
	else if (f.uc.uc_flags & UC_STRICT_RESTORE_SS && (f.uc.uc_mcontext.ss | 3) != ss)
		selector = f.uc.uc_mcontext.ss | 3;
	r->rflags = (r->rflags & ~FLAGS_FIX) | (f.uc.uc_mcontext.eflags & FLAGS_FIX);
	t->dbt.pass_pc = f.uc.uc_mcontext.eflags & FLAGS_RF ? r->rip : 0;

	/* Errors in it are ignored, as the kernel does. */
	(void)altstack_set(t, &f.uc.uc_stack, r->gpr[DBT_RSP]);

	t->in_sigreturn = true;
	signal_return(&own);
	if (!t->in_sigreturn)
		return -EFAULT; /* the handler of the kernel's complaint cleared it */
	t->in_sigreturn = false;
	if (!selector)
		return 0;
	/* Natively the kernel's iret would fault on it. */
	*fault = CPU_FAULT_PROTECTION;
	fault->err = selector & SELECTOR_TABLE_INDEX;
	return 1;
}
