/*
 * Code that is made at run time, in one and in several threads: RWX pages, W^X flips, dual-mapped
 * memfd, code that patches itself and its neighbours while other threads run it, and much more code
 * than any cache keeps.
 */
#include "say.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/wait.h>
#include <sys/uio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

typedef int function(int);

/* add $v, %edi; mov %edi, %eax; ret */
static size_t emit_add(unsigned char *p, int v)
{
	p[0] = 0x81;
	p[1] = 0xc7;
	memcpy(p + 2, &v, 4);
	p[6] = 0x89;
	p[7] = 0xf8;
	p[8] = 0xc3;
	return 9;
}

static int call(void *p, int v)
{
	return ((function *)p)(v);
}

static unsigned char *pages(size_t n, int prot)
{
	return mmap(NULL, n, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void one_thread(void)
{
	unsigned char *p = pages(1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC);
	unsigned int sum = 0;

	/* A growing code area, called as it grows, functions packed on shared pages. */
	for (int round = 0; round < 4; round++) {
		size_t at = 0;

		for (int i = 0; i < 8000; i++) {
			at += emit_add(p + at, i * (round + 1));
			sum = sum * 3 + (unsigned int)call(p + at - 9, round);
			if (i % 16 == 0)
				sum += (unsigned int)call(p + (at / 18) * 9, 1);
		}
	}
	SAY("packed code: %u", sum);
	for (int i = 0; i < 300; i++) {
		mprotect(p, 4096, PROT_READ | PROT_WRITE);
		emit_add(p, i);
		mprotect(p, 4096, PROT_READ | PROT_EXEC);
		sum = sum * 5 + (unsigned int)call(p, i);
	}
	SAY("W^X: %u", sum);
	munmap(p, 1 << 20);
}

/* A chain of blocks, each a jump to the next; the last returns. Then links of it are changed. */
static void linked(void)
{
	unsigned char *p = pages(1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC);
	unsigned int sum = 0;
	int rel;

	for (int i = 0; i < 100; i++) {
		p[i * 64] = 0xff; /* inc %edi */
		p[i * 64 + 1] = 0xc7;
		p[i * 64 + 2] = 0xe9; /* jmp to the next */
		rel = 64 - 7;
		memcpy(p + i * 64 + 3, &rel, 4);
	}
	emit_add(p + 6400, 1000);
	for (int i = 0; i < 200; i++) {
		sum += (unsigned int)call(p, i);
		/* Skip ahead from one of them, and mend it again. */
		rel = (i % 98 + 2 - i % 50) * 64 - 7;
		if (rel > 0)
			memcpy(p + (i % 50) * 64 + 3, &rel, 4);
		sum += (unsigned int)call(p, i);
		rel = 64 - 7;
		memcpy(p + (i % 50) * 64 + 3, &rel, 4);
	}
	SAY("linked: %u", sum);
}

static unsigned char *shared_code;
static volatile int version, stop;
static volatile long bad, calls;

static void *runs(void *arg)
{
	(void)arg;
	while (!stop) {
		int before = version, got = call(shared_code, 0), after = version;

		/* One aligned word is what changes, so a value is an old or a new one. */
		if (got < before - 1 || got > after + 1)
			bad++;
		calls++;
	}
	return NULL;
}

static void many_threads(void)
{
	pthread_t t[3];
	int *word;

	shared_code = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC) + 62;
	emit_add(shared_code, 0);
	word = (int *)(shared_code + 2); /* 64-byte aligned */
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, runs, NULL);
	for (int i = 1; i <= 300; i++) {
		version = i;
		__atomic_store_n(word, i, __ATOMIC_SEQ_CST);
		while (i % 100 == 0 && calls < i * 10)
			sched_yield();
		if (call(shared_code, 0) != i)
			bad++;
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	SAY("rewritten under three threads: %ld wrong, called %d", bad, calls > 0);
}

static void *compiles(void *arg)
{
	unsigned char *p = arg;
	unsigned int sum = 0;

	for (int i = 0; i < 400; i++) {
		emit_add(p + (i % 8) * 16, i);
		sum = sum * 7 + (unsigned int)call(p + (i % 8) * 16, 3);
	}
	return (void *)(uintptr_t)sum;
}

static void page_mates(void)
{
	unsigned char *p = pages(4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	pthread_t t[4];
	void *ret;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, compiles, p + i * 1024);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &ret);
		SAY("compiler %d on a shared page: %u", i, (unsigned int)(uintptr_t)ret);
	}
}

static unsigned char *writable, *runnable;

static void *dual_runs(void *arg)
{
	long *out = arg;

	while (!stop) {
		int v = call(runnable, 0);

		if (v < 0 || v > 500)
			++*out;
	}
	return NULL;
}

