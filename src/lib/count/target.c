#include "lib/count/target.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <anyperf/command.h>

#include "base/bitmap.h"
#include "lib/spec/cpulist.h"
#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"

struct tids {
	pid_t *tid;
	unsigned int n, room;
};

static int tids_add(struct tids *t, pid_t tid)
{
	if (t->n == t->room) {
		unsigned int room = t->room ? 2 * t->room : 16;
		pid_t *more = realloc(t->tid, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->tid = more;
		t->room = room;
	}
	t->tid[t->n++] = tid;
	return 0;
}

#define PIDS (4u << 20) /* PID_MAX_LIMIT of 64-bit kernels */

/* Who is named twice is measured once. 0 or -ENOMEM. */
static int tids_once(struct tids *t)
{
	u64 *seen = calloc(PIDS / 64, sizeof(*seen));
	unsigned int n = 0;

	if (!seen)
		return -ENOMEM;
	for (unsigned int i = 0; i < t->n; i++) {
		pid_t tid = t->tid[i];
		bool is_pid = tid >= 0 && (u32)tid < PIDS;

		if (!is_pid || !bitmap_test(seen, (u32)tid))
			t->tid[n++] = tid;
		if (is_pid)
			bitmap_set(seen, (u32)tid);
	}
	t->n = n;
	free(seen);
	return 0;
}

/* What the header says does not go together; 0 or -EINVAL. */
static int check_alone(const struct ap_target *t, struct ap_error *err)
{
	bool threads = t->ntids || t->npids;

	if (t->every_thread && (threads || t->cpus || t->command))
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"every thread of the machine is a target alone");
	if (t->command && threads)
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"a command is no target beside other threads");
	return 0;
}

/* A soft limit of descriptors is in nobody's way, here as little as for events. */
static DIR *open_dir(struct ap_machine *m, const char *path)
{
	DIR *dir = opendir(path);

	if (!dir && errno == EMFILE && !ap__nofile_raise(m, 1024))
		dir = opendir(path);
	return dir;
}

/* Every thread that process @pid has now. */
static int tids_of(struct tids *t, struct ap_machine *m, pid_t pid, struct ap_error *err)
{
	unsigned int before = t->n;
	struct dirent *d;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = pid > 0 ? open_dir(m, path) : NULL;
	/* It may be there all the same, and passed over it would be missing from a sum. */
	if (!dir && pid > 0 && ap__is_shortage(-errno))
		return ap__fail_unread(err, -errno, AP_CAUSE_NO_TASK, path);
	if (!dir)
		return ap__fail(err, -ESRCH, AP_CAUSE_NO_TASK, "there is no process %d", (int)pid);
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && tids_add(t, (pid_t)atoi(d->d_name))) {
			closedir(dir);
			return ap__fail_memory(err);
		}
	closedir(dir);
	if (t->n == before)
		return ap__fail(err, -ESRCH, AP_CAUSE_NO_TASK, "process %d has just ended",
				(int)pid);
	return 0;
}

/* Every thread of the machine. Processes that end meanwhile are left out. */
static int tids_of_all(struct tids *t, struct ap_machine *m, struct ap_error *err)
{
	DIR *proc = open_dir(m, "/proc");
	struct dirent *d;
	int r = 0;

	if (!proc)
		return ap__fail_unread(err, -errno, AP_CAUSE_NO_TASK, "/proc");
	while ((!r || r == -ESRCH) && (d = readdir(proc)))
		if (isdigit((unsigned char)d->d_name[0]))
			r = tids_of(t, m, (pid_t)atoi(d->d_name), err);
	closedir(proc);
	return r == -ESRCH ? 0 : r;
}

/* The list of CPUs in a file of the machine's; false if there is none. */
static bool cpus_that_are(struct ap_machine *m, const char *what, char *list, size_t size)
{
	return ap__slurp(m, list, size, "/sys/devices/system/cpu/%s", what) > 0;
}

/* An event opened on all CPUs but one would pass for the whole: @cpu is not @online. */
static int refuse_cpu(struct ap_machine *m, int cpu, const char *online, struct ap_error *err)
{
	char present[4096];

	if (!cpus_that_are(m, "present", present, sizeof(present)) ||
	    !ap__cpulist_has(present, cpu))
		return ap__fail(err, -EINVAL, AP_CAUSE_CPU, "there is no CPU %d; online are %.200s",
				cpu, online);
	ap__fail(err, -ENODEV, AP_CAUSE_CPU, "CPU %d is offline; online are %.200s", cpu, online);
	return ap__remedy(err, -ENODEV,
			  "leave it out, or as root: echo 1 > /sys/devices/system/cpu/cpu%d/online",
			  cpu);
}

/* The first of @cpus that is not @online; -1: all are. */
static int absent_cpu(const char *online, const int *cpus, int n)
{
	for (int i = 0; i < n; i++)
		if (!ap__cpulist_has(online, cpus[i]))
			return cpus[i];
	return -1;
}

