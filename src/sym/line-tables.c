/* libdw by dlopen, as in line-reader.c: the functions of its interface for DWARF itself. */
#include "sym/line-tables.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

typedef struct Elf Elf;
typedef struct Elf_Scn Elf_Scn;
/* As libelf has it. */
typedef struct {
	void *d_buf;
	u32 d_type, d_version;
	size_t d_size;
	s64 d_off;
	size_t d_align;
} Elf_Data;
typedef struct Dwarf Dwarf;
typedef struct Dwarf_CU Dwarf_CU;
typedef struct Dwarf_Files Dwarf_Files;
typedef struct Dwarf_Lines Dwarf_Lines;
typedef struct Dwarf_Line Dwarf_Line;

#define TABLES_MOST (8u << 20) /* bytes: of larger ones libdw reads what is asked for only */
#define FAR         192u /* bytes; no row is of so many, and the code of crt1.o and crtbegin.o is */
#define SECTIONS    3u

static const char *const sections[SECTIONS] = {".debug_line", ".debug_line_str", ".debug_str"};

/* One after the other: the file's header, the sections, their names, their headers. */
struct lines_file {
	Elf64_Ehdr head;
	Elf64_Shdr section[2 + SECTIONS];
	char names[64];
};

/* Addresses one after the other, in a table. By where they begin. */
struct line_sequence {
	u64 start, end;
	Dwarf_Lines *lines;
	const char *dir;    /* where the unit was compiled; NULL: not known */
	size_t first, last; /* of @lines; the last one ends it */
};

struct line_tables {
	void *image; /* owned */
	Elf *elf;
	Dwarf *dwarf;
	struct line_sequence *sequence; /* owned */
	size_t n, room;
	Elf *(*elf_memory)(char *image, size_t size);
	int (*elf_end)(Elf *elf);
	unsigned int (*elf_version)(unsigned int version);
	Elf_Scn *(*getscn)(Elf *elf, size_t i);
	Elf_Data *(*getdata)(Elf_Scn *section, Elf_Data *data);
	Dwarf *(*begin_elf)(Elf *elf, int cmd, void *group);
	int (*end)(Dwarf *dwarf);
	int (*next_lines)(Dwarf *dwarf, u64 offset, u64 *next, Dwarf_CU **cu, Dwarf_Files **files,
			  size_t *nr_files, Dwarf_Lines **lines, size_t *nr_lines);
	int (*getsrcdirs)(Dwarf_Files *files, const char *const **dirs, size_t *n);
	Dwarf_Line *(*onesrcline)(Dwarf_Lines *lines, size_t i);
	int (*lineaddr)(Dwarf_Line *line, u64 *addr);
	int (*lineno)(Dwarf_Line *line, int *nr);
	int (*lineendsequence)(Dwarf_Line *line, bool *ends);
	const char *(*linesrc)(Dwarf_Line *line, u64 *mtime, u64 *length);
};

/* C has no cast from an object pointer to a function's; POSIX promises that this works. */
#define RESOLVE(member, symbol) (*(void **)&t->member = dlsym(libdw, symbol))

static bool resolve(struct line_tables *t, void *libdw)
{
	return RESOLVE(elf_memory, "elf_memory") && RESOLVE(elf_end, "elf_end") &&
	       RESOLVE(elf_version, "elf_version") && RESOLVE(getscn, "elf_getscn") &&
	       RESOLVE(getdata, "elf_getdata") && RESOLVE(begin_elf, "dwarf_begin_elf") &&
	       RESOLVE(end, "dwarf_end") && RESOLVE(next_lines, "dwarf_next_lines") &&
	       RESOLVE(getsrcdirs, "dwarf_getsrcdirs") && RESOLVE(onesrcline, "dwarf_onesrcline") &&
	       RESOLVE(lineaddr, "dwarf_lineaddr") && RESOLVE(lineno, "dwarf_lineno") &&
	       RESOLVE(linesrc, "dwarf_linesrc") &&
	       RESOLVE(lineendsequence, "dwarf_lineendsequence");
}

