/*
 * Code for the slot of an arena (arena.h), in which a class of instructions is executed natively and as the guest.
 * Within the code of one, L0 to L4 are the landings, DATA the data, TABLE where the landings' addresses are.
 * It ends by running over its end, at a landing, or with a fault; it must not depend on where it lies.
 */
#include "unit/dbt/arena.h"

	.intel_syntax noprefix
	.section .note.GNU-stack, "", @progbits
	.section .data.rel.ro, "aw"
	.globl	forms
	.p2align 3
forms:
	.text

	.macro form name:vararg
	.section .rodata
800:	.asciz	\name
	.section .data.rel.ro, "aw"
	.quad	800b, 801f, 802f
	.text
801:
	.set	L0, . + ARENA_LANDING_0
	.set	L1, . + ARENA_LANDING_1
	.set	L2, . + ARENA_LANDING_2
	.set	L3, . + ARENA_LANDING_3
	.set	L4, . + ARENA_LANDING_4
	.set	DATA, . + ARENA_DATA
	.set	TABLE, . + ARENA_DATA + ARENA_TABLE
	.endm
	.macro end
802:
	.endm

#define GPRS		rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
#define GPRS_BUT_RSP	rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
#define GPRS_16		ax, cx, dx, bx, sp, bp, si, di, r8w, r9w, r10w, r11w, r12w, r13w, r14w, r15w
#define GPRS_32		eax, ecx, edx, ebx, esp, ebp, esi, edi, r8d, r9d, r10d, r11d, r12d, r13d, r14d, r15d

	/* Conditional branches: forward, backward, short; flags used afterwards, and not. */
	.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	form "j\cc forward"
	j\cc	L1
	end
	form "j\cc backward"
	j\cc	L3
	end
	form "j\cc forward, flags dead"
	j\cc	L2
	add	rax, rcx
	end
	form "j\cc backward, flags dead"
	j\cc	L4
	add	rax, rcx
	end
	form "j\cc, flags dead where it is not taken"
	j\cc	L3
	add	rax, rcx
	end
	form "j\cc short"
	j\cc	1f
	jmp	L1
1:	jmp	L2
	end
	form "j\cc with a hint, to the next instruction"
	.byte	0x3e
	j\cc	1f
1:	lahf
	end
	form "j\cc after j\cc"
	test	cl, al
	j\cc	1f
	add	dl, bl
	j\cc	L1
	sub	esi, edi
1:	j\cc	L4
	end
	form "j\cc into what cannot be executed"
	j\cc	DATA
	end
	.endr

	.irp n, 0, 1, 2, 0x100000000, 0x100000001
	form "loop, rcx = \n"
	mov	rcx, \n
	loop	1f
	jmp	L1
1:	jmp	L2
	end
	form "loopne, rcx = \n"
	mov	rcx, \n
	loopne	1f
	jmp	L1
1:	jmp	L4
	end
	form "loope, rcx = \n"
	mov	rcx, \n
	loope	1f
	jmp	L1
1:	jmp	L3
	end
	form "jrcxz, rcx = \n"
	mov	rcx, \n
	jrcxz	1f
	jmp	L2
1:	jmp	L1
	end
	form "jecxz, rcx = \n"
	mov	rcx, \n
	jecxz	1f
	jmp	L2
1:	jmp	L1
	end
	form "loop with ecx, rcx = \n"
	mov	rcx, \n
	.byte	0x67
	loop	1f
	jmp	L1
1:	jmp	L2
	end
	.endr
	form "loop round and round"
	mov	ecx, 7
1:	adc	rax, rcx
	loop	1b
	end
	form "loopne round and round"
	mov	ecx, 7
1:	cmp	ecx, 3
	loopne	1b
	end
	form "jnz round and round"
	mov	ecx, 7
1:	lea	rax, [rax + rcx*2]
	dec	ecx
	jnz	1b
	end

	/* Jumps. */
	form "jmp forward"
	jmp	L1
	end
	form "jmp backward"
	jmp	L3
	end
	form "jmp short"
	jmp	1f
	ud2