static int cpus_of(struct ap_machine *m, const char *list, int **cpus, struct ap_error *err)
{
	bool all = strcmp(list, "all") == 0, known;
	char online[4096];
	int n, absent;

	known = cpus_that_are(m, "online", online, sizeof(online));
	if (all && !known)
		snprintf(online, sizeof(online), "0-%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	n = ap__cpulist_parse(all ? online : list, cpus);
	/* Where no file tells it the kernel will, of each CPU. */
	absent = known && !all ? absent_cpu(online, *cpus, n) : -1;
	if (absent >= 0) {
		free(*cpus);
		*cpus = NULL;
		n = refuse_cpu(m, absent, online, err);
		return n < 0 ? n : -EINVAL;
	}
	if (n == -ENOMEM)
		return ap__fail_memory(err);
	if (n < 0) {
		ap__fail(err, -EINVAL, AP_CAUSE_CPU, "\"%.120s\" is not a list of CPUs", list);
		return ap__remedy(err, -EINVAL, "write numbers and ranges: 0-3,8");
	}
	return n;
}

int ap__cpus_check(struct ap_machine *m, const char *list, struct ap_error *err)
{
	int *cpus = NULL, n = cpus_of(m, list, &cpus, err);

	free(cpus);
	return n < 0 ? n : 0;
}

/* One after the other out of "a,b,,c". */
static int open_cgroups(struct ap__places *out, struct ap_machine *m, const char *list,
			struct ap_error *err)
{
	char *text = strdup(list), *rest = text, *name;
	int fd, r = 0;

	out->cgroup_fds = calloc(strlen(list) + 1, sizeof(*out->cgroup_fds));
	if (!text || !out->cgroup_fds) {
		free(text);
		return ap__fail_memory(err);
	}
	while (!r && (name = strsep(&rest, ","))) {
		fd = *name ? ap__cgroup_open(m, name, err) : -1;
		if (*name && fd < 0)
			r = fd;
		else
			out->cgroup_fds[out->ncgroups++] = fd;
	}
	free(text);
	return r;
}

int ap__places_find(struct ap__places *out, struct ap_machine *m, const struct ap_target *target,
		    struct ap_error *err)
{
	struct ap_target t = {.size = sizeof(t)};
	struct tids tids = {0};
	int *cpus = NULL, ncpus = 0, any = -1, r;

	*out = (struct ap__places){0};
	if (target)
		memcpy(&t, target, target->size < sizeof(t) ? target->size : sizeof(t));
	r = check_alone(&t, err);
	if (r)
		return r;
	for (unsigned int i = 0; i < t.ntids; i++)
		if (tids_add(&tids, t.tids[i]))
			goto nomem;
	for (unsigned int i = 0; i < t.npids; i++) {
		r = tids_of(&tids, m, t.pids[i], err);
		if (r)
			goto out;
		out->listed = true;
	}
	if (tids.n > 1 && tids_once(&tids))
		goto nomem;
	if (t.command && !ap_command_pid(t.command)) {
		r = ap__fail(err, -ESRCH, AP_CAUSE_NO_TASK, "the command has ended");
		goto out;
	}
	if (t.command && tids_add(&tids, ap_command_pid(t.command)))
		goto nomem;
	if (t.every_thread) {
		r = tids_of_all(&tids, m, err);
		if (r)
			goto out;
		out->listed = true;
	}
	if (t.cgroup && tids.n) {
		r = ap__fail(err, -EINVAL, AP_CAUSE_CGROUP,
			     "either threads or a cgroup can be measured, not both");
		goto out;
	}
	if (t.cgroup && !t.cpus)
		t.cpus = "all";
	if (t.cpus) {
		r = cpus_of(m, t.cpus, &cpus, err);
		if (r < 0)
			goto out;
		ncpus = r;
	}
	if (!tids.n && tids_add(&tids, t.cpus ? -1 : 0))
		goto nomem;
	out->place = calloc((size_t)tids.n * (size_t)(ncpus ? ncpus : 1), sizeof(*out->place));
	if (!out->place)
		goto nomem;
	for (unsigned int i = 0; i < tids.n; i++)
		for (int k = 0; k < (ncpus ? ncpus : 1); k++)
			out->place[out->n++] = (struct ap_place){.tid = tids.tid[i],
								 .cpu = ncpus ? cpus[k] : any};
	r = 0;
	if (t.cgroup)
		r = open_cgroups(out, m, t.cgroup, err);
	goto out;

nomem:
	r = ap__fail_memory(err);
out:
	free(tids.tid);
	free(cpus);
	if (r)
		ap__places_release(out);
	return r;
}

void ap__places_release(struct ap__places *p)
{
	free(p->place);
	for (unsigned int i = 0; i < p->ncgroups; i++)
		if (p->cgroup_fds[i] >= 0)
			close(p->cgroup_fds[i]);
	free(p->cgroup_fds);
	*p = (struct ap__places){0};
}

int ap__places_cgroup(const struct ap__places *p, unsigned int i)
{
	if (p->ncgroups == 1)
		i = 0;
	return i < p->ncgroups ? p->cgroup_fds[i] : -1;
}
