#include "sym/symbols.h"

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
#include "sym/plt.h"

struct sym_entry {
	struct sym_symbol pub;
	char *plain; /* its name as people write it; owned, NULL: it was not asked for */
	u32 nth;     /* in the table */
	u8 rank;     /* of several at one address the highest is shown */
};

struct sym_symbols {
	void *map; /* of the file; owned, NULL: none */
	size_t map_len;
	char *text;            /* of the kernel's table; owned, NULL: none */
	struct sym_entry *all; /* sorted by start; owned */
	size_t n, room;
	bool complete;
};

#define MAX_SEGMENTS 64
#define NESTED       8 /* so many symbols are looked at for one that is around others */

struct sym_segments {
	struct elf_segment load[MAX_SEGMENTS];
	u32 n;
};

static bool add(struct sym_symbols *s, u64 start, u64 size, const char *name, const char *module,
		u8 rank)
{
	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 1024;
		struct sym_entry *more = realloc(s->all, room * sizeof(*more));

		if (!more)
			return false;
		s->all = more;
		s->room = room;
	}
	s->all[s->n] =
		(struct sym_entry){{start, start + size, name, module}, NULL, (u32)s->n, rank};
	s->n++;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct sym_entry *x = a, *y = b;

	if (x->pub.start != y->pub.start)
		return x->pub.start < y->pub.start ? -1 : 1;
	return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* Names of C++ and Rust are read when they are shown or compared: a file has tens of thousands. */
static const char *shown_name(struct sym_entry *e)
{
	if (!e->plain && sym_is_mangled(e->pub.name)) {
		e->plain = sym_demangle(e->pub.name);
		if (e->plain)
			e->pub.name = e->plain;
	}
	return e->pub.name;
}

/*
 * perf's choice between names of one address: one that has a size, then global before local before
 * weak, then with fewer underscores in front, then the longer, then the first of the table.
 */
static bool is_better(struct sym_entry *x, struct sym_entry *than)
{
	bool sized_x = x->pub.end > x->pub.start, sized_y = than->pub.end > than->pub.start;
	const char *name_x, *name_y;
	size_t under_x, under_y;

	if (sized_x != sized_y)
		return sized_x;
	if (x->rank != than->rank)
		return x->rank > than->rank;
	name_x = shown_name(x);
	name_y = shown_name(than);
	under_x = strspn(name_x, "_");
	under_y = strspn(name_y, "_");
	if (under_x != under_y)
		return under_x < under_y;
	return strlen(name_x) > strlen(name_y);
}

/* Of the kernel's names of one address perf shows the last, by which its table has it. */
static bool is_later(struct sym_entry *x, struct sym_entry *than)
{
	return x->nth > than->nth;
}

/* One name for each address, and an end for each. */
static void settle(struct sym_symbols *s, bool (*wins)(struct sym_entry *x, struct sym_entry *than))
{
	size_t n = 0;
	u64 reach = 0;

	if (!s->n)
		return;
	qsort(s->all, s->n, sizeof(*s->all), by_start);
	for (size_t i = 0; i < s->n; i++) {
		struct sym_entry best = s->all[i];

		for (; i + 1 < s->n && s->all[i + 1].pub.start == best.pub.start; i++) {
			if (wins(&s->all[i + 1], &best)) {
				free(best.plain);
				best = s->all[i + 1];
			} else {
				free(s->all[i + 1].plain);
			}
		}
		/* A label within a function is no function. */
		if (best.pub.end == best.pub.start && best.pub.start < reach) {
			free(best.plain);
			continue;
		}
		reach = max_u64(reach, best.pub.end);
		s->all[n++] = best;
	}
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		struct sym_symbol *sym = &s->all[i].pub;

		if (sym->end != sym->start)
			continue;
		/* Up to the next one, but not over a gap that cannot be it. */
		sym->end = i + 1 < n ? s->all[i + 1].pub.start : sym->start + 4096;
	}
}

