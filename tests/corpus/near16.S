/*
 * Near branches with prefix 66: 16 bits wide on AMD's CPUs, where they can get below 64 KB only,
 * and as without it on Intel's. What they do here ends alike on both: they run there, where the
 * kernel lets us map it.
 */
#define LOW		0x8000
#define AT(label)	(LOW + label - low)

	.text
	.globl _start
_start:
	movl	$9, %eax		/* mmap */
	movl	$LOW, %edi
	movl	$4096, %esi
	movl	$7, %edx		/* PROT_READ | PROT_WRITE | PROT_EXEC */
	movl	$0x100022, %r10d	/* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE */
	movl	$-1, %r8d
	xorl	%r9d, %r9d
	syscall
	xorl	%ebx, %ebx
	cmpq	$LOW, %rax
	jne	1f
	leaq	low(%rip), %rsi
	movl	$LOW, %edi
	movl	$low_end - low, %ecx
	rep movsb
	movq	%rsp, %rbp
	call	*%rax
1:	movl	%ebx, %edi
	andl	$0x7f, %edi
	movl	$231, %eax		/* exit_group */
	syscall

low:	.byte	0x66
	jmp	1f
	ud2
1:	movl	$5, %ecx
1:	incl	%ebx
	.byte	0x66
	loop	1b
	xorl	%ecx, %ecx
	.byte	0x66
	jrcxz	1f
	ud2
1:	xorl	%eax, %eax
	.byte	0x66
	jz	1f
	ud2
1:	.byte	0x66
	jnz	1f
	incl	%ebx
1:	xorl	%eax, %eax
	.byte	0x66, 0x48		/* REX.W undoes it */
	jz	1f
	ud2
	/*
	 * Displacements of 16 bits, or of 32, whose upper half is skipped or another instruction.
	 */
1:	.byte	0x66, 0x0f, 0x85, 0x10, 0, 0x89, 0xdb		/* not taken; movl %ebx, %ebx */
	.byte	0x66, 0x0f, 0x84, 0x04, 0, 0, 0			/* over them, or two bytes more */
	ud2
	nop
	nop
	nop
	nop
	.byte	0x66, 0xe9, 0x04, 0, 0, 0
	ud2
	nop
	nop
	nop
	nop
	leaq	-64(%rsp), %rax
	leaq	-8(%rsp), %rsp
	.byte	0x66, 0xe8, 0x07, 0, 0, 0			/* addb %al, (%rax) */
	jmp	1f
	ud2
	nop
	nop
	nop
	nop
	nop
	incl	%ebx
	.byte	0x66
	ret
	ud2
	/* Through registers and memory, and back. */
1:	movl	$AT(2f), %eax
	.byte	0x66
	call	*%rax
	.byte	0x66
	call	*AT(table)
	movl	$AT(1f), %eax
	.byte	0x66
	jmp	*%rax
1:	.byte	0x66
	jmp	*AT(table) + 8
2:	incl	%ebx
	.byte	0x66
	ret
3:	movl	$AT(1f), %eax
	pushq	%rax
	.byte	0x66
	ret	$8
1:	leaq	-8(%rbp), %rsp
	ret
table:	.quad	AT(2b), AT(3b)
low_end:
