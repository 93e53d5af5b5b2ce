/*
 * Waiting for events that only count: whoever waits is woken when there is nothing left to wait
 * for, and nobody gets a signal [OVF-01, OVF-04, OVF-05].
 */
#include "conform/conform.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define LONG_MS 20000 /* nobody waits that long who is woken */

static int faults_of(pid_t pid)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	long fd;

	attr.disabled = 0;
	fd = ev_open(&attr, pid, -1, -1, 0);
	NEED(fd >= 0);
	return (int)fd;
}

static void *map_page(int fd)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	NEED(page != MAP_FAILED);
	return page;
}

/* How a program may wait: each answers whether it was woken by a hang-up. */
static bool by_poll(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	return poll(&p, 1, LONG_MS) == 1 && p.revents == POLLHUP;
}

static bool by_ppoll(int fd)
{
	struct pollfd p = {fd, 0, 0};

	return ppoll(&p, 1, NULL, NULL) == 1 && p.revents == POLLHUP;
}

static bool by_select(int fd)
{
	struct timeval patience = {LONG_MS / 1000, 0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &patience) == 1 && FD_ISSET(fd, &set);
}

static bool by_pselect(int fd)
{
	struct timespec patience = {LONG_MS / 1000, 0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return pselect(fd + 1, &set, NULL, NULL, &patience, NULL) == 1 && FD_ISSET(fd, &set);
}

static bool by_epoll(int fd)
{
	struct epoll_event e = {EPOLLIN, {.fd = fd}}, got = {0};
	int ep = epoll_create1(0);
	bool woken;

	NEED(ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
	woken = epoll_wait(ep, &got, 1, LONG_MS) == 1 && got.events == EPOLLHUP;
	close(ep);
	return woken;
}

static const struct way {
	const char *exits, *killed, *unmapped;
	bool (*wait)(int fd);
} ways[] = {
	{"poll is woken when the target exits", "poll is woken when the target is killed",
	 "poll is woken when the buffer goes", by_poll},
	{"ppoll is woken when the target exits", "ppoll is woken when the target is killed",
	 "ppoll is woken when the buffer goes", by_ppoll},
	{"select is woken when the target exits", "select is woken when the target is killed",
	 "select is woken when the buffer goes", by_select},
	{"pselect6 is woken when the target exits", "pselect6 is woken when the target is killed",
	 "pselect6 is woken when the buffer goes", by_pselect},
	{"epoll_wait is woken when the target exits",
	 "epoll_wait is woken when the target is killed",
	 "epoll_wait is woken when the buffer goes", by_epoll},
};

static pid_t mortal(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		sleep_ms(60);
		_exit(0);
	}
	return pid;
}

CONFORM(target_exits)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		pid_t pid = mortal();
		int fd = faults_of(pid);

		map_page(fd);
		check_val("OVF-04", ways[i].exits, ways[i].wait(fd), 1);
		check_val("OVF-04", "and hangs up from then on", by_poll(fd), 1);
		NEED(waitpid(pid, NULL, 0) == pid);
		close(fd);
	}
}

CONFORM(target_killed)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		pid_t pid = fork(), killer;
		int fd;

		NEED(pid >= 0);
		if (pid == 0) {
			pause();
			_exit(0);
		}
		fd = faults_of(pid);
		map_page(fd);
		killer = fork();
		NEED(killer >= 0);
		if (killer == 0) {
			sleep_ms(60);
			kill(pid, SIGKILL);
			_exit(0);
		}
		check_val("OVF-04", ways[i].killed, ways[i].wait(fd), 1);
		NEED(waitpid(pid, NULL, 0) == pid && waitpid(killer, NULL, 0) == killer);
		close(fd);
	}
}

static pthread_barrier_t begun;
static pid_t thread_id;

static void *short_lived(void *arg)
{
	thread_id = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&begun);
	sleep_ms(60);
	return arg;
}

/* A thread of one's own, whose end nobody reaps. */
CONFORM(thread_ends)
{
	pthread_t thread;
	int fd;

	NEED(pthread_barrier_init(&begun, NULL, 2) == 0 &&
	     pthread_create(&thread, NULL, short_lived, NULL) == 0);
	pthread_barrier_wait(&begun);
	fd = faults_of(thread_id);
	map_page(fd);
	pthread_barrier_wait(&begun);
	check_val("OVF-04", "poll is woken when a thread ends", by_poll(fd), 1);
	NEED(pthread_join(thread, NULL) == 0);
}

/* Two wait for one event, in two processes, and so does an event that was already dead. */
CONFORM(several_wait)
{
	pid_t target = mortal(), other;
	int fd = faults_of(target), status, dead;

	map_page(fd);
	other = fork();
	NEED(other >= 0);
	if (other == 0)
		_exit(by_epoll(fd) ? 0 : 1);
	check_val("OVF-04", "one of two who wait is woken", by_poll(fd), 1);
	NEED(waitpid(other, &status, 0) == other);
	check_val("OVF-04", "and so is the other, in another process", status, 0);
	dead = fd;
	check_val("OVF-04", "an event of a dead task put into an epoll set", by_epoll(dead), 1);
	NEED(waitpid(target, NULL, 0) == target);
}

static void *page_to_unmap;

static void *unmaps(void *arg)
{
	sleep_ms(60);
	munmap(page_to_unmap, 4096);
	return arg;
}

