/*
 * A function that ends with the call of one that does not return: behind that begins another
 * function, which is called once. The functions have lines 20 to 29.
 */
	.intel_syntax noprefix
	.text
	.globl	_start, wastes, guilty, innocent
	.type	_start, @function
	.type	wastes, @function
	.type	guilty, @function
	.type	innocent, @function
	.file	1 "last-call.c"
_start:
	.loc	1 20
	call	innocent
	.loc	1 21
	jmp	guilty
	.size	_start, . - _start
wastes:
	.loc	1 22
	mov	ecx, 1000
1:	dec	ecx
	jnz	1b
	mov	eax, 231
	xor	edi, edi
	syscall
	.size	wastes, . - wastes
guilty:
	.loc	1 23
	nop
	.loc	1 24
	call	wastes
	.size	guilty, . - guilty
innocent:
	.loc	1 25
	ret
	.size	innocent, . - innocent
	.section .note.GNU-stack, "", @progbits
