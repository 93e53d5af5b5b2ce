/*
 * Sampling on the running kernel, where what must be sampled is known: page faults at known
 * addresses, breakpoints on a function that is called a known number of times, children that start
 * and end.
 */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "breakpoints-fire.h"

#define PAGE  4096
#define PAGES 600

static struct ap_error err;
static struct ap_record rec;

static struct ap_sampler *open_text(const char *text, const struct ap_sampler_opts *opts)
{
	struct ap_sampler *s = NULL;

	if (ap_sampler_open_text(&s, text, opts, &err))
		TEST_FAIL("%s: %s; %s", text, err.why, err.remedy);
	return s;
}

/* Fresh memory, and its first touch, page by page. */
static char *fresh(void)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	if (p == MAP_FAILED)
		abort();
	madvise(p, PAGES * PAGE, MADV_NOHUGEPAGE);
	return p;
}

static void touch(char *p)
{
	for (size_t i = 0; i < PAGES; i++)
		((volatile char *)p)[i * PAGE] = 1;
}

static bool in(const char *p, uint64_t addr)
{
	return addr >= (uintptr_t)p && addr < (uintptr_t)p + PAGES * PAGE;
}

/* [SAMP-02..05, SAMP-08] Each first touch is a sample, at its address and in its order. */
TEST(every_page_fault_is_a_sample)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts),
				       .period = 1,
				       .sample_type = PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU};
	struct ap_sampler *s = open_text("page-faults:u", &opts);
	uint64_t lost = 1, last = 0;
	char *p = fresh();
	size_t seen = 0;

	ASSERT(s);
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	while (ap_sampler_next(s, &rec, &err) > 0) {
		if (rec.type != PERF_RECORD_SAMPLE || !in(p, rec.sample.addr))
			continue;
		EXPECT_EQ(rec.sample.addr, (uintptr_t)p + seen * PAGE);
		EXPECT_EQ(rec.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
		EXPECT_EQ(rec.id.tid, getpid());
		EXPECT(rec.id.time > last);
		EXPECT(rec.id.cpu < 4096);
		last = rec.id.time;
		seen++;
	}
	EXPECT_EQ(seen, PAGES);
	EXPECT_EQ(ap_sampler_lost(s, &lost), 0);
	EXPECT_EQ(lost, 0);
	EXPECT_EQ(ap_sampler_late(s), 0);
	ap_sampler_close(s);
	munmap(p, PAGES * PAGE);
}

struct drained {
	const char *pages;
	size_t seen, bytes;
	struct ap_layout layout;
	int stop;
};

static int look_at(const void *records, size_t len, void *data)
{
	struct drained *d = data;
	const char *at = records, *end = at + len;
	struct ap_record got;

	d->bytes += len;
	while (at < end) {
		int n = ap_record_decode(&got, at, (size_t)(end - at), &d->layout, &err);

		if (n <= 0) {
			TEST_FAIL("%s", err.why);
			return -1;
		}
		at += n;
		if (got.type != PERF_RECORD_SAMPLE || !in(d->pages, got.sample.addr))
			continue;
		EXPECT_EQ(got.sample.addr, (uintptr_t)d->pages + d->seen * PAGE);
		d->seen++;
	}
	return d->stop;
}

/* What would be given one by one is handed over as it stands, whole and once. */
TEST(drained)
{
	struct ap_sampler_opts opts = {
		.size = sizeof(opts), .period = 1, .sample_type = PERF_SAMPLE_ADDR};
	struct ap_sampler *s = open_text("page-faults:u", &opts);
	char *p = fresh();
	struct drained d = {.pages = p};

	ASSERT(s);
	ap_layout_init(&d.layout, ap_event_attr(ap_counters_event(ap_sampler_counters(s), 0, 0)));
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	EXPECT_EQ(ap_sampler_drain(s, look_at, &d, &err), 0);
	EXPECT_EQ(d.seen, PAGES);
	d.bytes = 0;
	EXPECT_EQ(ap_sampler_drain(s, look_at, &d, &err), 0);
	EXPECT_EQ(d.bytes, 0);
	EXPECT_EQ(ap_sampler_next(s, &rec, &err), 0);
	/* The taker's word ends it. */
	d.stop = -7;
	d.seen = 0;
	EXPECT_EQ(munmap(p, PAGES * PAGE), 0);
	d.pages = p = fresh();
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	EXPECT_EQ(ap_sampler_drain(s, look_at, &d, &err), -7);
	ap_sampler_close(s);
	munmap(p, PAGES * PAGE);
}