1:	adc	eax, 1
	end
	form "jmp with a prefix"
	bnd jmp	L1
	end
	form "jmp to what cannot be executed"
	jmp	DATA
	end
	.irp r, GPRS
	form "jmp \r"
	lea	\r, [rip + L1]
	jmp	\r
	end
	form "jmp \r, flags dead"
	lea	\r, [rip + L4]
	jmp	\r
	end
	.endr
	.irp r, GPRS_BUT_RSP
	form "jmp [\r + 8]"
	lea	\r, [rip + TABLE]
	jmp	[\r + 8]
	end
	form "jmp [\r + disp32]"
	lea	\r, [rip + TABLE - 0x1000]
	jmp	[\r + 0x1010]
	end
	form "jmp gs:[\r + disp32]"
	mov	\r, 16
	jmp	gs:[\r + ARENA_TABLE]
	end
	form "call [\r + 8]"
	lea	\r, [rip + TABLE]
	call	[\r + 8]
	end
	form "call \r"
	lea	\r, [rip + 1f]
	call	\r
	jmp	L1
1:	xor	eax, eax
	ret
	end
	form "call gs:[\r + disp32]"
	mov	\r, 24
	call	gs:[\r + ARENA_TABLE]
	end
	form "push [\r], pop [\r]"
	lea	\r, [rip + DATA + 64]
	push	[\r]
	pop	[\r + 16]
	end
	.endr
	.irp r, rax, rcx, rdx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	form "jmp [rbx + \r*8]"
	lea	rbx, [rip + TABLE]
	mov	\r, 3
	jmp	[rbx + \r*8]
	end
	form "call [rbx + \r*8]"
	lea	rbx, [rip + TABLE]
	mov	\r, 2
	call	[rbx + \r*8]
	end
	.endr
	form "jmp [rip]"
	jmp	[rip + TABLE + 8]
	end
	form "jmp [eip]"
	jmp	[eip + TABLE + 8]
	end
	form "jmp [eax]"
	lea	rax, [rip + TABLE + 8]
	jmp	[eax]
	end
	form "jmp gs:[constant]"
	jmp	gs:[ARENA_TABLE + 16]
	end
	form "jmp gs:[ecx]"
	mov	rcx, 0x500000008
	jmp	gs:[ecx + ARENA_TABLE]
	end
	form "jmp gs:[rip]"
	jmp	gs:[rip + TABLE + 8]
	end
	form "jmp fs:[rcx]"
	rdfsbase rax
	lea	rcx, [rip + TABLE + 8]
	sub	rcx, rax
	jmp	fs:[rcx]
	end
	form "jmp [rsp]"
	jmp	[rsp]
	end
	form "jmp [rsp + 16]"
	jmp	[rsp + 16]
	end
	form "jmp [rsp + rcx*8]"
	mov	ecx, 3
	jmp	[rsp + rcx*8]
	end
	form "jmp [rsp - 8]"
	jmp	[rsp - 8]
	end
	form "jmp with notrack"
	lea	rdx, [rip + L1]
	notrack jmp rdx
	end
	form "jmp of 16 bits by prefix"
	lea	rax, [rip + L1]
	.byte	0x66
	jmp	rax
	end
	.irp to, 0x10, 0x7fffffffe000
	form "jmp, call and ret to \to"
	mov	rax, \to
	jmp	rax
	end
	form "call \to"
	mov	rax, \to
	call	rax
	end
	form "ret to \to"
	mov	rax, \to
	push	rax
	ret
	end
	.endr

	/* Calls and returns. */
	form "call"
	call	L1
	end
	form "call backward"
	call	L3
	end
	form "call and ret"
	call	1f
	jmp	L1
1:	ret
	end
	form "call and ret, flags dead"
	call	1f
	jmp	L2
1:	xor	eax, eax
	ret
	end
	form "call to what cannot be executed"
	call	DATA
	end
	form "call of the next instruction"
	call	1f
1:	pop	rax
	end
	form "call into an instruction"
	call	1f + 1
1:	.byte	0xa9, 0xf9, 0xc3, 0x90, 0x90
	end
	form "calls in calls"
	call	1f
	jmp	L1
1:	call	2f
	adc	eax, 1
	ret
2:	call	3f
	adc	ecx, 2
	ret
3:	stc
	ret
	end
	form "calls in a loop"
	mov	ecx, 3
