/* Guest code with conditional branches forward that are taken. */
#include "unit/dbt/guest-code.inc"

	/*
	 * @rdi below 2: 1 with 6 instructions, the flags being dead where the branch leads. Else 5
	 * with 7, or if it is above @rsi 6 with 10, the flags being read there.
	 */
fn exits_ways
	xor	eax, eax
	cmp	rdi, 2
	jb	exits_below
	add	eax, 5
	cmp	rdi, rsi
	ja	exits_above
	ret
	.globl exits_below
exits_below:
	xor	eax, eax
	add	eax, 1
	ret
exits_above:
	seta	dl
	movzx	edx, dl
	lea	eax, [rax + rdx]
	ret

	/* exits_apart(@rdi): 7 with 4 instructions if that is 0, else what is a page further. */
fn exits_apart
	test	rdi, rdi
	jne	exits_apart + 4096
	mov	eax, 7
	ret
	.globl exits_apart_end
exits_apart_end:
	.section .note.GNU-stack, "", @progbits
