/*
 * Every record type and every sample_type bit, put together word by word as <linux/perf_event.h>
 * documents them and not by our encoder, which then must come to the same bytes; and bytes that are
 * no record.
 */
#include "unit/test.h"

#include <errno.h>

#include "record/coding.h"

/* A record under construction: words in the order in which they are added. */
static u64 words[RECORD_MAX / 8];
static size_t count;
static struct ap_layout layout;
static struct ap_record rec;
static const char *why;

static void begin(u32 type, u16 misc, u64 sample_type)
{
	layout = (struct ap_layout){.sample_type = sample_type, .sample_id_all = true};
	words[0] = type | (u64)misc << 32;
	count = 1;
}

static void add(u64 word)
{
	words[count++] = word;
}

static void add_pair(u32 low, u32 high)
{
	add(low | (u64)high << 32);
}

static void add_text(const char *text)
{
	size_t n = strlen(text) / 8 + 1;

	memset(&words[count], 0, n * 8);
	memcpy(&words[count], text, strlen(text));
	count += n;
}

/* TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER: every field of a trailer [SAMP-30, SAMP-31]. */
#define TRAILER RECORD_ID_BITS

static void add_trailer(void)
{
	add_pair(101, 102);
	add(103);
	add(104);
	add(105);
	add_pair(106, 0);
	add(104);
}

static void set_size(void)
{
	words[0] = (words[0] & 0x0000ffffffffffffull) | (u64)(count * 8) << 48;
}

/* From memory that ends where the record does. */
static int decode(void)
{
	static void *exact;
	int r;

	set_size();
	free(exact); /* the last one's, to which `rec` still pointed */
	exact = malloc(count * 8);
	memcpy(exact, words, count * 8);
	r = ap__record_decode(&rec, exact, count * 8, &layout, &why);
	if (r < 0)
		EXPECT(why != NULL);
	return r;
}

/* Decodes, encodes, and compares with what was put together. */
static void round_trip(void)
{
	static u64 again[RECORD_MAX / 8];
	size_t size = count * 8;

	if (decode() != (int)size) {
		TEST_FAIL("type %u: %s", (u32)words[0], why);
		return;
	}
	EXPECT(rec.known);
	EXPECT_EQ(rec.type, (u32)words[0]);
	EXPECT_EQ(rec.misc, (u16)(words[0] >> 32));
	EXPECT_EQ(rec.size, size);
	memset(again, 0xff, size + 8);
	EXPECT_EQ(ap__record_size(&rec, &layout), size);
	EXPECT_EQ(ap__record_encode(&rec, &layout, again, size), size);
	for (size_t i = 0; i < count; i++)
		if (again[i] != words[i])
			TEST_FAIL("type %u: word %zu is encoded as %#llx, not %#llx", rec.type, i,
				  (unsigned long long)again[i], (unsigned long long)words[i]);
	EXPECT_EQ(again[count], ~0ull);
}

static void expect_trailer(void)
{
	EXPECT_EQ(rec.id.has, TRAILER);
	EXPECT_EQ(rec.id.pid, 101);
	EXPECT_EQ(rec.id.tid, 102);
	EXPECT_EQ(rec.id.time, 103);
	EXPECT_EQ(rec.id.id, 104);
	EXPECT_EQ(rec.id.stream_id, 105);
	EXPECT_EQ(rec.id.cpu, 106);
}

static void finish(void)
{
	add_trailer();
	round_trip();
	expect_trailer();
}

