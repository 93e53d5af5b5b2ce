/*
 * Records of what tasks do, and what becomes of a buffer that they fill: room, loss, overwriting,
 * wakeups. A change of name writes one of 32 bytes, so it takes no samples to fill a buffer.
 */
#include "conform/conform.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>

#define PAGE   4096
#define RECORD 32 /* COMM with a name of 8 to 15 characters */

static struct pe_attr on(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	attr.disabled = 0;
	return attr;
}

static struct pe_attr names(void)
{
	struct pe_attr attr = on();

	attr.comm = 1;
	return attr;
}

struct buffer {
	int fd;
	struct perf_event_mmap_page *page;
	const u8 *data;
	u64 size;
};

static struct buffer map(long fd, int pages, int prot)
{
	struct buffer b = {.fd = (int)fd, .size = (u64)pages * PAGE};

	NEED(fd >= 0);
	b.page = mmap(NULL, b.size + PAGE, prot, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	b.data = (const u8 *)b.page + PAGE;
	return b;
}

static struct buffer map_self(struct pe_attr attr, int prot)
{
	return map(ev_self(attr), 1, prot);
}

static u64 head(const struct buffer *b)
{
	return __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
}

static u64 word(const struct buffer *b, u64 at)
{
	u64 v;

	memcpy(&v, b->data + at % b->size, sizeof(v));
	return v;
}

static u32 half(const struct buffer *b, u64 at)
{
	u32 v;

	memcpy(&v, b->data + at % b->size, sizeof(v));
	return v;
}

static u32 type_at(const struct buffer *b, u64 at)
{
	return half(b, at);
}

static u16 misc_at(const struct buffer *b, u64 at)
{
	return (u16)half(b, at + 4);
}

static u16 size_at(const struct buffer *b, u64 at)
{
	return (u16)(half(b, at + 4) >> 16);
}

static void rename_self(int n)
{
	while (n--)
		prctl(PR_SET_NAME, "a-long-name");
}

static void to_cpu_0(void)
{
	run_on(0);
}

/* Of those that we may be on, so that it is not 0 if there is another. */
static int last_cpu(void)
{
	int last = 0;
	cpu_set_t set;

	NEED(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			last = cpu;
	return last;
}

/* [ATTR-16, ATTR-24] */
CONFORM(name)
{
	int last = last_cpu();
	struct pe_attr attr = names();
	struct buffer b;

	run_on(last);
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			   PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	prctl(PR_SET_NAME, "x");
	check_val("REC-03", "the type of a change of name", type_at(&b, 0), PERF_RECORD_COMM);
	check_val("MISC-09", "its misc", misc_at(&b, 0), 0);
	check_val("SAMP-30", "its size with a trailer of six words", size_at(&b, 0), 24 + 48);
	check_val("REC-03", "its pid", half(&b, 8) == (u32)getpid(), 1);
	check_val("REC-03", "its tid", half(&b, 12) == (u32)getpid(), 1);
	check_val("REC-03", "its name", word(&b, 16) == 'x', 1);
	check_val("SAMP-30", "TID comes first in the trailer", half(&b, 24) == (u32)getpid(), 1);
	check_val("SAMP-30", "then TIME", word(&b, 32) > 1000000, 1);
	check_val("SAMP-31", "ID, STREAM_ID and IDENTIFIER are one number",
		  word(&b, 40) && word(&b, 40) == word(&b, 48) && word(&b, 40) == word(&b, 64), 1);
	check_val("SAMP-30", "then CPU", half(&b, 56) == (u32)last, 1);
	check_val("SAMP-30", "behind CPU there are zeros", half(&b, 60), 0);
	prctl(PR_SET_NAME, "y");
	check_val("SAMP-30", "times grow", word(&b, 72 + 32) >= word(&b, 32), 1);
}

/* [ATTR-15, ATTR-23, ATTR-29, ATTR-30] */
CONFORM(mapping)
{
	struct pe_attr attr = on();
	struct buffer b, both;
	char path[64];
	int fd = open("/proc/self/exe", O_RDONLY);
	void *p;
	u64 at;

	NEED(fd >= 0);
	attr.mmap = 1;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	attr.mmap2 = attr.mmap_data = 1;
	both = map(ev_self(attr), 16, PROT_READ | PROT_WRITE);
	p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	NEED(p != MAP_FAILED);
	check_val("REC-01", "the type of a mapping of code", type_at(&b, 0), PERF_RECORD_MMAP);
	check_val("MISC-09", "its misc is USER", misc_at(&b, 0), PERF_RECORD_MISC_USER);
	check_val("REC-01", "a mapping's pid", half(&b, 8) == (u32)getpid(), 1);
	check_val("REC-01", "its address", word(&b, 16) == (u64)p, 1);
	check_val("REC-01", "its length", (long long)word(&b, 24), PAGE);
	check_val("REC-01", "its place in the file, in bytes", (long long)word(&b, 32), PAGE);
	memcpy(path, b.data + 40, sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	check_val("REC-01", "its file begins with a slash", path[0], '/');
	/* The first that it tells of is its own buffer. */
	at = size_at(&both, 0);
	check_val("REC-09", "the type with mmap2", type_at(&both, at), PERF_RECORD_MMAP2);
	check_val("REC-09", "its protection", half(&both, at + 64), PROT_READ | PROT_EXEC);
	check_val("REC-09", "its flags", half(&both, at + 68), MAP_PRIVATE);
	check_val("REC-09", "it has an inode", word(&both, at + 48) != 0, 1);
	at += size_at(&both, at);
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check_val("MISC-02", "the misc of what is no code", misc_at(&both, at),
		  PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA);
	check_val("REC-01", "what is no file is //anon", !memcmp(both.data + at + 72, "//anon", 7),
		  1);
	check_val("MISC-02", "without mmap_data nobody hears of it", head(&b) == size_at(&b, 0), 1);
}

/* Of the first growth the kernel does not know yet that it is the heap's. */
CONFORM(heap)
{
	struct pe_attr attr = on();
	struct buffer b;
	u64 was, at;

	attr.mmap = attr.mmap_data = 1;
	b = map(ev_self(attr), 16, PROT_READ | PROT_WRITE);
	NEED(sbrk(4 * PAGE) != (void *)-1);
	at = head(&b);
	was = (u64)sbrk(4 * PAGE);
	NEED(was != (u64)-1);
	check_val("REC-01", "the heap's growth is told of, once", head(&b) == at + size_at(&b, at),
		  1);
	check_val("REC-01", "up to its end",
		  word(&b, at + 16) + word(&b, at + 24) >= was + 4 * PAGE, 1);
	check_val("REC-01", "it is [heap]", !memcmp(b.data + at + 40, "[heap]", 7), 1);
	check_val("MISC-02", "and no code", misc_at(&b, at),
		  PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA);
}

/* [ATTR-18, ATTR-20] */
CONFORM(tasks)
{
	struct pe_attr attr = on();
	struct buffer b, own;
	pid_t pid;
	u64 at;

	to_cpu_0();
	attr.task = 1;
	own = map_self(attr, PROT_READ | PROT_WRITE);
	attr.inherit = attr.inherit_stat = 1;
	attr.read_format = PERF_FORMAT_ID;
	b = map(ev_open(&attr, 0, 0, -1, 0), 1, PROT_READ | PROT_WRITE);
	pid = fork();
	if (!pid)
		_exit(0);
	NEED(pid > 0 && waitpid(pid, NULL, 0) == pid);
	check_val("REC-06", "the type of a fork", type_at(&b, 0), PERF_RECORD_FORK);
	check_val("REC-06", "its size", size_at(&b, 0), 32);
	check_val("MISC-09", "a fork's misc", misc_at(&b, 0), 0);
	check_val("REC-06", "its pid and tid are the child's",
		  half(&b, 8) == (u32)pid && half(&b, 16) == (u32)pid, 1);
	check_val("REC-06", "its ppid and ptid are the parent's",
		  half(&b, 12) == (u32)getpid() && half(&b, 20) == (u32)getpid(), 1);
	at = size_at(&b, 0);
	check_val("REC-04", "the type of an end", type_at(&b, at), PERF_RECORD_EXIT);
	check_val("MISC-09", "an end's misc", misc_at(&b, at), 0);
	check_val("REC-04", "its pid is the child's", half(&b, at + 8) == (u32)pid, 1);
	check_val("REC-04", "its ppid is the parent's", half(&b, at + 12) == (u32)getpid(), 1);
	check_val("REC-04", "and so is its ptid", half(&b, at + 20) == (u32)getpid(), 1);
	at += size_at(&b, at);
	check_val("REC-07", "READ comes behind the end", type_at(&b, at), PERF_RECORD_READ);
	check_val("REC-07", "its pid", half(&b, at + 8) == (u32)pid, 1);
	check_val("REC-07", "and nothing more", head(&b) == at + size_at(&b, at), 1);
	check_val("REC-04", "an event that is not inherited hears of the fork alone",
		  head(&own) == 32 && type_at(&own, 0) == PERF_RECORD_FORK, 1);
}

static void *named(void *tid)
{
	*(pid_t *)tid = gettid();
	prctl(PR_SET_NAME, "of-a-thread");
	NEED(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	return NULL;
}

/* Of a thread the process is the same and the thread is not. */
CONFORM(threads)
{
	struct pe_attr attr = names();
	u64 at, found = 0, right = 0;
	const u32 me = (u32)getpid();
	struct buffer b;
	pthread_t thread;
	pid_t tid = 0;

	to_cpu_0();
	attr.inherit = attr.mmap = attr.mmap_data = 1;
	b = map(ev_open(&attr, 0, 0, -1, 0), 4, PROT_READ | PROT_WRITE);
	NEED(!pthread_create(&thread, NULL, named, &tid) && !pthread_join(thread, NULL));
	/* It may end a little after it was waited for. */
	for (int i = 0; i < 1000 && !(found & BIT(PERF_RECORD_EXIT)); i++, usleep(1000))
		for (at = 0, found = 0; at < head(&b); at += size_at(&b, at))
			found |= BIT(type_at(&b, at));
	for (at = 0, found = 0; at < head(&b); at += size_at(&b, at)) {
		u32 type = type_at(&b, at);
		u32 ids[4] = {half(&b, at + 8), half(&b, at + 12), half(&b, at + 16),
			      half(&b, at + 20)};
		bool its = ids[1] == (u32)tid;

		if (type == PERF_RECORD_COMM || (type == PERF_RECORD_MMAP && its))
			right |= ids[0] == me && its ? BIT(type) : 0;
		else if (type == PERF_RECORD_FORK)
			right |= ids[0] == me && ids[1] == me && ids[2] == (u32)tid && ids[3] == me
					 ? BIT(type)
					 : 0;
		else if (type == PERF_RECORD_EXIT)
			right |= ids[0] == me && ids[1] == (u32)getppid() && ids[2] == (u32)tid &&
						 ids[3] == (u32)getppid()
					 ? BIT(type)
					 : 0;
		found |= BIT(type);
	}
	check_val("REC-06", "a thread's beginning: its parent is who has made it",
		  !!(right & BIT(PERF_RECORD_FORK)), 1);
	check_val("REC-03", "a thread's name", !!(right & BIT(PERF_RECORD_COMM)), 1);
	check_val("REC-01", "a thread's mapping", !!(right & BIT(PERF_RECORD_MMAP)), 1);
	check_val("REC-04", "a thread's end: its parent is the process's",
		  !!(right & BIT(PERF_RECORD_EXIT)), 1);
}

CONFORM_EXEC(nothing)
{
	return arg;
}

CONFORM(exec)
{
	struct pe_attr attr = names();
	struct buffer b;
	u64 at = 0;
	int code = 0;
	pid_t pid;

	to_cpu_0();
	attr.inherit = attr.mmap = 1;
	b = map(ev_open(&attr, 0, 0, -1, 0), 4, PROT_READ | PROT_WRITE);
	pid = fork();
	if (!pid)
		exec_self("nothing", 0);
	NEED(pid > 0 && waitpid(pid, NULL, 0) == pid);
	check_val("REC-06", "a fork is told to whom asks for names", type_at(&b, at),
		  PERF_RECORD_FORK);
	at += size_at(&b, at);
	check_val("REC-03", "first the name", type_at(&b, at), PERF_RECORD_COMM);
	check_val("MISC-03", "which tells that it is an exec's", misc_at(&b, at),
		  PERF_RECORD_MISC_COMM_EXEC);
	check_val("REC-03", "its tid is the child's", half(&b, at + 12) == (u32)pid, 1);
	for (at += size_at(&b, at); at < head(&b); at += size_at(&b, at))
		code += type_at(&b, at) == PERF_RECORD_MMAP;
	check_val("REC-01", "then the program, its loader and more", code >= 3, 1);
}

CONFORM(who_is_on)
{
	struct pe_attr attr = names();
	struct buffer b;

	attr.disabled = 1;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	rename_self(3);
	check_val("REC-21", "an event that is off hears of nothing", (long long)head(&b), 0);
	ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0);
	rename_self(1);
	check_val("REC-21", "once it is on it does", (long long)head(&b), RECORD);
}

CONFORM(full)
{
	struct pe_attr attr = names();
	u64 lost[2], id = 0;
	struct buffer b;

	attr.read_format = PE_FORMAT_LOST;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	rename_self(140);
	check_val("RING-05", "127 records of 32 bytes fit into 4096", (long long)head(&b),
		  127 * RECORD);
	NEED(ev_read(b.fd, lost, sizeof(lost)) == sizeof(lost));
	check_val("RING-05", "the others are counted", (long long)lost[1], 13);
	b.page->data_tail = head(&b);
	prctl(PR_SET_NAME, "roundabout");
	check_val("RING-06", "LOST comes first", type_at(&b, 127 * RECORD), PERF_RECORD_LOST);
	check_val("MISC-09", "LOST's misc", misc_at(&b, 127 * RECORD), 0);
	check_val("REC-02", "LOST's size", size_at(&b, 127 * RECORD), 24);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ID, (unsigned long)&id) == 0);
	check_val("REC-02", "it has the event's id", word(&b, 127 * RECORD + 8) == id, 1);
	check_val("REC-02", "it tells how many", (long long)word(&b, 127 * RECORD + 16), 13);
	check_val("RING-04", "the next one goes round the end", type_at(&b, 127 * RECORD + 24),
		  PERF_RECORD_COMM);
	check_val("RING-04", "with all that it has",
		  !memcmp(b.data + (127 * RECORD + 24 + 16) % PAGE, "roundabout", 11), 1);
	check_val("PAGE-17", "the head only grows", (long long)head(&b),
		  127 * RECORD + 24 + RECORD);
}

/* [ATTR-33] */
CONFORM(overwritten)
{
	struct pe_attr attr = names();
	struct buffer b = map_self(attr, PROT_READ);

	rename_self(300);
	check_val("RING-07", "a read-only mapping is never full", (long long)head(&b),
		  300 * RECORD);
	attr.write_backward = 1;
	b = map_self(attr, PROT_READ);
	rename_self(3);
	check_val("RING-08", "backward the head goes down", (long long)head(&b), -3 * RECORD);
	check_val("RING-08", "the newest record is at the head", type_at(&b, head(&b)),
		  PERF_RECORD_COMM);
}

static int ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDNORM};

	NEED(poll(&p, 1, 0) >= 0);
	return p.revents;
}

