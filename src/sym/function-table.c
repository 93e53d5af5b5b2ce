#include "sym/function-table.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf-file.h"
#include "sym/debug-file.h"
#include "sym/demangle.h"
#include "sym/line-reader.h"
#include "sym/symbols.h"

struct table_function {
	u64 start, end;
	const char *name; /* of the file */
	char *plain;      /* as it is shown, if that is another; owned, NULL: not asked for yet */
};

struct table_section {
	u64 start, end;
	enum section_kind kind;
};

struct mapped_file {
	void *map; /* owned; NULL: none */
	size_t len;
	struct elf_file im;
};

struct function_table {
	struct mapped_file file, debug;
	char path[512], debug_path[DEBUG_PATH_MAX]; /* the latter of use if `debug` is mapped */
	struct table_function *fn;                  /* by address; owned */
	size_t n, room;
	struct table_section section[16];
	u32 nr_sections;
	struct sym_segments *segments; /* owned */
	struct line_reader *lines;     /* owned; NULL: not asked for, or there are none */
	bool lines_tried;
};

static bool map_file(struct mapped_file *f, const char *path)
{
	f->map = (void *)sym_map_file(path, &f->len);
	if (f->map && elf_file_open(&f->im, f->map, f->len))
		return true;
	if (f->map)
		munmap(f->map, f->len);
	f->map = NULL;
	return false;
}

static void unmap_file(struct mapped_file *f)
{
	if (f->map)
		munmap(f->map, f->len);
}

static void read_sections(struct function_table *t)
{
	static const struct {
		const char *name;
		enum section_kind kind;
	} names[] = {
		{".text", SECTION_TEXT}, {".plt", SECTION_PLT},   {".data", SECTION_OTHER},
		{".bss", SECTION_OTHER}, {".got", SECTION_OTHER}, {".got.plt", SECTION_OTHER},
	};
	struct elf_section s;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (elf_file_find(&t->file.im, names[i].name, &s) && s.size <= UINT64_MAX - s.addr)
			t->section[t->nr_sections++] =
				(struct table_section){s.addr, s.addr + s.size, names[i].kind};
}

enum section_kind function_table_section(const struct function_table *t, u64 addr)
{
	for (u32 i = 0; i < t->nr_sections; i++)
		if (addr >= t->section[i].start && addr < t->section[i].end)
			return t->section[i].kind;
	return SECTION_UNKNOWN;
}

static bool is_function(const struct function_table *t, const struct elf_symbol *raw)
{
	u8 type = ELF64_ST_TYPE(raw->info);

	if ((type != STT_FUNC && type != STT_OBJECT && type != STT_GNU_IFUNC) || !raw->size ||
	    !raw->value || raw->shndx == SHN_UNDEF || raw->size > INT32_MAX ||
	    raw->value > UINT64_MAX - raw->size)
		return false;
	switch (function_table_section(t, raw->value)) {
	case SECTION_TEXT: return true;
	case SECTION_UNKNOWN: return type != STT_OBJECT;
	default: return false;
	}
}

static int add_function(const struct elf_symbol *raw, const char *name, void *data)
{
	struct function_table *t = data;

	if (!is_function(t, raw))
		return 0;
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 1024;
		struct table_function *more = realloc(t->fn, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->fn = more;
		t->room = room;
	}
	t->fn[t->n++] = (struct table_function){raw->value, raw->value + raw->size, name, NULL};
	return 0;
}

static bool read_tables(struct function_table *t, const struct elf_file *im)
{
	struct elf_section s;

	for (u32 i = 0; elf_file_section(im, i, &s); i++)
		if ((s.type == SHT_SYMTAB || s.type == SHT_DYNSYM) &&
		    elf_file_each_symbol(im, &s, add_function, t))
			return false;
	return true;
}

/*
 * Of several names of one range: the shorter one without its version, then one that has a version,
 * then the first of the alphabet.
 */
static int compare_names(const char *a, const char *b)
{
	size_t n = strcspn(a, "@"), m = strcspn(b, "@");

	if (n != m)
		return n < m ? -1 : 1;
	if (!a[n] != !b[m])
		return a[n] ? -1 : 1;
	return strcmp(a, b);
}

static int by_range(const void *a, const void *b)
{
	const struct table_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return compare_names(x->name, y->name);
}

/*
 * One function for each byte. Of two that overlap the first ends where the second begins; of two
 * that begin together the longer one begins where the shorter one ends.
 */
static void settle(struct function_table *t)
{
	for (bool again = t->n > 0; again;) {
		size_t n = 0;

		again = false;
		qsort(t->fn, t->n, sizeof(*t->fn), by_range);
		for (size_t i = 0; i < t->n; i++) {
			struct table_function *last = n ? &t->fn[n - 1] : NULL, f = t->fn[i];

			if (last && last->start == f.start && last->end == f.end)
				continue;
			if (last && last->start == f.start) {
				f.start = last->end;
				again = true;
			} else if (last && last->end > f.start) {
				last->end = f.start;
				again = true;
			}
			t->fn[n++] = f;
		}
		t->n = n;
	}
}

struct function_table *function_table_load(const char *path)
{
	struct function_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	snprintf(t->path, sizeof(t->path), "%s", path);
	if (!map_file(&t->file, path)) {
		free(t);
		return NULL;
	}
	read_sections(t);
	if (sym_debug_file(path, NULL, t->debug_path))
		(void)map_file(&t->debug, t->debug_path);
	t->segments = sym_segments_load(path);
	if (!t->segments || !read_tables(t, &t->file.im) ||
	    (t->debug.map && !read_tables(t, &t->debug.im))) {
		function_table_free(t);
		return NULL;
	}
	settle(t);
	return t;
}

void function_table_free(struct function_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free(t->fn[i].plain);
	free(t->fn);
	free(t->segments);
	line_reader_free(t->lines);
	unmap_file(&t->file);
	unmap_file(&t->debug);
	free(t);
}

static bool is_below_main(const char *name)
{
	static const char *const names[] = {"__libc_start_main", "__libc_start_call_main",
					    "generic_start_main", "_start"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(name, names[i], n) &&
		    (!name[n] || (i != 3 && i != 1 && name[n] == '.')))
			return true;
	}
	return false;
}

bool function_table_find(struct function_table *t, u64 addr, struct function_entry *f)
{
	size_t low = 0, high = t->n;
	struct table_function *e;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->fn[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr >= t->fn[low - 1].end)
		return false;
	e = &t->fn[low - 1];
	*f = (struct function_entry){e->start, e->end, e->name};
	if (is_below_main(e->name)) {
		f->name = "(below main)";
		return true;
	}
	if (!e->plain)
		e->plain = sym_demangle_whole(e->name);
	if (e->plain)
		f->name = e->plain;
	return true;
}

bool function_table_address(const struct function_table *t, u64 offset, u64 *addr)
{
	return sym_segments_address(t->segments, offset, addr);
}

bool function_table_line(struct function_table *t, u64 addr, const char **file, u32 *line)
{
	if (!t->lines_tried) {
		t->lines_tried = true;
		t->lines = line_reader_new(t->path, t->debug.map ? t->debug_path : NULL,
					   t->debug.map ? &t->debug.im : &t->file.im);
	}
	return t->lines && line_reader_find(t->lines, addr, file, line);
}
