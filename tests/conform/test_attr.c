/*
 * What is checked of an attr when it is opened on a software event [ATTR-*, TYPE-*, SAMP-10,
 * SAMP-16].
 */
#include "conform/conform.h"

#include <linux/hw_breakpoint.h>

/* A register that the CPU has not, for sample_regs_user. */
#ifdef __x86_64__
#define NO_REGISTER (1ULL << 30)
#else
#define NO_REGISTER (1ULL << 62)
#endif

#define DUMMY(...)                                                                             \
	{                                                                                      \
		.type = PERF_TYPE_SOFTWARE, .size = PE_ATTR_SIZE_VER7,                         \
		.config = PERF_COUNT_SW_DUMMY, .disabled = 1, .exclude_kernel = 1, __VA_ARGS__ \
	}

struct attr_case {
	const char *row, *text;
	int want;
	struct pe_attr attr;
};

static void run_cases(const struct attr_case *c, size_t n)
{
	for (; n--; c++)
		check_err(c->row, c->text, try_self(c->attr), c->want);
}
#define RUN(cases) run_cases(cases, ARRAY_SIZE(cases))

CONFORM(period)
{
	static const struct attr_case cases[] = {
		{"ATTR-04", "period 2^63 - 1", 0, DUMMY(.sample_period = (1ULL << 63) - 1)},
		{"ATTR-04", "period 2^63", EINVAL, DUMMY(.sample_period = 1ULL << 63)},
		{"ATTR-04", "period 2^64 - 1", EINVAL, DUMMY(.sample_period = ~0ULL)},
		{"ATTR-04", "freq bit with frequency 0", 0, DUMMY(.freq = 1)},
		{"ATTR-04", "frequency beyond every maximum", EINVAL,
		 DUMMY(.freq = 1, .sample_freq = 1ULL << 40)},
		{"ATTR-04", "frequency 2^63", EINVAL, DUMMY(.freq = 1, .sample_freq = 1ULL << 63)},
	};
	char buf[32] = "";
	int fd = open("/proc/sys/kernel/perf_event_max_sample_rate", O_RDONLY);
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	u64 max;

	RUN(cases);
	NEED(fd >= 0 && read(fd, buf, sizeof(buf) - 1) > 0);
	max = strtoull(buf, NULL, 10);
	attr.freq = 1;
	attr.sample_freq = max + 1;
	check_err("ATTR-04", "frequency above the maximum", try_self(attr), EINVAL);
}

CONFORM(sample_type)
{
	static const struct attr_case cases[] = {
		{"ATTR-05", "sample_type bit 25", EINVAL, DUMMY(.sample_type = 1ULL << 25)},
		{"ATTR-05", "sample_type bit 63", EINVAL, DUMMY(.sample_type = 1ULL << 63)},
		{"ATTR-05", "sample_type IP to STREAM_ID on a counting event", 0,
		 DUMMY(.sample_type = 0x3cf)},
		{"ATTR-05", "sample_type IDENTIFIER", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_IDENTIFIER)},
		{"ATTR-06", "read_format of all five bits", 0, DUMMY(.read_format = 0x1f)},
		{"ATTR-06", "read_format bit 5", EINVAL, DUMMY(.read_format = 1ULL << 5)},
		{"ATTR-06", "read_format bit 63", EINVAL, DUMMY(.read_format = 1ULL << 63)},
		{"SAMP-10", "SAMPLE_READ without inherit", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_READ)},
		{"SAMP-10", "SAMPLE_READ with inherit", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_READ, .inherit = 1)},
		{"SAMP-16", "WEIGHT and WEIGHT_STRUCT", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT)},
		{"SAMP-16", "WEIGHT", 0, DUMMY(.sample_type = PERF_SAMPLE_WEIGHT)},
		{"SAMP-16", "WEIGHT_STRUCT", 0, DUMMY(.sample_type = PERF_SAMPLE_WEIGHT_STRUCT)},
		{"ATTR-47", "REGS_USER with no registers", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_USER)},
		{"ATTR-47", "REGS_USER with a register", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = 1 << 8)},
		{"ATTR-47", "REGS_USER with an undefined register", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = NO_REGISTER)},
		{"ATTR-47", "an undefined register without REGS_USER", 0,
		 DUMMY(.sample_regs_user = NO_REGISTER)},
