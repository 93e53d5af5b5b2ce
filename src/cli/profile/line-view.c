#include "cli/profile/line-view.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sym/function-table.h"

struct line_object {
	char *path;                   /* owned */
	struct function_table *table; /* owned; NULL: it is no such file */
	struct line_object *next;
};

static struct function_table *table_of(struct line_view *v, const char *path)
{
	struct line_object *o = v->objects;

	while (o && strcmp(o->path, path) != 0)
		o = o->next;
	if (!o) {
		o = calloc(1, sizeof(*o));
		CHECK(o);
		o->path = strdup(path);
		CHECK(o->path);
		o->table = function_table_load(path);
		o->next = v->objects;
		v->objects = o;
	}
	return o->table;
}

static void look(struct line_view *v, struct reading *r, u32 pid, u64 addr)
{
	struct function_table *t;
	struct sym_module m;

	v->file = NULL;
	v->line = 0;
	if (!sym_view_module(r->view, pid, addr, &m) || m.bytes)
		return;
	t = table_of(v, m.path);
	if (!t || !function_table_line(t, addr - m.bias, &v->file, &v->line)) {
		v->file = NULL;
		v->line = 0;
	}
}

void line_view_find(struct line_view *v, struct reading *r, u32 pid, u64 addr, const char **file,
		    u32 *line)
{
	u64 generation = sym_view_generation(r->view, pid);

	if (v->pid != pid || v->addr != addr || v->generation != generation) {
		look(v, r, pid, addr);
		v->pid = pid;
		v->addr = addr;
		v->generation = generation;
	}
	*file = v->file;
	*line = v->line;
}

void line_view_release(struct line_view *v)
{
	while (v->objects) {
		struct line_object *o = v->objects;

		v->objects = o->next;
		function_table_free(o->table);
		free(o->path);
		free(o);
	}
}
