/* Names and mappings of guests [REC-01, REC-03, REC-09]. */
#include "session/task/track.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "session/session-priv.h"

void track_opened(struct session *s, const struct event *event)
{
	const struct pe_attr *attr = event_attr(event);
	struct guest_process *p;
	struct guest_thread *th;
	u32 watch = s->track_watch;

	if (attr->comm || attr->mmap || attr->mmap_data)
		watch |= WIRE_WATCH_RECORDS;
	if (attr->mmap_data)
		watch |= WIRE_WATCH_DATA;
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

/* The line of /proc/PID/maps that is about @addr. What it says is in @map. */
static bool line_of(FILE *maps, u64 addr, struct task_map *map, char *name, size_t size)
{
	char line[4400];

	while (fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset, ino;
		unsigned int maj, min;
		char perm[5];
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perm, &offset,
			   &maj, &min, &ino, &at) < 7 ||
		    addr < start || addr >= end)
			continue;
		map->flags = perm[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
		map->maj = maj;
		map->min = min;
		map->ino = ino;
		snprintf(name, size, "%s", at && line[at] ? line + at : "//anon");
		/* Where there is no file the kernel has the address, but for its own. */
		map->offset = ino ? offset + (addr - start) : strcmp(name, "[vdso]") ? addr : 0;
		return true;
	}
	return false;
}

/* The runtime is still in the call, so what it has mapped is there. */
void track_mapped(struct guest_thread *th, u64 addr, u64 len, u32 prot)
{
	struct task_map map = {
		.addr = addr, .len = len, .prot = prot, .executable = prot & PROT_EXEC};
	char path[64], name[4200];
	FILE *maps;

	if (!th->task)
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", th->process->pid);
	maps = fopen(path, "re");
	if (!maps)
		return;
	map.filename = name;
	if (line_of(maps, addr, &map, name, sizeof(name)))
		task_mapped(th->task, &map);
	fclose(maps);
}