#ifdef __x86_64__
		{"ATTR-47", "REGS_USER with a segment register", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = 1 << 12)},
		{"ATTR-47", "REGS_USER with a vector register", EOPNOTSUPP,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = 1ULL << 63)},
		{"ATTR-47", "a vector register without REGS_USER", EOPNOTSUPP,
		 DUMMY(.sample_regs_user = 1ULL << 63)},
#endif
		{"ATTR-50", "REGS_INTR with no registers", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_INTR)},
		{"ATTR-50", "REGS_INTR with a register", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_REGS_INTR, .sample_regs_intr = 1 << 8)},
		{"ATTR-48", "STACK_USER of 0 bytes", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_STACK_USER)},
		{"ATTR-48", "STACK_USER of 8 bytes", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 8)},
		{"ATTR-48", "STACK_USER of 7 bytes", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 7)},
		{"ATTR-48", "STACK_USER of 65528 bytes", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 65528)},
		{"ATTR-48", "STACK_USER of 65536 bytes", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_STACK_USER, .sample_stack_user = 65536)},
		{"ATTR-48", "a stack size without STACK_USER", 0, DUMMY(.sample_stack_user = 7)},
		{"ATTR-52", "sample_max_stack over the limit, with CALLCHAIN", EOVERFLOW,
		 DUMMY(.sample_type = PERF_SAMPLE_CALLCHAIN, .sample_max_stack = 65535)},
		{"ATTR-52", "sample_max_stack over the limit, without CALLCHAIN", 0,
		 DUMMY(.sample_max_stack = 65535)},
		{"ATTR-53", "aux_sample_size without an AUX leader", EINVAL,
		 DUMMY(.aux_sample_size = 64)},
		{"ATTR-53", "aux_sample_size with SAMPLE_AUX", EINVAL,
		 DUMMY(.aux_sample_size = 64, .sample_type = 1 << 20)},
		{"ATTR-53", "SAMPLE_AUX of no bytes", 0, DUMMY(.sample_type = 1 << 20)},
		{"ATTR-53", "sig_data without sigtrap", 0, DUMMY(.sig_data = 5)},
		{"ATTR-53", "aux_watermark", 0, DUMMY(.aux_watermark = 4096)},
		{"ATTR-53", "the reserved half word at 110", EINVAL, DUMMY(.reserved_2 = 1)},
		{"ATTR-52", "sample_max_stack 1", 0,
		 DUMMY(.sample_type = PERF_SAMPLE_CALLCHAIN, .sample_max_stack = 1)},
	};
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	RUN(cases);
	attr.inherit = 1;
	attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID;
	if (kernel_at_least(6, 12))
		check_err("SAMP-10", "SAMPLE_READ with inherit and TID", try_self(attr), 0);
}

/* [ATTR-46] */
CONFORM(branch_stack)
{
	static const struct attr_case cases[] = {
		{"BR-07", "a branch stack on a software event", EOPNOTSUPP,
		 DUMMY(.sample_type = PERF_SAMPLE_BRANCH_STACK,
		       .branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER)},
		{"BR-02", "a branch stack of no kind", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_BRANCH_STACK,
		       .branch_sample_type = PERF_SAMPLE_BRANCH_USER)},
		{"BR-02", "a branch stack of mask 0", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_BRANCH_STACK)},
		{"BR-04", "a branch stack of an undefined kind", EINVAL,
		 DUMMY(.sample_type = PERF_SAMPLE_BRANCH_STACK,
		       .branch_sample_type = 1ULL << 40 | PERF_SAMPLE_BRANCH_USER)},
		{"BR-07", "a branch mask without BRANCH_STACK", 0,
		 DUMMY(.branch_sample_type = 1ULL << 40)},
	};

	RUN(cases);
}

