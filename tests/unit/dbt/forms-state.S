/* Saved states: of one loads the other must be able to make the same. */
#include "unit/dbt/forms.inc"

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
