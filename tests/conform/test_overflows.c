/*
 * What follows an overflow [OVF-05..08, OVF-10]: signals, REFRESH's end, and a period that goes
 * after a frequency. Of page faults, which every machine has. A kernel never throttles these; of
 * what it throttles it would take another setting of the whole machine to have more than allowed.
 */
#include "conform/records.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

static struct pe_attr faults(u64 period, u64 sample_type)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = period;
	attr.sample_type = sample_type;
	return attr;
}

static volatile int signals, ends, right;
static volatile int sender, last_code, last_band;
static volatile pid_t taker;

static void on_signal(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)context;
	signals++;
	ends += si->si_code == POLL_HUP;
	right += si->si_fd == sender && si->si_code == POLL_IN &&
		 si->si_band == (POLLIN | POLLRDNORM);
	last_code = si->si_code;
	last_band = (int)si->si_band;
	taker = gettid();
}

static void handle(int sig)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	NEED(sigaction(sig, &sa, NULL) == 0);
	signals = ends = right = 0;
}

static void send_signals(int fd, int sig)
{
	NEED(fcntl(fd, F_SETSIG, sig) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0);
	NEED(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC) == 0);
	sender = fd;
}

/* Everything was executed before when it counts. */
static void warm_up(void)
{
	int fd = (int)ev_self(faults(10, PERF_SAMPLE_IP));

	NEED(fd >= 0);
	handle(SIGRTMIN);
	send_signals(fd, SIGRTMIN);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch_pages(100);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	close(fd);
	handle(SIGRTMIN);
}

/* A buffer that would be full only after 1000 samples changes nothing. */
CONFORM(each_has_a_signal)
{
	static const char *const texts[][2] = {
		{"a signal for each overflow", "each with the descriptor, POLL_IN and its band"},
		{"with a buffer that wakes nobody, too", "each with them as well"},
	};

	warm_up();
	for (int with = 0; with < 2; with++) {
		struct pe_attr attr = faults(10, PERF_SAMPLE_IP);
		int fd;

		attr.wakeup_events = 1000;
		fd = (int)ev_self(attr);
		NEED(fd >= 0);
		if (with)
			map(fd);
		handle(SIGRTMIN);
		send_signals(fd, SIGRTMIN);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		touch_pages(500);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
		CHECK_ROW("OVF-06", signals >= 50 && (u64)signals == ev_count(fd) / 10,
			  texts[with][0], "%d of %lu", signals, ev_count(fd));
		CHECK_ROW("OVF-05", right == signals, texts[with][1], "%d of %d", right, signals);
		close(fd);
	}
}

/* The number of samples after which poll says something, time and again. */
CONFORM(wakeups)
{
	struct pe_attr attr = faults(10, PERF_SAMPLE_IP);
	struct pollfd p = {.events = POLLIN};
	u64 early = 0, late = 0, n = 0, before = 0;
	struct buffer b;

	warm_up();
	attr.wakeup_events = 3;
	b = map(ev_self(attr));
	p.fd = b.fd;
	NEED(poll(&p, 1, 0) >= 0);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 200; i++) {
		touch_pages(1);
		while (next(&b))
			n++;
		NEED(poll(&p, 1, 0) >= 0);
		if (n == before)
			continue;
		early += n % 3 && p.revents & POLLIN;
		late += n % 3 == 0 && !(p.revents & POLLIN);
		before = n;
	}
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	CHECK_ROW("RING-09", n >= 20, "wakeup_events 3: samples", "%lu", n);
	check_val("RING-09", "no wakeup at others than each third", (long long)early, 0);
	check_val("RING-09", "and one at each third", (long long)late, 0);
}

/* Who has not asked for details has none. */
CONFORM(without_details)
{
	int fd;

	warm_up();
	fd = (int)ev_self(faults(10, PERF_SAMPLE_IP));
	NEED(fd >= 0);
	handle(SIGIO);
	send_signals(fd, 0);
	sender = 0;
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0);
	touch_pages(20);
	check_val("OVF-05", "without F_SETSIG it is SIGIO", signals, 1);
	check_val("OVF-05", "which says that it is the kernel's", last_code, SI_KERNEL);
	check_val("OVF-05", "and no band", last_band, 0);
	close(fd);
}

