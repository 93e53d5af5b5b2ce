/* What tasks do, and who is told [REC, MISC, SAMP-30..33]. */
#include "unit/test.h"

#include "unit/core/fake.h"

static struct fake *f;

static struct pe_attr tracking(void)
{
	struct pe_attr attr = fake_sw_attr(PERF_COUNT_SW_DUMMY);

	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_CPU;
	return attr;
}

static int open_mapped(const struct pe_attr *attr, int pid, int cpu)
{
	int fd = fake_open(f, attr, pid, cpu, -1);

	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	return fd;
}

static struct task *task(int tid)
{
	return fake_task(f, tid)->task;
}

static const struct task_map code = {
	.addr = 0x400000,
	.len = 0x1000,
	.offset = 0x2000,
	.executable = true,
	.prot = 5,
	.flags = 2,
	.filename = "/bin/true",
	.maj = 8,
	.min = 1,
	.ino = 77,
	.build_id = (const u8 *)"abcdefghijklmnopqrst",
	.build_id_size = 20,
};

/* [REC-01, MISC-02, MISC-09] */
TEST(mappings)
{
	struct pe_attr attr = tracking();
	struct task_map data = code;
	const struct ap_record *rec;
	int fd, both, old;

	f = fake_new(4);
	data.executable = false;
	data.filename = "//anon";
	attr.mmap = attr.mmap2 = 1;
	fd = open_mapped(&attr, 0, -1);
	attr.mmap_data = attr.build_id = 1;
	both = open_mapped(&attr, 0, -1);
	attr = tracking();
	attr.mmap = 1;
	old = open_mapped(&attr, 0, -1);
	fake_advance(f, 500);
	task_mapped(task(100), &code);
	task_mapped(task(100), &data);
	rec = fake_take_type(f, fd, PERF_RECORD_MMAP2);
	ASSERT(rec);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_USER);
	EXPECT_EQ(rec->mmap.pid, 100);
	EXPECT_EQ(rec->mmap.tid, 100);
	EXPECT_EQ(rec->mmap.addr, 0x400000);
	EXPECT_EQ(rec->mmap.len, 0x1000);
	EXPECT_EQ(rec->mmap.pgoff, 0x2000);
	EXPECT_EQ(rec->mmap.maj, 8);
	EXPECT_EQ(rec->mmap.min, 1);
	EXPECT_EQ(rec->mmap.ino, 77);
	EXPECT_EQ(rec->mmap.prot, 5);
	EXPECT_EQ(rec->mmap.flags, 2);
	EXPECT_STREQ(rec->mmap.filename, "/bin/true");
	EXPECT_EQ(rec->id.tid, 100);
	EXPECT_EQ(rec->id.time, 500);
	EXPECT_EQ(rec->id.id, event_id(fake_event(f, fd)));
	EXPECT(!fake_take(f, fd));
	/* [MISC-06] */
	rec = fake_take_type(f, both, PERF_RECORD_MMAP2);
	ASSERT(rec);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	EXPECT_EQ(rec->mmap.build_id_size, 20);
	EXPECT_EQ(rec->mmap.build_id[19], 't');
	rec = fake_take_type(f, both, PERF_RECORD_MMAP2);
	ASSERT(rec);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA |
				     PERF_RECORD_MISC_MMAP_BUILD_ID);
	EXPECT_STREQ(rec->mmap.filename, "//anon");
	rec = fake_take_type(f, old, PERF_RECORD_MMAP);
	ASSERT(rec);
	EXPECT_STREQ(rec->mmap.filename, "/bin/true");
	EXPECT(!fake_take(f, old));
	fake_free(f);
}

/* [REC-03, MISC-03, SAMP-33] */
TEST(names)
{
	struct pe_attr attr = tracking();
	const struct ap_record *rec;
	int fd;

	f = fake_new(4);
	attr.comm = 1;
	attr.sample_id_all = 0;
	fd = open_mapped(&attr, 0, -1);
	task_named(task(100), "a-name-of-15-ch", false);
	task_named(task(100), "sh", true);
	rec = fake_take_type(f, fd, PERF_RECORD_COMM);
	ASSERT(rec);
	EXPECT_EQ(rec->size, 32);
	EXPECT_EQ(rec->misc, 0);
	EXPECT_EQ(rec->comm.tid, 100);
	EXPECT_STREQ(rec->comm.comm, "a-name-of-15-ch");
	rec = fake_take_type(f, fd, PERF_RECORD_COMM);
	ASSERT(rec);
	EXPECT_EQ(rec->size, 24);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_COMM_EXEC);
	EXPECT_STREQ(rec->comm.comm, "sh");
	/* Of a thread the ids differ. */
	fake_fork(f, 100, 103, true);
	fd = open_mapped(&attr, 103, -1);
	task_named(task(103), "thread", false);
	rec = fake_take_type(f, fd, PERF_RECORD_COMM);
	ASSERT(rec);
	EXPECT_EQ(rec->comm.pid, 100);
	EXPECT_EQ(rec->comm.tid, 103);
	fake_free(f);
}

