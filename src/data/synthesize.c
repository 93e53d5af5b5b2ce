#include "data/synthesize.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/check.h"
#include "record/coding.h"

#define GIGABYTE (1ull << 30)

static int put(const struct data_synthesis *s, const struct ap_record *rec)
{
	u64 bytes[1024];
	int n = ap__record_encode(rec, s->layout, bytes, sizeof(bytes));

	return n > 0 ? s->put(bytes, (size_t)n, s->data) : 0;
}

/* Where the kernel's text begins; 0: it is not told (kernel.kptr_restrict). */
static u64 kernel_text(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long addr = 0, at;
	char name[64];

	/* It stands among the first, which are in the order of addresses. */
	for (int i = 0; f && i < 1000 && fscanf(f, "%llx %*c %63s%*[^\n]", &at, name) == 2; i++)
		if (!strcmp(name, "_text") || (!strcmp(name, "_stext") && !addr))
			addr = at;
	if (f)
		fclose(f);
	return addr;
}

static int put_kernel_map(const struct data_synthesis *s, const char *name, u64 addr, u64 len,
			  u64 pgoff)
{
	struct ap_record rec = {
		.type = PERF_RECORD_MMAP,
		.misc = PERF_RECORD_MISC_KERNEL,
		.mmap = {.pid = UINT32_MAX,
			 .addr = addr,
			 .len = len,
			 .pgoff = pgoff,
			 .filename = name},
	};

	return put(s, &rec);
}

int data_synthesize_kernel(const struct data_synthesis *s)
{
	u64 text = kernel_text();
	unsigned long long size, addr;
	char line[1024], name[64], path[80];
	FILE *f;
	int r;

	if (!text)
		return 0;
	/* Where it ends is told much later in that file; nothing else is in its gigabyte. */
	r = put_kernel_map(s, "[kernel.kallsyms]_text", text,
			   ALIGN_DOWN(text, GIGABYTE) + GIGABYTE - text, text);
	f = fopen("/proc/modules", "re");
	while (!r && f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &size, &addr) != 3 || !addr)
			continue;
		snprintf(path, sizeof(path), "[%s]", name);
		r = put_kernel_map(s, path, addr, size, 0);
	}
	if (f)
		fclose(f);
	return r;
}

/* Name, parent and process of a thread, from its stat and status. */
struct data_thread {
	u32 pid, tid, parent;
	char comm[64];
};

static bool look_at_thread(u32 pid, u32 tid, struct data_thread *t)
{
	char path[64], line[512], *open, *close;
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	f = fopen(path, "re");
	ok = f && fgets(line, sizeof(line), f);
	if (f)
		fclose(f);
	/* The name, in parentheses, may hold anything. */
	open = ok ? strchr(line, '(') : NULL;
	close = ok ? strrchr(line, ')') : NULL;
	if (!open || !close || sscanf(close, ") %*c %u", &t->parent) != 1)
		return false;
	*close = 0;
	snprintf(t->comm, sizeof(t->comm), "%s", open + 1);
	t->pid = pid;
	t->tid = tid;
	return true;
}

static int put_thread(const struct data_synthesis *s, const struct data_thread *t)
{
	u32 parent = t->tid == t->pid ? t->parent : t->pid;
	struct ap_record fork = {
		.type = PERF_RECORD_FORK,
		.task = {.pid = t->pid, .ppid = parent, .tid = t->tid, .ptid = parent},
	};
	struct ap_record comm = {
		.type = PERF_RECORD_COMM,
		.comm = {.pid = t->pid, .tid = t->tid, .comm = t->comm},
	};
	int r = put(s, &fork);

	return r ? r : put(s, &comm);
}

/* One line of /proc/PID/maps. */
static int put_map(const struct data_synthesis *s, u32 pid, char *line)
{
	unsigned long long from, to, pgoff, ino;
	unsigned int maj, min;
	int name_at = 0;
	char perms[8];
	struct ap_record rec = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};
	const char *name;

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &from, &to, perms, &pgoff, &maj, &min,
		   &ino, &name_at) < 7)
		return 0;
	if (perms[2] != 'x') {
		if (!s->data_maps || perms[0] != 'r')
			return 0;
		rec.misc |= PERF_RECORD_MISC_MMAP_DATA;
	}
	line[strcspn(line, "\n")] = 0;
	name = name_at && line[name_at] ? line + name_at : "//anon";
	rec.mmap = (struct ap_record_mmap){
		.pid = pid,
		.tid = pid,
		.addr = from,
		.len = to - from,
		.pgoff = pgoff,
		.filename = name,
		.maj = maj,
		.min = min,
		.ino = ino,
		.prot = (perms[0] == 'r' ? PROT_READ : 0u) | (perms[1] == 'w' ? PROT_WRITE : 0u) |
			(perms[2] == 'x' ? PROT_EXEC : 0u),
		.flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
	};
	return put(s, &rec);
}

static int put_maps(const struct data_synthesis *s, u32 pid)
{
	char path[64], line[4400];
	FILE *f;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	while (!r && f && fgets(line, sizeof(line), f))
		r = put_map(s, pid, line);
	if (f)
		fclose(f);
	return r;
}

/* The process of a thread; itself if nothing else is known. */
static u32 process_of(u32 tid)
{
	char path[64], line[256];
	u32 pid = tid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %u", &pid) == 1)
			break;
	if (f)
		fclose(f);
	return pid;
}

static int put_process(const struct data_synthesis *s, u32 pid)
{
	struct data_thread t;
	struct dirent *e;
	char path[64];
	DIR *d;
	int r;

	if (!look_at_thread(pid, pid, &t))
		return 0;
	r = put_thread(s, &t);
	if (!r)
		r = put_maps(s, pid);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = opendir(path);
	while (!r && d && (e = readdir(d))) {
		u32 tid = (u32)strtoul(e->d_name, NULL, 10);

		if (tid && tid != pid && look_at_thread(pid, tid, &t))
			r = put_thread(s, &t);
	}
	if (d)
		closedir(d);
	return r;
}

int data_synthesize_process(const struct data_synthesis *s, pid_t pid)
{
	return put_process(s, process_of((u32)pid));
}

int data_synthesize_all(const struct data_synthesis *s)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int r = 0;

	while (!r && d && (e = readdir(d))) {
		u32 pid = (u32)strtoul(e->d_name, NULL, 10);

		if (pid)
			r = put_process(s, pid);
	}
	if (d)
		closedir(d);
	return r;
}

int data_synthesize_lost(const struct data_synthesis *s, u64 n)
{
	struct ap_record rec = {.type = PERF_RECORD_LOST_SAMPLES, .lost = {.lost = n}};

	return put(s, &rec);
}

int data_synthesize_sample(const struct data_synthesis *s, const struct ap_sample_id *id,
			   const struct data_sample *what)
{
	u64 chain[DATA_CALLERS_MAX + 2] = {(u64)PERF_CONTEXT_USER, what->ip};
	struct ap_record rec = {
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER,
		.id = *id,
		.sample = {.ip = what->ip,
			   .period = what->period,
			   .addr = what->addr,
			   .callchain = {.ips = chain, .nr = what->nr_callers + 2},
			   .regs_user = {.abi = PERF_SAMPLE_REGS_ABI_64,
					 .mask = s->layout->sample_regs_user,
					 .values = &what->stack}},
	};

	CHECK(what->nr_callers <= DATA_CALLERS_MAX);
	if (what->nr_callers)
		memcpy(chain + 2, what->callers, what->nr_callers * sizeof(u64));
	return put(s, &rec);
}
