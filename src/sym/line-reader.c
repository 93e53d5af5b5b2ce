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

typedef struct Dwfl_Line Dwfl_Line;

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
} dw;

/* The name of a file that DWARF tells relative to where its unit was compiled. */
struct joined_name {
	const char *dir, *name; /* libdw's own, which stay where they are */
	char *path;             /* owned */
};

struct line_reader {
	Dwfl *dwfl;
	Dwfl_Module *mod;
	struct joined_name *joined; /* open addressing; owned */
	u32 room, nr;
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
	    RESOLVE(comp_dir, "dwfl_line_comp_dir"))
		return true;
	if (dw.lib)
		dlclose(dw.lib);
	dw.lib = NULL;
	return false;
}

struct line_reader *line_reader_new(const char *path, const char *debug)
{
	struct line_reader *r;
	int fd;

	if (!line_reader_works())
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r)
		r->dwfl = dw.begin(&callbacks);
	if (r && r->dwfl)
		r->mod = dw.report_elf(r->dwfl, path, path, fd, 0, true);
	if (!r || !r->mod) {
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
	if (r->dwfl)
		dw.end(r->dwfl);
	for (u32 i = 0; i < r->room; i++)
		free(r->joined[i].path);
	free(r->joined);
	free(r);
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

bool line_reader_find(struct line_reader *r, u64 addr, const char **file, u32 *line)
{
	Dwfl_Line *found = dw.getsrc(r->mod, addr);
	const char *name, *dir;
	int nr = 0;

	name = found ? dw.lineinfo(found, NULL, &nr, NULL, NULL, NULL) : NULL;
	if (!name || nr <= 0)
		return false;
	dir = name[0] == '/' ? NULL : dw.comp_dir(found);
	*file = dir ? join(r, dir, name) : name;
	*line = (u32)nr;
	return true;
}