CONFORM(unmapped)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		int fd = faults_of(0);
		pthread_t thread;

		page_to_unmap = map_page(fd);
		NEED(pthread_create(&thread, NULL, unmaps, NULL) == 0);
		check_val("OVF-03", ways[i].unmapped, ways[i].wait(fd), 1);
		NEED(pthread_join(thread, NULL) == 0);
		close(fd);
	}
}

/* With a buffer and a target that lives there is something to wait for. */
CONFORM(still_waits)
{
	int fd = faults_of(0), ep = epoll_create1(0);
	struct epoll_event e = {EPOLLIN, {.fd = fd}}, got = {0};
	struct pollfd p = {fd, POLLIN, 0};

	NEED(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
	map_page(fd);
	touch_pages(10);
	check_val("OVF-04", "poll of a mapped event that only counts", poll(&p, 1, 30), 0);
	check_val("OVF-04", "epoll_wait of one", epoll_wait(ep, &got, 1, 30), 0);
	check_val("OVF-04", "it counts meanwhile", ev_count(fd) >= 10, 1);
}

static volatile sig_atomic_t signals;

static void on_signal(int signo)
{
	(void)signo;
	signals++;
}

static int with_handlers(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	NEED(sigaction(SIGIO, &action, NULL) == 0 && sigaction(SIGRTMIN + 3, &action, NULL) == 0);
	return faults_of(0);
}

static void add_to_epoll(int fd)
{
	struct epoll_event e = {EPOLLIN, {.fd = fd}};
	int ep = epoll_create1(0);

	NEED(ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) == 0);
}

static void make_async(int fd, int signo)
{
	NEED(fcntl(fd, F_SETOWN, getpid()) == 0 && fcntl(fd, F_SETSIG, signo) == 0 &&
	     fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0);
}

/* All that one may do with it: other calls in between give the other side time to say something. */
static void use(int fd)
{
	void *page = map_page(fd);
	int other = faults_of(0);

	touch_pages(4);
	ev_count(fd);
	close(other);
	munmap(page, 4096);
	close(dup(fd));
	ev_count(fd);
	sleep_ms(5);
}

CONFORM(no_signals)
{
	static const int signo[] = {0, SIGIO, 37 /* of real time, with the C libraries' first */};
	struct pollfd p;
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(signo); i++) {
		signals = 0;
		fd = with_handlers();
		make_async(fd, signo[i]);
		add_to_epoll(fd);
		use(fd);
		check_val("OVF-05", "O_ASYNC, then epoll: no signal", signals, 0);
		fd = with_handlers();
		add_to_epoll(fd);
		make_async(fd, signo[i]);
		use(fd);
		check_val("OVF-05", "epoll, then O_ASYNC: no signal", signals, 0);
		fd = with_handlers();
		make_async(fd, signo[i]);
		p = (struct pollfd){fd, POLLIN, 0};
		NEED(poll(&p, 1, 0) == 1);
		use(fd);
		check_val("OVF-01", "poll of a counting event with O_ASYNC: no signal", signals, 0);
	}
}

/* The target's end wakes who polls, and sends nobody a signal. */
CONFORM(no_signal_of_an_end)
{
	pid_t pid = mortal();
	int fd;

	with_handlers();
	fd = faults_of(pid);
	map_page(fd);
	make_async(fd, 0);
	add_to_epoll(fd);
	check_val("OVF-04", "poll with O_ASYNC is woken when the target exits", by_poll(fd), 1);
	sleep_ms(5);
	check_val("OVF-01", "the end of the target sends no signal", signals, 0);
	NEED(waitpid(pid, NULL, 0) == pid);
}

static bool is_async(int fd)
{
	return fcntl(fd, F_GETFL) & O_ASYNC;
}

/* The flag is one of the open file, whoever shares it. */
CONFORM(async_flag)
{
	int fd = faults_of(0), copy = dup(fd), other = faults_of(0), on = 1, off = 0;
	pid_t pid;

	check_val("CALL-15", "O_ASYNC is off at first", is_async(fd), 0);
	check_err("CALL-15", "FIOASYNC", ioctl(fd, FIOASYNC, &on) ? -errno : 0, 0);
	check_val("CALL-15", "FIOASYNC sets O_ASYNC", is_async(fd), 1);
	check_val("CALL-15", "which a dup shares", is_async(copy), 1);
	check_val("CALL-15", "and another event does not", is_async(other), 0);
	check_err("CALL-15", "FIOASYNC off", ioctl(copy, FIOASYNC, &off) ? -errno : 0, 0);
	check_val("CALL-15", "takes it away", is_async(fd), 0);
	check_err("CALL-15", "FIOASYNC of a pointer that leads nowhere",
		  ioctl(fd, FIOASYNC, (void *)8) ? -errno : 0, EFAULT);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) ? 1 : 0);
	NEED(waitpid(pid, NULL, 0) == pid);
	check_val("CALL-15", "a child sets flags for its parent",
		  fcntl(fd, F_GETFL) & (O_ASYNC | O_NONBLOCK | O_ACCMODE),
		  O_ASYNC | O_NONBLOCK | O_RDWR);
	check_err("CALL-15", "F_SETFL 0", fcntl(fd, F_SETFL, 0) ? -errno : 0, 0);
	check_val("CALL-15", "F_SETFL 0 takes both away",
		  fcntl(fd, F_GETFL) & (O_ASYNC | O_NONBLOCK), 0);
	check_err("CALL-15", "F_SETFL O_DIRECT", fcntl(fd, F_SETFL, O_DIRECT) ? -errno : 0, EINVAL);
}
