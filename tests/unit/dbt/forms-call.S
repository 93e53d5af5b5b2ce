/* Calls and returns, where what they push and pop is what they were made for, and where not. */
#include "unit/dbt/forms.inc"

	.irp r, GPRS_BUT_RSP
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
	.endr
	.irp r, rax, rcx, rdx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	form "call [rbx + \r*8]"
	lea	rbx, [rip + TABLE]
	mov	\r, 2
	call	[rbx + \r*8]
	end
	.endr
	.irp to, 0x10, 0x7fffffffe000
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
	/*
	 * On Intel's CPUs the prefix is ignored; displacements of 32 bits are then two bytes
	 * longer.
	 */
	form "call of 16 bits by prefix"
	lea	rax, [rip + DATA]
	.byte	0x66
	call	L1
	end
	form "call backward of 16 bits by prefix"
	.byte	0x66
	call	L3
	end
	.irp r, GPRS_BUT_RSP
	form "call \r of 16 bits by prefix"
	lea	\r, [rip + L1]
	.byte	0x66
	call	\r
	end
	.endr
	form "call [rip] of 16 bits by prefix"
	.byte	0x66
	call	[rip + TABLE + 8]
	end
	form "call [rsp] of 16 bits by prefix"
	.byte	0x66
	call	[rsp]
	end
	form "call gs:[constant] of 16 bits by prefix"
	.byte	0x66
	call	gs:[ARENA_TABLE + 16]
	end
	form "call fs:[rcx] of 16 bits by prefix"
	rdfsbase rax
	lea	rcx, [rip + TABLE + 8]
	sub	rcx, rax
	.byte	0x66
	call	fs:[rcx]
	end
	form "call and ret of 16 bits by prefix"
	lea	rax, [rip + 1f]
	.byte	0x66
	call	rax
	jmp	L1
1:	.byte	0x66
	ret
	end
	form "call with prefix 66 and REX.W"
	.byte	0x66, 0x48
	call	L1
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
	.byte	0x66
	ret
	end
	form "ret 8 of 16 bits by prefix"
	.byte	0x66
	ret	8
	end
	form "ret with prefix 66 and REX.W"
	.byte	0x66, 0x48
	ret
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
