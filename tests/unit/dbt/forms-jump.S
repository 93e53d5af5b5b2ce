/* Conditional branches and jumps. */
#include "unit/dbt/forms.inc"

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
	form "j\cc of 16 bits by prefix"
	lea	rax, [rip + DATA]
	.byte	0x66
	j\cc	L1
	end
	form "j\cc backward, of 16 bits by prefix"
	.byte	0x66
	j\cc	L3
	end
	form "j\cc short, of 16 bits by prefix"
	.byte	0x66
	j\cc	1f
	jmp	L1
1:	jmp	L2
	end
	form "j\cc with prefix 66 and REX.W"
	.byte	0x66, 0x48
	j\cc	L1
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
	form "loop of 16 bits by prefix, rcx = \n"
	mov	rcx, \n
	.byte	0x66
	loop	1f
	jmp	L1
1:	jmp	L2
	end
	form "jrcxz of 16 bits by prefix, rcx = \n"
	mov	rcx, \n
	.byte	0x66
	jrcxz	1f
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
	.endr
	.irp r, rax, rcx, rdx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	form "jmp [rbx + \r*8]"
	lea	rbx, [rip + TABLE]
	mov	\r, 3
	jmp	[rbx + \r*8]
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
	.byte	0x66
	jmp	L1
	end
	form "jmp backward of 16 bits by prefix"
	.byte	0x66
	jmp	L3
	end
	form "jmp short of 16 bits by prefix"
	.byte	0x66
	jmp	1f
	ud2
1:	adc	eax, 1
	end
	.irp r, GPRS
	form "jmp \r of 16 bits by prefix"
	lea	\r, [rip + L1]
	.byte	0x66
	jmp	\r
	end
	.endr
	form "jmp [rip] of 16 bits by prefix"
	.byte	0x66
	jmp	[rip + TABLE + 8]
	end
	form "jmp gs:[ecx] of 16 bits by prefix"
	mov	rcx, 0x500000008
	.byte	0x66
	jmp	gs:[ecx + ARENA_TABLE]
	end
	form "jmp [rsp] of 16 bits by prefix"
	.byte	0x66
	jmp	[rsp]
	end
	.irp to, 0x10, 0x7fffffffe000
	form "jmp to \to"
	mov	rax, \to
	jmp	rax
	end
	.endr
