/*
 * Paths are looked at only when they begin with "/proc/", or are relative or written unusually and
 * have a last component that one of these files has; everything else costs one comparison.
 */
#include "rt/proc/proc-files.h"

#include "rt/deterministic/deterministic-run.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/maps.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/proc/memory-file.h"
#include "rt/proc/shown-lines.h"
#include "rt/proc/shown-text.h"
#include "rt/sandbox/seccomp.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall-table.h"
#include "rt/syscall/syscall.h"
#include "rt/task/meter-page.h"
#include "rt/task/other-guest.h"
#include "sys/fmt.h"
#include "sys/string.h"

#include <linux/inotify.h>
#include <linux/openat2.h>

enum proc_kind {
	PROC_NONE,
	PROC_EXE,
	PROC_MAPS,
	PROC_SMAPS,
	PROC_STATUS,
	PROC_LIMITS,
	PROC_STATM,
	PROC_MEM,
	PROC_HIDDEN, /* one of our descriptors, below fd or fdinfo: not there */
};

/* A file below /proc/PID or /proc/PID/task/TID. */
struct proc_file {
	enum proc_kind kind;
	u32 pid;    /* for system calls; 0: who cannot be named so is no guest that we could see */
	u32 number; /* in /proc, which may be that of a namespace around ours */
};

/*
 * Whether a path that begins so may lead below /proc. Programs write absolute ones in one way, but
 * for slashes and dots.
 */
static bool may_lead(const char *path)
{
	return path[0] != '/' || str_starts(path, "/proc/") || str_starts(path, "//") ||
	       str_starts(path, "/./") || str_starts(path, "/../");
}

/* What a file of that name is in such a directory; PROC_NONE: nothing that differs for a guest. */
static enum proc_kind kind_of_name(const char *name)
{
	static const struct {
		const char *name;
		enum proc_kind kind;
	} names[] = {
		{"exe", PROC_EXE},       {"maps", PROC_MAPS},     {"smaps", PROC_SMAPS},
		{"status", PROC_STATUS}, {"limits", PROC_LIMITS}, {"statm", PROC_STATM},
		{"mem", PROC_MEM},
	};

	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, names[i].name))
			return names[i].kind;
	return PROC_NONE;
}

/* Takes "/proc/self/exe" and the like apart. */
static bool parse(struct thread *t, const char *path, struct proc_file *s)
{
	u64 pid;
	int n;

	if (!str_starts(path, "/proc/"))
		return false;
	path += 6;
	while (*path == '/')
		path++;
	s->pid = t->proc->pid;
	s->number = 0;
	if (str_starts(path, "self/")) {
		path += 5;
	} else if (str_starts(path, "thread-self/")) {
		path += 12;
	} else {
		n = str_u64(path, 10, &pid);
		if (!n || path[n] != '/')
			return false;
		s->number = (u32)pid;
		path += n + 1;
	}
	while (*path == '/')
		path++;
	if (str_starts(path, "task/")) {
		n = str_u64(path + 5, 10, &pid);
		if (!n || path[5 + n] != '/')
			return false;
		path += 5 + n + 1;
	}
	if (str_starts(path, "fd/") || str_starts(path, "fdinfo/")) {
		path += path[2] == '/' ? 3 : 7;
		n = str_u64(path, 10, &pid);
		if (!n || (path[n] && path[n] != '/') || !fd_is_own((s64)pid))
			return false;
		s->kind = PROC_HIDDEN;
	} else {
		s->kind = kind_of_name(path);
	}
	if (s->kind != PROC_NONE && s->number)
		s->pid = pid_of_number(t, s->number);
	return s->kind == PROC_HIDDEN ? s->pid == t->proc->pid : s->kind != PROC_NONE;
}

