#include "sym/symbol-view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/check.h"
#include "sym/debug-file.h"
#include "sym/symbols.h"

#define KERNEL  "[kernel.kallsyms]"
#define JIT_MAP "/tmp/perf-%u.map"

/* A file, or what has a name in brackets. Of one path there is one for each build id. */
struct sym_object {
	char *path; /* owned */
	struct elf_build_id id;
	bool loaded;       /* or tried */
	bool other_build;  /* the file of this name is not what was recorded */
	const void *bytes; /* of the vDSO; borrowed */
	size_t len;
	struct sym_symbols *symbols;   /* owned; NULL: none */
	struct sym_segments *segments; /* owned; NULL: none */
	s64 shift; /* of the kernel: where it runs now, less where it ran when it was recorded */
};

struct sym_map {
	u64 start, end, pgoff;
	struct sym_object *object;
};

struct sym_process {
	u32 pid;
	u64 generation;       /* counts what was mapped over something else */
	struct sym_map *maps; /* sorted, without overlaps; owned */
	u32 nr, room;
};

struct sym_thread {
	u32 tid;
	char comm[64];
};

/* Pointers by a number or a text, in open addressing; grown by doubling. */
struct sym_table {
	void **at; /* owned */
	u32 room, nr;
};

struct sym_view {
	struct sym_table processes, threads, objects;
	struct sym_process kernel;
	struct sym_symbols *kallsyms; /* owned; NULL: not loaded, or not to be had */
	bool kallsyms_tried;
	struct elf_build_id kernel_id; /* as recorded */
};

static void *must(void *p)
{
	CHECK(p); /* what a few thousand names need is always there */
	return p;
}

static u32 hash_number(u32 n)
{
	return n * 2654435761u >> 7;
}

static u32 hash_text(const char *text)
{
	u32 hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 16777619u;
	return hash;
}

static u32 hash_of_process(const void *p)
{
	return hash_number(((const struct sym_process *)p)->pid);
}

static u32 hash_of_thread(const void *p)
{
	return hash_number(((const struct sym_thread *)p)->tid);
}

static u32 hash_of_object(const void *p)
{
	return hash_text(((const struct sym_object *)p)->path);
}

static void put(struct sym_table *t, void *p, u32 (*hash)(const void *))
{
	u32 i = hash(p) & (t->room - 1);

	while (t->at[i])
		i = (i + 1) & (t->room - 1);
	t->at[i] = p;
}

static void add(struct sym_table *t, void *p, u32 (*hash)(const void *))
{
	if (t->nr * 2 >= t->room) {
		struct sym_table old = *t;

		t->room = old.room ? old.room * 2 : 64;
		t->at = must(calloc(t->room, sizeof(*t->at)));
		for (u32 i = 0; i < old.room; i++)
			if (old.at[i])
				put(t, old.at[i], hash);
		free(old.at);
	}
	put(t, p, hash);
	t->nr++;
}

static struct sym_process *process_of(struct sym_view *v, u32 pid, bool make)
{
	struct sym_table *t = &v->processes;
	struct sym_process *p;

	for (u32 i = hash_number(pid); t->room; i++) {
		p = t->at[i & (t->room - 1)];
		if (!p)
			break;
		if (p->pid == pid)
			return p;
	}
	if (!make)
		return NULL;
	p = must(calloc(1, sizeof(*p)));
	p->pid = pid;
	add(t, p, hash_of_process);
	return p;
}

static struct sym_thread *thread_of(const struct sym_view *v, u32 tid)
{
	const struct sym_table *t = &v->threads;

	for (u32 i = hash_number(tid); t->room; i++) {
		struct sym_thread *p = t->at[i & (t->room - 1)];

		if (!p || p->tid == tid)
			return p;
	}
	return NULL;
}

/* The first of @path, if it does not matter which (@id NULL); else that with this build id. */
static struct sym_object *object_of(struct sym_view *v, const char *path,
				    const struct elf_build_id *id)
{
	struct sym_table *t = &v->objects;
	struct sym_object *o;

	for (u32 i = hash_text(path); t->room; i++) {
		o = t->at[i & (t->room - 1)];
		if (!o)
			break;
		if (!strcmp(o->path, path) && (!id || elf_build_id_same(&o->id, id)))
			return o;
	}
	o = must(calloc(1, sizeof(*o)));
	o->path = must(strdup(path));
	if (id)
		o->id = *id;
	add(t, o, hash_of_object);
	return o;
}

