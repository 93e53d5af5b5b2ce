/*
 * What the driver of arm64's PMU does beside the rules of all [ARM-*, PAGE-09..PAGE-14, FILE-08].
 *
 * The kernel is a guest of some hypervisor, or a host with or without VHE. A program cannot see
 * which, so CONFORM_ARM64=guest|vhe|nvhe says it; tests/arm64/boot makes such machines, and owns
 * them: there alone are sysctls written.
 */
#include "conform/region.h"

#ifndef __aarch64__

CONFORM(elsewhere)
{
	skip_row("ARM-13", "arm64's PMU", "not an arm64 machine");
}

#else

#include <linux/kvm.h>

#define LONG       1 /* config1: a counter of 64 bits */
#define TURNS      1048576
#define LOOPS      (2 * TURNS + 1)

static bool kernel_is(const char *kind)
{
	const char *said = getenv("CONFORM_ARM64");

	return said && strcmp(said, kind) == 0;
}

static bool unknown_kernel(const char *row, const char *text)
{
	if (no_pmu(row, text))
		return true;
	if (getenv("CONFORM_ARM64") && capable())
		return false;
	skip_row(row, text, "not in a machine of tests/arm64/boot");
	return true;
}

static struct pe_attr hw_attr(u64 config, u64 config1)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, config);

	attr.config1 = config1;
	return attr;
}

static struct pe_attr instructions(bool user, bool kernel)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	attr.exclude_user = !user;
	attr.exclude_kernel = !kernel;
	attr.exclude_hv = 0;
	return attr;
}

/* A region of 2 million instructions in user mode and next to none in the kernel. */
static u64 over_loop(struct pe_attr attr)
{
	long fd = ev_self(attr);
	u64 n;

	NEED(fd >= 0);
	n = REGION_COUNT((int)fd, LOOP(1048576));
	close((int)fd);
	return n;
}

/* 2,001 instructions in user mode and far more in the kernel: getpid, a thousand times. */
static u64 over_calls(struct pe_attr attr)
{
	long fd = ev_self(attr);
	u64 n;

	NEED(fd >= 0);
	n = REGION_COUNT((int)fd, ".rept 1000; mov w8, #172; svc #0; .endr; mov w8, #29");
	close((int)fd);
	return n;
}

static const char *arm_file(const char *name)
{
	/* With ACPI there is a number behind the name. */
	bool acpi = access("/sys/bus/event_source/devices/armv8_pmuv3", F_OK) != 0;

	return device_file(acpi ? "armv8_pmuv3_0" : "armv8_pmuv3", name);
}

/* To one part in PARTS. */
static bool close_to(u64 a, u64 b, u64 parts)
{
	return a > b - b / parts && a < b + b / parts;
}

CONFORM(exclude)
{
	const char *row = kernel_is("guest") ? "ARM-03" : "ARM-02";
	struct pe_attr attr;
	u64 user, kernel, both;

	if (no_pmu("ARM-03", "exclude_kernel"))
		return;
	check_exact(row, "exclude_kernel: system calls are one instruction each",
		    over_calls(instructions(true, false)), REGION_REST + 2001);
	check_exact(row, "exclude_kernel: the loop is counted",
		    over_loop(instructions(true, false)), REGION_REST + LOOPS);
	attr = instructions(true, false);
	attr.exclude_idle = 1;
	check_err("ATTR-14", "exclude_idle", try_self(attr), EOPNOTSUPP);
	if (unknown_kernel("ARM-01", "exclude_user"))
		return;
	attr = instructions(false, true);
	user = over_loop(attr);
	CHECK_ROW("ARM-01", user < LOOPS / 4, "exclude_user: the loop is not counted", "%lu", user);
	kernel = over_calls(attr);
	CHECK_ROW("ARM-01", kernel > 20000, "exclude_user: system calls are", "%lu", kernel);
	both = over_calls(instructions(true, true));
	CHECK_ROW("ARM-07", close_to(both, kernel + REGION_REST + 2001, 10),
		  "without either: the sum of both levels", "%lu, kernel alone %lu", both, kernel);
	attr.exclude_hv = 1;
	both = over_calls(attr);
	CHECK_ROW(kernel_is("guest") ? "ARM-06" : "ARM-04", close_to(both, kernel, 10),
		  "exclude_hv: the kernel's instructions all the same", "%lu, without %lu", both,
		  kernel);
}