/* Blocked, one that is not real-time is there once; the others queue. */
CONFORM(blocked)
{
	const struct {
		int sig;
		const char *text;
		int want;
	} cases[] = {
		{SIGIO, "of SIGIO the first one is kept", 1},
		{SIGRTMIN, "of a real-time signal all are", 5},
	};
	sigset_t set;

	warm_up();
	for (int i = 0; i < 2; i++) {
		int fd = (int)ev_self(faults(10, PERF_SAMPLE_IP));

		NEED(fd >= 0);
		handle(cases[i].sig);
		send_signals(fd, cases[i].sig);
		sigemptyset(&set);
		sigaddset(&set, cases[i].sig);
		NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
		touch_pages(55);
		NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
		NEED(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
		check_val("OVF-05", cases[i].text, signals, cases[i].want);
		close(fd);
	}
}

CONFORM(refresh)
{
	int fd;

	warm_up();
	fd = (int)ev_self(faults(10, PERF_SAMPLE_IP));
	NEED(fd >= 0);
	send_signals(fd, SIGRTMIN);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 4) == 0);
	touch_pages(200);
	check_val("OVF-08", "REFRESH 4 sends four", signals, 4);
	check_val("OVF-08", "three of them POLL_IN", right, 3);
	check_val("OVF-08", "the last POLL_HUP", ends == 1 && last_code == POLL_HUP, 1);
	check_val("OVF-05", "with its band", last_band, POLLHUP | POLLERR);
	check_val("OVF-08", "then the event is off", (long long)ev_count(fd), 40);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0);
	touch_pages(200);
	check_val("OVF-08", "once more one POLL_HUP", signals == 5 && ends == 2, 1);
	check_val("IOC-03", "after a period more", (long long)ev_count(fd), 50);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 2) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 3) == 0);
	touch_pages(200);
	check_val("IOC-03", "REFRESH 2 and then 3 are five", (long long)ev_count(fd), 100);
}

static pthread_barrier_t barrier;

static void *wait_for_signals(void *tid)
{
	*(pid_t *)tid = gettid();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* That thread, when it waits. */
static pthread_t begin_waiting(pid_t *tid)
{
	pthread_t thread;

	warm_up();
	NEED(!pthread_barrier_init(&barrier, NULL, 2));
	NEED(!pthread_create(&thread, NULL, wait_for_signals, tid));
	pthread_barrier_wait(&barrier);
	return thread;
}

/* Another thread than the one that overflows. */
CONFORM(owner)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID};
	pthread_t thread;
	pid_t tid = 0;
	int fd;

	thread = begin_waiting(&tid);
	fd = (int)ev_self(faults(10, PERF_SAMPLE_IP));
	NEED(fd >= 0);
	send_signals(fd, SIGRTMIN);
	owner.pid = tid;
	NEED(fcntl(fd, F_SETOWN_EX, &owner) == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0);
	touch_pages(100);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	check_val("OVF-07", "the signal comes", signals, 1);
	check_val("OVF-07", "to the thread that owns the descriptor", taker == tid, 1);
}

#define OWNERS 4

static __thread int own_signals, own_fd;
static int astray;

static void on_own_signal(int sig, siginfo_t *si, void *context)
{
	(void)sig, (void)context;
	own_signals++;
	if (si->si_fd != own_fd)
		__atomic_fetch_add(&astray, 1, __ATOMIC_RELAXED);
}

static struct owner {
	bool blocked; /* the signal, when it is made the owner */
	int type, pid, signals;
} owners[OWNERS];

