/*
 * Tracepoints and breakpoints without a session: formats, filters, what an occurrence does to an
 * event, what is refused [TYPE-03, TYPE-06, IOC-07, IOC-12, SAMP-12].
 */
#include "unit/test.h"

#include <linux/hw_breakpoint.h>

#include "pmu/drivers.h"
#include "pmu/probes.h"
#include "pmu/tracepoint-filter.h"
#include "unit/core/fake.h"

#define COMMON                                                                 \
	"name: x\nID: 7\nformat:\n"                                            \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char enter_text[] = COMMON
	"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
	"\tfield:const char * filename;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:char name[8];\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long words[2];\toffset:32;\tsize:16;\tsigned:0;\n"
	"\nprint fmt: \"%d\", REC->__syscall_nr\n";

TEST(formats)
{
	struct tp_format format;
	const struct tp_field *f;

	EXPECT_EQ(tp_format_parse(enter_text, &format), 0);
	EXPECT_EQ(format.nr, 7);
	EXPECT_EQ(format.size, 48);
	f = tp_field_find(&format, "common_pid", 10);
	EXPECT(f && f->kind == TP_NUMBER && f->offset == 4 && f->size == 4 && f->is_signed);
	f = tp_field_find(&format, "filename", 8);
	EXPECT(f && f->kind == TP_POINTER);
	f = tp_field_find(&format, "name", 4);
	EXPECT(f && f->kind == TP_CHARS && f->size == 8);
	f = tp_field_find(&format, "words", 5);
	EXPECT(f && f->kind == TP_OTHER);
	EXPECT(!tp_field_find(&format, "nam", 3));
}

TEST(formats_that_are_none)
{
	static const char *const texts[] = {
		"",
		"format:\n",
		"field:int x",
		"field:int x;",
		"field:x;\toffset:0;\tsize:4;\tsigned:1;",
		"field:int x;\toffset:1000;\tsize:4;\tsigned:1;",
		"field:int x;\toffset:0;\tsize:1000;\tsigned:1;",
		"field:int x];\toffset:0;\tsize:4;\tsigned:1;",
	};
	struct tp_format format;
	char many[4096] = "";

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		EXPECT_EQ(tp_format_parse(texts[i], &format), -EINVAL);
	for (int i = 0; i < 40; i++)
		strcat(many, "field:int x;\toffset:0;\tsize:4;\tsigned:1;\n");
	EXPECT_EQ(tp_format_parse(many, &format), -EINVAL);
}

static struct tp_format enter;
static u8 record[TP_SIZE_MAX + 8];

/* 1 it passes, 0 it does not, or an errno. */
static int filter(const char *text)
{
	const struct tp_context context = {.cpu = 3, .comm = "program"};
	struct tp_filter *f = NULL;
	int ret = tp_filter_parse(&enter, text, &f);

	if (ret)
		return ret;
	ret = tp_filter_passes(f, record, &context);
	tp_filter_free(f);
	return ret;
}

