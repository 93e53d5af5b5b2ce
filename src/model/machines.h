/* PURPOSE: the texts of the machines that are shipped (machines/), in the program itself. */
#ifndef MODEL_MACHINES_H
#define MODEL_MACHINES_H

struct machine_shipped {
	const char *name, *text;
};

/* By name; ended by one without. */
extern const struct machine_shipped machines_shipped[];

#endif
