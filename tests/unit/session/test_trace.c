/*
 * A thread's trace as the session drains it, and what a guest that lies gets out of it. Guests are
 * processes without a runtime: they write into their trace what they like.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

#define RING_DATA (64 * 4096ul)
#define PERIOD    1000

static struct session *s;

/* Of a guest, in its process. */
static struct mock g;
static struct trace *trace;
static struct perf_event_mmap_page *page;
static u64 handle;
static u64 counted;

static void start(void)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	char why[300];

	if (session_new(&config, &s, why, sizeof(why))) {
		fprintf(stderr, "session_new: %s\n", why);
		exit(1);
	}
}

static pid_t fork_guest(void (*body)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(50);
	mock_init(&g, session_segment_fd(s), session_bootstrap_fd(s));
	NEED(mock_hello(&g, -1, 0) == 0);
	trace = g.trace;
	body();
	_exit(0);
}

static int serve_until_exit(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0)
		session_run(s, 10);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static struct pe_attr sampling(void)
{
	struct pe_attr attr = mock_attr();

	attr.disabled = 0;
	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER;
	attr.sample_stack_user = 32768;
	return attr;
}

/* What a runtime gets that asks what it is to do: memory that nobody can cut, with the trace. */
static void check_memory(void)
{
	struct trace *again;
	int fd;

	NEED(mock_call(&g, WIRE_OP_TRACE) == 0);
	fd = mock_take_fd(&g);
	NEED(fd >= 0 && fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK);
	again = mmap(NULL, TRACE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		     (off_t)trace_offset(g.meter));
	NEED(again != MAP_FAILED && again->seq == trace->seq &&
	     again->event[0].period == trace->event[0].period);
	munmap(again, TRACE_SIZE);
	close(fd);
}

