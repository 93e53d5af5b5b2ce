/*
 * Records from the running kernel, of every type and with every sample_type bit that it can be
 * brought to write, each as its layout, its bytes in hexadecimal and its text:
 * tests/records/kernel.txt was made with
 *
 *	cp build/tests/records/capture /tmp; /tmp/capture >kernel.txt
 *
 * as root, on a machine without PMU. Reads the buffers in its own simple way, without the
 * library's.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/hw_breakpoint.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/perf.h"
#include "records/show.h"

#define PAGE 4096

struct source {
	int fd;
	size_t pages;
	struct perf_event_mmap_page *page;
	struct ap_layout layout;
	unsigned int shown[64]; /* how many of each type have been printed */
};

static const struct pe_attr base = {.type = PERF_TYPE_SOFTWARE,
				    .size = sizeof(base),
				    .config = PERF_COUNT_SW_DUMMY,
				    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
				    .sample_id_all = 1};

static int ev_open(struct pe_attr *attr, pid_t pid, int cpu, int group)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static bool source_open(struct source *s, const char *title, struct pe_attr attr, pid_t pid,
			int cpu, int group, size_t pages)
{
	*s = (struct source){.pages = pages};
	printf("\n# %s\n", title);
	s->fd = ev_open(&attr, pid, cpu, group);
	if (s->fd < 0) {
		printf("# refused: %s\n", strerror(errno));
		return false;
	}
	s->page = mmap(NULL, (1 + pages) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED) {
		printf("# no buffer: %s\n", strerror(errno));
		close(s->fd);
		return false;
	}
	ap_layout_init(&s->layout, (struct perf_event_attr *)&attr);
	show_layout(stdout, &s->layout);
	return true;
}

static void show_bytes(const struct source *s, const u64 *record, size_t size)
{
	struct ap_record rec;
	struct ap_error err;

	for (size_t i = 0; i < size; i++)
		printf("%02x", ((const u8 *)record)[i]);
	printf("\n= ");
	if (ap_record_decode(&rec, record, size, &s->layout, &err) < 0)
		printf("%s\n", err.why);
	else
		show_record(stdout, &rec);
}

/* Prints at most @each records of a type, of those that come after the ones already printed. */
static void source_show(struct source *s, unsigned int each)
{
	u64 head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE),
	    tail = s->page->data_tail;
	const u8 *data = (const u8 *)s->page + PAGE;
	size_t mask = s->pages * PAGE - 1;
	static u64 copy[8192];

	while (tail < head) {
		struct perf_event_header h;

		for (size_t i = 0; i < sizeof(h); i++)
			((u8 *)&h)[i] = data[(tail + i) & mask];
		for (size_t i = 0; i < h.size; i++)
			((u8 *)copy)[i] = data[(tail + i) & mask];
		if (h.type < 64 && s->shown[h.type]++ < each)
			show_bytes(s, copy, h.size);
		tail += h.size;
	}
	__atomic_store_n(&s->page->data_tail, tail, __ATOMIC_RELEASE);
}

static void source_close(struct source *s)
{
	munmap(s->page, (1 + s->pages) * PAGE);
	close(s->fd);
}

static void control(const struct source *s, unsigned long request)
{
	if (ioctl(s->fd, request, 0))
		printf("# ioctl: %s\n", strerror(errno));
}

/* Faults @n pages in. */
static void fault(size_t n)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	madvise(p, n * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		p[i * PAGE] = 1;
	munmap(p, n * PAGE);
}

static struct pe_attr faults(u64 sample_type)
{
	struct pe_attr a = base;

	a.config = PERF_COUNT_SW_PAGE_FAULTS;
	a.sample_period = 1;
	a.sample_type = sample_type;
	a.disabled = 1;
	a.exclude_kernel = 1;
	a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			PERF_FORMAT_ID;
	if (sample_type & PERF_SAMPLE_REGS_USER)
		a.sample_regs_user = 0x1ff; /* AX ... IP */
	if (sample_type & PERF_SAMPLE_REGS_INTR)
		a.sample_regs_intr = 0x100; /* IP */
	if (sample_type & PERF_SAMPLE_STACK_USER)
		a.sample_stack_user = 64;
	return a;
}

static void sample_faults(const char *title, struct pe_attr a)
{
	struct source s;

	if (!source_open(&s, title, a, 0, -1, -1, 8))
		return;
	control(&s, PERF_EVENT_IOC_ENABLE);
	fault(1);
	control(&s, PERF_EVENT_IOC_DISABLE);
	source_show(&s, 1);
	source_close(&s);
}