/* After how many records poll says something, while the reader keeps up. */
static int woken_after(struct buffer *b)
{
	for (int n = 1; n < 1000; n++) {
		rename_self(1);
		b->page->data_tail = head(b);
		if (ready(b->fd))
			return n;
	}
	return -1;
}

/* [ATTR-21] */
CONFORM(wakeups)
{
	struct pe_attr attr = names();
	struct epoll_event e = {EPOLLIN, {.fd = 0}}, got = {0};
	struct buffer b = map_self(attr, PROT_READ | PROT_WRITE);
	int ep = epoll_create1(0);

	check_val("OVF-02", "nothing yet", ready(b.fd), 0);
	check_val("RING-10", "without a number at half the buffer", woken_after(&b), 65);
	attr.wakeup_events = 1;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	check_val("RING-09", "a number is of samples", woken_after(&b), 65);
	attr.watermark = 1;
	attr.wakeup_watermark = 100;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	check_val("RING-11", "more than 100 bytes", woken_after(&b), 4);
	check_val("RING-11", "again", woken_after(&b), 3);
	attr.wakeup_watermark = 1;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	rename_self(1);
	check_val("OVF-02", "what poll says", ready(b.fd), POLLIN | POLLRDNORM);
	check_val("OVF-02", "it says so once", ready(b.fd), 0);
	NEED(ep >= 0 && epoll_ctl(ep, EPOLL_CTL_ADD, b.fd, &e) == 0);
	check_val("OVF-02", "epoll has nothing", epoll_wait(ep, &got, 1, 0), 0);
	rename_self(1);
	check_val("OVF-02", "epoll has the next one", epoll_wait(ep, &got, 1, 2000), 1);
	check_val("OVF-02", "which is", (long long)got.events, EPOLLIN);
	check_val("OVF-02", "once as well", epoll_wait(ep, &got, 1, 0), 0);
}