/* [REC-01, REC-09, MISC-06] */
TEST(mmap_records)
{
	begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, TRAILER);
	add_pair(1, 2);
	add(0x1000);
	add(0x2000);
	add(0x3000);
	add_text("/bin/true");
	finish();
	EXPECT_EQ(rec.mmap.pid, 1);
	EXPECT_EQ(rec.mmap.tid, 2);
	EXPECT_EQ(rec.mmap.addr, 0x1000);
	EXPECT_EQ(rec.mmap.len, 0x2000);
	EXPECT_EQ(rec.mmap.pgoff, 0x3000);
	EXPECT_STREQ(rec.mmap.filename, "/bin/true");
	EXPECT(!rec.mmap.build_id);

	begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, TRAILER);
	add_pair(1, 2);
	add(0x1000);
	add(0x2000);
	add(0x3000);
	add_pair(8, 1);
	add(77);
	add(78);
	add_pair(5, 2);
	add_text("1234567"); /* its NUL is the last of the word */
	finish();
	EXPECT_EQ(rec.mmap.maj, 8);
	EXPECT_EQ(rec.mmap.min, 1);
	EXPECT_EQ(rec.mmap.ino, 77);
	EXPECT_EQ(rec.mmap.ino_generation, 78);
	EXPECT_EQ(rec.mmap.prot, 5);
	EXPECT_EQ(rec.mmap.flags, 2);
	EXPECT_STREQ(rec.mmap.filename, "1234567");

	begin(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID, TRAILER);
	add_pair(1, 2);
	add(0x1000);
	add(0x2000);
	add(0x3000);
	add(0x0403020100000014ull); /* size 20, three bytes of nothing, the first four of 20 */
	add(0x0c0b0a0908070605ull);
	add(0x14131211100f0e0dull);
	add_pair(5, 2);
	add_text("x");
	finish();
	EXPECT_EQ(rec.mmap.build_id_size, 20);
	for (int i = 0; i < 20; i++)
		EXPECT_EQ(rec.mmap.build_id[i], i + 1);
	EXPECT_EQ(rec.mmap.ino, 0);
	words[5] = (words[5] & ~0xffull) | 21;
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "build id");
}

/* [REC-03, REC-04, REC-06, REC-11, REC-13..15, REC-18] */
TEST(task_records)
{
	begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, TRAILER);
	add_pair(1, 2);
	add_text("fifteen letters");
	finish();
	EXPECT_STREQ(rec.comm.comm, "fifteen letters");
	EXPECT_EQ(rec.comm.tid, 2);

	for (u32 type = PERF_RECORD_EXIT; type <= PERF_RECORD_FORK; type += 3) {
		begin(type, 0, TRAILER);
		add_pair(1, 2);
		add_pair(3, 4);
		add(5);
		finish();
		EXPECT_EQ(rec.task.pid, 1);
		EXPECT_EQ(rec.task.ppid, 2);
		EXPECT_EQ(rec.task.tid, 3);
		EXPECT_EQ(rec.task.ptid, 4);
		EXPECT_EQ(rec.task.time, 5);
	}

	begin(PERF_RECORD_NAMESPACES, 0, TRAILER);
	add_pair(1, 2);
	add(2);
	add(3);
	add(4);
	add(5);
	add(6);
	finish();
	EXPECT_EQ(rec.namespaces.nr, 2);
	EXPECT_EQ(rec.namespaces.links[1].dev, 5);
	EXPECT_EQ(rec.namespaces.links[1].ino, 6);

	begin(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, TRAILER);
	finish();
	begin(PERF_RECORD_SWITCH_CPU_WIDE, 0, TRAILER);
	add_pair(1, 2);
	finish();
	EXPECT_EQ(rec.context_switch.next_prev_pid, 1);
	EXPECT_EQ(rec.context_switch.next_prev_tid, 2);

	begin(PERF_RECORD_ITRACE_START, 0, TRAILER);
	add_pair(1, 2);
	finish();
	EXPECT_EQ(rec.itrace_start.tid, 2);

	begin(PERF_RECORD_CGROUP, 0, TRAILER);
	add(1);
	add_text("/a/b");
	finish();
	EXPECT_EQ(rec.cgroup.id, 1);
	EXPECT_STREQ(rec.cgroup.path, "/a/b");
}

/* [REC-02, REC-05, REC-10, REC-12, REC-20] */
TEST(records_about_the_stream)
{
	begin(PERF_RECORD_LOST, 0, TRAILER);
	add(1);
	add(2);
	finish();
	EXPECT_EQ(rec.lost.id, 1);
	EXPECT_EQ(rec.lost.lost, 2);
	begin(PERF_RECORD_LOST_SAMPLES, 0, TRAILER);
	add(2);
	finish();
	EXPECT_EQ(rec.lost.lost, 2);
	for (u32 type = PERF_RECORD_THROTTLE; type <= PERF_RECORD_UNTHROTTLE; type++) {
		begin(type, 0, TRAILER);
		add(1);
		add(2);
		add(3);
		finish();
		EXPECT_EQ(rec.throttle.time, 1);
		EXPECT_EQ(rec.throttle.id, 2);
		EXPECT_EQ(rec.throttle.stream_id, 3);
	}
	begin(PERF_RECORD_AUX, 0, TRAILER);
	add(1);
	add(2);
	add(PERF_AUX_FLAG_TRUNCATED);
	finish();
	EXPECT_EQ(rec.aux.aux_offset, 1);
	EXPECT_EQ(rec.aux.aux_size, 2);
	EXPECT_EQ(rec.aux.flags, 1);
	begin(PERF_RECORD_AUX_OUTPUT_HW_ID, 0, TRAILER);
	add(7);
	finish();
	EXPECT_EQ(rec.aux_output_hw_id.hw_id, 7);
	begin(AP_RECORD_CALLCHAIN_DEFERRED, 0, TRAILER);
	add(9);
	add(2);
	add((u64)PERF_CONTEXT_USER);
	add(0x401000);
	finish();
	EXPECT_EQ(rec.callchain_deferred.cookie, 9);
	EXPECT_EQ(rec.callchain_deferred.callchain.nr, 2);
	EXPECT(ap_callchain_is_marker(rec.callchain_deferred.callchain.ips[0]));
	EXPECT_EQ(rec.callchain_deferred.callchain.ips[1], 0x401000);
}