CONFORM(bits)
{
	static const struct attr_case cases[] = {
		{"ATTR-07",
		 "enabled at once",
		 0,
		 {.type = 1, .size = 128, .config = 9, .exclude_kernel = 1}},
		{"ATTR-08", "inherit", 0, DUMMY(.inherit = 1)},
		{"ATTR-09", "pinned on a software event", 0, DUMMY(.pinned = 1)},
		{"ATTR-10", "exclusive on a software event", 0, DUMMY(.exclusive = 1)},
		{"ATTR-11", "exclude_user", 0, DUMMY(.exclude_user = 1)},
		{"ATTR-13", "exclude_hv", 0, DUMMY(.exclude_hv = 1)},
		{"ATTR-14", "exclude_idle", 0, DUMMY(.exclude_idle = 1)},
		{"ATTR-15", "mmap", 0, DUMMY(.mmap = 1)},
		{"ATTR-16", "comm", 0, DUMMY(.comm = 1)},
		/* Alone it has no effect. */
		{"ATTR-18", "inherit_stat without inherit", 0, DUMMY(.inherit_stat = 1)},
		{"ATTR-18", "inherit_stat with inherit", 0, DUMMY(.inherit_stat = 1, .inherit = 1)},
		{"ATTR-19", "enable_on_exec", 0, DUMMY(.enable_on_exec = 1)},
		{"ATTR-20", "task", 0, DUMMY(.task = 1)},
		{"ATTR-42", "wakeup_events of a counting event", 0, DUMMY(.wakeup_events = 7)},
		{"ATTR-21", "watermark", 0, DUMMY(.watermark = 1, .wakeup_watermark = 1)},
		{"ATTR-22", "precise_ip 1 on a software event", 0, DUMMY(.precise_ip = 1)},
		{"ATTR-22", "precise_ip 3 on a software event", 0, DUMMY(.precise_ip = 3)},
		{"ATTR-23", "mmap_data", 0, DUMMY(.mmap_data = 1)},
		{"ATTR-24", "sample_id_all", 0, DUMMY(.sample_id_all = 1)},
		{"ATTR-25", "exclude_host", 0, DUMMY(.exclude_host = 1)},
		{"ATTR-26", "exclude_guest", 0, DUMMY(.exclude_guest = 1)},
		{"ATTR-27", "exclude_callchain_kernel", 0, DUMMY(.exclude_callchain_kernel = 1)},
		{"ATTR-28", "both exclude_callchain bits", 0,
		 DUMMY(.exclude_callchain_kernel = 1, .exclude_callchain_user = 1)},
		{"ATTR-29", "mmap2", 0, DUMMY(.mmap2 = 1)},
		{"ATTR-30", "comm_exec", 0, DUMMY(.comm_exec = 1)},
		{"ATTR-32", "context_switch", 0, DUMMY(.context_switch = 1)},
		{"ATTR-33", "write_backward", 0, DUMMY(.write_backward = 1)},
		{"ATTR-35", "ksymbol", 0, DUMMY(.ksymbol = 1)},
		{"ATTR-36", "bpf_event", 0, DUMMY(.bpf_event = 1)},
		{"ATTR-37", "aux_output on a software event", EOPNOTSUPP, DUMMY(.aux_output = 1)},
		{"ATTR-38", "cgroup", 0, DUMMY(.cgroup = 1)},
		{"ATTR-40", "build_id", 0, DUMMY(.build_id = 1)},
		{"ATTR-40", "inherit_thread without inherit", EINVAL, DUMMY(.inherit_thread = 1)},
		{"ATTR-40", "inherit_thread with inherit", 0,
		 DUMMY(.inherit_thread = 1, .inherit = 1)},
		{"ATTR-40", "remove_on_exec", 0, DUMMY(.remove_on_exec = 1)},
		{"ATTR-40", "remove_on_exec with enable_on_exec", EINVAL,
		 DUMMY(.remove_on_exec = 1, .enable_on_exec = 1)},
		{"ATTR-40", "sigtrap without remove_on_exec", EINVAL, DUMMY(.sigtrap = 1)},
		{"ATTR-40", "sigtrap with remove_on_exec", 0,
		 DUMMY(.sigtrap = 1, .remove_on_exec = 1)},
		{"ATTR-41", "bit 38", EINVAL, DUMMY(.reserved_1 = 1)},
		{"ATTR-41", "bit 63", EINVAL, DUMMY(.reserved_1 = 1u << 25)},
		{"ATTR-41", "__reserved_2", EINVAL, DUMMY(.reserved_2 = 1)},
	};
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	RUN(cases);
	/*
	 * Linux 6.18 has made a field of __reserved_3's low bits (aux_action); the high ones are
	 * checked.
	 */
	attr.reserved_3 = 0x80000000;
	check_err("ATTR-41", "__reserved_3", try_self(attr), EINVAL);
	attr = sw_attr(PERF_COUNT_SW_DUMMY);
	attr.sigtrap = attr.remove_on_exec = 1;
	if (capable())
		check_err("ATTR-40", "sigtrap without a task", try_open(&attr, -1, 0, -1, 0),
			  EINVAL);
	attr = sw_attr(PERF_COUNT_SW_DUMMY);
	attr.config1 = ~0ULL;
	attr.config2 = ~0ULL;
	check_err("ATTR-44", "config1 and config2 are ignored by software events", try_self(attr),
		  0);
	attr.bp_type = ~0u;
	check_err("ATTR-43", "bp_type is ignored by software events", try_self(attr), 0);
}

