/*
 * What is in a sample, bit by bit of sample_type, and at its end: of page faults at one store,
 * which every machine has. Others hold what the values are worth; this is about which words there
 * are, in which order, and whose ids they have.
 */
#include "conform/conform.h"

#include <sched.h>
#include <sys/prctl.h>

#define PAGE  4096
#define PAGES 64

#ifdef __x86_64__
#define REG_PC BIT(8)
#else
#define REG_PC BIT(32)
#endif

struct buffer {
	int fd;
	struct perf_event_mmap_page *page;
	const u8 *data;
	u64 at; /* of the next record */
};

static struct buffer map(long fd)
{
	struct buffer b = {.fd = (int)fd};

	NEED(fd >= 0);
	b.page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	b.data = (const u8 *)b.page + PAGE;
	return b;
}

static void unmap(struct buffer *b)
{
	munmap(b->page, (1 + PAGES) * PAGE);
	close(b->fd);
}

/* The next record, or NULL. Nothing goes round the end here. */
static const struct perf_event_header *next(struct buffer *b)
{
	u64 head = __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *h = (const void *)(b->data + b->at);

	NEED(head <= PAGES * PAGE);
	if (b->at >= head)
		return NULL;
	NEED(h->size >= sizeof(*h) && h->size <= head - b->at);
	b->at += h->size;
	return h;
}

static const u64 *words_of(const struct perf_event_header *h)
{
	return (const u64 *)(h + 1);
}

static u64 id_of(int fd)
{
	u64 id = 0;

	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)&id) == 0);
	return id;
}

static void to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	NEED(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static struct pe_attr faults(u64 sample_type)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);

	attr.sample_period = 1;
	attr.sample_type = sample_type;
	return attr;
}

/* A store at a known place, to a page that is not there yet. */
extern const char touch_store[];

static __attribute__((noinline)) u8 *touch(void)
{
	u8 *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(at != MAP_FAILED);
#ifdef __x86_64__
	asm volatile(".globl touch_store\ntouch_store: movb $1, (%0)" ::"r"(at) : "memory");
#else
	asm volatile(".globl touch_store\ntouch_store: strb wzr, [%0]" ::"r"(at) : "memory");
#endif
	return at;
}

/* How many words of a sample stand before ADDR. */
static int before_addr(u64 type)
{
	return !!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP) +
	       !!(type & PERF_SAMPLE_TID) + !!(type & PERF_SAMPLE_TIME);
}

/*
 * The sample of the one fault, which @attr's ADDR tells: other pages of the program may be missing,
 * too.
 */