/* [REC-04, REC-06]: the parent's events and its CPU's see both, copies write for the child. */
TEST(forks_and_ends)
{
	struct pe_attr attr = tracking();
	const struct ap_record *rec;
	int own, copied, wide, elsewhere;

	f = fake_new(4);
	attr.task = 1;
	own = open_mapped(&attr, 0, -1);
	wide = open_mapped(&attr, -1, 0);
	elsewhere = open_mapped(&attr, -1, 1);
	attr.inherit = 1;
	copied = open_mapped(&attr, 0, 0);
	fake_advance(f, 10);
	fake_fork(f, 100, 101, false);
	for (int i = 0; i < 3; i++) {
		rec = fake_take_type(f, i == 0 ? own : i == 1 ? wide : copied, PERF_RECORD_FORK);
		ASSERT(rec);
		EXPECT_EQ(rec->task.pid, 101);
		EXPECT_EQ(rec->task.tid, 101);
		EXPECT_EQ(rec->task.ppid, 100);
		EXPECT_EQ(rec->task.ptid, 100);
		EXPECT_EQ(rec->task.time, 10);
		EXPECT_EQ(rec->id.tid, 100);
	}
	fake_fork(f, 101, 102, true);
	rec = fake_take_type(f, copied, PERF_RECORD_FORK);
	ASSERT(rec);
	EXPECT_EQ(rec->task.pid, 101);
	EXPECT_EQ(rec->task.tid, 102);
	EXPECT_EQ(rec->task.ppid, 101);
	EXPECT(!fake_take(f, own));
	EXPECT(fake_take_type(f, wide, PERF_RECORD_FORK));
	fake_advance(f, 10);
	fake_exit(f, 102);
	for (int i = 0; i < 2; i++) {
		rec = fake_take_type(f, i ? wide : copied, PERF_RECORD_EXIT);
		ASSERT(rec);
		EXPECT_EQ(rec->task.pid, 101);
		EXPECT_EQ(rec->task.tid, 102);
		EXPECT_EQ(rec->task.ppid, 100);
		EXPECT_EQ(rec->task.ptid, 100);
		EXPECT_EQ(rec->id.tid, 102);
		EXPECT_EQ(rec->id.cpu, 0);
		EXPECT(!fake_take(f, i ? wide : copied));
	}
	EXPECT(!fake_take(f, elsewhere));
	EXPECT(!fake_take(f, own));
	fake_free(f);
}

/* A task that the kernel has not made yet is told of when it has a number, or never. */
TEST(forks_in_advance)
{
	struct pe_attr attr = tracking();
	const struct ap_record *rec;
	struct fake_task host[2] = {{0}};
	struct task *child, *other;
	int fd;

	f = fake_new(4);
	attr.task = 1;
	fd = open_mapped(&attr, -1, 0);
	EXPECT_EQ(task_fork(task(100), 0, -5, false, false, &host[0], &child), 0);
	EXPECT_EQ(task_fork(task(100), 0, -6, false, false, &host[1], &other), 0);
	EXPECT(!fake_take(f, fd));
	task_exit(other);
	EXPECT(!fake_take(f, fd));
	fake_advance(f, 5);
	task_set_ids(child, 300, 300);
	rec = fake_take_type(f, fd, PERF_RECORD_FORK);
	ASSERT(rec);
	EXPECT_EQ(rec->task.pid, 300);
	EXPECT_EQ(rec->task.ppid, 100);
	EXPECT_EQ(rec->id.tid, 100);
	task_set_ids(child, 301, 301);
	EXPECT(!fake_take(f, fd));
	task_exit(child);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_EXIT));
	/* Its maker may be gone by then. */
	fake_fork(f, 100, 101, false);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_FORK));
	EXPECT_EQ(task_fork(task(101), 0, -5, false, false, &host[0], &child), 0);
	fake_exit(f, 101);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_EXIT));
	task_set_ids(child, 302, 302);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_FORK));
	EXPECT_EQ(f->record.task.ppid, 101);
	task_exit(child);
	core_check(f->core);
	fake_free(f);
}