TEST(filters)
{
	char deep[300] = "";

	EXPECT_EQ(tp_format_parse(enter_text, &enter), 0);
	memcpy(record + 8, &(int){-5}, 4);
	memcpy(record + 24, "abcdefgh", 8);
	EXPECT_EQ(filter("__syscall_nr == -5"), 1);
	EXPECT_EQ(filter("__syscall_nr < 0"), 1);
	EXPECT_EQ(filter("__syscall_nr <= -6"), 0);
	EXPECT_EQ(filter("__syscall_nr > -6 && __syscall_nr >= -5"), 1);
	EXPECT_EQ(filter("__syscall_nr == 0xfffffffb"), 1);
	EXPECT_EQ(filter("__syscall_nr & 1 || __syscall_nr == 7"), 1);
	EXPECT_EQ(filter("common_type == 65536"), 1);
	EXPECT_EQ(filter("__syscall_nr == 1 || common_type == 0 && common_pid == 1"), 0);
	EXPECT_EQ(filter("(__syscall_nr == -5 || common_type == 1) && common_pid == 0"), 1);
	EXPECT_EQ(filter("!__syscall_nr == -5"), 0);
	EXPECT_EQ(filter("name == \"abcdefgh\""), 1);
	EXPECT_EQ(filter("name ~ 'a*g?'"), 1);
	EXPECT_EQ(filter("name ~ 'a*g'"), 0);
	EXPECT_EQ(filter("name ~ '[a-c][!x]*'"), 1);
	EXPECT_EQ(filter("name ~ '[!a-c]*'"), 0);
	EXPECT_EQ(filter("name ~ 'a['"), 0);
	EXPECT_EQ(filter("name ~ '**'"), 1);
	EXPECT_EQ(filter("comm == 'program' && CPU == 3"), 1);
	EXPECT_EQ(filter("words != 1"), 0);
	EXPECT_EQ(filter("filename == 'x'"), -EOPNOTSUPP);
	EXPECT_EQ(filter("filename.ustring == 'x'"), -EOPNOTSUPP);
	EXPECT_EQ(filter("filename == 0"), -EINVAL);
	EXPECT_EQ(filter("common_type == -1"), -EINVAL);
	EXPECT_EQ(filter("__syscall_nr == - 1"), -EINVAL);
	EXPECT_EQ(filter("__syscall_nr == 1x"), -EINVAL);
	EXPECT_EQ(filter("name.ustring == 'x'"), -EINVAL);
	EXPECT_EQ(filter("(name == 'x'"), -ENOENT);
	EXPECT_EQ(filter("name == 'x' y"), -EPERM);
	EXPECT_EQ(filter("name == 'x"), -ESRCH);
	memset(deep, '!', 80);
	strcat(deep, "CPU == 3");
	EXPECT_EQ(filter(deep), -EINVAL);
}

/* A string behind the fields [SAMP-12]. */
TEST(filters_of_strings_anywhere)
{
	static const char text[] =
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
		"\tfield:__data_loc char[] wide;\toffset:16;\tsize:8;\tsigned:0;\n"
		"\tfield:__data_loc u8[] bytes;\toffset:12;\tsize:4;\tsigned:0;\n";
	struct tp_context context = {.comm = "program", .size = 32};
	struct tp_format format;
	struct tp_filter *is, *globs, *is_empty;
	u8 rec[40] = {0};

	EXPECT_EQ(tp_format_parse(text, &format), 0);
	EXPECT_EQ(format.field[1].kind, TP_DYNAMIC);
	EXPECT_EQ(format.field[2].kind, TP_OTHER);
	EXPECT_EQ(format.field[3].kind, TP_OTHER);
	EXPECT_EQ(tp_filter_parse(&format, "name == 'abc'", &is), 0);
	EXPECT_EQ(tp_filter_parse(&format, "name ~ '*bc' && common_pid == 0", &globs), 0);
	EXPECT_EQ(tp_filter_parse(&format, "name == ''", &is_empty), 0);
	memcpy(rec + 28, "abc", 4);
	memcpy(rec + 8, &(u32){28 | 4 << 16}, 4);
	EXPECT(tp_filter_passes(is, rec, &context) && tp_filter_passes(globs, rec, &context));
	EXPECT(!tp_filter_passes(is_empty, rec, &context));
	/* Behind the record, without an end, and none. */
	context.size = 31;
	EXPECT(!tp_filter_passes(is, rec, &context) && tp_filter_passes(is_empty, rec, &context));
	context.size = 32;
	memcpy(rec + 8, &(u32){28 | 3 << 16}, 4);
	EXPECT(!tp_filter_passes(is, rec, &context) && tp_filter_passes(is_empty, rec, &context));
	memcpy(rec + 8, &(u32){0xffff}, 4);
	EXPECT(tp_filter_passes(is_empty, rec, &context));
	tp_filter_free(is);
	tp_filter_free(globs);
	tp_filter_free(is_empty);
}

