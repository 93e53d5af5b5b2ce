/*
 * What a guest is shown of the PMU: files, laid over the machine's, and links. A path is looked at
 * by its text, absolute and as programs write it; a directory of the session's that is open leads
 * to its own files by itself.
 */
#include "rt/perf/perf-guest.h"

#include "abi/control.h"
#include "rt/perf/perf-priv.h"
#include "rt/task/meter-page.h"
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
	struct perf *p = t->proc->perf;
	struct wire_slot *sl;
	char root[WIRE_ROOT];
	u64 mask;
	long err;

	if (__atomic_load_n(&p->root[0], __ATOMIC_ACQUIRE))
		return p->root;
	sl = wire_begin(t);
	if (!sl)
		return NULL;
	err = wire_call(t, sl, WIRE_OP_VIEW);
	if (!err) {
		memcpy(root, sl->data, t->perf_reply.len);
		root[t->perf_reply.len - 1] = '\0';
	}
	wire_end(t, sl);
	p->no_root = err == -ENODEV ? 0 : (s32)err;
	if (err || root[0] != '/')
		return NULL;
	/* Its first byte comes last, as others look at that alone. */
	mask = wire_lock(t);
	if (!p->root[0]) {
		p->root_is = t->perf_reply.result.view;
		str_put(p->root + 1, sizeof(p->root) - 1, root + 1);
		__atomic_store_n(&p->root[0], '/', __ATOMIC_RELEASE);
	}
	wire_unlock(t, mask);
	return p->root;
}

/* Is the session's directory what its name means here? */
static bool is_there(const struct perf *p)
{
	const struct wire_view_result *is = &p->root_is;
	struct statx st;

	return !sys_statx(AT_FDCWD, p->root, AT_SYMLINK_NOFOLLOW, STATX_INO, &st) &&
	       st.stx_ino == is->ino && st.stx_dev_major == is->dev_major &&
	       st.stx_dev_minor == is->dev_minor;
}

static bool put(struct thread *t, const char *what, const char *rest, char *out)
{
	const char *root = overlay_root(t);
	size_t n, m = str_len(what), r = str_len(rest);

	out[0] = '\0';
	if (root && !is_there(t->proc->perf)) {
		t->proc->perf->no_root = -ENOENT;
		return true;
	}
	/* Not the machine's: they would be others' numbers and limits. */
	if (!root)
		return t->proc->perf->no_root < 0;
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

/*
 * @rest, behind /sys/devices, leads to a PMU that the session has, or to a setting of any. The bus
 * has links to the same directories.
 */
static bool is_pmu(const char *rest)
{
	static const char *const own[] = {
		"cpu",        "anyperf",    "ibs_op", "software",
		"breakpoint", "tracepoint", "kprobe", "uprobe",
	};
	const char *last = str_rchr(rest, '/');

	for (u32 i = 0; rest[0] && i < ARRAY_SIZE(own); i++)
		if (below(rest + 1, own[i]))
			return true;
	return last && (str_eq(last, "/perf_event_mux_interval_ms") || str_eq(last, "/rdpmc"));
}

bool perf_overlay_path(struct thread *t, const char *path, char *out)
{
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
	rest = below(clean, "/sys/bus/event_source/devices");
	if (rest)
		return put(t, "/sys/bus/event_source/devices", rest, out);
	rest = below(clean, "/sys/devices");
	if (rest && is_pmu(rest))
		return put(t, "/sys/devices", rest, out);
	rest = below(clean, "/proc/sys/kernel");
	for (u32 i = 0; rest && rest[0] && i < ARRAY_SIZE(kernel); i++)
		if (str_eq(rest + 1, kernel[i]))
			return put(t, "/proc/sys/kernel", rest, out);
	return false;
}

/* The own perf descriptor that @path names below /proc/self/@dir or what is the same; -1: none. */
static int perf_fd_of_path(struct thread *t, const char *path, const char *dir)
{
	size_t n = str_len(dir);
	u64 fd;
	int len;

	if (!t->proc->perf || !t->proc->perf->nr_fds)
		return -1;
	if (str_starts(path, "/dev/")) {
		path += 5;
	} else if (str_starts(path, "/proc/self/")) {
		path += 11;
	} else if (str_starts(path, "/proc/thread-self/")) {
		path += 18;
	} else if (str_starts(path, "/proc/")) {
		len = str_u64(path + 6, 10, &fd);
		if (!len || fd != t->proc->pid || path[6 + len] != '/')
			return -1;
		path += 6 + len + 1;
	} else {
		return -1;
	}
	if (!str_starts(path, dir) || path[n] != '/')
		return -1;
	path += n + 1;
	len = str_u64(path, 10, &fd);
	if (!len || path[len] || fd > 0x7fffffff || !perf_fd_find(t, (int)fd))
		return -1;
	return (int)fd;
}

const char *perf_fd_link(struct thread *t, const char *path)
{
	return perf_fd_of_path(t, path, "fd") < 0 ? NULL : "anon_inode:[perf_event]";
}

int perf_fd_info(struct thread *t, const char *path)
{
	return perf_fd_of_path(t, path, "fdinfo");
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

	if (m->grants)
		return meter_sum(m, q);
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
