/* Guest code whose counts are known by counting the lines. SysV functions. */
#include "unit/dbt/guest-code.inc"

	/* 2 + 3n + 2: n times round; n >= 1 */
fn snip_loop
	xor	eax, eax
	mov	rcx, rdi
1:	add	rax, rcx
	dec	rcx
	jnz	1b
	lea	rax, [rax + 1]
	ret

	/* A transaction that never begins: 6; the flags are as they were. */
fn snip_transaction
	mov	eax, edi
	stc
	xbegin	1f
	ud2
1:	setc	cl
	mov	edx, ecx
	ret

	/* A REP counts once: 5. */
fn snip_rep
	mov	rcx, rdi
	lea	rdi, snip_buffer[rip]
	xor	eax, eax
	rep stosb
	ret

	/* Calls, indirect calls, indirect jumps, a taken and a not-taken jcc: 17 */
fn snip_branches
	push	rbx
	xor	ebx, ebx
	call	leaf
	lea	rax, leaf[rip]
	call	rax
	lea	rdx, 1f[rip]
	jmp	rdx
	ud2
1:	test	ebx, ebx
	jz	2f
	cmp	ebx, 2
	jne	2f
	mov	eax, ebx
2:	pop	rbx
	ret
leaf:	inc	ebx
	ret

	/* Flags live over jumps, calls and counters. rax = what they were; 11 */
fn snip_flags
	mov	eax, edi
	add	al, sil
	jmp	1f
1:	mov	ecx, 3
	call	getflags
	and	eax, 0x8d5
	ret
getflags:
	jmp	2f
2:	pushfq
	pop	rax
	ret

	/* The vector state is the guest's wherever it is interrupted. rax = 0 */
fn snip_vector
	movq	xmm0, rdi
	movq	xmm15, rsi
	movaps	xmm7, xmm0
	mov	rcx, rdi
1:	paddq	xmm0, xmm15
	movq	rax, xmm0
	add	rdi, rsi
	cmp	rax, rdi
	jne	2f
	dec	rcx
	jnz	1b
2:	movq	rdx, xmm0
	sub	rdi, rdx
	mov	rax, rdi
	ret

	/* Writes into its next instruction, n times round; for where it can be written. */
fn snip_rewriting
	mov	byte ptr [rip + 1], dil
	mov	eax, 0
	dec	edi
	jnz	snip_rewriting
	ret
	.globl	snip_rewriting_end
snip_rewriting_end:

	/* Red zone: what lies below rsp survives jumps of every kind. 19 */
fn snip_redzone
	mov	qword ptr [rsp - 8], 11
	mov	qword ptr [rsp - 16], 22
	mov	qword ptr [rsp - 128], 33
	lea	rax, 1f[rip]
	jmp	rax
1:	mov	ecx, 1
	jrcxz	2f
	loop	2f
	jmp	3f
3:	stc
	jnc	2f
	xor	eax, eax
	jnz	2f
	mov	rax, [rsp - 8]
	add	rax, [rsp - 16]
	add	rax, [rsp - 128]
	jmp	4f
2:	mov	rax, -1
4:	ret

	/* Recursion: fib(rdi) */
fn snip_fib
	cmp	rdi, 2
	jae	1f
	mov	rax, rdi
	ret
1:	push	rbx
	push	rdi
	dec	rdi
	call	snip_fib
	mov	rbx, rax
	pop	rdi
	sub	rdi, 2
	call	snip_fib
	add	rax, rbx
	pop	rbx
	ret

	/* Writes through a table of functions, returns their xor. */
fn snip_table
	push	r12
	push	r13
	mov	r12, rdi
	xor	r13d, r13d
1:	mov	rax, r12
	and	eax, 3
	lea	rcx, table[rip]
	mov	rdi, r12
	call	[rcx + rax * 8]
	xor	r13, rax
	dec	r12
	jnz	1b
	mov	rax, r13
	pop	r13
	pop	r12
	ret
	/* To rdi with the flags of rsi - rdx, by a jump or by a call */
fn snip_to
	test	sil, 4
	jz	1f
	cmp	rsi, rdx
	call	rdi
	ret
1:	cmp	rsi, rdx
	jmp	rdi

t0:	lea	rax, [rdi + 1]
	ret
t1:	imul	rax, rdi, 77
	ret
t2:	bswap	rdi
	mov	rax, rdi
	ret	0
t3:	mov	rax, rdi
	xor	rax, snip_key[rip]
	ret

	/* Faults at the second instruction after reading the first's result. */
fn snip_fault
	mov	eax, 5
	.globl	snip_fault_at
snip_fault_at:
	add	rax, [rdi]
	ret

	/* The guest's GS is its own. */