TEST(filters_have_a_bound)
{
	char *text = calloc(1, 20000);

	EXPECT_EQ(tp_format_parse(enter_text, &enter), 0);
	for (int i = 0; i < 1000; i++)
		strcat(text, i ? "||CPU == 3" : "CPU == 3");
	EXPECT_EQ(filter(text), -EINVAL);
	free(text);
}

static struct fake *f;
static struct probe_pmus *probes;
static struct probe *armed[64];
static u32 nr_armed;

static int find(void *ctx, u64 id, struct probe_tracepoint *tp)
{
	(void)ctx;
	if (id == 9)
		return -ENOENT;
	if (id == 8)
		return -EOPNOTSUPP;
	if (id >= 100) {
		*tp = (struct probe_tracepoint){.kind = PROBE_KERNEL};
		return 0;
	}
	*tp = (struct probe_tracepoint){.kind = PROBE_CALL_ENTER,
					.nr = id == 7 ? PROBE_ANY_CALL : (s32)id,
					.format = &enter};
	return 0;
}

static int file(void *ctx, struct task *opener, const char *path, u64 offset,
		struct probe_file *file)
{
	(void)ctx, (void)opener, (void)offset;
	if (strcmp(path, "/there") != 0)
		return -ENOENT;
	*file = (struct probe_file){1, 2};
	return 0;
}

static int no_arm; /* what arm() says instead */

static int arm(void *ctx, struct probe *probe)
{
	(void)ctx;
	if (no_arm)
		return no_arm;
	armed[nr_armed++] = probe;
	return 0;
}

/* What the host has for data, of which there is as much as @registers says. */
static u32 registers, reserved;
static int no_register = -ENOSPC;

static int reserve(void *ctx, struct probe *probe)
{
	(void)ctx;
	if (reserved == registers)
		return no_register;
	reserved++;
	/* Nobody looks at it but here. */
	probe->watch = (struct data_watch *)probe;
	return 0;
}

static void release(void *ctx, struct probe *probe)
{
	(void)ctx;
	reserved--;
	probe->watch = NULL;
}

static void disarm(void *ctx, struct probe *probe)
{
	(void)ctx;
	for (u32 i = 0; i < nr_armed; i++)
		if (armed[i] == probe)
			armed[i] = armed[--nr_armed];
}

/* The kernel's part: what it has counted, what it answers, and what it was given. */
static struct {
	u64 count;
	int err;
	u32 open;
	const char *filter;
} kernels;

static int kernel_open(void *ctx, struct probe *probe)
{
	(void)ctx;
	probe->anchor = 5;
	kernels.open += !kernels.err;
	return kernels.err;
}

static void kernel_close(void *ctx, struct probe *probe)
{
	(void)ctx;
	kernels.open -= probe->anchor == 5;
}

static bool kernel_count(void *ctx, struct probe *probe, u64 *more)
{
	(void)ctx, (void)probe;
	*more = kernels.count;
	kernels.count = 0;
	return true;
}

static int kernel_filter(void *ctx, struct probe *probe, const char *text)
{
	(void)ctx, (void)probe;
	kernels.filter = text;
	return kernels.err;
}

static int kernel_bpf(void *ctx, struct probe *probe)
{
	(void)ctx, (void)probe;
	return kernels.err;
}

static void setup(void)
{
	static const struct probe_host host = {.tracepoint = find,
					       .file = file,
					       .reserve = reserve,
					       .release = release,
					       .kernel_open = kernel_open,
					       .kernel_close = kernel_close,
					       .kernel_count = kernel_count,
					       .kernel_filter = kernel_filter,
					       .kernel_bpf = kernel_bpf,
					       .arm = arm,
					       .disarm = disarm};

	EXPECT_EQ(tp_format_parse(enter_text, &enter), 0);
	f = fake_new(1);
	fake_exit(f, 100);
	EXPECT_EQ(probe_pmus_new(f->core, &(struct probe_pmu_config){-1, 9, &host}, &probes), 0);
	fake_add_task(f, 100, 100);
}

