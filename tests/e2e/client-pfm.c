/*
 * A program that asks libpfm4 for its events by name, opens them by perf_event_open, and counts
 * code that is known.
 */
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static long long count(const char *name)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	long long value;
	int fd, err;

	err = pfm_get_perf_event_encoding(name, PFM_PLM3, &attr, NULL, NULL);
	if (err != PFM_SUCCESS) {
		fprintf(stderr, "%s: %s\n", name, pfm_strerror(err));
		exit(1);
	}
	attr.disabled = 1;
	fd = (int)perf_event_open(&attr, 0, -1, -1, 0);
	if (fd < 0) {
		perror(name);
		exit(1);
	}
	asm volatile("movl $16, %%eax\n\t" /* ioctl(fd, ENABLE, 0) */
		     "movl $0x2400, %%esi\n\t"
		     "xorl %%edx, %%edx\n\t"
		     "syscall\n\t"
		     "movl $10000, %%r8d\n\t"
		     "1: decl %%r8d\n\t"
		     "jnz 1b\n\t"
		     "movl $16, %%eax\n\t" /* DISABLE */
		     "movl $0x2401, %%esi\n\t"
		     "syscall"
		     :
		     : "D"((long)fd)
		     : "rax", "rcx", "rdx", "rsi", "r8", "r11", "memory", "cc");
	if (read(fd, &value, sizeof(value)) != sizeof(value)) {
		perror("read");
		exit(1);
	}
	close(fd);
	printf("%s: %lld\n", name, value);
	return value;
}

int main(int argc, char **argv)
{
	int failed = 0;
	long long n;

	if (pfm_initialize() != PFM_SUCCESS)
		return 1;
	for (int i = 1; i < argc; i++) {
		n = count(argv[i]);
		/*
		 * 10,000 turns of two, the move before, two moves and the system call after; or the
		 * branches.
		 */
		if (n != 20004 && n != 10000 && n != 10001) {
			fprintf(stderr, "%s: expected 20004 instructions or 10000 branches\n",
				argv[i]);
			failed = 1;
		}
	}
	return failed;
}