fn snip_gs
	wrgsbase rdi
	mov	rax, gs:[8]
	mov	rcx, 16
	add	rax, gs:[rcx]
	mov	gs:[rcx + 8], rax
	rdgsbase rdx
	sub	rdx, rdi
	add	rax, rdx
	ret

	/* Return addresses that the callee has changed: goes back to 1f, not 0f. */
fn snip_longjmp
	mov	eax, 1
	call	skip
	mov	eax, 99
1:	ret
skip:	lea	rcx, 1b[rip]
	mov	[rsp], rcx
	inc	eax
	ret

	/* Indirect branches through the registers that are spilled for them, flags live. 0xc5 */
fn snip_spilled
	lea	r11, 1f[rip]
	mov	ecx, 0xc0
	stc
	jmp	r11
	ud2
1:	lea	rcx, 2f[rip]
	mov	r11d, 4
	call	rcx
	mov	eax, 0
	adc	eax, r11d
	add	eax, 0xc0
	ret
2:	lea	r11, 3f[rip]
	push	r11
	mov	r11d, 4
	ret
3:	ret

	/* rdi times one of three functions, by chance; flags live through calls and returns. */
fn snip_live
	movabs	rax, 88172645463325252
	xor	r8d, r8d
1:	mov	rcx, rax
	shl	rcx, 13
	xor	rax, rcx
	mov	rcx, rax
	shr	rcx, 7
	xor	rax, rcx
	test	al, 3
	call	2f
	setz	dl
	movzx	edx, dl
	add	r8, rdx
	dec	rdi
	jnz	1b
	mov	rax, r8
	ret
2:	jz	3f
	js	4f
	lea	rcx, [rcx + 1]
	ret
3:	lea	rcx, [rcx + 1]
	lea	rcx, [rcx + 1]
	lea	rcx, [rcx + 1]
	lea	rcx, [rcx + 1]
	ret
4:	mov	ecx, ecx
	ret

	/* rdi times: a comparison, forty instructions, and a call into which its flags live. */
fn snip_compared
	xor	eax, eax
1:	cmp	rdi, 1
	.rept	40
	lea	rax, [rax + 1]
	.endr
	call	2f
	jne	1b
	ret
2:	setz	dl
	lea	rdi, [rdi - 1]
	ret

	/* Recursion deeper than calls are remembered, rdi levels: their sum. */
fn snip_deep
	test	rdi, rdi
	jz	1f
	push	rdi
	dec	rdi
	call	snip_deep
	pop	rdi
	add	rax, rdi
	ret
1:	xor	eax, eax
	ret

	/*
	 * A return address in memory that cannot be written: rdi points at that of
	 * snip_readonly_back. 6
	 */
fn snip_readonly
	mov	rax, rsp
	mov	rsp, rdi
	mov	r11d, 40
	mov	ecx, 2
	ret
	.globl	snip_readonly_back
snip_readonly_back:
	mov	rsp, rax
	lea	rax, [r11 + rcx]
	ret

	/*
	 * A call on the stack rdi, which returns to rsi or where it came from, 43 or 42; r10 = 1
	 * before the return.
	 */
fn snip_withdrawn
	mov	rax, rsp
	mov	rsp, rdi
	mov	r11d, 40
	mov	ecx, 2
	xor	r10d, r10d
	call	1f
	mov	rsp, rax
	lea	rax, [r11 + rcx]
	ret
1:	test	rsi, rsi
	jz	2f
	mov	[rsp], rsi
2:	mov	r10d, 1
	ret
	.globl	snip_withdrawn_back
snip_withdrawn_back:
	mov	rsp, rax
	lea	rax, [r11 + rcx + 1]
	ret
/* One branch of each kind in some thirty instructions; n turns. */
	.globl	snip_sparse
snip_sparse:
1:	.rept	30
	inc	rax
	.endr
	jmp	2f
	nop
2:	.rept	30
	inc	rax
	.endr
	call	9f
	.rept	30
	inc	rax
	.endr
	lea	rcx, [rip + 9f]
	call	rcx
	.rept	30
	inc	rax
	.endr
	lea	rdx, [rip + 3f]
	jmp	rdx
3:	test	rax, rax
	jnz	4f
	nop
4:	.rept	30
	inc	rax
	.endr
	dec	rdi
	jnz	1b
	ret
9:	.rept	30
	inc	rax
	.endr
	ret

	.data
	.p2align 4
table:	.quad	t0, t1, t2, t3
	.globl	snip_key
snip_key: .quad	0x123456789abcdef
	.bss
	.globl	snip_buffer
snip_buffer: .skip 4096
	.section .note.GNU-stack, "", @progbits