static void teardown(void)
{
	fake_free(f);
	probe_pmus_free(probes);
	nr_armed = 0;
	EXPECT_EQ(reserved, 0);
	registers = 0;
	no_register = -ENOSPC;
	no_arm = 0;
}

static struct pe_attr attr_of(u64 id)
{
	return (struct pe_attr){
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(struct pe_attr), .config = id};
}

static int open_id(u64 id)
{
	struct pe_attr attr = attr_of(id);

	return fake_open(f, &attr, 0, -1, -1);
}

/* Of all that are on. */
static void happens(s64 nr)
{
	const struct probe_hit hit = {.kind = PROBE_CALL_ENTER, .nr = nr, .comm = "x"};
	const struct sample_facts facts = {.task = fake_task(f, 100)->task};

	for (u32 i = 0; i < nr_armed; i++)
		if (probe_matches(armed[i], &hit))
			probe_happened(armed[i], &hit, &facts);
}

TEST(occurrences)
{
	int any, five, user;
	struct pe_attr attr;

	setup();
	any = open_id(7);
	five = open_id(5);
	attr = attr_of(7);
	attr.exclude_kernel = 1;
	user = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(nr_armed, 3);
	happens(5);
	happens(6);
	EXPECT_EQ(fake_count(f, any), 2);
	EXPECT_EQ(fake_count(f, five), 1);
	EXPECT_EQ(fake_count(f, user), 0);
	EXPECT(!probe_matches(
		armed[1],
		&(struct probe_hit){.kind = PROBE_CALL_ENTER, .nr = 5, .other_mode = true}));
	EXPECT_EQ(fake_ioctl(f, any, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(nr_armed, 2);
	happens(5);
	EXPECT_EQ(fake_count(f, any), 2);
	EXPECT_EQ(fake_count(f, five), 2);
	teardown();
}

/* The longest that there is; two of it are more than a signed number holds (UBSan). */
TEST(occurrences_with_a_long_period)
{
	struct pe_attr attr = attr_of(7);
	int fd;

	setup();
	attr.sample_period = ~0ull >> 1;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_event(f, fd)->hw.period_left, -(s64)attr.sample_period);
	happens(5);
	EXPECT_EQ(fake_event(f, fd)->hw.period_left, 1 - (s64)attr.sample_period);
	EXPECT_EQ(fake_count(f, fd), 1);
	teardown();
}

static int set_filter(int fd, const char *text)
{
	return fake_ioctl_in(f, fd, PERF_EVENT_IOC_SET_FILTER, text, strlen(text) + 1);
}

TEST(filters_of_events)
{
	int fd;

	setup();
	fd = open_id(7);
	EXPECT_REFUSED(f, set_filter(fd, "nosuch == 1"), -EINVAL, FILTER_TEXT);
	EXPECT_REFUSED(f, set_filter(fd, "(CPU == 1"), -ENOENT, FILTER_TEXT);
	EXPECT_REFUSED(f, set_filter(fd, "filename == 'x'"), -EOPNOTSUPP, VIRTUAL_FILTER);
	EXPECT_EQ(set_filter(fd, "__syscall_nr == 5"), 0);
	EXPECT_REFUSED(f, set_filter(fd, "__syscall_nr == 6"), -EEXIST, FILTER_HAS_ONE);
	happens(5);
	happens(6);
	EXPECT_EQ(fake_count(f, fd), 1);
	teardown();
}

TEST(refusals)
{
	struct pe_attr attr;

	setup();
	EXPECT_REFUSED(f, open_id(9), -EINVAL, TRACEPOINT_ID);
	EXPECT_REFUSED(f, open_id(8), -EOPNOTSUPP, VIRTUAL_TRACEPOINT);
	attr = attr_of(7);
	attr.sample_type = PERF_SAMPLE_RAW;
	f->perfmon = false;
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 0, -1), -EPERM, PARANOID_RAW);
	EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	teardown();
}

static struct pe_attr exec_at(u64 addr)
{
	return (struct pe_attr){.type = PERF_TYPE_BREAKPOINT,
				.size = sizeof(struct pe_attr),
				.exclude_kernel = 1,
				.bp_type = HW_BREAKPOINT_X,
				.bp_addr = addr,
				.bp_len = 8};
}