static volatile int calls;

__attribute__((noinline)) static void called(void)
{
	calls++;
}

__attribute__((noinline)) static void calls_it(int n)
{
	for (int i = 0; i < n; i++)
		called();
	calls += n;
}

/* [SAMP-11] */
TEST(call_chains)
{
	struct ap_sampler_opts opts = {
		.size = sizeof(opts), .period = 1, .sample_type = PERF_SAMPLE_CALLCHAIN};
	struct ap_sampler *s = NULL;
	unsigned int seen = 0;
	char text[64];

	snprintf(text, sizeof(text), "mem:%p:x", (void *)(uintptr_t)called);
	s = open_text(text, &opts);
	ASSERT(s);
	if (!breakpoints_fire(HW_BREAKPOINT_X)) {
		printf("     " BREAKPOINTS_NEVER_FIRE "\n");
		ap_sampler_close(s);
		return;
	}
	EXPECT_EQ(ap_sampler_enable(s), 0);
	calls_it(7);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	while (ap_sampler_next(s, &rec, &err) > 0) {
		const struct ap_callchain *c = &rec.sample.callchain;

		EXPECT_EQ(rec.type, PERF_RECORD_SAMPLE);
		EXPECT_EQ(rec.sample.ip, (uintptr_t)called);
		ASSERT(c->nr >= 2);
		EXPECT_EQ(c->ips[0], (uint64_t)PERF_CONTEXT_USER);
		EXPECT(ap_callchain_is_marker(c->ips[0]) && !ap_callchain_is_marker(c->ips[1]));
		EXPECT_EQ(c->ips[1], (uintptr_t)called);
		seen++;
	}
	EXPECT_EQ(seen, 7);
	ap_sampler_close(s);
}

/* What was lost after the last record that fitted only the event itself knows. */
TEST(lost_and_found_are_all)
{
	struct ap_sampler_opts opts = {
		.size = sizeof(opts), .period = 1, .pages = 1, .sample_type = PERF_SAMPLE_ADDR};
	struct ap_sampler *s = open_text("page-faults:u", &opts);
	const struct ap_value *count;
	char *p = fresh();
	uint64_t lost = 0, seen = 0;

	ASSERT(s);
	EXPECT_EQ(ap_sampler_pages(s), 1);
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	while (ap_sampler_next(s, &rec, &err) > 0)
		seen += rec.type == PERF_RECORD_SAMPLE;
	EXPECT_EQ(ap_sampler_lost(s, &lost), 0);
	count = ap_counters_value(ap_sampler_counters(s), 0, 0);
	EXPECT(seen < PAGES);
	if (ap_event_attr(ap_counters_event(ap_sampler_counters(s), 0, 0))->read_format &
	    PE_FORMAT_LOST)
		EXPECT_EQ(seen + lost, count->value);
	/* Room again: a LOST record tells the same. */
	munmap(p, PAGES * PAGE);
	p = fresh();
	EXPECT_EQ(ap_sampler_enable(s), 0);
	p[0] = 1;
	EXPECT_EQ(ap_sampler_disable(s), 0);
	ASSERT(ap_sampler_next(s, &rec, &err) == 1);
	EXPECT_EQ(rec.type, PERF_RECORD_LOST);
	EXPECT(lost == 0 || rec.lost.lost == lost);
	ap_sampler_close(s);
	munmap(p, PAGES * PAGE);
}

