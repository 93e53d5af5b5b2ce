/*
 * libdw by dlopen (dwfl.h). A file is told to it at the addresses that it has itself; its
 * debug file is the one that we name, for libdw's own search may ask servers.
 */
#include "sym/line-reader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sym/dwfl.h"
#include "sym/line-tables.h"

typedef struct Dwfl_Line Dwfl_Line;
typedef struct Dwarf Dwarf;
typedef struct Dwarf_Die Dwarf_Die;
typedef struct Dwarf_Line Dwarf_Line;
typedef struct Dwarf_Aranges Dwarf_Aranges;
typedef struct Dwarf_Arange Dwarf_Arange;

static struct {
	void *lib;
	bool tried;
	Dwfl *(*begin)(const struct dwfl_callbacks *callbacks);
	void (*end)(Dwfl *dwfl);
	Dwfl_Module *(*report_elf)(Dwfl *dwfl, const char *name, const char *file, int fd, u64 base,
				   bool add_vaddr);
	int (*report_end)(Dwfl *dwfl, void *removed, void *arg);
	Dwfl_Line *(*getsrc)(Dwfl_Module *mod, u64 addr);
	const char *(*comp_dir)(Dwfl_Line *line);
	const char *(*lineinfo)(Dwfl_Line *line, u64 *addr, int *nr, int *column, u64 *mtime,
				u64 *length);
	Dwarf *(*getdwarf)(Dwfl_Module *mod, u64 *bias);
	Dwarf_Die *(*nextcu)(Dwfl_Module *mod, Dwarf_Die *last, u64 *bias);
	int (*getsrclines)(Dwarf_Die *cu, size_t *nr);
	Dwfl_Line *(*onesrcline)(Dwarf_Die *cu, size_t i);
	Dwarf_Line *(*dwarf_line)(Dwfl_Line *line, u64 *bias);
	int (*lineendsequence)(Dwarf_Line *line, bool *is);
	int (*getaranges)(Dwarf *dwarf, Dwarf_Aranges **ranges, size_t *nr);
	Dwarf_Arange *(*onearange)(Dwarf_Aranges *ranges, size_t i);
	Dwarf_Arange *(*getarange_addr)(Dwarf_Aranges *ranges, u64 addr);
	int (*getarangeinfo)(Dwarf_Arange *range, u64 *addr, u64 *len, u64 *offset);
	u64 (*dieoffset)(Dwarf_Die *die);
	int (*haspc)(Dwarf_Die *die, u64 pc);
} dw;

/* The name of a file that DWARF tells relative to where its unit was compiled. */
struct joined_name {
	const char *dir, *name; /* libdw's own, which stay where they are */
	char *path;             /* owned */
};

/* A row of a line table: what begins there; line NULL: nothing does. */
struct line_row {
	u64 addr;
	u32 nth;
	Dwfl_Line *line;
};

struct line_reader {
	struct line_tables *tables; /* owned; NULL: what is asked for comes from libdwfl */
	Dwfl *dwfl;
	Dwfl_Module *mod;
	struct joined_name *joined; /* open addressing; owned */
	u32 room, nr;
	struct line_row *row; /* those of units without ranges, by address; owned */
	size_t nr_rows, row_room;
	bool rows_tried;
};

static int find_no_elf(Dwfl_Module *mod, void **user, const char *name, u64 base, char **file,
		       void **elf)
{
	(void)mod;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

/* The debug file of the module; that of the reader which is being made. */
static const char *debug_of_new;

static int find_debuginfo(Dwfl_Module *mod, void **user, const char *name, u64 base,
			  const char *file, const char *link, u32 crc, char **debug_file)
{
	(void)mod;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)link;
	(void)crc;
	if (!debug_of_new)
		return -1;
	*debug_file = strdup(debug_of_new);
	return *debug_file ? open(debug_of_new, O_RDONLY | O_CLOEXEC) : -1;
}

static const struct dwfl_callbacks callbacks = {
	.find_elf = find_no_elf,
	.find_debuginfo = find_debuginfo,
};

/* C has no cast from an object pointer to a function's; POSIX promises that this works. */
#define RESOLVE(member, symbol) (*(void **)&dw.member = dlsym(dw.lib, symbol))

