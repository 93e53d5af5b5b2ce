/* What moves rsp, or is addressed by it. */
#include "unit/dbt/forms.inc"

	.irp r, GPRS, GPRS_16
	form "push \r"
	push	\r
	end
	form "pop \r"
	pop	\r
	end
	.endr
	.irp r, GPRS
	form "xchg rsp, \r"
	xchg	rsp, \r
	end
	form "mov rsp, \r and back"
	mov	\r, rsp
	lea	rsp, [\r - 8]
	end
	.endr
	.irp r, GPRS_BUT_RSP
	form "push [\r], pop [\r]"
	lea	\r, [rip + DATA + 64]
	push	[\r]
	pop	[\r + 16]
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
