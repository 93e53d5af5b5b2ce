/*
 * Traces another process of this program, stops it again and again at moments of nobody's choosing,
 * and says whether what it sees of its registers is the program's: the functions that the child is
 * in keep constants in them, and are left by no other way than a system call.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/elf.h>

#define STOPS 300

/* Branches of all kinds, with all registers constant but rax, rcx, rdx, rsi and r11. */
void busy(void);
extern const char busy_end[], waiting_end[], trap_here[];
void waiting(void);
void trapping(void);
__asm__(".pushsection .text, \"ax\", @progbits\n"
	".globl busy, busy_end, waiting, waiting_end, trapping, trap_here\n"
	"busy:	mov $0x1111, %ebx\n"
	"	mov $0x2222, %ebp\n"
	"	mov $0x8888, %r8d\n"
	"	mov $0x9999, %r9d\n"
	"	mov $0xaaaa, %r10d\n"
	"	mov $0xcccc, %r12d\n"
	"	mov $0xdddd, %r13d\n"
	"	mov $0xeeee, %r14d\n"
	"	mov $0xffff, %r15d\n"
	"	xor %ecx, %ecx\n"
	"1:	inc %ecx\n"
	"	call 4f\n"
	"	test $3, %cl\n"
	"	jz 2f\n"
	"	mov %rcx, %rax\n"
	"2:	lea 1b(%rip), %rdx\n"
	"	test $1, %cl\n"
	"	jz 3f\n"
	"	lea 5f(%rip), %rdx\n"
	"3:	jmp *%rdx\n"
	"4:	lea 6f(%rip), %rsi\n"
	"	jmp *%rsi\n"
	"6:	ret\n"
	"5:	jmp 1b\n"
	"busy_end:\n"
	"waiting:\n"
	"	mov $0x1111, %ebx\n"
	"	mov $0x8888, %r8d\n"
	"	mov $0xffff, %r15d\n"
	"	mov $34, %eax\n" /* pause */
	"	syscall\n"
	"waiting_end:\n"
	"	jmp waiting\n"
	"trapping:\n"
	"	mov $0x1111, %ebx\n"
	"	int3\n"
	"trap_here:\n"
	"	ret\n"
	".popsection\n");

static int faults;

static void must(int right, const char *what)
{
	if (right)
		return;
	if (faults++ < 5)
		printf("wrong: %s (%s)\n", what, strerror(errno));
}

static void see(pid_t pid, struct user_regs_struct *r)
{
	struct user_regs_struct set;
	struct iovec iov = {&set, sizeof(set)};
	long word;

	must(!ptrace(PTRACE_GETREGS, pid, 0, r), "GETREGS");
	must(!ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov), "GETREGSET");
	must(!memcmp(r, &set, sizeof(set)), "GETREGSET is GETREGS");
	errno = 0;
	word = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), 0);
	must(!errno && (unsigned long)word == r->rip, "PEEKUSER is GETREGS");
	must(!ptrace(PTRACE_SETREGS, pid, 0, r), "SETREGS of what is there");
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "it stops");
}

static void check_busy(pid_t pid, unsigned long sp)
{
	struct user_regs_struct r;

	see(pid, &r);
	must(r.rip >= (unsigned long)busy && r.rip < (unsigned long)busy_end, "rip is in the loop");
	must(r.rsp == sp || r.rsp == sp - 8, "rsp is one of two");
	must(r.rbx == 0x1111 && r.rbp == 0x2222, "rbx, rbp");
	must(r.r8 == 0x8888 && r.r9 == 0x9999 && r.r10 == 0xaaaa, "r8 to r10");
	must(r.r12 == 0xcccc && r.r13 == 0xdddd && r.r14 == 0xeeee && r.r15 == 0xffff,
	     "r12 to r15");
	must((unsigned long)ptrace(PTRACE_PEEKTEXT, pid, r.rip, 0) == *(const unsigned long *)r.rip,
	     "the code there");
}