bool line_reader_works(void)
{
	if (dw.tried)
		return dw.lib;
	dw.tried = true;
	dw.lib = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	if (dw.lib && RESOLVE(begin, "dwfl_begin") && RESOLVE(end, "dwfl_end") &&
	    RESOLVE(report_elf, "dwfl_report_elf") && RESOLVE(report_end, "dwfl_report_end") &&
	    RESOLVE(getsrc, "dwfl_module_getsrc") && RESOLVE(lineinfo, "dwfl_lineinfo") &&
	    RESOLVE(comp_dir, "dwfl_line_comp_dir") && RESOLVE(getdwarf, "dwfl_module_getdwarf") &&
	    RESOLVE(nextcu, "dwfl_module_nextcu") && RESOLVE(getsrclines, "dwfl_getsrclines") &&
	    RESOLVE(onesrcline, "dwfl_onesrcline") && RESOLVE(dwarf_line, "dwfl_dwarf_line") &&
	    RESOLVE(lineendsequence, "dwarf_lineendsequence") &&
	    RESOLVE(getaranges, "dwarf_getaranges") && RESOLVE(onearange, "dwarf_onearange") &&
	    RESOLVE(getarange_addr, "dwarf_getarange_addr") &&
	    RESOLVE(getarangeinfo, "dwarf_getarangeinfo") &&
	    RESOLVE(dieoffset, "dwarf_dieoffset") && RESOLVE(haspc, "dwarf_haspc"))
		return true;
	if (dw.lib)
		dlclose(dw.lib);
	dw.lib = NULL;
	return false;
}

struct line_reader *line_reader_new(const char *path, const char *debug, const struct elf_file *im)
{
	struct line_reader *r;
	int fd;

	if (!line_reader_works())
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r && im)
		r->tables = line_tables_new(dw.lib, im);
	if (!r || r->tables)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	r->dwfl = fd >= 0 ? dw.begin(&callbacks) : NULL;
	if (r->dwfl)
		r->mod = dw.report_elf(r->dwfl, path, path, fd, 0, true);
	if (!r->mod) {
		if (fd >= 0)
			close(fd);
		line_reader_free(r);
		return NULL;
	}
	(void)dw.report_end(r->dwfl, NULL, NULL);
	/* It is looked for with the first question. */
	debug_of_new = debug;
	(void)dw.getsrc(r->mod, 0);
	debug_of_new = NULL;
	return r;
}

void line_reader_free(struct line_reader *r)
{
	if (!r)
		return;
	line_tables_free(r->tables);
	if (r->dwfl)
		dw.end(r->dwfl);
	for (u32 i = 0; i < r->room; i++)
		free(r->joined[i].path);
	free(r->joined);
	free(r->row);
	free(r);
}

