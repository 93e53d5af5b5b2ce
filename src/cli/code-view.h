/*
 * PURPOSE: what the code of the measured processes is: from an address to object, function, section
 * and line, as Valgrind tells them.
 *
 * Lifetime: new .. free; names live as long.
 */
#ifndef CLI_CODE_VIEW_H
#define CLI_CODE_VIEW_H

#include "base/types.h"
#include "sym/function-table.h"

struct code_view;

struct code_view *code_view_new(void);
void code_view_free(struct code_view *v);

/* What happens to processes, as recorded. */
void code_view_map(struct code_view *v, u32 pid, u64 addr, u64 len, u64 pgoff, const char *path);
void code_view_fork(struct code_view *v, u32 pid, u32 parent);
void code_view_exec(struct code_view *v, u32 pid);

struct code_place {
	const char *object; /* "???": unknown */
	u32 region;         /* of object and kind of section */
	enum section_kind section;
	u64 address;          /* as the object has it */
	const char *function; /* NULL: none is known */
	u64 symbol;           /* where it begins, as the process has it */
	bool entry;
	const char *file; /* NULL: not known */
	u32 line;
};

/* False: nothing is mapped there, as far as was told. Everything but file and line. */
bool code_view_find(struct code_view *v, u32 pid, u64 pc, struct code_place *p);
void code_view_line(struct code_view *v, u32 pid, u64 pc, struct code_place *p);

#endif