/* Of a kernel's guests, when there is none. */
CONFORM(no_guest)
{
	const char *row = kernel_is("vhe") ? "ARM-09" : kernel_is("nvhe") ? "ARM-08" : "ARM-10";
	struct pe_attr attr = instructions(true, false);

	if (unknown_kernel("ARM-10", "exclude_host and exclude_guest"))
		return;
	attr.exclude_guest = 1;
	check_exact(row, "exclude_guest: the loop is counted", over_loop(attr),
		    REGION_REST + LOOPS);
	attr.exclude_guest = 0;
	attr.exclude_host = 1;
	check_val(row, "exclude_host: nothing is", (long long)over_loop(attr), 0);
}

/*
 * A virtual machine that has one page of code at 64 KiB. Each KVM_RUN is a loop of 2 million
 * instructions in EL1, ended by a store to where there is no memory; the next goes on behind the
 * store.
 */
#define GUEST_CODE 0x10000

struct vm {
	int vm, cpu;
	struct kvm_run *run;
};

asm(".globl guest_begin, guest_end\n"
    "guest_begin: mov w9, #1048576\n"
    "1: subs w9, w9, #1\n"
    "	b.ne 1b\n"
    "	mov x10, #0x20000\n"
    "	str w9, [x10]\n"
    "	b guest_begin\n"
    "guest_end:\n");
extern const char guest_begin[], guest_end[];

static void vm_reg(struct vm *vm, u64 offset, u64 value)
{
	struct kvm_one_reg reg = {
		.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | offset / 4,
		.addr = (u64)&value,
	};

	NEED(ioctl(vm->cpu, KVM_SET_ONE_REG, &reg) == 0);
}

static void vm_new(struct vm *vm)
{
	struct kvm_userspace_memory_region slot = {.guest_phys_addr = GUEST_CODE,
						   .memory_size = 4096};
	struct kvm_vcpu_init init;
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	long size;
	char *memory;

	NEED(kvm >= 0 && (vm->vm = ioctl(kvm, KVM_CREATE_VM, 0)) >= 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(memory != MAP_FAILED);
	memcpy(memory, guest_begin, (size_t)(guest_end - guest_begin));
	slot.userspace_addr = (u64)memory;
	NEED(ioctl(vm->vm, KVM_SET_USER_MEMORY_REGION, &slot) == 0);
	NEED((vm->cpu = ioctl(vm->vm, KVM_CREATE_VCPU, 0)) >= 0);
	size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	NEED(size > 0);
	vm->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vm->cpu, 0);
	NEED(vm->run != MAP_FAILED);
	NEED(ioctl(vm->vm, KVM_ARM_PREFERRED_TARGET, &init) == 0);
	NEED(ioctl(vm->cpu, KVM_ARM_VCPU_INIT, &init) == 0);
	vm_reg(vm, offsetof(struct kvm_regs, regs.pc), GUEST_CODE);
}

