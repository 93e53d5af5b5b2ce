/*
 * PURPOSE: what runs where, as a recording tells it record by record: processes with their
 * mappings, threads with their names; and from an address in one of them to an object and a symbol.
 *
 * Symbols of an object are loaded when an address in it is asked for first. They come from the file
 * itself, if it is still the one that was recorded (by its build id), else from its debug file
 * (debug-file.h), else from what the file exports, else from the copy in perf's cache. The kernel's
 * come from /proc/kallsyms, if the running kernel is the one that was recorded.
 *
 * Lifetime: new .. free; names live as long.
 */
#ifndef SYM_SYMBOL_VIEW_H
#define SYM_SYMBOL_VIEW_H

#include "elf/build-id.h"

struct sym_view;

/* A place in a program. Names are never NULL but `symbol`. */
struct sym_place {
	u64 addr;           /* as the object has it: the byte of the file; the kernel's: itself */
	const char *object; /* path, "[kernel.kallsyms]", "[vdso]"; "[unknown]" */
	const char *symbol; /* NULL: nobody knows */
	u64 offset;         /* from the symbol's beginning */
	bool mapped;        /* it is in some object */
	bool kernel;
};

struct sym_view *sym_view_new(void); /* NULL: no memory */
void sym_view_free(struct sym_view *v);

/* The build id of a file of this name, or of "[kernel.kallsyms]". */
void sym_view_build_id(struct sym_view *v, const char *path, const u8 *id, u32 size);

/*
 * A mapping; @pid of the kernel's own is -1. The path may be a name in brackets. @id is what the
 * file had when it was mapped, if that is known; NULL: what sym_view_build_id() has said.
 */
void sym_view_map(struct sym_view *v, u32 pid, u64 addr, u64 len, u64 pgoff, const char *path,
		  const struct elf_build_id *id);

/*
 * A thread's name. What is mapped stays when it executes a program: its last samples may still be
 * of the old one, and the new one's mappings replace what they overlap.
 */
void sym_view_comm(struct sym_view *v, u32 tid, const char *comm);

/* A thread or process that was made. */
void sym_view_fork(struct sym_view *v, u32 pid, u32 tid, u32 parent_pid, u32 parent_tid);

/* "" if it is not known. */
const char *sym_view_name(const struct sym_view *v, u32 tid);

/* Where @addr of process @pid is, in the kernel or in user mode. */
void sym_view_find(struct sym_view *v, u32 pid, u64 addr, bool kernel, struct sym_place *place);

/* Data, and the piece of memory that it is in: a mapping, or what lies between two. */
struct sym_data {
	u64 start, end;
	const char *object; /* of the mapping, or whose .bss it is; NULL: none that is known */
	const char *symbol; /* NULL: none */
	u64 symbol_start;   /* as the object has it: variables that are static may share a name */
	bool mapped;
	bool anonymous;      /* the mapping is of no file */
	bool elf;            /* it is in a segment of `object` */
	bool behind_program; /* not mapped: what lies below is the program's */
	bool topmost;        /* likewise: nothing lies above but the vDSO */
};

/* What is at @addr of process @pid. Memory of a program's heap and first stack may not be told. */
void sym_view_data(struct sym_view *v, u32 pid, u64 addr, struct sym_data *data);

/*
 * Tells of each file in which an address was looked up and that is not what was recorded any more,
 * by its build id, and has no copy: @there is false if there is none of that name.
 */
void sym_view_changed(const struct sym_view *v,
		      void (*tell)(const char *path, bool there, void *data), void *data);

/* A file that is mapped where an address is. */
struct sym_module {
	const char *path;  /* to be opened; a name, if there are bytes */
	const void *bytes; /* the object itself, of one that is no file; else NULL */
	size_t len;
	u64 bias; /* where it is mapped, less what it says */
};

/* False: there is none, or the file is not the one that was recorded. */
bool sym_view_module(struct sym_view *v, u32 pid, u64 addr, struct sym_module *m);

/* Another number when what was mapped is not there any more. */
u64 sym_view_generation(struct sym_view *v, u32 pid);

#endif