1:	call	2f
	dec	ecx
	jnz	1b
	jmp	L1
2:	adc	eax, ecx
	ret
	end
	form "a deep recursion"
	mov	ecx, 100
	call	1f
	jmp	L1
1:	dec	ecx
	jz	2f
	call	1b
	adc	eax, ecx
2:	ret
	end
	form "call rsp"
	call	rsp
	end
	form "call [rip]"
	call	[rip + TABLE + 8]
	end
	form "call [eip]"
	call	[eip + TABLE + 8]
	end
	form "call gs:[constant]"
	call	gs:[ARENA_TABLE + 16]
	end
	form "call gs:[ecx]"
	mov	rcx, 0x500000008
	call	gs:[ecx + ARENA_TABLE]
	end
	form "call fs:[rcx]"
	rdfsbase rax
	lea	rcx, [rip + TABLE + 8]
	sub	rcx, rax
	call	fs:[rcx]
	end
	form "call [rsp]"
	call	[rsp]
	end
	form "call [rsp + 16]"
	call	[rsp + 16]
	end
	form "call [rsp - 8], where the return address goes"
	call	[rsp - 8]
	end
	form "call [rsp + rcx*8]"
	mov	ecx, 3
	call	[rsp + rcx*8]
	end
	form "call [rsp] and ret"
	lea	rax, [rip + 1f]
	push	rax
	call	[rsp]
	pop	rcx
	jmp	L1
1:	cmc
	ret
	end
	form "call of 16 bits by prefix"
	lea	rax, [rip + L1]
	.byte	0x66
	call	rax
	end
	form "ret"
	ret
	end
	form "ret of what was pushed"
	lea	rax, [rip + L1]
	push	rax
	ret
	end
	form "ret of what was pushed, flags dead"
	lea	rax, [rip + L4]
	push	rax
	ret
	end
	.irp n, 0, 8, 24, 3, 0xfff0
	form "ret \n"
	ret	\n
	end
	form "call and ret \n"
	call	1f
	jmp	L1
1:	ret	\n
	end
	.endr
	form "rep ret"
	call	1f
	jmp	L1
1:	.byte	0xf3
	ret
	end
	form "bnd call and bnd ret"
	bnd call 1f
	jmp	L1
1:	bnd ret
	end
	form "ret of 16 bits by prefix"
	.byte	0x66, 0xc3
	end
	form "ret elsewhere"
	call	1f
	jmp	L1
1:	lea	rax, [rip + L2]
	mov	[rsp], rax
	ret
	end
	form "ret twice"
	call	1f
	adc	eax, 3
	jmp	L1
1:	push	[rsp]
	ret
	end
	form "ret on another stack"
	call	1f
	jmp	L1
1:	pop	rdx
	lea	rsp, [rsp - 256]
	push	rdx
	ret
	end
	form "ret into the caller's caller"
	call	1f
	jmp	L1
1:	call	2f
	jmp	L2
2:	pop	rax
	ret
	end
	form "leaving calls by a jump"
	mov	r15, rsp
	call	1f
1:	call	2f
2:	mov	rsp, r15
	jmp	L1
	end
	form "what lies below the stack"
	mov	[rsp - 8], rax
	mov	[rsp - 128], rcx
	jmp	1f
1:	lea	rdx, [rip + 2f]
	jmp	rdx
2:	cmp	al, cl
	ja	L1
	jmp	L2
	end
	form "what lies below the stack, over a call"
	call	1f
	mov	[rsp - 24], rax
	call	2f
	jmp	L1