/* An event that samples, with a buffer. */
static void begin(const struct pe_attr *attr)
{
	u32 asked = g.page->asked[g.meter % WIRE_ASKED];
	int fd;

	NEED(mock_call(&g, WIRE_OP_TRACE) == -ENOENT || trace->seq);
	NEED(mock_open(&g, attr, 0, -1, WIRE_NO_EVENT, 0, &handle) >= 0);
	g.slot->args.mmap = (struct wire_mmap_args){handle, 4096 + RING_DATA,
						    PROT_READ | PROT_WRITE, MAP_SHARED, 0};
	NEED(mock_call(&g, WIRE_OP_MMAP) == 1);
	fd = mock_take_fd(&g);
	page = mmap(NULL, 4096 + RING_DATA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	NEED(trace->seq && !(trace->seq & 1));
	NEED(g.page->asked[g.meter % WIRE_ASKED] != asked && g.m->asked);
	NEED(trace->to_tell == g.m->watch && trace->to_tell & WIRE_WATCH_TASKS);
	check_memory();
}

static void copy_in(const void *bytes, u64 len)
{
	u64 head = trace->head;

	for (u64 i = 0; i < len; i++)
		((u8 *)trace)[TRACE_HEAD + (head + i) % TRACE_RING] = ((const u8 *)bytes)[i];
	__atomic_store_n(&trace->head, head + len, __ATOMIC_RELEASE);
}

/* The first event as the table has it that is in force: the session may be writing the next. */
static struct trace_event told(void)
{
	struct trace_event e;
	u32 seq;

	do {
		seq = __atomic_load_n(&trace->seq, __ATOMIC_ACQUIRE);
		e = trace->event[0];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (seq & 1 || seq != __atomic_load_n(&trace->seq, __ATOMIC_RELAXED));
	return e;
}

/* As a thread does that has counted a period more. */
static struct trace_sample one_more(u64 ip)
{
	struct trace_sample sample = {.entry = {.kind = TRACE_SAMPLE, .size = sizeof(sample)},
				      .id = told().id,
				      .periods = 1,
				      .ip = ip,
				      .pc = ip};

	mock_count(&g, PERIOD, 0);
	counted += PERIOD;
	sample.sums[METER_INSTRUCTIONS] = counted;
	return sample;
}

static void put_sample(u64 ip, u32 chain, u32 stack)
{
	static u64 entry[TRACE_ENTRY_MAX / 8 + 1];
	struct trace_sample *sample = (struct trace_sample *)entry;
	u64 *p = (u64 *)(sample + 1);

	*sample = one_more(ip);
	sample->nr_chain = chain;
	sample->stack_size = sample->stack_used = stack;
	for (u32 i = 0; i < chain; i++)
		*p++ = 7000 + i;
	memset(p, 0x5a, stack);
	sample->entry.size += chain * 8 + stack;
	copy_in(entry, sample->entry.size);
}

static void ring_bell(void)
{
	struct wire_kick k = {.what = WIRE_KICK_TRACE, .meter = g.meter};

	(void)send(g.sock, &k, sizeof(k), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void await_drained(void)
{
	ring_bell();
	for (u32 i = 0; trace->tail != trace->head; i++) {
		NEED(i < 20000);
		usleep(1000);
	}
}

/* Word @at of the ring, and behind it. */
static u64 word(u64 at)
{
	return *(const u64 *)((const u8 *)page + 4096 + at % RING_DATA);
}

/* How many samples have come since last time; the first one is to be of @ip, and so on. */
static u32 samples(u64 ip)
{
	u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;
	u32 n = 0;

	while (at < head) {
		u64 header = word(at), size = header >> 48;

		NEED(size >= 8 && at + size <= head);
		if ((u32)header == PERF_RECORD_SAMPLE) {
			NEED(word(at + 8) == ip + n);
			/* The mark of user space, pc, and the chain. */
			NEED(word(at + 24) == PERF_CONTEXT_USER && word(at + 32) == ip + n);
			for (u64 i = 2; i < word(at + 16); i++)
				NEED(word(at + 24 + i * 8) == 7000 + i - 2);
			n++;
		}
		at += size;
	}
	__atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
	return n;
}

static void many_sizes(void)
{
	struct pe_attr attr = sampling();
	u32 n = 0;

	begin(&attr);
	NEED(told().next == PERIOD && told().period == PERIOD);
	/* Many times around the ring, with entries of every size. */
	for (u32 round = 0; round < 40; round++) {
		u32 first = n;

		for (u32 i = 0; i < 3; i++, n++)
			put_sample(n, n * 37 % TRACE_CHAIN, n * 4096 % 65536 / 8 * 8);
		await_drained();
		NEED(samples(first) == 3);
	}
	NEED(trace->head > 4 * TRACE_RING);
	/* A call finds what was told before it. */
	put_sample(n, 0, 0);
	NEED(mock_ioctl(&g, handle, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(samples(n) == 1);
	/* An event that is off has no deadline, and gets nothing. */
	NEED(told().period == 0);
	put_sample(n, 0, 0);
	await_drained();
	NEED(samples(n) == 0);
}

TEST(entries_arrive_in_order_and_whole)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(many_sizes)), 0);
	session_free(s);
}

/* It is dropped, and what comes after it is believed again. */
static void after_a_lie(u64 ip, u32 taken)
{
	u64 words[1];

	await_drained();
	NEED(samples(ip) == taken);
	NEED(mock_read(&g, handle, words, sizeof(words)) == sizeof(words));
	put_sample(ip + 10, 3, 64);
	await_drained();
	NEED(samples(ip + 10) == 1);
}

static void lie(void)
{
	static const u32 sizes[] = {
		0, 8, 15, 17, 24, TRACE_RING, ~0u, ~0u - 7, TRACE_ENTRY_MAX + 8, 1u << 31};
	static const u64 moves[] = {4, TRACE_RING, TRACE_RING + 8, 1ull << 63, ~0ull - 5};
	struct pe_attr attr = sampling();
	struct trace_sample more;

	begin(&attr);
	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_sample(i, 3, 64);
		more = one_more(100);
		more.entry.size = sizes[i];
		copy_in(&more, sizeof(more));
		after_a_lie(i, 1);
	}
	for (u32 i = 0; i < 9; i++) {
		more = one_more(100);
		switch (i) {
		case 0: more.nr_chain = ~0u; break;
		case 1: more.nr_chain = 1; break;
		case 2: more.nr_branches = TRACE_LBR + 1; break;
		case 3: more.stack_size = 8; break;
		case 4: more.stack_size = ~0u - 7; break;
		case 5: more.stack_used = 8; break;
		case 6: more.entry.kind = 99; break;
		case 7: more.entry.size = sizeof(struct trace_entry); break;
		default: more.id += 1000; break;
		}
		copy_in(&more, more.entry.size);
		after_a_lie(100, 0);
	}
	/* Where the positions do not even begin at a word. */
	for (u32 i = 0; i < ARRAY_SIZE(moves); i++) {
		memset((u8 *)trace + TRACE_HEAD, 0, TRACE_RING);
		trace->head += moves[i];
		after_a_lie(100, 0);
	}
	/* What the session has written there it does not read. */
	memset(trace->event, 0xff, sizeof(trace->event));
	trace->event[0].id = more.id - 1000;
	trace->tail = 1ull << 62;
	trace->drained = trace->waiting = ~0u;
	put_sample(200, 3, 64);
	await_drained();
	NEED(samples(200) == 1);
}

TEST(a_trace_that_is_none_is_given_up)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(lie)), 0);
	session_free(s);
}

