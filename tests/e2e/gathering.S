/*
 * A program of which is known what it accesses: 1000 turns of gathers of 8 dwords, and of 2 and
 * then 1 of 4 qwords; with a word on its command line 1000 more with AVX-512: of 16 dwords 7 are
 * gathered, and of 8 qwords 3 are stored.
 */
	.globl _start, gather, gather_words
_start:
	movq (%rsp), %rbx
	movl $1000, %ecx
	leaq table(%rip), %rdi
	vmovdqu indices(%rip), %ymm1
	vpmovsxdq %xmm1, %ymm5
	vpcmpeqd %ymm7, %ymm7, %ymm7
	vmovdqu some(%rip), %ymm6
1:	vmovdqa %ymm7, %ymm2
gather:
	vpgatherdd %ymm2, (%rdi,%ymm1,1), %ymm3
	vmovdqa %ymm6, %ymm2
gather_words:
	vgatherqpd %ymm2, 8(%rdi,%ymm5,2), %ymm3
	vmovdqa %xmm6, %xmm2
	vpgatherqq %xmm2, 8(%rdi,%xmm5,2), %xmm3
	decl %ecx
	jnz 1b
	movl $1000, %ecx
	cmpq $2, %rbx
	jb 3f
	vpmovsxdq indices(%rip), %zmm20
	movl $0x7f, %eax
	movl $0x86, %edx
	vpmovzxdq %ymm1, %zmm21
	vpxord %zmm22, %zmm22, %zmm22
2:	kmovw %eax, %k1
	vpgatherdd (%rdi,%zmm22,4), %zmm3{%k1}
	kmovw %edx, %k2
	vpscatterqq %zmm3, (%rdi,%zmm20,1){%k2}
	decl %ecx
	jnz 2b
3:	movl $231, %eax
	xorl %edi, %edi
	syscall

	.data
	.balign 64
table:	.zero 4096
indices:
	.long 0, 64, 128, 192, 256, 320, 384, 448
some:	.quad -1, 0, 0, -1
	.section .note.GNU-stack, "", @progbits
