/*
 * How many CPUs a deterministic run has (--cpus), which of them a thread may run on, and the files
 * that say so. Nothing of it is the machine's: a mask that a program sets is kept here, and its
 * threads run where they did.
 *
 * Without --cpus the machine answers, and whoever asks is noted.
 */
#include "rt/deterministic/deterministic-run.h"

#include "rt/arch.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/region.h"
#include "rt/proc/shown-text.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "rt/task/process.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/openat2.h>

#define CPU_FOLDER  "/sys/devices/system/cpu"
#define NODE_FOLDER "/sys/devices/system/node"
#define FILE_MAX    (4ul << 20)

u64 deterministic_cpus(void)
{
	u32 n = run_config()->cpus;

	return n >= 64 ? ~0ull : BIT(n) - 1;
}

u32 deterministic_cpu(const struct thread *t)
{
	return t->deterministic.affinity ? (u32)__builtin_ctzll(t->deterministic.affinity) : 0;
}

/* The thread @tid of this address space, with the list of threads locked; NULL: there is none. */
static struct thread *find(struct thread *first, u32 tid)
{
	while (first && first->tid != tid)
		first = first->all_next;
	return first;
}

/*
 * What thread @pid may run on, 0 being the caller, goes to *@mask; *@set, unless @set is NULL, is
 * what it is from now on. Of other processes, all CPUs are said, and nothing is kept.
 */
static long affinity(struct thread *t, u32 pid, u64 *mask, const u64 *set)
{
	u64 machine[1024 / 8];
	struct thread *of = t;
	bool listed = pid && pid != t->tid;
	long ret;

	if (listed) {
		ret = raw_call3(__NR_sched_getaffinity, (long)pid, sizeof(machine), (long)machine);
		if (ret < 0 && ret != -EINVAL)
			return ret;
		of = find(threads_lock(t), pid);
	}
	if (of && set)
		of->deterministic.affinity = *set;
	*mask = of ? of->deterministic.affinity : deterministic_cpus();
	if (listed)
		threads_unlock(t);
	return 0;
}

long deterministic_getaffinity(struct thread *t, u64 nr)
{
	u32 len = (u32)guest_arg(t, 1);
	u64 mask;
	long ret;

	if (!deterministic_cpus()) {
		nondet_used(NONDET_CPUS);
		return syscall_answer(t, nr);
	}
	if (!len || len % sizeof(mask))
		return -EINVAL;
	ret = affinity(t, (u32)guest_arg(t, 0), &mask, NULL);
	if (ret)
		return ret;
	return guest_write(t, guest_arg(t, 2), &mask, sizeof(mask)) ? -EFAULT : (long)sizeof(mask);
}

long deterministic_setaffinity(struct thread *t, u64 nr)
{
	u64 mask = 0, now;

	if (!deterministic_cpus()) {
		nondet_used(NONDET_CPUS);
		return syscall_answer(t, nr);
	}
	if (guest_read(&mask, guest_arg(t, 2), min_u64((u32)guest_arg(t, 1), sizeof(mask))))
		return -EFAULT;
	mask &= deterministic_cpus();
	return mask ? affinity(t, (u32)guest_arg(t, 0), &now, &mask) : -EINVAL;
}

long deterministic_getcpu(struct thread *t, u64 nr)
{
	const u32 answers[2] = {deterministic_cpu(t), 0};

	(void)nr;
	for (u32 i = 0; i < 2; i++)
		if (guest_arg(t, i) &&
		    guest_write(t, guest_arg(t, i), &answers[i], sizeof(answers[i])))
			return -EFAULT;
	return 0;
}

bool deterministic_status(const struct thread *t, const char *line, char *text, size_t size)
{
	u64 mask = t->deterministic.affinity;
	u32 cpus = run_config()->cpus;
	size_t n;

	if (!mask || !str_starts(line, "Cpus_allowed"))
		return false;
	if (str_starts(line, "Cpus_allowed:")) {
		/* As many digits as there are CPUs for, in groups of 32. */
		u32 high = cpus > 32 ? (cpus - 32 + 3) / 4 : 0, low = high ? 8 : (cpus + 3) / 4;

		n = fmt(text, size, "Cpus_allowed:\t");
		for (u32 i = high + low; i-- && n < size;)
			n += fmt(text + n, size - n, "%x%s", (u32)(mask >> 4 * i) & 15,
				 i == 8 ? "," : "");
		return true;
	}
	n = fmt(text, size, "Cpus_allowed_list:\t");
	for (u32 from = 0, to; from < cpus && n < size; from = to + 1) {
		to = from;
		if (!(mask >> from & 1))
			continue;
		while (to + 1 < cpus && mask >> (to + 1) & 1)
			to++;
		n += fmt(text + n, size - n, "%s%u", mask & (BIT(from) - 1) ? "," : "", from);
		if (to > from && n < size)
			n += fmt(text + n, size - n, "-%u", to);
	}
	return true;
}

/* What of /proc/cpuinfo is different for each CPU, or says how many there are. */
static bool cpuinfo_line(char *line, const char *end, u32 cpu, u32 cpus, char *out, size_t size)
{
	static const char *const own[] = {"processor\t", "core id\t", "apicid\t",
					  "initial apicid\t"};
	static const char *const total[] = {"siblings\t", "cpu cores\t"};
	char *colon = str_chr(line, ':');

	if (!colon || colon >= end)
		return false;
	for (u32 i = 0; i < ARRAY_SIZE(own) + ARRAY_SIZE(total); i++) {
		bool is_own = i < ARRAY_SIZE(own);

		if (!str_starts(line, is_own ? own[i] : total[i - ARRAY_SIZE(own)]))
			continue;
		*colon = '\0';
		fmt(out, size, "%s: %u\n", line, is_own ? cpu : cpus);
		*colon = ':';
		return true;
	}
	return false;
}

