/* Operands that are addressed by rip, by 32 bits, by a constant or by a bit offset. */
#include "unit/dbt/forms.inc"

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

	/* Of 8 and 16 bytes. */
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
