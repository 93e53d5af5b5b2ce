/*
 * PURPOSE: changes of a thread's name, which are a tracepoint of the kernel (task/task_rename) that
 * a program reaches by a system call and that nothing else in it sets off.
 */
#ifndef CONFORM_RENAMES_H
#define CONFORM_RENAMES_H

#include "conform/conform.h"

#include <sys/prctl.h>

static inline void rename_thrice(void)
{
	for (int i = 0; i < 3; i++)
		prctl(PR_SET_NAME, i == 1 ? "second" : "other");
}

#ifdef __x86_64__
#define MARK 0x4d41524b
#define RET  0x123456

/* Renames the thread with MARK on top of the stack and a last frame of its own; where that was. */
static inline u64 marked_rename(const u64 *frame, u64 *sp)
{
	long ret = SYS_prctl;
	u64 ip;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "push %%rbp\n\t"
			 "mov %[frame], %%rbp\n\t"
			 "push %[mark]\n\t"
			 "mov %%rsp, %[sp]\n\t"
			 "syscall\n"
			 "1:\tlea 1b(%%rip), %[ip]\n\t"
			 "pop %%rbp\n\t"
			 "pop %%rbp\n\t"
			 "lea 128(%%rsp), %%rsp"
			 : "+a"(ret), [sp] "=&r"(*sp), [ip] "=&r"(ip)
			 : "D"((long)PR_SET_NAME),
			   "S"("marked"), [frame] "r"(frame), [mark] "i"(MARK)
			 : "rcx", "r11", "memory");
	NEED(!ret);
	return ip;
}
#endif

#endif
