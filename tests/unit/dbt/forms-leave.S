/* What leaves the code cache, and what can only fault. */
#include "unit/dbt/forms.inc"

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
