#include "session/host/tracepoints.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/session-priv.h"

#define FORMAT_MAX 8192
#define NO_CALL    INT32_MAX

/* One that fires at system calls. */
struct call_event {
	u64 id;
	enum probe_kind kind;
	s32 nr;
	char name[80];            /* below the events directory */
	struct tp_format *format; /* NULL: nobody has asked yet */
};

/* They tell of an execve, with the names of files. */
static const char *const exec_names[] = {"sched/sched_process_exec", "sched/sched_prepare_exec"};

struct tracepoints {
	const char *events; /* the directory */
	struct call_event *event;
	u32 nr, room;
	struct exec_event {
		u64 id; /* 0: the machine has none */
		struct tp_format format;
	} exec[ARRAY_SIZE(exec_names)];
};

static const struct call_name {
	const char *name;
	s32 nr;
} call_names[] = {
#define CALL(name, nr) {#name, nr},
#include "session/call-names.h"
#undef CALL
};

static s32 call_number(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(call_names); i++)
		if (!strcmp(call_names[i].name, name))
			return call_names[i].nr;
	return NO_CALL;
}

static ssize_t read_file(const struct tracepoints *t, const char *name, const char *file, char *to,
			 size_t size)
{
	char path[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", t->events, name, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, to, size - 1);
	close(fd);
	if (n >= 0)
		to[n] = '\0';
	return n;
}

static int add(struct tracepoints *t, const char *system, const char *name, enum probe_kind kind,
	       s32 nr)
{
	struct call_event *e;
	char text[32];

	if (t->nr == t->room) {
		u32 room = t->room ? 2 * t->room : 256;

		e = realloc(t->event, room * sizeof(*e));
		if (!e)
			return -ENOMEM;
		t->event = e;
		t->room = room;
	}
	e = &t->event[t->nr];
	*e = (struct call_event){.kind = kind, .nr = nr};
	if ((size_t)snprintf(e->name, sizeof(e->name), "%s/%s", system, name) >= sizeof(e->name) ||
	    read_file(t, e->name, "id", text, sizeof(text)) <= 0)
		return 0;
	e->id = strtoull(text, NULL, 10);
	t->nr++;
	return 0;
}

/* Calls that this CPU's tables do not have never fire. */
static int add_named(struct tracepoints *t, const char *name)
{
	if (!strncmp(name, "sys_enter_", 10))
		return add(t, "syscalls", name, PROBE_CALL_ENTER, call_number(name + 10));
	if (!strncmp(name, "sys_exit_", 9))
		return add(t, "syscalls", name, PROBE_CALL_EXIT, call_number(name + 9));
	return 0;
}

static int find_all(struct tracepoints *t)
{
	static const char *const places[] = {"/sys/kernel/tracing/events",
					     "/sys/kernel/debug/tracing/events"};
	struct dirent *entry;
	char path[256], number[32], text[FORMAT_MAX];
	DIR *dir = NULL;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !dir; i++) {
		t->events = places[i];
		snprintf(path, sizeof(path), "%s/syscalls", t->events);
		dir = opendir(path);
	}
	if (!dir)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(exec_names); i++)
		if (read_file(t, exec_names[i], "id", number, sizeof(number)) > 0 &&
		    read_file(t, exec_names[i], "format", text, sizeof(text)) > 0 &&
		    !tp_format_parse(text, &t->exec[i].format))
			t->exec[i].id = strtoull(number, NULL, 10);
	err = add(t, "raw_syscalls", "sys_enter", PROBE_CALL_ENTER, PROBE_ANY_CALL);
	if (!err)
		err = add(t, "raw_syscalls", "sys_exit", PROBE_CALL_EXIT, PROBE_ANY_CALL);
	while (!err && (entry = readdir(dir)))
		err = add_named(t, entry->d_name);
	closedir(dir);
	return err;
}

static int read_format(struct tracepoints *t, struct call_event *e)
{
	char text[FORMAT_MAX];

	if (e->format)
		return 0;
	if (read_file(t, e->name, "format", text, sizeof(text)) <= 0)
		return -EOPNOTSUPP;
	e->format = malloc(sizeof(*e->format));
	if (!e->format)
		return -ENOMEM;
	if (!tp_format_parse(text, e->format))
		return 0;
	free(e->format);
	e->format = NULL;
	return -EOPNOTSUPP;
}

/* The kernel knows its numbers, whoever may read the directory. */
static bool kernel_has(u64 id)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = PE_ATTR_SIZE_VER5,
		.config = id,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno != EINVAL;
	close(fd);
	return true;
}

int tracepoint_find(void *ctx, u64 id, struct probe_tracepoint *tp)
{
	struct session *s = ctx;
	struct tracepoints *t = s->pmus.tracepoints;
	int err;

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		s->pmus.tracepoints = t;
		err = find_all(t);
		if (err)
			return err;
	}
	for (u32 i = 0; i < t->nr; i++) {
		struct call_event *e = &t->event[i];

		if (e->id != id)
			continue;
		err = read_format(t, e);
		if (err)
			return err;
		*tp = (struct probe_tracepoint){.kind = e->kind, .nr = e->nr, .format = e->format};
		return 0;
	}
	/* Whether it is one of a system call is not known then. */
	if (!t->nr)
		return kernel_has(id) ? -EOPNOTSUPP : -ENOENT;
	*tp = (struct probe_tracepoint){.kind = PROBE_KERNEL};
	return 0;
}

const struct tp_format *tracepoint_exec_format(const struct session *s, u64 id)
{
	const struct tracepoints *t = s->pmus.tracepoints;

	for (size_t i = 0; t && i < ARRAY_SIZE(t->exec); i++)
		if (t->exec[i].id == id)
			return &t->exec[i].format;
	return NULL;
}

void tracepoints_free(struct tracepoints *t)
{
	for (u32 i = 0; t && i < t->nr; i++)
		free(t->event[i].format);
	if (t)
		free(t->event);
	free(t);
}
