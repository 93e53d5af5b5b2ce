/*
 * Descriptors: closing every one, using up every one, the highest one, and what a program finds in
 * its table.
 */
#include "say.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void table(const char *when)
{
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	char text[1000] = "";
	int n = 0;

	if (!d) {
		SAY("%s: no /proc/self/fd: %s", when, strerror(errno));
		return;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d) && n++ < 40)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s",
				 e->d_name);
	closedir(d);
	SAY("%s: %d open:%s", when, n, text);
}

/* Nor to those that take many descriptors, or name one by a path. */
static void unopened(int kept)
{
	struct pollfd many[100];
	char path[64], text[64];
	int pair[2], n = 0;
	struct stat st;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (int fd = 3; fd < 70000; fd++) {
		struct timeval now = {0, 0};
		struct pollfd p = {fd, POLLIN, 0};
		fd_set set;

		if (fd == kept || fd == pair[0] || fd == pair[1])
			continue;
		if (poll(&p, 1, 0) != 1 || p.revents != POLLNVAL)
			SAY("%d can be polled", fd);
		/*
		 * The kernel passes over numbers beyond the size of its table, which is at least
		 * this.
		 */
		if (fd < 64) {
			FD_ZERO(&set);
			FD_SET(fd, &set);
			if (select(fd + 1, NULL, &set, NULL, &now) != -1 || errno != EBADF)
				SAY("%d can be selected", fd);
		}
		if (fd > 4096)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, text, sizeof(text)) != -1 || lstat(path, &st) != -1 ||
		    open(path, O_RDONLY) != -1)
			SAY("%s is there", path);
		snprintf(path, sizeof(path), "/dev/fd/%d", fd);
		if (access(path, F_OK) != -1 || stat(path, &st) != -1)
			SAY("%s is there", path);
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		if (access(path, F_OK) != -1)
			SAY("%s is there", path);
		if (renameat(kept, "/nowhere", fd, "x") != -1 || errno != (fd ? EBADF : 0))
			n += errno != ENOENT && errno != EBADF;
		{
			char control[CMSG_SPACE(sizeof(int))] = "";
			struct iovec iov = {text, 1};
			struct msghdr m = {.msg_iov = &iov,
					   .msg_iovlen = 1,
					   .msg_control = control,
					   .msg_controllen = sizeof(control)};
			struct cmsghdr *c = CMSG_FIRSTHDR(&m);

			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &fd, sizeof(int));
			if (sendmsg(pair[0], &m, 0) != -1 || errno != EBADF)
				SAY("%d can be sent", fd);
		}
	}
	SAY("odd errors: %d", n);
	for (int i = 0; i < 100; i++)
		many[i] = (struct pollfd){i < 50 ? kept : 1000 + i, 0, 0};
	SAY("poll of many: %d", poll(many, 100, -1));
	close(pair[0]);
	close(pair[1]);
}

