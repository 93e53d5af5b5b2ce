/* Each way in which instructions access memory; rdi is 8 KB of it. */
#include "unit/dbt/guest-code.inc"

fn snip_operands
	push	rbx
	push	rbp
	push	r12
	push	r13
	mov	rbx, rdi
	mov	r12, 5
	/* Plain, read and written, both at once, with index, without base. */
	mov	rax, [rbx]
	mov	[rbx + 8], rax
	add	dword ptr [rbx + r12 * 4 + 12], 3
	cmp	byte ptr [rbx + r12], 1
	lea	r13, [rbx + r12 * 8]
	inc	word ptr [r13]
	lock	xadd [r13 + 2048], rax
	xchg	[rbx + 24], rcx
	mov	rax, [rip + here]
	lea	rcx, [r12 * 8]
	mov	rdx, [rcx + rbx]
	/* The register of the address is what is loaded. */
	mov	[rbx + 64], rbx
	mov	rdx, rbx
	mov	rdx, [rdx + 64]
	mov	rdx, [rdx + 64]
	mov	eax, [rdx]
	/* What is added to a register on the way. */
	mov	rsi, rbx
	add	rsi, 64
	mov	al, [rsi]
	sub	rsi, -128
	mov	al, [rsi]
	inc	rsi
	mov	al, [rsi]
	dec	rsi
	mov	al, [rsi]
	add	rsi, 100000
	sub	rsi, 100000
	mov	al, [rsi + 7]
	xor	r8d, r8d
	mov	al, [rsi + r8]
	mov	r8d, 3
	mov	al, [rsi + r8]
	mov	r9, rsi
	mov	al, [r9 + r8 * 8]
	lea	r9, [r9 - 32]
	mov	[r9], al
	/* 32 bits, segments, constants. */
	mov	ecx, ebx
	mov	rax, fs:[0]
	mov	edx, 8
	mov	rcx, fs:[rdx]
	/* The stack. */
	push	qword ptr [rbx + 64]
	pop	qword ptr [rbx + 72]
	push	rsp
	pop	rax
	push	rbx
	pop	qword ptr [rsp - 16]
	push	word ptr [rbx]
	pop	word ptr [rbx + 2]
	pushfq
	pop	rax
	push	-5
	mov	rax, [rsp]
	mov	[rsp + 0], rax
	lea	rsp, [rsp + 8]
	enter	32, 0
	mov	[rbp - 8], rax
	mov	[rsp + 8], rax
	leave
	push	rbp
	mov	rbp, rsp
	sub	rsp, 64
	mov	[rbp - 16], rax
	mov	[rsp + 8], rax
	and	rsp, -32
	mov	[rsp + 8], rax
	mov	rsp, rbp
	pop	rbp
	lea	rax, 2f[rip]
	mov	[rbx + 128], rax
	call	qword ptr [rbx + 128]
	call	2f
	call	3f
	lea	rax, 1f[rip]
	mov	[rbx + 128], rax
	jmp	qword ptr [rbx + 128]
	ud2
1:	/* Vectors, x87, what may not access. */
	movups	xmm0, [rbx + 256]
	movaps	[rbx + 272], xmm0
	movss	xmm1, [rbx + 4]
	movsd	[rbx + 300], xmm1
	paddb	xmm0, [rbx + 512]
	fld	qword ptr [rbx + 16]
	fstp	tbyte ptr [rbx + 320]
	xor	eax, eax
	cmovnz	rax, [rbx + 40]
	cmpxchg	[rbx + 40], rcx
	setz	[rbx + 5]
	movzx	eax, byte ptr [rbx + 9]
	movsxd	rax, dword ptr [rbx + 12]
	imul	rax, [rbx + 16], 3
	test	[rbx], al
	bt	dword ptr [rbx + 3], 5
	stmxcsr	[rbx + 28]
	ldmxcsr	[rbx + 28]
	xor	eax, eax
	xor	edx, edx
	xor	ecx, ecx
	push	rbx
	mov	rsi, rbx
	xor	ebx, ebx
	cmpxchg16b [rsi + 1024]
	pop	rbx
	mov	al, 200
	xlatb
	/* One branch of two. */
	mov	ecx, 3
4:	mov	rax, [rbx + rcx * 8]
	test	cl, 1
	jz	5f
	mov	[rbx + rcx * 8 + 640], rax
	push	rax
	pop	rax
