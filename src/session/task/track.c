/* Names, namespaces and mappings of guests [REC-01, REC-03, REC-09, REC-15]. */
#include "session/task/track.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "session/session-priv.h"
#include "session/task/map-build-id.h"

void track_opened(struct session *s, const struct event *event)
{
	const struct pe_attr *attr = event_attr(event);
	struct guest_process *p;
	struct guest_thread *th;
	u32 watch = s->track_watch;

	if (attr->comm || attr->mmap || attr->mmap_data || s->track_files)
		watch |= WIRE_WATCH_RECORDS;
	if (attr->mmap_data)
		watch |= WIRE_WATCH_DATA;
	if (attr->namespaces)
		watch |= WIRE_WATCH_NAMESPACES;
	if (attr->cgroup)
		watch |= WIRE_WATCH_CGROUPS;
	if (attr->ksymbol || attr->bpf_event || attr->text_poke)
		watch |= WIRE_WATCH_BPF;
	s->track_build_ids |= attr->build_id;
	/* What is written at an end is there when somebody has waited for it. */
	if (attr->comm || attr->mmap || attr->mmap_data || attr->task || attr->inherit_stat ||
	    attr->sample_period)
		watch |= WIRE_WATCH_END;
	if (watch == s->track_watch)
		return;
	s->track_watch = watch;
	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			if (th->task)
				guest_thread_watch(th);
}

void track_named(struct guest_thread *th, bool exec)
{
	const struct meter *m = guest_thread_meter(th);
	char comm[17] = "";

	if (!m || !th->task)
		return;
	/* The guest's memory, which may change meanwhile. */
	for (u32 i = 0; i < 16; i++)
		comm[i] = __atomic_load_n(&m->comm[i], __ATOMIC_RELAXED);
	comm[15] = '\0';
	task_named(th->task, comm, exec);
}

/* What cannot be asked stays 0, as in the kernel's records. */
u32 track_links(void *ctx, struct task *task, struct perf_ns_link_info *links)
{
	static const char *const kinds[NR_NAMESPACES] = {
		[NET_NS_INDEX] = "net",       [UTS_NS_INDEX] = "uts",   [IPC_NS_INDEX] = "ipc",
		[PID_NS_INDEX] = "pid",       [USER_NS_INDEX] = "user", [MNT_NS_INDEX] = "mnt",
		[CGROUP_NS_INDEX] = "cgroup",
	};
	const struct session *s = ctx;
	const struct guest_thread *th = task_host(task);
	char path[64];
	struct stat st;

	if (!(s->track_watch & WIRE_WATCH_NAMESPACES) || !th || th->tid <= 0)
		return 0;
	for (u32 i = 0; i < NR_NAMESPACES; i++) {
		links[i] = (struct perf_ns_link_info){0};
		snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/%s", th->process->pid, th->tid,
			 kinds[i]);
		if (!stat(path, &st))
			links[i] = (struct perf_ns_link_info){.dev = st.st_dev, .ino = st.st_ino};
	}
	return NR_NAMESPACES;
}

void track_namespaces(struct guest_thread *th)
{
	if (th->task)
		task_namespaces(th->task, th->task);
}

/* Where there is no file the kernel has the address as offset, but for its own. */
static void tell_mapping(struct guest_thread *th, const struct proc_range *l, u64 addr, u64 len,
			 u32 prot)
{
	struct task_map map = {
		.addr = addr,
		.len = len,
		.offset = l->ino                      ? l->offset + (addr - l->start)
			  : strcmp(l->name, "[vdso]") ? addr
						      : 0,
		.executable = prot & PROT_EXEC,
		.prot = prot,
		.flags = l->shared ? MAP_SHARED : MAP_PRIVATE,
		.filename = *l->name ? l->name : "//anon",
		.maj = l->major,
		.min = l->minor,
		.ino = l->ino,
	};
	struct elf_build_id id;

	if (!len)
		return;
	if (th->process->s->track_build_ids &&
	    map_build_id(th->process->pid, l->name, l->major, l->minor, l->ino, &id)) {
		map.build_id = id.bytes;
		map.build_id_size = id.size;
	}
	task_mapped(th->task, &map);
}

/* The rest of the file whose code a program begins with: what unwinds its stack, for example. */
static void tell_rest(struct guest_thread *th, FILE *maps, const struct proc_range *code, u64 addr,
		      u64 len)
{
	struct proc_range l;

	rewind(maps);
	while (proc_range_next(maps, &l)) {
		u64 end = addr + len;

		if (l.ino != code->ino || l.major != code->major || l.minor != code->minor)
			continue;
		/*
		 * Nothing of a guest is really executable, so code and what is beside it are one.
		 */
		if (end <= l.start || addr >= l.end) {
			tell_mapping(th, &l, l.start, l.end - l.start, l.prot);
			continue;
		}
		if (addr > l.start)
			tell_mapping(th, &l, l.start, addr - l.start, l.prot);
		if (end < l.end)
			tell_mapping(th, &l, end, l.end - end, l.prot);
	}
}

/* The runtime is still in the call, so what it has mapped is there. */
void track_mapped(struct guest_thread *th, const struct wire_mapped_args *args)
{
	struct proc_range l;
	char path[64];
	FILE *maps;
	bool found = false;

	trace_mapped(th->process);
	if (!th->task)
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", th->process->pid);
	maps = fopen(path, "re");
	if (!maps)
		return;
	while (!found && proc_range_next(maps, &l))
		found = args->addr >= l.start && args->addr < l.end;
	if (found) {
		tell_mapping(th, &l, args->addr, args->len, args->prot);
		if (args->begun && l.ino && th->process->s->track_watch & WIRE_WATCH_DATA)
			tell_rest(th, maps, &l, args->addr, args->len);
	}
	fclose(maps);
}