int main(int argc, char **argv)
{
	struct rlimit rl = {64, 64};
	struct stat a, b;
	int fd, n = 0, high = -1, status, kept;
	unsigned long mask = 0;
	char buffer[16];
	pid_t pid;

	if (argc > 1) {
		table("after exec");
		return 0;
	}
	table("at the start");
	/* The lowest free number is what open returns. */
	HOLDS(open("/dev/null", O_RDONLY) == 3);
	HOLDS(dup(3) == 4);
	close(3);
	HOLDS(open("/dev/null", O_RDONLY) == 3);
	close(3);
	close(4);
	kept = dup(1);
	/* What is not open is not open to any call. */
	for (fd = 3; fd < 70000; fd++) {
		struct stat st;

		if (fd == kept)
			continue;
		if (fstat(fd, &st) == 0 || errno != EBADF)
			SAY("%d has a status", fd);
		if (lseek(fd, 0, SEEK_CUR) != -1 || errno != EBADF)
			SAY("%d has an offset", fd);
		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED || errno != EBADF)
			SAY("%d can be mapped", fd);
		if (openat(fd, "x", O_RDONLY) != -1 || errno != EBADF)
			SAY("%d is a directory", fd);
		if (syscall(SYS_signalfd4, fd, &mask, 8, 0) != -1 || errno != EBADF)
			SAY("%d can be a signalfd", fd);
		/* Newer than the headers; kernels without them say ENOSYS. */
		if (syscall(465 /* listxattrat */, fd, "x", 0, NULL, 0) != -1 ||
		    (errno != EBADF && errno != ENOSYS))
			SAY("%d is a directory to listxattrat", fd);
		if (syscall(467 /* open_tree_attr */, fd, "x", 0, NULL, 0) != -1 ||
		    (errno != EBADF && errno != ENOSYS))
			SAY("%d is a directory to open_tree_attr", fd);
	}
	unopened(kept);
	HOLDS(openat(1000000, "/", O_RDONLY) == 4 && close(4) == 0);

	/* Close everything, as daemons do. */
	pid = fork();
	if (pid == 0) {
		for (fd = 0; fd < 70000; fd++)
			if (close(fd) == 0)
				n++;
		fd = open("closed", O_CREAT | O_WRONLY, 0644);
		dprintf(fd, "closed %d, then open gave %d\n", n, fd);
		fd = open("/proc/self/exe", O_RDONLY);
		n = (int)read(fd, buffer, 4);
		_exit(fd == 1 && n == 4 && !memcmp(buffer, "\177ELF", 4) ? 7 : 8);
	}
	waitpid(pid, &status, 0);
	SAY("after closing all: %x", (unsigned int)status);
	pid = fork();
	if (pid == 0) {
		n = (int)syscall(SYS_close_range, 3, ~0u, 0);
		SAY("close_range: %d", n);
		table("then");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	pid = fork();
	if (pid == 0) {
		char *args[] = {argv[0], (char *)"x", NULL};

		dup2(1, 50);
		dup2(1, 60);
		syscall(SYS_close_range, 55, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */);
		execv("/proc/self/exe", args);
		_exit(1);
	}
	waitpid(pid, NULL, 0);

	/* Use up all. */
	pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_NOFILE, &rl);
		while ((fd = open("/dev/null", O_RDONLY)) >= 0)
			high = fd;
		SAY("highest %d, then %s", high, strerror(errno));
		HOLDS(dup(0) == -1 && errno == EMFILE);
		HOLDS(dup2(0, 63) == 63);
		HOLDS(dup2(0, 64) == -1 && errno == EBADF);
		HOLDS(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		      MAP_FAILED);
		pid = fork();
		if (pid == 0)
			_exit(3);
		HOLDS(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3);
		close(high);
		HOLDS(system("exit 5") == 5 << 8);
		_exit(0);
	}
	waitpid(pid, NULL, 0);

	/* The last numbers of the limit. */
	getrlimit(RLIMIT_NOFILE, &rl);
	high = (int)rl.rlim_cur - 1;
	HOLDS(dup2(1, high) == high);
	HOLDS(fstat(high, &a) == 0 && fstat(1, &b) == 0 && a.st_ino == b.st_ino);
	HOLDS(close(high) == 0);
	HOLDS(close(high) == -1 && errno == EBADF);
	HOLDS(fcntl(0, F_DUPFD, 500) == 500);
	HOLDS(fcntl(0, F_DUPFD_CLOEXEC, 500) == 501);
	HOLDS(fcntl(501, F_GETFD) == FD_CLOEXEC);
	for (fd = 700; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) != -1)
			SAY("descriptor %d is open", fd);

	/* Descriptors of other kinds keep their numbers and their manners. */
	fd = epoll_create1(0);
	{
		struct epoll_event ev = {EPOLLIN, {.u32 = 9}}, got;
		int efd = eventfd(1, 0), pair[2];

		HOLDS(epoll_ctl(fd, EPOLL_CTL_ADD, efd, &ev) == 0);
		HOLDS(epoll_wait(fd, &got, 1, 1000) == 1 && got.data.u32 == 9);
		HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		{
			char control[CMSG_SPACE(sizeof(int))] = "";
			struct iovec iov = {buffer, 1};
			struct msghdr m = {.msg_iov = &iov,
					   .msg_iovlen = 1,
					   .msg_control = control,
					   .msg_controllen = sizeof(control)};
			struct cmsghdr *c = CMSG_FIRSTHDR(&m);
			int received;

			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(c), &efd, sizeof(int));
			HOLDS(sendmsg(pair[0], &m, 0) == 1);
			HOLDS(recvmsg(pair[1], &m, 0) == 1);
			memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
			SAY("received as %d", received);
		}
	}
	dup2(kept, 1);
	table("at the end");
	return 0;
}
