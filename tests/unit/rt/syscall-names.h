/* PURPOSE: the rows of syscall.tbl by name, which gen-syscalls.py writes beside the table. */
#ifndef TESTS_UNIT_RT_SYSCALL_NAMES_H
#define TESTS_UNIT_RT_SYSCALL_NAMES_H

struct syscall_name {
	const char *name;
	unsigned nr;
	int plain;
};

/* Ends with a name that is NULL. */
extern const struct syscall_name syscall_names[];

#endif
