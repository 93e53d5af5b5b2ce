/*
 * What a guest is shown of the PMU: files, laid over the machine's, links, CPUID and rdpmc. A path is
 * looked at by its text, absolute and as programs write it; a directory of the session's that is open
 * leads to its own files by itself.
 */
#include "rt/perf/perf-guest.h"

#include "abi/control.h"
#include "rt/task/meter-page.h"
#include "rt/perf/perf-priv.h"
#include "sys/string.h"

/* @path below @dir: what follows dir, "" or "/...", else NULL. */
static const char *below(const char *path, const char *dir)
{
	size_t len = str_len(dir);

	if (!str_starts(path, dir) || (path[len] && path[len] != '/'))
		return NULL;
	return path + len;
}

/* The session's files, which it makes when somebody first looks. NULL: it has none. */
static const char *overlay_root(struct thread *t)
{
	const struct wire_view *view = t->proc->perf->view;

	if (!__atomic_load_n(&view->rooted, __ATOMIC_ACQUIRE)) {
		struct wire_slot *sl = wire_begin(t);

		if (!sl)
			return NULL;
		(void)wire_call(t, sl, WIRE_OP_VIEW);
		wire_end(t, sl);
	}
	return __atomic_load_n(&view->rooted, __ATOMIC_ACQUIRE) ? view->root : NULL;
}

static bool put(struct thread *t, const char *what, const char *rest, char *out)
{
	const char *root = overlay_root(t);
	size_t n, m = str_len(what), r = str_len(rest);

	if (!root)
		return false;
	n = str_len(root);
	if (n + m + r + 1 > CONTROL_PATH)
		return false;
	memcpy(out, root, n);
	memcpy(out + n, what, m);
	memcpy(out + n + m, rest, r + 1);
	return true;
}

/* Two slashes are one; the rest of what a path can be written as is left to the kernel. */
static void squeeze(const char *path, char *out, size_t size)
{
	size_t n = 0;

	for (; *path && n < size - 1; path++)
		if (!(path[0] == '/' && path[1] == '/'))
			out[n++] = *path;
	out[n] = '\0';
}

bool perf_overlay_path(struct thread *t, const char *path, char *out)
{
	static const struct {
		const char *dir, *shown;
	} dirs[] = {
		{"/sys/bus/event_source/devices", "/sys/bus/event_source/devices"},
		{"/sys/devices/cpu", "/sys/devices/cpu"},
	};
	static const char *const kernel[] = {
		"perf_event_paranoid",
		"perf_event_max_sample_rate",
		"perf_cpu_time_max_percent",
		"perf_event_max_stack",
		"perf_event_max_contexts_per_stack",
		"perf_event_mlock_kb",
		"nmi_watchdog",
	};
	const struct perf *p = t->proc->perf;
	char clean[256];
	const char *rest;

	if (!p || path[0] != '/' || p->wire.dead)
		return false;
	if (!str_starts(path, "/sys/") && !str_starts(path, "/proc/sys/") &&
	    !str_starts(path, "//"))
		return false;
	squeeze(path, clean, sizeof(clean));
	for (u32 i = 0; i < ARRAY_SIZE(dirs); i++) {
		rest = below(clean, dirs[i].dir);
		if (rest)
			return put(t, dirs[i].shown, rest, out);
	}
	rest = below(clean, "/proc/sys/kernel");
	for (u32 i = 0; rest && rest[0] && i < ARRAY_SIZE(kernel); i++)
		if (str_eq(rest + 1, kernel[i]))
			return put(t, "/proc/sys/kernel", rest, out);
	return false;
}

const char *perf_fd_link(struct thread *t, const char *path)
{
	u64 n;
	int len;

	if (!t->proc->perf || !t->proc->perf->nr_fds)
		return NULL;
	if (str_starts(path, "/proc/self/fd/")) {
		path += 14;
	} else if (str_starts(path, "/dev/fd/")) {
		path += 8;
	} else if (str_starts(path, "/proc/thread-self/fd/")) {
		path += 21;
	} else if (str_starts(path, "/proc/")) {
		len = str_u64(path + 6, 10, &n);
		if (!len || n != t->proc->pid || !str_starts(path + 6 + len, "/fd/"))
			return NULL;
		path += 6 + len + 4;
	} else {
		return NULL;
	}
	len = str_u64(path, 10, &n);
	if (!len || path[len] || n > 0x7fffffff || !perf_fd_find(t, (int)n))
		return NULL;
	return "anon_inode:[perf_event]";
}

/*
 * Clients choose their tables by family and model, so one that they know is shown; everything else
 * of CPUID stays. Leaf 0xA says version 2, 48-bit counters, and that instructions and branches are
 * there (bits set in EBX are events that are not).
 */
void perf_cpuid(struct thread *t, u32 leaf, u32 regs[4])
{
	const struct meter_tree *tree = meter_tree();
	const struct wire_view *view = (const struct wire_view *)((const u8 *)tree + WIRE_VIEW_IN);

	/* Without a session as well: what is counted must not depend on who asked. */
	(void)t;
	if (!view->cpu_model)
		return;
	if (leaf == 0 && regs[0] < 0xa)
		regs[0] = 0xa;
	/* A level of features has a model of its own, rt/arch/x86_64/deterministic-cpuid.c. */
	if (leaf == 1 && !(tree->flags & METER_TREE_DETERMINISTIC && tree->cpu != METER_CPU_HOST))
		regs[0] = view->cpu_model;
	if (leaf == 0xa) {
		u32 counters = view->counters ? view->counters : 8;

		regs[0] = 7u << 24 | 48u << 16 | (counters > 255 ? 255 : counters) << 8 | 2;
		regs[1] = BIT(0) | BIT(2) | BIT(3) | BIT(4) |
			  BIT(6); /* cycles, ref, LLC, mispredicted */
		regs[2] = 0;
		regs[3] = 0;
	}
}

/*
 * meter_sum() for the thread's own meter, which nobody else changes while it is here: without the
 * precautions, and with four sums so that the multiplications do not wait for each other.
 */
u64 perf_own_count(struct thread *t, enum meter_quantity q)
{
	const struct meter *m = dbt_meter(&t->dbt);
	const u8 *weight = (const u8 *)m->weight + q;
	const u64 *hits = m->hits;
	u32 n = m->classes < METER_CLASSES ? m->classes : METER_CLASSES, i = 0;
	u64 a = 0, b = 0, c = 0, d = 0;

	for (u32 lane = 0; lane < METER_LANES; lane += 2) {
		a += m->count[lane][q];
		b += m->count[lane + 1][q];
	}
	for (; i + 4 <= n; i += 4) {
		a += hits[i] * weight[i * 8ul];
		b += hits[i + 1] * weight[i * 8ul + 8];
		c += hits[i + 2] * weight[i * 8ul + 16];
		d += hits[i + 3] * weight[i * 8ul + 24];
	}
	for (; i < n; i++)
		a += hits[i] * weight[i * 8ul];
	return a + b + c + d;
}

/* The counters' numbers are those of the user page, enum cpu_what in pmu/drivers.h. */
bool perf_rdpmc(struct thread *t, u32 index, u64 *value)
{
	static const enum meter_quantity quantity[] = {METER_INSTRUCTIONS, METER_BRANCHES};
	const struct perf *p = t->proc->perf;

	if (!p || !(p->view->flags & WIRE_VIEW_RDPMC) || index >= ARRAY_SIZE(quantity))
		return false;
	*value = perf_own_count(t, quantity[index]);
	return true;
}
