/*
 * Writing to the files that guests see of perf's settings: who may, what a text means to the
 * kernel, and what is shown afterwards [FILE-01..07, GRP-11]. The host's own settings are never
 * touched.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "session/session-priv.h"

#define KERNEL      "/proc/sys/kernel/"
#define DEVICES     "/sys/bus/event_source/devices/"
#define BY_NAME     "/sys/devices/" /* the same directories as in DEVICES */
#define PATH_LENGTH 128

static s64 get_paranoid(struct session *s)
{
	return core_sysctl(s->core)->paranoid;
}

static s64 get_max_sample_rate(struct session *s)
{
	return core_sysctl(s->core)->max_sample_rate;
}

static s64 get_cpu_time(struct session *s)
{
	return core_sysctl(s->core)->cpu_time_max_percent;
}

static s64 get_max_stack(struct session *s)
{
	return core_sysctl(s->core)->max_stack;
}

static s64 get_max_contexts(struct session *s)
{
	return core_sysctl(s->core)->max_contexts_per_stack;
}

static s64 get_mlock_kb(struct session *s)
{
	return core_sysctl(s->core)->mlock_kb;
}

static s64 get_watchdog(struct session *s)
{
	(void)s;
	return 0;
}

static int set_watchdog(struct core *core, int value)
{
	return value == 0 ? 0 : core_refuse(core, -EINVAL, VIRTUAL_WATCHDOG);
}

static s64 get_rdpmc(struct session *s)
{
	return cpu_pmu_rdpmc(s->pmus.cpu);
}

static int set_rdpmc(struct core *core, int value)
{
	return cpu_pmu_set_rdpmc(pmu_by_name(core, "cpu"), value);
}

static const struct setting {
	const char *path;
	s64 (*get)(struct session *s);
	int (*set)(struct core *core, int value);
} settings[] = {
	{KERNEL "perf_event_paranoid", get_paranoid, core_set_paranoid},
	{KERNEL "perf_event_max_sample_rate", get_max_sample_rate, core_set_max_sample_rate},
	{KERNEL "perf_cpu_time_max_percent", get_cpu_time, core_set_cpu_time_max_percent},
	{KERNEL "perf_event_max_stack", get_max_stack, core_set_max_stack},
	{KERNEL "perf_event_max_contexts_per_stack", get_max_contexts,
	 core_set_max_contexts_per_stack},
	{KERNEL "perf_event_mlock_kb", get_mlock_kb, core_set_mlock_kb},
	{KERNEL "nmi_watchdog", get_watchdog, set_watchdog},
	/* The driver makes the file of this one. */
	{DEVICES "cpu/rdpmc", get_rdpmc, set_rdpmc},
};

/* Behind those comes the rotation interval of each PMU: the number of one, or NULL. */
static struct pmu *pmu_of(struct session *s, u64 number)
{
	struct pmu *pmu = NULL;

	if (number < ARRAY_SIZE(settings))
		return NULL;
	number -= ARRAY_SIZE(settings);
	do
		pmu = pmu_next(s->core, pmu);
	while (pmu && number--);
	return pmu;
}

/* Its path as shown, in @path; false: there are no more. */
static bool path_of(struct session *s, u64 number, char path[PATH_LENGTH])
{
	const struct pmu *pmu = pmu_of(s, number);

	if (number >= ARRAY_SIZE(settings) && !pmu)
		return false;
	if (pmu)
		snprintf(path, PATH_LENGTH, DEVICES "%s/perf_event_mux_interval_ms", pmu->name);
	else
		snprintf(path, PATH_LENGTH, "%s", settings[number].path);
	return true;
}

static int set(struct session *s, u64 number, int value)
{
	struct pmu *pmu = pmu_of(s, number);

	if (!pmu)
		return settings[number].set(s->core, value);
	if (value < 1)
		return core_refuse(s->core, -EINVAL, SETTING_LEAST, .number = {1},
				   .name = {"perf_event_mux_interval_ms"});
	return pmu_set_mux_interval(pmu, (u32)value);
}

static s64 get(struct session *s, u64 number)
{
	const struct pmu *pmu = pmu_of(s, number);

	return pmu ? pmu->mux_interval_ms : settings[number].get(s);
}

