/*
 * Two children wait for a message, one in recvmsg and one in recvmmsg, when this tree's first perf
 * event is opened; then each gets it. What they have is an event to read, control and map, and
 * still one in the program that they exec [CALL-15]. Exits with 0 if it is.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static char byte;
static struct iovec one = {&byte, 1};

static struct msghdr message(union control *control)
{
	*control = (union control){.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
					    .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SCM_RIGHTS}};
	return (struct msghdr){.msg_iov = &one,
			       .msg_iovlen = 1,
			       .msg_control = control,
			       .msg_controllen = sizeof(*control)};
}

static int receive(int sock, bool many)
{
	union control control;
	struct mmsghdr m = {.msg_hdr = message(&control)};
	int fd = -1;

	if (many ? recvmmsg(sock, &m, 1, 0, NULL) != 1 : recvmsg(sock, &m.msg_hdr, 0) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

static int use(int fd)
{
	unsigned long long count = 0;

	if (read(fd, &count, sizeof(count)) != sizeof(count) || count < 8)
		return 2;
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
		return 3;
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		return 4;
	return 0;
}

/* It waits in the kernel. */
static bool sleeps(pid_t pid)
{
	char path[40], text[256] = "";
	const char *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	end = fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	fclose(f);
	return end && end[2] == 'S';
}

static int child(const char *self, int sock, bool many)
{
	char number[16];
	int fd, err;

	if (write(sock, "", 1) != 1)
		return 10;
	fd = receive(sock, many);
	if (fd < 0)
		return 11;
	err = use(fd);
	if (err)
		return err;
	snprintf(number, sizeof(number), "%d", fd);
	execl(self, self, number, (char *)NULL);
	return 12;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int pairs[2][2], fd, status, bad = 0;
	union control control;
	struct msghdr m;
	pid_t pids[2];
	char *pages;

	alarm(60);
	if (argc > 1)
		return use(atoi(argv[1]));
	for (int i = 0; i < 2; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]))
			return 20;
		pids[i] = fork();
		if (pids[i] == 0) {
			alarm(60);
			_exit(child(argv[0], pairs[i][1], i));
		}
		if (read(pairs[i][0], &byte, 1) != 1)
			return 21;
		while (!sleeps(pids[i]))
			usleep(1000);
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || pages == MAP_FAILED || madvise(pages, 64 * 4096, MADV_NOHUGEPAGE))
		return 22;
	for (int i = 0; i < 64; i++)
		pages[i * 4096] = 1;
	for (int i = 0; i < 2; i++) {
		m = message(&control);
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		if (sendmsg(pairs[i][0], &m, 0) != 1)
			return 23;
		if (waitpid(pids[i], &status, 0) != pids[i])
			return 24;
		if (status) {
			fprintf(stderr, "%s: status %x\n", i ? "recvmmsg" : "recvmsg", status);
			bad = 1;
		}
	}
	return bad;
}