static const struct perf_event_header *sample(struct buffer *b, struct pe_attr attr)
{
	const struct perf_event_header *h;
	u8 *at;

	NEED(attr.sample_type & PERF_SAMPLE_ADDR);
	*b = map(ev_self(attr));
	NEED(ev_ioctl(b->fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	at = touch();
	NEED(ev_ioctl(b->fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((h = next(b)))
		if (h->type == PERF_RECORD_SAMPLE &&
		    words_of(h)[before_addr(attr.sample_type)] == (u64)at)
			break;
	NEED(h);
	return h;
}

/* What each bit adds to a sample that has ADDR. */
CONFORM(each_bit)
{
	static const struct {
		const char *row, *text;
		u64 bit;
		u32 words;
		bool behind; /* ADDR stands before it */
		u64 value;   /* ~0: not looked at here */
	} bits[] = {
		{"SAMP-01", "IDENTIFIER", PERF_SAMPLE_IDENTIFIER, 1, false, ~0ull},
		{"SAMP-02", "IP", PERF_SAMPLE_IP, 1, false, ~0ull},
		{"SAMP-03", "TID", PERF_SAMPLE_TID, 1, false, ~0ull},
		{"SAMP-04", "TIME", PERF_SAMPLE_TIME, 1, false, ~0ull},
		{"SAMP-06", "ID", PERF_SAMPLE_ID, 1, true, ~0ull},
		{"SAMP-07", "STREAM_ID", PERF_SAMPLE_STREAM_ID, 1, true, ~0ull},
		{"SAMP-08", "CPU", PERF_SAMPLE_CPU, 1, true, ~0ull},
		{"SAMP-09", "PERIOD", PERF_SAMPLE_PERIOD, 1, true, 1},
		{"SAMP-11", "CALLCHAIN", PERF_SAMPLE_CALLCHAIN, 1, true, 0},
		{"SAMP-12", "RAW", PERF_SAMPLE_RAW, 1, true, 4},
		{"SAMP-14", "REGS_USER of one register", PERF_SAMPLE_REGS_USER, 2, true, 2},
		{"SAMP-15", "STACK_USER of no size", PERF_SAMPLE_STACK_USER, 1, true, 0},
		{"SAMP-16", "WEIGHT", PERF_SAMPLE_WEIGHT, 1, true, 0},
		{"SAMP-16", "WEIGHT_STRUCT", PERF_SAMPLE_WEIGHT_STRUCT, 1, true, 0},
		{"SAMP-17", "DATA_SRC", PERF_SAMPLE_DATA_SRC, 1, true, 0x1e05080021},
		{"SAMP-18", "TRANSACTION, without precise_ip", PERF_SAMPLE_TRANSACTION, 1, true, 0},
		{"SAMP-19", "REGS_INTR of one register", PERF_SAMPLE_REGS_INTR, 2, true, 2},
		{"SAMP-20", "PHYS_ADDR of a page that is not there", PERF_SAMPLE_PHYS_ADDR, 1, true,
		 0},
		{"SAMP-21", "CGROUP", PERF_SAMPLE_CGROUP, 1, true, ~0ull},
		{"SAMP-22", "DATA_PAGE_SIZE of a page that is not there",
		 PERF_SAMPLE_DATA_PAGE_SIZE, 1, true, 0},
		{"SAMP-22", "CODE_PAGE_SIZE", PERF_SAMPLE_CODE_PAGE_SIZE, 1, true, 4096},
		{"SAMP-22", "AUX of nothing", PERF_SAMPLE_AUX, 1, true, 0},
	};

	touch();
	for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		struct pe_attr attr = faults(PERF_SAMPLE_ADDR | bits[i].bit);
		const struct perf_event_header *h;
		struct buffer b;
		char text[96];

		attr.exclude_callchain_user = attr.exclude_callchain_kernel = 1;
		if (bits[i].bit == PERF_SAMPLE_REGS_USER)
			attr.sample_regs_user = BIT(0);
		if (bits[i].bit == PERF_SAMPLE_REGS_INTR)
			attr.sample_regs_intr = BIT(0);
		if (try_self(attr) == -EACCES) {
			skip_row(bits[i].row, bits[i].text, "it takes the right to see the kernel");
			continue;
		}
		h = sample(&b, attr);
		snprintf(text, sizeof(text), "size with %s", bits[i].text);
		check_val(bits[i].row, text, h->size, 16 + bits[i].words * 8);
		snprintf(text, sizeof(text), "%s", bits[i].text);
		if (bits[i].value != ~0ull)
			check_val(bits[i].row, text, (long long)words_of(h)[bits[i].behind],
				  (long long)bits[i].value);
		unmap(&b);
	}
}

#define ALL            \
	(BIT(25) - 1 - \
	 (PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_PHYS_ADDR))

/* Every bit that a software event has, at its place and no other. */
CONFORM(order)
{
	struct pe_attr attr = faults(ALL);
	const struct perf_event_header *h;
	struct buffer b;
	const u64 *p;
	u64 id;

	attr.exclude_callchain_user = attr.exclude_callchain_kernel = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			   PERF_FORMAT_ID;
	attr.sample_regs_user = attr.sample_regs_intr = REG_PC;
	attr.sample_stack_user = 64;
	to_cpu(0);
	touch();
	h = sample(&b, attr);
	p = words_of(h);
	id = id_of(b.fd);
	check_val("REC-08", "the type of a sample", h->type, 9);
	check_val("MISC-01", "its misc is the mode, and no other bit", h->misc,
		  PERF_RECORD_MISC_USER);
	check_val("SAMP-24", "the size of one with 22 bits", h->size, 8 + 8 * (22 + 3 + 2 + 9));
	check_val("SAMP-01", "IDENTIFIER is first, and the event's id", p[0] == id, 1);
	check_val("SAMP-02", "then IP", p[1] == (u64)touch_store, 1);
	check_val("SAMP-03", "then TID", p[2] == ((u64)gettid() << 32 | (u64)getpid()), 1);
	check_val("SAMP-04", "then TIME", p[3] > 1000000, 1);
	check_val("SAMP-05", "then ADDR", p[4] && p[4] % PAGE == 0, 1);
	check_val("SAMP-06", "then ID, which is that too", p[5] == id, 1);
	check_val("SAMP-07", "then STREAM_ID, which is the same of an original", p[6] == id, 1);
	check_val("SAMP-08", "then CPU and zeros", (long long)p[7], 0);
	check_val("SAMP-09", "then PERIOD", (long long)p[8], 1);
	check_val("SAMP-10", "then READ: times", p[10] && p[10] == p[11], 1);
	check_val("SAMP-06", "READ has the same id", p[12] == id, 1);
	check_val("SAMP-11", "then CALLCHAIN, empty here", (long long)p[13], 0);
	check_val("SAMP-12", "then RAW", (long long)p[14], 4);
	check_val("SAMP-14", "then REGS_USER", p[15] == 2 && p[16] == (u64)touch_store, 1);
	check_val("SAMP-15", "then STACK_USER with its size", (long long)p[17], 64);
	check_val("SAMP-15", "and how much of it counts", (long long)p[26], 64);
	check_val("SAMP-16", "then WEIGHT", (long long)p[27], 0);
	check_val("SAMP-17", "then DATA_SRC", (long long)p[28], 0x1e05080021);
	check_val("SAMP-18", "then TRANSACTION", (long long)p[29], 0);
	check_val("SAMP-19", "then REGS_INTR", p[30] == 2 && p[31] == (u64)touch_store, 1);
	check_val("SAMP-21", "then CGROUP", p[32] != 0, 1);
	check_val("SAMP-22", "then DATA_PAGE_SIZE", (long long)p[33], 0);
	check_val("SAMP-22", "then CODE_PAGE_SIZE", (long long)p[34], 4096);
	check_val("SAMP-22", "and AUX at the end", (long long)p[35], 0);
	unmap(&b);
}

/* Of a minor fault the kernel tells when the page is there. */
CONFORM(page_that_is_there)
{
	struct pe_attr attr = faults(PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE);
	const struct perf_event_header *h;
	struct buffer b;

	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	touch();
	h = sample(&b, attr);
	check_val("SAMP-22", "DATA_PAGE_SIZE of a page that is there", (long long)words_of(h)[1],
		  4096);
	unmap(&b);
}

/* A copy's samples have the original's id, and a stream's of its own. */
CONFORM(ids_of_copies)
{
	struct pe_attr attr = faults(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_ID |
				     PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
	u64 id, stream[2] = {0, 0}, own = 0, theirs = 0, same = 0, cpus = 0, n = 0;
	const struct perf_event_header *h;
	struct buffer b;
	pid_t child;

	to_cpu(0);
	/* One that is not inherited: no kernel swaps the contexts of parent and child then. */
	NEED(ev_self(sw_attr(PERF_COUNT_SW_DUMMY)) >= 0);
	attr.inherit = 1;
	b = map(ev_open(&attr, 0, 0, -1, 0));
	id = id_of(b.fd);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch();
	for (int i = 0; i < 2; i++) {
		child = fork();
		if (!child) {
			for (int k = 0; k < 10; k++)
				touch();
			_exit(0);
		}
		NEED(child > 0 && waitpid(child, NULL, 0) == child);
	}
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((h = next(&b))) {
		const u64 *p = words_of(h);

		if (h->type != PERF_RECORD_SAMPLE)
			continue;
		n++;
		same += p[0] == id && p[2] == id;
		cpus += p[4] == 0;
		if ((u32)p[1] == (u32)getpid()) {
			own += p[3] == id;
			continue;
		}
		if (!stream[0])
			stream[0] = p[3];
		if (p[3] != stream[0])
			stream[1] = p[3];
		theirs += p[3] != id && (p[3] == stream[0] || p[3] == stream[1]);
	}
	CHECK_ROW("SAMP-06", same == n && n > 20, "ID and IDENTIFIER are the original's in all",
		  "%lu of %lu", same, n);
	CHECK_ROW("SAMP-07", own + theirs == n && own && theirs >= 20,
		  "STREAM_ID is each copy's own", "%lu and %lu of %lu", own, theirs, n);
	check_val("SAMP-07", "another one for each copy", stream[0] && stream[1], 1);
	CHECK_ROW("SAMP-08", cpus == n, "the CPU of all of them is the one", "%lu of %lu", cpus, n);
}

/* Of an event that inherits a sample tells what its own task has counted (6.12). */
CONFORM(counts_of_copies)
{
	struct pe_attr attr = faults(PERF_SAMPLE_TID | PERF_SAMPLE_READ);
	u64 n[2] = {0, 0}, right = 0, all = 0;
	const struct perf_event_header *h;
	struct buffer b;
	pid_t child;

	to_cpu(0);
	NEED(ev_self(sw_attr(PERF_COUNT_SW_DUMMY)) >= 0);
	attr.inherit = 1;
	if (ev_open(&attr, 0, 0, -1, 0) == -EINVAL) {
		skip_row("SAMP-10", "each task's own count", "this kernel's READ excludes inherit");
		return;
	}
	b = map(ev_open(&attr, 0, 0, -1, 0));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch();
	child = fork();
	if (!child) {
		for (int k = 0; k < 500; k++)
			touch();
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, NULL, 0) == child);
	touch();
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (h = next(&b)); all++) {
		const u64 *p = words_of(h);
		bool ours = (u32)p[0] == (u32)getpid();

		/* The runtime's faults are counted and have no sample. */
		right += virtual_world() ? p[1] > n[ours] : p[1] == n[ours] + 1;
		n[ours] = p[1];
	}
	CHECK_ROW("SAMP-10", right == all && all >= 500, "each task's own count goes on by one",
		  "%lu of %lu", right, all);
	CHECK_ROW("SAMP-10", n[0] >= 500 && n[1] < n[0], "a child's is not in its parent's",
		  "%lu and %lu", n[1], n[0]);
	CHECK_ROW("INH-03", ev_count(b.fd) >= n[0] + n[1], "but in what read gives", "%lu",
		  ev_count(b.fd));
}

/* With FORMAT_GROUP a sample of the leader's, and one of a member's, tells of both. */
CONFORM(counts_of_a_group)
{
	static const char *const texts[][5] = {
		{"the size of a leader's sample with a group", "as many as there are",
		 "the leader comes first", "then its member", "counts that go on"},
		{"the size of a member's", "the group's again", "the leader first, too",
		 "then the member that samples", "and its counts that go on"},
	};

	for (int sampler = 0; sampler < 2; sampler++) {
		struct pe_attr attr[2];
		const struct perf_event_header *h;
		u64 ids[2], n = 0, of = 0, first = 0, second = 0, on = 0, last = 0, size = 0;
		struct buffer b;
		int fd[2];

		for (int i = 0; i < 2; i++) {
			attr[i] = faults(i == sampler ? PERF_SAMPLE_READ | PERF_SAMPLE_ADDR : 0);
			attr[i].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
					      PERF_FORMAT_TOTAL_TIME_ENABLED;
			if (i != sampler) {
				attr[i].config = PERF_COUNT_SW_DUMMY;
				attr[i].sample_period = 0;
			}
		}
		attr[1].disabled = 0;
		fd[0] = (int)ev_self(attr[0]);
		NEED(fd[0] >= 0);
		fd[1] = (int)ev_open(&attr[1], 0, -1, fd[0], 0);
		NEED(fd[1] >= 0);
		for (int i = 0; i < 2; i++)
			ids[i] = id_of(fd[i]);
		b = map(fd[sampler]);
		NEED(ev_ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0) == 0);
		for (int i = 0; i < 20; i++)
			touch();
		NEED(ev_ioctl(fd[0], PERF_EVENT_IOC_DISABLE, 0) == 0);
		for (; (h = next(&b)); n++) {
			const u64 *p = words_of(h) + 1; /* behind ADDR */

			size += h->size == 8 + 8 + 6 * 8;
			of += p[0] == 2 && p[1] > 0;
			first += p[3] == ids[0];
			second += p[5] == ids[1];
			on += p[2 + 2 * sampler] > last && p[2 + 2 * !sampler] == 0;
			last = p[2 + 2 * sampler];
		}
		NEED(n >= 20);
		CHECK_ROW("SAMP-10", size == n, texts[sampler][0], "%lu of %lu", size, n);
		CHECK_ROW("SAMP-10", of == n, texts[sampler][1], "%lu of %lu", of, n);
		CHECK_ROW("SAMP-10", first == n, texts[sampler][2], "%lu of %lu", first, n);
		CHECK_ROW("SAMP-10", second == n, texts[sampler][3], "%lu of %lu", second, n);
		CHECK_ROW("SAMP-10", on == n, texts[sampler][4], "%lu of %lu", on, n);
	}
}

/* Two events of different layouts in one buffer: the id at the ends tells whose a record is. */
CONFORM(taken_apart)
{
	struct pe_attr attr[2] = {
		faults(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR),
		faults(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
		       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD),
	};
	static const u16 sizes[2] = {8 + 2 * 8, 8 + 6 * 8};
	/* COMM with a short name, and the words of the trailer. */
	static const u16 names[2] = {24 + 8, 24 + 4 * 8};
	u64 ids[2], n[2] = {0, 0}, named[2] = {0, 0}, right = 0, all = 0, end = 0;
	const struct perf_event_header *h;
	struct buffer b;
	long other;

	/*
	 * Another event: in 6.18 two of one kind share what is found out for a sample of theirs,
	 * and have the id of one of them in both.
	 */
	attr[1].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	for (int i = 0; i < 2; i++) {
		attr[i].comm = attr[i].sample_id_all = 1;
		attr[i].disabled = 0;
	}
	b = map(ev_self(attr[0]));
	other = ev_self(attr[1]);
	NEED(other >= 0);
	NEED(ev_ioctl((int)other, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)b.fd) == 0);
	ids[0] = id_of(b.fd);
	ids[1] = id_of((int)other);
	for (int i = 0; i < 5; i++) {
		touch();
		prctl(PR_SET_NAME, "short");
	}
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl((int)other, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (h = next(&b)); all++, end = b.at) {
		u64 last = h->size / 8 - 2;

		for (int i = 0; i < 2; i++)
			if (h->type == PERF_RECORD_SAMPLE && words_of(h)[0] == ids[i]) {
				n[i]++;
				right += h->size == sizes[i];
			} else if (h->type == PERF_RECORD_COMM && words_of(h)[last] == ids[i]) {
				named[i]++;
				right += h->size == names[i];
			}
	}
	CHECK_ROW("SAMP-01", right == all && all >= 20,
		  "the id tells each record's event, and so its size", "%lu of %lu", right, all);
	CHECK_ROW("SAMP-01", n[0] >= 5 && n[1] >= 5, "both have samples", "%lu and %lu", n[0],
		  n[1]);
	check_val("SAMP-01", "both have other records, where it is last",
		  (long long)(named[0] * 10 + named[1]), 55);
	check_val("SAMP-32", "who goes by the sizes alone comes to the end",
		  end == b.page->data_head, 1);
}

