/* Every kind of branch, each taken and not taken, and what falls between them. */
	.text
	.globl _start
_start:
	xorl	%ebx, %ebx
	movl	$16, %r12d
again:
	/* Flags from a counter, and all sixteen conditions on each. */
	movl	%r12d, %eax
	imull	$0x29, %eax, %eax
	addb	$0x73, %al
	.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	j\cc	1f
	incl	%ebx
1:
	movl	%r12d, %eax
	imull	$0x29, %eax, %eax
	addb	$0x73, %al
	.endr
	/* The long forms. */
	.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	.byte	0x0f
	.ifc \cc,o ; .byte 0x80 ; .endif
	.ifc \cc,no ; .byte 0x81 ; .endif
	.ifc \cc,b ; .byte 0x82 ; .endif
	.ifc \cc,ae ; .byte 0x83 ; .endif
	.ifc \cc,e ; .byte 0x84 ; .endif
	.ifc \cc,ne ; .byte 0x85 ; .endif
	.ifc \cc,be ; .byte 0x86 ; .endif
	.ifc \cc,a ; .byte 0x87 ; .endif
	.ifc \cc,s ; .byte 0x88 ; .endif
	.ifc \cc,ns ; .byte 0x89 ; .endif
	.ifc \cc,p ; .byte 0x8a ; .endif
	.ifc \cc,np ; .byte 0x8b ; .endif
	.ifc \cc,l ; .byte 0x8c ; .endif
	.ifc \cc,ge ; .byte 0x8d ; .endif
	.ifc \cc,le ; .byte 0x8e ; .endif
	.ifc \cc,g ; .byte 0x8f ; .endif
	.long	1f - 2f
2:	leal	1(%rbx), %ebx
1:
	.endr
	decl	%r12d
	jnz	again

	/* loop, loope, loopne, jrcxz, jecxz; with 67 they count in ecx. */
	movl	$9, %ecx
1:	incl	%ebx
	loop	1b
	movl	$9, %ecx
	xorl	%eax, %eax
1:	cmpl	%eax, %eax
	loope	1b
	movl	$9, %ecx
1:	cmpl	$3, %ecx
	loopne	1b
	movq	$0x100000003, %rcx
1:	incl	%ebx
	addr32 loop 1b
	movl	$1, %ecx
	jrcxz	1f
	incl	%ebx
1:	xorl	%ecx, %ecx
	jrcxz	1f
	ud2
1:	movq	$0x100000000, %rcx
	jecxz	1f
	ud2
1:	jrcxz	bad

	/* Jumps: short, near, through a register, through memory in several address forms. */
	jmp	1f
bad:	ud2
1:	.byte	0xe9
	.long	1f - 2f
2:	ud2
1:	leaq	1f(%rip), %rax
	jmp	*%rax
	ud2
1:	leaq	1f(%rip), %r11
	jmp	*%r11
	ud2
1:	jmp	*target1(%rip)
	ud2
back1:	leaq	table(%rip), %rdx
	movl	$1, %ecx
	jmp	*(%rdx,%rcx,8)
	ud2
back2:	leaq	-8(%rsp), %rsp
	leaq	1f(%rip), %rax
	movq	%rax, (%rsp)
	jmp	*(%rsp)
	ud2
1:	leaq	8(%rsp), %rsp

	/* Calls and returns. */
	call	plain
	leaq	plain(%rip), %rax
	call	*%rax
	call	*target2(%rip)
	pushq	$5
	pushq	$6
	call	drops
	leaq	table(%rip), %rdx
	movl	$2, %ecx
	call	*(%rdx,%rcx,8)
	movq	%rsp, %rbp
	leaq	table+16(%rip), %rax
	pushq	(%rax)
	call	*(%rsp)			/* the address is taken from the stack before the push */
	popq	%rax
	leaq	1f(%rip), %rax
	pushq	%rax
	ret				/* a return without a call */
	ud2
1:	call	2f			/* a call whose return address is popped */
2:	popq	%rax
	call	skips			/* returns past an instruction */
	ud2
	cmpq	%rbp, %rsp
	jne	bad
	/* Prefixes that branches may carry. */
	.byte	0xf2				/* bnd */
	jmp	1f
1:	notrack jmp *target3(%rip)
back3:	.byte	0x2e
	jz	1f
	incl	%ebx
1:
	cmpl	$0, %ebx
	movl	%ebx, %edi
	andl	$0x7f, %edi
	movl	$231, %eax
	syscall

plain:	incl	%ebx
	ret
drops:	incl	%ebx
	ret	$16
skips:	addq	$2, (%rsp)
	repz ret

	.data
target1: .quad	back1
target2: .quad	plain
target3: .quad	back3
table:	.quad	bad, back2, plain
