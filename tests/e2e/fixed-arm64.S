/*
 * A program whose count is known: for each word of its command line 1,048,576 turns of two
 * instructions and 3 besides, and 6 in all.
 */
	.globl _start
_start:
	ldr x10, [sp]
	nop
	nop
1:	mov w9, #1048576
2:	subs w9, w9, #1
	b.ne 2b
	subs x10, x10, #1
	b.ne 1b
	mov x0, #0
	mov x8, #93
	svc #0
	.section .note.GNU-stack, "", @progbits