/* Two events of one kind, which a kernel may tell of one occurrence in one breath. */
CONFORM(same_occurrence)
{
	struct pe_attr attr = faults(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR);
	const struct perf_event_header *h;
	struct buffer b[2];
	u64 n = 0, own = 0;

	for (int i = 0; i < 2; i++)
		b[i] = map(ev_self(attr));
	for (int i = 0; i < 2; i++)
		NEED(ev_ioctl(b[i].fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 10; i++)
		touch();
	for (int i = 0; i < 2; i++)
		NEED(ev_ioctl(b[i].fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (int i = 0; i < 2; i++)
		for (; (h = next(&b[i])); n++)
			own += words_of(h)[0] == id_of(b[i].fd);
	CHECK_ROW("SAMP-06", n >= 20 && (own == n || (!virtual_world() && own >= 10)),
		  "two events of one kind both tell of a fault, ours each with its own id",
		  "%lu of %lu", own, n);
}

/* Records of a change of name, whose bare size is 24. */
static u32 size_of_name(u64 sample_type, int all)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	const struct perf_event_header *h;
	struct buffer b;
	u32 size;

	attr.disabled = 0;
	attr.comm = 1;
	attr.sample_type = sample_type;
	attr.sample_id_all = all & 1;
	b = map(ev_self(attr));
	prctl(PR_SET_NAME, "short");
	h = next(&b);
	NEED(h && h->type == PERF_RECORD_COMM && words_of(h)[1] == 0x74726f6873);
	size = h->size;
	unmap(&b);
	return size;
}

CONFORM(trailers)
{
	static const struct {
		const char *text;
		u64 bits;
		u32 words;
	} cases[] = {
		{"a trailer of TID", PERF_SAMPLE_TID, 1},
		{"of TIME", PERF_SAMPLE_TIME, 1},
		{"of ID", PERF_SAMPLE_ID, 1},
		{"of STREAM_ID", PERF_SAMPLE_STREAM_ID, 1},
		{"of CPU", PERF_SAMPLE_CPU, 1},
		{"of IDENTIFIER", PERF_SAMPLE_IDENTIFIER, 1},
		{"of nothing that IP, ADDR, PERIOD and WEIGHT ask for",
		 PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT, 0},
		{"of all that there is", ALL & ~(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR), 6},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[96];

		check_val("SAMP-30", cases[i].text, size_of_name(cases[i].bits, 1),
			  24 + cases[i].words * 8);
		snprintf(text, sizeof(text), "without sample_id_all none: %s", cases[i].text);
		check_val("SAMP-33", text, size_of_name(cases[i].bits, 0), 24);
	}
}

/* More of the stack than a record can have: the size is cut. */
CONFORM(longest)
{
	struct pe_attr attr = faults(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER);
	volatile char deep[3 * 65536];
	const struct perf_event_header *h;
	struct buffer b;
	const u64 *p;

	for (size_t i = 0; i < sizeof(deep); i += 1024)
		deep[i] = 1;
	attr.sample_stack_user = 65528;
	touch();
	h = sample(&b, attr);
	p = words_of(h);
	check_val("SAMP-23", "the longest sample", h->size, 65528);
	check_val("SAMP-15", "what is left for the stack", (long long)p[2], 65528 - 5 * 8);
	check_val("SAMP-15", "all of which counts", (long long)p[h->size / 8 - 2], 65528 - 5 * 8);
	check_val("SAMP-23", "and nothing is lost", b.at == b.page->data_head, 1);
	unmap(&b);
	attr.sample_stack_user = 8;
	h = sample(&b, attr);
	check_val("SAMP-23", "a short one", h->size, 8 + 5 * 8);
	unmap(&b);
	(void)deep[0];
}
