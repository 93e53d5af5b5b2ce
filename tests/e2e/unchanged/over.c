/* Code whose pages are remapped, dropped, protected, or written to by other ways than stores. */
#include "say.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
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

/* Asynchronous for files, and the kernel has no way to say EFAULT but in the result. */
static void written_later(void)
{
	unsigned char *p = fresh(RWX), text[6];
	int fd = open("later", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct iovec part = {p + 4096, 6};
	struct iocb one = {.aio_fildes = (unsigned int)fd,
			   .aio_lio_opcode = IOCB_CMD_PREAD,
			   .aio_buf = (unsigned long)p,
			   .aio_nbytes = 6},
		    two = {.aio_fildes = (unsigned int)fd,
			   .aio_lio_opcode = IOCB_CMD_PREADV,
			   .aio_buf = (unsigned long)&part,
			   .aio_nbytes = 1},
		    *both[] = {&one, &two};
	struct io_event events[2];
	aio_context_t context = 0;

	code(p, 33);
	code(p + 4096, 34);
	SAY("%d %d", call(p), call(p + 4096));
	code(text, 35);
	write(fd, text, 6);
	TRY("io_setup", syscall(SYS_io_setup, 2, &context));
	TRY("io_submit", syscall(SYS_io_submit, context, 2, both));
	TRY("io_getevents", syscall(SYS_io_getevents, context, 2, 2, events, NULL));
	SAY("%d %d: %d %d", (int)events[0].res, (int)events[1].res, call(p), call(p + 4096));
	syscall(SYS_io_destroy, context);
	close(fd);
}

/* What fails changes nothing. */
static void refused(void)
{
	unsigned char *p = fresh(RWX);
	int fd = open("/proc/self/exe", O_RDONLY);

	code(p, 50);
	code(p + 4096, 51);
	SAY("%d %d", call(p), call(p + 4096));
	TRY("mmap of no file", (long)mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, 999, 0));
	SAY("%d", call(p));
	code(p, 52);
	SAY("%d", call(p));
	TRY("mmap for writing",
	    (long)mmap(p, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
	TRY("mremap onto itself",
	    (long)mremap(p, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED, p + 4096));
	TRY("mremap to nowhere", (long)mremap(p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, p + 1));
	TRY("mremap to a size", (long)mremap(p, 4096, 1ul << 46, MREMAP_MAYMOVE));
	TRY("mprotect", mprotect(p, 4096, 0x100));
	TRY("munmap", munmap(p + 1, 4096));
	SAY("%d %d", call(p), call(p + 4096));
	code(p, 53);
	SAY("%d", call(p));
	close(fd);
}

#define MREMAP_STAYS 4 /* MREMAP_DONTUNMAP */
#define NR_MSEAL     462

static void sealed(void)
{
	unsigned char *p = fresh(RWX), *q = fresh(RWX), *r;

	code(p, 60);
	SAY("%d", call(p));
	TRY("mseal", syscall(NR_MSEAL, p, 4096, 0));
	for (int i = 61; i < 64; i++) {
		code(p, i);
		SAY("%d", call(p));
	}
	TRY("mprotect", mprotect(p, 8192, PROT_READ));
	TRY("munmap", munmap(p, 4096));
	TRY("mmap", (long)mmap(p, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == -1);
	code(p, 64);
	SAY("%d", call(p));

	code(q, 65);
	SAY("%d", call(q));
	r = mremap(q, 8192, 8192, MREMAP_MAYMOVE | MREMAP_STAYS);
	SAY("moved %d, left zeros %d", call(r), q[0]);
	code(q, 66);
	SAY("%d %d", call(r), call(q));
}

/* Every other page: as many ranges as the kernel lets a process have, and then its answer. */
static void many_ranges(void)
{
	size_t n = 40000, i = 0;
	unsigned char *p = mmap(NULL, n * 8192, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	while (i < n && !mprotect(p + i * 8192, 4096, RWX))
		i++;
	SAY("%s", i < n ? strerror(errno) : "as many as were tried");
	code(p, 70);
	code(p + (i - 1) * 8192, 71);
	SAY("%d %d", call(p), call(p + (i - 1) * 8192));
	munmap(p, n * 8192);
	SAY("%d", call(p));
}

/* Writes to code that is no longer there are the program's faults. */
static void written_in_vain(void)
{
	int fd = open("vain", O_RDWR | O_CREAT | O_TRUNC, 0600);
	int kinds[] = {MAP_SHARED, MAP_PRIVATE};

	for (int i = 0; i < 2; i++) {
		unsigned char *p;
		int sig;

		ftruncate(fd, 8192);
		p = mmap(NULL, 8192, RWX, kinds[i], fd, 0);
		code(p, 75);
		SAY("%d", call(p));
		ftruncate(fd, 0);
		sig = sigsetjmp(back, 1);
		if (!sig)
			p[0] = 1;
		SAY("written to nothing: signal %d", sig);
		munmap(p, 8192);
	}
	close(fd);
}

static void write_in_child(unsigned char *p)
{
	int sig = sigsetjmp(back, 1);

	if (!sig)
		*p = 1;
	SAY("child writes: signal %d", sig);
}

static void not_inherited(void)
{
	unsigned char *p = fresh(RWX);

	code(p, 80);
	SAY("%d", call(p));
	madvise(p, 8192, MADV_DONTFORK);
	if (!fork()) {
		write_in_child(p);
		SAY("child %d", call(p));
		_exit(0);
	}
	wait(NULL);
	SAY("%d", call(p));
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
	written_later();
	refused();
	sealed();
	many_ranges();
	written_in_vain();
	not_inherited();
	grows_down();
	return 0;
}