/* F_SETOWN names the thread. */
static void *overflow(void *arg)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_TASK_CLOCK);
	struct f_owner_ex owner = {.type = F_OWNER_TID};
	struct owner *own = arg;
	sigset_t set;

	attr.sample_period = 500000;
	attr.exclude_kernel = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	own_fd = (int)ev_self(attr);
	NEED(own_fd >= 0);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	if (own->blocked)
		NEED(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	NEED(!fcntl(own_fd, F_SETSIG, SIGIO) && !fcntl(own_fd, F_SETOWN, gettid()));
	NEED(!fcntl(own_fd, F_SETFL, fcntl(own_fd, F_GETFL) | O_ASYNC));
	NEED(!fcntl(own_fd, F_GETOWN_EX, &owner));
	own->type = owner.type;
	own->pid = owner.pid;
	if (own->blocked)
		NEED(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	pthread_barrier_wait(&barrier);
	NEED(!ev_ioctl(own_fd, PERF_EVENT_IOC_ENABLE, 0));
	spin_ms(40);
	NEED(!ev_ioctl(own_fd, PERF_EVENT_IOC_DISABLE, 0));
	pthread_barrier_wait(&barrier);
	own->signals = own_signals;
	close(own_fd);
	return NULL;
}

CONFORM(owners)
{
	struct sigaction sa = {.sa_sigaction = on_own_signal, .sa_flags = SA_SIGINFO};
	pthread_t threads[OWNERS];
	int all = 0;

	NEED(sigaction(SIGIO, &sa, NULL) == 0);
	NEED(!pthread_barrier_init(&barrier, NULL, OWNERS));
	for (int i = 0; i < OWNERS; i++) {
		owners[i].blocked = i % 2;
		NEED(!pthread_create(&threads[i], NULL, overflow, &owners[i]));
	}
	for (int i = 0; i < OWNERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < OWNERS; i++) {
		check_val("OVF-07", "F_SETOWN makes a process the owner", owners[i].type,
			  F_OWNER_PID);
		check_val("OVF-07", "and shows none if it is no process's", owners[i].pid, 0);
		CHECK_ROW("OVF-07", owners[i].signals, "the thread of that number has signals",
			  "%d", owners[i].signals);
	}
	/* The kernel wakes that one first, and on a busy machine another may be quicker. */
	for (int i = 0; i < OWNERS; i++)
		all += owners[i].signals;
	CHECK_ROW("OVF-07", astray <= all / 10, "and hardly any of another thread's", "%d of %d",
		  astray, all);
}

/* The thread that is named blocks them from then on. */
CONFORM(owner_that_blocks)
{
	pthread_t thread;
	sigset_t set;
	pid_t tid = 0;
	int fd;

	thread = begin_waiting(&tid);
	fd = (int)ev_self(faults(10, PERF_SAMPLE_IP));
	NEED(fd >= 0);
	send_signals(fd, SIGRTMIN);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	NEED(!pthread_sigmask(SIG_BLOCK, &set, NULL));
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0);
	touch_pages(100);
	for (int i = 0; i < 100 && !signals; i++)
		usleep(10000);
	check_val("OVF-07", "the signal comes", signals, 1);
	check_val("OVF-07", "to a thread that takes it", taker == tid, 1);
	NEED(!pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0);
	touch_pages(100);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	check_val("OVF-07", "once more, and it takes it", signals == 2 && taker == getpid(), 1);
}

/* It begins with every fault, and goes to what the frequency asks for. */
CONFORM(frequency)
{
	struct pe_attr attr = faults(0, PERF_SAMPLE_PERIOD);
	const struct perf_event_header *h;
	struct buffer b;
	u64 n = 0, first = 0, most = 0;

	attr.freq = 1;
	attr.sample_freq = 1000;
	b = map(ev_self(attr));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 20; i++)
		touch_pages(2000);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((h = next(&b))) {
		u64 period = *words_of(h);

		if (h->type != PERF_RECORD_SAMPLE)
			continue;
		if (!n++)
			first = period;
		if (period > most)
			most = period;
	}
	check_val("OVF-10", "the first period of a frequency", (long long)first, 1);
	CHECK_ROW("OVF-10", most >= 10, "faults that come fast make it longer", "%lu", most);
	CHECK_ROW("OVF-10", n >= 3 && n < ev_count(b.fd) / 4, "and samples fewer", "%lu of %lu", n,
		  ev_count(b.fd));
}
