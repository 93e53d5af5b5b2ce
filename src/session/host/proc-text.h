/*
 * PURPOSE: the texts of /proc and of cgroups, taken apart by their own syntax. Names in them (of a
 * thread, a file, a cgroup, a mount) may be any bytes that a guest chose. Pure.
 */
#ifndef SESSION_HOST_PROC_TEXT_H
#define SESSION_HOST_PROC_TEXT_H

#include <stdio.h>
#include <sys/types.h>

#include "base/types.h"

/*
 * The next line of @f that fits into @line, without its end; false: there is none. One that is
 * longer is left out as a whole: what follows its first piece is text of somebody's choice, and no
 * line.
 */
bool proc_line(FILE *f, char *line, size_t size);

/* A line of mountinfo. */
struct proc_mount {
	dev_t dev;
	char root[1024], at[1024]; /* "" if they are longer */
	char type[64];
	const char *options; /* of the file system, in the line */
};

bool proc_mount_parse(const char *line, struct proc_mount *m);

/* A line of maps. */
struct proc_range {
	u64 start, end, offset, ino;
	u32 major, minor,
		prot; /* enum of mmap(2), without PROT_EXEC, which is the runtime's to say */
	bool shared;
	const char *name; /* "": none; in the line */
	char line[4400];  /* which proc_range_next() has read */
};

bool proc_range_parse(const char *line, struct proc_range *r);
/* The next one of @maps, its name as the file has it; false: there is none. */
bool proc_range_next(FILE *maps, struct proc_range *r);

/* What stands behind "@key:" if @line of status begins so; NULL: it does not. */
const char *proc_status_value(const char *line, const char *key);
/* The soft limit in @line of limits if it begins with @name, ~0: unlimited. False: it does not. */
bool proc_limit(const char *line, const char *name, u64 *limit);
/* The last of several numbers; 0: there is none. */
s32 proc_last_number(const char *text);

/* Field @field of stat, from 3, the state, on; false: there is none. */
bool proc_stat_field(const char *text, u32 field, u64 *value);
/* The CPU there; -1: there is none. */
int proc_stat_cpu(const char *text);
/*
 * Word @word behind the first @key (NULL: in the whole text) as a number; words are divided by
 * blanks, colons and line ends.
 */
bool proc_word(const char *text, const char *key, u32 word, u64 *value);

/*
 * Where the line of the hierarchy that perf goes by has its path in a text of cgroup, which is
 * changed; NULL: none has. *@v1: it is the controller's own.
 */
char *proc_perf_cgroup(char *text, bool *v1);

#endif