static int by_offset(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The units that ranges tell of, by offset; to be freed. NULL: there are none, or no memory. */
static u64 *units_with_ranges(Dwarf *dwarf, size_t *nr)
{
	Dwarf_Aranges *ranges = NULL;
	u64 *offset, addr, len;

	*nr = 0;
	if (dw.getaranges(dwarf, &ranges, nr) || !*nr)
		return NULL;
	offset = calloc(*nr, sizeof(*offset));
	for (size_t i = 0; offset && i < *nr; i++)
		(void)dw.getarangeinfo(dw.onearange(ranges, i), &addr, &len, &offset[i]);
	if (offset)
		qsort(offset, *nr, sizeof(*offset), by_offset);
	return offset;
}

static bool add_row(struct line_reader *r, Dwfl_Line *line)
{
	struct line_row *row;
	bool ends = false;
	u64 bias;

	if (r->nr_rows == r->row_room) {
		size_t room = r->row_room ? r->row_room * 2 : 1024;
		struct line_row *more = realloc(r->row, room * sizeof(*more));

		if (!more)
			return false;
		r->row = more;
		r->row_room = room;
	}
	row = &r->row[r->nr_rows];
	*row = (struct line_row){.nth = (u32)r->nr_rows, .line = line};
	if (!dw.lineinfo(line, &row->addr, NULL, NULL, NULL, NULL))
		return true;
	(void)dw.lineendsequence(dw.dwarf_line(line, &bias), &ends);
	if (ends)
		row->line = NULL;
	r->nr_rows++;
	return true;
}

/*
 * Whether the last row, of @cu, is of no instruction: behind the last one of a sequence, whose end
 * libdw has put in front of it.
 */
static bool is_empty(const struct line_reader *r, Dwarf_Die *cu, u64 bias)
{
	const struct line_row *row = &r->row[r->nr_rows - 1];

	return r->nr_rows > 1 && row->line && !row[-1].line && row[-1].addr == row->addr &&
	       !dw.haspc(cu, row->addr - bias);
}

/* What ends at an address comes before what begins there. */
static int by_addr(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (!x->line != !y->line)
		return x->line ? 1 : -1;
	return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/*
 * libdw before 0.189 finds a unit by .debug_aranges alone, which clang does not write. The lines of
 * units that it does not find are gathered here.
 */
static void gather_rows(struct line_reader *r)
{
	Dwarf_Die *cu = NULL;
	size_t nr_known, n;
	Dwarf *dwarf;
	u64 *known, bias;

	r->rows_tried = true;
	dwarf = dw.getdwarf(r->mod, &bias);
	if (!dwarf)
		return;
	known = units_with_ranges(dwarf, &nr_known);
	while ((cu = dw.nextcu(r->mod, cu, &bias))) {
		u64 offset = dw.dieoffset(cu);

		if ((known && bsearch(&offset, known, nr_known, sizeof(offset), by_offset)) ||
		    dw.getsrclines(cu, &n))
			continue;
		for (size_t i = 0; i < n; i++) {
			if (!add_row(r, dw.onesrcline(cu, i)))
				break;
			if (r->nr_rows && is_empty(r, cu, bias))
				r->nr_rows--;
		}
	}
	free(known);
	if (r->nr_rows)
		qsort(r->row, r->nr_rows, sizeof(*r->row), by_addr);
}

/* The last row that begins at @addr or before. */
static Dwfl_Line *find_row(struct line_reader *r, u64 addr)
{
	size_t low = 0, high;

	if (!r->rows_tried)
		gather_rows(r);
	for (high = r->nr_rows; low < high;) {
		size_t mid = low + (high - low) / 2;

		if (r->row[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? r->row[low - 1].line : NULL;
}

static struct joined_name *slot_of(const struct line_reader *r, const char *dir, const char *name)
{
	u32 i = (u32)(((u64)(uintptr_t)dir * 31 + (u64)(uintptr_t)name) * 0x9e3779b97f4a7c15ull >>
		      32);

	while (r->joined[i & (r->room - 1)].path && (r->joined[i & (r->room - 1)].dir != dir ||
						     r->joined[i & (r->room - 1)].name != name))
		i++;
	return &r->joined[i & (r->room - 1)];
}

static bool grow(struct line_reader *r)
{
	struct line_reader more = {.room = r->room ? r->room * 2 : 64};

	more.joined = calloc(more.room, sizeof(*more.joined));
	if (!more.joined)
		return false;
	for (u32 i = 0; i < r->room; i++)
		if (r->joined[i].path)
			*slot_of(&more, r->joined[i].dir, r->joined[i].name) = r->joined[i];
	free(r->joined);
	r->joined = more.joined;
	r->room = more.room;
	return true;
}

static const char *join(struct line_reader *r, const char *dir, const char *name)
{
	struct joined_name *slot;
	char *path;

	if (r->nr * 2 >= r->room && !grow(r))
		return name;
	slot = slot_of(r, dir, name);
	if (slot->path)
		return slot->path;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return name;
	*slot = (struct joined_name){dir, name, path};
	r->nr++;
	return path;
}

/*
 * Whether .debug_aranges, if there is one, has @addr. libdwfl takes what lies between two ranges of
 * a unit for the unit's, and an empty row at the end of the former for what is executed there.
 */
static bool is_in_range(const struct line_reader *r, u64 addr)
{
	Dwarf_Aranges *ranges;
	size_t nr;
	u64 bias;
	Dwarf *dwarf = dw.getdwarf(r->mod, &bias);

	return !dwarf || dw.getaranges(dwarf, &ranges, &nr) || !nr ||
	       dw.getarange_addr(ranges, addr - bias);
}

/* By libdwfl. */
static bool find_line(struct line_reader *r, u64 addr, const char **name, const char **dir,
		      u32 *line)
{
	Dwfl_Line *found = dw.getsrc(r->mod, addr);
	int nr = 0;

	if (!found || !is_in_range(r, addr))
		found = find_row(r, addr);
	*name = found ? dw.lineinfo(found, NULL, &nr, NULL, NULL, NULL) : NULL;
	if (!*name || nr <= 0)
		return false;
	*dir = dw.comp_dir(found);
	*line = (u32)nr;
	return true;
}

bool line_reader_find(struct line_reader *r, u64 addr, const char **file, u32 *line)
{
	const char *name, *dir;

	if (r->tables ? !line_tables_find(r->tables, addr, &name, &dir, line)
		      : !find_line(r, addr, &name, &dir, line))
		return false;
	*file = dir && name[0] != '/' ? join(r, dir, name) : name;
	return true;
}