/* How large a section is when it is decompressed; 0: it is none of the file's. */
static u64 whole_size(const struct elf_file *im, const struct elf_section *s)
{
	Elf64_Chdr head;

	if (s->type == SHT_NOBITS || s->offset > im->len || s->size > im->len - s->offset)
		return 0;
	if (!(s->flags & SHF_COMPRESSED))
		return s->size;
	if (s->size < sizeof(head))
		return 0;
	memcpy(&head, im->bytes + s->offset, sizeof(head));
	return head.ch_size;
}

/* Whether libdw would decompress much that nobody asks for. */
static bool is_worth(const struct elf_file *im)
{
	struct elf_section s;
	u64 size;

	if (!im->is64 || !elf_file_find(im, ".debug_info", &s) || !(s.flags & SHF_COMPRESSED) ||
	    !elf_file_find(im, ".debug_line", &s))
		return false;
	size = whole_size(im, &s);
	return size && size <= TABLES_MOST;
}

/* A file with the sections that tell of lines, as they are; to be freed. NULL: no memory. */
static void *make_file(const struct elf_file *im, size_t *size)
{
	struct lines_file head = {{{0}}};
	struct elf_section s;
	u32 n = 1, names = 1;
	u64 at = sizeof(head);
	u8 *image;

	for (u32 i = 0; i < SECTIONS; i++)
		if (elf_file_find(im, sections[i], &s) && whole_size(im, &s))
			at = ALIGN_UP(at, 16ul) + s.size;
	*size = at;
	image = malloc(at);
	if (!image)
		return NULL;
	memcpy(&head.head, im->bytes, sizeof(head.head));
	at = sizeof(head);
	for (u32 i = 0; i < SECTIONS; i++) {
		if (!elf_file_find(im, sections[i], &s) || !whole_size(im, &s))
			continue;
		at = ALIGN_UP(at, 16ul);
		head.section[n++] = (Elf64_Shdr){.sh_name = names,
						 .sh_type = s.type,
						 .sh_flags = s.flags,
						 .sh_offset = at,
						 .sh_size = s.size,
						 .sh_entsize = s.entsize,
						 .sh_addralign = 8};
		memcpy(head.names + names, sections[i], strlen(sections[i]));
		names += (u32)strlen(sections[i]) + 1;
		memcpy(image + at, im->bytes + s.offset, s.size);
		at += s.size;
	}
	head.section[n++] = (Elf64_Shdr){.sh_name = 0,
					 .sh_type = SHT_STRTAB,
					 .sh_offset = offsetof(struct lines_file, names),
					 .sh_size = sizeof(head.names),
					 .sh_addralign = 1};
	head.head.e_phoff = head.head.e_phnum = head.head.e_entry = 0;
	head.head.e_shoff = offsetof(struct lines_file, section);
	head.head.e_shentsize = sizeof(Elf64_Shdr);
	head.head.e_shnum = (Elf64_Half)n;
	head.head.e_shstrndx = (Elf64_Half)(n - 1);
	memcpy(image, &head, sizeof(head));
	return image;
}

static struct line_sequence *add_sequence(struct line_tables *t)
{
	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 256;
		struct line_sequence *more = realloc(t->sequence, room * sizeof(*more));

		if (!more)
			return NULL;
		t->sequence = more;
		t->room = room;
	}
	return &t->sequence[t->n++];
}

static u64 row_addr(const struct line_tables *t, Dwarf_Lines *lines, size_t i)
{
	u64 addr = 0;

	(void)t->lineaddr(t->onesrcline(lines, i), &addr);
	return addr;
}

/*
 * Where the next sequence begins, of rows from @i up to @end, behind one that has ended at @was. A
 * row of that one may be at the same address, behind the one that ends it; nothing is executed
 * there, and the next row is far away.
 */
static size_t next_first(const struct line_tables *t, Dwarf_Lines *lines, size_t i, size_t end,
			 u64 was)
{
	size_t k = i;

	while (k < end && row_addr(t, lines, k) == was)
		k++;
	return row_addr(t, lines, k) - was > FAR ? k : i;
}