5:	dec	ecx
	jnz	4b
	pop	r13
	pop	r12
	pop	rbp
	pop	rbx
	ret
2:	mov	rax, [rsp]
	ret
3:	push	rbx
	mov	rax, [rsp + 8]
	pop	rbx
	/* Its argument is dropped by a sibling of it. */
	push	rax
	call	6f
	ret
6:	mov	rax, [rsp + 8]
	ret	8
	.p2align 3
here:	.quad	0x1234

fn snip_strings
	mov	r10, rdi
	lea	rsi, [r10 + 1024]
	mov	ecx, 20
	rep movsb
	mov	ecx, 5
	rep movsq
	mov	rax, [rsi]
	mov	rdx, [rdi + 8]
	xor	ecx, ecx
	rep movsb
	std
	lea	rdi, [r10 + 4000]
	lea	rsi, [r10 + 3000]
	mov	ecx, 9
	rep movsd
	movsw
	cld
	movsq
	stosb
	lodsd
	scasw
	cmpsb
	mov	ecx, 17
	lea	rdi, [r10]
	mov	eax, 7
	rep stosw
	mov	ecx, 30
	lea	rdi, [r10]
	repe scasw
	mov	ecx, 50
	lea	rdi, [r10 + 2000]
	mov	rsi, r10
	repe cmpsb
	mov	ecx, 3
	rep lodsq
	ret

.macro touch_lines at
	.irp	line, 0, 64, 128, 192, 256, 320, 384, 448
	mov	rax, [rbx + \line + \at]
	.endr
.endm

/*
 * Accesses by one register beside each other, in one line or in two, of which others of their sets
 * may have been accessed last; and strings over lines of the sets of others.
 */
fn snip_groups
	push	rbx
	push	rbp
	mov	rbx, rdi
	xor	ebp, ebp
1:	lea	rsi, [rbx + rbp]
	mov	rax, [rsi]
	mov	rcx, [rsi + 8]
	mov	edx, [rsi + 20]
	movzx	r8d, byte ptr [rsi + 3]
	/* Flags matter. */
	cmp	rax, rcx
	mov	r9, [rsi + 40]
	mov	r10, [rsi + 48]
	mov	r11, [rsi + 32]
	setb	r9b
	mov	[rsi + 64], rax
	mov	[rsi + 72], rcx
	mov	[rsi + 60], edx
	/* Another line of the second one's set, and of the first one's. */
	mov	rax, [rsi + 512 + 64]
	mov	rcx, [rsi + 40]
	mov	rdx, [rsi + 56]
	mov	rax, [rsi + 512]
	mov	rcx, [rsi + 24]
	mov	rdx, [rsi]
	cmp	rax, rcx
	mov	rax, [rbx + rbp + 1024 + 64]
	mov	rcx, [rsi + 32]
	mov	rdx, [rsi + 60]
	seta	dl
	/* Not always both. */
	mov	rdx, [rsi + 512 + 64]
	test	bpl, 16
	mov	rax, [rsi + 16]
	jz	2f
	mov	rcx, [rsi + 24]
2:	mov	rcx, [rsi + 8]
	push	rax
	push	rcx
	add	[rsp + 8], rdx
	push	rsi
	pop	rsi
	pop	rcx
	pop	rax
	add	rsi, 8
	mov	rax, [rsi]
	sub	rsi, 24
	mov	rcx, [rsi + 64]
	mov	rdi, rsi
	mov	[rdi + 72], cl
	add	ebp, 5
	cmp	ebp, 330
	jb	1b
strings_among_lines:
	xor	ebp, ebp
3:	touch_lines 0
	mov	ecx, ebp
	lea	rdi, [rbx + rbp + 1024]
	rep stosb
	touch_lines 0
	lea	ecx, [rbp + 1]
	shr	ecx, 2
	lea	rdi, [rbx + rbp + 4096 + 1]
	lea	rsi, [rbx + rbp + 3072]
	std
	rep movsd
	cld
	touch_lines 0
	add	ebp, 37
	cmp	ebp, 620
	jb	3b
	pop	rbp
	pop	rbx
	ret

/* The second half of it alone: single steps are slow. */
fn snip_strings_among
	push	rbx
	push	rbp
	mov	rbx, rdi
	jmp	strings_among_lines