/* A wakeup while somebody waits. */
CONFORM(waiting)
{
	struct pe_attr attr = names();
	struct buffer b;
	struct pollfd p;
	pid_t pid;

	to_cpu_0();
	attr.watermark = attr.inherit = 1;
	attr.wakeup_watermark = 1;
	b = map(ev_open(&attr, 0, 0, -1, 0), 1, PROT_READ | PROT_WRITE);
	ready(b.fd);
	pid = fork();
	if (!pid) {
		for (;;) {
			usleep(20000);
			rename_self(1);
		}
	}
	p = (struct pollfd){.fd = b.fd, .events = POLLIN};
	for (int i = 0; i < 3; i++)
		NEED(poll(&p, 1, 10000) == 1);
	check_val("OVF-02", "poll is woken by what a child does", p.revents, POLLIN);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

CONFORM(paused)
{
	struct buffer b = map_self(names(), PROT_READ | PROT_WRITE);

	check_err("IOC-10", "a pause", ev_ioctl(b.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), 0);
	rename_self(10);
	check_val("IOC-10", "nothing is written", (long long)head(&b), 0);
	check_err("IOC-10", "its end", ev_ioctl(b.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0), 0);
	rename_self(1);
	check_val("IOC-10", "then LOST", type_at(&b, 0), PERF_RECORD_LOST);
	check_val("IOC-10", "of ten", (long long)word(&b, 16), 10);
	b = map(ev_self(names()), 0, PROT_READ);
	check_err("IOC-10", "a pause of a page alone",
		  ev_ioctl(b.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), EINVAL);
	check_err("IOC-10", "the end of one", ev_ioctl(b.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0),
		  EINVAL);
}

CONFORM(redirected)
{
	struct pe_attr attr = names();
	struct buffer b;
	long other;

	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	other = ev_self(attr);
	NEED(other >= 0);
	NEED(ev_ioctl((int)other, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)b.fd) == 0);
	rename_self(1);
	check_val("IOC-06", "both write into one buffer", (long long)head(&b), 2 * (RECORD + 8));
	check_val("IOC-06", "each with its own id", word(&b, RECORD) != word(&b, 2 * RECORD + 8),
		  1);
	munmap(b.page, b.size + PAGE);
	check_val("RING-15", "when it is unmapped the other has none either",
		  ready((int)other) & POLLHUP, POLLHUP);
}