static void executes(u64 addr)
{
	const struct probe_hit hit = {.kind = PROBE_EXECUTED, .addr = addr, .comm = "x"};
	const struct sample_facts facts = {.task = fake_task(f, 100)->task};

	for (u32 i = 0; i < nr_armed; i++)
		if (probe_matches(armed[i], &hit))
			probe_happened(armed[i], &hit, &facts);
}

static int modify(int fd, const struct pe_attr *attr)
{
	return fake_ioctl_in(f, fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, attr, sizeof(*attr));
}

TEST(breakpoints_on_execution)
{
	struct pe_attr attr = exec_at(0x1000);
	int fd;

	setup();
	fd = fake_open(f, &attr, 0, -1, -1);
	executes(0x1000);
	executes(0x1001);
	EXPECT_EQ(fake_count(f, fd), 1);
	attr.bp_addr = 0x2000;
	EXPECT_EQ(modify(fd, &attr), 0);
	executes(0x1000);
	executes(0x2000);
	EXPECT_EQ(fake_count(f, fd), 2);
	attr.disabled = 1;
	EXPECT_EQ(modify(fd, &attr), 0);
	EXPECT_EQ(nr_armed, 0);
	teardown();
}

static struct pe_attr data_at(u64 addr)
{
	struct pe_attr attr = exec_at(addr);

	attr.bp_type = HW_BREAKPOINT_W;
	return attr;
}

/* Of each that is on, as if they all had one of the host's. */
static void accesses(bool by_kernel)
{
	const struct sample_facts facts = {.task = fake_task(f, 100)->task};

	for (u32 i = 0; i < nr_armed; i++) {
		const struct probe_hit hit = {.kind = PROBE_ACCESSED,
					      .watch = armed[i]->watch,
					      .by_kernel = by_kernel,
					      .comm = "x"};

		if (probe_matches(armed[i], &hit))
			probe_happened(armed[i], &hit, &facts);
	}
}

TEST(breakpoints_on_data)
{
	struct pe_attr attr = data_at(0x1000);
	int user, kernel, both;

	setup();
	registers = 3;
	user = fake_open(f, &attr, 0, -1, -1);
	attr.exclude_kernel = 0;
	both = fake_open(f, &attr, 0, -1, -1);
	attr.exclude_user = 1;
	kernel = fake_open(f, &attr, 0, -1, -1);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOSPC, BREAKPOINT_REGISTERS);
	EXPECT_EQ(reserved, 3);
	accesses(false);
	accesses(false);
	accesses(true);
	executes(0x1000);
	EXPECT_EQ(fake_count(f, user), 2);
	EXPECT_EQ(fake_count(f, both), 3);
	EXPECT_EQ(fake_count(f, kernel), 1);
	teardown();
}

/* What it was stays if it cannot be moved. */
TEST(breakpoints_on_data_that_move)
{
	struct pe_attr attr = data_at(0x1000), exec = exec_at(0x2000);
	int fd, other;

	setup();
	registers = 1;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(modify(fd, &exec), 0);
	EXPECT_EQ(reserved, 0);
	executes(0x2000);
	accesses(false);
	EXPECT_EQ(fake_count(f, fd), 1);
	other = fake_open(f, &attr, 0, -1, -1);
	EXPECT_REFUSED(f, modify(fd, &attr), -ENOSPC, BREAKPOINT_REGISTERS);
	executes(0x2000);
	EXPECT_EQ(fake_count(f, fd), 2);
	EXPECT_EQ(modify(other, &exec), 0);
	EXPECT_EQ(modify(fd, &attr), 0);
	accesses(false);
	EXPECT_EQ(fake_count(f, fd), 3);
	teardown();
}