/* [RING-07, RING-08] */
TEST(the_newest_are_kept)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts),
				       .period = 1,
				       .pages = 2,
				       .sample_type = PERF_SAMPLE_ADDR,
				       .flags = AP_SAMPLER_OVERWRITE};
	struct ap_sampler *s = open_text("page-faults:u", &opts);
	char *p = fresh();
	size_t first = PAGES, next = 0;
	uint64_t lost = PAGES;

	ASSERT(s);
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_snapshot(s, &err), 0);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	while (ap_sampler_next(s, &rec, &err) > 0) {
		size_t page = (rec.sample.addr - (uintptr_t)p) / PAGE;

		if (rec.type != PERF_RECORD_SAMPLE || !in(p, rec.sample.addr))
			continue;
		if (first == PAGES)
			first = next = page;
		EXPECT_EQ(page, next);
		next++;
	}
	/* 40 bytes each: two pages hold 204, of which a few are not ours. */
	EXPECT_EQ(next, PAGES);
	EXPECT(PAGES - first > 180 && PAGES - first <= 204);
	/* The snapshot's own faults are lost: its memory is new, and the buffer stands still. */
	EXPECT_EQ(ap_sampler_lost(s, &lost), 0);
	EXPECT(lost <= 4);
	ap_sampler_close(s);
	munmap(p, PAGES * PAGE);
}

struct child {
	pid_t pid;
	int go; /* a byte lets it start */
};

/* A child that waits, then becomes @path. */
static struct child child_of(const char *path)
{
	struct child c;
	int go[2];
	char byte;

	if (pipe(go))
		abort();
	c.pid = fork();
	if (c.pid == 0) {
		if (read(go[0], &byte, 1) == 1)
			execl(path, path, NULL);
		_exit(127);
	}
	close(go[0]);
	c.go = go[1];
	return c;
}

/* A command from its exec to its end, with what its addresses mean [MISC-03, OVF-04]. */
TEST(a_command)
{
	struct child c = child_of("/bin/true");
	struct ap_target target = {.size = sizeof(target), .tids = &c.pid, .ntids = 1};
	struct ap_sampler_opts opts = {.size = sizeof(opts),
				       .period = 1,
				       .flags = AP_SAMPLER_TASKS,
				       .open_flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT};
	bool exec = false, mapped = false, ended = false;
	struct ap_machine *m = machine_of(NULL);
	struct ap_sampler *s = NULL;
	unsigned int samples = 0;
	struct ap_specs *specs = NULL;
	uint64_t last = 0;
	int r;

	ASSERT(ap_specs_parse(&specs, m, "page-faults:u", &err) == 0);
	if (ap_sampler_open(&s, m, specs, &target, &opts, &err)) {
		TEST_FAIL("%s", err.why);
		return;
	}
	EXPECT_EQ(write(c.go, "", 1), 1);
	do {
		EXPECT_EQ(ap_sampler_poll(s, 20000), 1);
		while ((r = ap_sampler_next(s, &rec, &err)) > 0) {
			if (ap_sampler_late(s) == 0)
				EXPECT(rec.id.time >= last);
			last = rec.id.time;
			EXPECT_EQ(ap_sampler_spec(s, &rec), 0);
			exec |= rec.type == PERF_RECORD_COMM &&
				(rec.misc & PERF_RECORD_MISC_COMM_EXEC) &&
				strcmp(rec.comm.comm, "true") == 0;
			mapped |= rec.type == PERF_RECORD_MMAP2 &&
				  strstr(rec.mmap.filename, "true");
			ended |= rec.type == PERF_RECORD_EXIT && rec.task.pid == (uint32_t)c.pid;
			samples += rec.type == PERF_RECORD_SAMPLE;
		}
		EXPECT_EQ(r, 0);
	} while (!ap_sampler_ended(s));
	EXPECT(exec && mapped && ended);
	EXPECT(samples > 10);
	EXPECT_EQ(ap_sampler_poll(s, 1000), 0);
	ap_sampler_close(s);
	ap_specs_free(specs);
	ap_machine_free(m);
	close(c.go);
	waitpid(c.pid, NULL, 0);
}