u32 setting_rdpmc(const struct session *s)
{
	static const u32 shown[] = {
		[CPU_RDPMC_NEVER] = 0,
		[CPU_RDPMC_MAPPED] = WIRE_RDPMC_MAPPED,
		[CPU_RDPMC_ALWAYS] = WIRE_RDPMC_MAPPED | WIRE_RDPMC_ALL,
	};

	return shown[cpu_pmu_rdpmc(s->pmus.cpu)];
}

/* What guests are shown besides files. */
static void show_rdpmc(struct session *s)
{
	struct guest_process *p;

	list_for_each_entry (p, &s->guests.processes, link)
		if (p->page)
			__atomic_store_n(&p->page->rdpmc, setting_rdpmc(s), __ATOMIC_RELAXED);
}

const char *setting_show(struct session *s, u32 index, char *text, size_t size)
{
	if (index >= ARRAY_SIZE(settings) ||
	    strncmp(settings[index].path, KERNEL, strlen(KERNEL)) != 0)
		return NULL;
	snprintf(text, size, "%lld\n", (long long)settings[index].get(s));
	return settings[index].path;
}

/* The files belong to root, and no capability stands in for that. */
static bool may_write(struct call *c)
{
	return cred_euid(c->process->pid, c->thread->tid) == 0;
}

s64 setting_by_fd(struct session *s, int fd)
{
	char shown[PATH_LENGTH];
	struct file_id wanted, id;

	if (!s->shown.root[0] || !file_id(fd, "", &wanted) || !S_ISREG(wanted.mode))
		return -ENOENT;
	for (u32 i = 0; path_of(s, i, shown); i++)
		if (file_id(s->shown.dir, shown + 1, &id) && file_id_same(&id, &wanted))
			return i;
	return -ENOENT;
}

/* @path is about to be opened for writing. */
static s64 open_setting(struct call *c, const char *path)
{
	char shown[PATH_LENGTH], at[PATH_LENGTH];

	if (!strncmp(path, BY_NAME, strlen(BY_NAME)) && strlen(path) < PATH_LENGTH / 2) {
		snprintf(at, sizeof(at), DEVICES "%s", path + strlen(BY_NAME));
		path = at;
	}
	for (u32 i = 0; path_of(c->s, i, shown); i++)
		if (!strcmp(path, shown))
			return may_write(c) ? (s64)i
					    : core_refuse(c->s->core, -EACCES, SETTING_ROOT,
							  .name = {path});
	return core_refuse(c->s->core, -EACCES, SETTING_FIXED, .name = {path});
}

/*
 * One number at the start of @text, as proc_dointvec() takes it: blanks, a sign, decimal, octal or
 * hexadecimal, and then the end or a blank. Bytes taken, or -EINVAL.
 */
static s64 take_number(const char *text, size_t len, int *value)
{
	size_t at = strspn(text, " \t\n");
	bool minus = text[at] == '-';
	unsigned long n;
	char *end;

	/* strtoul() would take a second sign, and blanks before it. */
	at += minus;
	if (!isdigit((unsigned char)text[at]))
		return -EINVAL;
	errno = 0;
	n = strtoul(text + at, &end, 0);
	if (errno || n > (unsigned long)INT_MAX + minus || (*end && !strchr(" \t\n", *end)))
		return -EINVAL;
	if (end < text + len && !*end)
		return -EINVAL; /* a zero byte in the middle */
	*value = minus ? (int)-(long)n : (int)n;
	return end - text + (s64)strspn(end, " \t\n");
}

s64 op_sysctl(struct call *c)
{
	const struct wire_sysctl_args *args = &c->args.sysctl;
	const char *text = (const char *)c->in;
	char path[PATH_LENGTH], shown[32];
	int value, err;
	s64 taken;

	if (args->setting == WIRE_SYSCTL_OPEN)
		return open_setting(c, text);
	if (!path_of(c->s, args->setting, path))
		return -EBADF;
	if (!may_write(c))
		return core_refuse(c->s->core, -EPERM, SETTING_ROOT, .name = {path});
	/*
	 * With kernel.sysctl_writes_strict, the default, what is not written to the start is
	 * ignored.
	 */
	if (args->offset)
		return c->len;
	taken = take_number(text, c->len, &value);
	if (taken < 0)
		return core_refuse(c->s->core, -EINVAL, SETTING_NUMBER, .name = {path});
	err = set(c->s, args->setting, value);
	if (err)
		return err;
	show_rdpmc(c->s);
	snprintf(shown, sizeof(shown), "%lld\n", (long long)get(c->s, args->setting));
	view_change(c->s, path, shown);
	return taken;
}
