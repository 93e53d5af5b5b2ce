/*
 * For corpus programs that bring no libc, so that every instruction they run is their own: system
 * calls, a start, and a way to say a result. Each program is deterministic: the same instructions
 * in every run, whatever the pids, addresses and schedule.
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stddef.h>
#include <stdint.h>

static inline long call6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define call(n, a, b, c) call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)

/* Sixteen hexadecimal digits and a newline: the same instructions for every value. */
static inline void say(uint64_t v)
{
	char text[17];

	for (int i = 0; i < 16; i++) {
		unsigned int digit = (v >> (60 - 4 * i)) & 15;

		text[i] = "0123456789abcdef"[digit];
	}
	text[16] = '\n';
	call(1, 1, text, sizeof(text));
}

_Noreturn static inline void leave(int status)
{
	for (;;)
		call(231, status, 0, 0); /* exit_group */
}

/* gcc calls these for struct copies and zeroing. */
void *memset(void *p, int c, size_t n);
void *memset(void *p, int c, size_t n)
{
	char *q = p;

	while (n--) {
		*q++ = (char)c;
		__asm__ volatile("" : : : "memory");
	}
	return p;
}

void *memcpy(void *to, const void *from, size_t n);
void *memcpy(void *to, const void *from, size_t n)
{
	char *q = to;
	const char *p = from;

	while (n--) {
		*q++ = *p++;
		__asm__ volatile("" : : : "memory");
	}
	return to;
}

int run(void);

__asm__(".globl _start\n"
	"_start:\n"
	"	xorl %ebp, %ebp\n"
	"	andq $-16, %rsp\n"
	"	call run\n"
	"	movl %eax, %edi\n"
	"	movl $231, %eax\n"
	"	syscall\n");

#endif