static pid_t child(void (*fn)(void), unsigned long *sp)
{
	unsigned long frame;
	int ends[2];
	pid_t pid;

	if (pipe(ends) || (pid = fork()) < 0)
		exit(1);
	if (!pid) {
		__asm__ volatile("mov %%rsp, %0" : "=r"(frame));
		if (write(ends[1], &frame, sizeof(frame)) != sizeof(frame))
			_exit(1);
		/* The frame of fn() begins right below. */
		__asm__ volatile("call *%0" : : "r"(fn) : "memory", "cc", "rax", "rbx", "rcx");
		_exit(0);
	}
	if (read(ends[0], sp, sizeof(*sp)) != sizeof(*sp))
		exit(1);
	*sp -= 8;
	close(ends[0]);
	close(ends[1]);
	usleep(20000);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static const char other_path[] = "/bin/sh", no_path[] = "/no/such/program";
static char own_path[] = "/no/such/program";

/* What is made of a child's execve of nothing, as proot and sandboxes do it. */
enum making { BY_SETREGS, BY_SETREGSET, BY_POKEUSER, BY_MEMORY, CANCELLED, FAILING, MAKINGS };

static void make_another(pid_t pid, enum making how, struct user_regs_struct *r)
{
	struct iovec iov = {r, sizeof(*r)};
	long word;

	switch (how) {
	case BY_SETREGS:
		/* Where proot puts its strings, which it takes back behind a call that failed. */
		r->rsp -= 256;
		r->rdi = (unsigned long)other_path;
		must(!ptrace(PTRACE_SETREGS, pid, 0, r), "SETREGS in execve");
		break;
	case BY_SETREGSET:
		r->rdi = (unsigned long)other_path;
		must(!ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &iov), "SETREGSET in execve");
		break;
	case BY_POKEUSER:
		must(!ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rdi), other_path),
		     "POKEUSER in execve");
		break;
	case BY_MEMORY:
		memcpy(&word, other_path, sizeof(word));
		must(!ptrace(PTRACE_POKEDATA, pid, own_path, word), "POKEDATA in execve");
		break;
	case CANCELLED:
		r->orig_rax = (unsigned long)-1;
		must(!ptrace(PTRACE_SETREGS, pid, 0, r), "a number in execve");
		break;
	default: break;
	}
}

/* Behind the call; natively it is at the same place. */
static void answer_another(pid_t pid, enum making how)
{
	struct user_regs_struct r;

	must(!ptrace(PTRACE_GETREGS, pid, 0, &r), "GETREGS behind execve");
	if (how == CANCELLED || how == FAILING) {
		r.rax = (unsigned long)-EXDEV;
		must(!ptrace(PTRACE_SETREGS, pid, 0, &r), "a result of execve");
	} else {
		must(!r.rax, "it is executed");
	}
}

/* As who is traced makes other calls before, those of execve are looked for. */
static void replacing(enum making how)
{
	char *const args[] = {(char *)"sh", (char *)"-c", (char *)"exit 9", NULL};
	struct user_regs_struct r;
	int status, entered = 0;
	pid_t pid = fork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execve(how == BY_MEMORY ? own_path : no_path, args, args + 3);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	must(!ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC),
	     "options");
	while (!ptrace(PTRACE_SYSCALL, pid, 0, 0) && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (entered == 1) {
			answer_another(pid, how);
			entered = 2;
			continue;
		}
		ptrace(PTRACE_GETREGS, pid, 0, &r);
		if (!entered && r.orig_rax == 59) { /* execve */
			make_another(pid, how, &r);
			entered = 1;
		}
	}
	must(WIFEXITED(status) &&
		     WEXITSTATUS(status) == (how == CANCELLED || how == FAILING ? EXDEV : 9),
	     "what its execve was made of");
}

int main(void)
{
	struct user_regs_struct r;
	unsigned long sp;
	int status;
	pid_t pid = child(busy, &sp);

	must(!ptrace(PTRACE_ATTACH, pid, 0, 0), "attach");
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "it stops");
	for (int i = 0; i < STOPS; i++) {
		check_busy(pid, sp);
		must(!ptrace(PTRACE_CONT, pid, 0, 0), "it goes on");
		usleep((unsigned)(i * 7 % 50));
		stop(pid);
	}
	end(pid);
	printf("busy: %d wrong\n", faults);

	pid = child(waiting, &sp);
	must(!ptrace(PTRACE_SEIZE, pid, 0, 0) && !ptrace(PTRACE_INTERRUPT, pid, 0, 0), "seize");
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status), "it stops");
	see(pid, &r);
	must(r.rip == (unsigned long)waiting_end && r.rsp == sp, "behind its system call");
	must(r.orig_rax == 34 && r.rbx == 0x1111 && r.r8 == 0x8888 && r.r15 == 0xffff, "in pause");
	end(pid);
	printf("waiting: %d wrong\n", faults);

	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		trapping();
		_exit(7);
	}
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP,
	     "a trap");
	see(pid, &r);
	must(r.rip == (unsigned long)trap_here && r.rbx == 0x1111, "behind its trap");
	must(!ptrace(PTRACE_CONT, pid, 0, 0) && waitpid(pid, &status, 0) == pid &&
		     WIFEXITED(status) && WEXITSTATUS(status) == 7,
	     "its end");
	printf("trapping: %d wrong\n", faults);

	for (int how = BY_SETREGS; how < MAKINGS; how++) {
		replacing(how);
		printf("replacing %d: %d wrong\n", how, faults);
	}
	return faults != 0;
}
