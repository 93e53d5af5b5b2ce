/*
 * Records of what tasks do beside names, mappings, forks and ends: namespaces, cgroups that are
 * made, build ids of mappings, what bpf(2) does to the kernel's code.
 */
#include "conform/cgroup-hierarchy.h"
#include "conform/conform.h"

#include <elf.h>
#include <link.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/stat.h>

#define PAGE 4096

struct buffer {
	int fd;
	struct perf_event_mmap_page *page;
	const u8 *data;
};

static struct pe_attr on(void)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);

	attr.disabled = 0;
	return attr;
}

static struct buffer map(long fd)
{
	struct buffer b = {.fd = (int)fd};

	NEED(fd >= 0);
	b.page = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	b.data = (const u8 *)b.page + PAGE;
	return b;
}

static u64 head(const struct buffer *b)
{
	return __atomic_load_n(&b->page->data_head, __ATOMIC_ACQUIRE);
}

/* The record of that kind with number @nr, from 0; NULL: there is none. */
static const struct perf_event_header *find(const struct buffer *b, u32 type, int nr)
{
	for (u64 at = 0; at < head(b);) {
		const struct perf_event_header *h = (const void *)(b->data + at);

		if (h->type == type && !nr--)
			return h;
		at += h->size;
	}
	return NULL;
}

/* The types of all records, a digit of 100 each, the first one highest. */
static long long types(const struct buffer *b)
{
	long long sum = 0;

	for (u64 at = 0; at < head(b);) {
		const struct perf_event_header *h = (const void *)(b->data + at);

		sum = sum * 100 + h->type;
		at += h->size;
	}
	return sum;
}

struct namespaces {
	struct perf_event_header header;
	u32 pid, tid;
	u64 nr;
	struct {
		u64 dev, ino;
	} link[7];
};

struct switched {
	struct perf_event_header header;
	u32 other_pid, other_tid;
	u32 pid, tid; /* the trailer's */
};

#define TURNS 200

/* Two threads of @cpu's that wake each other; their numbers. */
static void take_turns(u32 cpu, pid_t *one, pid_t *two)
{
	int there[2], back[2];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	NEED(!pipe(there) && !pipe(back));
	for (int first = 1; first >= 0; first--) {
		int in = first ? back[0] : there[0], out = first ? there[1] : back[1];
		pid_t pid = fork();
		char c = 0;

		NEED(pid >= 0);
		*(first ? one : two) = pid;
		if (pid)
			continue;
		NEED(!sched_setaffinity(0, sizeof(set), &set));
		for (int i = 0; i < TURNS; i++) {
			if (first)
				NEED(write(out, &c, 1) == 1);
			NEED(read(in, &c, 1) == 1);
			if (!first)
				NEED(write(out, &c, 1) == 1);
		}
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		int status;

		NEED(waitpid(i ? *two : *one, &status, 0) > 0 && status == 0);
	}
}

/* How many records say that @tid has left the CPU to @other, or taken it from @other. */
static int exchanges(const struct buffer *b, pid_t tid, bool out, pid_t other)
{
	const struct switched *r;
	int n = 0;

	for (int i = 0; (r = (const void *)find(b, PERF_RECORD_SWITCH_CPU_WIDE, i)); i++)
		n += r->tid == (u32)tid &&
		     !(r->header.misc & PERF_RECORD_MISC_SWITCH_OUT) == !out &&
		     r->other_tid == (u32)other && r->other_pid == (u32)other;
	return n;
}

/* A whole CPU's switches say with whom. */
CONFORM(switches)
{
	struct pe_attr attr = on();
	struct buffer b = {0};
	pid_t one, two;
	int itself;

	attr.context_switch = 1;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_TID;
	b.fd = (int)ev_open(&attr, -1, 0, -1, 0);
	if (b.fd < 0) {
		skip_row("REC-14", "the switches of a CPU", "no right to ask for them");
		return;
	}
	b.page = mmap(NULL, 513 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0);
	NEED(b.page != MAP_FAILED);
	b.data = (const u8 *)b.page + PAGE;
	take_turns(0, &one, &two);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	CHECK_ROW("REC-14", exchanges(&b, one, true, two) > 0, "one leaves the CPU to two", "%d",
		  exchanges(&b, one, true, two));
	CHECK_ROW("REC-14", exchanges(&b, two, false, one) > 0, "two has it from one", "%d",
		  exchanges(&b, two, false, one));
	CHECK_ROW("REC-14", exchanges(&b, two, true, one) > 0, "and leaves it to one", "%d",
		  exchanges(&b, two, true, one));
	itself = exchanges(&b, one, true, one) + exchanges(&b, two, true, two);
	check_val("REC-14", "nobody leaves it to himself", itself, 0);
}

