/*
 * From the runtime's C code into the code cache, and back. The base of GS is struct dbt_thread;
 * stubs.c checks that the offsets are true. recover.c knows the labels of the critical section.
 */
#include "dbt/arch/x86_64/offsets-priv.h"

	.text
	/*
	 * int dbt_enter(struct dbt_thread *t): 0 left by an exit, 1 interrupted; t->regs is exact.
	 */
	.globl dbt_enter, dbt_enter_critical, dbt_enter_critical_end
	.hidden dbt_enter, dbt_enter_critical, dbt_enter_critical_end
	.type dbt_enter, @function
dbt_enter:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, %gs:T_RT_SP
	/* From here to the end of the critical section a signal handler redirects to dbt_abort. */
dbt_enter_critical:
	cmpl	$0, %gs:T_INTERRUPT
	jne	dbt_abort
	pushq	%gs:T_RFLAGS
	mov	%gs:T_GPR+0, %rax
	mov	%gs:T_GPR+8, %rcx
	mov	%gs:T_GPR+16, %rdx
	mov	%gs:T_GPR+24, %rbx
	mov	%gs:T_GPR+40, %rbp
	mov	%gs:T_GPR+48, %rsi
	mov	%gs:T_GPR+56, %rdi
	mov	%gs:T_GPR+64, %r8
	mov	%gs:T_GPR+72, %r9
	mov	%gs:T_GPR+80, %r10
	mov	%gs:T_GPR+88, %r11
	mov	%gs:T_GPR+96, %r12
	mov	%gs:T_GPR+104, %r13
	mov	%gs:T_GPR+112, %r14
	mov	%gs:T_GPR+120, %r15
	popfq
	mov	%gs:T_GPR+32, %rsp
	jmp	*%gs:T_ENTER_PC
dbt_enter_critical_end:

	/* Where redirected handlers return to. */
	.globl dbt_abort
	.hidden dbt_abort
dbt_abort:
	mov	%gs:T_RT_SP, %rsp
	mov	$1, %eax
	jmp	leave

	/*
	 * Every way out of the cache ends here, with all guest registers in place and t->exit_id
	 * set. A signal in here waits until dbt_run() looks at t->interrupt.
	 */
	.globl dbt_exit, dbt_exit_end
	.hidden dbt_exit, dbt_exit_end
dbt_exit:
	mov	%rsp, %gs:T_GPR+32
	mov	%gs:T_RT_SP, %rsp
	pushfq
	popq	%gs:T_RFLAGS
	mov	%rax, %gs:T_GPR+0
	mov	%rcx, %gs:T_GPR+8
	mov	%rdx, %gs:T_GPR+16
	mov	%rbx, %gs:T_GPR+24
	mov	%rbp, %gs:T_GPR+40
	mov	%rsi, %gs:T_GPR+48
	mov	%rdi, %gs:T_GPR+56
	mov	%r8, %gs:T_GPR+64
	mov	%r9, %gs:T_GPR+72
	mov	%r10, %gs:T_GPR+80
	mov	%r11, %gs:T_GPR+88
	mov	%r12, %gs:T_GPR+96
	mov	%r13, %gs:T_GPR+104
	mov	%r14, %gs:T_GPR+112
	mov	%r15, %gs:T_GPR+120
	/*
	 * C wants the direction flag clear, and no alignment checks (AC), which guests may have
	 * set.
	 */
	testl	$0x40400, %gs:T_RFLAGS
	jz	1f
	pushq	$2
	popfq
1:	xor	%eax, %eax
dbt_exit_end:
leave:
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size dbt_enter, . - dbt_enter

	/*
	 * size_t dbt_fetch(void *to, u64 from, size_t n): returns how many bytes could be read.
	 * After a fault at the load dbt_fault() goes on at dbt_fetch_fault.
	 */
	.globl dbt_fetch, dbt_fetch_load, dbt_fetch_fault
	.hidden dbt_fetch, dbt_fetch_load, dbt_fetch_fault
	.type dbt_fetch, @function
dbt_fetch:
	mov	%rdx, %rcx
dbt_fetch_load:
	rep movsb
dbt_fetch_fault:
	mov	%rdx, %rax
	sub	%rcx, %rax
	ret
	.size dbt_fetch, . - dbt_fetch

	.section .note.GNU-stack, "", @progbits
