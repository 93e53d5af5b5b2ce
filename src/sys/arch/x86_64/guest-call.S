/*
 * A guest's system call, made so that a signal handler can tell by the interrupted pc how far it
 * got:
 *
 *   [guest_call_begin, guest_call_insn]
 *		Not made yet, or the kernel wants it restarted; it has been made once if rcx is
 *		guest_call_end. The handler sends it to guest_call_redo.
 *   guest_call_end
 *		Made; rax is its result.
 *
 * struct sys_guest_ret guest_call(const u64 nr_args[7], const u32 *pending)
 */
#include <asm/unistd.h>

	.text
	.macro guest_call_at name
	.globl \name, \name\()_begin, \name\()_insn, \name\()_end, \name\()_redo
	.hidden \name, \name\()_begin, \name\()_insn, \name\()_end, \name\()_redo
	.type \name, @function
\name:
	movq	%rdi, %rcx
	movq	%rsi, %r11
	movq	(%rcx), %rax
	movq	8(%rcx), %rdi
	movq	16(%rcx), %rsi
	movq	24(%rcx), %rdx
	movq	32(%rcx), %r10
	movq	40(%rcx), %r8
	movq	48(%rcx), %r9
\name\()_begin:
	cmpl	$0, (%r11)
	jne	\name\()_redo
\name\()_insn:
	syscall
\name\()_end:
	xorl	%edx, %edx
	ret
\name\()_redo:
	movl	$1, %edx
	ret
	.size \name, . - \name
	.endm

	guest_call_at guest_call
	/*
	 * The same at another address, by which a filter in the kernel knows it
	 * (rt/sandbox/seccomp.c).
	 */
	guest_call_at guest_call_notified

/*
 * struct sys_guest_ret guest_call80(const u64 nr_args[7], const u32 *pending): the same through the
 * i386 gate, which leaves nothing behind by which a call that is restarted could be told.
 */
	.globl guest_call80, guest_call80_begin, guest_call80_insn, guest_call80_end, guest_call80_redo
	.hidden guest_call80, guest_call80_begin, guest_call80_insn, guest_call80_end, guest_call80_redo
	.type guest_call80, @function
guest_call80:
	pushq	%rbx
	pushq	%rbp
	movq	(%rdi), %rax
	movq	8(%rdi), %rbx
	movq	16(%rdi), %rcx
	movq	24(%rdi), %rdx
	movq	48(%rdi), %rbp
	movq	%rsi, %r11
	movq	32(%rdi), %rsi
	movq	40(%rdi), %rdi
guest_call80_begin:
	cmpl	$0, (%r11)
	jne	guest_call80_redo
guest_call80_insn:
	int	$0x80
guest_call80_end:
	xorl	%edx, %edx
1:	popq	%rbp
	popq	%rbx
	ret
guest_call80_redo:
	movl	$1, %edx
	jmp	1b
	.size guest_call80, . - guest_call80

/*
 * The handler of every signal that the runtime catches. The guest may have been running with
 * EFLAGS.AC set, which C code must not see.
 */
	.globl signal_entry, signal_restorer
	.hidden signal_entry, signal_restorer
	.type signal_entry, @function
signal_entry:
	pushfq
	andq	$~0x40000, (%rsp)
	popfq
	jmp	signal_handler
	.size signal_entry, . - signal_entry
	.type signal_restorer, @function
signal_restorer:
	movl	$__NR_rt_sigreturn, %eax
	syscall
	ud2
	.size signal_restorer, . - signal_restorer

/*
 * void signal_trap(void): has the kernel make a signal frame, whose vector state is the program's,
 * at a place that the handler knows.
 */
	.globl signal_trap, signal_trap_end
	.hidden signal_trap, signal_trap_end
	.type signal_trap, @function
signal_trap:
	int3
signal_trap_end:
	ret
	.size signal_trap, . - signal_trap

/*
 * void signal_return(struct ucontext *uc): rt_sigreturn(2) with a frame whose rip and rsp are made
 * to come back here. What lasts is what is not a general register: the vector state and the mask.
 */
	.globl signal_return
	.hidden signal_return
	.type signal_return, @function
signal_return:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	leaq	1f(%rip), %rax
	movq	%rsp, 160(%rdi)		/* uc_mcontext.rsp */
	movq	%rax, 168(%rdi)		/* uc_mcontext.rip */
	movq	%rdi, %rsp
	movl	$__NR_rt_sigreturn, %eax
	syscall
	ud2
1:	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
	.size signal_return, . - signal_return

/* long guest_copy(void *to, const void *from, size_t len): bytes not copied; faults end it. */
	.globl guest_copy, guest_copy_insn, guest_copy_end
	.hidden guest_copy, guest_copy_insn, guest_copy_end
	.type guest_copy, @function
guest_copy:
	movq	%rdx, %rcx
guest_copy_insn:
	rep movsb
guest_copy_end:
	movq	%rcx, %rax
	ret
	.size guest_copy, . - guest_copy

/*
 * void thread_leave(void *area, size_t len, int status): unmaps the stack it stands on, and exits.
 */
	.globl thread_leave
	.hidden thread_leave
	.type thread_leave, @function
thread_leave:
	movl	%edx, %r12d
	movl	$__NR_munmap, %eax
	syscall
1:	movl	%r12d, %edi
	movl	$__NR_exit, %eax
	syscall
	jmp	1b
	.size thread_leave, . - thread_leave

/*
 * void thread_leave_to(u64 *place, u64 area, int status): leaves the area it stands on to whoever
 * takes it from *place, and exits. From then on it touches no memory.
 */
	.globl thread_leave_to
	.hidden thread_leave_to
	.type thread_leave_to, @function
thread_leave_to:
	movq	%rsi, (%rdi)
1:	movl	%edx, %edi
	movl	$__NR_exit, %eax
	syscall
	jmp	1b
	.size thread_leave_to, . - thread_leave_to

/*
 * long thread_spawn(u64 nr, u64 a, u64 b, u64 c, u64 d, void *child_stack_top, u64 e)
 * clone or clone3 for a child that shares our memory. The child comes out on a stack of its own, at
 * the top of which lie an argument and the function that it calls with it; the parent gets the
 * result.
 * The child's guest stack is no business of the kernel's.
 */
	.globl thread_spawn
	.hidden thread_spawn
	.type thread_spawn, @function
thread_spawn:
	pushq	%rbx
	movq	%r9, %rbx
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	16(%rsp), %r8		/* the seventh argument, above rbx and the return address */
	syscall
	testq	%rax, %rax
	jnz	1f
	movq	%rbx, %rsp
	xorl	%ebp, %ebp
	movq	(%rsp), %rdi
	call	*8(%rsp)
	ud2
1:	popq	%rbx
	ret
	.size thread_spawn, . - thread_spawn

/* void start_on_stack(void *arg, void *stack_top, void (*fn)(void *)): fn(arg) on another stack. */
	.globl start_on_stack
	.hidden start_on_stack
	.type start_on_stack, @function
start_on_stack:
	movq	%rsi, %rsp
	xorl	%ebp, %ebp
	call	*%rdx
	ud2
	.size start_on_stack, . - start_on_stack

/* The kernel starts the runtime here. */
	.globl _start
	.type _start, @function
_start:
	movq	%rsp, %rdi
	leaq	start_stack_top(%rip), %rsp
	xorl	%ebp, %ebp
	call	start
	ud2
	.size _start, . - _start

	.section .bss.stack, "aw", @nobits
	.balign 4096
start_stack:
	.skip 65536
	.globl start_stack_top
	.hidden start_stack_top
start_stack_top:

	.section .note.GNU-stack, "", @progbits