static const char *const kinds[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};

/* Whether @n says what /proc says of @pid now. */
static bool agrees(const struct namespaces *n, pid_t pid)
{
	for (int i = 0; i < 7; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
		if (stat(path, &st) || n->link[i].ino != st.st_ino || n->link[i].dev != st.st_dev)
			return false;
	}
	return true;
}

static bool may_ask_for_namespaces(const char *text)
{
	struct pe_attr attr = on();

	attr.namespaces = 1;
	if (!try_self(attr))
		return true;
	skip_row("REC-15", text, "no right to ask for namespaces");
	return false;
}

/* [ATTR-34] */
CONFORM(namespaces)
{
	struct pe_attr attr = on();
	const struct namespaces *n;
	struct buffer b;
	int go[2], begun[2];
	pid_t pid;
	bool same;
	char c;

	if (!may_ask_for_namespaces("a fork"))
		return;
	attr.namespaces = 1;
	attr.task = 1;
	b = map(ev_self(attr));
	NEED(pipe(go) == 0 && pipe(begun) == 0);
	pid = fork();
	if (!pid) {
		close(go[1]);
		_exit(write(begun[1], "", 1) != 1 || read(go[0], &c, 1) != 1);
	}
	NEED(pid > 0 && read(begun[0], &c, 1) == 1);
	same = false;
	n = (const void *)find(&b, PERF_RECORD_NAMESPACES, 0);
	if (n)
		same = agrees(n, pid);
	check_val("REC-15", "a fork is told, then the namespaces", types(&b), 716);
	NEED(n);
	check_val("REC-15", "its size", n->header.size, 136);
	check_val("REC-15", "its misc", n->header.misc, 0);
	check_val("REC-15", "its pid and tid are the child's",
		  n->pid == (u32)pid && n->tid == (u32)pid, 1);
	check_val("REC-15", "how many there are", (long long)n->nr, 7);
	check_val("REC-15", "they are those of /proc", same, 1);
	NEED(write(go[1], "", 1) == 1 && waitpid(pid, NULL, 0) == pid);
}

/* [ATTR-34] */
CONFORM(unshare)
{
	struct pe_attr attr = on();
	const struct namespaces *n;
	struct buffer b;
	int uts;

	if (!may_ask_for_namespaces("unshare and setns"))
		return;
	attr.namespaces = 1;
	b = map(ev_self(attr));
	uts = open("/proc/self/ns/uts", O_RDONLY);
	NEED(uts >= 0);
	check_val("REC-15", "nothing yet", (long long)head(&b), 0);
	NEED(unshare(CLONE_FS) == 0);
	check_val("REC-15", "whatever is unshared they are told", types(&b), 16);
	check_err("REC-15", "unshare of what there is not", unshare(1) ? -errno : 0, EINVAL);
	check_val("REC-15", "what fails is not told", types(&b), 16);
	if (unshare(CLONE_NEWUTS)) {
		skip_row("REC-15", "who has other ones is told", "no right to have them");
		return;
	}
	n = (const void *)find(&b, PERF_RECORD_NAMESPACES, 1);
	NEED(n);
	check_val("REC-15", "other namespaces are told", agrees(n, getpid()), 1);
	check_val("REC-15", "of the task itself", n->pid == (u32)getpid() && n->tid == n->pid, 1);
	if (setns(uts, CLONE_NEWUTS)) {
		skip_row("REC-15", "who goes back is told", "no right to go back");
		return;
	}
	n = (const void *)find(&b, PERF_RECORD_NAMESPACES, 2);
	check_val("REC-15", "who goes back is told", n && agrees(n, getpid()), 1);
}

CONFORM_EXEC(nothing)
{
	(void)arg;
	return 0;
}

/* [ATTR-34] */
CONFORM(exec)
{
	struct pe_attr attr = on();
	struct buffer b;
	int go[2];
	pid_t pid;
	char c;

	if (!may_ask_for_namespaces("an exec"))
		return;
	NEED(pipe(go) == 0);
	pid = fork();
	if (!pid) {
		close(go[1]);
		NEED(read(go[0], &c, 1) == 1);
		exec_self("nothing", 0);
	}
	attr.namespaces = attr.comm = 1;
	b = map(ev_open(&attr, pid, -1, -1, 0));
	NEED(write(go[1], "", 1) == 1 && waitpid(pid, NULL, 0) == pid);
	check_val("REC-15", "an exec has the same namespaces, and does not tell them", types(&b),
		  304);
}

struct mmap2 {
	struct perf_event_header header;
	u32 pid, tid;
	u64 addr, len, offset;
	u8 id_size, zeros[3], id[20];
	u32 prot, flags;
	char name[];
};

