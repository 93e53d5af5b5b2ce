/*
 * Samples of instructions [SAMP, OVF]. Where a machine has a PMU it is the PMU's skid that decides
 * where they are; the virtual PMU's are exact: as many as the count has periods, each at the
 * instruction that ends one.
 */
#include "conform/records.h"
#include "conform/region.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/signalfd.h>

static struct pe_attr every(u64 period, u64 sample_type)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	attr.sample_period = period;
	attr.sample_type = sample_type;
	return attr;
}

static bool exact(const char *row, const char *text)
{
	struct pe_attr attr = every(100000, PERF_SAMPLE_IP);

	if (virtual_world() && try_self(attr) == 0)
		return true;
	skip_row(row, text, "samples are exact on the virtual PMU only");
	return false;
}

CONFORM(as_many_as_periods)
{
	static const u64 periods[] = {97, 1000, 4096, 99991};

	if (!exact("OVF-01", "as many samples as the count has periods"))
		return;
	for (size_t i = 0; i < sizeof(periods) / sizeof(*periods); i++) {
		struct buffer b = map(ev_self(every(periods[i], PERF_SAMPLE_IP)));
		u64 count;

		REGION(b.fd, LOOP(65536));
		count = ev_count(b.fd);
		CHECK_ROW("OVF-01", count == 2 * 65536 + 1 + REGION_REST,
			  i ? "the count again" : "the count is what it is without samples", "%lu",
			  count);
		CHECK_ROW("OVF-01", samples(&b) == count / periods[i],
			  i == 0   ? "as many samples as the count has periods of 97"
			  : i == 1 ? "of 1000"
			  : i == 2 ? "of 4096"
				   : "of 99991",
			  "%lu of %lu", samples(&b), count);
		unmap(&b);
	}
}

/* IP, PERIOD and READ of each: where the count was a multiple of the period. */
CONFORM(where)
{
	struct pe_attr attr = every(1000, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD |
						  PERF_SAMPLE_READ);
	u64 n = 0, near = 0, right = 0;
	struct buffer b;
	const u64 *p;

	if (!exact("SAMP-10", "each sample's count is a multiple of the period"))
		return;
	b = map(ev_self(attr));
	REGION(b.fd, LOOP(4096));
	while ((p = next_sample(&b))) {
		n++;
		right += p[2] == 1000 && p[3] == n * 1000;
		near += p[0] - (u64)conform_broken < 1 << 24 ||
			(u64)conform_broken - p[0] < 1 << 24;
	}
	check_val("SAMP-10", "each sample's count is a multiple of the period",
		  n == right && n == 8, 1);
	check_val("SAMP-02", "each is in this program", near == n, 1);
}

CONFORM(precise)
{
	struct pe_attr attr = every(1000, PERF_SAMPLE_IP);
	struct perf_event_header h;
	struct buffer b;

	if (!exact("MISC-05", "EXACT_IP with precise_ip 2"))
		return;
	for (unsigned int level = 0; level < 4; level++) {
		attr.precise_ip = level & 3;
		b = map(ev_self(attr));
		REGION(b.fd, LOOP(1024));
		memcpy(&h, b.data, sizeof(h));
		CHECK_ROW("MISC-05", !!(h.misc & PERF_RECORD_MISC_EXACT_IP) == (level >= 2),
			  level == 0   ? "no EXACT_IP with precise_ip 0"
			  : level == 1 ? "nor with 1"
			  : level == 2 ? "EXACT_IP with precise_ip 2"
				       : "and with 3",
			  "misc %x", h.misc);
		unmap(&b);
	}
}

CONFORM(refresh)
{
	struct pe_attr attr = every(1000, PERF_SAMPLE_IP);
	struct pollfd p = {.events = POLLIN};
	struct buffer b;

	if (!exact("OVF-08", "three overflows"))
		return;
	attr.wakeup_events = 1;
	b = map(ev_self(attr));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_REFRESH, 3) == 0);
	asm volatile(LOOP(65536)::: LOOP_CLOBBERS);
	check_val("OVF-08", "three overflows", (long long)samples(&b), 3);
	check_val("OVF-08", "it is off at the third", (long long)ev_count(b.fd), 3000);
	p.fd = b.fd;
	check_val("RING-09", "a wakeup for a sample", poll(&p, 1, 0) == 1 && p.revents == POLLIN,
		  1);
}

static volatile int signals, last_ones, signal_fd, signal_code, signal_band;

static void on_signal(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)context;
	signals++;
	last_ones += si->si_code == POLL_HUP;
	signal_fd = si->si_fd;
	signal_code = si->si_code;
	signal_band = (int)si->si_band;
}

/* Each overflow is a signal, with a buffer and without one. */
CONFORM(overflow_signals)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	int fd;

	if (!exact("OVF-06", "a signal for each overflow"))
		return;
	NEED(sigaction(SIGRTMIN, &sa, NULL) == 0);
	for (int with = 0; with < 2; with++) {
		fd = (int)ev_self(every(1000, PERF_SAMPLE_IP));
		NEED(fd >= 0);
		if (with)
			map(fd);
		NEED(fcntl(fd, F_SETSIG, SIGRTMIN) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0);
		NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) == 0);
		check_val("OVF-05",
			  with ? "no signal before the first, with a buffer"
			       : "no signal before the first",
			  signals, 0);
		REGION(fd, LOOP(4096));
		check_val("OVF-06",
			  with ? "a signal for each overflow, with a buffer"
			       : "a signal for each overflow",
			  signals, 8);
		check_val("OVF-05", with ? "its descriptor again" : "its descriptor",
			  signal_fd == fd, 1);
		check_val("OVF-05", with ? "its band again" : "its band", signal_band,
			  POLLIN | POLLRDNORM);
		signals = 0;
		NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC) == 0);
		REGION(fd, LOOP(4096));
		check_val("OVF-05",
			  with ? "none without O_ASYNC, with a buffer" : "none without O_ASYNC",
			  signals, 0);
		NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) == 0);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 3) == 0);
		asm volatile(LOOP(65536)::: LOOP_CLOBBERS);
		check_val("OVF-08",
			  with ? "REFRESH 3 sends three, with a buffer" : "REFRESH 3 sends three",
			  signals, 3);
		check_val("OVF-08",
			  with ? "of which one is POLL_HUP, with a buffer"
			       : "of which one is POLL_HUP",
			  last_ones, 1);
		check_val("OVF-08", with ? "the last, with a buffer" : "the last", signal_code,
			  POLL_HUP);
		check_val("OVF-05", with ? "whose band it has again" : "whose band it has",
			  signal_band, POLLHUP | POLLERR);
		signals = last_ones = 0;
		close(fd);
	}
}

