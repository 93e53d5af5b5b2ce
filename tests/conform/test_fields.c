/*
 * What is in a sample, bit by bit of sample_type, and at its end: of page faults at one store,
 * which every machine has. Others hold what the values are worth; this is about which words there
 * are, and in which order.
 */
#include "conform/records.h"

#include <sched.h>
#include <sys/prctl.h>

#ifdef __x86_64__
#define REG_PC BIT(8)
#else
#define REG_PC BIT(32)
#endif

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
		struct pe_attr attr = fault_attr(PERF_SAMPLE_ADDR | bits[i].bit);
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
	struct pe_attr attr = fault_attr(ALL);
	const struct perf_event_header *h;
	struct buffer b;
	const u64 *p;
	u64 id;

	attr.exclude_callchain_user = attr.exclude_callchain_kernel = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			   PERF_FORMAT_ID;
	attr.sample_regs_user = attr.sample_regs_intr = REG_PC;
	attr.sample_stack_user = 64;
	run_on(0);
	touch();
	h = sample(&b, attr);
	p = words_of(h);
	id = ev_id(b.fd);
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
	struct pe_attr attr = fault_attr(PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE);
	const struct perf_event_header *h;
	struct buffer b;

	attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	touch();
	h = sample(&b, attr);
	check_val("SAMP-22", "DATA_PAGE_SIZE of a page that is there", (long long)words_of(h)[1],
		  4096);
	unmap(&b);
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
	struct pe_attr attr = fault_attr(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR |
					 PERF_SAMPLE_STACK_USER);
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