/* What an event of ATTR counts of one run of the loop in the virtual machine. */
static u64 over_guest(struct vm *vm, struct pe_attr attr)
{
	long fd = ev_self(attr);
	u64 n;

	NEED(fd >= 0);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	do
		NEED(ioctl(vm->cpu, KVM_RUN, 0) == 0 || errno == EINTR);
	while (vm->run->exit_reason == KVM_EXIT_INTR);
	NEED(ev_ioctl((int)fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(vm->run->exit_reason == KVM_EXIT_MMIO);
	n = ev_count((int)fd);
	close((int)fd);
	return n;
}

CONFORM(guest)
{
	const char *row = kernel_is("vhe") ? "ARM-09" : "ARM-08";
	struct pe_attr attr = instructions(true, true), guest, host;
	struct vm vm;
	u64 n, all;

	if (unknown_kernel("ARM-08", "instructions of a guest"))
		return;
	if (access("/dev/kvm", F_OK)) {
		skip_row("ARM-08", "instructions of a guest", "no KVM here");
		return;
	}
	vm_new(&vm);
	over_guest(&vm, attr); /* the first takes faults */
	all = over_guest(&vm, attr);
	guest = host = attr;
	guest.exclude_host = 1;
	host.exclude_guest = 1;
	n = over_guest(&vm, guest);
	CHECK_ROW(row, n >= LOOPS && n < LOOPS + 2000,
		  "exclude_host: the guest's instructions alone", "%lu", n);
	n = over_guest(&vm, host);
	CHECK_ROW(row, n > 0 && n < LOOPS / 2, "exclude_guest: the host's alone", "%lu", n);
	CHECK_ROW(row, all > LOOPS + n / 2 && all < LOOPS + n * 2,
		  "without either: the sum of both", "%lu, of the host %lu", all, n);
	guest.exclude_kernel = 1;
	check_val(row, "exclude_host and exclude_kernel: EL1 of the guest is left out too",
		  (long long)over_guest(&vm, guest), 0);
	attr.exclude_kernel = attr.exclude_user = 1;
	n = over_guest(&vm, attr);
	if (kernel_is("nvhe")) {
		CHECK_ROW("ARM-05", n > 0, "a hypervisor below its kernel counts by itself", "%lu",
			  n);
		attr.exclude_hv = 1;
		check_val("ARM-05", "exclude_hv leaves it out", (long long)over_guest(&vm, attr),
			  0);
	} else {
		check_val("ARM-04", "a kernel that is the hypervisor goes with exclude_kernel",
			  (long long)n, 0);
	}
}

/* How many events of CONFIG1 are at most in one group. The kernel does not look at those off. */
static int largest_group(u64 config1)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	int n = 1, fds[64];

	attr.config1 = config1;
	attr.disabled = 0;
	fds[0] = (int)ev_self(attr);
	if (fds[0] < 0)
		return 0;
	while (n < 64 && (fds[n] = (int)ev_open(&attr, 0, -1, fds[0], 0)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fds[i]);
	return n;
}

static bool has_wide_counters(void)
{
	return largest_group(LONG) == largest_group(0);
}

CONFORM(width)
{
	int narrow = largest_group(0), wide = largest_group(LONG);
	long err;
	u64 n;

	if (no_pmu("ARM-17", "long events"))
		return;
	CHECK_ROW("ARM-17", narrow > 0 && wide > 0, "a group of events with long, and without",
		  "%d and %d", wide, narrow);
	CHECK_ROW("ARM-19", wide == narrow || wide == narrow / 2,
		  "where counters are narrow a long event takes two", "%d and %d", wide, narrow);
	n = over_loop(hw_attr(PERF_COUNT_HW_INSTRUCTIONS, LONG));
	check_exact("ARM-17", "a long event counts the loop", n, REGION_REST + LOOPS);
	check_err("ARM-18", "long cycles for user mode",
		  try_self(hw_attr(PERF_COUNT_HW_CPU_CYCLES, LONG | USER_ACCESS)), 0);
	err = try_self(hw_attr(PERF_COUNT_HW_INSTRUCTIONS, LONG | USER_ACCESS));
	CHECK_ROW("ARM-18", err == (has_wide_counters() ? 0 : -EOPNOTSUPP),
		  "long instructions for user mode: only of wide counters", "%ld", err);
	skip_row("ARM-16", "PMUs of different cores", "one kind of core");
}

/*
 * Over 2^32: a counter of 32 bits that overflows, two that are chained, one of 64 bits say the
 * same. It is the cycles of a CPU that waits, which takes no time in the machines of
 * tests/arm64/boot.
 */
CONFORM(overflow)
{
	static const u64 config1[] = {0, 0, LONG}; /* the first has the cycle counter */
	struct pe_attr attr = hw_attr(PERF_COUNT_HW_CPU_CYCLES, 0);
	u64 v[ARRAY_SIZE(config1)];
	int fds[ARRAY_SIZE(config1)];

	if (unknown_kernel("ARM-17", "more than 2^32"))
		return;
	attr.exclude_kernel = 0;
	for (size_t i = 0; i < ARRAY_SIZE(config1); i++) {
		attr.config1 = config1[i];
		fds[i] = (int)ev_open(&attr, -1, 0, -1, 0);
		NEED(fds[i] >= 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(config1); i++)
		NEED(ev_ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0) == 0);
	sleep_ms(20000);
	for (size_t i = 0; i < ARRAY_SIZE(config1); i++)
		v[i] = ev_count(fds[i]);
	CHECK_ROW("ARM-17", v[0] > 1ULL << 33 && close_to(v[1], v[0], 100),
		  "narrow counters over 2^32: the cycle counter and another agree", "%lu and %lu",
		  v[0], v[1]);
	if (has_wide_counters() || arm_file("events/chain")[0])
		CHECK_ROW("ARM-19", close_to(v[2], v[0], 100), "and a long event", "%lu and %lu",
			  v[0], v[2]);
	else
		skip_row("ARM-19", "and a long event", "the PMU here has no event that chains");
}

static volatile struct perf_event_mmap_page *page_of(int fd)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	NEED(page != MAP_FAILED);
	return page;
}

/* The page of an event that is on. */
static volatile struct perf_event_mmap_page *page_on(u64 config, u64 config1)
{
	struct pe_attr attr = hw_attr(config, config1);
	long fd;

	attr.disabled = 0;
	fd = ev_self(attr);
	NEED(fd >= 0);
	return page_of((int)fd);
}

CONFORM(user_access)
{
	volatile struct perf_event_mmap_page *pg;
	struct pe_attr attr = hw_attr(PERF_COUNT_HW_INSTRUCTIONS, USER_ACCESS);
	int status;
	pid_t pid;

	if (no_user_access("ARM-13", "counters for user mode"))
		return;
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		/* The kernel takes access away when it starts counters of a task that has none. */
		page_on(PERF_COUNT_HW_INSTRUCTIONS, 0);
		(void)counter_read(1);
		_exit(0);
	}
	NEED(waitpid(pid, &status, 0) == pid);
	check_val("ARM-13", "a read of a counter without an event that allows it ends by signal",
		  WIFSIGNALED(status) ? WTERMSIG(status) : 0, SIGILL);
	pg = page_on(PERF_COUNT_HW_INSTRUCTIONS, 0);
	check_val("ARM-13", "without rdpmc: cap_user_rdpmc", pg->cap_user_rdpmc, 0);
	check_val("ARM-13", "without rdpmc: index", pg->index, 0);
	pg = page_on(PERF_COUNT_HW_INSTRUCTIONS, USER_ACCESS);
	check_val("ARM-13", "with rdpmc: cap_user_rdpmc", pg->cap_user_rdpmc, 1);
	CHECK_ROW("ARM-14", pg->index > 0 && pg->index < 32, "with rdpmc: counter + 1", "%u",
		  pg->index);
	check_val("ARM-20", "pmc_width", pg->pmc_width, 32);
	pg = page_on(PERF_COUNT_HW_CPU_CYCLES, USER_ACCESS | LONG);
	check_val("ARM-14", "the cycle counter is 32", pg->index, 32);
	check_val("ARM-20", "pmc_width of long cycles", pg->pmc_width, 64);
	if (!try_self(hw_attr(PERF_COUNT_HW_INSTRUCTIONS, USER_ACCESS | LONG))) {
		pg = page_on(PERF_COUNT_HW_INSTRUCTIONS, USER_ACCESS | LONG);
		check_val("ARM-20", "pmc_width of long instructions", pg->pmc_width, 64);
	}
	if (unknown_kernel("ARM-13", "an event of a CPU"))
		return;
	check_err("ARM-13", "an event of a CPU", try_open(&attr, -1, 0, -1, 0), EINVAL);
	check_err("ARM-13", "of a task on a CPU", try_open(&attr, 0, 0, -1, 0), 0);
}