/* [REC-16, REC-17, REC-19] */
TEST(records_about_code)
{
	begin(PERF_RECORD_KSYMBOL, 0, TRAILER);
	add(0x1000);
	add(0x40 | 2ull << 32 | 1ull << 48);
	add_text("bpf_prog");
	finish();
	EXPECT_EQ(rec.ksymbol.addr, 0x1000);
	EXPECT_EQ(rec.ksymbol.len, 0x40);
	EXPECT_EQ(rec.ksymbol.ksym_type, 2);
	EXPECT_EQ(rec.ksymbol.flags, 1);
	EXPECT_STREQ(rec.ksymbol.name, "bpf_prog");

	begin(PERF_RECORD_BPF_EVENT, 0, TRAILER);
	add(1 | 2ull << 16 | 3ull << 32);
	add(0x0807060504030201ull);
	finish();
	EXPECT_EQ(rec.bpf_event.type, 1);
	EXPECT_EQ(rec.bpf_event.flags, 2);
	EXPECT_EQ(rec.bpf_event.id, 3);
	EXPECT_EQ(rec.bpf_event.tag[7], 8);

	begin(PERF_RECORD_TEXT_POKE, 0, TRAILER);
	add(0x1000);
	add(1 | 2ull << 16 | 0xa1ull << 32 | 0xb1ull << 40 | 0xb2ull << 48); /* a byte of padding */
	finish();
	EXPECT_EQ(rec.text_poke.old_len, 1);
	EXPECT_EQ(rec.text_poke.new_len, 2);
	EXPECT_EQ(rec.text_poke.old_bytes[0], 0xa1);
	EXPECT_EQ(rec.text_poke.new_bytes[1], 0xb2);
	begin(PERF_RECORD_TEXT_POKE, 0, TRAILER); /* a trampoline comes: there is nothing old */
	add(0x1000);
	add(0 | 4ull << 16 | 0xb4b3b2b1ull << 32);
	finish();
	EXPECT_EQ(rec.text_poke.new_bytes[3], 0xb4);
}

static void add_read(u64 format, u64 nr)
{
	if (format & PERF_FORMAT_GROUP)
		add(nr);
	else
		add(1000);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		add(20);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		add(10);
	for (u64 i = 0; i < nr; i++) {
		if (format & PERF_FORMAT_GROUP)
			add(1000 + i);
		if (format & PERF_FORMAT_ID)
			add(50 + i);
		if (format & PE_FORMAT_LOST)
			add(60 + i);
	}
}

/* [REC-07, SAMP-10] */
TEST(read_blocks)
{
	for (u64 format = 0; format < 32; format++) {
		u64 nr = format & PERF_FORMAT_GROUP ? 3 : 1;
		struct ap_value v[3];

		begin(PERF_RECORD_READ, 0, TRAILER);
		layout.read_format = format;
		add_pair(1, 2);
		add_read(format, nr);
		finish();
		EXPECT_EQ(rec.read.tid, 2);
		ASSERT(ap_read_decode(rec.read.read.bytes, rec.read.read.len, rec.read.read.format,
				      v, 3) == (int)nr);
		EXPECT_EQ(v[nr - 1].value, 1000 + nr - 1);

		begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_READ | PERF_SAMPLE_PERIOD);
		layout.read_format = format;
		add(99);
		add_read(format, nr);
		round_trip();
		EXPECT_EQ(rec.sample.period, 99);
		EXPECT_EQ(ap_read_decode(rec.sample.read.bytes, rec.sample.read.len, format, v, 3),
			  nr);
	}
	begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_READ);
	layout.read_format = PERF_FORMAT_GROUP;
	add(0);
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "group of no events");
	words[1] = 1ull << 61; /* times the size of a value it would be 0 */
	EXPECT_EQ(decode(), -EBADMSG);
	layout.read_format = 1 << 5;
	EXPECT_EQ(decode(), -EOPNOTSUPP);
}