struct sym_view *sym_view_new(void)
{
	return calloc(1, sizeof(struct sym_view));
}

void sym_view_free(struct sym_view *v)
{
	if (!v)
		return;
	for (u32 i = 0; i < v->processes.room; i++) {
		struct sym_process *p = v->processes.at[i];

		if (p)
			free(p->maps);
		free(p);
	}
	for (u32 i = 0; i < v->threads.room; i++)
		free(v->threads.at[i]);
	for (u32 i = 0; i < v->objects.room; i++) {
		struct sym_object *o = v->objects.at[i];

		if (!o)
			continue;
		sym_symbols_free(o->symbols);
		free(o->segments);
		free(o->path);
		free(o);
	}
	sym_symbols_free(v->kallsyms);
	free(v->kernel.maps);
	free(v->processes.at);
	free(v->threads.at);
	free(v->objects.at);
	free(v);
}

void sym_view_build_id(struct sym_view *v, const char *path, const u8 *id, u32 size)
{
	struct elf_build_id made = elf_build_id_made(id, size);

	if (!strcmp(path, KERNEL))
		v->kernel_id = made;
	else
		object_of(v, path, NULL)->id = made;
}

static void insert(struct sym_process *p, u32 at, struct sym_map m)
{
	if (p->nr == p->room) {
		p->room = p->room ? p->room * 2 : 16;
		p->maps = must(realloc(p->maps, p->room * sizeof(*p->maps)));
	}
	memmove(p->maps + at + 1, p->maps + at, (p->nr - at) * sizeof(*p->maps));
	p->maps[at] = m;
	p->nr++;
}

/* Takes [start, end) away from what is mapped. */
static void unmap(struct sym_process *p, u64 start, u64 end)
{
	for (u32 i = 0; i < p->nr; i++) {
		struct sym_map *m = &p->maps[i], rest;

		if (m->end <= start || m->start >= end)
			continue;
		p->generation++;
		rest = *m;
		rest.pgoff += end - m->start;
		rest.start = end;
		if (m->start < start) {
			u64 old_end = m->end;

			m->end = start;
			if (old_end > end)
				insert(p, i + 1, rest);
		} else if (m->end > end) {
			*m = rest;
		} else {
			memmove(m, m + 1, (p->nr - i - 1) * sizeof(*m));
			p->nr--;
			i--;
		}
	}
}

/* Memory without a file, in which only a just-in-time compiler has code. */
static bool is_anonymous(const char *path)
{
	return !strcmp(path, "//anon") || !strncmp(path, "/dev/zero", 9) ||
	       !strncmp(path, "/anon_hugepage", 14);
}

/* What has a name and no file: addresses in it are the process's own. */
static bool is_memory(const char *path)
{
	return !strncmp(path, "[heap]", 6) || !strncmp(path, "[stack", 6) ||
	       !strncmp(path, "/SYSV", 5);
}

void sym_view_map(struct sym_view *v, u32 pid, u64 addr, u64 len, u64 pgoff, const char *path,
		  const struct elf_build_id *id)
{
	struct sym_process *p = pid == UINT32_MAX ? &v->kernel : process_of(v, pid, true);
	struct sym_map m = {addr, addr + len, pgoff, NULL};
	char jit[40];
	u32 i = 0;

	if (!len || m.end < addr)
		return;
	if (!strncmp(path, KERNEL, strlen(KERNEL)))
		path = KERNEL;
	if (is_anonymous(path) || is_memory(path))
		m.pgoff = addr;
	if (is_anonymous(path)) {
		snprintf(jit, sizeof(jit), JIT_MAP, pid);
		path = jit;
	}
	m.object = object_of(v, path, id);
	unmap(p, m.start, m.end);
	while (i < p->nr && p->maps[i].start < m.start)
		i++;
	insert(p, i, m);
}

void sym_view_comm(struct sym_view *v, u32 tid, const char *comm)
{
	struct sym_thread *t = thread_of(v, tid);

	if (!t) {
		t = must(calloc(1, sizeof(*t)));
		t->tid = tid;
		add(&v->threads, t, hash_of_thread);
	}
	snprintf(t->comm, sizeof(t->comm), "%s", comm);
}

