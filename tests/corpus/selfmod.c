/*
 * Code that changes: a loop body in its own page, the very next instruction, code in another page,
 * a function rewritten between calls, and code written through a second mapping of the same memory.
 */
#include "corpus.h"

#define PROT_RWX   7
#define MAP_SHARED 1

typedef int function(void);

static unsigned char *map(size_t n, int prot, int flags, int fd)
{
	return (unsigned char *)call6(9, 0, (long)n, prot, flags, fd, 0);
}

/* mov $v, %eax; ret */
static void put_constant(volatile unsigned char *p, uint32_t v)
{
	p[0] = 0xb8;
	for (int i = 0; i < 4; i++)
		p[1 + i] = (unsigned char)(v >> (8 * i));
	p[5] = 0xc3;
}

static int call_code(volatile unsigned char *p)
{
	return ((function *)p)();
}

/* Each turn the loop rewrites the immediate of an instruction ahead of it in the same block. */
__asm__(".section .wtext, \"awx\", @progbits\n"
	".balign 4096\n"
	"own_page:\n"
	"	xorl %eax, %eax\n"
	"	movl $50, %ecx\n"
	"1:	movl %ecx, 2f+1(%rip)\n"
	"2:	addl $0x01010101, %eax\n" /* 05 imm32: its immediate is ecx */
	"	decl %ecx\n"
	"	jnz 1b\n"
	"	ret\n"
	/* The next instruction changes from inc to dec and back: one byte store right before it. */
	"next_insn:\n"
	"	xorl %eax, %eax\n"
	"	movl $40, %ecx\n"
	"1:	movl %ecx, %edx\n"
	"	andl $1, %edx\n"
	"	shll $3, %edx\n"
	"	orl $0xc0, %edx\n"
	"	movb %dl, 2f+1(%rip)\n"
	"2:	.byte 0xff, 0xc0\n" /* inc eax or dec eax */
	"	addl $3, %eax\n"
	"	decl %ecx\n"
	"	jnz 1b\n"
	"	ret\n"
	".previous\n");

extern function own_page, next_insn;

int run(void)
{
	unsigned char *page = map(8192, PROT_RWX, 0x22, -1), *view;
	uint64_t sum = 0;
	long fd;

	say((uint64_t)own_page());
	say((uint64_t)own_page());
	say((uint64_t)next_insn());
	for (uint32_t i = 0; i < 60; i++) {
		put_constant(page + 64 * (i % 3), i * 7);
		sum = sum * 31 + (uint64_t)call_code(page + 64 * (i % 3));
		sum += (uint64_t)call_code(page + 64 * ((i + 1) % 3 ? 0 : i % 3));
	}
	say(sum);
	/* Across the page boundary. */
	put_constant(page + 4093, 5);
	sum += (uint64_t)call_code(page + 4093);
	put_constant(page + 4093, 0x77777777);
	sum += (uint64_t)call_code(page + 4093);
	say(sum);
	/* Written while not executable, then made executable. */
	call(10, page, 4096, 3);
	put_constant(page, 4242);
	call(10, page, 4096, 5);
	sum += (uint64_t)call_code(page);
	say(sum);
	/* The kernel writes it: read(2) from a pipe. */
	call(10, page, 4096, 7);
	{
		int pipe[2];

		call(22, pipe, 0, 0);
		put_constant(page + 256, 1);
		sum += (uint64_t)call_code(page + 256);
		put_constant(page + 512, 99);
		call(1, pipe[1], page + 512, 6);
		call(0, pipe[0], page + 256, 6);
		sum += (uint64_t)call_code(page + 256);
		say(sum);
	}
	/* Two views of a memfd: written through one, run through the other. */
	fd = call(319, "code", 0, 0);
	call(77, fd, 4096, 0);
	page = map(4096, 3, MAP_SHARED, (int)fd);
	view = map(4096, 5, MAP_SHARED, (int)fd);
	for (uint32_t i = 0; i < 20; i++) {
		put_constant(page, i * i);
		sum = sum * 33 + (uint64_t)call_code(view);
	}
	say(sum);
	/* Unmapped and mapped anew at the same place with other contents. */
	page = map(4096, PROT_RWX, 0x22, -1);
	put_constant(page, 1);
	sum += (uint64_t)call_code(page);
	call(11, page, 4096, 0);
	call6(9, (long)page, 4096, PROT_RWX, 0x32, -1, 0);
	put_constant(page, 2);
	sum += (uint64_t)call_code(page);
	say(sum);
	return 0;
}