/* The part of a sample that a bit asks for; in an order of its own, see sample_order[]. */
static void add_part(u64 bit)
{
	switch (bit) {
	case PERF_SAMPLE_IDENTIFIER:
	case PERF_SAMPLE_ID: add(104); return;
	case PERF_SAMPLE_IP: add(0x401000); return;
	case PERF_SAMPLE_TID: add_pair(101, 102); return;
	case PERF_SAMPLE_TIME: add(103); return;
	case PERF_SAMPLE_ADDR: add(0xadd0); return;
	case PERF_SAMPLE_STREAM_ID: add(105); return;
	case PERF_SAMPLE_CPU: add_pair(106, 0); return;
	case PERF_SAMPLE_PERIOD: add(9); return;
	case PERF_SAMPLE_READ: add_read(layout.read_format, 2); return;
	case PERF_SAMPLE_CALLCHAIN:
		add(3);
		add((u64)PERF_CONTEXT_USER);
		add(0x401000);
		add(0x402000);
		return;
	case PERF_SAMPLE_RAW:
		add_pair(12, 0x33323130);
		add(0x3b3a393837363534ull);
		return;
	case PERF_SAMPLE_BRANCH_STACK:
		add(2);
		if (layout.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			add(~0ull);
		for (u64 i = 0; i < 2; i++) {
			add(0xf0 + i);
			add(0xe0 + i);
			add(1 | 77 << 4 | PERF_BR_RET << 20); /* mispred, cycles, type */
		}
		if (layout.branch_sample_type & PE_SAMPLE_BRANCH_COUNTERS) {
			add(0xc0);
			add(0xc1);
		}
		return;
	case PERF_SAMPLE_REGS_USER:
		add(PERF_SAMPLE_REGS_ABI_64);
		add(0xa0);
		add(0xa5);
		add(0xa63);
		return;
	case PERF_SAMPLE_STACK_USER:
		add(16);
		add(0x5151515151515151ull);
		add(0);
		add(8);
		return;
	case PERF_SAMPLE_WEIGHT:
	case PERF_SAMPLE_WEIGHT_STRUCT: add(0x0003000200000001ull); return;
	case PERF_SAMPLE_DATA_SRC: add(0x1e05080021ull); return;
	case PERF_SAMPLE_TRANSACTION: add(PERF_TXN_ELISION); return;
	case PERF_SAMPLE_REGS_INTR:
		add(PERF_SAMPLE_REGS_ABI_32);
		add(0xb1);
		return;
	case PERF_SAMPLE_PHYS_ADDR: add(0x9999); return;
	case PERF_SAMPLE_CGROUP: add(4242); return;
	case PERF_SAMPLE_DATA_PAGE_SIZE: add(4096); return;
	case PERF_SAMPLE_CODE_PAGE_SIZE: add(2 << 20); return;
	case PERF_SAMPLE_AUX:
		add(8);
		add(0x6666);
		return;
	default: TEST_FAIL("bit %#llx", (unsigned long long)bit);
	}
}

/* The positions of the SAMP rows: not the order of the bits [SAMP-01..22]. */
static const u64 sample_order[] = {
	PERF_SAMPLE_IDENTIFIER,
	PERF_SAMPLE_IP,
	PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME,
	PERF_SAMPLE_ADDR,
	PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID,
	PERF_SAMPLE_CPU,
	PERF_SAMPLE_PERIOD,
	PERF_SAMPLE_READ,
	PERF_SAMPLE_CALLCHAIN,
	PERF_SAMPLE_RAW,
	PERF_SAMPLE_BRANCH_STACK,
	PERF_SAMPLE_REGS_USER,
	PERF_SAMPLE_STACK_USER,
	PERF_SAMPLE_WEIGHT,
	PERF_SAMPLE_WEIGHT_STRUCT,
	PERF_SAMPLE_DATA_SRC,
	PERF_SAMPLE_TRANSACTION,
	PERF_SAMPLE_REGS_INTR,
	PERF_SAMPLE_PHYS_ADDR,
	PERF_SAMPLE_CGROUP,
	PERF_SAMPLE_DATA_PAGE_SIZE,
	PERF_SAMPLE_CODE_PAGE_SIZE,
	PERF_SAMPLE_AUX,
};

static void build_sample(u64 sample_type)
{
	begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP, sample_type);
	layout.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	layout.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX | PE_SAMPLE_BRANCH_COUNTERS;
	layout.sample_regs_user = BIT(0) | BIT(5) | BIT(63);
	layout.sample_regs_intr = BIT(1);
	for (size_t i = 0; i < ARRAY_SIZE(sample_order); i++)
		if (sample_type & sample_order[i])
			add_part(sample_order[i]);
}