/* The build id of this program, as its notes have it. */
static int own_id(struct dl_phdr_info *info, size_t size, void *to)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const char *at = (const char *)info->dlpi_addr + ph->p_vaddr;

		for (const char *end = at + ph->p_memsz; ph->p_type == PT_NOTE && at < end;) {
			const ElfW(Nhdr) *n = (const void *)at;

			if (n->n_type == NT_GNU_BUILD_ID && n->n_descsz == 20) {
				memcpy(to, at + sizeof(*n) + 4, 20);
				return 1;
			}
			at += sizeof(*n) + ((n->n_namesz + 3) & ~3u) + ((n->n_descsz + 3) & ~3u);
		}
	}
	return -1;
}

/* [ATTR-40] */
CONFORM(build_id)
{
	static const u8 none[3];
	struct pe_attr attr = on();
	const struct mmap2 *m;
	struct buffer b;
	u8 id[20];
	int self, other;

	NEED(dl_iterate_phdr(own_id, id) == 1);
	self = open("/proc/self/exe", O_RDONLY);
	other = open("/etc/passwd", O_RDONLY);
	NEED(self >= 0 && other >= 0);
	attr.mmap = attr.mmap2 = attr.build_id = 1;
	b = map(ev_self(attr));
	NEED(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, PAGE) != MAP_FAILED);
	NEED(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, other, 0) != MAP_FAILED);
	NEED(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	     MAP_FAILED);
	m = (const void *)find(&b, PERF_RECORD_MMAP2, 0);
	NEED(m);
	check_val("MISC-06", "the misc of a mapping with a build id", m->header.misc,
		  PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
	check_val("REC-09", "its size stands in front", m->id_size, 20);
	check_val("REC-09", "then come zeros", memcmp(m->zeros, none, 3), 0);
	check_val("REC-09", "it is what the notes say", memcmp(m->id, id, 20), 0);
	check_val("REC-09", "protection and flags stand behind",
		  m->prot == (PROT_READ | PROT_EXEC) && m->flags == MAP_PRIVATE, 1);
	check_val("REC-09", "then the name", m->name[0], '/');
	m = (const void *)find(&b, PERF_RECORD_MMAP2, 1);
	check_val("MISC-06", "what is no program has none", m ? m->header.misc : -1,
		  PERF_RECORD_MISC_USER);
	m = (const void *)find(&b, PERF_RECORD_MMAP2, 2);
	check_val("MISC-06", "what is no file has none", m ? m->header.misc : -1,
		  PERF_RECORD_MISC_USER);
}

static char hierarchy[300];

static bool enter(const char *dir)
{
	char path[500];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return done;
}

struct cgroup_record {
	struct perf_event_header header;
	u64 id;
	char path[];
};

struct cgroup_sample {
	struct perf_event_header header;
	u64 cgroup;
};

static u64 sampled_cgroup(const struct buffer *b, int nr)
{
	const struct cgroup_sample *s = (const void *)find(b, PERF_RECORD_SAMPLE, nr);

	return s ? s->cgroup : 0;
}