/* Who has a poll loop of his own asks without waiting, and learns of the end too. */
TEST(who_never_waits_sees_the_end)
{
	struct child c = child_of("/bin/true");
	struct ap_target target = {.size = sizeof(target), .tids = &c.pid, .ntids = 1};
	struct ap_sampler_opts opts = {
		.size = sizeof(opts), .period = 1, .open_flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT};
	struct ap_machine *m = machine_of(NULL);
	struct ap_sampler *s = NULL;
	struct ap_specs *specs = NULL;
	int r, tries = 0;

	ASSERT(ap_specs_parse(&specs, m, "page-faults:u", &err) == 0);
	ASSERT(!ap_sampler_open(&s, m, specs, &target, &opts, &err));
	EXPECT_EQ(write(c.go, "", 1), 1);
	while (!ap_sampler_ended(s) && tries++ < 20000) {
		usleep(1000);
		EXPECT(ap_sampler_poll(s, 0) >= 0);
		while ((r = ap_sampler_next(s, &rec, &err)) > 0)
			;
		EXPECT_EQ(r, 0);
	}
	EXPECT(ap_sampler_ended(s));
	ap_sampler_close(s);
	ap_specs_free(specs);
	ap_machine_free(m);
	close(c.go);
	waitpid(c.pid, NULL, 0);
}

static void *toucher(void *p)
{
	touch(p);
	return NULL;
}

/* Threads on all CPUs, into a buffer for each: nothing is missing, and all is in order. */
TEST(threads_on_every_cpu)
{
	struct ap_target self = {.size = sizeof(self)};
	pid_t tid = getpid();
	struct ap_sampler_opts opts = {.size = sizeof(opts),
				       .period = 1,
				       .sample_type = PERF_SAMPLE_ADDR,
				       .open_flags = AP_OPEN_INHERIT};
	struct ap_machine *m = machine_of(NULL);
	struct ap_specs *specs = NULL;
	struct ap_sampler *s = NULL;
	uint64_t last = 0, lost = 0;
	pthread_t threads[4];
	char *memory[4];
	size_t seen[4] = {0}, all = 0;

	self.tids = &tid;
	self.ntids = 1;
	ASSERT(ap_specs_parse(&specs, m, "page-faults:u", &err) == 0);
	if (ap_sampler_open(&s, m, specs, &self, &opts, &err)) {
		TEST_FAIL("%s", err.why);
		return;
	}
	EXPECT_EQ(ap_sampler_enable(s), 0);
	for (int i = 0; i < 4; i++) {
		memory[i] = fresh();
		ASSERT(pthread_create(&threads[i], NULL, toucher, memory[i]) == 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	while (ap_sampler_next(s, &rec, &err) > 0) {
		if (ap_sampler_late(s) == 0)
			EXPECT(rec.id.time >= last);
		last = rec.id.time;
		all += rec.type == PERF_RECORD_SAMPLE;
		for (int i = 0; i < 4; i++)
			if (rec.type == PERF_RECORD_SAMPLE && in(memory[i], rec.sample.addr)) {
				EXPECT_EQ(rec.sample.addr, (uintptr_t)memory[i] + seen[i] * PAGE);
				seen[i]++;
			}
	}
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(seen[i], PAGES);
		munmap(memory[i], PAGES * PAGE);
	}
	EXPECT_EQ(ap_sampler_lost(s, &lost), 0);
	EXPECT_EQ(lost, 0);
	EXPECT(all >= 4 * PAGES);
	ap_sampler_close(s);
	ap_specs_free(specs);
	ap_machine_free(m);
}

/* [SAMP-10] The leader's samples carry the group's counts. */
TEST(counts_in_samples)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts), .period = 10};
	struct ap_sampler *s = open_text("{page-faults,task-clock}:Su", &opts);
	uint64_t faults = 0;
	char *p = fresh();

	ASSERT(s);
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_disable(s), 0);
	while (ap_sampler_next(s, &rec, &err) > 0) {
		const struct ap_read_block *b = &rec.sample.read;
		struct ap_value v[2];

		EXPECT_EQ(ap_sampler_spec(s, &rec), 0);
		ASSERT(ap_read_decode(b->bytes, b->len, b->format, v, 2) == 2);
		EXPECT_EQ(v[0].value, faults + 10);
		faults = v[0].value;
		EXPECT(v[1].value > 0);
	}
	EXPECT(faults >= PAGES);
	ap_sampler_close(s);
	munmap(p, PAGES * PAGE);
}