/* It is not on then, and its times say so. */
TEST(breakpoints_that_the_host_has_lost)
{
	struct pe_attr attr = data_at(0x1000);
	int fd;

	setup();
	registers = 1;
	no_arm = -ENOSPC;
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(nr_armed, 0);
	no_arm = 0;
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	EXPECT_EQ(nr_armed, 1);
	accesses(false);
	EXPECT_EQ(fake_count(f, fd), 1);
	teardown();
}

/* Each task has one in its stead. */
TEST(breakpoints_of_a_cpu)
{
	struct pe_attr data = data_at(0x1000), exec = exec_at(0x1000), other = exec_at(0x2000);
	int d, x;

	setup();
	registers = 2;
	d = fake_open(f, &data, -1, 0, -1);
	x = fake_open(f, &exec, -1, 0, -1);
	EXPECT_EQ(nr_armed, 2);
	EXPECT_EQ(reserved, 2);
	accesses(false);
	accesses(false);
	executes(0x1000);
	EXPECT_EQ(fake_count(f, d), 2);
	EXPECT_EQ(fake_count(f, x), 1);
	EXPECT_EQ(modify(x, &other), 0);
	executes(0x1000);
	executes(0x2000);
	EXPECT_EQ(fake_count(f, x), 2);
	teardown();
}

TEST(breakpoints_that_are_refused)
{
	struct pe_attr attr = exec_at(0x1000);
	int fd;

	setup();
	fd = fake_open(f, &attr, 0, -1, -1);
	attr.exclude_user = 1;
	EXPECT_REFUSED(f, modify(fd, &attr), -EINVAL, MODIFY_FIELDS);
	attr = exec_at(1ull << 63);
	EXPECT_REFUSED(f, modify(fd, &attr), -EINVAL, MODIFY_FIELDS);
	attr = exec_at(0x1000);
	attr.bp_len = 4;
	EXPECT_REFUSED(f, modify(fd, &attr), -EINVAL, BREAKPOINT_EXEC);
	attr.bp_type = HW_BREAKPOINT_W;
	EXPECT_REFUSED(f, modify(fd, &attr), -ENOSPC, BREAKPOINT_REGISTERS);
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOSPC, BREAKPOINT_REGISTERS);
	no_register = -EACCES;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP, VIRTUAL_WATCHPOINT);
	no_register = -ENOMEM;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOMEM, NO_MEMORY);
	for (u64 i = 1; i < 64; i++) {
		attr = exec_at(0x1000 + i);
		EXPECT(fake_open(f, &attr, 0, -1, -1) >= 0);
	}
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -ENOSPC, VIRTUAL_BREAKPOINTS);
	teardown();
}

static int open_uprobe(const char *path, u64 config)
{
	const struct pe_attr attr = {.type = 9,
				     .size = sizeof(attr),
				     .config = config,
				     .exclude_kernel = 1,
				     .uprobe_path = 1,
				     .probe_offset = 0x10};

	f->path = path;
	return fake_open(f, &attr, 0, -1, -1);
}

/* The host says where the file's instruction is. */
TEST(probes_of_files)
{
	const struct probe_hit back = {.kind = PROBE_RETURN, .addr = 0x1000, .ret = 0x2000};
	const struct sample_facts facts = {0};
	int call, ret;

	setup();
	call = open_uprobe("/there", 0);
	ret = open_uprobe("/there", 1);
	EXPECT_EQ(nr_armed, 2);
	executes(0x1000);
	EXPECT_EQ(fake_count(f, call), 0);
	for (u32 i = 0; i < nr_armed; i++) {
		EXPECT_EQ(armed[i]->file.ino, 2);
		armed[i]->at[armed[i]->nr_at++] = 0x1000;
	}
	executes(0x1000);
	EXPECT_EQ(fake_count(f, call), 1);
	EXPECT_EQ(fake_count(f, ret), 0);
	for (u32 i = 0; i < nr_armed; i++)
		if (probe_matches(armed[i], &back))
			probe_happened(armed[i], &back, &facts);
	EXPECT_EQ(fake_count(f, call), 1);
	EXPECT_EQ(fake_count(f, ret), 1);
	teardown();
}

