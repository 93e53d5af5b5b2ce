/* Guest code that goes by words in memory, as stubs of a PLT do. */
#include "unit/dbt/guest-code.inc"

	/*
	 * Calls @rdi by a stub, which is entered with the carry flag: 11 with what it goes to.
	 * rax = what that returns, and bit 8 is the flag.
	 */
fn stub_to
	mov	stub_word[rip], rdi
	stc
	call	stub
	setc	dl
	movzx	edx, dl
	shl	edx, 8
	or	eax, edx
	ret
stub:	jmp	qword ptr stub_word[rip]

	/* Two that leave the flags alone, and one that does not look at them. */
fn stub_one
	mov	eax, 1
	ret
fn stub_two
	mov	eax, 2
	ret
fn stub_zero
	xor	eax, eax
	ret

	/* Calls a stub: 6 when it is bound to stub_one, else 14. */
fn stub_bind
	call	1f
	ret
1:	endbr64
	jmp	qword ptr stub_bound[rip]
fn stub_binder
	push	0x1234
	.byte	0xe9	/* jmp */
	.long	1f - . - 4
1:	lea	rsp, [rsp + 8]
	push	rax
	lea	rax, stub_one[rip]
	mov	stub_bound[rip], rax
	pop	rax
	jmp	qword ptr stub_bound[rip]

	/* The same by a loader that never binds: 8. */
fn stub_unbound
	call	1f
	ret
1:	jmp	qword ptr stub_never[rip]
fn stub_never_binder
	push	0x1234
	.byte	0xe9
	.long	1f - . - 4
1:	lea	rsp, [rsp + 8]
	jmp	stub_one

	.data
	.p2align 3
	.globl stub_word, stub_bound, stub_never
stub_word:	.quad 0
stub_bound:	.quad 0
stub_never:	.quad 0
	.section .note.GNU-stack, "", @progbits
