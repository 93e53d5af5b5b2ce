#include "cli/code-view.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct code_object {
	char *path; /* owned */
	u32 number;
	struct function_table *table; /* owned; NULL: it is no such file */
	struct code_object *next;
};

struct code_map {
	u64 start, end, pgoff;
	struct code_object *object;
};

struct code_process {
	u32 pid;
	struct code_map *map; /* the last one that fits counts; owned */
	u32 nr, room;
	struct code_process *next;
};

struct code_view {
	struct code_object *objects;
	struct code_process *processes;
	u32 nr_objects;
};

static void *must(void *p)
{
	CHECK(p);
	return p;
}

struct code_view *code_view_new(void)
{
	return must(calloc(1, sizeof(struct code_view)));
}

void code_view_free(struct code_view *v)
{
	if (!v)
		return;
	while (v->objects) {
		struct code_object *o = v->objects;

		v->objects = o->next;
		function_table_free(o->table);
		free(o->path);
		free(o);
	}
	while (v->processes) {
		struct code_process *p = v->processes;

		v->processes = p->next;
		free(p->map);
		free(p);
	}
	free(v);
}

static struct code_object *object_of(struct code_view *v, const char *path)
{
	struct code_object *o;

	for (o = v->objects; o; o = o->next)
		if (!strcmp(o->path, path))
			return o;
	o = must(calloc(1, sizeof(*o)));
	o->path = must(strdup(path));
	o->number = ++v->nr_objects;
	if (path[0] == '/')
		o->table = function_table_load(path);
	o->next = v->objects;
	v->objects = o;
	return o;
}

static struct code_process *process_of(struct code_view *v, u32 pid)
{
	struct code_process *p;

	for (p = v->processes; p; p = p->next)
		if (p->pid == pid)
			return p;
	p = must(calloc(1, sizeof(*p)));
	p->pid = pid;
	p->next = v->processes;
	v->processes = p;
	return p;
}

void code_view_map(struct code_view *v, u32 pid, u64 addr, u64 len, u64 pgoff, const char *path)
{
	struct code_process *p = process_of(v, pid);

	if (p->nr == p->room) {
		p->room = p->room ? p->room * 2 : 32;
		p->map = must(realloc(p->map, p->room * sizeof(*p->map)));
	}
	p->map[p->nr++] = (struct code_map){addr, addr + len, pgoff, object_of(v, path)};
}

void code_view_fork(struct code_view *v, u32 pid, u32 parent)
{
	struct code_process *from, *to;

	if (pid == parent)
		return;
	to = process_of(v, pid);
	from = process_of(v, parent);
	to->map = must(realloc(to->map, (from->nr + 1) * sizeof(*to->map)));
	memcpy(to->map, from->map, from->nr * sizeof(*to->map));
	to->nr = from->nr;
	to->room = from->nr + 1;
}

void code_view_exec(struct code_view *v, u32 pid)
{
	process_of(v, pid)->nr = 0;
}

static const struct code_map *map_of(struct code_view *v, u32 pid, u64 pc)
{
	const struct code_process *p = process_of(v, pid);

	for (u32 i = p->nr; i > 0; i--)
		if (pc >= p->map[i - 1].start && pc < p->map[i - 1].end)
			return &p->map[i - 1];
	return NULL;
}

bool code_view_find(struct code_view *v, u32 pid, u64 pc, struct code_place *p)
{
	const struct code_map *m = map_of(v, pid, pc);
	struct function_table *t = m ? m->object->table : NULL;
	struct function_entry f;
	u64 at;

	*p = (struct code_place){.object = "???", .address = pc};
	if (!m)
		return false;
	/* Code without a file is nobody's, as with Valgrind. */
	if (!t || !function_table_address(t, pc - m->start + m->pgoff, &at))
		return true;
	p->object = m->object->path;
	p->address = at;
	p->section = function_table_section(t, at);
	p->region = m->object->number * 4 + (u32)p->section;
	if (function_table_find(t, at, &f)) {
		p->function = f.name;
		p->symbol = pc - at + f.start;
		p->entry = f.start == at;
	}
	return true;
}

void code_view_line(struct code_view *v, u32 pid, u64 pc, struct code_place *p)
{
	const struct code_map *m = map_of(v, pid, pc);
	struct function_table *t = m ? m->object->table : NULL;
	u64 at;

	if (!t || !function_table_address(t, pc - m->start + m->pgoff, &at) ||
	    !function_table_line(t, at, &p->file, &p->line)) {
		p->file = NULL;
		p->line = 0;
	}
}