TEST(probes_of_files_that_are_refused)
{
	char too_long[5000];

	setup();
	memset(too_long, '/', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	EXPECT_REFUSED(f, open_uprobe(NULL, 0), -EFAULT, PROBE_PLACE);
	EXPECT_REFUSED(f, open_uprobe("", 0), -EINVAL, PROBE_PLACE);
	EXPECT_REFUSED(f, open_uprobe("/not/there", 0), -ENOENT, PROBE_PLACE);
	EXPECT_REFUSED(f, open_uprobe(too_long, 0), -E2BIG, PROBE_LONG);
	f->sys_admin = false;
	EXPECT_REFUSED(f, open_uprobe("/there", 0), -EACCES, CAP_UPROBE);
	teardown();
}

TEST(no_bpf_programs)
{
	struct perf_event_query_bpf query = {.ids_len = 65};
	int fd;

	setup();
	fd = open_id(7);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_QUERY_BPF, NULL, 0), -EFAULT,
		       QUERY_FAULT);
	EXPECT_REFUSED(f, fake_ioctl_in(f, fd, PERF_EVENT_IOC_QUERY_BPF, &query, 4), -E2BIG,
		       QUERY_ROOM);
	query.ids_len = 4;
	EXPECT_EQ(fake_ioctl_in(f, fd, PERF_EVENT_IOC_QUERY_BPF, &query, 4), 0);
	teardown();
}

/* Those that fire in the kernel, which counts them and keeps their periods. */
TEST(tracepoints_of_the_kernel)
{
	struct sample_facts facts = {.cpumode = PERF_RECORD_MISC_KERNEL, .sample.ip = 77};
	struct pe_attr attr = attr_of(100);
	const struct ap_record *rec;
	int fd, sampling;

	setup();
	kernels.count = 0;
	fd = open_id(100);
	EXPECT_EQ(kernels.open, 1);
	kernels.count = 4;
	EXPECT_EQ(fake_count(f, fd), 4);
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0), 0);
	kernels.count = 3;
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(fake_count(f, fd), 3);
	EXPECT_EQ(set_filter(fd, "anything"), 0);
	EXPECT_STREQ(kernels.filter, "anything");
	kernels.err = -EINVAL;
	EXPECT_REFUSED(f, set_filter(fd, "x"), -EINVAL, FILTER_TEXT);
	EXPECT_REFUSED(f, open_id(101), -EINVAL, VIRTUAL_TRACEPOINT_HOST);
	kernels.err = -EEXIST;
	EXPECT_REFUSED(f, set_filter(fd, "x"), -EEXIST, FILTER_HAS_ONE);
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 77), -EEXIST, BPF_HAS_ONE);
	kernels.err = -EINVAL;
	EXPECT_REFUSED(f, fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 77), -EINVAL, CALL_ERRNO);
	kernels.err = 0;
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_SET_BPF, 77), 0);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	sampling = fake_open(f, &attr, 0, -1, -1);
	EXPECT_EQ(fake_map(f, sampling, 2, true), 0);
	facts.task = fake_task(f, 100)->task;
	probe_recorded(armed[0], &facts);
	rec = fake_take_type(f, sampling, PERF_RECORD_SAMPLE);
	ASSERT(rec);
	EXPECT_EQ(rec->sample.ip, 77);
	EXPECT_EQ(rec->misc, PERF_RECORD_MISC_KERNEL);
	attr.sample_type = PERF_SAMPLE_RAW;
	f->perfmon = false;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, -1), -EPERM, PARANOID_RAW);
	f->perfmon = true;
	attr.sample_type = 0;
	attr.sigtrap = attr.remove_on_exec = 1;
	sampling = fake_open(f, &attr, 0, -1, -1);
	EXPECT(sampling >= 0);
	EXPECT_EQ(fake_ioctl(f, sampling, PERF_EVENT_IOC_ENABLE, 0), 0);
	probe_recorded(armed[nr_armed - 1], &facts);
	EXPECT_EQ(f->traps, 1);
	teardown();
	EXPECT_EQ(kernels.open, 0);
}