/* The machine's first CPU, as often as there are CPUs; or one that is the same everywhere. */
static void put_cpuinfo(struct shown_text *out, char *text, u32 cpus)
{
	char line[256], whole[1024];
	size_t n;

	for (u32 cpu = 0; cpu < cpus; cpu++) {
		n = deterministic_cpuinfo(whole, sizeof(whole), cpu, cpus);
		shown_put(out, whole, n);
		if (n)
			continue;
		for (char *at = text, *end; (end = str_chr(at, '\n')); at = end + 1) {
			if (cpuinfo_line(at, end, cpu, cpus, line, sizeof(line)))
				shown_put(out, line, str_len(line));
			else
				shown_put(out, at, (size_t)(end + 1 - at));
			if (end == at)
				break;
		}
	}
}

/* The sum's line, one for each CPU, and the rest. The machine's last is repeated. */
static void put_stat(struct shown_text *out, char *text, u32 cpus)
{
	char *at = text, *end = str_chr(text, '\n'), *numbers = NULL;
	char name[16];
	u32 cpu = 0;

	if (!end)
		return;
	shown_put(out, at, (size_t)(end + 1 - at));
	at = end + 1;
	while (cpu < cpus) {
		if (str_starts(at, "cpu") && (end = str_chr(at, '\n')) &&
		    (numbers = str_chr(at, ' ')))
			at = end + 1;
		if (!numbers)
			break;
		shown_put(out, name, fmt(name, sizeof(name), "cpu%u", cpu++));
		shown_put(out, numbers, (size_t)(str_chr(numbers, '\n') + 1 - numbers));
	}
	while (str_starts(at, "cpu") && (end = str_chr(at, '\n')))
		at = end + 1;
	shown_put(out, at, str_len(at));
}

/* A file that says how many CPUs there are. */
struct cpu_file {
	const char *path;
	void (*put)(struct shown_text *out, char *text, u32 cpus);
};

static void put_range(struct shown_text *out, char *text, u32 cpus)
{
	char line[16];

	(void)text;
	shown_put(out, line,
		  cpus > 1 ? fmt(line, sizeof(line), "0-%u\n", cpus - 1)
			   : fmt(line, sizeof(line), "0\n"));
}

static const struct cpu_file files[] = {
	{CPU_FOLDER "/online", put_range},  {CPU_FOLDER "/possible", put_range},
	{CPU_FOLDER "/present", put_range}, {"/proc/cpuinfo", put_cpuinfo},
	{"/proc/stat", put_stat},
};

static const struct cpu_file *cpu_file_find(const char *path)
{
	for (u32 i = 0; i < ARRAY_SIZE(files); i++)
		if (str_eq(path, files[i].path))
			return &files[i];
	return NULL;
}

/* How many the machine has, by its own /proc/cpuinfo. */
static u32 count_cpus(const char *text)
{
	u32 n = 0;

	for (const char *end; (end = str_chr(text, '\n')); text = end + 1)
		n += str_starts(text, "processor\t");
	return n;
}

static long show(const struct cpu_file *f, u64 flags)
{
	u32 cpus = run_config()->cpus;
	char *text = region_map(FILE_MAX);
	struct shown_text out = {0};
	long n;

	if (!text)
		return -ENOMEM;
	n = fd_read_text(f->path, text, FILE_MAX);
	if (n >= 0) {
		f->put(&out, text, cpus ? cpus : count_cpus(text));
		n = shown_open(&out, "cpus", flags & O_CLOEXEC);
	}
	region_unmap(text, FILE_MAX);
	return n;
}

static bool is_below(const char *path, const char *folder)
{
	size_t len = str_len(folder);

	return str_starts(path, folder) && (!path[len] || path[len] == '/');
}

/* A file that says what kind of CPU there is, in a run that is shown a fixed one. */
static bool is_fixed_cpu(const struct cpu_file *f)
{
	char none[1];

	return f && f->put == put_cpuinfo && deterministic_cpuinfo(none, sizeof(none), 0, 1);
}

bool deterministic_cpu_file_is_fixed(const char *path)
{
	return is_fixed_cpu(cpu_file_find(path));
}

bool deterministic_cpu_file(struct thread *t, u64 nr, const char *path, long *fd)
{
	u32 n = syscall_row(nr)->path;
	u64 flags = guest_arg(t, n + 1);
	const struct cpu_file *f;

	f = cpu_file_find(path);
	/* The folder has a folder for each CPU, with its caches and neighbours. */
	if (!f && (is_below(path, CPU_FOLDER) || is_below(path, NODE_FOLDER)))
		nondet_used(NONDET_CPUS);
	if (!f || (nr == __NR_openat2 && guest_read(&flags, flags, sizeof(flags))))
		return false;
	if (!deterministic_cpus()) {
		nondet_used(NONDET_CPUS);
		if (!is_fixed_cpu(f))
			return false;
	}
	if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_PATH | O_DIRECTORY))
		return false;
	*fd = show(f, flags);
	return true;
}