CONFORM(members)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long lead = ev_self(attr);

	NEED(lead >= 0);
	attr.pinned = 1;
	check_err("ATTR-09", "a pinned member", try_open(&attr, 0, -1, (int)lead, 0), EINVAL);
	attr.pinned = 0;
	attr.exclusive = 1;
	check_err("ATTR-10", "an exclusive member", try_open(&attr, 0, -1, (int)lead, 0), EINVAL);
	attr.exclusive = 0;
	attr.disabled = 0;
	check_err("ATTR-07", "a member that is not disabled", try_open(&attr, 0, -1, (int)lead, 0),
		  0);
}

static void unprivileged(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	bool kernel = paranoid() < 2 || capable();
	long err;

	attr.namespaces = 1;
	check_err("ATTR-34", "namespaces without privilege", try_self(attr),
		  capable() ? 0 : EACCES);
	attr = sw_attr(PERF_COUNT_SW_DUMMY);
	attr.exclude_kernel = 0;
	err = try_self(attr);
	CHECK_ROW("ATTR-12", err == (kernel ? 0 : -EACCES),
		  "exclude_kernel is obligatory for the unprivileged at paranoid 2", "%ld", err);
	attr.exclude_user = 1;
	err = try_self(attr);
	CHECK_ROW("ATTR-12", err == (kernel ? 0 : -EACCES),
		  "kernel alone is refused to the unprivileged at paranoid 2", "%ld", err);
	attr = sw_attr(PERF_COUNT_SW_DUMMY);
	attr.sample_type = PERF_SAMPLE_PHYS_ADDR;
	err = try_self(attr);
	CHECK_ROW("SAMP-20", err == (kernel ? 0 : -EACCES),
		  "PHYS_ADDR is refused to the unprivileged at paranoid 2", "%ld", err);
	attr = sw_attr(PERF_COUNT_SW_DUMMY);
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL;
	err = try_self(attr);
	CHECK_ROW("BR-01", err == (kernel ? -EOPNOTSUPP : -EACCES),
		  "kernel branches are refused to the unprivileged at paranoid 2", "%ld", err);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	check_err("BR-01", "branches of a user event need no privilege", try_self(attr),
		  EOPNOTSUPP);
}

CONFORM(unprivileged)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	as_nobody(unprivileged);
	if (!capable()) {
		skip_row("ATTR-34", "namespaces and kernel mode with privilege",
			 "needs CAP_PERFMON");
		return;
	}
	attr.namespaces = 1;
	check_err("ATTR-34", "namespaces with privilege", try_self(attr), 0);
	attr.namespaces = 0;
	attr.exclude_kernel = 0;
	check_err("ATTR-12", "kernel mode with privilege", try_self(attr), 0);
}

