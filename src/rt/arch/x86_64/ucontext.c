/* What a handler of ours finds in the kernel's context, and what it changes there. */
#include "rt/arch.h"
#include "rt/arch/x86_64/sigframe.h"
#include "sys/arch/x86_64/guest-call80.h"
#include "sys/string.h"

#define TRAP_PAGE_FAULT 14
#define PAGE_WRITE      2 /* of its error code */
#define FLAGS_TF        0x100ull
#define FLAGS_SHOWN     0xcd5ull /* CF PF AF ZF SF DF OF */

/* Where struct sigcontext keeps each register of struct dbt_regs. */
static const u16 gpr_at[16] = {
	offsetof(struct sigcontext, rax), offsetof(struct sigcontext, rcx),
	offsetof(struct sigcontext, rdx), offsetof(struct sigcontext, rbx),
	offsetof(struct sigcontext, rsp), offsetof(struct sigcontext, rbp),
	offsetof(struct sigcontext, rsi), offsetof(struct sigcontext, rdi),
	offsetof(struct sigcontext, r8),  offsetof(struct sigcontext, r9),
	offsetof(struct sigcontext, r10), offsetof(struct sigcontext, r11),
	offsetof(struct sigcontext, r12), offsetof(struct sigcontext, r13),
	offsetof(struct sigcontext, r14), offsetof(struct sigcontext, r15),
};

void sigcontext_set(struct sigcontext *sc, const struct dbt_regs *r)
{
	for (u32 i = 0; i < ARRAY_SIZE(gpr_at); i++)
		*(u64 *)((u8 *)sc + gpr_at[i]) = r->gpr[i];
	sc->rip = r->rip;
}

void sigcontext_get(const struct sigcontext *sc, struct dbt_regs *r)
{
	for (u32 i = 0; i < ARRAY_SIZE(gpr_at); i++)
		r->gpr[i] = *(const u64 *)((const u8 *)sc + gpr_at[i]);
	r->rip = sc->rip;
}

u64 uc_pc(const struct ucontext *uc)
{
	return uc->uc_mcontext.rip;
}

struct ucontext *uc_of_handler(const struct ucontext *uc)
{
	return (struct ucontext *)uc->uc_mcontext.rdx;
}

void uc_set_pc(struct ucontext *uc, u64 pc)
{
	uc->uc_mcontext.rip = pc;
}

void uc_set_mask(struct ucontext *uc, u64 mask)
{
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

struct cpu_fault uc_fault(const struct ucontext *uc)
{
	const struct sigcontext *sc = &uc->uc_mcontext;

	return (struct cpu_fault){sc->trapno, sc->err, sc->cr2};
}

bool uc_is_write(const struct ucontext *uc)
{
	return uc->uc_mcontext.trapno == TRAP_PAGE_FAULT && uc->uc_mcontext.err & PAGE_WRITE;
}

void uc_show_guest(const struct thread *t, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	sigcontext_set(sc, &t->dbt.regs);
	sc->eflags = (sc->eflags & ~FLAGS_TF) | (t->dbt.regs.rflags & FLAGS_SHOWN);
}

void cpu_fault_at(struct cpu_fault *fault, u64 addr)
{
	if (fault->trapno == TRAP_PAGE_FAULT)
		fault->cr2 = addr;
}

/*
 * A pc between @begin and @insn: the call has not been made, or the kernel restarts it. In the
 * second case the kernel has left the return address @end in rcx.
 */
static bool settle(struct thread *t, struct sigcontext *sc, const char *begin, const char *insn,
		   const char *end, const char *redo)
{
	if (sc->rip < (u64)begin || sc->rip > (u64)insn)
		return false;
	if (end && sc->rip == (u64)insn && sc->rcx == (u64)end)
		t->call_restarts = true;
	sc->rip = (u64)redo;
	return true;
}

void guest_call_settle(struct thread *t, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	(void)(settle(t, sc, guest_call_begin, guest_call_insn, guest_call_end, guest_call_redo) ||
	       settle(t, sc, guest_call_notified_begin, guest_call_notified_insn,
		      guest_call_notified_end, guest_call_notified_redo) ||
	       settle(t, sc, guest_call80_begin, guest_call80_insn, NULL, guest_call80_redo));
}

bool guest_call_refused(struct thread *t, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	if (sc->rip != (u64)guest_call80_insn)
		return false;
	t->call_refused = true;
	sc->rip = (u64)guest_call80_redo;
	return true;
}

bool guest_call_raised(const struct ucontext *uc)
{
	u64 pc = uc_pc(uc);

	return pc == (u64)guest_call_end || pc == (u64)guest_call_notified_end ||
	       pc == (u64)guest_call80_end;
}

bool guest_call_was_interrupted(const struct ucontext *uc)
{
	const struct sigcontext *sc = &uc->uc_mcontext;

	return sc->rax == (u64)-EINTR &&
	       (sc->rip == (u64)guest_call_end || sc->rip == (u64)guest_call80_end);
}