void sym_view_fork(struct sym_view *v, u32 pid, u32 tid, u32 parent_pid, u32 parent_tid)
{
	struct sym_process *parent = process_of(v, parent_pid, false), *p;
	char name[64];

	snprintf(name, sizeof(name), "%s", sym_view_name(v, parent_tid));
	if (*name)
		sym_view_comm(v, tid, name);
	if (!parent || pid == parent_pid)
		return;
	p = process_of(v, pid, true);
	p->nr = p->room = parent->nr;
	free(p->maps);
	p->maps = must(malloc(p->nr * sizeof(*p->maps) + 1));
	memcpy(p->maps, parent->maps, p->nr * sizeof(*p->maps));
}

const char *sym_view_name(const struct sym_view *v, u32 tid)
{
	const struct sym_thread *t = thread_of(v, tid);

	return t ? t->comm : "";
}

/* How many mappings begin at or below @addr. */
static u32 maps_upto(const struct sym_process *p, u64 addr)
{
	u32 low = 0, high = p ? p->nr : 0;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (p->maps[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static const struct sym_map *map_of(const struct sym_process *p, u64 addr)
{
	u32 n = maps_upto(p, addr);

	return n && addr < p->maps[n - 1].end ? &p->maps[n - 1] : NULL;
}

/* Our own, which is every process's on this kernel. */
static void load_vdso(struct sym_object *o)
{
	const void *at = (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
	unsigned long from, to;
	char line[300];
	FILE *f = at ? fopen("/proc/self/maps", "re") : NULL;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from == (unsigned long)at) {
			o->symbols = sym_symbols_of_bytes(at, to - from);
			o->segments = sym_segments_of_bytes(at, to - from);
			o->bytes = at;
			o->len = to - from;
			break;
		}
	if (f)
		fclose(f);
}

static struct sym_symbols *load_debug_file(const char *running, const struct elf_build_id *id)
{
	char path[DEBUG_PATH_MAX];

	return sym_debug_file(running, id, path) ? sym_symbols_load_debug(path, running, id) : NULL;
}

/* perf keeps copies of what it has recorded. */
static struct sym_symbols *load_cached(const struct elf_build_id *id)
{
	const char *home = getenv("HOME");
	char text[41], path[512];

	if (id->size < 2 || !home)
		return NULL;
	elf_build_id_text(id, text);
	snprintf(path, sizeof(path), "%.400s/.debug/.build-id/%.2s/%s/elf", home, text, text + 2);
	return sym_symbols_load(path, id);
}

static void load(struct sym_object *o)
{
	u32 pid;

	o->loaded = true;
	if (!strcmp(o->path, "[vdso]")) {
		load_vdso(o);
		return;
	}
	if (sscanf(o->path, JIT_MAP, &pid) == 1) {
		o->symbols = sym_symbols_of_jit(o->path);
		return;
	}
	if (o->path[0] != '/')
		return;
	o->symbols = sym_symbols_load(o->path, &o->id);
	o->segments = sym_segments_load(o->path);
	o->other_build = !elf_build_id_is(o->path, &o->id);
	if (!o->symbols || !sym_symbols_complete(o->symbols)) {
		struct sym_symbols *debug = load_debug_file(o->path, &o->id);

		if (debug) {
			sym_symbols_free(o->symbols);
			o->symbols = debug;
		}
	}
	if (!o->symbols)
		o->symbols = load_cached(&o->id);
}

static const struct sym_symbol *kernel_symbol(struct sym_view *v, const struct sym_map *m, u64 addr)
{
	struct elf_build_id running;
	s64 shift = 0;

	if (!v->kallsyms_tried) {
		v->kallsyms_tried = true;
		if (!v->kernel_id.size || !elf_build_id_of_kernel(&running) ||
		    elf_build_id_same(&running, &v->kernel_id))
			v->kallsyms = sym_symbols_of_kernel("/proc/kallsyms");
	}
	if (!v->kallsyms)
		return NULL;
	/* The same kernel may lie elsewhere since it was started anew. */
	if (m && !m->object->loaded && !strcmp(m->object->path, KERNEL) && m->pgoff) {
		u64 text = sym_symbols_address(v->kallsyms, "_text");

		m->object->loaded = true;
		m->object->shift = text ? (s64)(text - m->pgoff) : 0;
	}
	if (m)
		shift = m->object->shift;
	return sym_symbols_find(v->kallsyms, addr + (u64)shift);
}

static void find_kernel(struct sym_view *v, u64 addr, struct sym_place *place)
{
	const struct sym_map *m = map_of(&v->kernel, addr);
	const struct sym_symbol *s = kernel_symbol(v, m, addr);

	place->kernel = true;
	place->addr = addr;
	if (m || s) {
		place->mapped = true;
		place->object = s && s->module ? s->module : m ? m->object->path : KERNEL;
	}
	if (s) {
		place->symbol = s->name;
		place->offset = addr + (u64)(m ? m->object->shift : 0) - s->start;
	}
}

void sym_view_find(struct sym_view *v, u32 pid, u64 addr, bool kernel, struct sym_place *place)
{
	const struct sym_symbol *s = NULL;
	const struct sym_map *m;
	struct sym_object *o;
	u64 at;

	*place = (struct sym_place){.addr = addr, .object = "[unknown]"};
	if (kernel) {
		find_kernel(v, addr, place);
		return;
	}
	m = map_of(process_of(v, pid, false), addr);
	if (!m)
		return;
	o = m->object;
	place->mapped = true;
	place->object = o->path;
	place->addr = addr - m->start + m->pgoff;
	if (!o->loaded)
		load(o);
	if (!o->symbols)
		return;
	if (o->segments ? sym_segments_address(o->segments, place->addr, &at)
			: (at = place->addr, true))
		s = sym_symbols_find(o->symbols, at);
	if (!s)
		return;
	place->symbol = s->name;
	place->offset = at - s->start;
}

static bool has_segments(const struct sym_map *m)
{
	if (!m->object->loaded)
		load(m->object);
	return m->object->segments;
}

/* No file that was linked lies below: so it is the program, and what it is linked with above. */
static bool is_program(const struct sym_process *p, const struct sym_object *o)
{
	for (u32 i = 0; i < p->nr; i++)
		if (has_segments(&p->maps[i]))
			return p->maps[i].object == o;
	return false;
}

/* The .bss of a file lies behind what is mapped of it, in memory of its own. */
static void find_in_segment(const struct sym_process *p, u32 n, u64 addr, struct sym_data *data)
{
	const struct sym_symbol *s;
	u64 at;

	for (; n; n--) {
		const struct sym_map *m = &p->maps[n - 1];
		const struct sym_object *o = m->object;

		if (!has_segments(m))
			continue;
		data->behind_program = !data->mapped && is_program(p, o);
		if (!sym_segments_memory(o->segments, m->pgoff, addr - m->start, &at))
			return;
		data->elf = true;
		data->object = o->path;
		s = o->symbols ? sym_symbols_find(o->symbols, at) : NULL;
		data->symbol = s ? s->name : NULL;
		data->symbol_start = s ? s->start : 0;
		return;
	}
}

void sym_view_data(struct sym_view *v, u32 pid, u64 addr, struct sym_data *data)
{
	const struct sym_process *p = process_of(v, pid, false);
	const struct sym_map *m;
	u32 n, jit;

	*data = (struct sym_data){.end = UINT64_MAX};
	if (!p || !p->maps)
		return;
	n = maps_upto(p, addr);
	m = n ? &p->maps[n - 1] : NULL;
	if (m && addr < m->end) {
		data->mapped = true;
		data->object = m->object->path;
		data->anonymous = sscanf(data->object, JIT_MAP, &jit) == 1;
		data->start = m->start;
		data->end = m->end;
	} else {
		data->start = m ? m->end : 0;
		data->end = n < p->nr ? p->maps[n].start : UINT64_MAX;
		data->topmost = n == p->nr ||
				(n + 1 == p->nr && !strcmp(p->maps[n].object->path, "[vdso]"));
	}
	if (data->anonymous || !data->mapped || data->object[0] == '/')
		find_in_segment(p, n, addr, data);
}

void sym_view_changed(const struct sym_view *v,
		      void (*tell)(const char *path, bool there, void *data), void *data)
{
	for (u32 i = 0; i < v->objects.room; i++) {
		const struct sym_object *o = v->objects.at[i];

		if (o && o->other_build && !o->symbols && o->id.size)
			tell(o->path, !access(o->path, F_OK), data);
	}
}

bool sym_view_module(struct sym_view *v, u32 pid, u64 addr, struct sym_module *m)
{
	const struct sym_map *map = map_of(process_of(v, pid, false), addr);
	struct sym_object *o = map ? map->object : NULL;
	u64 at;

	if (o && !o->loaded)
		load(o);
	if (!o || !o->segments || o->other_build ||
	    !sym_segments_address(o->segments, addr - map->start + map->pgoff, &at))
		return false;
	*m = (struct sym_module){o->path, o->bytes, o->len, addr - at};
	return true;
}

u64 sym_view_generation(struct sym_view *v, u32 pid)
{
	const struct sym_process *p = process_of(v, pid, false);

	return p ? p->generation : 0;
}
