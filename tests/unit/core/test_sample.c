/*
 * What a sample says [SAMP, BR-01..06]: values that were found, that the core knows, that are none.
 */
#include "unit/test.h"

#include "unit/core/fake.h"

static struct fake *f;

#define ALL_BITS (BIT(25) - 1 - PERF_SAMPLE_WEIGHT_STRUCT - PERF_SAMPLE_AUX)

static struct pe_attr sampling(u64 type)
{
	struct pe_attr attr = fake_attr();

	attr.sample_period = 1000;
	attr.sample_type = type;
	return attr;
}

static int open_mapped(const struct pe_attr *attr, int group)
{
	int fd = fake_open(f, attr, 0, -1, group);

	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 1 + 32, true), 0);
	return fd;
}

static const struct ap_sample *next(int fd)
{
	const struct ap_record *rec = fake_take_type(f, fd, PERF_RECORD_SAMPLE);

	if (!rec) {
		EXPECT(rec);
		exit(1);
	}
	return &rec->sample;
}

/* ~0: it was not sampled. */
static u64 reg(const struct ap_regs *regs, u32 bit)
{
	u64 below = regs->mask & (BIT(bit) - 1);

	return regs->mask & BIT(bit) ? regs->values[count_bits(below)] : ~0ull;
}

static struct pe_attr everything(void)
{
	struct pe_attr attr = sampling(ALL_BITS);

	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY |
				  PERF_SAMPLE_BRANCH_HW_INDEX;
	attr.sample_regs_user = 1 << 8 | 1 << 7;
	attr.sample_regs_intr = 1 << 0 | 1 << 1;
	attr.sample_stack_user = 64;
	attr.read_format = PERF_FORMAT_ID;
	return attr;
}

/* What nobody gives has the kernel's value for it. */
TEST(nothing_is_known)
{
	struct pe_attr attr = everything();
	const struct ap_sample *s;
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	s = next(fd);
	EXPECT_EQ(s->ip, 1000);
	EXPECT_EQ(s->addr, 0);
	EXPECT_EQ(s->period, 1000);
	EXPECT_EQ(s->callchain.nr, 0);
	EXPECT_EQ(s->raw.len, 4);
	EXPECT_EQ(s->branch_stack.nr, 0);
	EXPECT_EQ(s->regs_user.abi, PERF_SAMPLE_REGS_ABI_NONE);
	EXPECT_EQ(s->regs_intr.abi, PERF_SAMPLE_REGS_ABI_NONE);
	EXPECT_EQ(s->stack_user.len, 0);
	EXPECT_EQ(s->weight, 0);
	EXPECT_EQ(s->data_src, 0x1e05080021);
	EXPECT_EQ(s->transaction, 0);
	EXPECT_EQ(s->phys_addr, 0);
	EXPECT_EQ(s->cgroup, 0);
	EXPECT_EQ(s->code_page_size, 4096); /* the usual one */
	EXPECT_EQ(s->data_page_size, 0);
	/* Who, when, where [SAMP-03, SAMP-04, SAMP-06..08]. */
	EXPECT_EQ(f->record.id.pid, 100);
	EXPECT_EQ(f->record.id.tid, 100);
	EXPECT_EQ(f->record.id.time, 1000);
	EXPECT_EQ(f->record.id.id, event_id(fake_event(f, fd)));
	EXPECT_EQ(f->record.id.stream_id, event_id(fake_event(f, fd)));
	EXPECT_EQ(f->record.id.cpu, 0);
	fake_free(f);
}