static void every_sample_bit(void)
{
	char title[64];

	for (u64 bit = 0; bit < 25; bit++) {
		if (BIT(bit) & PERF_SAMPLE_BRANCH_STACK)
			continue;
		snprintf(title, sizeof(title), "a page fault with sample_type bit %d", (int)bit);
		sample_faults(title, faults(BIT(bit)));
	}
	sample_faults("a page fault with every bit that software events have, WEIGHT",
		      faults((BIT(24) - 1) & ~(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_AUX)));
	sample_faults("a page fault with every bit that software events have, WEIGHT_STRUCT",
		      faults(((BIT(25) - 1) &
			      ~(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_AUX | PERF_SAMPLE_WEIGHT))));
}

static void groups(void)
{
	struct pe_attr a = faults(PERF_SAMPLE_IP | PERF_SAMPLE_READ), member = base;
	struct source s;
	int fd;

	a.read_format |= PERF_FORMAT_GROUP | PE_FORMAT_LOST;
	member.config = PERF_COUNT_SW_TASK_CLOCK;
	member.read_format = a.read_format;
	if (!source_open(&s, "a group's values in a sample", a, 0, -1, -1, 8))
		return;
	fd = ev_open(&member, 0, -1, s.fd);
	control(&s, PERF_EVENT_IOC_ENABLE);
	fault(1);
	control(&s, PERF_EVENT_IOC_DISABLE);
	source_show(&s, 1);
	close(fd);
	source_close(&s);
}

static void spin(int ms)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

static void clocks(void)
{
	struct pe_attr a = base;
	struct source s;

	a.config = PERF_COUNT_SW_CPU_CLOCK;
	a.sample_period = 1000000;
	a.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_INTR;
	a.sample_regs_intr = 0x1c0;
	a.sample_max_stack = 6;
	if (!source_open(&s, "cpu-clock with call chains, kernel and user", a, 0, -1, -1, 8))
		return;
	spin(3);
	for (int i = 0; i < 20000; i++)
		close(open("/", O_PATH));
	source_show(&s, 4);
	source_close(&s);
}

static volatile int watched;

static void breakpoints(void)
{
	struct pe_attr a = base;
	struct source s;

	a.type = PERF_TYPE_BREAKPOINT;
	a.config = 0;
	a.bp_type = HW_BREAKPOINT_W;
	a.bp_addr = (u64)&watched;
	a.bp_len = 4;
	a.sample_period = 1;
	a.exclude_kernel = 1;
	a.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_TIME |
			PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER;
	if (!source_open(&s, "a watchpoint", a, 0, -1, -1, 8))
		return;
	watched = 1;
	source_show(&s, 1);
	source_close(&s);
}

static void run_child(int start)
{
	char c, name[] = "true";
	char *argv[] = {name, NULL}, *envp[] = {NULL};

	if (read(start, &c, 1) != 1)
		_exit(1);
	unshare(CLONE_NEWUTS);
	fault(3);
	if (fork() == 0)
		_exit(0);
	wait(NULL);
	execve("/bin/true", argv, envp);
	_exit(1);
}