/* Of a stop that no event of the kernel's has caused there is nothing to tell. */
static void stop_for_nothing(void)
{
	struct trace_entry own = {.kind = TRACE_OWN, .size = sizeof(own), .time = ~0ull};
	struct pe_attr attr = sampling();
	struct trace_sample more;

	begin(&attr);
	for (u32 i = 0; i < 5; i++) {
		more = one_more(100);
		more.entry.kind = TRACE_STOP;
		more.entry.time = i % 2 ? ~0ull : 0;
		more.cpu = i % 3 ? 0 : ~0u;
		more.nr_chain = i == 4;
		copy_in(&more, sizeof(more));
		copy_in(&own, sizeof(own));
		after_a_lie(100, 0);
	}
}

TEST(a_stop_for_nothing_is_none)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(stop_for_nothing)), 0);
	session_free(s);
}

/* The kernel stops who has a fault, and no runtime is here to take that. */
static void stopped(int sig)
{
	(void)sig;
}

/* Of an event that the kernel counts a thread says that it has counted a period of it. */
static void count_for_the_kernel(void)
{
	struct pe_attr attr = sampling();
	struct trace_sample more;
	volatile u8 *faults;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.sample_period = 3;
	signal(SIGTRAP, stopped);
	NEED(mock_open(&g, &attr, 0, -1, WIRE_NO_EVENT, 0, &handle) >= 0);
	faults = mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(faults != MAP_FAILED);
	for (u32 i = 0; i < 5; i++) {
		for (u32 n = 0; n < 20; n++)
			faults[(i * 20 + n) * 4096] = 1;
		more = one_more(100);
		NEED(more.id);
		copy_in(&more, sizeof(more));
		await_drained();
	}
	NEED(mock_ioctl(&g, handle, PERF_EVENT_IOC_DISABLE, 0) == 0);
}

TEST(nobody_samples_for_the_kernel)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(count_for_the_kernel)), 0);
	session_free(s);
}

/* Between two guests. */
static struct {
	u32 id;
	bool done;
} * between;

static void be_named(void)
{
	struct pe_attr attr = sampling();

	begin(&attr);
	mock_count(&g, 5 * PERIOD, 0);
	__atomic_store_n(&between->id, trace->event[0].id, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&between->done, __ATOMIC_ACQUIRE))
		usleep(1000);
	NEED(samples(0) == 0);
}