TEST(everything_is_known)
{
	static const u64 ips[] = {0x1000, 0x2000, 0x3000}, regs[] = {1, 7, 8, 9};
	static const u64 raw[] = {5}, intr[] = {77};
	static const struct perf_branch_entry branch = {.from = 1, .to = 2, .predicted = 1};
	static u8 stack[48];
	struct pe_attr attr = everything();
	const struct ap_sample *s;
	struct ap_sample *given;
	int fd;

	f = fake_new(4);
	memset(stack, 0x5a, sizeof(stack));
	given = &f->facts.sample;
	f->facts.has = ~0ull;
	given->period = 77;
	given->addr = 0xadd;
	given->callchain = (struct ap_callchain){3, ips};
	given->raw = (struct ap_bytes){8, (const u8 *)raw};
	given->branch_stack = (struct ap_branch_stack){.nr = 1, .hw_idx = 3, .entries = &branch};
	given->regs_user = (struct ap_regs){PERF_SAMPLE_REGS_ABI_64, 0x382, regs};
	given->regs_intr = (struct ap_regs){PERF_SAMPLE_REGS_ABI_64, 0x1, intr};
	given->stack_user = (struct ap_stack){.len = sizeof(stack), .bytes = stack};
	given->weight = 11;
	given->data_src = 12;
	given->transaction = 13;
	given->phys_addr = 14;
	given->data_page_size = 4096;
	given->code_page_size = 8192;
	task_set_cgroup(fake_task(f, 100)->task, cgroup_new(f->core, NULL, 99));
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	s = next(fd);
	EXPECT_EQ(s->addr, 0xadd);
	EXPECT_EQ(s->period, 77);
	EXPECT_EQ(s->callchain.nr, 4);
	EXPECT_EQ(s->callchain.ips[0], PERF_CONTEXT_USER);
	EXPECT_EQ(s->callchain.ips[1], 0x1000);
	EXPECT_EQ(s->callchain.ips[3], 0x3000);
	EXPECT_EQ(s->raw.len, 12);
	EXPECT_EQ(s->raw.bytes[0], 5);
	EXPECT_EQ(s->branch_stack.nr, 1);
	EXPECT_EQ(s->branch_stack.hw_idx, 3);
	EXPECT_EQ(s->branch_stack.entries[0].to, 2);
	EXPECT_EQ(s->branch_stack.entries[0].predicted, 1);
	/* Of the registers those that were asked for; one that is not there is 0. */
	EXPECT_EQ(s->regs_user.abi, PERF_SAMPLE_REGS_ABI_64);
	EXPECT_EQ(reg(&s->regs_user, 7), 7);
	EXPECT_EQ(reg(&s->regs_user, 8), 8);
	EXPECT_EQ(reg(&s->regs_user, 9), ~0ull);
	EXPECT_EQ(reg(&s->regs_user, 0), ~0ull);
	EXPECT_EQ(reg(&s->regs_intr, 0), 77);
	EXPECT_EQ(reg(&s->regs_intr, 1), 0);
	/* The rest of what was asked for is zeros [SAMP-15]. */
	EXPECT_EQ(s->stack_user.len, 64);
	EXPECT_EQ(s->stack_user.dyn_size, 48);
	EXPECT_EQ(s->stack_user.bytes[47], 0x5a);
	EXPECT_EQ(s->stack_user.bytes[48], 0);
	EXPECT_EQ(s->weight, 11);
	EXPECT_EQ(s->data_src, 12);
	EXPECT_EQ(s->transaction, 13);
	EXPECT_EQ(s->phys_addr, 14);
	EXPECT_EQ(s->cgroup, 99);
	EXPECT_EQ(s->data_page_size, 4096);
	EXPECT_EQ(s->code_page_size, 8192);
	fake_free(f);
}

/* [SAMP-22] */
TEST(pages_of_code)
{
	static const struct {
		u16 cpumode;
		u64 given, want;
	} rows[] = {
		{PERF_RECORD_MISC_USER, 0, 4096},
		{PERF_RECORD_MISC_USER, 2 << 20, 2 << 20},
		{PERF_RECORD_MISC_KERNEL, 0, 0},
	};
	struct pe_attr attr = sampling(PERF_SAMPLE_CODE_PAGE_SIZE);
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, -1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		f->facts.cpumode = rows[i].cpumode;
		f->facts.has = rows[i].given ? PERF_SAMPLE_CODE_PAGE_SIZE : 0;
		f->facts.sample.code_page_size = rows[i].given;
		fake_advance(f, 1000);
		EXPECT_EQ(next(fd)->code_page_size, rows[i].want);
	}
	fake_free(f);
}

/* The time is that of the sample, not of its writing. */
TEST(a_sample_that_comes_late)
{
	struct pe_attr attr = sampling(PERF_SAMPLE_TIME);
	int fd;

	f = fake_new(4);
	fd = open_mapped(&attr, -1);
	f->facts.time = 600;
	fake_advance(f, 1000);
	next(fd);
	EXPECT_EQ(f->record.id.time, 600);
	fake_free(f);
}