/* Everything that happens to a task; @build_id and @trailer choose between the forms. */
static void tasks(const char *title, struct pe_attr a, int cpu, unsigned int each)
{
	struct source s;
	int start[2];
	pid_t pid;

	a.mmap = a.comm = a.comm_exec = a.task = 1;
	if (pipe(start))
		exit(1);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_child(start[0]);
	if (source_open(&s, title, a, pid, cpu, -1, 32)) {
		if (write(start[1], "", 1) != 1)
			exit(1);
		waitpid(pid, NULL, 0);
		source_show(&s, each);
		source_close(&s);
	} else {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(start[0]);
	close(start[1]);
}

static void side_band(void)
{
	struct pe_attr a = base;

	tasks("a task's life: MMAP", a, -1, 2);
	a.mmap2 = 1;
	a.mmap_data = 1;
	a.namespaces = 1;
	a.context_switch = 1;
	a.sample_type |= PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID |
			 PERF_SAMPLE_STREAM_ID;
	tasks("a task's life: MMAP2, NAMESPACES, SWITCH, every field in the trailer", a, -1, 4);
	a.sample_id_all = 0;
	tasks("a task's life without trailers", a, -1, 1);
	a.sample_id_all = 1;
	a.build_id = 1;
	a.mmap_data = 0;
	tasks("a task's life: build ids", a, -1, 2);
}

static void inherited(void)
{
	struct pe_attr a = base, other = base;
	struct source s;
	int go[2];
	char c;

	a.config = PERF_COUNT_SW_TASK_CLOCK;
	a.inherit = a.inherit_stat = a.remove_on_exec = 1;
	a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			PERF_FORMAT_ID | PE_FORMAT_LOST;
	if (!source_open(&s, "a child's counts as it leaves", a, 0, 0, -1, 8))
		return;
	fflush(stdout);
	if (pipe(go))
		exit(1);
	if (fork() == 0) {
		if (read(go[0], &c, 1) == 1)
			execl("/bin/true", "true", NULL);
		_exit(1);
	}
	/* With an event more than the child the two do not swap theirs when they take turns. */
	ev_open(&other, 0, -1, -1);
	if (write(go[1], "", 1) != 1)
		exit(1);
	wait(NULL);
	source_show(&s, 2);
	source_close(&s);
}

static void whole_cpu(void)
{
	struct pe_attr a = base;
	struct source s;

	a.context_switch = 1;
	if (!source_open(&s, "switches of a whole CPU", a, -1, 0, -1, 8))
		return;
	usleep(20000);
	control(&s, PERF_EVENT_IOC_DISABLE);
	source_show(&s, 3);
	source_close(&s);
}

static void set_rate(const char *rate)
{
	int fd = open("/proc/sys/kernel/perf_event_max_sample_rate", O_WRONLY);

	if (fd < 0 || write(fd, rate, strlen(rate)) < 0)
		printf("# rate: %s\n", strerror(errno));
	close(fd);
}

static void too_many(void)
{
	struct pe_attr a = faults(PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_TID);
	struct pe_attr clock = base;
	struct source s;

	clock.config = PERF_COUNT_SW_CPU_CLOCK;
	clock.sample_period = 100000;
	if (source_open(&s, "more samples in a tick than allowed", clock, 0, -1, -1, 64)) {
		set_rate("1000");
		spin(12);
		control(&s, PERF_EVENT_IOC_DISABLE);
		set_rate("100000");
		source_show(&s, 1);
		source_close(&s);
	}
	if (source_open(&s, "more samples than there is room for", a, 0, -1, -1, 1)) {
		control(&s, PERF_EVENT_IOC_ENABLE);
		fault(200);
		source_show(&s, 0);
		fault(1);
		control(&s, PERF_EVENT_IOC_DISABLE);
		source_show(&s, 1);
		source_close(&s);
	}
}

static void bpf(void)
{
	static const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
					       {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr load = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
			       .insn_cnt = 2,
			       .insns = (u64)code,
			       .license = (u64) "MIT",
			       .prog_name = "golden"};
	struct pe_attr a = base;
	struct source s;
	int fd;

	a.ksymbol = a.bpf_event = 1;
	if (!source_open(&s, "a BPF program comes and goes", a, 0, -1, -1, 8))
		return;
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	if (fd < 0)
		printf("# bpf: %s\n", strerror(errno));
	close(fd);
	usleep(100000);
	source_show(&s, 2);
	source_close(&s);
}

static void cgroups(void)
{
	struct pe_attr a = base;
	struct source s;

	/* Alone it would not make it an event for side-band records. */
	a.cgroup = a.ksymbol = 1;
	if (!source_open(&s, "a cgroup is made", a, -1, 0, -1, 8))
		return;
	if (mkdir("/sys/fs/cgroup/unified/golden", 0755) && mkdir("/sys/fs/cgroup/golden", 0755))
		printf("# mkdir: %s\n", strerror(errno));
	rmdir("/sys/fs/cgroup/unified/golden");
	rmdir("/sys/fs/cgroup/golden");
	source_show(&s, 1);
	source_close(&s);
}

static void text_poke(void)
{
	struct pe_attr a = base, other = base;
	struct source s;
	int fd;

	a.text_poke = 1;
	a.ksymbol = 1;
	if (!source_open(&s, "the kernel changes its own code", a, -1, 0, -1, 64))
		return;
	/* A tracepoint, whichever it is, is a branch in the code while nobody listens. */
	other.type = PERF_TYPE_TRACEPOINT;
	for (other.config = 300; other.config < 310; other.config++) {
		fd = ev_open(&other, 0, -1, -1);
		close(fd);
	}
	source_show(&s, 2);
	source_close(&s);
}

int main(void)
{
	cpu_set_t one;

	/* What happens to a CPU is recorded on that CPU. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	printf("# Records of a running kernel; made by tests/records/capture.c.\n");
	every_sample_bit();
	groups();
	clocks();
	breakpoints();
	side_band();
	whole_cpu();
	too_many();
	bpf();
	cgroups();
	text_poke();
	inherited();
	return 0;
}