/* Whoever asks for names or mappings is told of tasks as well. */
TEST(who_wants_tasks)
{
	f = fake_new(4);
	for (int i = 0; i < 6; i++) {
		struct pe_attr attr = tracking();
		int fd;

		attr.comm = i == 1;
		attr.mmap = i == 2;
		attr.mmap2 = i == 3;
		attr.mmap_data = i == 4;
		attr.context_switch = i == 5;
		fd = open_mapped(&attr, 0, -1);
		fake_fork(f, 100, 200 + i, false);
		EXPECT_EQ(fake_take_type(f, fd, PERF_RECORD_FORK) != NULL, i >= 1 && i <= 4);
		fake_close(f, fd);
	}
	fake_free(f);
}

/* No sample comes after EXIT, and READ does [REC-07]. */
TEST(the_end_in_its_order)
{
	struct pe_attr attr = fake_attr();
	const struct ap_record *rec;
	int fd;

	f = fake_new(4);
	attr.inherit = attr.inherit_stat = attr.task = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	fd = open_mapped(&attr, 0, 0);
	fake_fork(f, 100, 101, false);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_FORK));
	fake_advance(f, 70);
	fake_exit(f, 101);
	EXPECT(fake_take_type(f, fd, PERF_RECORD_EXIT));
	rec = fake_take_type(f, fd, PERF_RECORD_READ);
	ASSERT(rec);
	EXPECT_EQ(rec->read.pid, 101);
	EXPECT_EQ(rec->read.read.len, 16);
	EXPECT_EQ(((const u64 *)rec->read.read.bytes)[0], 70);
	EXPECT_EQ(((const u64 *)rec->read.read.bytes)[1], 70);
	EXPECT(!fake_take(f, fd));
	fake_free(f);
}

/* [REC-21] */
TEST(only_who_is_on)
{
	struct pe_attr attr = tracking();
	int off, other_cpu;

	f = fake_new(4);
	attr.comm = 1;
	other_cpu = open_mapped(&attr, 0, 1);
	attr.disabled = 1;
	off = open_mapped(&attr, 0, -1);
	task_named(task(100), "x", false);
	EXPECT(!fake_take(f, off));
	EXPECT(!fake_take(f, other_cpu));
	fake_ioctl(f, off, PERF_EVENT_IOC_ENABLE, 0);
	task_sched_in(task(100), 1);
	task_named(task(100), "y", false);
	EXPECT(fake_take_type(f, off, PERF_RECORD_COMM));
	EXPECT(fake_take_type(f, other_cpu, PERF_RECORD_COMM));
	EXPECT_EQ(f->record.id.cpu, 1);
	fake_free(f);
}

/* [REC-13, REC-14, MISC-04, MISC-06] */
TEST(switches)
{
	struct pe_attr attr = tracking();
	const struct ap_record *rec;
	int own, wide;

	f = fake_new(4);
	fake_add_task(f, 200, 200);
	attr.context_switch = 1;
	own = open_mapped(&attr, 0, -1);
	wide = open_mapped(&attr, -1, 0);
	task_switched(task(100), &(struct task_switch){true, true, 200, 201});
	task_switched(task(100), &(struct task_switch){0});
	rec = fake_take_type(f, own, PERF_RECORD_SWITCH);
	ASSERT(rec);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	EXPECT_EQ(rec->id.tid, 100);
	rec = fake_take_type(f, own, PERF_RECORD_SWITCH);
	ASSERT(rec);
	EXPECT_EQ(rec->misc, 0);
	rec = fake_take_type(f, wide, PERF_RECORD_SWITCH_CPU_WIDE);
	ASSERT(rec);
	EXPECT_EQ(rec->context_switch.next_prev_pid, 200);
	EXPECT_EQ(rec->context_switch.next_prev_tid, 201);
	EXPECT(fake_take_type(f, wide, PERF_RECORD_SWITCH_CPU_WIDE));
	EXPECT_EQ(f->record.context_switch.next_prev_tid, 0);
	fake_free(f);
}