/* The rows of a unit are by address. A row that ends a sequence is in front of others there. */
static bool add_unit(struct line_tables *t, Dwarf_Lines *lines, size_t n, const char *dir)
{
	struct line_sequence *s;
	size_t first = 0;
	u64 was = 0;
	bool ends;

	for (size_t i = 0; i < n; i++) {
		if (t->lineendsequence(t->onesrcline(lines, i), &ends))
			return false;
		if (!ends)
			continue;
		if (first)
			first = next_first(t, lines, first, i, was);
		was = row_addr(t, lines, i);
		if (i > first) {
			s = add_sequence(t);
			if (!s)
				return false;
			*s = (struct line_sequence){
				row_addr(t, lines, first), was, lines, dir, first, i};
		}
		first = i + 1;
	}
	return true;
}

/*
 * Whether all tables are of DWARF 5. Older ones do not say where units were compiled, and libdw
 * looks for that in sections that are not there.
 */
static bool are_new(const struct line_tables *t)
{
	Elf_Data *data = t->getdata(t->getscn(t->elf, 1), NULL);
	size_t at = 0, size = data ? data->d_size : 0;
	u64 len;
	u16 version;

	while (at < size) {
		const u8 *unit = (const u8 *)data->d_buf + at;
		bool wide = false;

		if (size - at < 14)
			return false;
		len = 0;
		memcpy(&len, unit, 4);
		wide = len == 0xffffffff;
		if (wide)
			memcpy(&len, unit + 4, 8);
		memcpy(&version, unit + (wide ? 12 : 4), 2);
		if (version != 5 || len > size - at - (wide ? 12 : 4))
			return false;
		at += len + (wide ? 12 : 4);
	}
	return size;
}

static bool read_units(struct line_tables *t)
{
	u64 offset = 0, next = 0;
	Dwarf_Files *files;
	Dwarf_Lines *lines;
	size_t nr_files, nr_lines, nr_dirs;
	const char *const *dirs;
	Dwarf_CU *cu;
	int err;

	while (!(err = t->next_lines(t->dwarf, offset, &next, &cu, &files, &nr_files, &lines,
				     &nr_lines))) {
		if (next <= offset || t->getsrcdirs(files, &dirs, &nr_dirs) || !nr_dirs ||
		    !add_unit(t, lines, nr_lines, dirs[0]))
			return false;
		offset = next;
	}
	return err > 0 && t->n;
}

static int by_start(const void *a, const void *b)
{
	const struct line_sequence *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

struct line_tables *line_tables_new(void *libdw, const struct elf_file *im)
{
	struct line_tables *t;
	size_t size;

	if (!is_worth(im))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t || !resolve(t, libdw))
		goto no;
	t->image = make_file(im, &size);
	if (!t->image)
		goto no;
	t->elf_version(EV_CURRENT);
	t->elf = t->elf_memory(t->image, size);
	t->dwarf = t->elf ? t->begin_elf(t->elf, 0, NULL) : NULL; /* 0: DWARF_C_READ */
	if (!t->dwarf || !are_new(t) || !read_units(t))
		goto no;
	qsort(t->sequence, t->n, sizeof(*t->sequence), by_start);
	return t;
no:
	line_tables_free(t);
	return NULL;
}

void line_tables_free(struct line_tables *t)
{
	if (!t)
		return;
	if (t->dwarf)
		(void)t->end(t->dwarf);
	if (t->elf)
		(void)t->elf_end(t->elf);
	free(t->image);
	free(t->sequence);
	free(t);
}

/* The last one that begins at @addr or before; NULL: it has ended. */
static const struct line_sequence *sequence_at(const struct line_tables *t, u64 addr)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->sequence[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr < t->sequence[low - 1].end ? &t->sequence[low - 1] : NULL;
}

bool line_tables_find(const struct line_tables *t, u64 addr, const char **name, const char **dir,
		      u32 *line)
{
	const struct line_sequence *s = sequence_at(t, addr);
	size_t low, high;
	Dwarf_Line *found;
	u64 at;
	int nr;

	if (!s)
		return false;
	/* The last row at @addr or before. */
	for (low = s->first, high = s->last; low + 1 < high;) {
		size_t mid = low + (high - low) / 2;

		if (t->lineaddr(t->onesrcline(s->lines, mid), &at))
			return false;
		if (at <= addr)
			low = mid;
		else
			high = mid;
	}
	found = t->onesrcline(s->lines, low);
	*name = t->linesrc(found, NULL, NULL);
	*dir = s->dir;
	if (!*name || t->lineno(found, &nr) || nr <= 0)
		return false;
	*line = (u32)nr;
	return true;
}
