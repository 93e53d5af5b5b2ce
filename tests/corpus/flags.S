/*
 * Flags that live across branches, calls and block boundaries: counting between two blocks must
 * leave every one of them, and DF, alone. The exit status folds all results.
 */
	.macro	fold			/* the flags into ebx */
	pushfq
	popq	%rax
	andl	$0xcd5, %eax
	roll	$1, %ebx
	xorl	%eax, %ebx
	.endm

	.text
	.globl _start
_start:
	xorl	%ebx, %ebx
	movl	$64, %r12d
	movq	$0x123456789abcdef, %r13
again:
	addq	%r13, %r13		/* CF over a taken branch into adc */
	jmp	1f
	nop
1:	adcq	$1, %r13
	jnc	1f
	sbbl	$0, %ebx
1:	adcl	$0, %ebx
	movq	%r13, %rax
	cmpb	$0x5a, %al		/* all flags over a call and its return */
	call	nothing
	fold
	testl	$0x11, %r13d
	jmp	*hop(%rip)
back:	fold
	incl	%r13d			/* CF kept by inc, across jumps */
	jmp	1f
1:	setc	%al
	xorb	%al, %bl
	std
	jmp	1f
1:	fold
	call	nothing
	cld
	jmp	1f
1:	stc
	call	nothing
	rcrl	$1, %ebx
	movl	%r12d, %ecx
	shll	%cl, %ebx		/* count 0 or 32 keeps the flags of before */
	jmp	1f
1:	fold
	leaq	1f(%rip), %rax
	subl	$1, %r12d
	jmp	*%rax
1:	jnz	again
	movl	%ebx, %edi
	andl	$0x7f, %edi
	movl	$231, %eax
	syscall
nothing: ret
	.data
hop:	.quad	back
