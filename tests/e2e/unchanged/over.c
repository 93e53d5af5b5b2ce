/* Code whose pages are remapped, dropped, protected, or written to by other ways than stores. */
#include "say.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

static void code(unsigned char *p, int value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}

/* What calling @p gives, or minus the signal. */
static int call(void *p)
{
	int sig = sigsetjmp(back, 1);

	return sig ? -sig : ((int (*)(void))p)();
}

static void *fresh(int prot)
{
	return mmap(NULL, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void protections(void)
{
	unsigned char *p = fresh(RWX);

	code(p, 1);
	code(p + 4096, 2);
	SAY("%d %d", call(p), call(p + 4096));
	mprotect(p, 4096, PROT_NONE);
	SAY("PROT_NONE %d %d", call(p), call(p + 4096));
	mprotect(p, 4096, PROT_READ | PROT_WRITE);
	SAY("no PROT_EXEC %d", call(p));
	code(p, 3);
	mprotect(p, 8192, PROT_READ | PROT_EXEC);
	SAY("executable again %d %d", call(p), call(p + 4096));
	if (!sigsetjmp(back, 1)) {
		p[1] = 9;
		SAY("written to");
	} else {
		SAY("not writable");
	}
	mprotect(p, 4096, RWX);
	code(p, 4);
	SAY("%d", call(p));
	munmap(p, 4096);
	SAY("unmapped %d %d", call(p), call(p + 4096));
}

static void replaced(void)
{
	unsigned char *p = fresh(RWX), *q = fresh(RWX), *r;

	code(p, 10);
	code(q, 11);
	SAY("%d %d", call(p), call(q));
	mremap(q, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, p);
	SAY("moved over %d %d", call(p), call(q));
	r = mremap(p, 8192, 65536, MREMAP_MAYMOVE);
	SAY("grown %d", call(r));
	mmap(r, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	SAY("nothing there %d", call(r));
	code(r, 12);
	SAY("%d", call(r));
	r = mremap(r, 8192, 4096, 0);
	SAY("shrunk %d %d", call(r), call(r + 4096));
}

static void dropped(void)
{
	unsigned char *p = fresh(RWX), *q;
	int fd = memfd_create("x", 0);

	code(p, 20);
	SAY("%d", call(p));
	madvise(p, 4096, MADV_DONTNEED);
	SAY("DONTNEED: zeros run into a fault %d", call(p));
	code(p, 21);
	SAY("%d", call(p));
	ftruncate(fd, 8192);
	q = mmap(NULL, 8192, RWX, MAP_SHARED, fd, 0);
	code(q, 22);
	SAY("shared %d", call(q));
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
	SAY("punched %d", call(q));
	{
		unsigned char text[6];

		code(text, 23);
		pwrite(fd, text, 6, 0);
		SAY("pwrite %d", call(q));
		code(text, 24);
		q[0] = 0x90;
		SAY("%d", call(q + 4096) < 0);
		pwrite(fd, text, 6, 0);
	}
	madvise(q, 4096, MADV_REMOVE);
	SAY("REMOVE %d", call(q));
	ftruncate(fd, 0);
	SAY("truncated %d", call(q));
}

static void written_by_calls(void)
{
	unsigned char *p = fresh(RWX), text[6];
	struct iovec from = {text, 6}, to = {p, 6};
	int fd;

	code(p, 30);
	SAY("%d", call(p));
	code(text, 31);
	SAY("process_vm_writev %zd %d", process_vm_writev(getpid(), &from, 1, &to, 1, 0), call(p));
	code(text, 32);
	fd = open("/proc/self/mem", O_RDWR);
	SAY("/proc/self/mem %zd %d", pwrite(fd, text, 6, (off_t)p), call(p));
}

static void grows_down(void)
{
	unsigned char *p = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);

	munmap(p, 65536);
	p = mmap(p + 61440, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	code(p, 40);
	SAY("%d", call(p));
	if (sigsetjmp(back, 1)) {
		SAY("does not grow");
		return;
	}
	code(p - 4000, 41);
	SAY("below %d", call(p - 4000));
}

int main(void)
{
	struct sigaction sa = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGILL, &sa, NULL);
	protections();
	replaced();
	dropped();
	written_by_calls();
	grows_down();
	return 0;
}
