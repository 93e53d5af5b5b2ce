/*
 * A program whose count is known: 100,000 turns of two instructions for each word of its command
 * line, and 5 besides. Its branches are the turns. With one word that is 200,005 instructions.
 */
	.globl _start
_start:
	movq (%rsp), %rcx
	imulq $100000, %rcx, %rcx
1:	decq %rcx
	jnz 1b
	movl $231, %eax
	xorl %edi, %edi
	syscall
	.section .note.GNU-stack, "", @progbits
