/*
 * A library whose headers lie with its code in one segment, as linkers once did it all: the loader
 * maps the whole file executable and its data over that. One function, of many blocks.
 */
	.text
	.globl headed
	.type headed, @function
headed:
	xor %eax, %eax
	.rept 40000
	cmp %eax, %edi
	je 1f
	inc %eax
1:
	.endr
	ret
	.size headed, . - headed

	.data
	.quad headed
	.section .note.GNU-stack, "", @progbits