static void expect_sample(u64 type)
{
	const struct ap_sample *s = &rec.sample;
	uint64_t value = 1;

#define IF(bit, v) (type & PERF_SAMPLE_##bit ? (v) : 0)
	EXPECT_EQ(s->ip, IF(IP, 0x401000));
	EXPECT_EQ(s->addr, IF(ADDR, 0xadd0));
	EXPECT_EQ(s->period, IF(PERIOD, 9));
	EXPECT_EQ(s->read.len, IF(READ, 5 * 8));
	EXPECT_EQ(s->callchain.nr, IF(CALLCHAIN, 3));
	EXPECT_EQ(s->callchain.ips ? s->callchain.ips[2] : 0, IF(CALLCHAIN, 0x402000));
	EXPECT_EQ(s->raw.len, IF(RAW, 12));
	EXPECT_EQ(s->raw.bytes ? s->raw.bytes[11] : 0, IF(RAW, 0x3b));
	EXPECT_EQ(s->branch_stack.nr, IF(BRANCH_STACK, 2));
	EXPECT_EQ(s->branch_stack.hw_idx, IF(BRANCH_STACK, ~0ull));
	if (s->branch_stack.entries) {
		EXPECT_EQ(s->branch_stack.entries[1].from, 0xf1);
		EXPECT_EQ(s->branch_stack.entries[1].cycles, 77);
		EXPECT_EQ(s->branch_stack.entries[1].type, PERF_BR_RET);
		EXPECT_EQ(s->branch_stack.counters[1], 0xc1);
	}
	EXPECT_EQ(s->regs_user.abi, IF(REGS_USER, PERF_SAMPLE_REGS_ABI_64));
	EXPECT_EQ(ap_regs_get(&s->regs_user, 63, &value), IF(REGS_USER, 1));
	EXPECT_EQ(value, IF(REGS_USER, 0xa63 - 1) + 1);
	EXPECT(!ap_regs_get(&s->regs_user, 1, &value));
	EXPECT(!ap_regs_get(&s->regs_user, 64, &value));
	EXPECT_EQ(s->stack_user.len, IF(STACK_USER, 16));
	EXPECT_EQ(s->stack_user.dyn_size, IF(STACK_USER, 8));
	EXPECT_EQ(s->weight, type & PERF_SAMPLE_WEIGHT_TYPE ? 0x0003000200000001ll : 0);
	EXPECT_EQ(s->data_src, IF(DATA_SRC, 0x1e05080021ll));
	EXPECT_EQ(s->transaction, IF(TRANSACTION, PERF_TXN_ELISION));
	EXPECT_EQ(s->regs_intr.mask, IF(REGS_INTR, 2));
	EXPECT_EQ(s->phys_addr, IF(PHYS_ADDR, 0x9999));
	EXPECT_EQ(s->cgroup, IF(CGROUP, 4242));
	EXPECT_EQ(s->data_page_size, IF(DATA_PAGE_SIZE, 4096));
	EXPECT_EQ(s->code_page_size, IF(CODE_PAGE_SIZE, 2 << 20));
	EXPECT_EQ(s->aux.len, IF(AUX, 8));
	EXPECT_EQ(rec.id.has, type & TRAILER);
	EXPECT_EQ(rec.id.pid, IF(TID, 101));
	EXPECT_EQ(rec.id.tid, IF(TID, 102));
	EXPECT_EQ(rec.id.time, IF(TIME, 103));
	EXPECT_EQ(rec.id.id, IF(ID, 104) | IF(IDENTIFIER, 104));
	EXPECT_EQ(rec.id.stream_id, IF(STREAM_ID, 105));
	EXPECT_EQ(rec.id.cpu, IF(CPU, 106));
#undef IF
}

/* [REC-08, BR-05, MISC-05] */
TEST(every_sample_bit)
{
	u64 all = BIT(25) - 1;

	for (u64 bit = 0; bit < 25; bit++) {
		build_sample(BIT(bit));
		round_trip();
		expect_sample(BIT(bit));
		/* The kernel allows only one of the two. */
		build_sample(all & ~(bit == 14 ? PERF_SAMPLE_WEIGHT_STRUCT : PERF_SAMPLE_WEIGHT) &
			     ~BIT(bit));
		round_trip();
		expect_sample(layout.sample_type);
	}
	for (u64 a = 0; a < 24; a++)
		for (u64 b = a + 1; b < 24; b++) {
			build_sample(BIT(a) | BIT(b));
			round_trip();
			expect_sample(layout.sample_type);
		}
}