/* Makes @path, whose last component one of these files has, that file's name below /proc. */
static bool name_in_proc(int dir, char *path)
{
	char full[CONTROL_PATH], *base = str_rchr(path, '/');
	long n = -1, fd;

	if (kind_of_name(base ? base + 1 : path) == PROC_NONE)
		return false;
	if (base) {
		/* Where "self/../self" and "/proc/self/root/proc/self" lead, the kernel knows. */
		*base = '\0';
		fd = fd_open(dir, base == path ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		*base = '/';
		if (fd >= 0) {
			n = fd_path((int)fd, full, sizeof(full));
			sys_close((int)fd);
		}
	} else if (dir == AT_FDCWD) {
		n = raw_call2(__NR_getcwd, (long)full, sizeof(full)) - 1;
	} else {
		n = fd_path(dir, full, sizeof(full));
	}
	if (n < 1)
		return false;
	full[n] = '\0';
	base = base ? base : path - 1;
	if (!str_starts(full, "/proc/") || (u64)n + str_len(base + 1) + 2 > sizeof(full))
		return false;
	full[n] = '/';
	str_put(full + n + 1, sizeof(full) - (size_t)n - 1, base + 1);
	return str_put(path, CONTROL_PATH, full) > 0;
}

/* Takes @path, relative to @dir, apart. It is changed. */
static bool resolve(struct thread *t, int dir, char *path, struct proc_file *s)
{
	char full[CONTROL_PATH];

	if (str_starts(path, "/dev/fd/")) {
		str_put(full, sizeof(full), path + 8);
		return fmt(path, CONTROL_PATH, "/proc/self/fd/%s", full) > 0 && parse(t, path, s);
	}
	if (!may_lead(path))
		return false;
	return parse(t, path, s) || (name_in_proc(dir, path) && parse(t, path, s));
}

/* Whether /proc's process @number executes our own file, as only a guest does. */
static bool is_guest(u32 number)
{
	struct statx a, b;
	char link[40];

	fmt(link, sizeof(link), "/proc/%u/exe", number);
	return !sys_statx(AT_FDCWD, link, 0, STATX_INO, &a) &&
	       !sys_statx(fd_get(FD_RT), "", AT_EMPTY_PATH, STATX_INO, &b) &&
	       a.stx_ino == b.stx_ino && a.stx_dev_minor == b.stx_dev_minor &&
	       a.stx_dev_major == b.stx_dev_major;
}

/*
 * The name of a file that process @number has mapped, as the kernel has it, if it is @claimed or,
 * seen from another root, ends so; in @out of CONTROL_PATH bytes.
 */
static bool is_mapped(u32 number, const char *claimed, char *out)
{
	size_t have = 0;
	char path[40], text[CONTROL_PATH + 128];
	bool found = false;
	long fd, n;

	fmt(path, sizeof(path), "/proc/%u/maps", number);
	fd = fd_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (!found && (n = sys_read((int)fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		for (; !found && (end = str_chr(line, '\n')); line = end + 1) {
			const char *name;

			*end = '\0';
			name = shown_mapped(line, claimed);
			found = name && str_put(out, CONTROL_PATH, name) > 0;
		}
		/*
		 * What is no whole line yet; one that is too long is of no file that we could name.
		 */
		have = have - (size_t)(line - text) < sizeof(text) - 1
			       ? have - (size_t)(line - text)
			       : 0;
		memmove(text, line, have);
	}
	sys_close((int)fd);
	return found;
}

#define CLAIMS_MOST 16u /* wrong ones, of which each takes to read all mappings of a process */

/*
 * What a page of the segment says of the program of process @pid, for where its memory cannot be
 * read. Every guest can write there, whoever it is by now.
 */
static bool claimed_by_page(const struct proc_file *s, char *out)
{
	struct counter_segment *segment = counter_segment();
	u32 used = __atomic_load_n(&segment->used, __ATOMIC_RELAXED), wrong = 0;
	char claimed[sizeof(((struct meter *)0)->exe)];

	for (u32 i = 0; i < used && i < SEGMENT_SLOTS; i++) {
		struct {
			u32 state, pid, tid;
		} who;

		if (sys_pread(fd_get(FD_SEGMENT), &who, sizeof(who),
			      segment_offset(i) + offsetof(struct meter, state)) != sizeof(who))
			return false;
		if (who.state != METER_RUNNING || who.pid != s->pid)
			continue;
		if (sys_pread(fd_get(FD_SEGMENT), claimed, sizeof(claimed),
			      segment_offset(i) + offsetof(struct meter, exe)) < 0)
			return false;
		claimed[sizeof(claimed) - 1] = '\0';
		if (claimed[0] != '/')
			continue;
		if (is_mapped(s->number, claimed, out))
			return true;
		if (++wrong == CLAIMS_MOST)
			return false;
	}
	return false;
}

/*
 * The path of the program of @s if that is a guest of this tree. It says so itself, and it is
 * believed of what the kernel says that the process has mapped, as it has its program.
 */
static bool exe_of(struct thread *t, const struct proc_file *s, char *out)
{
	char claimed[CONTROL_PATH];
	struct other_guest o;

	if (s->pid == t->proc->pid)
		return (fd_get(FD_EXE) >= 0 && fd_path(fd_get(FD_EXE), out, CONTROL_PATH) > 0) ||
		       str_put(out, CONTROL_PATH, t->proc->exe) > 0;
	if (!s->pid || !is_guest(s->number))
		return false;
	if (!other_guest_find(s->pid, &o) ||
	    !mm_read_foreign(s->pid, o.at->exe, claimed, sizeof(claimed)))
		return claimed_by_page(s, out);
	claimed[sizeof(claimed) - 1] = '\0';
	return claimed[0] == '/' && is_mapped(s->number, claimed, out);
}

/*
 * Likewise, what leads to the file itself. The path may not: in a container the root is another,
 * and what a container's runtime executes are copies without a name.
 */
static bool exe_file(struct thread *t, const struct proc_file *s, char *out)
{
	if (s->pid == t->proc->pid && fd_get(FD_EXE) >= 0)
		return fmt(out, CONTROL_PATH, "/proc/self/fd/%d", fd_get(FD_EXE)) > 0;
	return exe_of(t, s, out);
}

bool proc_exe_path(struct thread *t, const char *path, char *out)
{
	struct proc_file s = {0};
	char full[CONTROL_PATH];

	if (!may_lead(path))
		return false;
	str_put(full, sizeof(full), path);
	return resolve(t, AT_FDCWD, full, &s) && s.kind == PROC_EXE && exe_file(t, &s, out);
}

/* @of: struct mm_foreign, or NULL: our own. */
static int code_prot(const void *of, u64 start, u64 *end)
{
	const struct mm_range *r = of ? mm_foreign_find(of, start) : mm_exec_find(start);

	if (!r || r->start >= *end)
		return -1;
	/* One that grows is known as far down as it has been executed. */
	if (r->start > start && !r->grows) {
		*end = r->start;
		return -1;
	}
	*end = min_u64(*end, r->end);
	return (int)r->prot;
}

static void out_put(void *to, const char *s, size_t len)
{
	shown_put(to, s, len);
}

/* A line of status: signals and seccomp are the runtime's there, the guest's are in our tables. */
static void status_line(struct thread *t, struct shown_text *o, const char *line,
			const u64 own[LIMITS])
{
	u64 ignored = 0, caught = 0;
	u32 filters = 0;
	char text[256];

	for (int sig = 1; sig <= SIGNALS; sig++) {
		u64 handler = t->sighand->act[sig].handler;

		if (handler == (u64)SIG_IGN)
			ignored |= SIG(sig);
		else if (handler != (u64)SIG_DFL)
			caught |= SIG(sig);
	}
	for (struct seccomp_filter *f = t->filters; f; f = f->older)
		filters++;
	text[0] = '\0';
	if (str_starts(line, "SigBlk:"))
		fmt(text, sizeof(text), "SigBlk:\t%016lx", t->sigmask);
	else if (str_starts(line, "SigIgn:"))
		fmt(text, sizeof(text), "SigIgn:\t%016lx", ignored);
	else if (str_starts(line, "SigCgt:"))
		fmt(text, sizeof(text), "SigCgt:\t%016lx", caught);
	else if (str_starts(line, "Seccomp:") && t->seccomp_mode)
		fmt(text, sizeof(text), "Seccomp:\t%u", t->seccomp_mode);
	else if (str_starts(line, "Seccomp_filters:") && filters)
		fmt(text, sizeof(text), "Seccomp_filters:\t%u", filters);
	else if (str_starts(line, "VmPeak:") || str_starts(line, "VmSize:"))
		shown_vm_line(line, own[LIMIT_AS], text, sizeof(text));
	else if (str_starts(line, "VmData:"))
		shown_vm_line(line, own[LIMIT_DATA], text, sizeof(text));
	else if (deterministic)
		(void)deterministic_status(t, line, text, sizeof(text));
	if (text[0])
		line = text;
	out_put(o, line, str_len(line));
	out_put(o, "\n", 1);
}

/* A line of limits: those of memory are kept here. */
static void limits_text(const struct rlimit64 *limits, struct shown_text *o, const char *line)
{
	char text[128];

	limits_line(limits, line, text, sizeof(text));
	if (text[0])
		line = text;
	out_put(o, line, str_len(line));
	out_put(o, "\n", 1);
}

/*
 * What the guest is shown of @s, which @path leads to, as it is now: 0 or -errno. In smaps the
 * attributes of a mapping follow its line, so mappings are left out there but not divided. @limits:
 * what its limits are, if it is of these.
 */
static long read_shown(struct thread *t, const struct proc_file *s, const char *path,
		       const struct rlimit64 *limits, struct shown_text *text)
{
	struct work {
		struct maps_filter filter;
		char in[16384];
	} * w;
	long in = fd_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n;
	struct mm_foreign *foreign = NULL;
	char statm[SHOWN_STATM];
	u64 own[LIMITS]; /* at the moment that the kernel tells of */
	size_t have = 0;

	if (in < 0)
		return in;
	w = region_map(sizeof(*w));
	if (!w) {
		sys_close((int)in);
		return -ENOMEM;
	}
	w->filter.put = out_put;
	w->filter.to = text;
	w->filter.whole = s->kind == PROC_SMAPS;
	if (s->pid == t->proc->pid) {
		w->filter.prot_of = code_prot;
		w->filter.code_start = region_code_start;
		w->filter.code_end = region_code_end;
	} else if (s->pid && is_guest(s->number) && (foreign = mm_foreign_read(s->pid))) {
		w->filter.prot_of = code_prot;
		w->filter.of = foreign;
		w->filter.code_start = foreign->code_start;
		w->filter.code_end = foreign->code_end;
	}
	for (u32 i = 0; i < LIMITS; i++)
		own[i] = limits_own(i);
	mm_lock(t);
	do {
		char *line = w->in, *end;

		n = sys_read((int)in, w->in + have, sizeof(w->in) - 1 - have);
		if (n > 0)
			have += (size_t)n;
		w->in[have] = '\0';
		while ((end = str_chr(line, '\n'))) {
			*end = '\0';
			if (s->kind == PROC_STATUS)
				status_line(t, text, line, own);
			else if (s->kind == PROC_LIMITS)
				limits_text(limits, text, line);
			else if (s->kind == PROC_STATM)
				out_put(text, statm,
					shown_statm(line, own[LIMIT_AS], own[LIMIT_DATA], statm));
			else
				maps_line(&w->filter, line);
			line = end + 1;
		}
		have -= (size_t)(line - w->in);
		memmove(w->in, line, have);
	} while (n > 0 && have < sizeof(w->in) - 1);
	maps_end(&w->filter);
	mm_unlock(t);
	mm_foreign_free(foreign);
	region_unmap(w, sizeof(*w));
	/* Before the guest's is made: that gets the lowest free number, as natively. */
	sys_close((int)in);
	return 0;
}

/* Of maps the name tells whose they are, for who asks the descriptor (maps-query.c). */
static const char maps_name[] = "/memfd:maps of ";

static long snapshot(struct thread *t, struct proc_file *s, const char *path, u32 flags)
{
	struct rlimit64 limits[LIMITS];
	struct shown_text text = {0};
	char name[40];
	long ret;

	if (s->kind == PROC_LIMITS && !limits_of(t, s->pid, limits))
		return call_kernel(t);
	ret = read_shown(t, s, path, limits, &text);
	if (ret)
		return ret;
	if (s->kind == PROC_MAPS)
		fmt(name, sizeof(name), "%s%u", maps_name + sizeof("/memfd:") - 1,
		    s->number ? s->number : s->pid);
	else
		str_put(name, sizeof(name), "shown");
	return shown_open(&text, name, flags & O_CLOEXEC);
}

bool proc_shown_maps(struct thread *t, int fd, char path[PROC_MAPS_PATH])
{
	char name[64];
	u64 number;

	if (fd_path(fd, name, sizeof(name)) < 0 || !str_starts(name, maps_name) ||
	    !str_u64(name + sizeof(maps_name) - 1, 10, &number))
		return false;
	if (number == t->proc->pid)
		str_put(path, PROC_MAPS_PATH, "/proc/self/maps");
	else
		fmt(path, PROC_MAPS_PATH, "/proc/%u/maps", (u32)number);
	return true;
}

long proc_read_maps(struct thread *t, const char *path, struct shown_text *text)
{
	struct proc_file s = {0};
	long ret = parse(t, path, &s) ? read_shown(t, &s, path, NULL, text) : -ENOENT;

	return !ret && text->lost ? -ENOMEM : ret;
}

/* Whether argument @n, a path behind a directory's descriptor or alone, leads to a file of ours. */
static bool concerns(struct thread *t, u32 n, char *path, struct proc_file *s)
{
	bool at = n && syscall_row(guest_nr(t))->dirs & BIT(n - 1);

	return guest_string(path, guest_arg(t, n), CONTROL_PATH) >= 0 &&
	       resolve(t, at ? (int)guest_arg(t, n - 1) : AT_FDCWD, path, s);
}

/* Nobody may write to a program that runs; the kernel does not know that @exe does. */
static long busy(const char *exe)
{
	long ret = raw_call4(__NR_faccessat2, AT_FDCWD, (long)exe, W_OK, AT_EACCESS);

	/* The kernel is older than 5.8: nearly always they are the same. */
	if (ret == -ENOSYS)
		ret = raw_call3(__NR_faccessat, AT_FDCWD, (long)exe, W_OK);
	return ret < 0 ? ret : -ETXTBSY;
}

/* What an open asks for. */
struct open_want {
	u64 flags;
	u64 resolve; /* of openat2(2) */
};

static bool open_wants(struct thread *t, u32 n, struct open_want *w)
{
	struct open_how how = {0};

	w->resolve = 0;
	w->flags = guest_arg(t, n + 1);
	if (guest_nr(t) != __NR_openat2)
		return true;
	if (guest_arg(t, n + 2) < sizeof(how) || guest_read(&how, guest_arg(t, n + 1), sizeof(how)))
		return false;
	w->flags = how.flags;
	/* An absolute path is relative to the directory there. */
	w->resolve = how.resolve & ~(u64)RESOLVE_CACHED;
	return !(w->resolve & RESOLVE_IN_ROOT);
}

static long open_snapshot(struct thread *t, struct proc_file *s, const char *path,
			  const struct open_want *w)
{
	long fd;

	/* Whether the path may be followed so, the kernel knows. */
	if (w->resolve) {
		fd = call_kernel(t);
		if (fd < 0)
			return fd;
		sys_close((int)fd);
	}
	return snapshot(t, s, path, (u32)w->flags);
}

long guest_open(struct thread *t)
{
	u32 n = syscall_row(guest_nr(t))->path;
	char path[CONTROL_PATH], exe[CONTROL_PATH];
	struct proc_file s = {0};
	struct open_want w;
	u64 to[2];

	if (!open_wants(t, n, &w) || !concerns(t, n, path, &s))
		return call_kernel(t);
	switch (s.kind) {
	case PROC_HIDDEN: return -ENOENT;
	case PROC_EXE:
		/* What RESOLVE_ forbids, it forbids of this link whatever that leads to. */
		if (w.flags & O_NOFOLLOW || w.resolve || !exe_file(t, &s, exe))
			break;
		if (!(w.flags & O_PATH) && w.flags & (O_WRONLY | O_RDWR | O_TRUNC))
			return busy(exe);
		to[0] = guest_arg(t, n + 1);
		to[1] = guest_arg(t, n + 2);
		return call_kernel_with(t, guest_nr(t) == __NR_openat2 ? __NR_openat2 : __NR_openat,
					(u64)AT_FDCWD, (u64)exe, to[0], to[1], 0, 0);
	case PROC_STATUS:
	case PROC_STATM:
		/* Of others what the kernel says is the best there is. */
		if (s.pid != t->proc->pid)
			break;
		__attribute__((fallthrough));
	case PROC_LIMITS:
	case PROC_MAPS:
	case PROC_SMAPS:
		if ((w.flags & O_ACCMODE) != O_RDONLY || w.flags & (O_PATH | O_DIRECTORY))
			break;
		return open_snapshot(t, &s, path, &w);
	case PROC_MEM: memory_file_opened(); break;
	default: break;
	}
	return call_kernel(t);
}

bool proc_is_own_memory(struct thread *t, int fd)
{
	char path[CONTROL_PATH];
	struct proc_file s = {0};

	return fd_path(fd, path, sizeof(path)) > 0 && parse(t, path, &s) && s.kind == PROC_MEM &&
	       s.pid == t->proc->pid;
}

/* A descriptor of the link itself (O_PATH, O_NOFOLLOW), with an empty path. */
static bool concerns_itself(struct thread *t, u32 n, char *path, struct proc_file *s)
{
	return n && !guest_string(path, guest_arg(t, n), CONTROL_PATH) &&
	       fd_path((int)guest_arg(t, n - 1), path, CONTROL_PATH) > 0 && parse(t, path, s);
}

long guest_readlink(struct thread *t)
{
	u32 n = syscall_row(guest_nr(t))->path;
	u64 buf = guest_arg(t, n + 1), size = guest_arg(t, n + 2);
	char path[CONTROL_PATH], exe[CONTROL_PATH], first;
	struct proc_file s = {0};
	size_t len;
	long ret;

	if (!concerns(t, n, path, &s) && !concerns_itself(t, n, path, &s))
		return call_kernel(t);
	if (s.kind == PROC_HIDDEN)
		return -ENOENT;
	if (s.kind != PROC_EXE || (int)size <= 0 || !exe_of(t, &s, exe))
		return call_kernel(t);
	/* Whether the guest can reach it, the kernel knows: its root may have no /proc. */
	ret = n ? call_kernel_with(t, __NR_readlinkat, guest_arg(t, 0), guest_arg(t, 1),
				   (u64)&first, 1, 0, 0)
		: call_kernel_with(t, __NR_readlink, guest_arg(t, 0), (u64)&first, 1, 0, 0, 0);
	if (ret < 0)
		return ret;
	len = min_u64(str_len(exe), size);
	return guest_write(t, buf, exe, len) ? -EFAULT : (long)len;
}

/* The call is about a link, not about where it leads. */
static bool no_follow(const struct thread *t, const struct syscall_row *row)
{
	u64 nr = guest_nr(t);

	switch (nr) {
	/* These do not follow unless told to. */
	case __NR_linkat:
	case __NR_name_to_handle_at: return !(guest_arg(t, 4) & AT_SYMLINK_FOLLOW);
	case __NR_inotify_add_watch: return guest_arg(t, 2) & IN_DONT_FOLLOW;
	default: break;
	}
	if (row->steps & SYSCALL_ATFLAGS)
		return guest_arg(t, row->atflags) & AT_SYMLINK_NOFOLLOW;
	return nr == __NR_lstat;
}

/* By its first few characters. */
static bool may_concern(u64 path)
{
	char text[8];
	long len = guest_string(text, path, 7);

	if (len >= 0 || len == -ENAMETOOLONG)
		text[len < 0 ? 7 : len] = '\0';
	else
		return false;
	return (len && may_lead(text)) || str_starts(text, "/dev/fd");
}

/* What is bound elsewhere is the program, too. */
long guest_mount(struct thread *t)
{
	char path[CONTROL_PATH], exe[CONTROL_PATH];
	struct proc_file s = {0};
	u64 source = guest_arg(t, 0);

	if (source && may_concern(source) && concerns(t, 0, path, &s)) {
		if (s.kind == PROC_HIDDEN)
			return -ENOENT;
		if (s.kind == PROC_EXE && exe_file(t, &s, exe))
			source = (u64)exe;
	}
	return call_kernel_with(t, __NR_mount, source, guest_arg(t, 1), guest_arg(t, 2),
				guest_arg(t, 3), guest_arg(t, 4), 0);
}

long guest_path(struct thread *t)
{
	const struct syscall_row *row = syscall_row(guest_nr(t));
	char path[CONTROL_PATH], exe[CONTROL_PATH];
	struct proc_file s = {0};
	u64 a[6];

	for (u32 i = 0; i < 6; i++)
		a[i] = guest_arg(t, i);
	if (may_concern(a[row->path]) && concerns(t, row->path, path, &s)) {
		if (s.kind == PROC_HIDDEN)
			return -ENOENT;
		if (s.kind == PROC_EXE && !no_follow(t, row) && exe_file(t, &s, exe)) {
			if (guest_nr(t) == __NR_truncate)
				return busy(exe);
			a[row->path] = (u64)exe;
		}
	}
	return call_kernel_with(t, guest_nr(t), a[0], a[1], a[2], a[3], a[4], a[5]);
}