static int write_sysctl(const char *text)
{
	int fd = open("/proc/sys/kernel/perf_user_access", O_WRONLY);
	int err = write(fd, text, strlen(text)) < 0 ? -errno : 0;

	close(fd);
	return err;
}

CONFORM(user_access_sysctl)
{
	volatile struct perf_event_mmap_page *pg;
	u64 count;
	int fd;

	if (unknown_kernel("ARM-12", "kernel.perf_user_access"))
		return;
	if (no_user_access("ARM-12", "kernel.perf_user_access"))
		return;
	check_err("FILE-08", "perf_user_access: 2", write_sysctl("2"), EINVAL);
	fd = pmu_open_readable(PERF_COUNT_HW_INSTRUCTIONS);
	pg = page_of(fd);
	NEED(write_sysctl("0") == 0);
	count = REGION_COUNT(fd, LOOP(100));
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	check_val("ARM-14", "perf_user_access 0: index", pg->index, 0);
	check_err("ARM-12", "perf_user_access 0: such an event opens",
		  try_self(hw_attr(PERF_COUNT_HW_INSTRUCTIONS, USER_ACCESS)), 0);
	check_exact("ARM-12", "perf_user_access 0: and counts", count, REGION_REST + 201);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(write_sysctl("1") == 0);
	NEED(ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	CHECK_ROW("ARM-12", pg->index > 0, "perf_user_access 1: index", "%u", pg->index);
}

/* The times of the page go on by the clock that user mode reads. */
CONFORM(page_time)
{
	volatile struct perf_event_mmap_page *pg;
	struct pe_attr attr = hw_attr(PERF_COUNT_HW_INSTRUCTIONS, USER_ACCESS);
	u64 before[3], after[3], cycles, delta, enabled;
	u32 seq;
	long fd;

	if (no_user_access("PAGE-09", "times in the page"))
		return;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.disabled = 0;
	fd = ev_self(attr);
	NEED(fd >= 0);
	pg = page_of((int)fd);
	check_val("PAGE-09", "cap_user_time", pg->cap_user_time, 1);
	check_val("PAGE-10", "cap_user_time_zero", pg->cap_user_time_zero, 1);
	check_val("PAGE-11", "cap_user_time_short", pg->cap_user_time_short, 1);
	NEED(ev_read((int)fd, before, sizeof(before)) == sizeof(before));
	do {
		seq = pg->lock;
		asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(cycles)::"memory");
		cycles = pg->time_cycles + ((cycles - pg->time_cycles) & pg->time_mask);
		delta = pg->time_offset + (cycles >> pg->time_shift) * pg->time_mult +
			(((cycles & ((1ULL << pg->time_shift) - 1)) * pg->time_mult) >>
			 pg->time_shift);
		enabled = pg->time_enabled + delta;
		asm volatile("" ::: "memory");
	} while (pg->lock != seq);
	NEED(ev_read((int)fd, after, sizeof(after)) == sizeof(after));
	/* The clock is coarser than the kernel's. */
	CHECK_ROW("PAGE-13", enabled + 1000 > before[1] && enabled < after[1] + 1000,
		  "time_enabled by the page is between those of two reads", "%lu, read %lu and %lu",
		  enabled, before[1], after[1]);
}