/* Whatever one word of it says, nothing is read beyond the end; what is accepted has its size. */
TEST(every_word_of_a_sample_may_lie)
{
	static const u64 lies[] = {0,      1,       2,          3,          7,     8,        64,
				   0xffff, 0x10000, 1ull << 32, 1ull << 61, ~0ull, ~0ull - 7};
	u64 type = (BIT(25) - 1) & ~PERF_SAMPLE_WEIGHT;
	size_t n;

	build_sample(type);
	n = count;
	for (size_t at = 1; at < n; at++)
		for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
			int r;

			build_sample(type);
			words[at] = lies[i];
			r = decode();
			EXPECT(r == (int)(n * 8) || r == -EBADMSG);
		}
}

/* [SAMP-12, SAMP-14, SAMP-15] */
TEST(parts_that_are_not_there)
{
	begin(PERF_RECORD_SAMPLE, 0,
	      PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_STACK_USER |
		      PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_AUX);
	layout.sample_regs_user = layout.sample_regs_intr = 0xff;
	add(0); /* no call chain */
	add_pair(4, 0);
	add(PERF_SAMPLE_REGS_ABI_NONE);
	add(0); /* no stack, and so no dyn_size */
	add(PERF_SAMPLE_REGS_ABI_NONE);
	add(0);
	round_trip();
	EXPECT_EQ(rec.sample.raw.len, 4);
	EXPECT_EQ(rec.sample.regs_user.mask, 0);
	EXPECT_EQ(rec.sample.stack_user.len, 0);
}

/* A number of 0 with a hardware index behind it, and without: what follows decides. */
TEST(empty_branch_stacks)
{
	begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_WEIGHT);
	layout.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
	add(0);
	add(5);
	add(7);
	round_trip();
	EXPECT(rec.sample.branch_stack.entries != NULL);
	EXPECT_EQ(rec.sample.branch_stack.hw_idx, 5);
	EXPECT_EQ(rec.sample.weight, 7);
	count--;
	words[2] = 7;
	round_trip();
	EXPECT(!rec.sample.branch_stack.entries);
	EXPECT_EQ(rec.sample.weight, 7);
	count--;
	EXPECT_EQ(decode(), -EBADMSG);
}

TEST(samples_that_do_not_fit)
{
	begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_IP);
	add(1);
	add(2);
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "longer than its sample_type says");
	begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_CALLCHAIN);
	add(2);
	add(1);
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "call chain does not fit");
	begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_RAW);
	add_pair(5, 0);
	add(0);
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "raw data does not end on a multiple");
	begin(PERF_RECORD_SAMPLE, 0, PERF_SAMPLE_STACK_USER);
	add(8);
	add(0);
	add(9);
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "more of its user stack");
	begin(PERF_RECORD_SAMPLE, 0, BIT(25));
	add(0);
	EXPECT_EQ(decode(), -EOPNOTSUPP);
	layout.sample_type = PERF_SAMPLE_BRANCH_STACK;
	layout.branch_sample_type = BIT(20);
	EXPECT_EQ(decode(), -EOPNOTSUPP);
	layout.sample_type = PERF_SAMPLE_IP; /* which branches there would be is of no importance */
	EXPECT_EQ(decode(), 16);
	words[0] = PERF_RECORD_COMM; /* nor are a sample's bits for another record */
	layout.sample_type = BIT(25);
	words[1] = 0;
	EXPECT_EQ(decode(), -EBADMSG); /* it has no text */
	EXPECT_CONTAINS(why, "text");
}

TEST(other_records_that_do_not_fit)
{
	begin(PERF_RECORD_COMM, 0, TRAILER);
	add_pair(1, 2);
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "sample_id_all");
	layout.sample_id_all = false;
	EXPECT_EQ(decode(), -EBADMSG);
	add(~0ull); /* no NUL */
	EXPECT_EQ(decode(), -EBADMSG);
	EXPECT_CONTAINS(why, "no end");
	begin(PERF_RECORD_NAMESPACES, 0, TRAILER);
	add_pair(1, 2);
	add(1ull << 60);
	add_trailer();
	EXPECT_EQ(decode(), -EBADMSG);
	begin(PERF_RECORD_TEXT_POKE, 0, TRAILER);
	add(1);
	add(0xffff | 0xffffull << 16);
	add_trailer();
	EXPECT_EQ(decode(), -EBADMSG);
}