static bool is_wanted(const struct elf_file *im, const struct elf_symbol *raw)
{
	struct elf_section in;

	switch (ELF64_ST_TYPE(raw->info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
	case STT_OBJECT: return raw->shndx != SHN_UNDEF && raw->shndx != SHN_ABS;
	case STT_NOTYPE:
		/* A label in code, as assembler sources have them. */
		return raw->shndx != SHN_UNDEF && raw->shndx != SHN_ABS &&
		       elf_file_section(im, raw->shndx, &in) && (in.flags & SHF_EXECINSTR);
	default: return false;
	}
}

/* A table that is read. */
struct reading_table {
	struct sym_symbols *to;
	const struct elf_file *im;
};

static int add_symbol(const struct elf_symbol *raw, const char *name, void *data)
{
	const struct reading_table *r = data;
	u8 bind = ELF64_ST_BIND(raw->info);

	/* "$x" and "$d" mark code and data of arm64. */
	if (!is_wanted(r->im, raw) || name[0] == '$' || raw->size > UINT64_MAX - raw->value)
		return 0;
	return add(r->to, raw->value, raw->size, name, NULL,
		   bind == STB_GLOBAL ? 2
		   : bind == STB_WEAK ? 0
				      : 1)
		       ? 0
		       : -ENOMEM;
}

/* The first table of @type, if there is one. */
static bool read_type(struct sym_symbols *s, const struct elf_file *im, u32 type)
{
	struct reading_table r = {s, im};
	struct elf_section table;

	for (u32 i = 0; elf_file_section(im, i, &table); i++)
		if (table.type == type)
			return !elf_file_each_symbol(im, &table, add_symbol, &r);
	return true;
}

/* Owns @name then. */
static bool add_slot(void *to, u64 start, u64 size, char *name)
{
	struct sym_symbols *s = to;

	if (!add(s, start, size, name, NULL, 0)) {
		free(name);
		return false;
	}
	s->all[s->n - 1].plain = name;
	return true;
}

/* Slots are read from the file that runs: a debug file has no bytes of such sections. */
static struct sym_symbols *load_image(const struct elf_file *im, const struct elf_file *running)
{
	struct sym_symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	if (!read_type(s, im, SHT_SYMTAB))
		goto fail;
	s->complete = s->n;
	if (!s->n && !read_type(s, im, SHT_DYNSYM))
		goto fail;
	if (!sym_plt_slots(running, add_slot, s))
		goto fail;
	settle(s, is_better);
	if (s->n)
		return s;
fail:
	sym_symbols_free(s);
	return NULL;
}

/* @running: the file that runs, if @path is only its debug file. */
static struct sym_symbols *load_files(const char *path, const char *running,
				      const struct elf_build_id *id)
{
	struct sym_symbols *s = NULL;
	struct elf_file im, other;
	const void *map, *other_map = NULL;
	size_t len, other_len;

	if (!elf_build_id_is(path, id))
		return NULL;
	map = sym_map_file(path, &len);
	if (!map)
		return NULL;
	if (running && elf_build_id_is(running, id))
		other_map = sym_map_file(running, &other_len);
	if (elf_file_open(&im, map, len))
		s = load_image(&im, other_map && elf_file_open(&other, other_map, other_len)
					    ? &other
					    : &im);
	if (other_map)
		munmap((void *)other_map, other_len);
	if (!s) {
		munmap((void *)map, len);
		return NULL;
	}
	s->map = (void *)map;
	s->map_len = len;
	return s;
}

struct sym_symbols *sym_symbols_load(const char *path, const struct elf_build_id *id)
{
	return load_files(path, NULL, id);
}

struct sym_symbols *sym_symbols_load_debug(const char *path, const char *running,
					   const struct elf_build_id *id)
{
	return load_files(path, running, id);
}

struct sym_symbols *sym_symbols_of_bytes(const void *bytes, size_t len)
{
	struct elf_file im;

	return elf_file_open(&im, bytes, len) ? load_image(&im, &im) : NULL;
}

/* All of a file whose size is not known before; ends with a NUL. */
static char *slurp(const char *path)
{
	/* Anybody may put something into /tmp that never answers, or never ends. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool is_file = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	size_t room = 1 << 20, len = 0;
	char *text = is_file ? malloc(room + 1) : NULL;
	ssize_t n = 0;

	while (text && (n = read(fd, text + len, room - len)) > 0) {
		len += (size_t)n;
		if (len == room) {
			char *more = realloc(text, room * 2 + 1);

			if (!more) {
				n = -1;
				break;
			}
			text = more;
			room *= 2;
		}
	}
	if (fd >= 0)
		close(fd);
	if (text && n < 0) {
		free(text);
		return NULL;
	}
	if (text)
		text[len] = 0;
	return text;
}

/* "ffffffff81000000 T _text" or "... t ext4_init\t[ext4]". */
static bool read_kernel_line(struct sym_symbols *s, char *line)
{
	char *end, *name, *module;
	u64 addr = strtoull(line, &end, 16);
	char type = end[0] == ' ' ? end[1] : 0;

	if (!addr || !type || !strchr("tTwW", type) || end[2] != ' ')
		return true;
	name = end + 3;
	module = strchr(name, '\t');
	if (module)
		*module++ = 0;
	if (!*name)
		return true;
	return add(s, addr, 0, name, module, 0);
}

struct sym_symbols *sym_symbols_of_kernel(const char *path)
{
	struct sym_symbols *s = calloc(1, sizeof(*s));
	char *line;
	bool ok = true;

	if (!s)
		return NULL;
	s->text = slurp(path);
	for (line = s->text; ok && line && *line;) {
		char *next = strchr(line, '\n');

		if (next)
			*next++ = 0;
		ok = read_kernel_line(s, line);
		line = next;
	}
	settle(s, is_later);
	if (ok && s->n)
		return s;
	sym_symbols_free(s);
	return NULL;
}

/* "7f1234 20 lazy:fib": start and size in hexadecimal, and a name up to the end of the line. */
struct sym_symbols *sym_symbols_of_jit(const char *path)
{
	struct sym_symbols *s = calloc(1, sizeof(*s));
	bool ok = true;

	if (!s)
		return NULL;
	s->text = slurp(path);
	for (char *line = s->text; ok && line && *line;) {
		char *next = strchr(line, '\n'), *end;
		u64 start, size;

		if (next)
			*next++ = 0;
		start = strtoull(line, &end, 16);
		size = strtoull(end, &end, 16);
		if (*end == ' ' && end[1] && size <= UINT64_MAX - start)
			ok = add(s, start, size, end + 1, NULL, 0);
		line = next;
	}
	settle(s, is_better);
	if (ok && s->n)
		return s;
	sym_symbols_free(s);
	return NULL;
}

void sym_symbols_free(struct sym_symbols *s)
{
	if (!s)
		return;
	if (s->map)
		munmap(s->map, s->map_len);
	for (size_t i = 0; i < s->n; i++)
		free(s->all[i].plain);
	free(s->text);
	free(s->all);
	free(s);
}

static const struct sym_symbol *shown(struct sym_entry *e)
{
	(void)shown_name(e);
	return &e->pub;
}

const struct sym_symbol *sym_symbols_find(struct sym_symbols *s, u64 addr)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->all[mid].pub.start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	/* The one that begins last, or one around it. */
	for (size_t i = low; i > 0 && low - i < NESTED; i--)
		if (addr < s->all[i - 1].pub.end)
			return shown(&s->all[i - 1]);
	return NULL;
}

u64 sym_symbols_address(const struct sym_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->all[i].pub.name, name))
			return s->all[i].pub.start;
	return 0;
}