/* [SAMP-11] */
TEST(chain_limits)
{
	static u64 ips[200];
	struct pe_attr attr = sampling(PERF_SAMPLE_CALLCHAIN);
	int fd;

	f = fake_new(4);
	f->facts.has = PERF_SAMPLE_CALLCHAIN;
	f->facts.sample.callchain = (struct ap_callchain){200, ips};
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	/* The marker does not count. */
	EXPECT_EQ(next(fd)->callchain.nr, 1 + 127);
	fake_close(f, fd);
	attr.sample_max_stack = 2;
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	EXPECT_EQ(next(fd)->callchain.nr, 1 + 2);
	fake_close(f, fd);
	/* The kernel's part and the program's share what is allowed. */
	attr.sample_max_stack = 0;
	f->facts.kernel_chain = (struct ap_callchain){100, ips};
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	EXPECT_EQ(next(fd)->callchain.nr, 1 + 100 + 1 + 27);
	fake_close(f, fd);
	f->facts.kernel_chain.nr = 0;
	attr.exclude_callchain_user = 1;
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	EXPECT_EQ(next(fd)->callchain.nr, 0);
	fake_free(f);
}

/* As much of the stack as a record has room for [SAMP-15, SAMP-23]. */
TEST(a_large_stack)
{
	static u8 stack[65536];
	static u64 ips[100];
	struct pe_attr attr = sampling(PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CALLCHAIN);
	const struct ap_sample *s;
	int fd;

	f = fake_new(4);
	f->facts.has = attr.sample_type;
	f->facts.sample.callchain = (struct ap_callchain){100, ips};
	f->facts.sample.stack_user = (struct ap_stack){.len = sizeof(stack), .bytes = stack};
	attr.sample_stack_user = 65528;
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	s = next(fd);
	EXPECT_EQ(f->record.size, 65528);
	EXPECT_EQ(s->stack_user.dyn_size, s->stack_user.len);
	EXPECT_EQ(fake_event(f, fd)->lost_samples, 0);
	fake_free(f);
}

/* [SAMP-10] */
TEST(counts_in_samples)
{
	struct pe_attr attr = sampling(PERF_SAMPLE_READ | PERF_SAMPLE_IP), other = fake_attr();
	const u64 *w;
	int fd, member;

	f = fake_new(4);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			   PERF_FORMAT_ID | PE_FORMAT_LOST;
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	w = (const u64 *)next(fd)->read.bytes;
	EXPECT_EQ(f->record.sample.read.len, 40);
	EXPECT_EQ(w[0], 1000);
	EXPECT_EQ(w[1], 1000);
	EXPECT_EQ(w[2], 1000);
	EXPECT_EQ(w[3], event_id(fake_event(f, fd)));
	EXPECT_EQ(w[4], 0);
	fake_close(f, fd);
	/* The whole group, whoever of it samples. */
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
	fd = fake_open(f, &other, 0, -1, -1);
	member = open_mapped(&attr, fd);
	fake_advance(f, 1000);
	w = (const u64 *)next(member)->read.bytes;
	EXPECT_EQ(f->record.sample.read.len, 48);
	EXPECT_EQ(w[0], 2);
	EXPECT_EQ(w[1], 1000);
	EXPECT_EQ(w[2], 1000);
	EXPECT_EQ(w[3], event_id(fake_event(f, fd)));
	EXPECT_EQ(w[4], 1000);
	EXPECT_EQ(w[5], event_id(fake_event(f, member)));
	fake_free(f);
}

/* A copy has its original's id and a stream id of its own [SAMP-07]. */
TEST(inherited)
{
	struct pe_attr attr = sampling(PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_TID);
	struct event *child;
	int fd;

	f = fake_new(4);
	attr.inherit = 1;
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	fake_fork(f, 100, 101, false);
	child = list_first(&fake_event(f, fd)->children, struct event, child_link);
	f->facts.task = fake_task(f, 101)->task;
	(void)!event_overflow(child, &f->facts, false);
	next(fd);
	EXPECT_EQ(f->record.id.pid, 101);
	EXPECT_EQ(f->record.id.id, event_id(fake_event(f, fd)));
	EXPECT_EQ(f->record.id.stream_id, child->id);
	EXPECT(child->id != event_id(fake_event(f, fd)));
	fake_free(f);
}