/* The trailer is at the end, and what a newer kernel puts in front of it is skipped [SAMP-32]. */
TEST(longer_than_known)
{
	begin(PERF_RECORD_LOST, 0, TRAILER);
	add(1);
	add(2);
	add(0x1eaf);
	add_trailer();
	EXPECT_EQ(decode(), count * 8);
	EXPECT_EQ(rec.lost.lost, 2);
	expect_trailer();
}

TEST(types_of_the_future)
{
	begin(23, 0, TRAILER);
	add(1);
	add_trailer();
	EXPECT_EQ(decode(), count * 8);
	EXPECT(!rec.known);
	expect_trailer();
	EXPECT_EQ(ap__record_size(&rec, &layout), -EOPNOTSUPP);
	begin(1 << 20, 0, TRAILER); /* so short that it cannot have a trailer */
	EXPECT_EQ(decode(), 8);
	EXPECT(!rec.known);
	EXPECT_EQ(rec.id.has, 0);
	begin(68, 0, TRAILER); /* perf's FINISHED_ROUND: none of the kernel's */
	EXPECT_EQ(decode(), 8);
	EXPECT(!rec.known);
	EXPECT_STREQ(ap_record_name(PERF_RECORD_MMAP2), "MMAP2");
	EXPECT(!ap_record_name(0));
	EXPECT(!ap_record_name(23));
}

/* [RING-03] */
TEST(no_record_at_all)
{
	u64 bytes[4] = {0};
	struct ap_error err;

	layout = (struct ap_layout){0};
	EXPECT_EQ(ap__record_decode(&rec, (char *)bytes + 4, 16, &layout, &why), -EINVAL);
	EXPECT_EQ(ap__record_decode(&rec, bytes, 7, &layout, &why), -ENODATA);
	EXPECT_EQ(ap__record_decode(&rec, bytes, sizeof(bytes), &layout, &why), -EBADMSG);
	bytes[0] = PERF_RECORD_SWITCH | 12ull << 48;
	EXPECT_EQ(ap__record_decode(&rec, bytes, sizeof(bytes), &layout, &why), -EBADMSG);
	bytes[0] = PERF_RECORD_SWITCH | 40ull << 48;
	EXPECT_EQ(ap__record_decode(&rec, bytes, sizeof(bytes), &layout, &why), -ENODATA);
	EXPECT_EQ(ap_record_decode(&rec, bytes, sizeof(bytes), &layout, &err), -ENODATA);
	EXPECT_STREQ(err.why,
		     "a SWITCH record of 40 bytes, of which 32 are there: its end is cut off");
	bytes[0] = 81 | 13ull << 48; /* perf's COMPRESSED: no multiple of 8 */
	EXPECT_EQ(ap__record_decode(&rec, bytes, sizeof(bytes), &layout, &why), 13);
}

TEST(whose_record)
{
	uint64_t id = 0;

	build_sample(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME);
	set_size();
	EXPECT_EQ(ap_record_event_id(words, count * 8, &id), 0);
	EXPECT_EQ(id, 104);
	EXPECT_EQ(ap_record_event_id(words, count * 8 - 1, &id), -ENODATA);
	EXPECT_EQ(ap_record_event_id(words, 7, &id), -ENODATA);
	begin(PERF_RECORD_SWITCH, 0, PERF_SAMPLE_IDENTIFIER);
	set_size();
	EXPECT_EQ(ap_record_event_id(words, count * 8, &id), -EBADMSG);
	add(105);
	set_size();
	EXPECT_EQ(ap_record_event_id(words, count * 8, &id), 0);
	EXPECT_EQ(id, 105);
	begin(68, 0, 0);
	set_size();
	EXPECT_EQ(ap_record_event_id(words, count * 8, &id), -ENOENT);
}

