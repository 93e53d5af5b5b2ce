/*
 * Address space: fixed maps, huge reservations, growing stacks, moving and protecting, code
 * included.
 */
#include "say.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <ucontext.h>

#ifndef MADV_GUARD_INSTALL /* Linux 6.13 */
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

static sigjmp_buf back;
static void *volatile fault_at;
static volatile greg_t fault_error;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	fault_at = si->si_addr;
	fault_error = ((ucontext_t *)uc)->uc_mcontext.gregs[REG_ERR];
	siglongjmp(back, sig * 100 + si->si_code);
}

/* 0, or signal * 100 + code of the fault that reading or writing gave. */
static int touch(volatile char *p, int write)
{
	int fault = sigsetjmp(back, 1);

	if (fault)
		return fault_at == p ? fault : -fault;
	if (write)
		*p = 1;
	else
		(void)*p;
	return 0;
}

static int run_code(void *p)
{
	int fault = sigsetjmp(back, 1);

	if (fault)
		return -fault;
	return ((int (*)(void))p)();
}

static void put(unsigned char *p, int v)
{
	static const unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};

	memcpy(p, code, sizeof(code));
	memcpy(p + 1, &v, 4);
}

static char *anon(void *at, size_t n, int prot, int flags)
{
	return mmap(at, n, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void fixed(void)
{
	/*
	 * None is within the gigabyte above a program at 4 MB, where the kernel puts its heap at
	 * random.
	 */
	static const uintptr_t places[] = {0x10000,     0x60000000,     0x7fff0000,
					   0x100000000, 0x200000000000, 0x400000000000};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char *p = anon((void *)places[i], 8192, PROT_READ | PROT_WRITE,
			       MAP_FIXED_NOREPLACE);

		if (p == MAP_FAILED) {
			SAY("fixed at %#lx: %s", (unsigned long)places[i], strerror(errno));
			continue;
		}
		memset(p, 7, 8192);
		SAY("fixed at %#lx: %d", (unsigned long)places[i], p == (char *)places[i]);
		HOLDS(anon(p, 4096, PROT_READ, MAP_FIXED_NOREPLACE) == MAP_FAILED &&
		      errno == EEXIST);
		HOLDS(anon(p, 4096, PROT_READ, MAP_FIXED) == p && *p == 0 && p[4096] == 7);
		munmap(p, 8192);
	}
}

static void reservations(void)
{
	size_t gb = 1ul << 30;
	char *p = anon(NULL, 512 * gb, PROT_NONE, MAP_NORESERVE);
	char *q;

	HOLDS(p != MAP_FAILED);
	HOLDS(mprotect(p + 100 * gb, 1 << 20, PROT_READ | PROT_WRITE) == 0);
	HOLDS(touch(p + 100 * gb, 1) == 0);
	SAY("beyond it: %d", touch(p + 200 * gb, 1));
	munmap(p, 512 * gb);
	SAY("after munmap: %d", touch(p + 100 * gb, 0));
	q = malloc(300 << 20);
	HOLDS(q != NULL);
	for (size_t i = 0; i < 300u << 20; i += 1 << 20)
		q[i] = (char)i;
	free(q);
	/* A heap by brk. */
	q = sbrk(0);
	HOLDS(sbrk(64 << 20) == q);
	memset(q, 1, 64 << 20);
	HOLDS(brk(q) == 0 && sbrk(0) == q);
	SAY("above the break: %d", touch(q + (1 << 20), 0));
}

/* As sanitizers do: all that is neither the program's nor shadow is barred. */
static void barred(void)
{
	size_t tb = 1ul << 40, size = 0x7b0000000000 - 0x568000000000;
	char *low = anon((void *)tb, 84 * tb, PROT_NONE, MAP_FIXED | MAP_NORESERVE);
	char *high = (char *)0x568000000000, *p;

	HOLDS(low == (char *)tb);
	p = anon(NULL, 32 * tb, PROT_READ | PROT_WRITE, MAP_NORESERVE);
	HOLDS(p != MAP_FAILED);
	munmap(p, 32 * tb);
	HOLDS(anon(high, size, PROT_NONE, MAP_FIXED | MAP_NORESERVE) == high);
	SAY("barred: %d %d", touch(high, 0), touch(high + size - 1, 0));
	HOLDS(munmap(high, size) == 0);
	HOLDS(munmap(low, 84 * tb) == 0);
}

static void growing(void)
{
	char *top = anon(NULL, 1 << 20, PROT_NONE, 0), *p;

	munmap(top, 1 << 20);
	p = anon(top + (1 << 20) - 4096, 4096, PROT_READ | PROT_WRITE, MAP_GROWSDOWN | MAP_FIXED);
	HOLDS(p != MAP_FAILED);
	for (int i = 0; i < 40; i++)
		if (touch(p - i * 4096, 1))
			SAY("growth stopped at %d", i);
	SAY("grown by 40 pages");
}

static void moving(void)
{
	unsigned char *p = (unsigned char *)anon(NULL, 3 * 4096, PROT_READ | PROT_WRITE, 0), *q;

	memset(p, 9, 3 * 4096);
	q = mremap(p, 4096, 1 << 20, MREMAP_MAYMOVE);
	HOLDS(q != MAP_FAILED && q[100] == 9 && q[5000] == 0);
	/* Code moves with its page. */
	mprotect(q, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	put(q, 111);
	SAY("ran %d", run_code(q));
	p = mremap(q, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, p + 4096);
	HOLDS(p != MAP_FAILED);
	SAY("moved, ran %d; where it was: %d", run_code(p), run_code(q));
	put(p, 222);
	SAY("rewritten, ran %d", run_code(p));
	mprotect(p, 4096, PROT_READ);
	SAY("not executable: %d, write: %d", run_code(p), touch((char *)p, 1));
	SAY("errors: %d, %llx", run_code(p), (long long)fault_error);
	mprotect(p, 4096, PROT_READ | PROT_EXEC);
	SAY("executable again: %d, write: %d", run_code(p), touch((char *)p, 1));
	mprotect(p, 4096, PROT_NONE);
	SAY("no access: %d, %d", run_code(p), touch((char *)p, 0));
	SAY("errors: %d, %llx", run_code(p), (long long)fault_error);
	munmap(p, 4096);
	SAY("unmapped: %d", run_code(p));
}

static void files(void)
{
	int fd = open("code", O_RDWR | O_CREAT, 0600);
	unsigned char buffer[4096] = {0}, *p, *w;

	put(buffer, 1);
	write(fd, buffer, sizeof(buffer));
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	SAY("file ran %d", run_code(p));
	put(buffer, 2);
	pwrite(fd, buffer, 6, 0);
	SAY("written by a call, ran %d", run_code(p));
	w = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	put(w, 3);
	SAY("written through another map, ran %d", run_code(p));
	ftruncate(fd, 0);
	SAY("truncated: %d, ran %d", touch((char *)w, 0), run_code(p));
	close(fd);
	unlink("code");
}

/* Code in and in front of pages that the program has made guards of, before and after it ran. */
static void guarded(void)
{
	unsigned char *p = (unsigned char *)anon(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, 0);

	put(p, 5);
	if (madvise(p, 4096, MADV_GUARD_INSTALL)) {
		SAY("no guards: %s", strerror(errno));
		return;
	}
	SAY("in a guard: %d, read: %d", run_code(p), touch((char *)p, 0));
	SAY("errors: %d, %llx", run_code(p), (long long)fault_error);
	HOLDS(madvise(p, 4096, MADV_GUARD_REMOVE) == 0);
	put(p, 6);
	SAY("not any more: %d", run_code(p));
	HOLDS(madvise(p, 4096, MADV_GUARD_INSTALL) == 0);
	SAY("again: %d", run_code(p));
	HOLDS(madvise(p, 4096, MADV_GUARD_REMOVE) == 0);
	HOLDS(madvise(p + 4096, 4096, MADV_GUARD_INSTALL) == 0);
	p[4094] = 0x90;
	p[4095] = 0xb8;
	SAY("into a guard: %d, %d", run_code(p + 4094), fault_at == p + 4096);
	mprotect(p, 8192, PROT_READ);
	SAY("a guard that is not executable: %d", run_code(p + 4096));
	munmap(p, 8192);
}

static void shared(void)
{
	int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0), *q = shmat(id, NULL, SHM_RDONLY);

	p[10] = 5;
	SAY("shm: %d, write to the read-only one: %d", q[10], touch(q, 1));
	shmdt(p);
	SAY("after shmdt: %d", touch(p, 0));
	shmctl(id, IPC_RMID, NULL);
}

static __attribute__((noinline)) long dig(int n)
{
	volatile char room[1000];

	room[n % 1000] = 1;
	return n ? dig(n - 1) + room[n % 1000] : 0;
}

int main(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};
	unsigned char vec;

	sa.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	SAY("null: %d", touch(NULL, 1));
	SAY("own text: %d", touch((char *)main, 1));
	fixed();
	reservations();
	barred();
	growing();
	moving();
	files();
	guarded();
	shared();
	SAY("deep stack: %ld", dig(7000));
	HOLDS(madvise((void *)((uintptr_t)main & ~4095ul), 4096, MADV_WILLNEED) == 0);
	HOLDS(mincore((void *)((uintptr_t)main & ~4095ul), 4096, &vec) == 0 && (vec & 1));
	return 0;
}