1:	mov	[rsp - 16], rcx
2:	ret
	end

	/* The stack. */
	.irp r, GPRS
	form "push \r"
	push	\r
	end
	form "pop \r"
	pop	\r
	end
	form "xchg rsp, \r"
	xchg	rsp, \r
	end
	form "mov rsp, \r and back"
	mov	\r, rsp
	lea	rsp, [\r - 8]
	end
	.endr
	.irp r, GPRS_16
	form "push \r"
	push	\r
	end
	form "pop \r"
	pop	\r
	end
	.endr
	form "push of constants"
	push	5
	push	-0x12345678
	.byte	0x66, 0x68, 0x34, 0x12
	end
	form "push [rip]"
	push	[rip + DATA + 8]
	push	word ptr [rip + DATA + 24]
	push	[eip + DATA + 8]
	end
	form "pop [rip]"
	pop	[rip + DATA + 8]
	pop	word ptr [rip + DATA + 24]
	pop	[eip + DATA + 8]
	end
	form "push [rsp], pop [rsp]"
	push	[rsp]
	push	[rsp + 16]
	push	word ptr [rsp + 3]
	pop	word ptr [rsp + 8]
	pop	[rsp]
	pop	[rsp + 8]
	mov	ecx, 2
	push	[rsp + rcx*8]
	pop	[rsp + rcx*4]
	end
	form "push gs:"
	push	gs:[64]
	push	gs:[rcx + 8]
	push	word ptr gs:[rdx*4]
	push	gs:[r9d + 8]
	end
	form "pop gs:"
	pop	gs:[64]
	pop	gs:[rcx + 8]
	pop	word ptr gs:[rdx*4]
	pop	gs:[r9d + 8]
	end
	form "push gs:[rsp], pop gs:[rsp]"
	xor	eax, eax
	wrgsbase rax
	push	gs:[rsp]
	push	gs:[rsp + 16]
	pop	gs:[rsp]
	pop	gs:[rsp + 8]
	pop	word ptr gs:[rsp + 8]
	mov	ecx, 2
	pop	gs:[rsp + rcx*8]
	mov	rax, gs:[rsp + 8]
	add	gs:[rsp], rsp
	end
	form "push fs:, pop fs:"
	rdfsbase rax
	lea	rcx, [rip + DATA + 64]
	sub	rcx, rax
	push	fs:[rcx]
	pop	fs:[rcx + 8]
	end
	form "pushf, popf"
	pushfq
	pushfw
	push	0x8d5
	popfq
	pushfq
	push	0x602
	popfq
	pushfq
	popfw
	end
	form "enter, leave"
	enter	16, 0
	push	rbp
	leave
	end
	form "enter of levels"
	lea	rbp, [rsp + 64]
	enter	32, 1
	enter	8, 3
	leave
	end
	form "enter and leave of 16 bits"
	.byte	0x66
	enter	16, 0
	lea	rbp, [rsp + 32]
	.byte	0x66
	leave
	end
	form "leave"
	lea	rbp, [rsp + 32]
	leave
	end
	form "arithmetic with rsp"
	add	rsp, 24
	and	rsp, -16
	sub	rsp, rdx
	lea	rsp, [rsp + rcx*2 - 8]
	mov	[rsp + 8], rsp
	mov	rax, [rsp + rcx]
	end
	form "rsp and [rip]"
	mov	[rip + DATA + 8], rsp
	cmp	rsp, [rip + DATA + 16]
	xadd	[rip + DATA + 24], rsp
	xchg	rsp, [rip + DATA + 8]
	cmpxchg	[rip + DATA + 16], rsp
	add	rsp, [rip + DATA + 32]
	imul	rsp, [rip + DATA + 40], 3
	cmova	rsp, [rip + DATA + 48]
	movzx	esp, byte ptr [rip + DATA + 56]
	mov	rsp, [rip + TABLE]
	end
	form "rsp and gs:"
	mov	gs:[64], rsp
	xchg	rsp, gs:[rcx + 8]
	xadd	gs:[rdx*4 + 8], rsp
	sbb	rsp, gs:[rcx]
	mov	rsp, gs:[r9d]
	end
	form "lea of addresses of 32 bits"
	lea	rax, [eip + DATA]
	lea	ecx, [eip + DATA]
	lea	dx, [eip + DATA]
	lea	r11, [rip + DATA]
	lea	r10w, [rip + DATA]
	lea	rsp, [rip + DATA]
	.byte	0x65
	lea	rbx, [ebx + 8]
	end
	form "[eip]"
	mov	rax, [eip + DATA + 8]
	add	[eip + DATA + 16], r13
	inc	word ptr [eip + DATA]
	end
	form "constants as addresses"
	.byte	0x65, 0xa0
	.quad	9
	.byte	0x65, 0x48, 0xa3
	.quad	24
	.byte	0x65, 0x66, 0xa1
	.quad	40
	.byte	0x65, 0x67, 0xa1
	.long	48
	.byte	0x65, 0x67, 0x66, 0xa3
	.long	56
	.byte	0x65, 0x67, 0xa2
	.long	57
	end

	/* Bits, by offsets of either sign beyond their operand. */
	.irp op, bt, bts, btr, btc
	form "\op with [rip]"
	\op	[rip + DATA + 512], rbp
	\op	[rip + DATA + 512], r13d
	\op	word ptr [rip + DATA + 512], bp
	mov	rax, -1000
	\op	[rip + DATA + 512], rax
	mov	eax, 2000
	\op	[rip + DATA + 512], eax
	\op	[eip + DATA + 512], eax
	end
	form "\op with gs:"
	mov	rax, -900
	\op	gs:[512], rax
	mov	eax, 1500
	\op	gs:[rcx + 512], eax
	\op	word ptr gs:[rdx*4 + 512], r13w
	.ifnc	\op, bt
	lock \op gs:[r9d + 512], eax
	.endif
	end
	.endr

	/* Saved states: of one loads the other must be able to make the same. */
	.irp op, fxsave, fxsave64
	form "\op"
	fld1
	\op	[rip + DATA]
	fldpi
	\op	gs:[ecx + 1024]
	lea	rdi, [rip + DATA]
	\op	[rdi + 2048]
	end
	.endr
	.irp op, xsave, xsave64, xsavec, xsavec64, xsaveopt, xsaveopt64
	form "\op"
	mov	eax, 0xe7
	xor	edx, edx
	fld1
	\op	[rip + DATA]
	\op	gs:[rcx + 4096 - 64]
	mov	eax, 6
	fldpi
	lea	rdi, [rip + DATA]
	\op	[rdi + 8192]
	end
	.endr
	form "fxrstor"
	fldpi
	fxsave64 [rip + DATA]
	fninit
	vzeroall
	fxrstor64 [rip + DATA]
	fxrstor	gs:[0]
	end
	form "xrstor"
	mov	eax, 0xe7
	xor	edx, edx
	fldpi
	xsave	[rip + DATA]
	fninit
	vzeroall
	xrstor	[rip + DATA]
	mov	eax, 6
	xrstor64 gs:[rcx - 64]
	end
	/* What is stored is where an instruction was that has run since: doc/translator.md. */
	form "fnstenv, fldenv"
	fld1
	fldpi
	fnstenv	[rip + DATA]
	fldenv	[rip + DATA]
	fldl2e
	fnstenv	gs:[rcx]
	fldenv	gs:[rcx]
	fldl2t
	lea	rdi, [rip + DATA]
	fnstenv	[rdi + 128]
	end
	form "fnsave, frstor"
	fld1
	fldpi
	fnsave	[rip + DATA]
	frstor	[rip + DATA]
	fldl2e
	fnsave	gs:[rcx]
	frstor	gs:[rcx]
	end
	form "control words"
	mov	dword ptr [rip + DATA], 0x3f80
	ldmxcsr	[rip + DATA]
	stmxcsr	gs:[rcx]
	mov	word ptr [rip + DATA], 0x27f
	fldcw	[rip + DATA]
	fnstcw	gs:[rcx + 8]
	fnstsw	[rip + DATA + 32]
	end
	.irp op, cmpxchg8b, cmpxchg16b
	form "\op"
	lock \op [rip + DATA + 16]
	\op	gs:[rcx + 16]
	\op	gs:[ecx + 32]
	\op	gs:[rsi + rdi]
	\op	[rsp - 64]
	\op	[rip + DATA + 16]
	end
	.endr

	/* Segments. */
	.irp r, GPRS_BUT_RSP
	form "rdgsbase, wrgsbase \r"
	rdgsbase \r
	lea	\r, [\r + 8]
	wrgsbase \r
	mov	\r, gs:[0]
	end
	form "wrgsbase \r of anything"
	wrgsbase \r
	end
	.endr
	.irp r, GPRS_32
	form "wrgsbase \r of anything"
	wrgsbase \r
	end
	form "rdgsbase, wrgsbase \r"
	rdgsbase \r
	wrgsbase \r
	rdgsbase \r
	end
	.endr
	form "rdgsbase rsp, wrgsbase rsp"
	rdgsbase rsp
	lea	rsp, [rsp + 8]
	wrgsbase rsp
	end
	form "mov from gs"
	mov	ax, gs
	mov	ecx, gs
	mov	r11, gs
	mov	gs:[rdx + 8], gs
	mov	[rip + DATA + 32], gs
	push	gs
	.byte	0x66
	push	gs
	end
	form "mov to gs"
	xor	eax, eax
	mov	gs, eax
	rdgsbase rcx
	end
	form "mov to gs from memory"
	mov	word ptr [rip + DATA], 3
	mov	gs, word ptr [rip + DATA]
	mov	ecx, gs
	end
	form "mov to gs of what is no selector"
	mov	eax, 0x1234
	mov	gs, eax
	end
	form "pop gs"
	push	0
	pop	gs
	rdgsbase rax
	end
	form "pop gs of 16 bits"
	push	0
	.byte	0x66
	pop	gs
	end
	form "pop gs of anything"
	pop	gs
	end
	form "lgs"
	mov	qword ptr [rip + DATA], 0x12345678
	mov	qword ptr [rip + DATA + 8], 0
	lgs	eax, [rip + DATA]
	lgs	cx, [rip + DATA]
	.byte	0x48
	lgs	edx, [rip + DATA]
	rdgsbase rsi
	end

	/* Far branches; 64-bit code has one segment. */
	.macro pointer to, size
	lea	rax, [rip + \to]
	mov	[rip + DATA + 64], rax
	mov	[rip + DATA + 64 + \size], cs
	.endm
	form "far jmp"
	pointer	L1, 4
	jmp	fword ptr [rip + DATA + 64]
	end
	form "far jmp of 64 bits"
	pointer	L1, 8
	rex.W jmp fword ptr gs:[rcx]
	end
	form "far call"
	pointer	L1, 4
	call	fword ptr [rip + DATA + 64]
	end
	form "far call of 64 bits"
	pointer	L2, 8
	rex.W call fword ptr gs:[ecx]
	end
	form "far call [rsp]"
	lea	rax, [rip + L1]
	mov	[rsp + 16], rax
	mov	[rsp + 24], cs
	rex.W call fword ptr [rsp + 16]
	end
	form "far call and far ret"
	pointer	1f, 8
	rex.W call fword ptr [rip + DATA + 64]
	jmp	L1