/* [ATTR-38] */
CONFORM(cgroup)
{
	struct pe_attr attr = on(), faults = sw_attr(PERF_COUNT_SW_PAGE_FAULTS);
	const struct cgroup_record *r;
	char top[400], end[40];
	struct buffer b, samples;
	struct stat root, st;
	bool in;

	snprintf(end, sizeof(end), "/sideband-%d", (int)getpid());
	if (!cgroup_hierarchy(hierarchy, sizeof(hierarchy)) || !capable())
		goto skip;
	snprintf(top, sizeof(top), "%s%s", hierarchy, end);
	attr.cgroup = 1;
	b = map(ev_self(attr));
	NEED(mkdir("/tmp/sideband-no-cgroup", 0700) == 0 && rmdir("/tmp/sideband-no-cgroup") == 0);
	if (mkdir(top, 0755))
		goto skip;
	faults.disabled = 1;
	faults.sample_period = 1;
	faults.sample_type = PERF_SAMPLE_CGROUP;
	samples = map(ev_self(faults));
	touch_pages(4);
	ev_ioctl(samples.fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(4);
	ev_ioctl(samples.fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(stat(hierarchy, &root) == 0 && stat(top, &st) == 0);
	in = enter(top);
	ev_ioctl(samples.fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(4);
	ev_ioctl(samples.fd, PERF_EVENT_IOC_DISABLE, 0);
	NEED(enter(hierarchy) && rmdir(top) == 0);
	check_val("REC-18", "a cgroup that is made is told, a directory is not", types(&b), 19);
	r = (const void *)find(&b, PERF_RECORD_CGROUP, 0);
	NEED(r && in);
	check_val("REC-18", "its misc", r->header.misc, 0);
	check_val("REC-18", "its id is the inode", r->id == st.st_ino, 1);
	check_val("REC-18", "its path ends with the name",
		  strlen(r->path) >= strlen(end) &&
			  !strcmp(r->path + strlen(r->path) - strlen(end), end),
		  1);
	check_val("SAMP-21", "a sample says the cgroup that the task is in",
		  sampled_cgroup(&samples, 0) == root.st_ino, 1);
	check_val("SAMP-21", "and where it is after it has moved",
		  sampled_cgroup(&samples, 4) == st.st_ino, 1);
	return;
skip:
	skip_row("REC-18", "a cgroup that is made", "none can be made here");
}

/* A thread that leaves its CPU to one of another cgroup, and what it does is sampled [SW-10]. */
CONFORM(cgroup_switches)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_CGROUP_SWITCHES);
	char dir[400], end[40], c = 0;
	int there[2], back[2], status;
	u64 count, sampled = 0;
	cpu_set_t set, was;
	struct buffer b;
	pid_t child;

	attr.exclude_kernel = 0;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	snprintf(end, sizeof(end), "/switches-%d", (int)getpid());
	if (!cgroup_hierarchy(hierarchy, sizeof(hierarchy)) || !capable() || try_self(attr))
		goto skip;
	snprintf(dir, sizeof(dir), "%s%s", hierarchy, end);
	if (mkdir(dir, 0755))
		goto skip;
	b = map(ev_self(attr));
	NEED(!pipe(there) && !pipe(back));
	NEED(!sched_getaffinity(0, sizeof(was), &was));
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	NEED(!sched_setaffinity(0, sizeof(set), &set));
	child = fork();
	if (!child) {
		if (!enter(dir))
			_exit(7);
		for (int i = 0; i < TURNS; i++)
			if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
				_exit(8);
		_exit(0);
	}
	NEED(child > 0);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < TURNS; i++)
		NEED(write(there[1], &c, 1) == 1 && read(back[0], &c, 1) == 1);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(waitpid(child, &status, 0) == child && !sched_setaffinity(0, sizeof(was), &was));
	check_val("SW-10", "the child has been in the other cgroup", status, 0);
	for (int i = 0; find(&b, PERF_RECORD_SAMPLE, i); i++)
		sampled++;
	count = ev_count(b.fd);
	CHECK_ROW("SW-10", sampled > 0 && sampled <= count, "switches of cgroups are sampled",
		  "%lu of %lu", (unsigned long)sampled, (unsigned long)count);
	rmdir(dir);
	return;
skip:
	skip_row("SW-10", "the child has been in the other cgroup",
		 "no cgroups for us, or no event");
	skip_row("SW-10", "switches of cgroups are sampled", "no cgroups for us, or no event");
}

struct ksymbol {
	struct perf_event_header header;
	u64 addr;
	u32 len;
	u16 type, flags;
	char name[];
};

struct bpf_record {
	struct perf_event_header header;
	u16 type, flags;
	u32 id;
	u8 tag[8];
};

/* [ATTR-35, ATTR-36] */
CONFORM(bpf)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct pe_attr attr = on();
	struct buffer b, symbols;
	const struct ksymbol *k;
	const struct bpf_record *r;
	union bpf_attr prog;
	int fd;

	attr.ksymbol = 1;
	symbols = map(ev_self(attr));
	attr.bpf_event = 1;
	b = map(ev_self(attr));
	memset(&prog, 0, sizeof(prog));
	prog.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	prog.insns = (uintptr_t)code;
	prog.insn_cnt = 2;
	prog.license = (uintptr_t) "GPL";
	memcpy(prog.prog_name, "sideband", 9);
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &prog, sizeof(prog));
	if (fd < 0) {
		skip_row("REC-16", "a BPF program", "none can be loaded here");
		return;
	}
	k = (const void *)find(&b, PERF_RECORD_KSYMBOL, 0);
	r = (const void *)find(&b, PERF_RECORD_BPF_EVENT, 0);
	check_val("REC-16", "a program that is loaded is told twice", types(&b), 1718);
	check_val("REC-16", "once to whom its symbol is enough", types(&symbols), 17);
	NEED(k && r);
	check_val("REC-16", "its misc", k->header.misc, 0);
	check_val("REC-16", "it is in the kernel, and has a length", k->addr >> 63 && k->len, 1);
	check_val("REC-16", "it is BPF's", k->type, PERF_RECORD_KSYMBOL_TYPE_BPF);
	check_val("REC-16", "it comes", k->flags, 0);
	check_val("REC-16", "its name has its own in it", strstr(k->name, "_sideband") != NULL, 1);
	check_val("REC-17", "it is loaded", r->type, PERF_BPF_EVENT_PROG_LOAD);
	check_val("REC-17", "it has an id", r->id != 0, 1);
	close(fd);
}