/* [ATTR-32] The thread goes when it sleeps, and comes when it goes on. */
CONFORM(switches)
{
	struct pe_attr attr = on();
	u64 at, gone = 0, come = 0, turns = 0, times = 0, last = 0, others = 0;
	struct buffer b;
	bool away = false;

	attr.disabled = 1;
	attr.context_switch = attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	b = map_self(attr, PROT_READ | PROT_WRITE);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 10; i++)
		usleep(1000);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (at = 0; at < head(&b); at += size_at(&b, at)) {
		bool out = misc_at(&b, at) & PERF_RECORD_MISC_SWITCH_OUT;

		others += type_at(&b, at) != PERF_RECORD_SWITCH || size_at(&b, at) != 24 ||
			  half(&b, at + 12) != (u32)gettid();
		gone += out && !(misc_at(&b, at) & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		come += !out;
		turns += at && out == away;
		away = out;
		times += word(&b, at + 16) <= last;
		last = word(&b, at + 16);
	}
	CHECK_ROW("REC-13", gone >= 10, "a record for each time that it goes to sleep", "%lu",
		  gone);
	CHECK_ROW("MISC-04", come >= 9, "and that it comes back", "%lu", come);
	check_val("MISC-06", "it goes and comes in turn", (long long)turns, 0);
	check_val("REC-13", "each is later than the one before", (long long)times, 0);
	check_val("REC-13", "they are SWITCH, with a trailer and nothing else", (long long)others,
		  0);
}