static void name_another(void)
{
	struct pe_attr attr = sampling();
	struct trace_sample sample;

	begin(&attr);
	while (!__atomic_load_n(&between->id, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (u32 i = 0; i < 10; i++) {
		sample = one_more(0);
		NEED(sample.id != between->id);
		sample.id = between->id;
		copy_in(&sample, sizeof(sample));
	}
	await_drained();
	NEED(samples(0) == 0);
	__atomic_store_n(&between->done, true, __ATOMIC_RELEASE);
}

TEST(nobody_samples_for_another_thread)
{
	pid_t named;

	between = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	start();
	named = fork_guest(be_named);
	EXPECT_EQ(serve_until_exit(fork_guest(name_another)), 0);
	EXPECT_EQ(serve_until_exit(named), 0);
	session_free(s);
}

/* The ring is full at any time, whatever is drained, and so is the socket. */
static void produce(void)
{
	struct pe_attr attr = sampling();
	struct trace_sample sample;

	begin(&attr);
	for (;;) {
		sample = one_more(0);
		copy_in(&sample, sizeof(sample));
		trace->head = trace->tail + TRACE_RING / sizeof(sample) * sizeof(sample);
		ring_bell();
	}
}

static void be_served(void)
{
	struct pe_attr attr = mock_attr();
	u64 words[1];

	NEED(mock_open(&g, &attr, 0, -1, WIRE_NO_EVENT, 0, &handle) >= 0);
	for (u32 i = 0; i < 20; i++)
		NEED(mock_read(&g, handle, words, sizeof(words)) == sizeof(words));
}

TEST(others_are_served_while_one_never_ends)
{
	pid_t producer;

	start();
	producer = fork_guest(produce);
	EXPECT_EQ(serve_until_exit(fork_guest(be_served)), 0);
	kill(producer, SIGKILL);
	EXPECT_EQ(serve_until_exit(producer), 128 + SIGKILL);
	session_free(s);
}

/* The period in force; there is none for a moment while the core's tick sets a new one. */
static u64 await_period(void)
{
	u64 period;

	for (u32 i = 0; !(period = told().period); i++) {
		NEED(i < 20000);
		usleep(1000);
	}
	return period;
}

/* Samples of a nanosecond each: the frequency asks for ever larger periods. */
static void tell_times(void)
{
	struct pe_attr attr = sampling();
	struct trace_sample sample;

	attr.freq = 1;
	attr.sample_freq = 1;
	begin(&attr);
	for (u32 i = 0; i < 200; i++) {
		sample = one_more(0);
		sample.entry.time = 1000 + i;
		sample.sums[METER_INSTRUCTIONS] += (u64)i << 62;
		copy_in(&sample, sizeof(sample));
		await_drained();
		NEED(await_period() <= (u64)INT64_MAX);
	}
}

TEST(a_period_stays_one_however_times_lie)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(tell_times)), 0);
	session_free(s);
}

static void tell_sums(void)
{
	static const u64 sums[] = {~0ull, 0, 1ull << 63, (1ull << 63) - 1, 1, 1ull << 62, PERIOD};
	struct pe_attr attr = sampling();
	struct trace_sample sample;
	u64 words[1];

	begin(&attr);
	for (u32 i = 0; i < 100; i++) {
		sample = one_more(0);
		sample.sums[METER_INSTRUCTIONS] = sums[i % 7] + sums[i / 7 % 7];
		sample.periods = sample.cpu_time = sample.entry.time = ~0ull;
		copy_in(&sample, sizeof(sample));
		await_drained();
		NEED(mock_read(&g, handle, words, sizeof(words)) == sizeof(words));
		NEED(told().period == PERIOD);
	}
}

TEST(counts_that_lie_are_counts)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(tell_sums)), 0);
	session_free(s);
}

/* What comes now was not there at the last look, whatever time it says. */
static void tell_clocks(void)
{
	struct pe_attr attr = sampling();
	struct trace_sample sample;
	struct timespec t;
	u64 looked = 0, at = 0;

	attr.sample_type = PERF_SAMPLE_TIME;
	attr.clockid = CLOCK_MONOTONIC;
	attr.use_clockid = 1;
	begin(&attr);
	for (u32 i = 0; i < 20; i++) {
		sample = one_more(0);
		clock_gettime(CLOCK_MONOTONIC, &t);
		sample.entry.time = i % 2 ? i : (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
		copy_in(&sample, sizeof(sample));
		await_drained();
		NEED(page->data_head == at + 16 && word(at + 8) >= looked);
		NEED(i % 2 || word(at + 8) == sample.entry.time);
		at += 16;
		looked = sample.entry.time > looked ? sample.entry.time : looked;
	}
}

TEST(times_do_not_go_back)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(tell_clocks)), 0);
	session_free(s);
}

/* Who reads the event without asking is told of what was lost too. */
static void lose(void)
{
	const struct wire_snapshot *snapshot = &g.page->snapshots[0];
	struct pe_attr attr = sampling();
	u64 words[2];

	attr.read_format = PE_FORMAT_LOST;
	begin(&attr);
	for (u32 i = 0; i < 30; i++) {
		put_sample(i, 0, 0);
		await_drained();
	}
	NEED(snapshot->kind == WIRE_SNAPSHOT_METER && snapshot->handle == handle);
	NEED(snapshot->lost > 0);
	NEED(mock_read(&g, handle, words, sizeof(words)) == sizeof(words));
	NEED(words[1] == snapshot->lost);
}