static void dual(void)
{
	int fd = (int)syscall(SYS_memfd_create, "jit", 0);
	unsigned int sum = 0;
	long wrong = 0;
	pthread_t t;

	ftruncate(fd, 1 << 16);
	writable = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	runnable = mmap(NULL, 1 << 16, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	for (int i = 0; i < 500; i++) {
		emit_add(writable + (i % 64) * 64, i);
		sum = sum * 11 + (unsigned int)call(runnable + (i % 64) * 64, i);
	}
	SAY("dual-mapped: %u", sum);
	writable += 62;
	runnable += 62;
	emit_add(writable, 0);
	stop = 0;
	pthread_create(&t, NULL, dual_runs, &wrong);
	for (int i = 0; i <= 500; i++) {
		__atomic_store_n((int *)(writable + 2), i, __ATOMIC_SEQ_CST);
		if (call(runnable, 0) != i)
			wrong++;
	}
	stop = 1;
	pthread_join(t, NULL);
	SAY("dual-mapped under two threads: %ld wrong", wrong);
}

/* Many megabytes of code, each line once: a cache must give up old code for new. */
static void flood(void)
{
	size_t n = 8u << 20;
	unsigned char *p = pages(n, PROT_READ | PROT_WRITE | PROT_EXEC);
	unsigned int sum = 0;

	for (int round = 0; round < 2; round++)
		for (size_t at = 0; at + 64 < n; at += 64) {
			emit_add(p + at, (int)(at >> 4) + round);
			sum = sum * 13 + (unsigned int)call(p + at, 1);
		}
	SAY("flood: %u", sum);
}

/*
 * Calls that take something away and put it on a page that code has just been run from: nothing may
 * be lost.
 */
static void filled(void)
{
	unsigned char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long sum = 0;
	int pair[2], status = 0;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (int i = 0; i < 12; i++) {
		struct iovec iov[2] = {{&status, 1}, {p + 100, 3}};
		struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
		siginfo_t *si = (siginfo_t *)(p + 1024);
		pid_t pid;

		memcpy(p, "\xb8\x07\x00\x00\x00\xc3", 6);
		sum += (unsigned long)((int (*)(void))p)();
		switch (i % 6) {
		case 0:
		case 1:
			TRY("send", write(pair[0], "abcd", 4));
			TRY("receive", i % 6 ? readv(pair[1], iov, 2) : recvmsg(pair[1], &m, 0));
			SAY("%.3s", p + 100);
			break;
		case 2:
		case 3:
			pid = fork();
			if (!pid)
				_exit(5);
			memset(si, 0, sizeof(*si));
			((int (*)(void))p)();
			if (i % 6 == 2)
				TRY("waitid", waitid(P_PID, (id_t)pid, si, WEXITED));
			else
				HOLDS(wait4(pid, (int *)(p + 1024), 0, NULL) == pid);
			SAY("%d %d", ((int *)(p + 1024))[0], i % 6 == 2 ? si->si_status : 0);
			break;
		case 4:
			TRY("send", write(pair[0], "xyz", 3));
			TRY("receive", recvfrom(pair[1], p + 300, 3, 0, NULL, NULL));
			SAY("%.3s", p + 300);
			break;
		default:
			TRY("send", write(pair[0], "123456", 6));
			TRY("receive", readv(pair[1], &iov[1], 1));
			TRY("receive", read(pair[1], p + 100, 3));
			SAY("%.3s", p + 100);
		}
	}
	SAY("filled: %lu", sum);
}

static ssize_t write_by(int way, int fd, const void *code, size_t n, off_t at)
{
	struct iovec v = {(void *)code, n};

	switch (way) {
	case 0: return pwrite(fd, code, n, at);
	case 1: return pwritev(fd, &v, 1, at);
	case 2: return syscall(SYS_pwritev2, fd, &v, 1, at, 0L, 0);
	}
	lseek(fd, at, SEEK_SET);
	switch (way) {
	case 3: return write(fd, code, n);
	case 4: return writev(fd, &v, 1);
	default: return syscall(SYS_pwritev2, fd, &v, 1, -1L, -1L, 0);
	}
}

/* Through /proc/self/mem, whatever the page's protection is, as some JITs do. */
static void by_file(int prot)
{
	int fd = open("/proc/self/mem", O_RDWR);
	unsigned char code[16], *p = pages(4096, PROT_READ | PROT_WRITE);
	unsigned int sum = 0;
	ssize_t n = 0;

	emit_add(p, 1);
	mprotect(p, 4096, prot);
	for (int i = 0; i < 12; i++) {
		sum = sum * 3 + (unsigned int)call(p, i);
		n += write_by(i % 6, fd, code, emit_add(code, i * i), (off_t)(uintptr_t)p);
	}
	SAY("by a file: %u %zd", sum, n);
	close(fd);
}

int main(int argc, char **argv)
{
	(void)argv;
	by_file(PROT_READ | PROT_EXEC);
	by_file(PROT_READ | PROT_WRITE | PROT_EXEC);
	one_thread();
	linked();
	many_threads();
	page_mates();
	dual();
	filled();
	if (argc > 1)
		flood();
	return 0;
}