/* [OVF-02, RING-09] */
TEST(waiting_for_samples)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts), .period = 1, .wakeup_events = 1};
	struct ap_sampler *s = open_text("page-faults:u", &opts);
	char *p = fresh();
	int fd = -1;

	ASSERT(s);
	EXPECT_EQ(ap_sampler_poll(s, 0), 0);
	EXPECT_EQ(ap_sampler_poll(s, 10), 0);
	EXPECT_EQ(ap_sampler_fds(s, &fd, 1), 1);
	EXPECT_EQ(fd, ap_event_fd(ap_counters_event(ap_sampler_counters(s), 0, 0)));
	EXPECT_EQ(ap_sampler_enable(s), 0);
	touch(p);
	EXPECT_EQ(ap_sampler_poll(s, -1), 1);
	/* poll(2) would tell of a wakeup once; what is not taken is still there. */
	EXPECT_EQ(ap_sampler_poll(s, -1), 1);
	while (ap_sampler_next(s, &rec, &err) > 0)
		;
	EXPECT(!ap_sampler_ended(s));
	ap_sampler_close(s);
	munmap(p, PAGES * PAGE);
}

/* [RING-13] Gives up its rights, so in a child. */
static void limited(void)
{
	struct rlimit none = {0, 0};
	struct ap_sampler_opts opts = {.size = sizeof(opts), .pages = 1 << 14};
	struct ap_sampler *s = NULL;
	unsigned int pages = 0;
	const char *most;
	int r;

	setrlimit(RLIMIT_MEMLOCK, &none);
	if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
			       setresuid(65534, 65534, 65534)))
		TEST_FAIL("cannot become nobody: %s", strerror(errno));
	r = ap_sampler_open_text(&s, "page-faults:u", &opts, &err);
	ap_sampler_close(s);
	if (!r || r == -EACCES) /* nothing is limited here, or nothing is allowed */
		return;
	EXPECT_EQ(r, -EPERM);
	EXPECT_EQ(err.cause, AP_CAUSE_MLOCK);
	EXPECT_CONTAINS(err.why, "kernel.perf_event_mlock_kb");
	most = strstr(err.remedy, "take at most ");
	ASSERT(most && sscanf(most, "take at most %u", &pages) == 1);
	/* That is the largest: it opens, and twice as many do not. */
	opts.pages = pages;
	EXPECT_EQ(ap_sampler_open_text(&s, "page-faults:u", &opts, &err), 0);
	EXPECT_EQ(ap_sampler_pages(s), pages);
	ap_sampler_close(s);
	opts.pages = 2 * pages;
	EXPECT_EQ(ap_sampler_open_text(&s, "page-faults:u", &opts, &err), -EPERM);
	opts.flags = AP_SAMPLER_SHRINK;
	EXPECT_EQ(ap_sampler_open_text(&s, "page-faults:u", &opts, &err), 0);
	EXPECT_EQ(ap_sampler_pages(s), pages);
	ap_sampler_close(s);
}

TEST(the_limit_for_locked_memory)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		test_failures = 0;
		limited();
		_exit(test_failures != 0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		TEST_FAIL("the child failed (status %#x)", status);
}
