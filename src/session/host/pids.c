/*
 * What the kernel says of processes: whose thread is whose, pid namespaces, credentials. All of it
 * is read when it is asked for; a guest may change its credentials at any time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/session-priv.h"

/* EPERM says that it exists. */
bool pid_has_tid(pid_t pid, s32 tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

bool pid_task_text(pid_t pid, s32 tid, const char *name, char *text, size_t size)
{
	char path[80];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/*
 * The first line of /proc/@pid/task/@tid/status that begins with @key, without it; false: none.
 * Line by line, because one of them may list thousands of groups.
 */
static bool status_line(pid_t pid, s32 tid, const char *key, char *value, size_t len)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	f = fopen(path, "re");
	while (f && !found && proc_line(f, line, sizeof(line))) {
		const char *at = proc_status_value(line, key);

		if (at)
			snprintf(value, len, "%s", at);
		found = at != NULL;
	}
	if (f)
		fclose(f);
	return found;
}

bool pid_exists(pid_t pid)
{
	char state[64];

	if (pid <= 0 || (kill(pid, 0) && errno != EPERM))
		return false;
	return !status_line(pid, pid, "State", state, sizeof(state)) || !strpbrk(state, "ZX");
}

/*
 * Do both run the same program file? For guests, which all run the runtime. Without /proc: perhaps.
 */
bool pid_same_exe(pid_t a, pid_t b)
{
	char path[2][40];
	struct file_id id[2];

	if (access("/proc/self/exe", F_OK))
		return true;
	snprintf(path[0], sizeof(path[0]), "/proc/%d/exe", (int)a);
	snprintf(path[1], sizeof(path[1]), "/proc/%d/exe", (int)b);
	return file_id(AT_FDCWD, path[0], &id[0]) && file_id(AT_FDCWD, path[1], &id[1]) &&
	       file_id_same(&id[0], &id[1]);
}

enum namespace {
	NS_PID,
	NS_USER,
	NAMESPACES,
};

/* Our own namespaces never change, so they are looked at once; NULL without /proc. */
static const struct stat *own_namespace(enum namespace ns, const char *name)
{
	static struct stat own[NAMESPACES];
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (!own[ns].st_ino && stat(path, &own[ns]))
		return NULL;
	return &own[ns];
}

/* The text of /proc/@pid/uid_map, which everybody may read; "self" for 0. */
static bool ids_map(pid_t pid, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), pid ? "/proc/%d/uid_map" : "/proc/self/uid_map", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/*
 * For a process whose namespaces cannot be looked at, as one that is not dumpable. In a user
 * namespace of its own it has all capabilities, and they mean nothing outside; whoever made one
 * without having them outside has given it few ids.
 */
static bool same_ids(pid_t pid)
{
	char mine[512], its[512];

	return ids_map(0, mine, sizeof(mine)) && ids_map(pid, its, sizeof(its)) &&
	       !strcmp(mine, its);
}

static bool same_namespace(pid_t pid, enum namespace ns)
{
	static const char *const name[] = {[NS_PID] = "pid", [NS_USER] = "user"};
	const struct stat *mine = own_namespace(ns, name[ns]);
	struct stat its;
	char path[64];

	if (!mine)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name[ns]);
	if (stat(path, &its) == 0)
		return mine->st_ino == its.st_ino && mine->st_dev == its.st_dev;
	/* Another user's, and for that what is asked next will fail as well. */
	return ns != NS_USER || same_ids(pid);
}

/* What a process in another namespace calls @tid, which is ours; 0: nothing. */
static s32 tid_inside(pid_t pid, s32 tid)
{
	char value[256];

	return status_line(pid, tid, "NSpid", value, sizeof(value)) ? proc_last_number(value) : 0;
}

s32 pid_translate(pid_t pid, s32 tid, bool *same)
{
	char path[64];
	struct dirent *d;
	s32 found = 0;
	DIR *dir;

	*same = same_namespace(pid, NS_PID);
	if (*same)
		return pid_has_tid(pid, tid) ? tid : 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		s32 t = atoi(d->d_name);

		if (t > 0 && tid_inside(pid, t) == tid)
			found = t;
	}
	if (dir)
		closedir(dir);
	return found;
}

bool pid_inside(s32 tid, struct pid_inside *in)
{
	char value[256];

	/*
	 * A thread's number leads to its process as well; without /proc only a process is known by
	 * it.
	 */
	if (!status_line(tid, tid, "Tgid", value, sizeof(value))) {
		int pidfd = access("/proc/self", F_OK) ? (int)syscall(SYS_pidfd_open, tid, 0) : -1;

		if (pidfd < 0)
			return false;
		close(pidfd);
		*in = (struct pid_inside){.tgid = tid, .pid = tid, .tid = tid, .same = true};
		return true;
	}
	in->tgid = atoi(value);
	in->pid = in->tgid;
	in->tid = tid;
	in->same = same_namespace(in->tgid, NS_PID);
	if (in->same)
		return true;
	if (!status_line(tid, tid, "NStgid", value, sizeof(value)))
		return false;
	in->pid = proc_last_number(value);
	in->tid = tid_inside(in->tgid, tid);
	return in->tid > 0;
}

/*
 * Could @pid be one of ours where its descriptors cannot be looked at? It may not be dumpable. Only
 * root's guests become somebody else in a way that the session has no right to look at them then.
 */
static bool may_be_ours(pid_t pid)
{
	char value[128];

	return !geteuid() || (status_line(pid, pid, "Uid", value, sizeof(value)) &&
			      strtoul(value, NULL, 10) == getuid());
}

