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

#define KERNEL "/proc/sys/kernel/"

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

static s64 get_mux(struct session *s)
{
	return s->pmus.cpu->mux_interval_ms;
}

static int set_mux(struct core *core, int value)
{
	if (value < 1)
		return core_refuse(core, -EINVAL, SETTING_LEAST, .number = {1},
				   .name = {"perf_event_mux_interval_ms"});
	return pmu_set_mux_interval(pmu_by_name(core, "cpu"), (u32)value);
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
	{"/sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms", get_mux, set_mux},
};

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
	struct stat wanted, st;
	char path[512];

	if (!s->shown.root[0] || fstat(fd, &wanted) || !S_ISREG(wanted.st_mode))
		return -ENOENT;
	for (u32 i = 0; i < ARRAY_SIZE(settings); i++) {
		snprintf(path, sizeof(path), "%s%s", s->shown.root, settings[i].path);
		if (stat(path, &st) == 0 && st.st_ino == wanted.st_ino &&
		    st.st_dev == wanted.st_dev)
			return i;
	}
	return -ENOENT;
}

/* @path is about to be opened for writing. */
static s64 open_setting(struct call *c, const char *path)
{
	for (u32 i = 0; i < ARRAY_SIZE(settings); i++)
		if (!strcmp(path, settings[i].path))
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
	const struct setting *setting;
	char shown[32];
	int value, err;
	s64 taken;

	if (args->setting == WIRE_SYSCTL_OPEN)
		return open_setting(c, text);
	if (args->setting >= ARRAY_SIZE(settings))
		return -EBADF;
	setting = &settings[args->setting];
	if (!may_write(c))
		return core_refuse(c->s->core, -EPERM, SETTING_ROOT, .name = {setting->path});
	/*
	 * With kernel.sysctl_writes_strict, the default, what is not written to the start is
	 * ignored.
	 */
	if (args->offset)
		return c->len;
	taken = take_number(text, c->len, &value);
	if (taken < 0)
		return core_refuse(c->s->core, -EINVAL, SETTING_NUMBER, .name = {setting->path});
	err = setting->set(c->s->core, value);
	if (err)
		return err;
	snprintf(shown, sizeof(shown), "%lld\n", (long long)setting->get(c->s));
	view_change(c->s, setting->path, shown);
	return taken;
}