1:	cmc
	rex.W retf
	end
	form "far ret"
	lea	rax, [rip + L1]
	mov	ecx, cs
	push	rcx
	push	rax
	rex.W retf
	end
	form "far ret 16"
	lea	rax, [rip + L1]
	mov	ecx, cs
	push	rcx
	push	rax
	rex.W retf 16
	end
	form "far ret of 32 bits"
	lea	rax, [rip + L1]
	sub	rsp, 8
	mov	[rsp], eax
	mov	[rsp + 4], cs
	.byte	0xcb
	end
	form "far ret to anywhere"
	rex.W retf
	end
	form "iretq"
	lea	rax, [rip + L1]
	lea	rdx, [rsp - 16]
	mov	ecx, ss
	push	rcx
	push	rdx
	push	0xcd7
	mov	ecx, cs
	push	rcx
	push	rax
	iretq
	end
	form "iretq to anywhere"
	iretq
	end

	/* What leaves the code cache, and what can only fault. */
	form "syscall"
	mov	eax, 39
	stc
	syscall
	end
	form "cpuid"
	xor	eax, eax
	xor	ecx, ecx
	cpuid
	end
	.irp bytes, 0xcc, 0xf1, 0xf4, 0xfa, 0xec, 0x06
	form "the byte \bytes"
	lea	rcx, [rax + 1]
	.byte	\bytes
	end
	.endr
	form "ud2"
	ud2
	end
	form "ud1"
	ud1	eax, [rip + DATA]
	end
	form "int 0x21"
	int	0x21
	end
	form "lock of what cannot be locked"
	.byte	0xf0, 0x48, 0x8b, 0x05, 0, 0, 0, 0
	end

	.section .data.rel.ro, "aw"
	.quad	0, 0, 0
