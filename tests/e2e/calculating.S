/*
 * A program of which is known what it calculates with floating-point numbers: 1000 turns of what
 * follows, and with a word on its command line 1000 more with AVX and fused multiplication, with a
 * second one 1000 with AVX-512, masked.
 */
	.globl _start
_start:
	movq (%rsp), %rbx
	movl $1000, %ecx
	movl $0x3f800000, %eax
	movd %eax, %xmm1
	pshufd $0, %xmm1, %xmm1
	cvtps2pd %xmm1, %xmm2
	fld1
1:	addss %xmm1, %xmm0
	subps %xmm1, %xmm0
	mulsd %xmm2, %xmm3
	mulpd %xmm2, %xmm3
	divss %xmm1, %xmm0
	sqrtpd %xmm2, %xmm4
	maxps %xmm1, %xmm5
	rcpss %xmm1, %xmm6
	haddpd %xmm2, %xmm3
	dpps $0xff, %xmm1, %xmm5
	fld1
	faddp
	paddb %mm0, %mm1
	emms
	fld1
	decl %ecx
	jnz 1b
	movl $1000, %ecx
	cmpq $2, %rbx
	jb 4f
2:	vaddps %ymm1, %ymm0, %ymm0
	vfmadd231pd %ymm2, %ymm1, %ymm0
	vfmadd231ss %xmm2, %xmm1, %xmm0
	decl %ecx
	jnz 2b
	movl $1000, %ecx
	cmpq $3, %rbx
	jb 4f
	movl $1, %eax
	kmovw %eax, %k1
3:	vmulpd %zmm2, %zmm1, %zmm0{%k1}
	vfnmadd231ps %zmm2, %zmm1, %zmm0{%k1}
	vdivpd {rn-sae}, %zmm2, %zmm1, %zmm0
	decl %ecx
	jnz 3b
4:	movl $231, %eax
	xorl %edi, %edi
	syscall
	.section .note.GNU-stack, "", @progbits