bool pid_has_file(pid_t pid, int fd)
{
	struct file_id wanted, id;
	struct dirent *d;
	bool found = false;
	char path[40];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == EACCES && may_be_ours(pid);
	if (file_id(fd, "", &wanted))
		while (!found && (d = readdir(dir)))
			found = file_id(dirfd(dir), d->d_name, &id) && file_id_same(&id, &wanted);
	closedir(dir);
	return found;
}

/* The thread of a namespace like @p's that is @tid there, in ours: a guest or not. 0: none. */
static s32 tid_outside(const struct guest_process *p, s32 tid)
{
	DIR *dir = opendir("/proc");
	struct stat its, st;
	struct dirent *d;
	char path[64];
	s32 found = 0;
	bool same;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)p->pid);
	while (dir && !found && stat(path, &its) == 0 && (d = readdir(dir))) {
		char ns[300];

		snprintf(ns, sizeof(ns), "/proc/%s/ns/pid", d->d_name);
		if (atoi(d->d_name) > 0 && stat(ns, &st) == 0 && st.st_ino == its.st_ino)
			found = pid_translate(atoi(d->d_name), tid, &same);
	}
	if (dir)
		closedir(dir);
	return found;
}

s32 pid_from_guest(struct guest_process *p, s32 pid)
{
	return p->same_ns ? pid : tid_outside(p, pid);
}

static bool has_cap(pid_t pid, s32 tid, int cap)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, tid};
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* 0 would mean ourselves. */
	if (tid <= 0 || !same_namespace(pid, NS_USER) || syscall(SYS_capget, &head, set))
		return false;
	return set[cap / 32].effective >> cap % 32 & 1;
}

/* Of the machine's first user namespace, as in the kernel's proc_ns.h. */
#define USER_NS_FIRST 0xeffffffdu

static bool is_initial(pid_t pid)
{
	char path[40];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat(path, &st) || st.st_ino == USER_NS_FIRST;
}

/* As the kernel would ask it of the initial user namespace; for it, ours stands in. */
bool cred_capable(pid_t pid, s32 tid, enum core_cap cap)
{
	static const int number[] = {
		[CORE_CAP_PERFMON] = 38,
		[CORE_CAP_SYS_ADMIN] = CAP_SYS_ADMIN,
		[CORE_CAP_KILL] = CAP_KILL,
		[CORE_CAP_IPC_LOCK] = CAP_IPC_LOCK,
	};

	return cap == CORE_CAP_INITIAL ? is_initial(pid) : has_cap(pid, tid, number[cap]);
}

bool pid_is_child(pid_t parent, pid_t pid)
{
	char value[32];

	if (status_line(pid, pid, "PPid", value, sizeof(value)))
		return atoi(value) == parent;
	/* Nobody can be asked without /proc; one that hides others' processes shows one's own. */
	return !status_line(getpid(), getpid(), "PPid", value, sizeof(value));
}

bool pid_proc_is_foreign(void)
{
	char own[16] = "";

	return readlink("/proc/self", own, sizeof(own) - 1) > 0 && atoi(own) != getpid();
}

struct ids {
	unsigned real, effective, saved, fs;
};

static bool ids_read(pid_t pid, s32 tid, const char *key, struct ids *ids)
{
	char value[128];

	return status_line(pid, tid, key, value, sizeof(value)) &&
	       sscanf(value, "%u %u %u %u", &ids->real, &ids->effective, &ids->saved, &ids->fs) ==
		       4;
}

u32 cred_euid(pid_t pid, s32 tid)
{
	struct ids ids;

	return ids_read(pid, tid, "Uid", &ids) ? ids.effective : ~0u;
}

u64 cred_memlock(pid_t pid)
{
	char path[64], line[256];
	u64 limit = ~0ull;
	struct rlimit r;
	FILE *f;

	if (!prlimit(pid, RLIMIT_MEMLOCK, NULL, &r))
		return r.rlim_cur == RLIM_INFINITY ? ~0ull : r.rlim_cur;
	/* Another user's, which it takes CAP_SYS_RESOURCE to ask for but nothing to read. */
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	f = fopen(path, "re");
	while (f && proc_line(f, line, sizeof(line)) &&
	       !proc_limit(line, "Max locked memory", &limit))
		;
	if (f)
		fclose(f);
	return limit;
}

/* For where there is no /proc to ask: an ordinary user may send signals to what is his. */
static bool both_are_ours(pid_t a, pid_t b)
{
	return geteuid() != 0 && !has_cap(getpid(), getpid(), CAP_KILL) && kill(a, 0) == 0 &&
	       kill(b, 0) == 0;
}

/*
 * ptrace's rule with real credentials: the same ids all over and a dumpable target, or
 * CAP_SYS_PTRACE. Dumpable shows in who owns the target's files in /proc.
 */
bool cred_may_access(struct guest_thread *who, struct guest_thread *target, enum core_access how)
{
	pid_t pid = who->process->pid, tpid = target->process->pid;
	struct ids u, g, tu, tg;
	char path[64];
	struct stat st;

	(void)how; /* yama restricts attaching, which is then the kernel's to refuse */
	if (!target->tid)
		return true; /* just forked by someone who had the right */
	if (has_cap(pid, who->tid, CAP_SYS_PTRACE))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)getpid());
	if (access(path, R_OK))
		return both_are_ours(pid, tpid);
	if (!ids_read(pid, who->tid, "Uid", &u) || !ids_read(pid, who->tid, "Gid", &g) ||
	    !ids_read(tpid, target->tid, "Uid", &tu) || !ids_read(tpid, target->tid, "Gid", &tg))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tpid);
	if (stat(path, &st) || (st.st_uid != tu.effective && st.st_uid == 0))
		return false;
	return u.real == tu.real && u.real == tu.effective && u.real == tu.saved &&
	       g.real == tg.real && g.real == tg.effective && g.real == tg.saved;
}
