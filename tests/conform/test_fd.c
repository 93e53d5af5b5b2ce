/*
 * What kind of file a perf event is, and where its descriptors may go [CALL-15, FLAG-04, OVF-03].
 */
#include "conform/conform.h"

#include <linux/fs.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/vfs.h>

static int faults(bool disabled)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.disabled = disabled;
	fd = ev_self(attr);
	NEED(fd >= 0);
	return (int)fd;
}

static long long counts(int fd)
{
	u64 before = ev_count(fd);

	touch_pages(10);
	return (long long)(ev_count(fd) - before);
}

static long err(long ret)
{
	return ret < 0 ? -errno : ret;
}

CONFORM(name)
{
	char path[64], link[64] = "";
	int fd = faults(true);
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	CHECK_ROW("CALL-15", n > 0 && strcmp(link, "anon_inode:[perf_event]") == 0,
		  "readlink gives anon_inode:[perf_event]", "%s", link);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	n = readlink(path, link, sizeof(link) - 1);
	CHECK_ROW("CALL-15", n > 0 && strcmp(link, "anon_inode:[perf_event]") == 0,
		  "the same by pid", "%s", link);
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	CHECK_ROW("CALL-15", n > 0 && strcmp(link, "anon_inode:[perf_event]") == 0,
		  "the same through thread-self", "%s", link);
	n = readlink(path, link, 4);
	check_val("CALL-15", "readlink into 4 bytes is cut", n == 4 ? memcmp(link, "anon", 4) : n,
		  0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* Its mode is 0600 and its owner root, so others do not get as far as finding no device. */
	check_err("CALL-15", "it cannot be opened through /proc", err(open(path, O_RDONLY)),
		  geteuid() ? EACCES : ENXIO);
}

CONFORM(status)
{
	struct stat st;
	struct statfs fs;
	int fd = faults(true);

	check_val("CALL-15", "F_GETFL: O_RDWR and nothing else", fcntl(fd, F_GETFL) & ~O_LARGEFILE,
		  O_RDWR);
	NEED(fstat(fd, &st) == 0);
	check_val("CALL-15", "fstat: a mode of 0600 without a file type", st.st_mode, 0600);
	check_val("CALL-15", "fstat: size", st.st_size, 0);
	check_val("CALL-15", "fstat: links", st.st_nlink, 1);
	check_val("CALL-15", "fstat: owner is root", st.st_uid, 0);
	NEED(fstatfs(fd, &fs) == 0);
	check_val("CALL-15", "fstatfs: anon_inodefs", fs.f_type, 0x09041934);
	if (kernel_at_least(6, 16))
		check_err("CALL-15", "fchmod", err(fchmod(fd, 0644)), EOPNOTSUPP);
	check_err("CALL-15", "isatty", isatty(fd) ? 0 : -errno, ENOTTY);
}

CONFORM(io)
{
	int fd = faults(true), fds[2];
	u64 v[8] = {0};
	struct iovec iov = {v, 8};

	NEED(pipe(fds) == 0);
	check_err("CALL-15", "write", err(write(fd, v, 8)), EINVAL);
	check_err("CALL-15", "write of 0 bytes", err(write(fd, v, 0)), EINVAL);
	check_err("CALL-15", "writev", err(writev(fd, &iov, 1)), EINVAL);
	check_err("CALL-15", "pwrite", err(pwrite(fd, v, 8, 0)), ESPIPE);
	check_err("CALL-15", "lseek SET", err(lseek(fd, 0, SEEK_SET)), ESPIPE); /* [ERR-17] */
	check_err("CALL-15", "lseek END", err(lseek(fd, 0, SEEK_END)), ESPIPE);
	check_err("CALL-15", "ftruncate", err(ftruncate(fd, 0)), EINVAL);
	check_err("CALL-15", "fsync", err(fsync(fd)), EINVAL);
	check_err("CALL-15", "fallocate", err(fallocate(fd, 0, 0, 4096)), ENODEV);
	check_err("CALL-15", "the size of a pipe", err(fcntl(fd, F_GETPIPE_SZ)), EBADF);
	check_err("CALL-15", "vmsplice", err(vmsplice(fd, &iov, 1, 0)), EBADF);
	check_err("CALL-15", "splice into a pipe", err(splice(fd, NULL, fds[1], NULL, 8, 0)),
		  EINVAL);
	check_err("CALL-15", "sendfile from it", err(sendfile(fds[1], fd, NULL, 8)), EINVAL);
	check_err("CALL-15", "getdents", err(syscall(SYS_getdents64, fd, v, sizeof(v))), ENOTDIR);
	check_err("CALL-15", "fchdir", err(fchdir(fd)), ENOTDIR);
	check_err("CALL-15", "flock", err(flock(fd, LOCK_EX | LOCK_NB)), 0);
	check_err("CALL-15", "accept", err(accept(fd, NULL, NULL)), ENOTSOCK);
}

/* Calls that are about a file's inode, which all anonymous files share. */
CONFORM(inode)
{
	int fd = faults(true), zero = open("/dev/zero", O_RDWR), size = 0;
	char name[32];
	struct timespec times[2] = {{1, 0}, {1, 0}};
	off_t at = 0;

	check_err("CALL-15", "sendfile into it", err(sendfile(fd, zero, NULL, 8)), EINVAL);
	check_err("CALL-15", "sendfile of nothing into it", err(sendfile(fd, zero, NULL, 0)), 0);
	check_err("CALL-15", "sendfile from itself", err(sendfile(fd, fd, NULL, 8)), EINVAL);
	check_err("CALL-15", "sendfile from an offset of it", err(sendfile(zero, fd, &at, 8)),
		  ESPIPE);
	check_err("CALL-15", "FIGETBSZ", err(ioctl(fd, FIGETBSZ, &size)), 0);
	check_val("CALL-15", "FIGETBSZ: a page", size, 4096);
	check_err("CALL-15", "FIGETBSZ to where nothing is", err(ioctl(fd, FIGETBSZ, NULL)),
		  EFAULT);
	check_err("CALL-15", "posix_fadvise", -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	check_err("CALL-15", "posix_fadvise of something unknown", -posix_fadvise(fd, 0, 0, 99),
		  EINVAL);
	check_err("CALL-15", "fallocate of a bad range", err(fallocate(fd, 0, -1, 10)), EINVAL);
	check_err("CALL-15", "F_ADD_SEALS", err(fcntl(fd, F_ADD_SEALS, 0)), EINVAL);
	if (!kernel_at_least(6, 16))
		return;
	check_err("CALL-15", "fchown", err(fchown(fd, geteuid(), (gid_t)-1)), EOPNOTSUPP);
	check_err("CALL-15", "fchownat of it", err(fchownat(fd, "", 0, 0, AT_EMPTY_PATH)),
		  EOPNOTSUPP);
	check_err("CALL-15", "futimens to a time", err(futimens(fd, times)), EOPNOTSUPP);
	/* Its link leads to it as well. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	check_err("CALL-15", "chmod", err(chmod(name, 0644)), EOPNOTSUPP);
	check_err("CALL-15", "chown", err(chown(name, geteuid(), (gid_t)-1)), EOPNOTSUPP);
	check_err("CALL-15", "utimensat", err(utimensat(AT_FDCWD, name, times, 0)), EOPNOTSUPP);
}

/*
 * All anonymous files of the machine are one inode, whose bytes record locks are of: a test has
 * some of its own.
 */
static struct flock bytes;
static int lock_fd;

static long lock(int fd, int cmd, short type)
{
	struct flock fl = bytes;

	fl.l_type = type;
	return err(fcntl(fd, cmd, &fl));
}

/* What another process gets that calls lock() with @cmd and @type. */
static long other_gets(int cmd, short type)
{
	int status;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0)
		_exit((int)-lock(faults(true), cmd, type));
	NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void locks_begin(void)
{
	lock_fd = faults(true);
	bytes.l_whence = SEEK_SET;
	bytes.l_start = 16 * (off_t)getpid();
	bytes.l_len = 16;
}

static void locked_by_parent(void)
{
	int fds[2] = {faults(true), eventfd(0, 0)};

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct flock fl = bytes;

		fl.l_type = F_RDLCK;
		check_err("CALL-15", i ? "F_GETLK through an eventfd" : "F_GETLK",
			  err(fcntl(fds[i], F_GETLK, &fl)), 0);
		check_val("CALL-15", i ? "an eventfd is locked too" : "it is locked for writing",
			  fl.l_type, F_WRLCK);
		check_val("CALL-15", i ? "its lock: who" : "whose lock it is",
			  fl.l_pid == getppid(), 1);
		check_val("CALL-15", i ? "its lock: how long" : "how long it is", fl.l_len, 16);
	}
}

static void no_restart(int sig)
{
	(void)sig;
}

static void waits_and_is_interrupted(void)
{
	struct sigaction sa = {.sa_handler = no_restart};
	struct itimerval again = {{0, 20000}, {0, 20000}};

	NEED(sigaction(SIGALRM, &sa, NULL) == 0 && setitimer(ITIMER_REAL, &again, NULL) == 0);
	check_err("CALL-15", "F_SETLKW is interrupted", lock(lock_fd, F_SETLKW, F_WRLCK), EINTR);
}

static void closes_it(void)
{
	NEED(close(lock_fd) == 0);
}

CONFORM(locks)
{
	struct stat st;

	locks_begin();
	check_err("CALL-15", "a lock for writing", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	check_err("CALL-15", "again", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	in_child(locked_by_parent);
	check_err("CALL-15", "another cannot lock it", other_gets(F_SETLK, F_RDLCK), EAGAIN);
	in_child(waits_and_is_interrupted);
	in_child(closes_it);
	NEED(fstat(lock_fd, &st) == 0);
	check_err("CALL-15", "a child's close and fstat leave it locked",
		  other_gets(F_SETLK, F_WRLCK), EAGAIN);
	check_err("CALL-15", "a lock for reading instead", lock(lock_fd, F_SETLK, F_RDLCK), 0);
	check_err("CALL-15", "which others share", other_gets(F_SETLK, F_RDLCK), 0);
	check_err("CALL-15", "and cannot write", other_gets(F_SETLK, F_WRLCK), EAGAIN);
	check_err("CALL-15", "F_UNLCK", lock(lock_fd, F_SETLK, F_UNLCK), 0);
	check_err("CALL-15", "then another gets it", other_gets(F_SETLKW, F_WRLCK), 0);
	check_err("CALL-15", "a lock of no type", lock(lock_fd, F_SETLK, 7), EINVAL);
	check_err("CALL-15", "a lock from nowhere", err(fcntl(lock_fd, F_SETLK, NULL)), EFAULT);
}

/* Closing any descriptor of the inode ends a process's locks. */
CONFORM(locks_end)
{
	int other = faults(true), pipes[2];

	locks_begin();
	NEED(pipe(pipes) == 0);
	check_err("CALL-15", "locked", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	close(pipes[1]);
	check_val("CALL-15", "dup2 to itself", dup2(lock_fd, lock_fd) == lock_fd, 1);
	check_err("CALL-15", "other files leave it", other_gets(F_SETLK, F_WRLCK), EAGAIN);
	close(dup(lock_fd));
	check_err("CALL-15", "a dup's close ends it", other_gets(F_SETLK, F_WRLCK), 0);
	check_err("CALL-15", "locked for dup2", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	NEED(dup2(pipes[0], other) == other);
	check_err("CALL-15", "dup2 onto another event ends it", other_gets(F_SETLK, F_WRLCK), 0);
	check_err("CALL-15", "locked for an eventfd", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	close(eventfd(0, 0));
	check_err("CALL-15", "an eventfd's close ends it", other_gets(F_SETLK, F_WRLCK), 0);
	other = faults(true);
	check_err("CALL-15", "locked for close_range", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	NEED(syscall(SYS_close_range, other, other, 0) == 0);
	check_err("CALL-15", "close_range ends it", other_gets(F_SETLK, F_WRLCK), 0);
	check_err("CALL-15", "locked for the last close", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	close(lock_fd);
	check_err("CALL-15", "the last close ends it", other_gets(F_SETLK, F_WRLCK), 0);
	lock_fd = faults(true);
	check_err("CALL-15", "an event afterwards", lock(lock_fd, F_SETLK, F_WRLCK), 0);
}

CONFORM(locks_of_files)
{
	int copy;

	locks_begin();
	copy = dup(lock_fd);
	check_err("CALL-15", "F_OFD_SETLK", lock(lock_fd, F_OFD_SETLK, F_WRLCK), 0);
	check_err("CALL-15", "F_OFD_SETLK of a dup", lock(copy, F_OFD_SETLK, F_WRLCK), 0);
	check_err("CALL-15", "a process's lock is another", lock(lock_fd, F_SETLK, F_WRLCK),
		  EAGAIN);
	in_child(closes_it);
	close(copy);
	check_err("CALL-15", "a dup's close leaves the file's", other_gets(F_SETLK, F_WRLCK),
		  EAGAIN);
	close(lock_fd);
	check_err("CALL-15", "the file's last close", other_gets(F_SETLK, F_WRLCK), 0);
}

/* No number is free for another descriptor. */
CONFORM(full_table)
{
	struct rlimit limit;
	struct stat st;

	locks_begin();
	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = (rlim_t)lock_fd + 1;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	NEED(dup(lock_fd) < 0 && errno == EMFILE);
	NEED(fstat(lock_fd, &st) == 0);
	check_val("CALL-15", "fstat with a full table: the mode", st.st_mode, 0600);
	check_err("CALL-15", "a lock with a full table", lock(lock_fd, F_SETLK, F_WRLCK), 0);
	NEED(fstat(lock_fd, &st) == 0);
	check_val("CALL-15", "fstat of the locked", st.st_mode, 0600);
}

CONFORM(fdinfo)
{
	int fd = faults(true), in;
	char path[64], text[512];
	ssize_t n;

	for (int turn = 0; turn < 2; turn++) {
		snprintf(path, sizeof(path), "/proc/%s/fdinfo/%d", turn ? "thread-self" : "self",
			 fd);
		in = open(path, O_RDONLY);
		NEED(in >= 0);
		n = read(in, text, sizeof(text) - 1);
		NEED(n > 0);
		text[n] = 0;
		if (turn)
			check_val("CALL-15", "fdinfo: flags that were set",
				  strstr(text, "\nflags:\t02024002\n") != NULL, 1);
		else
			CHECK_ROW("CALL-15", strstr(text, "flags:\t02\n"), "fdinfo: flags at first",
				  "%s", text);
		check_val("CALL-15", "fdinfo: pos", strncmp(text, "pos:\t0\n", 7), 0);
		close(in);
		NEED(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
		     fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) == 0);
	}
}

CONFORM(flags)
{
	int fd = faults(true), copy = dup(fd);
	struct f_owner_ex owner = {-1, -1};

	check_err("CALL-15", "F_SETFL O_NONBLOCK", err(fcntl(fd, F_SETFL, O_NONBLOCK)), 0);
	check_val("CALL-15", "O_NONBLOCK is seen", !!(fcntl(fd, F_GETFL) & O_NONBLOCK), 1);
	check_val("CALL-15", "O_NONBLOCK is shared by a dup", !!(fcntl(copy, F_GETFL) & O_NONBLOCK),
		  1);
	check_val("CALL-15", "a non-blocking read", ev_read(fd, &(u64){0}, 8), 8);
	check_err("CALL-15", "F_SETFL O_ASYNC", err(fcntl(fd, F_SETFL, O_ASYNC)), 0);
	check_val("CALL-15", "O_ASYNC is seen", !!(fcntl(fd, F_GETFL) & O_ASYNC), 1);
	check_val("CALL-15", "F_GETOWN at first", fcntl(fd, F_GETOWN), 0);
	check_err("CALL-15", "F_SETOWN", err(fcntl(fd, F_SETOWN, getpid())), 0);
	check_val("CALL-15", "F_GETOWN", fcntl(fd, F_GETOWN) == getpid(), 1);
	owner.type = F_OWNER_TID;
	owner.pid = getpid();
	check_err("OVF-07", "F_SETOWN_EX", err(fcntl(fd, F_SETOWN_EX, &owner)), 0);
	owner.type = F_OWNER_PGRP;
	check_err("OVF-07", "F_GETOWN_EX", err(fcntl(fd, F_GETOWN_EX, &owner)), 0);
	check_val("OVF-07", "F_GETOWN_EX: a thread", owner.type, F_OWNER_TID);
	check_err("OVF-05", "F_SETSIG", err(fcntl(fd, F_SETSIG, SIGRTMIN + 3)), 0);
	check_val("OVF-05", "F_GETSIG", fcntl(fd, F_GETSIG) == SIGRTMIN + 3, 1);
}

/*
 * A counting event has nothing to wait for: without a buffer every way to poll reports HUP at once.
 */
CONFORM(poll_no_buffer)
{
	int fd = faults(false), ep = epoll_create1(0);
	struct pollfd p = {fd, POLLIN | POLLOUT | POLLRDNORM, 0};
	struct epoll_event e = {EPOLLIN, {.fd = fd}}, got = {0};
	struct timeval zero = {0, 0};
	fd_set r, w, x;

	check_val("OVF-03", "poll returns at once", poll(&p, 1, 5000), 1);
	check_val("OVF-03", "poll reports POLLHUP alone", p.revents, POLLHUP);
	p.events = 0;
	check_val("OVF-03", "poll for nothing", poll(&p, 1, 0), 1);
	check_val("OVF-03", "poll for nothing reports POLLHUP", p.revents, POLLHUP);
	check_val("OVF-03", "and again", poll(&p, 1, 0) * 100 + p.revents, 100 + POLLHUP);
	NEED(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
	check_val("OVF-03", "epoll_wait", epoll_wait(ep, &got, 1, 5000), 1);
	check_val("OVF-03", "epoll_wait reports EPOLLHUP alone", got.events, EPOLLHUP);
	check_val("OVF-03", "epoll_wait again", epoll_wait(ep, &got, 1, 0), 1);
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(fd, &r);
	FD_SET(fd, &w);
	FD_SET(fd, &x);
	check_val("OVF-03", "select counts the read set", select(fd + 1, &r, &w, &x, &zero), 1);
	check_val("OVF-03", "select: readable", FD_ISSET(fd, &r), 1);
	check_val("OVF-03", "select: not writable", FD_ISSET(fd, &w), 0);
	touch_pages(4);
	check_faults("OVF-03", "the event is healthy", counts(fd), 10);
}

CONFORM(copies)
{
	int fd = faults(true), a = dup(fd), b = dup2(fd, 200), c = fcntl(fd, F_DUPFD_CLOEXEC, 100),
	    d = dup3(fd, 201, O_CLOEXEC), pipes[2];

	touch_pages(8);
	counts(fd);
	check_val("DES-07", "dup, dup2, dup3, F_DUPFD", a >= 0 && b == 200 && c >= 100 && d == 201,
		  1);
	check_val("FLAG-04", "F_DUPFD_CLOEXEC is close-on-exec", fcntl(c, F_GETFD), FD_CLOEXEC);
	check_val("FLAG-04", "dup is not", fcntl(a, F_GETFD), 0);
	NEED(ev_ioctl(a, PERF_EVENT_IOC_ENABLE, 0) == 0);
	check_faults("DES-07", "ENABLE through a dup, read through another", counts(b), 10);
	close(fd);
	check_faults("DES-07", "the first descriptor closed: the event lives", counts(c), 10);
	close(a);
	close(b);
	close(c);
	check_faults("DES-07", "the last descriptor left", counts(d), 10);
	NEED(pipe(pipes) == 0 && dup2(pipes[0], d) == d);
	check_err("DES-07", "its number is another file now", ev_ioctl(d, PERF_EVENT_IOC_ENABLE, 0),
		  ENOTTY);
}

CONFORM(numbers_reused)
{
	int fd = faults(false), other;
	u64 v[2];

	touch_pages(4);
	close(fd);
	check_err("CALL-15", "read of a closed descriptor", ev_read(fd, v, 8), EBADF);
	check_err("CALL-15", "ioctl of a closed descriptor", ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0),
		  EBADF);
	other = open("/dev/zero", O_RDWR);
	check_val("CALL-15", "its number is given to the next file", other == fd, 1);
	check_val("CALL-15", "which reads as itself", ev_read(other, v, 16), 16);
	close(other);
	other = faults(true);
	check_val("CALL-15", "and to the next event", other == fd, 1);
	check_val("CALL-15", "which starts at 0", (long long)ev_count(other), 0);
	NEED(syscall(SYS_close_range, other, other, 0) == 0);
	check_err("CALL-15", "close_range closes it", ev_read(other, v, 8), EBADF);
	fd = faults(true);
	NEED(syscall(SYS_close_range, fd, fd, 4 /* CLOSE_RANGE_CLOEXEC */) == 0);
	check_val("FLAG-04", "close_range may mark it close-on-exec", fcntl(fd, F_GETFD),
		  FD_CLOEXEC);
}

static void send_fd(int to, int fd)
{
	char c = 'x', control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&c, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	NEED(sendmsg(to, &msg, 0) == 1);
}

static int receive_fd(int from, int flags)
{
	char c, control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&c, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	int fd = -1;

	NEED(recvmsg(from, &msg, flags) == 1 && CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

/* An event travels over a socket, in both directions between parent and child. */
CONFORM(passed)
{
	int fd = faults(false), sv[2], got, status;
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	pid_t pid;

	touch_pages(8);
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		close(fd);
		close(sv[0]);
		fd = receive_fd(sv[1], 0);
		check_val("CALL-15", "a passed event is stopped by its receiver",
			  ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
		check_val("CALL-15", "a passed event is read by its receiver", ev_count(fd) >= 8,
			  1);
		attr.disabled = 0;
		fd = (int)ev_self(attr);
		NEED(fd >= 0);
		touch_pages(8);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0 &&
		     ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0) == 0 &&
		     ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		touch_pages(13);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
		send_fd(sv[1], fd);
		_exit(0);
	}
	close(sv[1]);
	counts(fd);
	send_fd(sv[0], fd);
	got = receive_fd(sv[0], MSG_CMSG_CLOEXEC);
	check_faults("CALL-15", "an event received from a child is its own",
		     (long long)ev_count(got), 13);
	check_val("FLAG-04", "MSG_CMSG_CLOEXEC", fcntl(got, F_GETFD), FD_CLOEXEC);
	NEED(waitpid(pid, &status, 0) == pid);
	check_faults("READ-15", "and readable when its opener is gone", (long long)ev_count(got),
		     13);
	check_val("CALL-15", "what the child stopped is stopped", counts(fd), 0);
}

/* The only descriptor is in a socket for a while. */
CONFORM(in_flight)
{
	int fd = faults(false), sv[2];

	touch_pages(8);
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
	counts(fd);
	send_fd(sv[0], fd);
	close(fd);
	touch_pages(10);
	fd = receive_fd(sv[1], 0);
	CHECK_ROW("CALL-15", ev_count(fd) >= 28,
		  "an event lives while its only descriptor is in a socket", "%lu", ev_count(fd));
	check_faults("CALL-15", "and counts afterwards", counts(fd), 10);
}

static int forked_fd;

static void child_uses(void)
{
	check_val("CALL-15", "a child stops the parent's event",
		  ev_ioctl(forked_fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	close(forked_fd);
}

CONFORM(forked)
{
	forked_fd = faults(false);
	touch_pages(8);
	counts(forked_fd);
	in_child(child_uses);
	check_val("CALL-15", "what a forked child stopped is stopped", counts(forked_fd), 0);
	NEED(ev_ioctl(forked_fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	check_faults("CALL-15", "a forked child's close leaves it alive", counts(forked_fd), 10);
}

CONFORM(many)
{
	int fds[100], closed = 0;

	touch_pages(8);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = faults(false);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i += 2)
		close(fds[i]);
	for (size_t i = 1; i < ARRAY_SIZE(fds); i += 2)
		closed += faults_are(counts(fds[i]), 10);
	check_val("DES-07", "100 events, every other closed: the rest count", closed, 50);
}