CONFORM(files)
{
	struct pe_attr attr = ev_attr(0, RAW_INSTRUCTIONS);
	long fd;

	if (no_pmu("ARM-26", "the files of the PMU"))
		return;
	attr.type = (u32)atoi(arm_file("type"));
	if (!attr.type) {
		skip_row("ARM-26", "the files of the PMU", "it has another name here");
		return;
	}
	fd = ev_self(attr);
	NEED(fd >= 0);
	check_exact("TYPE-09", "the device's type and the raw code count instructions",
		    REGION_COUNT((int)fd, LOOP(100)), REGION_REST + 201);
	check_val("FILE-11", "format/event", strcmp(arm_file("format/event"), "config:0-15\n"), 0);
	check_val("ARM-17", "format/long", strcmp(arm_file("format/long"), "config1:0\n"), 0);
	check_val("ARM-13", "format/rdpmc", strcmp(arm_file("format/rdpmc"), "config1:1\n"), 0);
	if (!arm_file("format/threshold")[0]) {
		check_val("ARM-26", "a kernel without thresholds", kernel_at_least(6, 8), 0);
		return;
	}
	check_val("ARM-21", "format/threshold",
		  strcmp(arm_file("format/threshold"), "config1:5-16\n"), 0);
	attr.config1 = strtoul(arm_file("caps/threshold_max"), NULL, 16);
	CHECK_ROW("ARM-24", attr.config1 < 4096, "caps/threshold_max", "%llu",
		  (unsigned long long)attr.config1);
	attr.config1 = (attr.config1 + 1) << 5;
	check_err("ARM-24", "a larger threshold", try_self(attr), EINVAL);
}

#endif