/* What C code executes: loads of GS, a far return and one of interrupts. */
fn snip_emulated
	mov	r8, gs
	mov	dword ptr [rdi + 64], 0x1234
	mov	word ptr [rdi + 68], r8w
	mov	gs, word ptr [rdi + 68]
	lgs	eax, [rdi + 64]
	push	r8
	pop	gs
	lea	rax, [rip + 1f]
	mov	ecx, cs
	push	rcx
	push	rax
	.byte	0x48, 0xcb /* retf, 64 bits */
1:	mov	rdx, rsp
	mov	ecx, ss
	push	rcx
	push	rdx
	pushfq
	mov	ecx, cs
	push	rcx
	lea	rax, [rip + 2f]
	push	rax
	iretq
2:	mov	rax, [rdi + 64]
	ret

/* Words that are as far away as a register says, in both directions. */
fn snip_bit_tests
	push	rbx
	lea	rbx, [rdi + 4096]
	mov	rax, 1000
	bt	[rbx], rax
	bts	[rbx + 16], rax
	mov	rax, -1
	btr	[rbx], rax
	btc	[rbx + 8], eax
	mov	ecx, 0x7fff
	bts	[rbx], cx
	mov	ecx, 0x8000
	lock	bts [rbx + 2], cx
	mov	rcx, 0x100000040
	mov	rdx, 3
	btr	[rbx + rdx * 8 + 40], ecx
	bt	[rip + bits], rdx
	bt	fs:[0], rdx
	bt	dword ptr [rbx + 3], 5
	bt	rax, rcx
	pop	rbx
	ret
	.p2align 3
bits:	.quad	0

/* Extended state, of which xmm0 and, with @rsi (2 and 4 of XCR0), ymm0 are in use. */
fn snip_xsave
	mov	r8, rsi
	pcmpeqd xmm0, xmm0
	test	r8d, 4
	jz	1f
	vinsertf128 ymm0, ymm0, xmm0, 1
1:	mov	eax, r8d
	xor	edx, edx
	xsave	[rdi + 1024]
	mov	eax, 3
	xsave64 [rdi + 2048]
	mov	eax, r8d
	xrstor	[rdi + 1024]
	mov	eax, 2
	xrstor	[rdi + 2048]
	mov	eax, r8d
	ret

fn snip_xsavec
	mov	r8, rsi
	pcmpeqd xmm0, xmm0
	test	r8d, 4
	jz	1f
	vinsertf128 ymm0, ymm0, xmm0, 1
1:	mov	eax, r8d
	xor	edx, edx
	xsavec	[rdi + 1024]
	mov	eax, r8d
	xrstor64 [rdi + 1024]
	mov	eax, r8d
	ret

/*
 * Registers that have been used and are 0 again. The CPU may still call them in use, and then no
 * longer; the header of an area that is restored says which it was.
 */
fn snip_xsavec_initial
	mov	r8, rsi
	fninit
	mov	dword ptr [rdi], 0x1f80
	ldmxcsr [rdi]
	.irp	reg, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	pxor	xmm\reg, xmm\reg
	.endr
	pcmpeqd xmm0, xmm0
	test	r8d, 4
	jz	1f
	vinsertf128 ymm0, ymm0, xmm0, 1
	vzeroall
1:	andnps	xmm0, xmm0
	mov	eax, r8d
	xor	edx, edx
	xsavec	[rdi + 1024]
	mov	dword ptr [rdi + 1048], 0x1f80
	or	[rdi + 1536], r8
	xrstor	[rdi + 1024]
	ret

/* Tiles, of what a configuration at @rdi says. */
fn snip_tiles
	ldtilecfg [rdi]
	mov	ecx, 100
	tileloadd tmm0, [rdi + rcx + 256]
	tileloaddt1 tmm1, [rdi + rcx * 4 + 512]
	lea	r8, [rdi + 2048]
	mov	rdx, -64
	tilestored [r8 + rdx * 2 + 8], tmm1
	tilestored [r8 + 8], tmm0
	sttilecfg [rdi + 64]
	tilerelease
	ret

/* A line that is read, and written: each the first time that it is touched. */
fn snip_touch
	mov	rax, [rdi + 512]
	mov	rcx, [rdi + 520]
	mov	[rdi + 528], rcx
	mov	[rdi + 536], rax
	ret
	.section .note.GNU-stack,"",@progbits