/* Where the time stands is where the decoder finds it; nowhere without sample_id_all [SAMP-33]. */
TEST(time_without_decoding)
{
	for (u64 type = 0; type < BIT(9); type++) {
		u64 bits = (type & 1 ? PERF_SAMPLE_TIME : 0) | (type & 2 ? PERF_SAMPLE_TID : 0) |
			   (type & 4 ? PERF_SAMPLE_IP : 0) |
			   (type & 8 ? PERF_SAMPLE_IDENTIFIER : 0) |
			   (type & 16 ? PERF_SAMPLE_ID : 0) | (type & 32 ? PERF_SAMPLE_CPU : 0) |
			   (type & 64 ? PERF_SAMPLE_STREAM_ID : 0) |
			   (type & 128 ? PERF_SAMPLE_ADDR : 0);
		size_t at;

		build_sample(bits);
		at = ap__record_time_at(PERF_RECORD_SAMPLE, count * 8, &layout);
		EXPECT_EQ(at ? words[at / 8] : 0, type & 1 ? 103 : 0);
		begin(PERF_RECORD_LOST, 0, bits);
		layout.sample_id_all = type & 256;
		rec = (struct ap_record){.type = PERF_RECORD_LOST, .id = {.time = 103}};
		EXPECT(ap__record_encode(&rec, &layout, words, sizeof(words)) > 0);
		at = ap__record_time_at(PERF_RECORD_LOST, words[0] >> 48, &layout);
		EXPECT_EQ(at ? words[at / 8] : 0, (type & 257) == 257 ? 103 : 0);
	}
	layout = (struct ap_layout){.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
				    .sample_id_all = true};
	EXPECT_EQ(ap__record_time_at(PERF_RECORD_SAMPLE, 8, &layout), 0);
	EXPECT_EQ(ap__record_time_at(PERF_RECORD_SWITCH, 16, &layout), 0);
	EXPECT_EQ(ap__record_time_at(68, 64, &layout), 0);
}

/* A u16 of bytes, of which there are whole words [SAMP-23]. */
TEST(too_long_to_encode)
{
	static u8 data[65536], out[65528];

	layout = (struct ap_layout){.sample_type = PERF_SAMPLE_RAW};
	rec = (struct ap_record){.type = PERF_RECORD_SAMPLE,
				 .sample.raw = {.len = 65528 - 12, .bytes = data}};
	EXPECT_EQ(ap__record_encode(&rec, &layout, out, sizeof(out)), 65528);
	rec.sample.raw.len++;
	EXPECT_EQ(ap__record_encode(&rec, &layout, out, sizeof(out)), -E2BIG);
	layout.sample_type = PERF_SAMPLE_CALLCHAIN;
	rec.sample.callchain.nr = 1ull << 61; /* times 8 it is 0 */
	rec.sample.callchain.ips = words;
	EXPECT_EQ(ap__record_encode(&rec, &layout, out, sizeof(out)), -E2BIG);
	rec.type = 23;
	EXPECT_EQ(ap__record_encode(&rec, &layout, out, sizeof(out)), -EOPNOTSUPP);
}

/* Raw data of any length is padded so that it ends on a multiple of 8 [SAMP-12]. */
TEST(raw_data_is_padded)
{
	static const u8 data[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	u64 out[8];

	layout = (struct ap_layout){.sample_type = PERF_SAMPLE_RAW};
	for (size_t len = 0; len <= sizeof(data); len++) {
		struct ap_record from = {.type = PERF_RECORD_SAMPLE,
					 .sample.raw = {.len = len, .bytes = data}};
		int n = ap__record_encode(&from, &layout, out, sizeof(out));

		EXPECT_EQ(ap__record_decode(&rec, out, sizeof(out), &layout, &why), n);
		EXPECT_EQ(rec.sample.raw.len, (len + 4 + 7) / 8 * 8 - 4);
		EXPECT(memcmp(rec.sample.raw.bytes, data, len) == 0);
	}
}

TEST(layouts_of_attrs_of_all_sizes)
{
	struct pe_attr a = {.sample_type = 1,
			    .read_format = 2,
			    .sample_id_all = 1,
			    .branch_sample_type = 3,
			    .sample_regs_user = 4,
			    .sample_regs_intr = 5};

	ap_layout_init(&layout, (struct perf_event_attr *)&a); /* size 0: VER0 */
	EXPECT_EQ(layout.sample_type, 1);
	EXPECT_EQ(layout.read_format, 2);
	EXPECT(layout.sample_id_all);
	EXPECT_EQ(layout.branch_sample_type, 0);
	a.size = PE_ATTR_SIZE_VER3;
	ap_layout_init(&layout, (struct perf_event_attr *)&a);
	EXPECT_EQ(layout.branch_sample_type, 3);
	EXPECT_EQ(layout.sample_regs_user, 4);
	EXPECT_EQ(layout.sample_regs_intr, 0);
	a.size = sizeof(a);
	ap_layout_init(&layout, (struct perf_event_attr *)&a);
	EXPECT_EQ(layout.sample_regs_intr, 5);
}