/* The same for who waits for the signal instead of handling it. */
CONFORM(overflow_is_waited_for)
{
	const struct timespec soon = {.tv_sec = 10};
	sigset_t set;
	siginfo_t si;
	int fd;

	if (!exact("OVF-08", "signals that are waited for"))
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	fd = (int)ev_self(every(1000, PERF_SAMPLE_IP));
	NEED(fd >= 0);
	NEED(fcntl(fd, F_SETSIG, SIGRTMIN) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0);
	NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) == 0);
	for (int turn = 0; turn < 2; turn++) {
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0);
		asm volatile(LOOP(65536)::: LOOP_CLOBBERS);
		NEED(sigtimedwait(&set, &si, &soon) == SIGRTMIN);
		check_val("OVF-08", turn ? "the other is POLL_HUP" : "one is POLL_HUP", si.si_code,
			  POLL_HUP);
	}
	close(fd);
}

/* And for who reads it from a descriptor. */
CONFORM(overflow_is_read)
{
	struct signalfd_siginfo si[4];
	sigset_t set;
	int fd, sfd;

	if (!exact("OVF-08", "signals that are read"))
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	sfd = signalfd(-1, &set, SFD_NONBLOCK);
	fd = (int)ev_self(every(1000, PERF_SAMPLE_IP));
	NEED(fd >= 0 && sfd >= 0);
	NEED(fcntl(fd, F_SETSIG, SIGRTMIN) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0);
	NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 3) == 0);
	asm volatile(LOOP(65536)::: LOOP_CLOBBERS);
	check_val("OVF-06", "a signalfd has all three", read(sfd, si, sizeof(si)), 3 * sizeof(*si));
	check_val("OVF-08", "the first of them is POLL_IN", si[0].ssi_code, POLL_IN);
	check_val("OVF-08", "the last of them is POLL_HUP", si[2].ssi_code, POLL_HUP);
	check_val("OVF-05", "with its band there", si[2].ssi_band, POLLHUP | POLLERR);
	close(fd);
}

/* sigtrap: before the next instruction, and without a buffer. */
CONFORM(sigtrap)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	struct pe_attr attr = every(1000, 0);
	int fd;

	if (!exact("OVF-11", "a SIGTRAP for each period"))
		return;
	attr.sigtrap = attr.remove_on_exec = 1;
	NEED(sigaction(SIGTRAP, &sa, NULL) == 0);
	fd = (int)ev_self(attr);
	NEED(fd >= 0);
	signals = 0;
	REGION(fd, LOOP(4096));
	/* What the handler executes is counted too. */
	CHECK_ROW("OVF-11", (u64)signals == ev_count(fd) / 1000 && signals >= 8,
		  "a SIGTRAP for each period", "%d of %lu", signals, ev_count(fd));
	check_val("OVF-11", "of code TRAP_PERF", signal_code, 6);
}

CONFORM(period)
{
	u64 period = 500;
	struct buffer b;

	if (!exact("IOC-05", "another period"))
		return;
	b = map(ev_self(every(100000, PERF_SAMPLE_IP)));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period) == 0);
	REGION(b.fd, LOOP(4096));
	check_val("IOC-05", "another period", (long long)samples(&b), 8196 / 500);
}

CONFORM(frequency)
{
	struct pe_attr attr = every(0, PERF_SAMPLE_IP);
	struct buffer b;

	if (!exact("OVF-10", "a frequency"))
		return;
	attr.freq = 1;
	attr.sample_freq = 1000;
	b = map(ev_self(attr));
	REGION(b.fd, LOOP(33554432));
	check_val("OVF-10", "a frequency", samples(&b) >= 5, 1);
}

static void *work(void *unused)
{
	asm volatile(LOOP(65536)::: LOOP_CLOBBERS);
	return unused;
}

/* Each task has its own periods; nothing of any of them is lost. */
CONFORM(tasks)
{
	struct pe_attr attr = every(1000, PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	pthread_t threads[3];
	u64 count, n;
	cpu_set_t set;
	struct buffer b;
	pid_t pid;

	if (!exact("INH-03", "samples of threads and of a child"))
		return;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
	attr.inherit = 1;
	attr.disabled = 0;
	b = map(ev_open(&attr, 0, 0, -1, 0));
	for (int i = 0; i < 3; i++)
		NEED(pthread_create(&threads[i], NULL, work, NULL) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	pid = fork();
	if (!pid) {
		work(NULL);
		_exit(0);
	}
	NEED(pid > 0 && waitpid(pid, NULL, 0) == pid);
	ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0);
	count = ev_count(b.fd);
	n = samples(&b);
	CHECK_ROW("INH-03", count > 4 * 131072 && n <= count / 1000 && n + 5 > count / 1000,
		  "samples of threads and of a child", "%lu of %lu", n, count);
}