/* [REC-12, REC-15, REC-18] */
TEST(other_kinds)
{
	struct pe_attr attr = tracking();
	const struct ap_record *rec;
	int fd;

	f = fake_new(4);
	attr.namespaces = attr.cgroup = 1;
	fd = open_mapped(&attr, 0, -1);
	task_namespaces(task(100), task(100));
	EXPECT(!fake_take_type(f, fd, PERF_RECORD_NAMESPACES));
	f->nr_namespaces = 2;
	task_namespaces(task(100), task(100));
	rec = fake_take_type(f, fd, PERF_RECORD_NAMESPACES);
	ASSERT(rec);
	EXPECT_EQ(rec->namespaces.nr, 2);
	EXPECT_EQ(rec->namespaces.links[0].ino, 100);
	EXPECT_EQ(rec->namespaces.links[1].dev, 2);
	EXPECT_EQ(rec->namespaces.tid, 100);
	task_made_cgroup(task(100), 55, "/a/b");
	rec = fake_take_type(f, fd, PERF_RECORD_CGROUP);
	ASSERT(rec);
	EXPECT_EQ(rec->cgroup.id, 55);
	EXPECT_STREQ(rec->cgroup.path, "/a/b");
	event_lost_samples(fake_event(f, fd), 9);
	rec = fake_take_type(f, fd, PERF_RECORD_LOST_SAMPLES);
	ASSERT(rec);
	EXPECT_EQ(rec->lost.lost, 9);
	fake_free(f);
}

/* What the host's kernel has told [REC-16, REC-17, REC-19]. */
TEST(records_of_the_kernel)
{
	struct ap_record told = {.type = PERF_RECORD_KSYMBOL,
				 .ksymbol = {.addr = 7, .len = 8, .name = "code"}};
	struct pe_attr attr = tracking();
	const struct ap_record *rec;
	int symbols, programs, pokes;

	f = fake_new(4);
	attr.ksymbol = 1;
	symbols = open_mapped(&attr, 0, -1);
	attr.ksymbol = 0;
	attr.bpf_event = 1;
	programs = open_mapped(&attr, 0, -1);
	attr.bpf_event = 0;
	attr.text_poke = 1;
	pokes = open_mapped(&attr, 0, -1);
	task_kernel_record(task(100), &told);
	rec = fake_take_type(f, symbols, PERF_RECORD_KSYMBOL);
	ASSERT(rec);
	EXPECT_EQ(rec->ksymbol.addr, 7);
	EXPECT_STREQ(rec->ksymbol.name, "code");
	EXPECT(!fake_take_type(f, programs, PERF_RECORD_KSYMBOL));
	told = (struct ap_record){.type = PERF_RECORD_BPF_EVENT,
				  .bpf_event = {.id = 5, .tag = (const u8 *)"12345678"}};
	task_kernel_record(task(100), &told);
	rec = fake_take_type(f, programs, PERF_RECORD_BPF_EVENT);
	ASSERT(rec);
	EXPECT_EQ(rec->bpf_event.id, 5);
	told = (struct ap_record){.type = PERF_RECORD_TEXT_POKE,
				  .text_poke = {.addr = 9,
						.old_len = 1,
						.new_len = 1,
						.old_bytes = (const u8 *)"a",
						.new_bytes = (const u8 *)"b"}};
	task_kernel_record(task(100), &told);
	rec = fake_take_type(f, pokes, PERF_RECORD_TEXT_POKE);
	ASSERT(rec);
	EXPECT_EQ(rec->text_poke.new_bytes[0], 'b');
	EXPECT(!fake_take_type(f, symbols, PERF_RECORD_TEXT_POKE));
	fake_free(f);
}

/* The trailer, in its order, the id twice if it is asked for twice [SAMP-30, SAMP-31]. */
TEST(trailer)
{
	struct pe_attr attr = tracking();
	const u64 *words;
	u64 id;
	int fd;

	f = fake_new(4);
	attr.comm = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			   PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	fd = open_mapped(&attr, 0, -1);
	fake_advance(f, 33);
	task_sched_in(task(100), 1);
	task_named(task(100), "x", false);
	words = (const u64 *)((const u8 *)fake_page(f, fd) + 4096);
	id = event_id(fake_event(f, fd));
	EXPECT_EQ(fake_page(f, fd)->data_head, 24 + 48);
	EXPECT_EQ(words[3], 100ull << 32 | 100);
	EXPECT_EQ(words[4], 33);
	EXPECT_EQ(words[5], id);
	EXPECT_EQ(words[6], id);
	EXPECT_EQ(words[7], 1);
	EXPECT_EQ(words[8], id);
	fake_free(f);
}

/* A record that wakes sends a signal too, to whom wants one. */
TEST(signals)
{
	struct pe_attr attr = tracking();

	f = fake_new(4);
	attr.comm = attr.watermark = 1;
	attr.wakeup_watermark = 1;
	open_mapped(&attr, 0, -1);
	task_named(task(100), "x", false);
	EXPECT_EQ(f->overflows, 1);
	EXPECT_EQ(f->wakes, 1);
	fake_free(f);
}