bool sym_symbols_complete(const struct sym_symbols *s)
{
	return s->complete;
}

size_t sym_symbols_count(const struct sym_symbols *s)
{
	return s->n;
}

struct sym_segments *sym_segments_of_bytes(const void *bytes, size_t len)
{
	struct sym_segments *s = calloc(1, sizeof(*s));
	struct elf_file im;
	struct elf_segment p;

	if (!s || !elf_file_open(&im, bytes, len)) {
		free(s);
		return NULL;
	}
	for (u32 i = 0; s->n < MAX_SEGMENTS && elf_file_segment(&im, i, &p); i++)
		if (p.type == PT_LOAD)
			s->load[s->n++] = p;
	return s;
}

struct sym_segments *sym_segments_load(const char *path)
{
	size_t len;
	const void *map = sym_map_file(path, &len);
	struct sym_segments *s;

	if (!map)
		return NULL;
	s = sym_segments_of_bytes(map, len);
	munmap((void *)map, len);
	return s;
}

bool sym_segments_memory(const struct sym_segments *s, u64 pgoff, u64 into, u64 *addr)
{
	for (u32 i = 0; i < s->n; i++) {
		const struct elf_segment *p = &s->load[i];
		u64 at = p->vaddr - p->offset + pgoff + into;

		/* A segment is mapped from the beginning of its first page on, or a part of it. */
		if ((pgoff > p->offset || p->offset - pgoff < 4096) && at >= p->vaddr &&
		    at - p->vaddr < p->memsz) {
			*addr = at;
			return true;
		}
	}
	return false;
}

bool sym_segments_address(const struct sym_segments *s, u64 offset, u64 *addr)
{
	for (u32 i = 0; i < s->n; i++) {
		const struct elf_segment *p = &s->load[i];

		if (offset >= p->offset && offset - p->offset < p->filesz) {
			*addr = offset - p->offset + p->vaddr;
			return true;
		}
	}
	return false;
}
