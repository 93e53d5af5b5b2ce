#include "data/task-log.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define AT_FIRST (1u << 20)

/* A process that has ended. */
struct task_end {
	u32 pid;
	bool wanted; /* by a process that was forked from it */
	size_t at;   /* of its last EXIT */
};

struct task_ends {
	struct task_end *end; /* owned, by pid */
	u32 n;
};

void data_task_log_release(struct data_task_log *log)
{
	free(log->bytes);
	*log = (struct data_task_log){0};
}

bool data_tells_of_tasks(u32 type)
{
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_COMM:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_TEXT_POKE: return true;
	default: return false;
	}
}

static void append(struct data_task_log *log, const void *bytes, size_t len)
{
	if (log->len + len > log->room) {
		size_t room = (log->len + len) * 2;
		u8 *more = realloc(log->bytes, room);

		if (!more)
			return;
		log->bytes = more;
		log->room = room;
	}
	memcpy(log->bytes + log->len, bytes, len);
	log->len += len;
}

void data_task_log_add(struct data_task_log *log, const void *records, size_t len)
{
	const u8 *p = records, *end = p + len;
	struct perf_event_header h;

	for (; (size_t)(end - p) >= sizeof(h); p += h.size) {
		memcpy(&h, p, sizeof(h));
		if (h.size < sizeof(h) || h.size > (size_t)(end - p))
			return;
		if (data_tells_of_tasks(h.type))
			append(log, p, h.size);
	}
}

/* Whose record it is, and in FORK and EXIT the rest; false: nobody's. */
struct task_words {
	u32 pid, ppid, tid, ptid;
};

static bool words_of(const u8 *record, struct perf_event_header *h, struct task_words *w)
{
	size_t len;

	memcpy(h, record, sizeof(*h));
	len = h->size - sizeof(*h);
	*w = (struct task_words){0};
	memcpy(w, record + sizeof(*h), len < sizeof(*w) ? len : sizeof(*w));
	switch (h->type) {
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_TEXT_POKE: return false;
	default: return true;
	}
}

static int by_pid(const void *a, const void *b)
{
	const struct task_end *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The first thread's end may come before the others', which the kernel can tell. */
static bool is_gone(u32 pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

static struct task_ends find_ends(const struct data_task_log *log)
{
	struct task_ends ends = {0};
	struct perf_event_header h;
	struct task_words w;
	u32 n = 0;

	for (size_t at = 0; at < log->settled; at += h.size)
		n += words_of(log->bytes + at, &h, &w) && h.type == PERF_RECORD_EXIT;
	ends.end = n ? calloc(n, sizeof(*ends.end)) : NULL;
	if (!ends.end)
		return ends;
	for (size_t at = 0; at < log->settled; at += h.size)
		if (words_of(log->bytes + at, &h, &w) && h.type == PERF_RECORD_EXIT &&
		    w.pid == w.tid && is_gone(w.pid))
			ends.end[ends.n++] = (struct task_end){.pid = w.pid, .at = at};
	qsort(ends.end, ends.n, sizeof(*ends.end), by_pid);
	/* Of ends of the same number the last one counts. */
	n = 0;
	for (u32 i = 0; i < ends.n; i++)
		if (i + 1 == ends.n || ends.end[i + 1].pid != ends.end[i].pid)
			ends.end[n++] = ends.end[i];
	ends.n = n;
	return ends;
}

static struct task_end *end_of(const struct task_ends *ends, u32 pid)
{
	u32 from = 0, to = ends->n;

	while (from < to) {
		u32 mid = (from + to) / 2;

		if (ends->end[mid].pid < pid)
			from = mid + 1;
		else
			to = mid;
	}
	return from < ends->n && ends->end[from].pid == pid ? &ends->end[from] : NULL;
}

static bool is_kept(const struct task_ends *ends, const u8 *record, size_t at)
{
	struct perf_event_header h;
	struct task_words w;
	struct task_end *end, *parent;

	if (!words_of(record, &h, &w))
		return true;
	end = end_of(ends, w.pid);
	if (end && at <= end->at && !end->wanted)
		return false;
	parent = h.type == PERF_RECORD_FORK && w.ppid != w.pid ? end_of(ends, w.ppid) : NULL;
	if (parent)
		parent->wanted = true;
	return true;
}

void data_task_log_trim(struct data_task_log *log)
{
	struct task_ends ends = find_ends(log);
	struct perf_event_header h;
	size_t *at = NULL, from = 0, to = 0, settled = 0, begun = 0;
	bool *kept = NULL;
	u32 n = 0, i = 0;

	for (size_t p = 0; p < log->len; p += h.size, n++)
		memcpy(&h, log->bytes + p, sizeof(h));
	if (ends.n) {
		at = calloc(n, sizeof(*at));
		kept = calloc(n, sizeof(*kept));
	}
	if (!at || !kept)
		goto out;
	for (size_t p = 0; p < log->len; p += h.size) {
		memcpy(&h, log->bytes + p, sizeof(h));
		at[i++] = p;
	}
	/* Who was forked comes after whom it was forked from. */
	while (i--)
		kept[i] = is_kept(&ends, log->bytes + at[i], at[i]);
	for (i = 0; i < n; i++, from += h.size) {
		memcpy(&h, log->bytes + from, sizeof(h));
		if (!kept[i])
			continue;
		memmove(log->bytes + to, log->bytes + from, h.size);
		to += h.size;
		settled += from < log->settled ? h.size : 0;
		begun += from < log->begun ? h.size : 0;
	}
	log->len = to;
	log->settled = settled;
	log->begun = begun;
out:
	free(kept);
	free(at);
	free(ends.end);
}

void data_task_log_pass(struct data_task_log *log)
{
	log->settled = log->begun;
	log->begun = log->len;
	if (log->len <= (log->limit ? log->limit : AT_FIRST))
		return;
	data_task_log_trim(log);
	log->limit = log->len * 2 > AT_FIRST ? log->len * 2 : AT_FIRST;
}