static s32 pmu_type(const char *name)
{
	char path[80], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	NEED(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return atoi(text);
}

static void probes_by_nobody(void)
{
	struct pe_attr attr = ev_attr((u32)pmu_type("uprobe"), 0);

	attr.config1 = (u64) "/bin/true";
	check_err("TYPE-08", "uprobe without privilege", try_self(attr), EACCES);
	attr.config1 = 0;
	check_err("TYPE-08", "uprobe without privilege and path", try_self(attr), EACCES);
}

/* Needs CONFIG_UPROBE_EVENTS, which sysfs shows by the PMU. */
CONFORM(probes)
{
	struct pe_attr attr = ev_attr((u32)pmu_type("uprobe"), 0);

	if (pmu_type("uprobe") < 0) {
		skip_row("TYPE-08", "uprobes", "this kernel has none");
		return;
	}
	as_nobody(probes_by_nobody);
	if (!capable()) {
		skip_row("ATTR-54", "uprobes with privilege", "needs CAP_SYS_ADMIN");
		return;
	}
	check_err("ATTR-54", "uprobe without a path", try_self(attr), EINVAL);
}

CONFORM(tracepoints)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_TRACEPOINT, 0xffffff);

	check_err("TYPE-03", "unknown tracepoint", try_self(attr), EINVAL);
}

/* 6.1 asks for the right to count the kernel, 6.18 does not. */
static void poke_by_nobody(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	attr.text_poke = 1;
	check_err("ATTR-39", "text_poke without privilege", try_self(attr), 0);
}

CONFORM(text_poke)
{
	if (kernel_at_least(6, 18))
		as_nobody(poke_by_nobody);
	else
		skip_row("ATTR-39", "text_poke without privilege", "this kernel may be older");
}

/* [ATTR-31] */
CONFORM(clocks)
{
	static const struct attr_case cases[] = {
		{"ATTR-49", "CLOCK_REALTIME", 0, DUMMY(.use_clockid = 1, .clockid = 0)},
		{"ATTR-49", "CLOCK_MONOTONIC", 0, DUMMY(.use_clockid = 1, .clockid = 1)},
		{"ATTR-49", "CLOCK_PROCESS_CPUTIME_ID", EINVAL,
		 DUMMY(.use_clockid = 1, .clockid = 2)},
		{"ATTR-49", "CLOCK_MONOTONIC_RAW", 0, DUMMY(.use_clockid = 1, .clockid = 4)},
		{"ATTR-49", "CLOCK_REALTIME_COARSE", EINVAL, DUMMY(.use_clockid = 1, .clockid = 5)},
		{"ATTR-49", "CLOCK_BOOTTIME", 0, DUMMY(.use_clockid = 1, .clockid = 7)},
		{"ATTR-49", "CLOCK_TAI", 0, DUMMY(.use_clockid = 1, .clockid = 11)},
		{"ATTR-49", "clock -1", EINVAL, DUMMY(.use_clockid = 1, .clockid = -1)},
		{"ATTR-49", "a bad clock without use_clockid", 0, DUMMY(.clockid = -1)},
	};

	RUN(cases);
}

