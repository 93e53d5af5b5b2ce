/* Segment registers, and far branches; 64-bit code has one segment. */
#include "unit/dbt/forms.inc"

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
