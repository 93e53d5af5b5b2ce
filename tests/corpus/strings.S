/*
 * String instructions with and without rep: counts of 0, 1 and more, both directions, early ends.
 */
	.text
	.globl _start
_start:
	cld
	.irp n, 0, 1, 2, 7, 64, 300
	.irp op, b, w, l, q
	leaq	source(%rip), %rsi
	leaq	sink(%rip), %rdi
	movl	$\n / 8, %ecx
	rep movs\op
	leaq	sink(%rip), %rdi
	movl	$\n / 8, %ecx
	movq	$0x1122334455667788, %rax
	rep stos\op
	leaq	source(%rip), %rsi
	movl	$\n / 8, %ecx
	rep lods\op
	leaq	source(%rip), %rsi
	leaq	same(%rip), %rdi
	movl	$\n / 8, %ecx
	repe cmps\op
	leaq	source(%rip), %rdi
	movl	$\n / 8, %ecx
	xorl	%eax, %eax
	repne scas\op
	.endr
	.endr
	/* One step each, and backwards. */
	leaq	source+16(%rip), %rsi
	leaq	sink+16(%rip), %rdi
	std
	movsb
	movsq
	stosl
	lodsw
	movl	$2, %ecx
	rep movsw
	cld
	cmpsb
	scasb
	/* A rep prefix that the instruction ignores, and a rep that branches end. */
	.byte	0xf3, 0x0f, 0x1f, 0x00		/* rep nop (%rax) */
	movl	$40, %r12d
1:	leaq	sink(%rip), %rdi
	movl	%r12d, %ecx
	rep stosb
	decl	%r12d
	jnz	1b
	leaq	source(%rip), %rsi
	leaq	same(%rip), %rdi
	movl	$64, %ecx
	repe cmpsb
	setz	%dil
	movzbl	%dil, %edi
	addl	%ecx, %edi
	movl	$231, %eax
	syscall
	.data
source:	.ascii	"the quick brown fox jumps over the lazy dog and so on, and so forth"
	.zero	400
same:	.ascii	"the quick brown fox jumps over the lazy cat and so on, and so forth"
	.zero	400
sink:	.zero	800