CONFORM(types)
{
	static const struct attr_case cases[] = {
		{"TYPE-02",
		 "software CPU_CLOCK",
		 0,
		 {1, 128, 0, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software TASK_CLOCK",
		 0,
		 {1, 128, 1, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software PAGE_FAULTS",
		 0,
		 {1, 128, 2, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software CONTEXT_SWITCHES",
		 0,
		 {1, 128, 3, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software CPU_MIGRATIONS",
		 0,
		 {1, 128, 4, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software PAGE_FAULTS_MIN",
		 0,
		 {1, 128, 5, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software PAGE_FAULTS_MAJ",
		 0,
		 {1, 128, 6, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software ALIGNMENT_FAULTS",
		 0,
		 {1, 128, 7, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software EMULATION_FAULTS",
		 0,
		 {1, 128, 8, .disabled = 1, .exclude_kernel = 1}},
		{"SW-10",
		 "software BPF_OUTPUT",
		 0,
		 {1, 128, 10, .disabled = 1, .exclude_kernel = 1}},
		{"SW-10",
		 "software CGROUP_SWITCHES",
		 0,
		 {1, 128, 11, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software 12",
		 ENOENT,
		 {1, 128, 12, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software 2^64 - 1",
		 ENOENT,
		 {1, 128, ~0ULL, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-02",
		 "software 2^32 + 9",
		 ENOENT,
		 {1, 128, (1ULL << 32) + 9, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-07",
		 "type 4000",
		 ENOENT,
		 {4000, 128, 0, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-07",
		 "type 2^32 - 1",
		 ENOENT,
		 {~0u, 128, 0, .disabled = 1, .exclude_kernel = 1}},
		{"TYPE-07",
		 "type 2^31 - 1",
		 ENOENT,
		 {0x7fffffff, 128, 0, .disabled = 1, .exclude_kernel = 1}},
	};

	RUN(cases);
}

/* Breakpoints that need no slot: refused before one is taken. */
CONFORM(breakpoints)
{
	static int word __attribute__((aligned(8)));
	static u8 range[16] __attribute__((aligned(16), unused));
	struct pe_attr attr = ev_attr(PERF_TYPE_BREAKPOINT, 0);

	attr.bp_addr = (u64)&word;
	attr.bp_len = 4;
	check_err("ATTR-43", "breakpoint of type 0", try_self(attr), EINVAL);
	attr.bp_type = HW_BREAKPOINT_X | HW_BREAKPOINT_W;
	check_err("ATTR-43", "breakpoint of X and W", try_self(attr), EINVAL);
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_len = 9;
	check_err("ATTR-45", "breakpoint of length 9", try_self(attr), EINVAL);
	attr.bp_len = 4;
#ifdef __x86_64__ /* arm64 chooses bytes of a word, any of them */
	attr.bp_len = 3;
	check_err("ATTR-45", "breakpoint of length 3", try_self(attr), EINVAL);
	/* A range, which newer CPUs of AMD have. */
	attr.bp_len = 16;
	attr.bp_addr = (u64)range;
	CHECK_ROW("ATTR-45", try_self(attr) == 0 || try_self(attr) == -EOPNOTSUPP,
		  "breakpoint of length 16", "%ld", try_self(attr));
	attr.bp_len = 4;
	attr.bp_addr = (u64)&word + 1;
	check_err("ATTR-44", "breakpoint misaligned to its length", try_self(attr), EINVAL);
#endif
	attr.bp_addr = (u64)&word;
	check_err("TYPE-06", "breakpoint on a write", try_self(attr), 0);
}

/* The order of the checks: each has two faults, and the one that comes first answers. */
CONFORM(order)
{
	struct pe_attr good = sw_attr(PERF_COUNT_SW_DUMMY), a;
	u64 huge = 1ULL << 63;

	a = good;
	a.reserved_1 = 1;
	check_err("ERR-06", "reserved bit before bad group_fd", try_open(&a, 0, -1, 999, 0),
		  EINVAL);
	a = good;
	a.sample_type = huge;
	a.type = 4000;
	check_err("ERR-06", "sample_type before unknown type", try_self(a), EINVAL);
	a = good;
	a.read_format = huge;
	check_err("ERR-06", "read_format before no such task", try_open(&a, -2, -1, -1, 0), EINVAL);
	a = good;
	a.sample_period = huge;
	check_err("ERR-06", "period before bad group_fd", try_open(&a, 0, -1, 999, 0), EINVAL);
	check_err("ERR-06", "cgroup flag with pid -1 before bad group_fd",
		  try_open(&good, -1, 0, 999, PERF_FLAG_PID_CGROUP), EINVAL);
	check_err("ERR-03", "bad group_fd before no such task", try_open(&good, -2, -1, 999, 0),
		  EBADF);
	check_err("ERR-16", "no such task before bad cpu", try_open(&good, -2, 100000, -1, 0),
		  ESRCH);
	a = good;
	a.type = 4000;
	check_err("ERR-16", "no such task before unknown type", try_open(&a, -2, -1, -1, 0), ESRCH);
	check_err("ERR-06", "bad cpu before unknown type", try_open(&a, 0, 100000, -1, 0), EINVAL);
	check_err("ERR-09", "unknown type before clock",
		  (a.use_clockid = 1, a.clockid = -1, try_self(a)), ENOENT);
	a = good;
	a.inherit = 1;
	a.sample_type = PERF_SAMPLE_READ;
	a.type = 4000;
	check_err("ERR-06", "inherit with SAMPLE_READ before unknown type", try_self(a), EINVAL);
	a = good;
	a.sample_type = PERF_SAMPLE_BRANCH_STACK;
	a.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
	a.use_clockid = 1;
	a.clockid = -1;
	check_err("ERR-13", "branch stack before clock", try_self(a), EOPNOTSUPP);
	a = good;
	a.aux_output = 1;
	a.sample_type = PERF_SAMPLE_CALLCHAIN;
	a.sample_max_stack = 65535;
	check_err("ERR-13", "aux_output before call chain depth", try_self(a), EOPNOTSUPP);
	a.aux_output = 0;
	a.use_clockid = 1;
	a.clockid = -1;
	check_err("ERR-14", "call chain depth before clock", try_self(a), EOVERFLOW);
	a = good;
	a.remove_on_exec = a.enable_on_exec = 1;
	a.sample_period = huge;
	check_err("ERR-06", "exec bits before bad group_fd", try_open(&a, 0, -1, 999, 0), EINVAL);
}

static void order_unprivileged(void)
{
	struct pe_attr good = sw_attr(PERF_COUNT_SW_DUMMY), a = good;
	bool strict = paranoid() >= 2 && !capable();

	if (!strict) {
		skip_row("ERR-02", "EACCES against other faults",
			 "needs paranoid 2 and no privilege");
		return;
	}
	a.exclude_kernel = 0;
	check_err("ERR-02", "kernel mode before bad group_fd", try_open(&a, 0, -1, 999, 0), EACCES);
	a.sample_period = 1ULL << 63;
	check_err("ERR-02", "kernel mode before period", try_self(a), EACCES);
	a.reserved_1 = 1;
	check_err("ERR-06", "reserved bit before kernel mode", try_self(a), EINVAL);
	a = good;
	a.namespaces = 1;
	a.sample_period = 1ULL << 63;
	check_err("ERR-02", "namespaces before period", try_self(a), EACCES);
	a = good;
	a.sample_type = PERF_SAMPLE_PHYS_ADDR;
	a.sample_period = 1ULL << 63;
	check_err("ERR-06", "period before PHYS_ADDR", try_self(a), EINVAL);
	a.sample_period = 0;
	check_err("ERR-02", "PHYS_ADDR before bad group_fd", try_open(&a, 0, -1, 999, 0), EACCES);
	a = good;
	a.type = 4000;
	check_err("ERR-09", "unknown type before cpu-wide", try_open(&a, -1, 0, -1, 0), ENOENT);
	check_err("ERR-06", "bad cpu before cpu-wide", try_open(&good, -1, 100000, -1, 0), EINVAL);
	a = good;
	a.use_clockid = 1;
	a.clockid = -1;
	check_err("ERR-06", "clock before cpu-wide", try_open(&a, -1, 0, -1, 0), EINVAL);
	a = good;
	a.sample_type = PERF_SAMPLE_BRANCH_STACK;
	a.branch_sample_type = PERF_SAMPLE_BRANCH_KERNEL;
	check_err("BR-02", "branch kind before branch privilege", try_self(a), EINVAL);
}

CONFORM(order_unprivileged)
{
	as_nobody(order_unprivileged);
}