TEST(a_snapshot_has_the_samples_that_were_lost)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(lose)), 0);
	session_free(s);
}

/* Which branches the thread is told to remember [BR-01..04]. */
static void ask_for_branches(void)
{
	static const struct {
		u64 filter;
		u32 kinds;
	} rows[] = {
		{PERF_SAMPLE_BRANCH_ANY, 0xfe},
		{PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_TYPE_SAVE, 0xfe},
		{PERF_SAMPLE_BRANCH_ANY_CALL, BIT(TRACE_BRANCH_CALL) | BIT(TRACE_BRANCH_CALL_IND)},
		{PERF_SAMPLE_BRANCH_CALL, BIT(TRACE_BRANCH_CALL)},
		{PERF_SAMPLE_BRANCH_IND_CALL, BIT(TRACE_BRANCH_CALL_IND)},
		{PERF_SAMPLE_BRANCH_IND_JUMP, BIT(TRACE_BRANCH_JUMP_IND)},
		{PERF_SAMPLE_BRANCH_ANY_RETURN, BIT(TRACE_BRANCH_RETURN)},
		{PERF_SAMPLE_BRANCH_COND | PERF_SAMPLE_BRANCH_ANY_RETURN,
		 BIT(TRACE_BRANCH_COND) | BIT(TRACE_BRANCH_RETURN)},
		{PERF_SAMPLE_BRANCH_CALL_STACK, TRACE_OPEN_CALLS},
		{PERF_SAMPLE_BRANCH_ABORT_TX, 0},
		{PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HV, 0},
	};
	struct pe_attr attr = sampling();

	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 event;

		attr.branch_sample_type = rows[i].filter;
		if (!(rows[i].filter & PERF_SAMPLE_BRANCH_HV))
			attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
		NEED(mock_open(&g, &attr, 0, -1, WIRE_NO_EVENT, 0, &event) >= 0);
		NEED(trace->event[i].wants & TRACE_WANT_BRANCHES);
		NEED(trace->event[i].branches == rows[i].kinds);
	}
}

TEST(a_thread_is_asked_for_the_branches_of_its_events)
{
	start();
	EXPECT_EQ(serve_until_exit(fork_guest(ask_for_branches)), 0);
	session_free(s);
}

/* The kernel's number of a tracepoint; 0: it does not tell. */
static u64 tracepoint(const char *name)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	unsigned long long id = 0;
	char path[200];

	for (size_t i = 0; i < ARRAY_SIZE(places) && !id; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/events/%s/id", places[i], name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%llu", &id) != 1)
			id = 0;
		if (f)
			fclose(f);
	}
	return id;
}

static void end_with_tracepoints(struct mock *guest)
{
	struct pe_attr attr = mock_attr();
	u64 h;

	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = tracepoint("sched/sched_switch");
	attr.disabled = 0;
	attr.exclude_kernel = attr.exclude_hv = 0;
	NEED(mock_hello(guest, -1, 0) == 0);
	/* Where there are none, or where the kernel refuses them, nothing ends. */
	for (int i = 0; i < 3; i++)
		(void)mock_open(guest, &attr, 0, -1, WIRE_NO_EVENT, 0, &h);
	NEED(mock_call(guest, WIRE_OP_PING) == 0);
	/* Who has the descriptors as well outlives the thread. */
	if (fork() == 0)
		usleep(300000);
}

/* What the session has of a thread's tracepoints goes with the thread (ASan). */
TEST(a_thread_ends_with_tracepoints_on)
{
	struct session_config config = {.paranoid = -1, .segment_fd = -1};
	struct session *mine = NULL;
	int status = 1;
	char why[300];
	pid_t pid;

	EXPECT_EQ(session_new(&config, &mine, why, sizeof(why)), 0);
	pid = mock_fork(mine, end_with_tracepoints);
	while (waitpid(pid, &status, WNOHANG) == 0)
		session_run(mine, 5);
	EXPECT_EQ(status, 0);
	session_run(mine, 0);
	session_free(mine);
}
