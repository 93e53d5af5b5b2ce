/* What the kernel says with a signal that it raises for what a program has just done. */
#include "say.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#ifndef __NR_uretprobe
#define __NR_uretprobe 335
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

#define RWX      (PROT_READ | PROT_WRITE | PROT_EXEC)
#define VSYSCALL 0xffffffffff600000ul

static sigjmp_buf back;
static siginfo_t got;
static greg_t err;
static unsigned char *base;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	got = *info;
	err = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR];
	siglongjmp(back, 1);
}

/* Calls @p, and says what came of it; addresses by where they are in `base`. */
static void call(const char *what, void *p)
{
	if (!sigsetjmp(back, 1)) {
		SAY("%s: %d", what, ((int (*)(void *, void *))p)((void *)1, NULL));
		return;
	}
	/* Of a signal that it makes up itself the kernel tells the last fault's error. */
	SAY("%s: signal %d, code %d, at %ld, error %lld", what, got.si_signo, got.si_code,
	    got.si_addr ? (long)((unsigned char *)got.si_addr - base) : -1,
	    got.si_code == SI_KERNEL ? -1 : (long long)err);
}

static void fresh(void)
{
	static const unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3};

	base = mmap(NULL, 8192, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(base, 0x90, 8192);
	memcpy(base, code, sizeof(code));
	memcpy(base + 4096, code, sizeof(code));
}

static void guarded(void)
{
	fresh();
	call("before", base);
	TRY("guard", madvise(base, 4096, MADV_GUARD_INSTALL));
	call("guarded", base);
	fresh();
	TRY("guard", madvise(base + 4096, 4096, MADV_GUARD_INSTALL));
	base[4095] = 0xb8;
	call("into a guard", base + 4090);
}

static void protected(void)
{
	fresh();
	call("executable", base);
	mprotect(base, 4096, PROT_NONE);
	call("PROT_NONE", base);
	mprotect(base, 4096, PROT_READ);
	call("PROT_READ", base);
	munmap(base, 4096);
	call("unmapped", base);
}

static void beyond_the_file(void)
{
	char name[] = "/tmp/raisedXXXXXX";
	int fd = mkstemp(name);

	unlink(name);
	if (ftruncate(fd, 4096))
		SAY("ftruncate: %s", strerror(errno));
	base = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	call("beyond the end", base + 4096);
	close(fd);
}

static int has_vsyscall(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[300];
	int has = 0;

	while (f && fgets(line, sizeof(line), f))
		has |= strstr(line, "[vsyscall]") != NULL;
	if (f)
		fclose(f);
	return has;
}

/* The call is the kernel's own; on one that does not know it it is none. */
static void no_trampoline(void)
{
	int status;

	if (!sigsetjmp(back, 1))
		TRY("uretprobe", syscall(__NR_uretprobe));
	else
		SAY("uretprobe: signal %d, code %d, at %p", got.si_signo, got.si_code, got.si_addr);
	for (int blocked = 0; blocked < 2; blocked++) {
		if (!fork()) {
			sigset_t ill;

			sigemptyset(&ill);
			sigaddset(&ill, SIGILL);
			if (blocked)
				sigprocmask(SIG_BLOCK, &ill, NULL);
			else
				signal(SIGILL, SIG_IGN);
			TRY("uretprobe", syscall(__NR_uretprobe));
			_exit(0);
		}
		wait(&status);
		SAY("%s: status %d", blocked ? "blocked" : "ignored", status & 0x7f);
	}
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_NODEFER | SA_SIGINFO};

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	guarded();
	protected();
	beyond_the_file();
	if (has_vsyscall())
		call("vsyscall", (void *)VSYSCALL);
	no_trampoline();
	return 0;
}