/* What children have counted is no part of what a sample of one event's says [SAMP-10]. */
TEST(counts_of_copies)
{
	struct pe_attr attr = sampling(PERF_SAMPLE_READ | PERF_SAMPLE_TID);
	const u64 *w;
	int fd;

	f = fake_new(4);
	attr.inherit = 1;
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	fake_event(f, fd)->child_count = 5000;
	f->facts.task = fake_task(f, 100)->task;
	fake_advance(f, 1000);
	w = (const u64 *)next(fd)->read.bytes;
	EXPECT_EQ(w[0], 1000);
	fake_free(f);
}

static const struct perf_branch_entry path[] = {
	{.from = 1, .to = 10, .type = PERF_BR_COND, .mispred = 1, .cycles = 3},
	{.from = 2, .to = 20, .type = PERF_BR_RET, .predicted = 1, .cycles = 4},
	{.from = 3, .to = 30, .type = PERF_BR_CALL},
	{.from = 4, .to = 40, .type = PERF_BR_IND_CALL},
	{.from = 5, .to = 50, .type = PERF_BR_IND},
	{.from = 6, .to = 60, .type = PERF_BR_UNCOND},
	{.from = 7, .to = 70, .type = PERF_BR_SYSCALL},
	{.from = 8, .to = ~0ull << 31, .type = PERF_BR_SYSCALL}, /* into the kernel */
};

/* The `from`s of those that are told, as a number. */
static u64 branches(u64 wanted)
{
	struct pe_attr attr = sampling(PERF_SAMPLE_BRANCH_STACK);
	const struct ap_sample *s;
	u64 froms = 0;
	int fd;

	attr.branch_sample_type = wanted;
	if (!(wanted & PERF_SAMPLE_BRANCH_PLM_ALL))
		attr.branch_sample_type |= PERF_SAMPLE_BRANCH_USER;
	f->facts.has = PERF_SAMPLE_BRANCH_STACK;
	f->facts.sample.branch_stack = (struct ap_branch_stack){.nr = ARRAY_SIZE(path),
								.entries = path};
	fd = open_mapped(&attr, -1);
	fake_advance(f, 1000);
	s = next(fd);
	for (u64 i = 0; i < s->branch_stack.nr; i++)
		froms = froms * 10 + s->branch_stack.entries[i].from;
	fake_close(f, fd);
	return froms;
}

/* [BR-01..04] */
TEST(branch_kinds)
{
	f = fake_new(40);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ANY), 1234567);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ANY_CALL), 347);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ANY_RETURN), 2);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_IND_CALL), 4);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_COND), 1);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_IND_JUMP), 5);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_CALL), 3);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_COND | PERF_SAMPLE_BRANCH_IND_JUMP), 15);
	/* 3 has returned by 2; 4 has not. */
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_CALL_STACK), 4);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ABORT_TX), 0);
	/* None of them is in a transaction. */
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_IN_TX), 0);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_NO_TX), 1234567);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_NO_TX |
			   PERF_SAMPLE_BRANCH_IN_TX),
		  1234567);
	fake_free(f);
}

/* The level is that of where a branch goes [BR-01]. */
TEST(branch_levels)
{
	f = fake_new(40);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_ANY), 8);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_HV | PERF_SAMPLE_BRANCH_ANY), 0);
	EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL |
			   PERF_SAMPLE_BRANCH_ANY_CALL),
		  3478);
	fake_free(f);
}

/* [BR-05, BR-06] */
TEST(branch_flags)
{
	static const struct {
		u64 bits;
		u32 mispred, cycles, type;
	} rows[] = {
		{0, 1, 3, 0},
		{PERF_SAMPLE_BRANCH_NO_FLAGS, 0, 3, 0},
		{PERF_SAMPLE_BRANCH_NO_CYCLES, 1, 0, 0},
		{PERF_SAMPLE_BRANCH_TYPE_SAVE, 1, 3, PERF_BR_COND},
	};

	f = fake_new(40);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct perf_branch_entry *e;

		EXPECT_EQ(branches(PERF_SAMPLE_BRANCH_COND | rows[i].bits), 1);
		e = f->record.sample.branch_stack.entries;
		EXPECT_EQ(e->mispred, rows[i].mispred);
		EXPECT_EQ(e->cycles, rows[i].cycles);
		EXPECT_EQ(e->type, rows[i].type);
	}
	fake_free(f);
}
